"""Sequential tree-reweighted message passing: labels for any graph, and a bound on all labels.

Maximises sum_v unary[v, y_v] + sum_e pairwise[e, y_u, y_v]. The nodes are worked through in their
order, forth and back. A message moves potential from a node into an edge, which changes no score;
after each pass back the sum of what the chains of the graph can reach at most is a bound on the
score of all labels, and it never rises (Kolmogorov, 2006). On a forest it becomes the best score.
Labels are read off on the way forth, each node given those before it; the best ones seen are kept.

References
----------
V. Kolmogorov: Convergent tree-reweighted message passing for energy minimization. IEEE TPAMI 2006.
"""

import numpy as np

from widemargin._base.jit import compiled
from widemargin.structured.inference.search import incidence, iterated_modes


def reweighted_messages(unary, edges, pairwise, max_iter=200, tol=1e-9):
    """Return good labels, their score, and a score that no labels exceed.

    Parameters
    ----------
    unary : ndarray of shape (n_nodes, n_states)
    edges : ndarray of shape (n_edges, 2)
    pairwise : ndarray of shape (n_edges, n_states, n_states)
    max_iter : int, default=200
        Most passes forth and back. It ends before when the bound is met or stands still.
    tol : float, default=1e-9
        What counts as met and as standing still, relative to the bound.

    Returns
    -------
    labels : ndarray of shape (n_nodes,)
    score : float
    bound : float
    """
    begin, incident = incidence(len(unary), edges)
    labels = np.zeros(len(unary), dtype=np.int64)
    messages = np.zeros((len(edges), 2, unary.shape[1]))
    # A view from either end of an edge, both contiguous: the inner loops run along rows.
    sides = np.stack([pairwise, pairwise.transpose(0, 2, 1)], axis=1)
    bound = _run(unary, edges, sides, begin, incident, messages, labels, max_iter, tol)
    labels, score = iterated_modes(unary, edges, pairwise, labels)
    return labels, score, max(bound, score)


@compiled
def _run(unary, edges, sides, begin, incident, messages, best, max_iter, tol):
    """The bound; ``best`` gets the labels.

    messages[e, k] goes into the k-th end of edge e; sides[e, k] has that end's states as rows.
    """
    n_nodes, n_states = unary.shape
    labels = np.zeros(n_nodes, dtype=np.int64)
    collected = np.empty(n_states)
    highest, bound, still = -np.inf, np.inf, 0
    for _ in range(max_iter):
        for v in range(n_nodes):
            _choose(unary, edges, sides, begin, incident, messages, labels, v)
            _send(unary, edges, sides, begin, incident, messages, v, 1, collected)
        score = 0.0
        for v in range(n_nodes):
            score += unary[v, labels[v]]
        for e in range(len(edges)):
            score += sides[e, 0, labels[edges[e, 0]], labels[edges[e, 1]]]
        if score > highest:
            highest = score
            best[:] = labels
        reached = 0.0
        for v in range(n_nodes - 1, -1, -1):
            reached += _send(unary, edges, sides, begin, incident, messages, v, -1, collected)
        slack = tol * (1.0 + abs(reached))
        still = still + 1 if reached > bound - slack else 0
        bound = min(bound, reached)
        if bound <= highest + slack or still >= 5:
            break
    return bound


@compiled
def _send(unary, edges, sides, begin, incident, messages, v, direction, collected):
    """Pass messages from node ``v`` to its later (1) or earlier (-1) neighbours.

    Returns the part of the bound that is settled at this node: a constant that was taken out.
    """
    n_states = len(collected)
    forth = back = 0
    collected[:] = unary[v]
    for k in range(begin[v], begin[v + 1]):
        e = incident[k]
        end = 0 if edges[e, 0] == v else 1
        if edges[e, 1 - end] > v:
            forth += 1
        else:
            back += 1
        for s in range(n_states):
            collected[s] += messages[e, end, s]
    share = 1.0 / max(1, max(forth, back))
    settled = collected.max()
    for s in range(n_states):
        collected[s] -= settled
    for k in range(begin[v], begin[v + 1]):
        e = incident[k]
        end = 0 if edges[e, 0] == v else 1
        if (edges[e, 1 - end] - v) * direction < 0:
            continue
        message, matrix = messages[e, 1 - end], sides[e, end]
        message[:] = -np.inf
        for s in range(n_states):
            own, row = share * collected[s] - messages[e, end, s], matrix[s]
            for t in range(n_states):
                candidate = own + row[t]
                message[t] = candidate if candidate > message[t] else message[t]
        top = message.max()
        settled += top
        for t in range(n_states):
            message[t] -= top
    return settled


@compiled
def _choose(unary, edges, sides, begin, incident, messages, labels, v):
    """The best label of ``v`` given those of earlier nodes and what later ones have sent."""
    best, highest = 0, -np.inf
    for s in range(unary.shape[1]):
        score = unary[v, s]
        for k in range(begin[v], begin[v + 1]):
            e = incident[k]
            end = 0 if edges[e, 0] == v else 1
            other = edges[e, 1 - end]
            if other > v:
                score += messages[e, end, s]
            else:
                score += sides[e, end, s, labels[other]]
        if score > highest:
            best, highest = s, score
    labels[v] = best
