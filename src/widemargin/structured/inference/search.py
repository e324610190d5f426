"""Inference by enumeration, and by iterated conditional modes.

Both maximise sum_v unary[v, y_v] + sum_e pairwise[e, y_u, y_v] over labels y, where e = (u, v).
"""

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.options import inference_options


def enumerate_labels(
    unary: np.ndarray, edges: np.ndarray, pairwise: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return the best of all n_states ** n_nodes labelings, and its score."""
    labels = np.zeros(len(unary), dtype=np.int64)
    return labels, _enumerate(unary, edges, pairwise, labels)


def iterated_modes(
    unary: np.ndarray,
    edges: np.ndarray,
    pairwise: np.ndarray,
    labels: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """Return labels that no change of a single node improves, and their score.

    Iterated conditional modes start from ``labels``, or from the best labels without edges.
    """
    labels = unary.argmax(axis=1) if labels is None else np.array(labels, dtype=np.int64)
    begin, incident = incidence(len(unary), edges)
    improvement = inference_options.improvement
    _improve(unary, edges, pairwise, begin, incident, labels, improvement)
    return labels, score_of(unary, edges, pairwise, labels)


def score_of(
    unary: np.ndarray, edges: np.ndarray, pairwise: np.ndarray, labels: np.ndarray
) -> float:
    """Return the score of labels."""
    nodes, links = np.arange(len(labels)), np.arange(len(edges))
    across = pairwise[links, labels[edges[:, 0]], labels[edges[:, 1]]]
    return float(unary[nodes, labels].sum() + across.sum())


def incidence(n_nodes: int, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of each node: those of v are incident[begin[v] : begin[v + 1]]."""
    ends = edges.ravel()
    begin = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n_nodes))])
    return begin, np.argsort(ends, kind="stable") // 2


@compiled
def _enumerate(unary, edges, pairwise, best):
    n_nodes, n_states = unary.shape
    labels = np.zeros(n_nodes, dtype=np.int64)
    highest = -np.inf
    while True:
        score = 0.0
        for v in range(n_nodes):
            score += unary[v, labels[v]]
        for e in range(len(edges)):
            score += pairwise[e, labels[edges[e, 0]], labels[edges[e, 1]]]
        if score > highest:
            highest = score
            best[:] = labels
        v = n_nodes - 1
        while v >= 0 and labels[v] == n_states - 1:
            labels[v] = 0
            v -= 1
        if v < 0:
            return highest
        labels[v] += 1


@compiled
def _improve(unary, edges, pairwise, begin, incident, labels, improvement):
    n_nodes, n_states = unary.shape
    scores = np.empty(n_states)
    changed = True
    while changed:
        changed = False
        for v in range(n_nodes):
            scores[:] = unary[v]
            for k in range(begin[v], begin[v + 1]):
                e = incident[k]
                for s in range(n_states):
                    if edges[e, 0] == v:
                        scores[s] += pairwise[e, s, labels[edges[e, 1]]]
                    else:
                        scores[s] += pairwise[e, labels[edges[e, 0]], s]
            best = labels[v]
            for s in range(n_states):
                # Without a margin for rounding errors two states could alternate forever.
                if scores[s] > scores[best] + improvement * (1.0 + abs(scores[best])):
                    best = s
            if best != labels[v]:
                labels[v] = best
                changed = True
