"""Sequential tree-reweighted message passing (TRW-S): labels for any graph, and an upper bound.

Maximizes sum_v unary[v, y_v] + sum_e pairwise[e, y_u, y_v]. The nodes are processed in their order,
forward and backward. A message moves potential from a node to an edge, which changes no score;
after each backward pass the sum of the largest scores of the chains of the graph is an upper bound
on the score of all labels, and it never increases (Kolmogorov, 2006). On a forest it converges to
the best score. Labels are chosen in the forward pass, each node given the earlier ones; the best
labels are returned.

References
----------
V. Kolmogorov: Convergent tree-reweighted message passing for energy minimization. IEEE TPAMI 2006.
"""

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.options import inference_options as options
from widemargin.structured.inference.potentials import Labeling, Potentials
from widemargin.structured.inference.search import incidence, iterated_modes


def reweighted_messages(potentials: Potentials) -> Labeling:
    """Return the best labels found, improved by single changes, and an upper bound."""
    unary, edges, pairwise = potentials
    labels = np.zeros(len(unary), dtype=np.int64)
    messages = np.zeros((len(edges), 2, unary.shape[1]))
    # One contiguous matrix for each end of an edge: the inner loops run along rows.
    sides = np.stack([pairwise, pairwise.transpose(0, 2, 1)], axis=1)
    bound = _run(
        unary, edges, sides, *incidence(len(unary), edges), messages, labels,
        options.message_passes, options.message_tol, options.stalled_passes,
    )  # fmt: skip
    return potentials.labeling("trws", iterated_modes(potentials, labels).labels, bound)


@compiled(work=lambda unary, edges, sides, *rest: 20.0 * (unary.size + sides.size))
def _run(unary, edges, sides, begin, ends, messages, best, max_iter, tol, most_stalled):
    """Return the bound; write the labels to ``best``.

    messages[e, k] is sent to the k-th end of edge e; the rows of sides[e, k] are the states of
    that end.
    """
    n_nodes, n_states = unary.shape
    labels = np.zeros(n_nodes, dtype=np.int64)
    collected = np.empty(n_states)
    highest, bound, stalled = -np.inf, np.inf, 0
    for _ in range(max_iter):
        for v in range(n_nodes):
            _choose(unary, edges, sides, begin, ends, messages, labels, v)
            _send(unary, edges, sides, begin, ends, messages, v, 1, collected)
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
            reached += _send(unary, edges, sides, begin, ends, messages, v, -1, collected)
        slack = tol * (1.0 + abs(reached))
        stalled = stalled + 1 if reached > bound - slack else 0
        bound = min(bound, reached)
        if bound <= highest + slack or stalled >= most_stalled:
            break
    return bound


@compiled
def _send(unary, edges, sides, begin, ends, messages, v, direction, collected):
    """Send messages from node ``v`` to its later (1) or earlier (-1) neighbors.

    Returns the constant that was subtracted, the contribution of the node to the bound.
    """
    n_states = len(collected)
    later = earlier = 0
    collected[:] = unary[v]
    for k in range(begin[v], begin[v + 1]):
        e = ends[k] // 2
        end = 0 if edges[e, 0] == v else 1
        if edges[e, 1 - end] > v:
            later += 1
        else:
            earlier += 1
        for s in range(n_states):
            collected[s] += messages[e, end, s]
    share = 1.0 / max(1, max(later, earlier))
    constant = collected.max()
    for s in range(n_states):
        collected[s] -= constant
    for k in range(begin[v], begin[v + 1]):
        e = ends[k] // 2
        end = 0 if edges[e, 0] == v else 1
        if (edges[e, 1 - end] - v) * direction < 0:
            continue
        message, matrix = messages[e, 1 - end], sides[e, end]
        message[:] = -np.inf
        for s in range(n_states):
            cavity, row = share * collected[s] - messages[e, end, s], matrix[s]
            for t in range(n_states):
                candidate = cavity + row[t]
                message[t] = candidate if candidate > message[t] else message[t]
        top = message.max()
        constant += top
        for t in range(n_states):
            message[t] -= top
    return constant


@compiled
def _choose(unary, edges, sides, begin, ends, messages, labels, v):
    """Choose the best label of ``v`` given those of earlier nodes and messages of later ones."""
    best, highest = 0, -np.inf
    for s in range(unary.shape[1]):
        score = unary[v, s]
        for k in range(begin[v], begin[v + 1]):
            e = ends[k] // 2
            end = 0 if edges[e, 0] == v else 1
            other = edges[e, 1 - end]
            if other > v:
                score += messages[e, end, s]
            else:
                score += sides[e, end, s, labels[other]]
        if score > highest:
            best, highest = s, score
    labels[v] = best
