"""Roof duality (QPBO): labels that are certain to be optimal, for two labels and any terms.

Every node gets a complement whose label is the opposite. A term that is not submodular in two
nodes is submodular in one of them and the complement of the other, so that the sum over both forms
of all terms, each with half its weight, is minimized by a cut (Boros and Hammer, 2002; Kolmogorov
and Rother, 2007). It is a relaxation, the dual of that by linear programming: the cut is an upper
bound on the score of all labels. A node on another side than its complement has that label in all
best labelings (persistency). The others remain unlabeled.

With more than two labels, expansion moves are made by such cuts: a node that remains unlabeled
keeps its label, so that no move lowers the score.

References
----------
V. Kolmogorov, C. Rother: Minimizing nonsubmodular functions with graph cuts - a review. IEEE TPAMI
2007.
E. Boros, P. Hammer: Pseudo-Boolean optimization. Discrete Applied Mathematics 2002.
"""

import numpy as np

from widemargin.structured.inference.graph_cut import expand, minimum_cut
from widemargin.structured.inference.potentials import Labeling, Potentials
from widemargin.structured.inference.reweighted import reweighted_messages
from widemargin.structured.inference.search import iterated_modes


def persistent_labels(potentials: Potentials) -> tuple[np.ndarray, float]:
    """Return labels that all best labelings have, -1 for nodes without one, and an upper bound.

    Parameters
    ----------
    potentials : Potentials
        Potentials of two labels.

    Returns
    -------
    labels : ndarray of shape (n_nodes,)
        0, 1, or -1 for nodes that remain unlabeled.
    bound : float
        Upper bound on the score of all labels.
    """
    unary, edges, pairwise = potentials
    n, energy = len(unary), -pairwise
    # Energies over the labels x, y of an edge as a + b x + c y + d [x = 0, y = 1], or with the
    # complement 1 - y in place of y where d would be negative.
    opposite = energy[:, 0, 1] + energy[:, 1, 0] < energy[:, 0, 0] + energy[:, 1, 1]
    turned = np.where(opposite[:, np.newaxis, np.newaxis], energy[:, :, ::-1], energy)
    strength = turned[:, 0, 1] + turned[:, 1, 0] - turned[:, 0, 0] - turned[:, 1, 1]
    first = turned[:, 1, 0] - turned[:, 0, 0]
    second = turned[:, 1, 1] - turned[:, 1, 0]
    slope = unary[:, 0] - unary[:, 1]
    constant = float(-unary[:, 0].sum() + turned[:, 0, 0].sum() + second[opposite].sum())
    np.add.at(slope, edges[:, 0], first)
    np.add.at(slope, edges[:, 1], np.where(opposite, -second, second))
    ends = np.where(opposite, edges[:, 1] + n, edges[:, 1])
    # The second form of a term has the complements of its nodes, in the other direction.
    mirrored = np.column_stack([(ends + n) % (2 * n), edges[:, 0] + n])
    doubled = np.concatenate([np.column_stack([edges[:, 0], ends]), mirrored])
    capacity = 0.5 * np.concatenate([strength, strength])
    terminal = 0.5 * np.concatenate([slope, -slope])
    side, flow = minimum_cut(doubled, capacity, np.zeros(len(doubled)), terminal)
    labels = np.where(side[:n] == side[n:], -1, side[:n])
    return labels, -(constant + float(np.minimum(slope, 0.0).sum()) + flow)


def roof_duality(potentials: Potentials) -> Labeling:
    """Return the labels of roof duality, completed by message passing where it leaves some open."""
    if potentials.unary.shape[1] != 2:
        return expand(potentials, "qpbo", _move)
    partial, bound = persistent_labels(potentials)
    labels = iterated_modes(potentials, _complete(potentials, partial)).labels
    return potentials.labeling("qpbo", labels, bound)


def _complete(potentials: Potentials, partial: np.ndarray) -> np.ndarray:
    """Return labels that equal the partial ones; the rest is inferred given those."""
    free = np.flatnonzero(partial < 0)
    if len(free) == 0:
        return partial
    unary, edges, pairwise = potentials
    number = np.full(len(unary), -1)
    number[free] = np.arange(len(free))
    rest = unary[free].copy()
    open_ends = partial[edges] < 0
    # An edge to a labeled node is a unary term of the other.
    for end in (0, 1):
        cut = np.flatnonzero(open_ends[:, end] & ~open_ends[:, 1 - end])
        fixed = partial[edges[cut, 1 - end]]
        terms = pairwise[cut, :, fixed] if end == 0 else pairwise[cut, fixed, :]
        np.add.at(rest, number[edges[cut, end]], terms)
    inside = open_ends.all(axis=1)
    inner = Potentials(rest, number[edges[inside]], np.ascontiguousarray(pairwise[inside]))
    labels = partial.copy()
    labels[free] = reweighted_messages(inner).labels
    return labels


def _move(keep_or_take: np.ndarray, edges: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """Return 1 for nodes that take the new label in every best move."""
    labels, _ = persistent_labels(Potentials(keep_or_take, edges, moves))
    return np.maximum(labels, 0)
