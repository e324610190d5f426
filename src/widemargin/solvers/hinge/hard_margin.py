"""The hinge problem with infinite costs, by a primal-dual interior-point method.

With f(x_i) = (K beta)_i, signs y_i, beta_i = y_i a_i and all costs infinite, the hinge problem (see
`problem`) asks for the smallest 1/2 beta' K beta with s_i = y_i (f(x_i) + b) - 1 >= 0. At its
solution

    a_i >= 0,    s_i >= 0,    a_i s_i = 0,    sum_i y_i a_i = 0

Newton's method follows the points where a_i s_i is the same small number for all rows, as that
number goes to 0 (Mehrotra's predictor and corrector). Some 10 to 30 steps lead close to the
optimum, however rows and kernel lie; then the rows with a_i > 0 are known, and equations for them
alone give the digits that are left. A step is the solution of linear equations, either over the
rows or, where K = R R' has few columns p and f = R w, over these:

    (K + diag(s / a)) d_beta + d_b 1 = g,   sum(d_beta) = h                           O(n^3)
    (sum_i a_i / s_i (r_i, 1)(r_i, 1)' + diag(1, ..., 1, 0)) (d_w, d_b) = g           O(n p^2)

The other solver moves pairs of rows, which is faster as long as pairs do not crawl: they do where
many rows share few columns, and where costs that stand in for infinite ones are huge.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import linalg

from widemargin._base.callbacks import run_in_slices
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin.solvers.hinge.problem import HingeProblem
from widemargin.solvers.solution import Solution, certify

_PRECISION = 1e-12
_MOST_ROUNDS = 100
_NEAR = 1e-6
_SMALL_GAP = 1e-6
_STALLED = 5
_LOST = 40
_NEARLY_ALL = 0.995
_CHUNK = 2048
# Rows that add less than this to a system whose diagonal is at least 1 are left out of it.
_NO_SAY = 1e-7
_FACES = 5
_MOST_ON_FACE = 600
_PROXIMITY = 1e-12
_REFINEMENTS = 4
_TINY = float(np.finfo(float).tiny)


def solve_hard_margin(
    problem: HingeProblem,
    *,
    rows: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = -1,
    report: Callable[["State"], bool] | None = None,
) -> Solution:
    """Solve a problem of infinite costs and margins 1.

    Parameters
    ----------
    problem : HingeProblem
        With an intercept; it is known to have a solution.
    rows : ndarray of shape (n, p), optional
        R, where the kernel's values are inner products of few columns.
    tol : float, default=1e-3
        Largest violation of the optimality conditions with which a point that rounding keeps from
        machine precision counts as a solution.
    max_iter : int, default=-1
        Most steps; -1 for no limit.
    report : callable, optional
        Called with the state after every step; True stops the solver.

    Returns
    -------
    Solution
    """
    with single_threaded_blas():
        state = start(problem, rows, tol, max_iter)
        run_in_slices(advance, state, report)
        return finish(state)


class OverColumns:
    """Equations for w and b."""

    def __init__(self, rows: np.ndarray):
        self.columns = np.hstack([rows, np.ones((len(rows), 1))])
        self.sizes = np.einsum("ij,ij->i", self.columns, self.columns)

    def unknowns(self, beta) -> np.ndarray:
        """w of beta, and b = 0."""
        return np.append(beta @ self.columns[:, :-1], 0.0)

    def scores(self, unknowns) -> np.ndarray:
        return self.columns @ unknowns

    def beta_in(self, unknowns) -> None:
        """Beta is none of the unknowns."""

    def squared_norm(self, unknowns) -> float:
        return float(unknowns[:-1] @ unknowns[:-1])

    def block(self, index) -> np.ndarray:
        return self.columns[index, :-1] @ self.columns[index, :-1].T

    def balanced(self, dual, sign, unknowns) -> np.ndarray:
        """The dual point, moved by next to nothing to where it makes w and sums to 0."""
        scaled = dual[:, np.newaxis] * self.columns
        missing = (sign * dual) @ self.columns - np.append(unknowns[:-1], 0.0)
        moved = dual - sign * dual * (scaled @ least_squares(scaled.T @ scaled, missing))
        return np.maximum(moved, 0.0)

    def factorise(self, ratio) -> Callable:
        """A function from what is missing to the step, for a / s = ratio.

        The matrix is a sum over chunks of fixed size, the same for any number of threads.
        """
        telling = np.flatnonzero(ratio * self.sizes > _NO_SAY / len(ratio))
        root = np.sqrt(ratio)

        def part(first):
            index = telling[first : first + _CHUNK]
            scaled = root[index, np.newaxis] * self.columns[index]
            return scaled.T @ scaled

        parts = for_each(part, range(0, len(telling), _CHUNK))
        matrix = sum(parts[1:], start=parts[0])
        matrix[np.diag_indices(len(matrix) - 1)] += 1.0
        factor = linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

        def step(unknowns, beta, pull):
            drift = beta @ self.columns - np.append(unknowns[:-1], 0.0)
            right = drift + (ratio * pull) @ self.columns
            return linalg.cho_solve(factor, right, check_finite=False)

        return step


class OverRows:
    """Equations for beta and b."""

    def __init__(self, matrix: np.ndarray):
        self.matrix = matrix

    def unknowns(self, beta) -> np.ndarray:
        """The point beta, and b = 0."""
        return np.append(beta, 0.0)

    def scores(self, unknowns) -> np.ndarray:
        return self.matrix @ unknowns[:-1] + unknowns[-1]

    def beta_in(self, unknowns) -> np.ndarray:
        """Beta among the unknowns."""
        return unknowns[:-1]

    def squared_norm(self, unknowns) -> float:
        return float(unknowns[:-1] @ self.matrix @ unknowns[:-1])

    def block(self, index) -> np.ndarray:
        return self.matrix[np.ix_(index, index)]

    def balanced(self, dual, sign, unknowns) -> np.ndarray:
        """The dual point, which is the unknown here."""
        return dual

    def factorise(self, ratio) -> Callable:
        """A function from what is missing to the step, for a / s = ratio."""
        matrix = self.matrix.copy()
        matrix[np.diag_indices(len(matrix))] += 1.0 / ratio
        factor = linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        along = linalg.cho_solve(factor, np.ones(len(matrix)), check_finite=False)

        def step(unknowns, beta, pull):
            found = linalg.cho_solve(factor, pull, check_finite=False)
            shift = (found.sum() + beta.sum()) / along.sum()
            return np.append(found - shift * along, shift)

        return step


@dataclass
class State:
    """A point inside, and the best one so far."""

    problem: HingeProblem
    equations: OverColumns | OverRows
    tol: float
    max_iter: int
    unknowns: np.ndarray
    dual: np.ndarray
    slack: np.ndarray
    iterations: int = 0
    best: float = np.inf
    best_dual: np.ndarray = field(init=False)
    best_slack: np.ndarray = field(init=False)
    best_unknowns: np.ndarray = field(init=False)
    since_best: int = 0

    def __post_init__(self) -> None:
        self.best_dual, self.best_slack = self.dual, self.slack
        self.best_unknowns = self.unknowns


def start(problem: HingeProblem, rows=None, tol=1e-3, max_iter=-1) -> State:
    """A state at the best multiple of the difference between the classes' means."""
    if rows is None:
        whole = problem.gram.block(slice(None), slice(None))
        equations: OverColumns | OverRows = OverRows(whole)
    else:
        equations = OverColumns(rows)
    sign = problem.sign
    positive = sign > 0.0
    dual = np.where(positive, 1.0 / np.sum(positive), 1.0 / np.sum(~positive))
    norm = equations.squared_norm(equations.unknowns(sign * dual))
    dual *= 2.0 / norm if norm > 0.0 else 1.0
    unknowns = equations.unknowns(sign * dual)
    slack = 1.0 + np.maximum(sign * equations.scores(unknowns) - 1.0, 0.0)
    return State(problem, equations, tol, max_iter, unknowns, dual, slack)


def advance(state: State) -> bool:
    """Take one step; True when there is nothing more to do."""
    dual, slack, sign = state.dual, state.slack, state.problem.sign
    missing = sign * state.equations.scores(state.unknowns) - 1.0 - slack
    product = float(dual @ slack)
    norm = max(state.equations.squared_norm(state.unknowns), _TINY)
    distance = max(product / norm, float(np.abs(missing).max()))
    if distance < state.best:
        state.best, state.best_dual, state.best_slack, state.since_best = distance, dual, slack, 0
        state.best_unknowns = state.unknowns
    state.since_best += 1
    limit = _MOST_ROUNDS if state.max_iter < 0 else min(_MOST_ROUNDS, state.max_iter)
    stalled = state.since_best > (_STALLED if state.best < _NEAR else _LOST)
    if distance < _PRECISION or state.iterations >= limit or stalled:
        return True
    try:
        solve = state.equations.factorise(dual / slack)
    except linalg.LinAlgError:
        return True

    def direction(products):
        pull = -sign * (products / dual + missing)
        step = solve(state.unknowns, sign * dual, pull)
        slack_step = sign * state.equations.scores(step) + missing
        beta_step = state.equations.beta_in(step)
        if beta_step is None:
            return step, slack_step, -(products + dual * slack_step) / slack
        return step, slack_step, sign * beta_step

    _, slack_step, dual_step = direction(dual * slack)
    length = min(room(slack, slack_step), room(dual, dual_step))
    ahead = float((dual + length * dual_step) @ (slack + length * slack_step))
    target = (ahead / product) ** 3 * product / len(dual)
    step, slack_step, dual_step = direction(dual * slack + dual_step * slack_step - target)
    length = _NEARLY_ALL * min(room(slack, slack_step), room(dual, dual_step))
    state.unknowns = state.unknowns + length * step
    state.slack = slack + length * slack_step
    state.dual = dual + length * dual_step
    state.iterations += 1
    return False


def finish(state: State) -> Solution:
    """The solution next to the best point."""
    dual, slack = state.best_dual, state.best_slack
    near = np.where(dual / dual.max() > slack / max(1.0, slack.max()), dual, 0.0)
    made = state.equations.balanced(near, state.problem.sign, state.best_unknowns)
    beta, residual, violation = min(
        (_conditions(state, point) for point in (_on_its_face(state, near), near, made)),
        key=lambda found: found[-1],
    )
    found = certify(state.problem, beta, residual, state.iterations, True)
    return replace(found, converged=violation < state.tol or found.gap < _SMALL_GAP)


def _conditions(state: State, dual) -> tuple[np.ndarray, np.ndarray, float]:
    """The signed dual point, its residual, and by how much it violates the conditions."""
    beta = state.problem.sign * dual
    scores = state.equations.scores(state.equations.unknowns(beta))
    residual = state.problem.linear() - scores
    lower, upper = state.problem.bounds()
    highest = residual[beta < upper].max(initial=-np.inf)
    lowest = residual[beta > lower].min(initial=np.inf)
    return beta, residual, float(highest - lowest)


def _on_its_face(state: State, near: np.ndarray) -> np.ndarray:
    """The dual point with all digits, if its rows are not too many.

    All rows with a_i > 0 meet their margins: the change d of their beta solves
    K d + nu 1 = y - K beta, sum(beta + d) = 0 over these rows.
    """
    dual = near.copy()
    for _ in range(_FACES):
        face = np.flatnonzero(dual)
        if not 0 < len(face) <= _MOST_ON_FACE:
            break
        sign, K = state.problem.sign[face], state.equations.block(face)
        beta = sign * dual[face]
        # A little, so that rows which depend on others stay as they are.
        little = _PROXIMITY * max(float(K.diagonal().max()), _TINY)
        try:
            factor = linalg.cho_factor(K + little * np.eye(len(K)), check_finite=False)
        except linalg.LinAlgError:
            break
        along = linalg.cho_solve(factor, np.ones(len(K)), check_finite=False)
        for _ in range(_REFINEMENTS):
            beta = beta + linalg.cho_solve(factor, sign - K @ beta, check_finite=False)
            beta -= beta.sum() / along.sum() * along
        dual[face] = np.maximum(sign * beta, 0.0)
        if (dual[face] > 0.0).all():
            break
    return dual


def room(values: np.ndarray, step: np.ndarray) -> float:
    """How much of the step can be taken before a value vanishes, at most all of it."""
    falling = step < 0.0
    return min(1.0, float(np.min(-values[falling] / step[falling], initial=np.inf)))


def least_squares(matrix, right) -> np.ndarray:
    """The least solution, in units in which the diagonal is 1."""
    root = np.sqrt(np.maximum(matrix.diagonal(), _TINY))
    scaled = matrix / root[:, np.newaxis] / root
    return np.linalg.lstsq(scaled, right / root, rcond=1e-12)[0] / root
