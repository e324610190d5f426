"""Small hinge problems (see `problem`), with little Python code around the compiled steps.

One-vs-one, folds and values of C make many problems of a few hundred samples, each of which takes
less time than the checks, reports and changes of method that `smo` has for large ones. Most of them
need nothing but its first steps, which are all that there is here: pair updates to the tolerance,
Newton steps to machine precision, the certificate. `solve_path` does so for a problem with
increasing costs in one compiled pass.
"""

from typing import Any

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.numeric import EPSILON, TINY
from widemargin._base.options import newton_options, stopping_options
from widemargin._base.options import smo_options as options
from widemargin.kernels import Gram
from widemargin.kernels.dense import dense_matrix
from widemargin.solvers.free_set_newton import free_set_newton, newton_update
from widemargin.solvers.hinge.pairs import descend_with_intercept
from widemargin.solvers.hinge.problem import HingeProblem, certificate, certify
from widemargin.solvers.solution import Solution, relative_gap
from widemargin.solvers.stopping import rounding_floor

_MOST_FREE = newton_options.most_free
_ROUNDS = newton_options.rounds
_PRECISION = newton_options.precision
_ROUNDING = stopping_options.rounding * EPSILON


def solve_path(
    gram: Gram, sign: np.ndarray, margin: np.ndarray, costs: np.ndarray, tol: float
) -> list[Solution]:
    """Solve a problem with an intercept for increasing costs, each from the solution before.

    Parameters
    ----------
    gram : Gram
        A matrix for which `SmallSolver.applies` is true.
    sign, margin : ndarray of shape (n,)
    costs : ndarray of shape (n_steps, n)
        In every step at least those of the step before.
    tol : float

    Returns
    -------
    solutions : list of Solution
        Those of the first steps, up to one that takes more than `SmallSolver` does for it. The gap
        leaves out rounding errors.
    """
    dense, diagonal = dense_matrix(gram), gram.diagonal()
    largest = float(np.abs(diagonal).max(initial=0.0))
    size, shape = gram.size, costs.shape
    period = options.newton_period * size
    first = options.shrink_steps if size >= options.shrink_size else period
    floor = max(options.flat_curvature * largest, TINY)
    duals, numbers = np.empty(shape), np.empty((shape[0], 3))
    updates = np.zeros(shape[0], dtype=np.int64)
    done = _solve_path(
        *dense.arrays, diagonal, sign, margin, costs, tol, first, period, floor, largest,
        options.rounded_gap, duals, numbers, updates,
    )  # fmt: skip
    solutions = []
    for step in range(done):
        intercept, objective, bound = numbers[step].tolist()
        point = duals[step], intercept, objective, bound, relative_gap(objective, bound)
        solutions.append(Solution(*point, int(updates[step]), converged=True))
    return solutions


class SmallSolver:
    """Solver of problems with an intercept over the same samples, for increasing costs.

    Parameters
    ----------
    gram : Gram
        A matrix for which `applies` is true. The problems to solve differ in their costs only;
        each starts from the solution of the one before.

    Attributes
    ----------
    dual : ndarray of shape (n,)
        Where the last call of `solve` ended.
    updates : int
        Number of its pair updates.
    """

    def __init__(self, gram: Gram):
        self.dense, self.diagonal = dense_matrix(gram), gram.diagonal()
        self.largest = float(np.abs(self.diagonal).max(initial=0.0))
        self.dual = np.zeros(gram.size)
        self.residual: Any = None
        self.updates = 0

    @staticmethod
    def applies(gram: Gram) -> bool:
        """Return whether problems over these samples are small."""
        return gram.positive_semidefinite and gram.size <= options.dense_size

    def solve(self, problem: HingeProblem, tol: float) -> Solution | None:
        """Return the solution, or None if it takes more than these steps."""
        if self.residual is None:
            self.residual = problem.linear().copy()
        self.updates, size = 0, problem.size
        # All bounds together limit the rounding errors, which are then below tol everywhere.
        if not rounding_floor(float(problem.cost.sum()) * self.largest) <= tol:  # nan: inf * 0
            return None
        period = options.newton_period * size
        steps = options.shrink_steps if size >= options.shrink_size else period
        if not self._descend(problem, tol, steps):
            return None
        self._refine(problem, tol, period)
        point = self.dual.copy(), self.residual, self.updates
        solution = certify(problem, *point, converged=True)
        return solution if solution.gap <= options.rounded_gap else None

    def _refine(self, problem: HingeProblem, tol: float, period: int) -> None:
        """Improve the solution to machine precision, as `smo` does."""
        lower, upper = problem.bounds()
        if problem.size > newton_options.most_free:
            free = np.count_nonzero((lower < self.dual) & (self.dual < upper))
            if free > newton_options.most_free:
                return
        # Rows of nonzero dual variables are filled: pair updates have used them.
        arrays = self.dense.matrix, problem.linear(), lower, upper, self.dual, self.residual
        for round_ in range(newton_options.rounds):
            if round_:
                rounding = rounding_floor(float(np.abs(self.dual).sum()) * self.largest)
                if not self._descend(problem, max(0.1**round_ * tol, rounding), period):
                    return
            if free_set_newton(*arrays, intercept=True) <= newton_options.precision:
                return

    def _descend(self, problem: HingeProblem, tol: float, steps: int) -> bool:
        """Update pairs until none violates by ``tol``; return whether ``steps`` sufficed."""
        floor = max(options.flat_curvature * self.largest, TINY)
        point = *problem.bounds(), self.dual, self.residual
        done = descend_with_intercept(*self.dense.arrays, self.diagonal, *point, tol, steps, floor)
        self.updates += done
        return done < steps


def _path_work(matrix, filled, source, samples, gamma, diagonal, sign, margin, costs, *rest):
    """Return the microseconds of a path in vector operations, with one update per sample."""
    steps, n = costs.shape
    return steps * n * (20.0 + 0.01 * n)


@compiled(work=_path_work)
def _solve_path(
    matrix, filled, source, samples, gamma, diagonal, sign, margin, costs, tol, first, period,
    floor, largest, rounded_gap, duals, numbers, updates,
):  # fmt: skip
    """Write the solutions for increasing costs; return for how many of them.

    A row of ``numbers`` has the intercept, the objective and the dual objective.
    """
    n = sign.shape[0]
    linear, dual = np.empty(n), np.zeros(n)
    lower, upper = np.zeros(n), np.zeros(n)
    for k in range(n):
        linear[k] = sign[k] * margin[k]
    residual = linear.copy()
    unbounded = False
    for step in range(costs.shape[0]):
        if unbounded:
            # A solution that no cost bounds is that of all larger costs.
            duals[step] = dual
            numbers[step] = numbers[step - 1]
            continue
        cost, total = costs[step], 0.0
        for k in range(n):
            total += cost[k]
        # All bounds together limit the rounding errors, which are then below tol everywhere.
        if not _ROUNDING * total * largest <= tol:
            return step
        if step > 0:
            scale_up(linear, costs[step - 1], cost, dual, residual)
        for k in range(n):
            if sign[k] > 0.0:
                upper[k] = cost[k]
            else:
                lower[k] = -cost[k]
        done = descend_with_intercept(
            matrix, filled, source, samples, gamma, diagonal, lower, upper, dual, residual, tol,
            first, floor,
        )  # fmt: skip
        updates[step] = done
        if done == first:
            return step
        updates[step] += _refine_dual(
            matrix, filled, source, samples, gamma, diagonal, linear, lower, upper, dual, residual,
            tol, period, floor, largest,
        )  # fmt: skip
        intercept, objective, bound = certificate(
            sign, margin, lower, upper, dual, residual, 0.0, True
        )
        if not objective - max(bound, 0.0) <= rounded_gap * objective:
            return step
        duals[step] = dual
        numbers[step, 0], numbers[step, 1], numbers[step, 2] = intercept, objective, bound
        unbounded = True
        for k in range(n):
            unbounded = unbounded and abs(dual[k]) < cost[k]
    return costs.shape[0]


@compiled
def _refine_dual(
    matrix, filled, source, samples, gamma, diagonal, linear, lower, upper, dual, residual, tol,
    period, floor, largest,
):  # fmt: skip
    """Improve a solution to machine precision; return the number of pair updates."""
    n, free, updates, factor = dual.shape[0], 0, 0, 1.0
    for k in range(n):
        free += lower[k] < dual[k] < upper[k]
    for round_ in range(_ROUNDS if free <= _MOST_FREE else 0):
        if round_ > 0:
            factor *= 0.1
            size = 0.0
            for k in range(n):
                size += abs(dual[k])
            # Variables at their bounds violate after the Newton steps: tighten the tolerance.
            done = descend_with_intercept(
                matrix, filled, source, samples, gamma, diagonal, lower, upper, dual, residual,
                max(factor * tol, _ROUNDING * size * largest), period, floor,
            )  # fmt: skip
            updates += done
            if done == period:
                break
        violation = newton_update(matrix, linear, lower, upper, dual, residual, True, _MOST_FREE)
        if violation <= _PRECISION:
            break
    return updates


@compiled
def scale_up(linear, before, cost, dual, residual):
    """Multiply a solution for the costs ``before`` by what is best within the bounds of ``cost``.

    Variables at a bound that grows stay there if all bounds grow as much as the multiple does.
    """
    n = dual.shape[0]
    gain, norm, ratio = 0.0, 0.0, np.inf
    for k in range(n):
        gain += dual[k] * linear[k]
        norm += dual[k] * (linear[k] - residual[k])
        if before[k] > 0.0:
            ratio = min(ratio, cost[k] / before[k])
    if not norm > 0.0 or not 1.0 < ratio < np.inf or not gain > norm:
        return
    scale = min(ratio, gain / norm)
    for k in range(n):
        residual[k] = linear[k] - scale * (linear[k] - residual[k])
        if dual[k] != 0.0:
            at_bound = scale == ratio and abs(dual[k]) == before[k]
            dual[k] *= scale
            if at_bound or abs(dual[k]) > cost[k]:
                dual[k] = cost[k] if dual[k] > 0.0 else -cost[k]
