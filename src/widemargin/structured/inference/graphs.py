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

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from widemargin._base.jit import compiled
from widemargin.solvers.structured.frank_wolfe import block_products, step_block

Array: TypeAlias = np.ndarray


class Layout(NamedTuple):
    """Positions of the weights in the vector.

    Attributes
    ----------
    signs : ndarray of shape (n_states,)
        Factor of the score of a node in each state; used only if the states share weights.
    shared : bool
        Whether the states share the weights of node features. Otherwise each state has its own.
    n_rows : int
        Number of rows of W, the features of nodes.
    position : ndarray of shape (n_edge_features, n_states, n_states)
        Position of P[k, s, t] after W.
    factor : ndarray of shape (n_edge_features, n_states, n_states)
        Factor of the weight at that position.
    """

    signs: np.ndarray
    shared: bool
    n_rows: int
    position: np.ndarray
    factor: np.ndarray

    @property
    def n_states(self) -> int:
        """Number of states of a node."""
        return len(self.signs)

    @property
    def n_unary(self) -> int:
        """Number of weights of node features."""
        return self.n_rows * (1 if self.shared else len(self.signs))

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.n_unary + (int(self.position.max()) + 1 if self.position.size else 0)


class Graphs(NamedTuple):
    """Graphs of all samples, one after the other.

    Attributes
    ----------
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
    """

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


def make_graphs(
    nodes: np.ndarray, links: np.ndarray, features: tuple[np.ndarray, ...], edges: np.ndarray,
    edge_features: tuple[np.ndarray, ...],
) -> Graphs:  # fmt: skip
    """Return the `Graphs` of samples.

    Parameters
    ----------
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
    """
    n_nodes = int(nodes[-1])
    order, parent, via = (np.empty(n_nodes, dtype=np.int64) for _ in range(3))
    forest = np.empty(len(nodes) - 1, dtype=np.bool_)
    edges = np.ascontiguousarray(edges, dtype=np.int64).reshape(-1, 2)
    nodes, links = np.asarray(nodes, dtype=np.int64), np.asarray(links, dtype=np.int64)
    find_forests(nodes, links, edges, order, parent, via, forest)
    parts = nodes, links, *features, edges, *edge_features, order, parent, via, forest
    return Graphs._make(parts)


@compiled
def find_forests(
    nodes: Array, links: Array, edges: Array, order: Array, parent: Array, via: Array,
    forest: Array,
) -> None:  # fmt: skip
    """Find an elimination order from leaves to roots for each sample without cycles.

    Roots are the last nodes of their trees, so that a chain is processed from its beginning.
    """
    for i in range(len(nodes) - 1):
        n, first = nodes[i + 1] - nodes[i], nodes[i]
        edge = edges[links[i] : links[i + 1]]
        begin = np.zeros(n + 1, dtype=np.int64)
        for e in range(len(edge)):
            begin[edge[e, 0] + 1] += 1
            begin[edge[e, 1] + 1] += 1
        for v in range(n):
            begin[v + 1] += begin[v]
        free = begin[:-1].copy()
        incident = np.empty(2 * len(edge), dtype=np.int64)
        for e in range(len(edge)):
            for v in edge[e]:
                incident[free[v]] = e
                free[v] += 1
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
                    e = incident[k]
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


@compiled
def decode(
    graphs: Graphs, layout: Layout, weights: Array, extra: Array, samples: Array, labels: Array,
    scores: Array,
) -> None:  # fmt: skip
    """Write the best labels of samples that are forests, and their scores.

    ``extra`` of shape (n_nodes, n_states), or empty, is added to the unary potentials.
    """
    signs, shared, _, position, factor = layout
    matrices = _matrices(weights, _n_unary(layout), position, factor)
    unary, back, mixed = _buffers(graphs, samples, len(signs))
    for i in samples:
        _unaries(graphs, i, signs, shared, weights, unary)
        _add(graphs, i, extra, unary)
        scores[i] = _max_product(graphs, i, unary, matrices, mixed, back, labels)


@compiled
def violations(
    graphs: Graphs, layout: Layout, weights: Array, truth: Array, cost: Array, extra: Array,
    samples: Array, weight: Any, labels: Array, losses: Array, slacks: Array, rows: Array,
) -> None:  # fmt: skip
    """Write the results of loss-augmented inference on samples that are forests.

    For each of ``samples``: the labels with the largest score + loss, where the loss is the sum of
    ``cost`` over wrong nodes; the loss; the slack, score + loss minus the score of the truth. Its
    weight times the difference of the joint features of the truth and of the labels is added to its
    row of ``rows``, or to the only row.
    """
    signs, shared, _, position, factor = layout
    matrices = _matrices(weights, _n_unary(layout), position, factor)
    unary, back, mixed = _buffers(graphs, samples, len(signs))
    for k in range(len(samples)):
        i = samples[k]
        _unaries(graphs, i, signs, shared, weights, unary)
        _add(graphs, i, extra, unary)
        losses[i], slacks[i] = _most_violating(
            graphs, i, truth, cost, unary, matrices, mixed, back, labels
        )
        row = rows[min(k, len(rows) - 1)]
        add_difference(graphs, layout, truth, labels, i, weight[k], row)


@compiled
def run_pass(
    graphs: Graphs, layout: Layout, truth: Array, node_cost: Array, extra: Array,
    extra_first: Array, samples: Array, order: Array, cost: Array, line_search: bool,
    averaging: bool, steps: int, weights: Array, blocks: Array, losses: Array, average: Array,
    average_loss: float,
) -> float:  # fmt: skip
    """Take steps of block-coordinate Frank-Wolfe on samples that are forests.

    Block k, with ``cost``, ``blocks`` and ``losses``, is that of ``samples[k]``; ``order`` is the
    order of the blocks, and ``steps`` is the number of earlier steps. If ``extra`` is not empty,
    the terms that are added to the states of block k begin at ``extra_first[k]``. Returns the new
    ``average_loss``.
    """
    signs, shared, _, position, factor = layout
    n_states = len(signs)
    n_unary = _n_unary(layout)
    unary, back, mixed = _buffers(graphs, samples, n_states)
    labels = np.empty_like(truth)
    corner = np.empty_like(weights)
    total = losses.sum()
    for k in order:
        i = samples[k]
        matrices = _matrices(weights, n_unary, position, factor)
        _unaries(graphs, i, signs, shared, weights, unary)
        if len(extra):
            for v in range(graphs.nodes[i + 1] - graphs.nodes[i]):
                for s in range(n_states):
                    unary[v, s] += extra[extra_first[k] + v, s]
        loss, slack = _most_violating(
            graphs, i, truth, node_cost, unary, matrices, mixed, back, labels
        )
        corner[:] = 0.0
        add_difference(graphs, layout, truth, labels, i, cost[k], corner)
        corner_loss = cost[k] * loss
        if len(extra):
            # The added terms count as loss.
            corner_loss = cost[k] * slack + block_products(weights, corner, corner)[0]
        total, average_loss = step_block(
            k, corner, corner_loss, cost[k] * slack, steps, line_search, averaging, weights, blocks,
            losses, average, total, average_loss,
        )  # fmt: skip
        steps += 1
    return average_loss


@compiled
def evaluate(
    graphs: Graphs, layout: Layout, weights: Array, truth: Array, cost: Array, labels: Array,
    weight: Any, losses: Array, slacks: Array, row: Array,
) -> None:  # fmt: skip
    """Write the losses and slacks of labels of all samples; add their differences to ``row``."""
    signs, shared, _, position, factor = layout
    matrices = _matrices(weights, _n_unary(layout), position, factor)
    unary = np.empty((_most_nodes(graphs, np.arange(len(losses))), len(signs)))
    for i in range(len(losses)):
        losses[i] = 0.0
        for v in range(graphs.nodes[i], graphs.nodes[i + 1]):
            if labels[v] != truth[v]:
                losses[i] += cost[v]
        _unaries(graphs, i, signs, shared, weights, unary)
        slacks[i] = losses[i] + _score(graphs, i, labels, unary, matrices)
        slacks[i] -= _score(graphs, i, truth, unary, matrices)
        add_difference(graphs, layout, truth, labels, i, weight[i], row)


@compiled
def potentials(
    graphs: Graphs, layout: Layout, weights: Array, i: int, unary: Array, pairwise: Array
) -> None:
    """Write the potentials of sample ``i``."""
    signs, shared, _, position, factor = layout
    matrices = _matrices(weights, _n_unary(layout), position, factor)
    _unaries(graphs, i, signs, shared, weights, unary)
    for e in range(graphs.links[i], graphs.links[i + 1]):
        matrix = _mix(graphs, e, matrices, pairwise[e - graphs.links[i]])
        pairwise[e - graphs.links[i]] = matrix


@compiled
def add_difference(
    graphs: Graphs, layout: Layout, truth: Array, labels: Array, i: int, weight: Any, row: Array
) -> None:
    """Add weight times the difference of joint features of the truth and labels of a sample."""
    signs, shared, _, position, factor = layout
    n_unary = _n_unary(layout)
    _add_nodes(graphs, i, signs, shared, truth, labels, weight, row)
    _add_edges(graphs, i, n_unary, position, factor, truth, weight, row)
    _add_edges(graphs, i, n_unary, position, factor, labels, -weight, row)


@compiled
def add_marginals(
    graphs: Graphs, layout: Layout, i: int, unary: Array, pairwise: Array, weight: Any, row: Array
) -> None:
    """Add weight times the joint feature of fractional labels: beliefs of nodes and edges."""
    signs, shared, _, position, factor = layout
    n_states = len(signs)
    n_unary = _n_unary(layout)
    for v in range(graphs.nodes[i], graphs.nodes[i + 1]):
        belief = unary[v - graphs.nodes[i]]
        for k in range(graphs.first[v], graphs.last[v]):
            f, x = graphs.column[k] + graphs.shift[v], weight * graphs.value[k]
            for s in range(n_states):
                if shared:
                    row[f] += x * signs[s] * belief[s]
                else:
                    row[f * n_states + s] += x * belief[s]
    for e in range(graphs.links[i], graphs.links[i + 1]):
        for k in range(graphs.edge_first[e], graphs.edge_first[e + 1]):
            f, z = graphs.edge_index[k], weight * graphs.edge_value[k]
            for s in range(n_states):
                for t in range(n_states):
                    belief = pairwise[e - graphs.links[i], s, t]
                    row[n_unary + position[f, s, t]] += z * factor[f, s, t] * belief


@compiled
def _n_unary(layout):
    """Return the number of weights of node features."""
    signs, shared, n_rows, _, _ = layout
    return n_rows if shared else n_rows * len(signs)


@compiled
def _most_nodes(graphs, samples):
    most = 0
    for i in samples:
        most = max(most, graphs.nodes[i + 1] - graphs.nodes[i])
    return most


@compiled
def _buffers(graphs, samples, n_states):
    """Return arrays for unary potentials, back pointers and a pairwise matrix."""
    n_most = _most_nodes(graphs, samples)
    back = np.empty((n_most, n_states), dtype=np.int64)
    return np.empty((n_most, n_states)), back, np.empty((n_states, n_states))


@compiled
def _matrices(weights, n_unary, position, factor):
    """Return the pairwise matrix of each edge feature."""
    matrices = np.empty(position.shape)
    flat, at, times = matrices.ravel(), position.ravel(), factor.ravel()
    for k in range(len(flat)):
        flat[k] = times[k] * weights[n_unary + at[k]]
    return matrices


@compiled
def _unaries(graphs, i, signs, shared, weights, unary):
    n_states = len(signs)
    for v in range(graphs.nodes[i], graphs.nodes[i + 1]):
        row = unary[v - graphs.nodes[i]]
        row[:] = 0.0
        if shared:
            total = 0.0
            for k in range(graphs.first[v], graphs.last[v]):
                total += graphs.value[k] * weights[graphs.column[k] + graphs.shift[v]]
            for s in range(n_states):
                row[s] = signs[s] * total
        else:
            for k in range(graphs.first[v], graphs.last[v]):
                x, at = graphs.value[k], (graphs.column[k] + graphs.shift[v]) * n_states
                state_weights = weights[at : at + n_states]  # the loop over a slice is vectorized
                for s in range(n_states):
                    row[s] += x * state_weights[s]


@compiled
def _add(graphs, i, extra, unary):
    if len(extra):
        for v in range(graphs.nodes[i], graphs.nodes[i + 1]):
            for s in range(extra.shape[1]):
                unary[v - graphs.nodes[i], s] += extra[v, s]


@compiled
def _mix(graphs, e, matrices, mixed):
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
def _most_violating(graphs, i, truth, cost, unary, matrices, mixed, back, labels):
    """Write the labels with the largest score + loss; return their loss and slack."""
    first = graphs.nodes[i]
    true_score = _score(graphs, i, truth, unary, matrices)
    for v in range(first, graphs.nodes[i + 1]):
        for s in range(unary.shape[1]):
            if s != truth[v]:
                unary[v - first, s] += cost[v]
    best = _max_product(graphs, i, unary, matrices, mixed, back, labels)
    loss = 0.0
    for v in range(first, graphs.nodes[i + 1]):
        if labels[v] != truth[v]:
            loss += cost[v]
    return loss, best - true_score


@compiled
def _max_product(graphs, i, unary, matrices, mixed, back, labels):
    """Write the best labels of a forest and return their score; ``unary`` becomes max-marginals."""
    first, n = graphs.nodes[i], graphs.nodes[i + 1] - graphs.nodes[i]
    n_states = unary.shape[1]
    message = np.empty(n_states)
    for k in range(n):
        v = graphs.order[first + k]
        up = graphs.parent[first + v]
        if up < 0:
            continue
        e = graphs.links[i] + graphs.via[first + v]
        matrix = _mix(graphs, e, matrices, mixed)
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
            best = 0
            for s in range(1, n_states):
                if unary[v, s] > unary[v, best]:
                    best = s
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
        own, row = scores[s], matrix[s]
        for t in range(n_states):
            candidate = own + row[t]
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
def _add_nodes(graphs, i, signs, shared, truth, labels, weight, row):
    n_states = len(signs)
    for v in range(graphs.nodes[i], graphs.nodes[i + 1]):
        s, t = truth[v], labels[v]
        if s == t:
            continue
        for k in range(graphs.first[v], graphs.last[v]):
            f, x = graphs.column[k] + graphs.shift[v], weight * graphs.value[k]
            if shared:
                row[f] += (signs[s] - signs[t]) * x
            else:
                row[f * n_states + s] += x
                row[f * n_states + t] -= x


@compiled
def _add_edges(graphs, i, n_unary, position, factor, labels, weight, row):
    first = graphs.nodes[i]
    for e in range(graphs.links[i], graphs.links[i + 1]):
        s, t = labels[first + graphs.edges[e, 0]], labels[first + graphs.edges[e, 1]]
        for k in range(graphs.edge_first[e], graphs.edge_first[e + 1]):
            f = graphs.edge_index[k]
            row[n_unary + position[f, s, t]] += weight * graphs.edge_value[k] * factor[f, s, t]
