"""Inference without a bound, or by enumeration."""

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.options import inference_options
from widemargin.structured.inference.potentials import Labeling, Potentials


def enumerate_labels(potentials: Potentials) -> Labeling:
    """Return the best of all n_states ** n_nodes labelings."""
    labels = np.zeros(len(potentials.unary), dtype=np.int64)
    score = _enumerate(*potentials, labels)
    return Labeling(labels, score, score, True, "enumerate")


def iterated_modes(potentials: Potentials, labels: np.ndarray | None = None) -> Labeling:
    """Return labels that no change of a single node improves.

    Iterated conditional modes start from ``labels``, or from the best labels without edges.
    """
    unary, edges, _ = potentials
    labels = unary.argmax(axis=1) if labels is None else np.array(labels, dtype=np.int64)
    improvement = inference_options.improvement
    _improve(*potentials, *incidence(len(unary), edges), labels, improvement)
    return potentials.labeling("icm", labels, exact=len(edges) == 0)


def ignore_edges(potentials: Potentials) -> Labeling:
    """Return the best labels without edges."""
    labels = potentials.unary.argmax(axis=1)
    return potentials.labeling("unary", labels, exact=len(potentials.edges) == 0)


@compiled
def incidence(n_nodes: int, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of edges at each node: those at v are ends[begin[v] : begin[v + 1]].

    End k of edge e, the node edges[e, k], has the number 2 e + k.
    """
    begin = np.zeros(n_nodes + 1, dtype=np.int64)
    for e in range(len(edges)):
        begin[edges[e, 0] + 1] += 1
        begin[edges[e, 1] + 1] += 1
    for v in range(n_nodes):
        begin[v + 1] += begin[v]
    free = begin[:-1].copy()
    ends = np.empty(2 * len(edges), dtype=np.int64)
    for k in range(len(ends)):
        v = edges[k // 2, k % 2]
        ends[free[v]] = k
        free[v] += 1
    return begin, ends


@compiled(work=lambda unary, edges, *rest: (1.0 * unary.shape[1]) ** len(unary) * len(edges))
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
def _improve(unary, edges, pairwise, begin, ends, labels, improvement):
    n_nodes, n_states = unary.shape
    scores = np.empty(n_states)
    changed = True
    while changed:
        changed = False
        for v in range(n_nodes):
            scores[:] = unary[v]
            for k in range(begin[v], begin[v + 1]):
                e = ends[k] // 2
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
