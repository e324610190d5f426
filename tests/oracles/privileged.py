"""Exact answers to the problems with privileged columns, by an interior-point solver.

Each problem is solved in its primal form, over factors of its Gram matrices, so that neither a
singular matrix nor a small penalty costs accuracy.
"""

from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse


class Exact(NamedTuple):
    """Values at the rows; those of SVM-2K's second view stand in ``slack``."""

    objective: float
    f: np.ndarray
    intercept: float
    slack: np.ndarray


def svm2plus(gram, privileged, sign, cost, penalty):
    """min 1/2|w|^2 + 1/2 sum cost xi^2 + penalty/2 |v|^2, xi = [Z 1] v, y (Xw + b) >= 1 - xi."""
    X, Z = factor(gram), factor(privileged + 1.0)
    quadratic = block_diagonal(
        np.eye(X.shape[1]), np.zeros((1, 1)), penalty * np.eye(Z.shape[1]) + Z.T * cost @ Z
    )
    margin = -np.hstack([sign[:, None] * X, sign[:, None], Z])
    x = solve(quadratic, np.zeros(len(quadratic)), margin, -np.ones(len(sign)))
    w, b, v = np.split(x, np.cumsum([X.shape[1], 1]))
    slack = Z @ v
    objective = 0.5 * (w @ w + cost @ slack**2 + penalty * v @ v)
    return Exact(objective, X @ w, b[0], slack)


def svm1plus(gram, privileged, sign, cost, penalty):
    """min 1/2|w|^2 + cost' xi + penalty/2 |v|^2, xi = Zv + rho >= 0, y (Xw + b) >= 1 - xi."""
    X, Z = factor(gram), factor(privileged)
    n = len(sign)
    quadratic = block_diagonal(
        np.eye(X.shape[1]), np.zeros((1, 1)), penalty * np.eye(Z.shape[1]), np.zeros((1, 1))
    )
    linear = np.concatenate([np.zeros(X.shape[1] + 1), cost @ Z, [cost.sum()]])
    ones = np.ones((n, 1))
    constraints = -np.vstack(
        [
            np.hstack([sign[:, None] * X, sign[:, None], Z, ones]),
            np.hstack([np.zeros((n, X.shape[1] + 1)), Z, ones]),
        ]
    )
    x = solve(quadratic, linear, constraints, -np.repeat([1.0, 0.0], n))
    w, b, v, rho = np.split(x, np.cumsum([X.shape[1], 1, Z.shape[1]]))
    slack = Z @ v + rho
    objective = 0.5 * (w @ w + penalty * v @ v) + cost @ slack
    return Exact(objective, X @ w, b[0], slack)


def two_view(first, second, sign, costs, agreement, epsilon):
    """SVM-2K; the second view's function stands in ``slack``."""
    X, Z = factor(first), factor(second)
    n = len(sign)
    quadratic = block_diagonal(
        np.eye(X.shape[1]), np.zeros((1, 1)), np.eye(Z.shape[1]), np.zeros((1 + 3 * n, 1 + 3 * n))
    )
    views = np.hstack([X, np.ones((n, 1))]), np.hstack([Z, np.ones((n, 1))])
    nothing = [np.zeros_like(view) for view in views]
    one, none = np.eye(n), np.zeros((n, n))
    column = sign[:, None]
    constraints = -np.vstack(
        [
            np.hstack([column * views[0], nothing[1], one, none, none]),
            np.hstack([nothing[0], column * views[1], none, one, none]),
            np.hstack([views[0], -views[1], none, none, one]),
            np.hstack([-views[0], views[1], none, none, one]),
            np.hstack([np.zeros((3 * n, len(quadratic) - 3 * n)), np.eye(3 * n)]),
        ]
    )
    bounds = np.concatenate([-np.ones(2 * n), np.full(2 * n, epsilon), np.zeros(3 * n)])
    linear = np.concatenate([np.zeros(len(quadratic) - 3 * n), costs.ravel(), agreement])
    x = solve(quadratic, linear, constraints, bounds)
    w, b, v, c, _ = np.split(x, np.cumsum([X.shape[1], 1, Z.shape[1], 1]))
    f, e = X @ w + b, Z @ v + c
    short = np.maximum(0.0, 1.0 - sign * np.vstack([f, e]))
    apart = np.maximum(0.0, np.abs(f - e) - epsilon)
    objective = 0.5 * (w @ w + v @ v) + (costs * short).sum() + agreement @ apart
    return Exact(objective, f, b[0], e)


def factor(gram):
    values, vectors = np.linalg.eigh(gram)
    kept = values > values[-1] * len(gram) * np.finfo(float).eps
    return vectors[:, kept] * np.sqrt(values[kept])


def block_diagonal(*blocks):
    return sparse.block_diag(blocks).toarray()


def solve(quadratic, linear, constraints, bounds):
    """Minimise 1/2 x'Px + q'x with Gx <= h by Clarabel."""
    answers = []
    # The tightest tolerance now and then ends without progress where a looser one succeeds.
    for tolerance in (1e-12, 1e-11, 1e-10):
        answer = clarabel.DefaultSolver(
            sparse.csc_array(np.triu(quadratic)),
            linear,
            sparse.csc_array(constraints),
            bounds,
            [clarabel.NonnegativeConeT(len(bounds))],
            tight(tolerance),
        ).solve()
        gap = abs(answer.obj_val - answer.obj_val_dual) / max(abs(answer.obj_val), 1e-3)
        answers.append((max(gap, answer.r_prim, answer.r_dual), np.array(answer.x)))
        if answers[-1][0] < 1e-11:
            break
    error, x = min(answers, key=lambda pair: pair[0])
    if not error < 1e-8:
        raise ArithmeticError(f"the oracle's own error is {error}")
    return x


def tight(tolerance):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.max_iter = 500
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.tol_infeas_abs = settings.tol_infeas_rel = 1e-14
    settings.tol_ktratio = 1e-14
    return settings
