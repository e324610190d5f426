"""Newton's method for linear machines with the squared hinge (see `linear`).

The objective is piecewise quadratic. With I the rows inside the margin, its gradient and (where
they exist) second derivatives are

    w - 2 sum_I cost_i sign_i (margin_i - sign_i <w, z_i>) z_i    and    1 + 2 sum_I cost_i z_i z_i'

Every iteration solves the Newton equations and goes to the exact minimum along the direction found.
Once I no longer changes, one step ends at the optimum. With up to `DIRECT_FEATURES` features the
matrix of second derivatives is formed, corrected for the rows that enter or leave I, and
factorised; with more the equations are solved by conjugate gradients, which need only products
with the rows.

Stops when the gradient is smaller than the one at zero by liblinear's factor: ``tol`` times the
share of the rarer sign. The slack of the rows is a dual point; the best multiple of it gives the
bound.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dposv

from widemargin._base.callbacks import run_in_slices
from widemargin._base.jit import compiled
from widemargin._base.threads import single_threaded_blas
from widemargin.solvers.hinge.linear_problem import LinearProblem, LinearSolution, certify
from widemargin.solvers.states import Resumable

DIRECT_FEATURES = 1000

_POLISHED_WORK = 5_000_000
_POLISHED_TOL = 1e-13
_GRADIENT_STEPS = 1000
_LINE_STEPS = 50
_LINE_TOL = 1e-4
_ENOUGH = 1e-6


def newton_linear(
    problem: LinearProblem,
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
    weights: np.ndarray | None = None,
    report: Callable[["State"], bool] | None = None,
) -> LinearSolution:
    """Solve the problem from start to end.

    Parameters
    ----------
    problem : LinearProblem
        With the squared hinge.
    tol : float, default=1e-4
        Of the norm of the gradient, relative to that at zero and the share of the rarer sign.
    max_iter : int, default=1000
        Most Newton steps.
    weights : ndarray of shape (d + 1,), optional
        Point to start from.
    report : callable, optional
        Called with the state after every step; True stops the solver.

    Returns
    -------
    LinearSolution
    """
    state = start(problem, tol=tol, max_iter=max_iter, weights=weights)
    run_in_slices(advance, state, report)
    return solution_at(state)


@dataclass
class State(Resumable):
    """Where the solver stands."""

    kept: ClassVar = (
        "weights", "iterations", "finished", "converged", "inside", "curvature", "scores",
    )  # fmt: skip

    problem: LinearProblem
    max_iter: int
    weights: np.ndarray
    iterations: int = 0
    finished: bool = False
    converged: bool = False
    inside: np.ndarray = field(init=False)
    curvature: np.ndarray = field(init=False)
    at_zero: float = field(init=False)
    target: float = field(init=False)
    scores: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        n, d = self.problem.X.shape
        self.inside = np.zeros(n, dtype=bool)
        self.curvature = np.eye(d + 1) if d <= DIRECT_FEATURES else np.empty((0, 0))
        self.scores = self.problem.scores(self.weights)


def start(problem, *, tol=1e-4, max_iter=1000, weights=None) -> State:
    """A state at ``weights``, or at zero."""
    d = problem.X.shape[1]
    weights = np.zeros(d + 1) if weights is None else np.array(weights, dtype=np.float64)
    state = State(problem, max_iter, weights)
    if d <= DIRECT_FEATURES and problem.entries * d <= _POLISHED_WORK:
        # Near the optimum a step gains more digits than it costs time here.
        tol = min(tol, _POLISHED_TOL)
    positive = np.count_nonzero(problem.sign > 0)
    share = max(min(positive, problem.size - positive), 1) / problem.size
    state.at_zero = _norm(problem.combine(2.0 * problem.cost * problem.sign * problem.margin))
    state.target = max(tol * share, 4.0 * np.finfo(float).eps) * state.at_zero
    return state


def advance(state: State) -> bool:
    """Take one Newton step; True when there is nothing more to do."""
    if state.finished:
        return True
    problem = state.problem
    slack = problem.slack(state.scores)
    inside = slack > 0.0
    pull = np.where(inside, 2.0 * problem.cost * slack, 0.0)
    gradient = state.weights - problem.combine(problem.sign * pull)
    if _norm(gradient) <= state.target:
        state.finished = state.converged = True
    elif state.iterations >= state.max_iter:
        state.finished = True
    else:
        solve = _direct_step if problem.X.shape[1] <= DIRECT_FEATURES else _iterative_step
        step = solve(state, inside, gradient)
        change = problem.scores(step)
        length = _line_search(problem, state.weights, state.scores, step, change)
        state.weights = state.weights + length * step
        state.scores = state.scores + length * change
        state.iterations += 1
        if length == 0.0:
            # Rounding errors hide the gradient: the gap tells whether this is the optimum.
            state.finished, state.converged = True, solution_at(state).gap <= _ENOUGH
    return state.finished


def solution_at(state: State) -> LinearSolution:
    """The solution as far as it is known."""
    problem, weights = state.problem, state.weights
    dual = 2.0 * problem.cost * np.maximum(0.0, problem.slack(problem.scores(weights)))
    combined = problem.combine(problem.sign * dual)
    bend = np.sum(combined * combined) + np.sum(problem.softness() * dual * dual)
    scale = np.sum(problem.margin * dual) / bend if bend > 0.0 else 1.0
    numbers = scale * dual, scale * combined, state.iterations, state.converged
    return certify(problem, weights, *numbers)


def _direct_step(state: State, inside: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The Newton step by factorisation, with the second derivatives of the last step corrected."""
    problem = state.problem
    changed = inside != state.inside
    if 2 * np.count_nonzero(changed) > np.count_nonzero(inside):
        state.curvature = np.eye(len(gradient))
        changed = inside
    rows = np.flatnonzero(changed)
    scale = np.where(inside[rows], 2.0, -2.0) * problem.cost[rows]
    _add_outer_products(state.curvature, problem, rows, scale)
    state.inside = inside
    with single_threaded_blas():
        _, step, failed = dposv(state.curvature, -gradient)
    # Rounding may hide that the matrix is positive definite.
    return _iterative_step(state, inside, gradient) if failed else step


def _add_outer_products(curvature, problem, rows, scale) -> None:
    """curvature += sum_i scale_i z_i z_i' over rows."""
    X, bias = problem.X[rows], problem.bias
    if sp.issparse(X):
        _add_sparse_products(curvature, X.data, X.indices, X.indptr, scale)
        sums = X.T @ scale
    else:
        with single_threaded_blas():
            curvature[:-1, :-1] += (X * scale[:, np.newaxis]).T @ X
            sums = X.T @ scale
    curvature[-1, :-1] += bias * sums
    curvature[:-1, -1] += bias * sums
    curvature[-1, -1] += bias**2 * scale.sum()


def _iterative_step(state: State, inside: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The Newton step by conjugate gradients scaled by the diagonal, better near the optimum."""
    problem = state.problem
    part = problem.part(np.flatnonzero(inside))
    double = 2.0 * part.cost
    X = part.X.multiply(part.X).tocsr() if sp.issparse(part.X) else part.X * part.X
    squares = LinearProblem(X, part.sign, part.cost, True, part.bias**2)
    diagonal = 1.0 + squares.combine(double)
    step, residual = np.zeros_like(gradient), -gradient
    scaled = residual / diagonal
    direction, product = scaled, np.sum(residual * scaled)
    enough = product * min(0.01, _norm(gradient) / state.at_zero)
    for _ in range(_GRADIENT_STEPS):
        image = direction + part.combine(double * part.scores(direction))
        length = product / np.sum(direction * image)
        step = step + length * direction
        residual = residual - length * image
        scaled = residual / diagonal
        product, last = np.sum(residual * scaled), product
        if product <= enough:
            break
        direction = scaled + product / last * direction
    return step


def _line_search(problem, weights, scores, step, change) -> float:
    """Where along the step the objective is least: where its derivative, which rises, is zero."""
    slope, bend = float(np.sum(weights * step)), float(np.sum(step * step))
    left = problem.sign * change
    slack = problem.slack(scores)
    return _root(slope, bend, slack, left, 2.0 * problem.cost * left)


def _norm(vector: np.ndarray) -> float:
    """The length, summed in an order that does not depend on the threads of BLAS."""
    return float(np.sqrt(np.sum(vector * vector)))


@compiled
def _root(slope, bend, slack, left, double):
    """Where slope + length * bend - sum_i double_i * max(0, slack_i - length * left_i) is zero."""
    first, _ = _derivatives(0.0, slope, bend, slack, left, double)
    if not first < 0.0:
        return 0.0
    enough = _LINE_TOL * -first
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(_LINE_STEPS):
        first, second = _derivatives(length, slope, bend, slack, left, double)
        if abs(first) <= enough:
            break
        if first < 0.0:
            low = length
        else:
            high = length
        length -= first / second
        if not low < length < high:
            length = 0.5 * (low + high) if high < np.inf else 2.0 * low
    return length


@compiled
def _derivatives(length, slope, bend, slack, left, double):
    """The value at ``length`` and the slope there, summed in blocks: it may be zero by a hair."""
    first, second = slope + length * bend, bend
    for start in range(0, len(slack), 128):
        value = change = 0.0
        for i in range(start, min(start + 128, len(slack))):
            rest = slack[i] - length * left[i]
            if rest > 0.0:
                value += double[i] * rest
                change += double[i] * left[i]
        first -= value
        second += change
    return first, second


@compiled
def _add_sparse_products(curvature, data, indices, indptr, scale):
    for i in range(scale.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            value = scale[i] * data[k]
            row = curvature[indices[k]]
            for m in range(indptr[i], indptr[i + 1]):
                row[indices[m]] += value * data[m]
