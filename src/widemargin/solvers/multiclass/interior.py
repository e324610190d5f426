"""The problem of Crammer and Singer with few features, by a primal-dual interior-point method.

With slacks s_ik = xi_i - margin_i 1[k != y_i] - <w_k - w_y_i, z_i> and multipliers a_ik, the dual
variables are alpha_ik = cost_i 1[k = y_i] - a_ik (see `problem`), and at the solution

    s_ik a_ik = 0,    s, a >= 0,    sum_k a_ik = cost_i,    w_k = sum_i alpha_ik z_i

With q = a / s and Q_i = sum_k q_ik, the Newton equations for the weights of all classes have the
blocks

    1[k = l] (1 + sum_i q_ik z_i z_i')  -  sum_i q_ik q_il / Q_i  z_i z_i'

`interior_point` follows the central path in 20 to 60 steps, whatever the conditioning: the solver
of `linear` hands over where passes over the samples converge slowly.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg

from widemargin._base.numeric import TINY
from widemargin._base.options import interior_point_options as options
from widemargin.solvers import interior_point
from widemargin.solvers.multiclass.problem import CrammerSingerProblem


@dataclass
class State:
    """A point inside: equal multipliers, and slacks of at least 1.

    Parameters
    ----------
    problem : CrammerSingerProblem
    features : ndarray of shape (n, d + 1)
        Samples with the constant feature.
    """

    problem: CrammerSingerProblem
    features: np.ndarray

    def __post_init__(self) -> None:
        n_classes = self.problem.n_classes
        self.weights = np.zeros((self.features.shape[1], n_classes))
        self.multipliers = np.repeat(self.problem.cost[:, np.newaxis] / n_classes, n_classes, 1)
        self.xi = 1.0 + self.problem.margin
        self.slack = self.xi[:, np.newaxis] - self.needed()
        self.progress = interior_point.Progress(options.soft_precision, options.near)
        self.iterations = 0

    def needed(self) -> np.ndarray:
        """Return the slack that each class requires of each sample."""
        problem, scores = self.problem, self.features @ self.weights
        samples = np.arange(problem.size)
        needed = scores - scores[samples, problem.label][:, np.newaxis]
        needed += problem.margin[:, np.newaxis]
        needed[samples, problem.label] = 0.0
        return needed


def start(X: Any, problem: CrammerSingerProblem) -> State | None:
    """Return the state; None if there are too many weights, or nothing is inside the bounds."""
    (n, d), n_classes = X.shape, problem.n_classes
    few = d * n_classes <= options.largest_rank
    few = few and n * (d * n_classes) ** 2 <= 2 * options.linear_products
    if not few or not (problem.cost > 0.0).all():
        return None
    dense = X.toarray() if sp.issparse(X) else X
    return State(problem, np.hstack([dense, np.full((n, 1), problem.bias)]))


@interior_point.quiet
def advance(state: State) -> bool:
    """Take one step; return whether the method has ended."""
    Z, slack, multipliers = state.features, state.slack, state.multipliers
    missing = state.xi[:, np.newaxis] - state.needed() - slack
    drift = state.weights - Z.T @ _dual(state.problem, multipliers)
    uneven = state.problem.cost - multipliers.sum(axis=1)
    value = float(state.problem.cost @ state.xi) + float(np.sum(state.weights**2))
    distance = float(np.vdot(slack, multipliers)) / max(value, TINY)
    distance = max(distance, float(np.abs(missing).max()) / (1.0 + float(state.xi.max())))
    distance = max(distance, float(np.vdot(drift, drift)) / max(value, TINY))
    point = multipliers, slack, state.weights
    if state.progress.update(distance, point) or state.iterations >= options.iterations:
        return True
    ratio = multipliers / slack
    total = ratio.sum(axis=1)
    try:
        factor = interior_point.cholesky(_normal_matrix(Z, ratio, total))
    except (linalg.LinAlgError, ValueError):
        return True

    def direction(change: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
        pull = change / slack - ratio * missing
        mean = ((pull.sum(axis=1) - uneven) / total)[:, np.newaxis]
        right = -drift - Z.T @ (pull - ratio * mean)
        step = linalg.cho_solve(factor, right.T.ravel(), check_finite=False)
        step = step.reshape(right.shape[::-1]).T
        scores = Z @ step
        level = mean + (np.sum(ratio * scores, axis=1) / total)[:, np.newaxis]
        moved = level - scores + missing
        label_scores = scores[np.arange(len(scores)), state.problem.label]
        return (step, level[:, 0] - label_scores), moved, (change - multipliers * moved) / slack

    (step, rise), slack_step, multiplier_step, length = interior_point.predictor_corrector(
        direction, slack, multipliers, slack.size
    )
    state.weights = state.weights + length * step
    state.xi = state.xi + length * rise
    state.slack = slack + length * slack_step
    state.multipliers = multipliers + length * multiplier_step
    state.iterations += 1
    return False


def points(state: State) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Generate feasible dual variables next to the best point, with its weights.

    Multipliers that are small beside their slack are set to 0, and the others changed such that
    the dual variables give the weights.
    """
    problem, Z = state.problem, state.features
    last = state.multipliers, state.slack, state.weights
    multipliers, slack, weights = state.progress.point or last
    dual = problem.make_feasible(_dual(problem, multipliers))
    yield dual, weights
    free = np.where(multipliers > slack * problem.cost[:, np.newaxis], multipliers, 0.0)
    free[:, 0] += TINY  # no sample without any
    total = free.sum(axis=1)
    try:
        factor = interior_point.cholesky(_normal_matrix(Z, free, total, 0.0))
    except (linalg.LinAlgError, ValueError):
        return
    for _ in range(options.refinements):
        right = weights - Z.T @ dual
        step = linalg.cho_solve(factor, right.T.ravel(), check_finite=False)
        scores = Z @ step.reshape(right.shape[::-1]).T
        mean = (np.sum(free * scores, axis=1) / total)[:, np.newaxis]
        moved = dual + free * (scores - mean)
        if not np.isfinite(moved).all():
            return
        dual = problem.make_feasible(moved)
        yield dual, weights


def _dual(problem: CrammerSingerProblem, multipliers: np.ndarray) -> np.ndarray:
    dual = -multipliers
    dual[np.arange(len(dual)), problem.label] += problem.cost
    return dual


def _normal_matrix(
    Z: np.ndarray, ratio: np.ndarray, total: np.ndarray, ridge: float = 1.0
) -> np.ndarray:
    """Return the matrix of the Newton equations for the weights, class by class."""
    d, n_classes = Z.shape[1], ratio.shape[1]
    matrix = max(ridge, TINY) * np.eye(d * n_classes)
    for k in range(n_classes):
        for m in range(k + 1):
            share = ratio[:, k] * ((1.0 if k == m else 0.0) - ratio[:, m] / total)
            block = (Z * share[:, np.newaxis]).T @ Z
            rows, columns = slice(k * d, (k + 1) * d), slice(m * d, (m + 1) * d)
            matrix[rows, columns] += block
            if k != m:
                matrix[columns, rows] += block.T
    return matrix
