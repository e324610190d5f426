"""Many labelled graphs in flat arrays: potentials, joint features, exact answers on forests.

A part (node) v with features x_v and a link (edge) e = (u, v) with features z_e have the potentials

    unary[v, s] = sum_f x_vf W[f, s]              pairwise[e, s, t] = sum_k z_ek P[k, s, t]

and the weights W and P stand one after the other in one vector. What is tied (a pairwise matrix
that is symmetric, two states that share a weight with opposite signs) is told by a `Layout`. So
chains, trees, grids, label sets and plain classes are the same problem to the code below: chains
are trees, and classes are trees of one node.

The features of nodes and edges are kept row by row as (index, value) pairs, dense or not: the inner
loops run over the states.
"""

from typing import NamedTuple

import numpy as np

from widemargin._base.jit import compiled
from widemargin.solvers.structured.frank_wolfe import block_products, step_block


class Layout(NamedTuple):
    """Where the weights stand in the vector.

    Attributes
    ----------
    signs : ndarray of shape (n_states,)
        Factor of a node's score in each state; read only where the states share a weight.
    shared : bool
        Whether the states share the weights of node features. Else there is one for each state.
    n_rows : int
        Rows of W: features of nodes.
    place : ndarray of shape (n_edge_features, n_states, n_states)
        Position of P[k, s, t] behind W.
    factor : ndarray of shape (n_edge_features, n_states, n_states)
        By what the weight at that position is multiplied.
    """

    signs: np.ndarray
    shared: bool
    n_rows: int
    place: np.ndarray
    factor: np.ndarray

    @property
    def n_states(self):
        return len(self.signs)

    @property
    def n_unary(self):
        return self.n_rows * (1 if self.shared else len(self.signs))

    @property
    def size(self):
        return self.n_unary + (int(self.place.max()) + 1 if self.place.size else 0)


class Graphs(NamedTuple):
    """Samples, one behind the other.

    Attributes
    ----------
    nodes, links : ndarray of shape (n_samples + 1,)
        First node and first edge of every sample.
    first, last, shift : ndarray of shape (n_nodes,)
        Where a node's features stand in `index` and `value`, and what is added to their index.
    index, value : ndarray
        Features of nodes.
    edges : ndarray of shape (n_edges, 2)
        Ends of an edge, counted from the first node of its sample.
    edge_first : ndarray of shape (n_edges + 1,)
        Where an edge's features stand in `edge_index` and `edge_value`.
    edge_index, edge_value : ndarray
        Features of edges.
    order, parent, via : ndarray of shape (n_nodes,)
        Of forests: nodes from the leaves to the roots; each node's parent (-1 for roots) and the
        edge to it.
    forest : ndarray of shape (n_samples,)
        Whether the sample's graph has no cycle.
    """

    nodes: np.ndarray
    links: np.ndarray
    first: np.ndarray
    last: np.ndarray
    shift: np.ndarray
    index: np.ndarray
    value: np.ndarray
    edges: np.ndarray
    edge_first: np.ndarray
    edge_index: np.ndarray
    edge_value: np.ndarray
    order: np.ndarray
    parent: np.ndarray
    via: np.ndarray
    forest: np.ndarray


def make_graphs(nodes, links, features, edges, edge_features):
    """Return `Graphs` of the samples whose first nodes and edges are given.

    Parameters
    ----------
    nodes, links : ndarray of shape (n_samples + 1,)
    features : tuple of (first, last, shift, index, value)
        Features of nodes.
    edges : ndarray of shape (n_edges, 2)
    edge_features : tuple of (edge_first, edge_index, edge_value)

    Returns
    -------
    Graphs
    """
    n_nodes = int(nodes[-1])
    order, parent, via = (np.empty(n_nodes, dtype=np.int64) for _ in range(3))
    forest = np.empty(len(nodes) - 1, dtype=np.bool_)
    edges = np.ascontiguousarray(edges, dtype=np.int64).reshape(-1, 2)
    nodes, links = np.asarray(nodes, dtype=np.int64), np.asarray(links, dtype=np.int64)
    plant(nodes, links, edges, order, parent, via, forest)
    return Graphs(
        nodes, links, *features, edges, *edge_features, order, parent, via, forest
    )  # fmt: skip


@compiled
def plant(nodes, links, edges, order, parent, via, forest):
    """Find for every sample an order of elimination from leaves to roots, if there is one.

    Roots are the last nodes of their trees, so that a chain is worked through from its beginning.
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
def decode(graphs, layout, weights, extra, samples, labels, scores):
    """Write the best labels of samples that are forests, and their scores.

    ``extra`` of shape (n_nodes, n_states), or empty, is added to the unary potentials.
    """
    signs, shared, _, place, factor = layout
    n_states = len(signs)
    matrices = _matrices(weights, _n_unary(layout), place, factor)
    n_most = _most_nodes(graphs, samples)
    unary = np.empty((n_most, n_states))
    back = np.empty((n_most, n_states), dtype=np.int64)
    mixed = np.empty((n_states, n_states))
    for i in samples:
        _unaries(graphs, i, signs, shared, weights, unary)
        _add(graphs, i, extra, unary)
        scores[i] = _max_product(graphs, i, unary, matrices, mixed, back, labels)


@compiled
def violations(
    graphs, layout, weights, truth, cost, extra, samples, weight, labels, losses, slacks, rows
):  # fmt: skip
    """Loss-augmented inference on forests, and what it says about the weights.

    For every one of ``samples`` the labels with the greatest score + loss, where the loss is the
    sum of ``cost`` over wrong nodes; the loss; by how much score + loss exceed the score of the
    truth; and weight times the joint feature of the truth less that of the labels, which is added
    to its row of ``rows``, or to the only row.
    """
    signs, shared, _, place, factor = layout
    n_states = len(signs)
    matrices = _matrices(weights, _n_unary(layout), place, factor)
    n_most = _most_nodes(graphs, samples)
    unary = np.empty((n_most, n_states))
    back = np.empty((n_most, n_states), dtype=np.int64)
    mixed = np.empty((n_states, n_states))
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
    graphs, layout, truth, node_cost, extra, extra_first, samples, order, cost, line_search,
    averaging, steps, weights, blocks, losses, average, average_loss
):  # fmt: skip
    """Take steps of block-coordinate Frank-Wolfe on samples that are forests.

    Block k, with ``cost``, ``blocks`` and ``losses``, is that of ``samples[k]``; ``order`` is the
    order of the blocks, and ``steps`` is the number of earlier steps. If ``extra`` is not empty,
    the terms that are added to the states of block k begin at ``extra_first[k]``. Returns the new
    ``average_loss``.
    """
    signs, shared, _, place, factor = layout
    n_states = len(signs)
    n_unary = _n_unary(layout)
    n_most = _most_nodes(graphs, samples)
    unary = np.empty((n_most, n_states))
    back = np.empty((n_most, n_states), dtype=np.int64)
    mixed = np.empty((n_states, n_states))
    labels = np.empty_like(truth)
    corner = np.empty_like(weights)
    total = losses.sum()
    for k in order:
        i = samples[k]
        matrices = _matrices(weights, n_unary, place, factor)
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
def evaluate(graphs, layout, weights, truth, cost, labels, weight, losses, slacks, row):
    """Losses and slacks of given labels of all samples; their differences are added to ``row``."""
    signs, shared, _, place, factor = layout
    matrices = _matrices(weights, _n_unary(layout), place, factor)
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
def potentials(graphs, layout, weights, i, unary, pairwise):
    """Write the potentials of sample ``i``."""
    signs, shared, _, place, factor = layout
    matrices = _matrices(weights, _n_unary(layout), place, factor)
    _unaries(graphs, i, signs, shared, weights, unary)
    for e in range(graphs.links[i], graphs.links[i + 1]):
        matrix = _mix(graphs, e, matrices, pairwise[e - graphs.links[i]])
        pairwise[e - graphs.links[i]] = matrix


@compiled
def add_difference(graphs, layout, truth, labels, i, weight, row):
    """Add weight times the joint feature of the truth less that of the labels of sample ``i``."""
    signs, shared, _, place, factor = layout
    n_unary = _n_unary(layout)
    _add_nodes(graphs, i, signs, shared, truth, labels, weight, row)
    _add_edges(graphs, i, n_unary, place, factor, truth, weight, row)
    _add_edges(graphs, i, n_unary, place, factor, labels, -weight, row)


@compiled
def add_marginals(graphs, layout, i, unary, pairwise, weight, row):
    """Add weight times the joint feature of fractional labels: beliefs of nodes and of edges."""
    signs, shared, _, place, factor = layout
    n_states = len(signs)
    n_unary = _n_unary(layout)
    for v in range(graphs.nodes[i], graphs.nodes[i + 1]):
        belief = unary[v - graphs.nodes[i]]
        for k in range(graphs.first[v], graphs.last[v]):
            f, x = graphs.index[k] + graphs.shift[v], weight * graphs.value[k]
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
                    row[n_unary + place[f, s, t]] += z * factor[f, s, t] * belief


@compiled
def _n_unary(layout):
    """How many weights belong to features of nodes."""
    signs, shared, n_rows, _, _ = layout
    return n_rows if shared else n_rows * len(signs)


@compiled
def _most_nodes(graphs, samples):
    most = 0
    for i in samples:
        most = max(most, graphs.nodes[i + 1] - graphs.nodes[i])
    return most


@compiled
def _matrices(weights, n_unary, place, factor):
    """The pairwise matrix of every edge feature."""
    matrices = np.empty(place.shape)
    flat, at, times = matrices.ravel(), place.ravel(), factor.ravel()
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
                total += graphs.value[k] * weights[graphs.index[k] + graphs.shift[v]]
            for s in range(n_states):
                row[s] = signs[s] * total
        else:
            for k in range(graphs.first[v], graphs.last[v]):
                x, at = graphs.value[k], (graphs.index[k] + graphs.shift[v]) * n_states
                own = weights[at : at + n_states]  # a slice: the loop over it is vectorised
                for s in range(n_states):
                    row[s] += x * own[s]


@compiled
def _add(graphs, i, extra, unary):
    if len(extra):
        for v in range(graphs.nodes[i], graphs.nodes[i + 1]):
            for s in range(extra.shape[1]):
                unary[v - graphs.nodes[i], s] += extra[v, s]


@compiled
def _mix(graphs, e, matrices, mixed):
    """The pairwise matrix of an edge: one that is there, or a sum written to ``mixed``."""
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
    """Write the labels with the greatest score + loss; return their loss and slack."""
    first = graphs.nodes[i]
    own = _score(graphs, i, truth, unary, matrices)
    for v in range(first, graphs.nodes[i + 1]):
        for s in range(unary.shape[1]):
            if s != truth[v]:
                unary[v - first, s] += cost[v]
    best = _max_product(graphs, i, unary, matrices, mixed, back, labels)
    loss = 0.0
    for v in range(first, graphs.nodes[i + 1]):
        if labels[v] != truth[v]:
            loss += cost[v]
    return loss, best - own


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
            f, x = graphs.index[k] + graphs.shift[v], weight * graphs.value[k]
            if shared:
                row[f] += (signs[s] - signs[t]) * x
            else:
                row[f * n_states + s] += x
                row[f * n_states + t] -= x


@compiled
def _add_edges(graphs, i, n_unary, place, factor, labels, weight, row):
    first = graphs.nodes[i]
    for e in range(graphs.links[i], graphs.links[i + 1]):
        s, t = labels[first + graphs.edges[e, 0]], labels[first + graphs.edges[e, 1]]
        for k in range(graphs.edge_first[e], graphs.edge_first[e + 1]):
            f = graphs.edge_index[k]
            row[n_unary + place[f, s, t]] += weight * graphs.edge_value[k] * factor[f, s, t]
