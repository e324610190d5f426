"""Many labeled graphs in flat arrays: potentials, joint features, exact inference on forests.

A node v with features x_v and an edge e = (u, v) with features z_e have the potentials

    unary[v, s] = sum_f x_vf W[f, s]              pairwise[e, s, t] = sum_k z_ek P[k, s, t]

with the weights W and P one after the other in one vector. Shared weights (a symmetric pairwise
matrix, two states that share a weight with opposite signs) are described by a `Layout`. So chains,
trees, grids, label sets and single classes are the same problem: chains are trees, and classes are
trees of one node.

The features of nodes and edges are stored as (column, value) pairs, dense or not: the inner loops
run over the states.
"""

from typing import NamedTuple

import numpy as np

from widemargin._base.jit import compiled, loops_of, uncompiled
from widemargin.solvers.jit import add_multiple
from widemargin.structured.inference.search import incidence


class Layout(NamedTuple):
    """Positions of the weights in the vector.

    Attributes
    ----------
    signs : ndarray of shape (n_states,)
        Factor of the score of a node in each state; used only if the states share weights.
    shared : bool
        Whether the states share the weights of node features. Otherwise each state has its own.
    n_unary : int
        Number of weights of node features.
    position : ndarray of shape (n_edge_features, n_states, n_states)
        Position of P[k, s, t] after W.
    factor : ndarray of shape (n_edge_features, n_states, n_states)
        Factor of the weight at that position.
    barrier : ndarray of shape (n_states + 1, n_states) or (0, n_states)
        Terms 0 or minus infinity that forbid pairs of states and, in the last row, states of the
        first node. Only for edges whose only feature has the value 1.
    """

    signs: np.ndarray
    shared: bool
    n_unary: int
    position: np.ndarray
    factor: np.ndarray
    barrier: np.ndarray

    @property
    def n_states(self) -> int:
        """Number of states of a node."""
        return len(self.signs)


class Graphs(NamedTuple):
    """Graphs of all samples, one after the other.

    Attributes
    ----------
    layout : Layout
        Positions of the weights.
    nodes, links : ndarray of shape (n_samples + 1,)
        First node and first edge of each sample.
    first, last, shift : ndarray of shape (n_nodes,)
        Range of the features of a node in `column` and `value`, and an offset of their columns.
    column, value : ndarray
        Features of nodes.
    edges : ndarray of shape (n_edges, 2)
        Ends of an edge, relative to the first node of its sample.
    edge_first : ndarray of shape (n_edges + 1,)
        First feature of an edge in `edge_index` and `edge_value`.
    edge_index, edge_value : ndarray
        Features of edges.
    order, parent, via : ndarray of shape (n_nodes,)
        For forests: nodes from the leaves to the roots, the parent of each node (-1 for roots),
        and the edge to the parent.
    forest : ndarray of shape (n_samples,)
        Whether the graph of the sample has no cycle.
    truth : ndarray of shape (n_nodes,)
        True states; 0 if they are not known.
    cost : ndarray of shape (n_nodes,)
        Loss of a wrong state; 0 if the true states are not known.
    """

    layout: Layout
    nodes: np.ndarray
    links: np.ndarray
    first: np.ndarray
    last: np.ndarray
    shift: np.ndarray
    column: np.ndarray
    value: np.ndarray
    edges: np.ndarray
    edge_first: np.ndarray
    edge_index: np.ndarray
    edge_value: np.ndarray
    order: np.ndarray
    parent: np.ndarray
    via: np.ndarray
    forest: np.ndarray
    truth: np.ndarray
    cost: np.ndarray


def make_graphs(
    layout: Layout,
    nodes: np.ndarray,
    links: np.ndarray,
    features: tuple,
    edges: np.ndarray,
    edge_features: tuple,
) -> Graphs:
    """Return the `Graphs` of samples.

    Parameters
    ----------
    layout : Layout
        Positions of the weights.
    nodes, links : ndarray of shape (n_samples + 1,)
        First node and first edge of each sample.
    features : tuple of (first, last, shift, column, value)
        Features of nodes.
    edges : ndarray of shape (n_edges, 2)
        Ends of the edges.
    edge_features : tuple of (edge_first, edge_index, edge_value)
        Features of edges.

    Returns
    -------
    Graphs
        Without true states.
    """
    order, parent, via, truth = np.zeros((4, int(nodes[-1])), dtype=np.int64)
    forest, cost = np.empty(len(nodes) - 1, dtype=np.bool_), np.zeros(len(truth))
    edges = np.ascontiguousarray(edges, dtype=np.int64).reshape(-1, 2)
    nodes, links = np.asarray(nodes, dtype=np.int64), np.asarray(links, dtype=np.int64)
    _find_forests(nodes, links, edges, order, parent, via, forest)
    rest = order, parent, via, forest, truth, cost
    return Graphs._make((layout, nodes, links, *features, edges, *edge_features, *rest))


@compiled
def _find_forests(nodes, links, edges, order, parent, via, forest):
    """Find an elimination order from leaves to roots for each sample without cycles.

    Roots are the last nodes of their trees, so that a chain is processed from its beginning.
    """
    for i in range(len(nodes) - 1):
        n, first = nodes[i + 1] - nodes[i], nodes[i]
        edge = edges[links[i] : links[i + 1]]
        begin, ends = incidence(n, edge)
        seen = np.zeros(n, dtype=np.bool_)
        forest[i] = True
        filled = n
        for root in range(n - 1, -1, -1):
            if seen[root]:
                continue
            seen[root] = True
            parent[first + root], via[first + root] = -1, -1
            head = filled
            filled -= 1
            order[first + filled] = root
            while head > filled:
                head -= 1
                v = order[first + head]
                for k in range(begin[v], begin[v + 1]):
                    e = ends[k] // 2
                    other = edge[e, 0] + edge[e, 1] - v
                    if e == via[first + v]:
                        continue
                    if seen[other]:
                        forest[i] = False
                        continue
                    seen[other] = True
                    parent[first + other], via[first + other] = v, e
                    filled -= 1
                    order[first + filled] = other


def pass_work(graphs: Graphs, samples: np.ndarray) -> float:
    """Return the time of uncompiled inference on samples, in microseconds."""
    share = len(samples) / max(1, len(graphs.nodes) - 1)
    return share * (3.0 * len(graphs.value) + 40.0 * len(graphs.truth))


@compiled(work=lambda graphs, w, extra, samples, *rest: pass_work(graphs, samples), cost=2.0)
def decode(
    graphs: Graphs,
    weights: np.ndarray,
    extra: np.ndarray,
    samples: np.ndarray,
    labels: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Write the best labels of samples that are forests, and their scores.

    ``extra`` of shape (n_nodes, n_states), or empty, is added to the unary potentials.
    """
    matrices, unary, mixed, back = buffers(graphs, weights, samples)
    for i in samples:
        unaries(graphs, i, weights, unary)
        _add(graphs, i, extra, graphs.nodes[i], unary)
        scores[i] = max_product(graphs, i, unary, matrices, mixed, back, labels)


@compiled(work=lambda graphs, w, extra, samples, *rest: pass_work(graphs, samples), cost=4.0)
def violations(
    graphs: Graphs,
    weights: np.ndarray,
    extra: np.ndarray,
    samples: np.ndarray,
    weight: np.ndarray,
    rows: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, losses and slacks of loss-augmented inference on samples that are forests.

    For each of ``samples``: the labels, at its nodes, with the largest score + loss, where the loss
    is the sum of the costs of wrong nodes; the loss; the slack, score + loss minus the score of the
    truth. Its weight times the difference of the joint features of the truth and of the labels is
    added to its row of ``rows``, or to the only row.
    """
    work, labels = buffers(graphs, weights, samples), np.empty_like(graphs.truth)
    losses, slacks = np.empty(len(samples)), np.empty(len(samples))
    for k in range(len(samples)):
        i = samples[k]
        unaries(graphs, i, weights, work[1])
        losses[k], slacks[k] = most_violating(graphs, i, extra, graphs.nodes[i], work, labels)
        add_difference(graphs, labels, i, weight[k], rows[min(k, len(rows) - 1)])
    return labels, losses, slacks


@compiled
def evaluate(
    graphs: Graphs, weights: np.ndarray, labels: np.ndarray, weight: np.ndarray, row: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return losses and slacks of labels of all samples; add their differences to ``row``."""
    losses, slacks = np.empty(len(weight)), np.empty(len(weight))
    matrices, unary, _, _ = buffers(graphs, weights, np.arange(len(losses)))
    for i in range(len(losses)):
        losses[i] = node_losses(graphs, i, labels)
        unaries(graphs, i, weights, unary)
        slacks[i] = losses[i] + _score(graphs, i, labels, unary, matrices)
        slacks[i] -= _score(graphs, i, graphs.truth, unary, matrices)
        add_difference(graphs, labels, i, weight[i], row)
    return losses, slacks


@compiled
def potentials(graphs: Graphs, weights: np.ndarray, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the unary and pairwise potentials of sample ``i``."""
    n_edges = graphs.links[i + 1] - graphs.links[i]
    matrices, unary, mixed, _ = buffers(graphs, weights, np.array([i]))
    unaries(graphs, i, weights, unary)
    pairwise = np.empty((n_edges, len(mixed), len(mixed)))
    for k in range(n_edges):
        pairwise[k] = mix(graphs, graphs.links[i] + k, matrices, mixed)
    return unary, pairwise


@compiled
def add_difference(
    graphs: Graphs, labels: np.ndarray, i: int, weight: float, row: np.ndarray
) -> None:
    """Add weight times the difference of joint features of the truth and labels of a sample."""
    layout, n_states = graphs.layout, len(graphs.layout.signs)
    for v in range(graphs.nodes[i], graphs.nodes[i + 1]):
        s, t = graphs.truth[v], labels[v]
        if s == t:
            continue
        for k in range(graphs.first[v], graphs.last[v]):
            f, x = graphs.column[k] + graphs.shift[v], weight * graphs.value[k]
            if layout.shared:
                row[f] += (layout.signs[s] - layout.signs[t]) * x
            else:
                row[f * n_states + s] += x
                row[f * n_states + t] -= x
    add_edges(graphs, i, graphs.truth, weight, row)
    add_edges(graphs, i, labels, -weight, row)


@compiled
def add_marginals(
    graphs: Graphs, i: int, unary: np.ndarray, pairwise: np.ndarray, weight: float, row: np.ndarray
) -> None:
    """Add weight times the joint feature of fractional labels: beliefs of nodes and edges."""
    layout, n_states = graphs.layout, len(graphs.layout.signs)
    for v in range(graphs.nodes[i], graphs.nodes[i + 1]):
        belief = unary[v - graphs.nodes[i]]
        for k in range(graphs.first[v], graphs.last[v]):
            f, x = graphs.column[k] + graphs.shift[v], weight * graphs.value[k]
            for s in range(n_states):
                if layout.shared:
                    row[f] += x * layout.signs[s] * belief[s]
                else:
                    row[f * n_states + s] += x * belief[s]
    for e in range(graphs.links[i], graphs.links[i + 1]):
        for k in range(graphs.edge_first[e], graphs.edge_first[e + 1]):
            f, z = graphs.edge_index[k], weight * graphs.edge_value[k]
            for s in range(n_states):
                for t in range(n_states):
                    at, factor = layout.position[f, s, t], layout.factor[f, s, t]
                    row[layout.n_unary + at] += z * factor * pairwise[e - graphs.links[i], s, t]


@compiled
def buffers(
    graphs: Graphs, weights: np.ndarray, samples: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return pairwise matrices, and arrays for unary potentials, a matrix and back pointers."""
    most, n_states = 0, len(graphs.layout.signs)
    for i in samples:
        most = max(most, graphs.nodes[i + 1] - graphs.nodes[i])
    matrices, unary = np.empty(graphs.layout.position.shape), np.empty((most, n_states))
    write_matrices(graphs.layout, weights, matrices)
    return matrices, unary, np.empty((n_states, n_states)), np.empty(unary.shape, dtype=np.int64)


@compiled
def write_matrices(layout: Layout, weights: np.ndarray, matrices: np.ndarray) -> None:
    """Write the pairwise matrix of each edge feature."""
    n_states = len(layout.signs)
    for k in range(len(matrices)):
        for s in range(n_states):
            for t in range(n_states):
                weight = weights[layout.n_unary + layout.position[k, s, t]]
                matrices[k, s, t] = layout.factor[k, s, t] * weight
            if len(layout.barrier):
                add_multiple(1.0, layout.barrier[s], matrices[k, s], 0)


@compiled
def unaries(graphs: Graphs, i: int, weights: np.ndarray, unary: np.ndarray) -> None:
    """Write the unary potentials of a sample to the first rows of ``unary``."""
    layout, n_states = graphs.layout, len(graphs.layout.signs)
    for v in range(graphs.nodes[i], graphs.nodes[i + 1]):
        row = unary[v - graphs.nodes[i]]
        row[:] = 0.0
        if layout.shared:
            total = 0.0
            for k in range(graphs.first[v], graphs.last[v]):
                total += graphs.value[k] * weights[graphs.column[k] + graphs.shift[v]]
            for s in range(n_states):
                row[s] = layout.signs[s] * total
        else:
            for k in range(graphs.first[v], graphs.last[v]):
                x, at = graphs.value[k], (graphs.column[k] + graphs.shift[v]) * n_states
                state_weights = weights[at : at + n_states]  # the loop over a slice is vectorized
                for s in range(n_states):
                    row[s] += x * state_weights[s]


@compiled
def _add(graphs, i, extra, first, unary):
    """Add to the unary potentials of a sample the rows of ``extra`` from ``first`` on, if any."""
    if len(extra):
        for v in range(graphs.nodes[i + 1] - graphs.nodes[i]):
            for s in range(extra.shape[1]):
                unary[v, s] += extra[first + v, s]


@compiled
def mix(graphs: Graphs, e: int, matrices: np.ndarray, mixed: np.ndarray) -> np.ndarray:
    """Return the pairwise matrix of an edge: a given one, or a sum written to ``mixed``."""
    first, last = graphs.edge_first[e], graphs.edge_first[e + 1]
    if last - first == 1 and graphs.edge_value[first] == 1.0:
        return matrices[graphs.edge_index[first]]
    mixed[:] = 0.0
    for k in range(first, last):
        z, matrix = graphs.edge_value[k], matrices[graphs.edge_index[k]]
        for s in range(len(mixed)):
            for t in range(len(mixed)):
                mixed[s, t] += z * matrix[s, t]
    return mixed


@compiled
def _score(graphs, i, labels, unary, matrices):
    first, total = graphs.nodes[i], 0.0
    for v in range(first, graphs.nodes[i + 1]):
        total += unary[v - first, labels[v]]
    for e in range(graphs.links[i], graphs.links[i + 1]):
        s, t = labels[first + graphs.edges[e, 0]], labels[first + graphs.edges[e, 1]]
        for k in range(graphs.edge_first[e], graphs.edge_first[e + 1]):
            total += graphs.edge_value[k] * matrices[graphs.edge_index[k], s, t]
    return total


@compiled
def node_losses(graphs: Graphs, i: int, labels: np.ndarray) -> float:
    """Return the loss of labels of a sample."""
    loss = 0.0
    for v in range(graphs.nodes[i], graphs.nodes[i + 1]):
        if labels[v] != graphs.truth[v]:
            loss += graphs.cost[v]
    return loss


@compiled
def most_violating(
    graphs: Graphs, i: int, extra: np.ndarray, extra_first: int, work: tuple, labels: np.ndarray
) -> tuple[float, float]:
    """Write the labels with the largest score + loss; return their loss and slack.

    The unary potentials in ``work`` are those of `unaries`, and are overwritten.
    """
    matrices, unary, mixed, back = work
    _add(graphs, i, extra, extra_first, unary)
    first, true_score = graphs.nodes[i], _score(graphs, i, graphs.truth, unary, matrices)
    for v in range(first, graphs.nodes[i + 1]):
        for s in range(unary.shape[1]):
            if s != graphs.truth[v]:
                unary[v - first, s] += graphs.cost[v]
    best = max_product(graphs, i, unary, matrices, mixed, back, labels)
    return node_losses(graphs, i, labels), best - true_score


@compiled
def max_product(
    graphs: Graphs, i: int, unary: np.ndarray, matrices: np.ndarray, mixed: np.ndarray,
    back: np.ndarray, labels: np.ndarray,
) -> float:  # fmt: skip
    """Write the best labels of a forest and return their score; ``unary`` becomes max-marginals."""
    first, n = graphs.nodes[i], graphs.nodes[i + 1] - graphs.nodes[i]
    n_states = unary.shape[1]
    message = np.empty(n_states)
    if n > 0 and len(graphs.layout.barrier):
        add_multiple(1.0, graphs.layout.barrier[n_states], unary[0], 0)
    for k in range(n):
        v = graphs.order[first + k]
        up = graphs.parent[first + v]
        if up < 0:
            continue
        e = graphs.links[i] + graphs.via[first + v]
        matrix = mix(graphs, e, matrices, mixed)
        arg = back[v]
        if graphs.edges[e, 0] == v:
            _pass_down_rows(unary[v], matrix, message, arg)
        else:
            _pass_along_rows(unary[v], matrix, message, arg)
        for t in range(n_states):
            unary[up, t] += message[t]
    total = 0.0
    for k in range(n - 1, -1, -1):
        v = graphs.order[first + k]
        up = graphs.parent[first + v]
        if up < 0:
            best = unary[v].argmax()
            total += unary[v, best]
            labels[first + v] = best
        else:
            labels[first + v] = back[v, labels[first + up]]
    return total


@compiled
def _pass_down_rows(scores, matrix, message, arg):
    """message[t] = max_s scores[s] + matrix[s, t]."""
    n_states = len(scores)
    for t in range(n_states):
        message[t] = scores[0] + matrix[0, t]
        arg[t] = 0
    for s in range(1, n_states):
        score, row = scores[s], matrix[s]
        for t in range(n_states):
            candidate = score + row[t]
            better = candidate > message[t]
            message[t] = candidate if better else message[t]
            arg[t] = s if better else arg[t]


@compiled
def _pass_along_rows(scores, matrix, message, arg):
    """message[t] = max_s scores[s] + matrix[t, s]."""
    for t in range(len(scores)):
        best, at, row = scores[0] + matrix[t, 0], 0, matrix[t]
        for s in range(1, len(scores)):
            candidate = scores[s] + row[s]
            if candidate > best:
                best, at = candidate, s
        message[t], arg[t] = best, at


@compiled
def add_edges(graphs: Graphs, i: int, labels: np.ndarray, weight: float, row: np.ndarray) -> None:
    """Add weight times the pairwise joint feature of labels of a sample."""
    layout, first = graphs.layout, graphs.nodes[i]
    for e in range(graphs.links[i], graphs.links[i + 1]):
        s, t = labels[first + graphs.edges[e, 0]], labels[first + graphs.edges[e, 1]]
        for k in range(graphs.edge_first[e], graphs.edge_first[e + 1]):
            f, z = graphs.edge_index[k], weight * graphs.edge_value[k]
            row[layout.n_unary + layout.position[f, s, t]] += z * layout.factor[f, s, t]


# The same in vector operations over all samples, which run until the functions above are compiled.
# The sums have the same order.


@uncompiled(violations)
def _violations_by_vectors(graphs, weights, extra, samples, weight, rows):
    if not (are_plain_chains(graphs) and np.isfinite(weights).all()):
        return loops_of(violations)(graphs, weights, extra, samples, weight, rows)
    node, sample = _ranges(graphs.nodes, samples)
    unary = node_unaries(graphs, node, weights)
    if len(extra):
        unary += extra[node]
    truth, every = graphs.truth[node], np.arange(len(node))
    true_unary = unary[every, truth]
    unary += graphs.cost[node, np.newaxis]
    unary[every, truth] = true_unary
    matrix = np.empty(graphs.layout.position.shape)
    write_matrices(graphs.layout, weights, matrix)
    labels = np.empty_like(graphs.truth)
    losses, slacks = np.zeros(len(samples)), np.empty(len(samples))
    begin = np.searchsorted(sample, np.arange(len(samples)))
    count = np.diff(graphs.nodes)[samples]
    for n in np.unique(count):
        which = np.flatnonzero(count == n)
        at = begin[which, np.newaxis] + np.arange(n)
        best, predicted = chain_labels(unary[at], matrix[0])
        labels[node[at]] = predicted
        true, true_score = truth[at], np.zeros(len(which))
        for v in range(n):
            true_score += true_unary[at[:, v]]
            losses[which] += np.where(
                predicted[:, v] != true[:, v], graphs.cost[node[at[:, v]]], 0.0
            )
        for v in range(n - 1):
            true_score += matrix[0, true[:, v], true[:, v + 1]]
        slacks[which] = best - true_score
    _add_differences_of_chains(graphs, labels, samples, weight, rows, node, sample)
    return labels, losses, slacks


@uncompiled(write_matrices)
def _write_matrices_by_vectors(layout, weights, matrices):
    matrices[:] = layout.factor * weights[layout.n_unary + layout.position]
    if len(layout.barrier):
        matrices += layout.barrier[:-1]


@uncompiled(unaries)
def _unaries_by_vectors(graphs, i, weights, unary):
    node = np.arange(graphs.nodes[i], graphs.nodes[i + 1])
    n_features = graphs.last[node] - graphs.first[node]
    if graphs.layout.shared or len(node) == 0 or (n_features != n_features[0]).any():
        loops_of(unaries)(graphs, i, weights, unary)
    else:
        unary[: len(node)] = node_unaries(graphs, node, weights)


@uncompiled(_pass_down_rows)
def _pass_down_rows_by_vectors(scores, matrix, message, arg):
    candidates = scores[:, np.newaxis] + matrix
    candidates.argmax(axis=0, out=arg)
    candidates.max(axis=0, out=message)


def are_plain_chains(graphs: Graphs) -> bool:
    """Return whether samples are chains of nodes with equally many features and one matrix."""
    layout, count = graphs.layout, np.diff(graphs.nodes)
    n_features = graphs.last - graphs.first
    if layout.shared or len(layout.barrier) or len(layout.position) != 1 or not len(n_features):
        return False
    if count.min() < 1 or (n_features != n_features[0]).any():
        return False
    if len(graphs.edge_value) != len(graphs.edges) or (graphs.edge_value != 1.0).any():
        return False
    local = np.arange(len(n_features)) - np.repeat(graphs.nodes[:-1], count)
    inner = local[np.arange(len(local)) + 1 != np.repeat(graphs.nodes[1:], count)]
    return (
        np.array_equal(graphs.links, graphs.nodes - np.arange(len(graphs.nodes)))
        and np.array_equal(graphs.edges[:, 0], inner)
        and np.array_equal(graphs.edges[:, 1], inner + 1)
        and np.array_equal(graphs.edge_first, np.arange(len(inner) + 1))
    )


def node_unaries(graphs: Graphs, node: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the unary potentials of nodes with equally many features and states of their own."""
    n_states, first = len(graphs.layout.signs), graphs.first[node]
    by_state = weights[: graphs.layout.n_unary].reshape(-1, n_states)
    k = first[:, np.newaxis] + np.arange(graphs.last[node[0]] - first[0])
    value, column = graphs.value[k], graphs.column[k] + graphs.shift[node, np.newaxis]
    unary = np.zeros((len(node), n_states))
    for f in range(k.shape[1]):
        unary += value[:, f, np.newaxis] * by_state[column[:, f]]
    return unary


def chain_labels(unary: np.ndarray, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the scores and the labels of the best labelings of chains of one length."""
    n_chains, n, n_states = unary.shape
    back, every = np.empty((n, n_chains, n_states), np.int64), np.arange(n_chains)
    scores = unary[:, 0]
    for v in range(1, n):
        candidates = scores[:, :, np.newaxis] + matrix
        back[v] = candidates.argmax(axis=1)
        scores = unary[:, v] + candidates.max(axis=1)
    labels = np.empty((n_chains, n), np.int64)
    labels[:, -1] = scores.argmax(axis=1)
    for v in range(n - 1, 0, -1):
        labels[:, v - 1] = back[v, every, labels[:, v]]
    return 0.0 + scores.max(axis=1), labels


def _ranges(ends: np.ndarray, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries of samples one after the other, and which of ``samples`` each is of."""
    count = ends[samples + 1] - ends[samples]
    sample = np.repeat(np.arange(len(samples)), count)
    within = np.arange(len(sample)) - np.repeat(np.cumsum(count) - count, count)
    return ends[samples][sample] + within, sample


def _add_differences_of_chains(graphs, labels, samples, weight, rows, node, sample):
    """Add the differences of joint features of samples, in the order of `add_difference`."""
    layout, n_states = graphs.layout, len(graphs.layout.signs)
    row_of = np.minimum(np.arange(len(samples)), len(rows) - 1)
    wrong = labels[node] != graphs.truth[node]
    node, sample = node[wrong], sample[wrong]
    k = graphs.first[node, np.newaxis] + np.arange(graphs.last[0] - graphs.first[0])
    x = weight[sample, np.newaxis] * graphs.value[k]
    position = (graphs.column[k] + graphs.shift[node, np.newaxis]) * n_states
    both = np.stack([graphs.truth[node], labels[node]], axis=1)[:, np.newaxis]
    row = np.broadcast_to(row_of[sample, np.newaxis, np.newaxis], (*k.shape, 2))
    np.add.at(rows, (row, position[:, :, np.newaxis] + both), np.stack([x, -x], axis=2))
    edge, sample = _ranges(graphs.links, samples)
    first = graphs.nodes[samples][sample]
    columns, values, order = [], [], []
    for states, sign in ((graphs.truth, 1.0), (labels, -1.0)):
        s, t = states[first + graphs.edges[edge, 0]], states[first + graphs.edges[edge, 1]]
        columns.append(layout.n_unary + layout.position[0, s, t])
        values.append(sign * weight[sample] * layout.factor[0, s, t])
        order.append(2 * sample + (sign < 0.0))
    # The true edges of a sample come before those of its labels.
    sequence = np.argsort(np.concatenate(order), kind="stable")
    row = np.tile(row_of[sample], 2)[sequence]
    np.add.at(rows, (row, np.concatenate(columns)[sequence]), np.concatenate(values)[sequence])
