"""Newton's method for linear classifiers with a differentiable loss (see `linear_problem`).

The objective is piecewise quadratic. With I the samples whose slack lies on the quadratic part of
the loss, its gradient and (where they exist) second derivatives are

    w - sum_i cost_i loss'(margin_i - sign_i <w, z_i>) sign_i z_i
    1 + sum_I cost_i curvature z_i z_i'

Every iteration solves the Newton equations and moves to the exact minimum along the direction
found. Once I no longer changes, one step ends at the optimum. With up to ``direct_features``
features the matrix of second derivatives is formed, updated for the samples that enter or leave I,
and factorized; with more the equations are solved by conjugate gradients, which need only products
with X.

Stops when the norm of the gradient, relative to that at zero, is at most liblinear's tolerance:
``tol`` times the share of the rarer sign. The derivatives of the losses are a dual point; the best
multiple of it gives the bound.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dposv

from widemargin._base.callbacks import run_in_slices
from widemargin._base.checkpoint import TaskCheckpoint
from widemargin._base.jit import compiled
from widemargin._base.options import primal_newton_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.solvers.hinge import soft_margin
from widemargin.solvers.hinge.linear_problem import LinearProblem, certify, is_rounded
from widemargin.solvers.solution import Report, Solution, relative_gap
from widemargin.solvers.states import Resumable
from widemargin.solvers.stopping import rounding_floor

# Compiled code reads a constant, but calls no function that is not compiled.
_ROUNDING = rounding_floor(1.0)


def solve_primal(
    problem: LinearProblem,
    *,
    report: Report = None,
    checkpoint: TaskCheckpoint | None = None,
    **parameters: Any,
) -> Solution:
    """Solve the problem by Newton's method.

    Parameters
    ----------
    problem : LinearProblem
        With a differentiable loss.
    report : callable, optional
        Called with the state after every step; True stops the solver.
    checkpoint : TaskCheckpoint, optional
        Saves the state now and then, and resumes it.
    **parameters
        Those of `State`.

    Returns
    -------
    Solution
    """
    solution = _solve_small(problem, **parameters) if report is None else None
    if solution is None:
        with single_threaded_blas():  # once for all products
            state = State(problem, **parameters)
            run_in_slices(advance, state, report, checkpoint)
            solution = finish(state, report)
    return solution


def _solve_small(
    problem: LinearProblem, tol: float = 1e-4, max_iter: int = 1000, weights: Any = None
) -> Solution | None:
    """Take all steps in one compiled call; return None if they do not solve the problem."""
    X, loss, (n, d) = problem.X, problem.loss, problem.X.shape
    if sp.issparse(X) or X.size * d > options.small_work or not loss.differentiable:
        return None
    weights = np.zeros(d + 1) if weights is None else np.array(weights, float)
    margin, dual = np.broadcast_to(problem.margin, n), np.empty(n)
    numbers = problem.bias, loss.curvature, loss.slope, min(tol, options.exact_tol)
    limits = max_iter, options.offset, options.line_steps, options.line_tol
    arrays = X, problem.sign, problem.cost, margin, weights, dual
    steps, objective, bound = _newton(*arrays, *numbers, *limits)
    gap = relative_gap(objective, max(bound, 0.0))
    if steps < 0 or not gap <= options.accepted_gap or is_rounded(problem, weights, dual, weights):
        return None
    intercept = problem.bias * float(weights[-1])
    return Solution(dual, intercept, objective, bound, gap, steps, True, weights)


@dataclass
class State(Resumable):
    """State of the solver.

    Parameters
    ----------
    problem : LinearProblem
        With a differentiable loss.
    tol : float, default=1e-4
        Tolerance on the norm of the gradient, relative to that at zero and to the share of the
        rarer sign.
    max_iter : int, default=1000
        Maximum number of Newton steps.
    weights : ndarray of shape (d + 1,), optional
        Weights to start from, then the current ones; 0 if not given.
    """

    problem: LinearProblem
    tol: float = 1e-4
    max_iter: int = 1000
    weights: Any = None
    iterations: int = 0
    finished: bool = False
    converged: bool = False
    stalled: bool = False
    objective: float = np.inf
    unchanged: int = 0
    """Steps that have not changed the objective."""

    saved: ClassVar[tuple[str, ...]] = (
        *("weights", "iterations", "curved", "matrix", "scores", "objective", "unchanged"),
    )

    def __post_init__(self) -> None:
        problem, loss, (n, d) = self.problem, self.problem.loss, self.problem.X.shape
        if not loss.differentiable:
            raise ValueError(
                f"loss must be differentiable for Newton's method, got {type(loss).__name__}, "
                "whose curvature is infinite. Use dual coordinate descent."
            )
        self.weights = np.zeros(d + 1) if self.weights is None else np.array(self.weights, float)
        self.direct = d <= options.direct_features
        if self.direct and problem.X.size * d <= options.exact_work:
            # Near the optimum a step gains more digits than it costs time here.
            self.tol = min(self.tol, options.exact_tol)
        positive = int(np.count_nonzero(problem.sign > 0))
        share = max(min(positive, n - positive), 1) / n
        # Norm of the gradient at zero, and the one to reach.
        pull = problem.cost * loss.derivative(problem.margin)
        self.at_zero = _norm(problem.combine(problem.sign * pull))
        self.target = max(self.tol * share, rounding_floor(1.0)) * self.at_zero
        self.offset = not sp.issparse(problem.X) and _has_offset(problem.X)
        # Samples in I, and the second derivatives with these.
        self.curved = np.zeros(n, dtype=bool)
        self.matrix = np.eye(d + 1) if self.direct else np.empty((0, 0))
        self.scores = problem.scores(self.weights)


def advance(state: State) -> bool:
    """Take one Newton step; return whether the solver has finished."""
    if state.finished:
        return True
    problem = state.problem
    slack = problem.slack(state.scores)
    pull = problem.cost * problem.loss.derivative(slack)
    gradient = state.weights - problem.combine(problem.sign * pull)
    if _norm(gradient) <= state.target and _gap_is_small(state):
        state.finished = state.converged = True
    elif state.iterations >= state.max_iter:
        state.finished = True
    else:
        solve = _direct_step if state.direct else _iterative_step
        step = solve(state, problem.loss.is_curved(slack), gradient)
        change = problem.scores(step)
        length = _line_search(state, slack, step, change)
        state.weights = state.weights + length * step
        state.scores = state.scores + length * change
        state.iterations += 1
        if length == 0.0 or _has_stalled(state):
            # Rounding errors hide the gradient: the gap decides whether this is the optimum.
            state.finished = state.stalled = True
            state.converged = solution_at(state).gap <= options.stalled_gap
    return state.finished


def finish(state: State, report: Report = None) -> Solution:
    """Return the solution, by the interior-point method where rounding has kept it from tol."""
    solution = solution_at(state)
    strict = state.stalled or (state.converged and state.tol <= options.accepted_gap)
    if strict and solution.gap > options.accepted_gap:
        return soft_margin.end_linear(state, solution, report)
    return solution


def _has_stalled(state: State) -> bool:
    """Return whether several steps have not changed the objective."""
    problem, weights = state.problem, state.weights
    loss = problem.loss.value(problem.slack(state.scores))
    objective = 0.5 * float(np.sum(weights * weights)) + float(np.sum(problem.cost * loss))
    changed = objective < (1.0 - options.stalled_change) * state.objective
    state.unchanged = 0 if changed else state.unchanged + 1
    state.objective = min(objective, state.objective)
    return state.unchanged >= options.stalled_steps


def _gap_is_small(state: State) -> bool:
    """Return whether a point that meets tol is the optimum.

    With features of a large offset, the gradient may be large beside a small share of that at zero.
    """
    strict = state.direct and state.tol <= options.accepted_gap
    return not strict or solution_at(state).gap <= options.accepted_gap


def solution_at(state: State) -> Solution:
    """Return the solution at the state."""
    problem, weights = state.problem, state.weights
    slack = problem.slack(problem.scores(weights))
    dual = problem.sign * (problem.cost * problem.loss.derivative(slack))
    combined = problem.combine(dual)
    if state.offset and dual.any():
        # The mean of the features multiplies rounding errors of the sum of the dual variables.
        mean = problem.combine(np.where(dual != 0.0, 1.0, 0.0))
        change = np.sum(mean * (weights - combined)) / np.sum(mean * mean)
        dual = np.where(problem.sign * (dual + change) > 0.0, dual + change, 0.0) * (dual != 0.0)
        combined = problem.combine(dual)
    bend = np.sum(combined * combined) + np.sum(problem.softness() * dual * dual)
    scale = np.sum(problem.sign * problem.margin * dual) / bend if bend > 0.0 else 1.0
    if problem.loss.slope < np.inf:
        scale = min(scale, 1.0)  # the dual point has to stay below its ceiling
    return certify(state, weights, scale * dual, scale * combined)


def _direct_step(state: State, curved: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Compute the Newton step by factorization, updating the matrix of the last step."""
    problem = state.problem
    if state.offset and curved.any():
        return _centered_step(state, curved, gradient)
    changed = curved != state.curved
    if 2 * np.count_nonzero(changed) > np.count_nonzero(curved):
        state.matrix = np.eye(len(gradient))
        changed = curved
    rows = np.flatnonzero(changed)
    curvature = problem.loss.curvature
    scale = np.where(curved[rows], curvature, -curvature) * problem.cost[rows]
    _add_outer_products(state, rows, scale)
    state.curved = curved
    with single_threaded_blas():
        _, step, failed = dposv(state.matrix, -gradient)
    # Rounding may hide that the matrix is positive definite.
    return _iterative_step(state, curved, gradient) if failed else step


def _has_offset(X: np.ndarray) -> bool:
    """Return whether products of features lose digits to a common offset."""
    mean, square = X.mean(axis=0), float(np.mean(X[:: max(1, len(X) // 1000)] ** 2)) * X.shape[1]
    return float(np.sum(mean * mean)) > options.offset * square


def _centered_step(state: State, curved: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Compute the Newton step with second derivatives around the mean m of the samples in I.

    They are B + s m m', where B = 1 + sum_I c_i (z_i - m)(z_i - m)' has no digits of the offset.
    """
    reduced = state.problem.subset(np.flatnonzero(curved))
    bend = reduced.loss.curvature * reduced.cost
    total = float(bend.sum())
    mean = reduced.combine(bend) / total
    with single_threaded_blas():
        rows = np.hstack([reduced.X, np.full((reduced.size, 1), reduced.bias)]) - mean
        matrix = (rows * bend[:, np.newaxis]).T @ rows + np.eye(len(mean))
        _, solutions, failed = dposv(matrix, np.column_stack([-gradient, mean]))
    if failed:
        return _iterative_step(state, curved, gradient)
    step, along = solutions.T
    return step - along * (total * np.sum(mean * step) / (1.0 + total * np.sum(mean * along)))


def _add_outer_products(state: State, rows: np.ndarray, scale: np.ndarray) -> None:
    """Add sum_i scale_i z_i z_i' over ``rows`` to the matrix."""
    matrix, X, bias = state.matrix, state.problem.X[rows], state.problem.bias
    with single_threaded_blas():
        if sp.issparse(X):
            _add_sparse_products(matrix, X.data, X.indices, X.indptr, scale)
        else:
            matrix[:-1, :-1] += (X * scale[:, np.newaxis]).T @ X
        sums = X.T @ scale
    matrix[-1, :-1] += bias * sums
    matrix[:-1, -1] += bias * sums
    matrix[-1, -1] += bias**2 * scale.sum()


def _iterative_step(state: State, curved: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Compute the Newton step by preconditioned conjugate gradients, tighter near the optimum."""
    reduced = state.problem.subset(np.flatnonzero(curved))
    bend = reduced.loss.curvature * reduced.cost
    X = reduced.X.multiply(reduced.X).tocsr() if sp.issparse(reduced.X) else reduced.X * reduced.X
    squares = LinearProblem(X, reduced.sign, reduced.cost, reduced.loss, reduced.bias**2)
    diagonal = 1.0 + squares.combine(bend)
    step, residual = np.zeros_like(gradient), -gradient
    scaled = residual / diagonal
    direction, product = scaled, np.sum(residual * scaled)
    enough = product * min(0.01, _norm(gradient) / state.at_zero)
    for _ in range(options.gradient_steps):
        image = direction + reduced.combine(bend * reduced.scores(direction))
        length = product / np.sum(direction * image)
        step = step + length * direction
        residual = residual - length * image
        scaled = residual / diagonal
        product, last = np.sum(residual * scaled), product
        if product <= enough:
            break
        direction = scaled + product / last * direction
    return step


def _line_search(state: State, slack: np.ndarray, step: np.ndarray, change: np.ndarray) -> float:
    """Return the length of the step at which the objective is least: its derivative is 0 there."""
    problem = state.problem
    slope, bend = float(np.sum(state.weights * step)), float(np.sum(step * step))
    left = problem.sign * change
    factor = problem.loss.curvature * problem.cost * left
    limits = options.line_steps, options.line_tol
    return _root(slope, bend, slack, left, factor, float(problem.loss.width), *limits)


def _norm(vector: np.ndarray) -> float:
    """Return the norm, summed in an order that does not depend on the threads of BLAS."""
    return float(np.sqrt(np.sum(vector * vector)))


@compiled(work=lambda X, *rest: 5.0 * X.size * X.shape[1])
def _newton(
    X, sign, cost, margin, weights, dual, bias, curvature, slope, tol, most, offset, line_steps,
    line_tol,
):  # fmt: skip
    """Take Newton steps in place until the norm of the gradient is small.

    Returns their number, negative if they did not succeed, the objective and the bound; writes the
    dual point of the bound.
    """
    n, d = X.shape
    slack, factor, left = np.empty(n), np.empty(n), np.empty(n)
    gradient, step, matrix = np.empty(d + 1), np.empty(d + 1), np.empty((d + 1, d + 1))
    positive, target = 0, 0.0
    for i in range(n):
        positive += sign[i] > 0.0
        dual[i] = sign[i] * cost[i] * min(max(0.0, curvature * margin[i]), slope)
    _combine(X, bias, dual, gradient)
    for k in range(d + 1):
        target += gradient[k] * gradient[k]
    share = max(min(positive, n - positive), 1) / n
    target = max(tol * share, _ROUNDING) * math.sqrt(target)
    if _offset_share(X) > offset:
        return -1, 0.0, 0.0
    for steps in range(most + 1):
        _scores(X, bias, weights, left)
        for i in range(n):
            slack[i] = margin[i] - sign[i] * left[i]
            dual[i] = sign[i] * cost[i] * min(max(0.0, curvature * slack[i]), slope)
        _combine(X, bias, dual, gradient)
        norm = 0.0
        for k in range(d + 1):
            gradient[k] = weights[k] - gradient[k]
            step[k] = -gradient[k]
            norm += gradient[k] * gradient[k]
        if math.sqrt(norm) <= target:
            return steps, *_bound(
                X, sign, cost, margin, weights, slack, dual, bias, curvature, slope
            )
        matrix[:] = 0.0
        for i in range(n):
            if slack[i] > 0.0 and curvature * slack[i] < slope:
                row, bend = X[i], curvature * cost[i]
                for k in range(d):
                    for m in range(k + 1):
                        matrix[k, m] += bend * row[k] * row[m]
                    matrix[d, k] += bend * bias * row[k]
                matrix[d, d] += bend * bias * bias
        for k in range(d + 1):
            matrix[k, k] += 1.0
        if not _cholesky_solve(matrix, step):
            break
        _scores(X, bias, step, left)
        first = second = 0.0
        for k in range(d + 1):
            first += weights[k] * step[k]
            second += step[k] * step[k]
        for i in range(n):
            left[i] *= sign[i]
            factor[i] = curvature * cost[i] * left[i]
        width = slope / curvature
        length = _root(first, second, slack, left, factor, width, line_steps, line_tol)
        if length == 0.0:
            break
        for k in range(d + 1):
            weights[k] += length * step[k]
    return -1, 0.0, 0.0


@compiled
def _offset_share(X):
    """Return the share of the mean in the mean square of the features, see `_has_offset`."""
    means = square = 0.0
    for k in range(X.shape[1]):
        total = 0.0
        for i in range(X.shape[0]):
            total += X[i, k]
            square += X[i, k] * X[i, k]
        means += total * total / X.shape[0]
    return means / square if square > 0.0 else 0.0


@compiled
def _bound(X, sign, cost, margin, weights, slack, dual, bias, curvature, slope):
    """Return the objective, and the bound by the best multiple of the dual point, in place."""
    combined = np.empty(weights.shape[0])
    _combine(X, bias, dual, combined)
    norm = bend = 0.0
    for k in range(weights.shape[0]):
        norm += weights[k] * weights[k]
        bend += combined[k] * combined[k]
    objective, linear = 0.5 * norm, 0.0
    for i in range(sign.shape[0]):
        positive = max(0.0, slack[i])
        curved = min(positive, slope / curvature)
        loss = 0.5 * curvature * curved * curved
        if positive > curved:
            loss += slope * (positive - curved)
        objective += cost[i] * loss
        if dual[i] != 0.0:
            bend += dual[i] * dual[i] / (curvature * cost[i])
            linear += sign[i] * margin[i] * dual[i]
    scale = linear / bend if bend > 0.0 else 1.0
    if slope < np.inf:
        scale = min(scale, 1.0)  # the dual point has to stay below its ceiling
    for i in range(sign.shape[0]):
        dual[i] *= scale
    return objective, scale * linear - 0.5 * scale * scale * bend


@compiled
def _scores(X, bias, weights, out):
    """Compute <w, z_i> of all samples."""
    for i in range(X.shape[0]):
        total = bias * weights[X.shape[1]]
        for k in range(X.shape[1]):
            total += X[i, k] * weights[k]
        out[i] = total


@compiled
def _combine(X, bias, coefficients, out):
    """Compute sum_i coefficients_i z_i."""
    out[:] = 0.0
    d = X.shape[1]
    for i in range(X.shape[0]):
        if coefficients[i] != 0.0:
            for k in range(d):
                out[k] += coefficients[i] * X[i, k]
            out[d] += coefficients[i] * bias


@compiled
def _cholesky_solve(matrix, right):
    """Solve equations by a Cholesky factorization of the lower triangle; return whether it is."""
    n = right.shape[0]
    for a in range(n):
        for b in range(a + 1):
            total = matrix[a, b]
            for k in range(b):
                total -= matrix[a, k] * matrix[b, k]
            if a == b:
                if not total > 0.0:
                    return False
                matrix[a, a] = math.sqrt(total)
            else:
                matrix[a, b] = total / matrix[b, b]
        total = right[a]
        for k in range(a):
            total -= matrix[a, k] * right[k]
        right[a] = total / matrix[a, a]
    for a in range(n - 1, -1, -1):
        right[a] /= matrix[a, a]
        for b in range(a):
            right[b] -= matrix[a, b] * right[a]
    return True


@compiled
def _root(slope, bend, slack, left, factor, width, line_steps, line_tol):
    """Return the root of slope + length * bend - sum_i factor_i * clip(rest_i, 0, width).

    rest_i = slack_i - length * left_i; the function increases with the length.
    """
    first, _ = _derivatives(0.0, slope, bend, slack, left, factor, width)
    if not first < 0.0:
        return 0.0
    enough = line_tol * -first
    low, high, length = 0.0, np.inf, 1.0
    for _ in range(line_steps):
        first, second = _derivatives(length, slope, bend, slack, left, factor, width)
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
def _derivatives(length, slope, bend, slack, left, factor, width):
    """Return the function of `_root` and its derivative, summed in blocks for accuracy near 0."""
    first, second = slope + length * bend, bend
    for start in range(0, len(slack), 128):
        value = change = 0.0
        for i in range(start, min(start + 128, len(slack))):
            rest = slack[i] - length * left[i]
            if rest > 0.0:
                if rest < width:
                    value += factor[i] * rest
                    change += factor[i] * left[i]
                else:
                    value += factor[i] * width
        first -= value
        second += change
    return first, second


@compiled
def _add_sparse_products(matrix, data, indices, indptr, scale):
    for i in range(scale.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            value = scale[i] * data[k]
            row = matrix[indices[k]]
            for m in range(indptr[i], indptr[i + 1]):
                row[indices[m]] += value * data[m]
