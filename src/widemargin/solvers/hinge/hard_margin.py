"""The hinge problem with infinite costs, by a primal-dual interior-point method.

With f(x_i) = (K beta)_i, signs y_i, beta_i = y_i a_i and all costs infinite, the hinge problem (see
`problem`) is to minimize 1/2 beta' K beta with s_i = y_i (f(x_i) + b) - 1 >= 0. At its solution

    a_i >= 0,    s_i >= 0,    a_i s_i = 0,    sum_i y_i a_i = 0

`interior_point` follows the central path to it. Near the optimum the support vectors (a_i > 0) are
known, and equations for them alone give the remaining digits. A step is the solution of linear
equations, either over the samples or, where K = R R' has few columns p and f = R w, over these:

    (K + diag(s / a)) d_beta + d_b 1 = g,   sum(d_beta) = h                           O(n^3)
    (sum_i a_i / s_i (r_i, 1)(r_i, 1)' + diag(1, ..., 1, 0)) (d_w, d_b) = g           O(n p^2)

SMO is faster as long as pair updates converge quickly. They do not where many samples share few
features, nor where large costs stand for infinite ones.

The final equations are not those of `free_set_newton`: the sum of the dual variables has to be
restored, and K has a condition number at which a single factorization loses the digits that are
wanted (at C = 10^4 it leaves a relative gap of 1e-6 instead of 1e-9). A small multiple of the
identity is added to K instead, and removed by iterative refinement (the proximal point method).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from widemargin._base.callbacks import run_in_slices
from widemargin._base.numeric import TINY
from widemargin._base.options import interior_point_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.solvers import interior_point
from widemargin.solvers.hinge.pairs import residual_extremes
from widemargin.solvers.hinge.problem import HingeProblem, certify
from widemargin.solvers.solution import Report, Solution


def solve_hard_margin(problem: HingeProblem, report: Report = None, **parameters: Any) -> Solution:
    """Solve a problem with infinite costs and margins 1.

    Parameters
    ----------
    problem : HingeProblem
        With an intercept; it must have a solution.
    report : callable, optional
        Called with the state after every step; True stops the solver.
    **parameters
        Those of `State`.

    Returns
    -------
    Solution
    """
    with single_threaded_blas():
        state = State(problem, **parameters)
        run_in_slices(advance, state, report)
        return finish(state)


class FeatureEquations:
    """Equations for w and b; without an intercept b is 0."""

    def __init__(self, features: np.ndarray, intercept: bool = True):
        self.columns = np.hstack([features, np.full((len(features), 1), float(intercept))])
        self.ridge = np.append(np.ones(features.shape[1]), float(not intercept))
        self.squared_norms = np.einsum("ij,ij->i", self.columns, self.columns)

    def unknowns(self, beta: np.ndarray) -> np.ndarray:
        """Return w of beta, and b = 0."""
        return np.append(beta @ self.columns[:, :-1], 0.0)

    def start(self, beta: np.ndarray) -> np.ndarray:
        """Return the function 0: w need not be that of beta before the last step."""
        return np.zeros(self.columns.shape[1])

    def scores(self, unknowns: np.ndarray) -> np.ndarray:
        return self.columns @ unknowns

    def squared_norm(self, unknowns: np.ndarray) -> float:
        return float(unknowns[:-1] @ unknowns[:-1])

    def block(self, index: np.ndarray) -> np.ndarray:
        """Return K between some samples."""
        return self.columns[index, :-1] @ self.columns[index, :-1].T

    def balance(self, beta: np.ndarray, weight: np.ndarray, unknowns: np.ndarray) -> np.ndarray:
        """Return the dual point of sum 0 that gives w, nearest in units of ``weight``."""
        missing = beta @ self.columns - np.append(unknowns[:-1], 0.0)
        free = np.flatnonzero(weight)
        scaled = weight[free, np.newaxis] * self.columns[free]
        unit = np.maximum(np.sqrt(np.einsum("ij,ij->j", scaled, scaled)), TINY)
        try:
            lengths = linalg.lstsq((scaled / unit).T, missing / unit, lapack_driver="gelsy")[0]
        except (linalg.LinAlgError, ValueError):  # values that are not finite
            return beta
        moved = beta.copy()
        moved[free] -= weight[free] * lengths
        return moved

    def factorize(self, ratio: np.ndarray) -> Callable:
        """Return a function that computes steps, for a / s = ratio."""
        cutoff = options.negligible / len(ratio)
        relevant = np.flatnonzero(ratio * self.squared_norms > cutoff)
        root = np.sqrt(ratio)

        def product(rows: slice) -> np.ndarray:
            index = relevant[rows]
            scaled = root[index, np.newaxis] * self.columns[index]
            return scaled.T @ scaled

        matrix = interior_point.sum_over_chunks(product, len(relevant))
        matrix[np.diag_indices(len(matrix))] += self.ridge
        factor = interior_point.cholesky(matrix)

        def step(unknowns, beta, pull):
            drift = beta @ self.columns - np.append(unknowns[:-1], 0.0)
            right = drift + (ratio * pull) @ self.columns
            return linalg.cho_solve(factor, right, check_finite=False)

        return step


class SampleEquations:
    """Equations for beta and b; without an intercept b is 0."""

    def __init__(self, matrix: np.ndarray, intercept: bool = True):
        self.matrix, self.intercept = matrix, intercept

    def unknowns(self, beta: np.ndarray) -> np.ndarray:
        """Return beta, and b = 0."""
        return np.append(beta, 0.0)

    start = unknowns

    def scores(self, unknowns: np.ndarray) -> np.ndarray:
        return self.matrix @ unknowns[:-1] + unknowns[-1]

    def squared_norm(self, unknowns: np.ndarray) -> float:
        return float(unknowns[:-1] @ self.matrix @ unknowns[:-1])

    def block(self, index: np.ndarray) -> np.ndarray:
        """Return K between some samples."""
        return self.matrix[np.ix_(index, index)]

    def balance(self, beta: np.ndarray, weight: np.ndarray, unknowns: np.ndarray) -> np.ndarray:
        """Return the dual point, which is the unknown here, moved to sum 0."""
        total = float(np.sum(weight * weight))
        if not self.intercept or total == 0.0:
            return beta
        return beta - weight * weight * (beta.sum() / total)

    def factorize(self, ratio: np.ndarray) -> Callable:
        """Return a function that computes steps, for a / s = ratio."""
        matrix = self.matrix.copy()
        matrix[np.diag_indices(len(matrix))] += 1.0 / ratio
        factor = interior_point.cholesky(matrix)
        along = linalg.cho_solve(factor, np.ones(len(matrix)), check_finite=False)

        def step(unknowns, beta, pull):
            moved = linalg.cho_solve(factor, pull, check_finite=False)
            if not self.intercept:
                return np.append(moved, 0.0)
            shift = (moved.sum() + beta.sum()) / along.sum()
            return np.append(moved - shift * along, shift)

        return step


@dataclass
class State:
    """A point inside, at first the best multiple of the difference between the class means.

    Parameters
    ----------
    problem : HingeProblem
    features : ndarray of shape (n, p), optional
        R with K = R R', if it has few columns.
    tol : float, default=1e-3
        Tolerance on the violation of the optimality conditions for points that rounding keeps from
        machine precision.
    max_iter : int, default=-1
        Largest number of steps; -1 for no limit.
    """

    problem: HingeProblem
    features: np.ndarray | None = None
    tol: float = 1e-3
    max_iter: int = -1
    iterations: int = 0

    def __post_init__(self) -> None:
        self.equations: FeatureEquations | SampleEquations
        if self.features is None:
            self.equations = SampleEquations(self.problem.gram.block(slice(None), slice(None)))
        else:
            self.equations = FeatureEquations(self.features)
        sign, equations = self.problem.sign, self.equations
        positive = sign > 0.0
        self.dual = np.where(positive, 1.0 / np.sum(positive), 1.0 / np.sum(~positive))
        norm = equations.squared_norm(equations.unknowns(sign * self.dual))
        self.dual *= 2.0 / norm if norm > 0.0 else 1.0
        self.unknowns = equations.unknowns(sign * self.dual)
        self.slack = 1.0 + np.maximum(sign * equations.scores(self.unknowns) - 1.0, 0.0)
        self.progress = interior_point.Progress(options.precision, options.near)


def advance(state: State) -> bool:
    """Take one step; return whether the solver has finished."""
    dual, slack, sign = state.dual, state.slack, state.problem.sign
    missing = sign * state.equations.scores(state.unknowns) - 1.0 - slack
    norm = max(state.equations.squared_norm(state.unknowns), TINY)
    distance = max(float(dual @ slack) / norm, float(np.abs(missing).max()))
    limit = options.iterations if state.max_iter < 0 else min(options.iterations, state.max_iter)
    point = dual, slack, state.unknowns
    if state.progress.update(distance, point) or state.iterations >= limit:
        return True
    try:
        solve = state.equations.factorize(dual / slack)
    except linalg.LinAlgError:
        return True

    def direction(change: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        step = solve(state.unknowns, sign * dual, sign * (change / dual - missing))
        slack_step = sign * state.equations.scores(step) + missing
        if state.features is None:  # the step of beta is among those of the unknowns
            return step, slack_step, sign * step[:-1]
        return step, slack_step, (change - dual * slack_step) / slack

    step, slack_step, dual_step, length = interior_point.predictor_corrector(
        direction, slack, dual, len(dual)
    )
    state.unknowns = state.unknowns + length * step
    state.slack = slack + length * slack_step
    state.dual = dual + length * dual_step
    state.iterations += 1
    return False


def finish(state: State) -> Solution:
    """Return the solution next to the best point."""
    dual, slack, unknowns = state.progress.point or (state.dual, state.slack, state.unknowns)
    near = np.where(dual / dual.max() > slack / max(1.0, slack.max()), dual, 0.0)
    sign = state.problem.sign
    balanced = np.maximum(sign * state.equations.balance(sign * near, near, unknowns), 0.0)
    points = _refined(state, near), near, balanced
    candidates = (_conditions(state, point) for point in points)
    beta, residual, violation = min(candidates, key=lambda conditions: conditions[-1])
    solution = certify(state.problem, beta, residual, state.iterations, True)
    converged = violation < state.tol or solution.gap < options.certified_gap
    return replace(solution, converged=converged)


def _conditions(state: State, dual: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the signed dual point, its residual, and the violation of the conditions."""
    beta = state.problem.sign * dual
    scores = state.equations.scores(state.equations.unknowns(beta))
    residual = state.problem.linear() - scores
    highest, lowest = residual_extremes(beta, residual, *state.problem.bounds())
    return beta, residual, highest - lowest


def _refined(state: State, near: np.ndarray) -> np.ndarray:
    """Return the dual point to machine precision, if its support vectors are not too many.

    All support vectors are on the margin: the change d of their beta solves K d + nu 1 =
    y - K beta, sum(beta + d) = 0 over them.
    """
    dual = near.copy()
    for _ in range(options.corrections):
        support = np.flatnonzero(dual)
        if not 0 < len(support) <= options.most_support_vectors:
            break
        sign, K = state.problem.sign[support], state.equations.block(support)
        beta = sign * dual[support]
        # Support vectors that depend on others keep their dual variables.
        proximity = options.proximity * max(float(K.diagonal().max()), TINY)
        try:
            factor = linalg.cho_factor(K + proximity * np.eye(len(K)), check_finite=False)
        except linalg.LinAlgError:
            break
        along = linalg.cho_solve(factor, np.ones(len(K)), check_finite=False)
        for _ in range(options.refinements):
            beta = beta + linalg.cho_solve(factor, sign - K @ beta, check_finite=False)
            beta -= beta.sum() / along.sum() * along
        dual[support] = np.maximum(sign * beta, 0.0)
        if (dual[support] > 0.0).all():
            break
    return dual
