"""Minimum cuts: the best of two labels for each node, and expansion moves for more labels.

A sum of unary and pairwise terms over two labels is maximized exactly by a minimum cut if every
pairwise term is submodular,

    pairwise[0, 0] + pairwise[1, 1] >= pairwise[0, 1] + pairwise[1, 0]

(Kolmogorov and Zabih, 2004). In an expansion move every node keeps its label or takes a given one;
such moves, each a cut, are repeated until none improves the score (Boykov, Veksler and Zabih,
2001). Terms of a move that are not submodular are replaced by the closest that are, and a move is
accepted only if the true score increases.

The maximum flow is computed by two search trees that grow from source and sink, meet, are cut where
the flow saturates them and adopt their orphans (Boykov and Kolmogorov, 2004). Capacities are
floats: the residual of a saturated arc is exactly zero.

References
----------
Y. Boykov, V. Kolmogorov: An experimental comparison of min-cut/max-flow algorithms for energy
minimization in vision. IEEE TPAMI 2004.
V. Kolmogorov, R. Zabih: What energy functions can be minimized via graph cuts? IEEE TPAMI 2004.
Y. Boykov, O. Veksler, R. Zabih: Fast approximate energy minimization via graph cuts. IEEE TPAMI
2001.
"""

from collections.abc import Callable

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.options import inference_options as options
from widemargin.structured.inference.potentials import Labeling, Potentials
from widemargin.structured.inference.search import incidence

# Codes in place of the arc to the parent of a node.
_TERMINAL, _ORPHAN, _NONE = -1, -2, -3
# Codes of the search trees.
_FREE, _SOURCE, _SINK = 0, 1, 2
# A distance that no node has.
_FAR = 2147483647


def minimum_cut(
    edges: np.ndarray, capacity: np.ndarray, reverse: np.ndarray, terminal: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return a minimum cut between source and sink, and its capacity.

    Parameters
    ----------
    edges : ndarray of shape (n_edges, 2)
        Pairs of nodes.
    capacity, reverse : ndarray of shape (n_edges,)
        Non-negative capacity from the first end to the second, and from the second to the first.
    terminal : ndarray of shape (n_nodes,)
        Capacity from the source if positive; minus the capacity to the sink if negative.

    Returns
    -------
    side : ndarray of shape (n_nodes,)
        0 for nodes that the source can reach, else 1.
    flow : float
        Capacity of the cut.
    """
    edges = np.ascontiguousarray(edges, dtype=np.int64).reshape(-1, 2)
    begin, head, sister, arc = _arcs(len(terminal), edges)
    residual = np.empty(2 * len(edges))
    residual[arc] = capacity
    residual[sister[arc]] = reverse
    return _maximum_flow(begin, head, sister, residual, np.array(terminal, dtype=float))


def is_submodular(pairwise: np.ndarray) -> bool:
    """Return whether the pairwise terms are over two labels, and all of them are submodular."""
    if pairwise.shape[1] != 2:
        return False
    same = pairwise[:, 0, 0] + pairwise[:, 1, 1]
    other = pairwise[:, 0, 1] + pairwise[:, 1, 0]
    allowed = options.submodularity * (1.0 + np.abs(same) + np.abs(other))
    return bool((other - same <= allowed).all())


def cut_labels(potentials: Potentials) -> Labeling:
    """Return the best of two labels for each node, for submodular terms."""
    unary, edges, pairwise = potentials
    if not is_submodular(pairwise):
        raise ValueError(
            "inference_method='graph-cut' requires two labels and pairwise potentials with "
            "p[0, 0] + p[1, 1] >= p[0, 1] + p[1, 0]. Use 'auto' or 'trws'."
        )
    labels = _cut(-unary, edges, -pairwise, *_arcs(len(unary), edges))
    return potentials.labeling("graph-cut", labels, exact=True)


def expand_labels(potentials: Potentials) -> Labeling:
    """Return labels that no expansion move improves, from the best labels without edges."""
    arcs = _arcs(len(potentials.unary), potentials.edges)

    def move(keep_or_take: np.ndarray, edges: np.ndarray, moves: np.ndarray) -> np.ndarray:
        return _cut(-keep_or_take, edges, -moves, *arcs)

    labeling = expand(potentials, "alpha-expansion", move)
    exact = is_submodular(potentials.pairwise)
    return potentials.labeling("alpha-expansion", labeling.labels, exact=exact)


def expand(potentials: Potentials, method: str, move: Callable) -> Labeling:
    """Return labels after expansion moves, from the best labels without edges.

    Parameters
    ----------
    potentials : Potentials
        What is maximized.
    method : str
        Name in the result.
    move : callable
        ``move(unary, edges, pairwise)`` returns 1 for nodes that take the new label, 0 for nodes
        that keep theirs, for the potentials of both choices.

    Returns
    -------
    Labeling
        Labels that no move improves, without a bound.
    """
    unary, edges, pairwise = potentials
    labels = unary.argmax(axis=1)
    score = potentials.score(labels)
    nodes, links = np.arange(len(unary)), np.arange(len(edges))
    for _ in range(options.expansion_rounds):
        before = score
        for label in range(unary.shape[1]):
            first, second = labels[edges.T]
            keep_or_take = np.stack([unary[nodes, labels], unary[:, label]], axis=1)
            moves = np.empty((len(edges), 2, 2))
            moves[:, 0, 0] = pairwise[links, first, second]
            moves[:, 0, 1] = pairwise[links, first, label]
            moves[:, 1, 0] = pairwise[links, label, second]
            moves[:, 1, 1] = pairwise[:, label, label]
            moved = np.where(move(keep_or_take, edges, moves) == 1, label, labels)
            reached = potentials.score(moved)
            if reached > score + options.improvement * (1.0 + abs(score)):
                labels, score = moved, reached
        if score == before:
            break
    return potentials.labeling(method, labels)


def _arcs(n_nodes, edges):
    """Return arcs of both directions, sorted by node.

    These are the first arc of each node, the heads of the arcs, the reverse of each arc, and the
    arc of each edge from its first end to its second.
    """
    begin, ends = incidence(n_nodes, edges)
    position = np.empty(len(ends), dtype=np.int32)
    position[ends] = np.arange(len(ends))
    head, sister = edges.ravel()[ends ^ 1].astype(np.int32), position[ends ^ 1]
    return begin.astype(np.int32), head, sister, position[::2].copy()


@compiled
def _cut(unary, edges, pairwise, begin, head, sister, arc):
    """Return the labels, 0 (side of the source) or 1, of the least unary + pairwise energy.

    With A, B, C, D the energies of 00, 01, 10, 11, a pairwise term is
    A + (C - A) y_u + (D - C) y_v + (B + C - A - D) (1 - y_u) y_v.
    """
    terminal, residual = unary[:, 1] - unary[:, 0], np.zeros(len(head))
    for e in range(len(edges)):
        u, v = edges[e]
        terminal[u] += pairwise[e, 1, 0] - pairwise[e, 0, 0]
        terminal[v] += pairwise[e, 1, 1] - pairwise[e, 1, 0]
        bend = pairwise[e, 0, 1] + pairwise[e, 1, 0] - pairwise[e, 0, 0] - pairwise[e, 1, 1]
        # Equal shares for both arcs keep the trees balanced: a bend in both directions is
        # bend / 2 (1 - y_u) y_v + bend / 2 y_u (1 - y_v) + bend / 2 (y_v - y_u).
        half = max(0.0, 0.5 * bend)
        residual[arc[e]] = half
        residual[sister[arc[e]]] = half
        terminal[u] -= half
        terminal[v] += half
    return _maximum_flow(begin, head, sister, residual, terminal)[0]


@compiled
def _maximum_flow(begin, head, sister, residual, terminal):
    """Return 0 for nodes that the source reaches, else 1, and the maximum flow."""
    n_nodes = len(terminal)
    tree = np.zeros(n_nodes, dtype=np.int8)
    parent = np.full(n_nodes, _NONE, dtype=np.int32)
    # Distances to the terminal at the time of their stamp; later ones are more reliable.
    distance = np.zeros(n_nodes, dtype=np.int32)
    stamp = np.zeros(n_nodes, dtype=np.int32)
    queue = np.empty(n_nodes + 1, dtype=np.int32)
    queued = np.zeros(n_nodes, dtype=np.bool_)
    # Each node is in the queue at most once: a ring of n_nodes + 1 never overflows.
    front = back = 0
    for v in range(n_nodes):
        if terminal[v] != 0.0:
            tree[v] = _SOURCE if terminal[v] > 0.0 else _SINK
            parent[v], distance[v], queued[v] = _TERMINAL, 1, True
            queue[back] = v
            back += 1
    orphans = np.empty(n_nodes, dtype=np.int32)
    search = begin, head, sister, residual, tree, parent, distance, stamp, queue, queued
    flow, time = 0.0, 0
    while front != back:
        v = queue[front]
        bridge = -1
        if tree[v] != _FREE:
            bridge, back = _grow(v, search, back)
        if bridge < 0:
            queued[v] = False
            front = front + 1 if front < n_nodes else 0
            continue
        time += 1
        pushed, n_orphans = _augment(bridge, head, sister, residual, terminal, parent, orphans)
        flow += pushed
        back = _adopt(orphans, n_orphans, time, search, back)
    return (tree != _SOURCE).astype(np.int64), flow


@compiled
def _grow(v, search, back):
    """Add neighbors of ``v`` to its tree; return an arc from source to sink tree, or -1."""
    begin, head, sister, residual, tree, parent, distance, stamp, queue, queued = search
    side = tree[v]
    for a in range(begin[v], begin[v + 1]):
        if residual[a if side == _SOURCE else sister[a]] <= 0.0:
            continue
        u = head[a]
        if tree[u] == _FREE:
            tree[u], parent[u] = side, sister[a]
            distance[u], stamp[u] = distance[v] + 1, stamp[v]
            if not queued[u]:
                queued[u] = True
                queue[back] = u
                back = back + 1 if back < len(queue) - 1 else 0
        elif tree[u] != side:
            return (a if side == _SOURCE else sister[a]), back
        elif stamp[u] <= stamp[v] and distance[u] > distance[v]:
            # The same tree, but closer to its terminal through v.
            parent[u], distance[u], stamp[u] = sister[a], distance[v] + 1, stamp[v]
    return -1, back


@compiled
def _augment(bridge, head, sister, residual, terminal, parent, orphans):
    """Augment the path over ``bridge``; return the flow and the number of orphans."""
    least = residual[bridge]
    for side in (_SOURCE, _SINK):
        v = head[sister[bridge] if side == _SOURCE else bridge]
        while parent[v] != _TERMINAL:
            a = parent[v]
            least = min(least, residual[sister[a] if side == _SOURCE else a])
            v = head[a]
        least = min(least, abs(terminal[v]))
    residual[bridge] -= least
    residual[sister[bridge]] += least
    n_orphans = 0
    for side in (_SOURCE, _SINK):
        v = head[sister[bridge] if side == _SOURCE else bridge]
        while v >= 0:
            a, u = parent[v], v
            if a == _TERMINAL:
                terminal[v] -= least if side == _SOURCE else -least
                left, v = terminal[v], -1
            else:
                along = sister[a] if side == _SOURCE else a
                residual[along] -= least
                residual[sister[along]] += least
                left, v = residual[along], head[a]
            if left == 0.0:
                parent[u] = _ORPHAN
                orphans[n_orphans] = u
                n_orphans += 1
    return least, n_orphans


@compiled
def _adopt(orphans, n_orphans, time, search, back):
    """Find new parents for orphans, or remove them from their tree; then for their children."""
    begin, head, sister, residual, tree, parent, distance, stamp, queue, queued = search
    while n_orphans > 0:
        n_orphans -= 1
        v = orphans[n_orphans]
        side = tree[v]
        nearest, best = _FAR, -1
        for a in range(begin[v], begin[v + 1]):
            u = head[a]
            if residual[sister[a] if side == _SOURCE else a] <= 0.0 or tree[u] != side:
                continue
            reach = _distance(u, time, head, parent, distance, stamp)
            if reach < nearest:
                nearest, best = reach, a
        if best >= 0:
            parent[v], distance[v], stamp[v] = best, nearest + 1, time
            continue
        tree[v], parent[v] = _FREE, _NONE
        for a in range(begin[v], begin[v + 1]):
            u = head[a]
            if tree[u] != side:
                continue
            if residual[sister[a] if side == _SOURCE else a] > 0.0 and not queued[u]:
                queued[u] = True
                queue[back] = u
                back = back + 1 if back < len(queue) - 1 else 0
            if parent[u] >= 0 and head[parent[u]] == v:
                parent[u] = _ORPHAN
                orphans[n_orphans] = u
                n_orphans += 1
    return back


@compiled
def _distance(u, time, head, parent, distance, stamp):
    """Return the distance of ``u`` from its terminal, very large if it descends from an orphan."""
    steps, w = 0, u
    while stamp[w] != time and parent[w] >= 0:
        steps += 1
        w = head[parent[w]]
    if stamp[w] != time:
        if parent[w] != _TERMINAL:
            return _FAR
        stamp[w], distance[w] = time, 1
    steps += distance[w]
    total, w = steps, u
    while stamp[w] != time:
        stamp[w], distance[w] = time, steps
        steps -= 1
        w = head[parent[w]]
    return total
