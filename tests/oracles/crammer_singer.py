"""The exact answer to the multi-class problem of Crammer and Singer, by an interior-point solver.

For a Gram matrix K = L L', labels y, margins m and costs c:

    min over W, t   1/2 sum_k ||w_k||^2  +  sum_i c_i t_i
    subject to      t_i >= m_i 1[k != y_i] + (L w_k)_i - (L w_{y_i})_i   for all i and k

Clarabel solves it over the factor L, so that a singular K costs no accuracy. An intercept that is
regularised like a feature is a constant added to K.
"""

from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse


class Exact(NamedTuple):
    """The optimum and the scores of the rows, of shape (n, n_classes)."""

    objective: float
    scores: np.ndarray


def solve_exactly(gram, label, cost, n_classes, margin=1.0):
    """Solve the problem to about 1e-9 of its objective."""
    factor = _factor(gram)
    n, rank = factor.shape
    blocks = []
    for i in range(n):
        for k in range(n_classes):
            row = np.zeros((n_classes, rank))
            row[k] += factor[i]
            row[label[i]] -= factor[i]
            blocks.append(row.ravel())
    slack = -np.repeat(np.eye(n), n_classes, axis=0)
    constraints = sparse.csc_array(np.hstack([np.array(blocks), slack]))
    rival = np.arange(n_classes) != np.asarray(label)[:, None]
    bounds = -(np.broadcast_to(margin, n)[:, None] * rival).ravel()
    quadratic = sparse.diags_array(np.repeat([1.0, 0.0], [n_classes * rank, n])).tocsc()
    linear = np.concatenate([np.zeros(n_classes * rank), cost])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.NonnegativeConeT(len(bounds))]
    solution = clarabel.DefaultSolver(
        quadratic, linear, constraints, bounds, cones, settings
    ).solve()
    weights = np.array(solution.x)[: n_classes * rank].reshape(n_classes, rank)
    scores = factor @ weights.T
    return Exact(value_of(scores, np.sum(weights**2), label, cost, margin), scores)


def value_of(scores, norm, label, cost, margin=1.0):
    """The objective at functions with these scores and squared norm."""
    own = scores[np.arange(len(label)), label]
    rival = np.arange(scores.shape[1]) != np.asarray(label)[:, None]
    height = np.broadcast_to(margin, len(own))[:, None] * rival
    return 0.5 * norm + cost @ np.max(height + scores - own[:, None], axis=1)


def _factor(gram):
    values, vectors = np.linalg.eigh(gram)
    kept = values > values[-1] * len(gram) * np.finfo(float).eps
    return vectors[:, kept] * np.sqrt(values[kept])
