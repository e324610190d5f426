"""Solver of the coupled problem: pair updates, an interior-point method and an active-set method.

Where M has low rank (a linear kernel of fewer features than samples) the interior-point method
starts at once: pairs converge slowly there. With other kernels `pair_updates` come first, which are
2 to 100 times as fast on most problems. A small violation of the optimality conditions does not
imply a small duality gap, since the slack of SVM1+ is raised until all samples satisfy their
constraints: pairs continue to a smaller violation until the gap is small too. As soon as they have
taken as long as the interior-point method will, that one takes over, so that both take at most
about twice the time of the better one. Where it fails, which rounding may cause, pairs continue. On
small problems the active-set method computes the exact solution at the end.
``benchmarks/privileged.py --only methods`` compares the methods.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from widemargin._base.callbacks import run_in_slices
from widemargin._base.checkpoint import TaskCheckpoint
from widemargin._base.matmul import tiled_multiply
from widemargin._base.numeric import EPSILON, TINY
from widemargin._base.options import coupled_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.solvers.coupled.active_set import refine_by_active_set
from widemargin.solvers.coupled.interior_point import InteriorPoint, start_interior_point
from widemargin.solvers.coupled.pair_updates import Arrays, update_pairs
from widemargin.solvers.coupled.problem import CoupledProblem, CoupledSolution, Optimum
from widemargin.solvers.solution import relative_gap
from widemargin.solvers.states import Resumable
from widemargin.solvers.stopping import equivalent_updates, rounding_floor


@dataclass
class State(Resumable):
    """State of the solver; ``functions`` are f and e at the point."""

    problem: CoupledProblem
    tol: float = 1e-3
    max_iter: int = -1
    iterations: int = 0
    finished: bool = False
    converged: bool = False
    exact: Optimum | None = None
    interior: InteriorPoint | None = None
    last: bool = False
    """Whether no other method is left when the pair updates end."""
    update_limit: int = field(init=False)
    """Number of iterations at which the pair updates end."""
    violation: float = field(init=False)
    """Violation at which the pair updates end if the duality gap is small; at most ``tol``."""

    indefinite: bool = False
    """Whether a kernel is not positive semidefinite, so that the gap is not meaningful."""

    saved: ClassVar[tuple[str, ...]] = (
        *("iterations", "last", "update_limit", "violation", "indefinite", "point", "functions"),
    )

    def __post_init__(self) -> None:
        problem, self.violation = self.problem, self.tol
        self.point = problem.start.copy()
        self.functions = np.empty((2, len(problem.offset)))
        self.diagonals = problem.first.diagonal().copy(), problem.second.diagonal().copy()
        self.sizes = [float(np.abs(diagonal).max()) for diagonal in self.diagonals]
        self.update_limit = 0 if problem.low_rank else self.point.size
        self.recompute_functions()

    def resume(self, numbers: dict[str, Any]) -> Self:
        super().resume(numbers)
        # The violation is only lowered where `tol` is met.
        self.converged = self.violation < self.tol
        return self

    def recompute_functions(self) -> None:
        """Compute f and e from the point, without the rounding errors of the updates."""
        matrices = self.problem.first, self.problem.second
        duals = self.problem.expansions(self.point)
        for function, matrix, dual in zip(self.functions, matrices, duals, strict=True):
            function[:] = tiled_multiply(matrix, dual[:, np.newaxis])[:, 0]

    def dual_objective(self) -> float:
        g, h = self.problem.expansions(self.point)
        norms = float(g @ self.functions[0] + h @ self.functions[1])
        return float((self.problem.linear * self.point).sum()) - 0.5 * norms

    def gap(self) -> float:
        """Return the relative duality gap of the point."""
        dual, first, second = self.dual_objective(), *self.functions
        optimum = Optimum(self.point, first, second, _constants(self), None, True)
        norms = float((self.problem.linear * self.point).sum()) - dual
        return relative_gap(norms + self.problem.primal(optimum)[2], dual)

    def rounding_floor(self) -> float:
        """Return the violation below which there are rounding errors only."""
        duals = self.problem.expansions(self.point)
        return sum(
            rounding_floor(np.abs(dual).sum() * size)
            for dual, size in zip(duals, self.sizes, strict=True)
        )


def solve_coupled(
    problem: CoupledProblem,
    *,
    tol: float = 1e-3,
    max_iter: int = -1,
    report: Callable[[State], bool] | None = None,
    checkpoint: TaskCheckpoint | None = None,
) -> CoupledSolution:
    """Solve the problem.

    Parameters
    ----------
    problem : CoupledProblem
    tol : float, default=1e-3
        Tolerance on the violation of the optimality conditions.
    max_iter : int, default=-1
        Limit on the number of pair updates and interior-point steps together; -1 for no limit. The
        solver ends by itself: with an indefinite kernel, for which there is no interior-point
        method, after 10,000 updates per variable, and where the interior-point method fails after
        as many updates as take its time, or as were made before.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.
    checkpoint : TaskCheckpoint, optional
        Saves the state after some slices, and resumes it.

    Returns
    -------
    CoupledSolution
    """
    with single_threaded_blas():
        state = State(problem, tol, max_iter)
        run_in_slices(advance, state, report, checkpoint)
        optimum = finish(state)
    g, h = problem.expansions(optimum.point)
    optimum, shifts = _with_more_digits(problem, optimum, g, h)
    second_norm = float(h @ optimum.second) + shifts[1] * math.fsum(h)
    if optimum.weights is not None:
        second_norm = problem.penalty * float(optimum.weights @ optimum.weights)
    norms = 0.5 * (float(g @ optimum.first) + shifts[0] * math.fsum(g) + second_norm)
    first_intercept, second_intercept, loss = problem.primal(optimum)
    second_values = optimum.second + second_intercept
    first_intercept, second_intercept = first_intercept - shifts[0], second_intercept - shifts[1]
    objective = norms + loss
    dual_objective = float((problem.linear * optimum.point).sum()) - norms
    gap = relative_gap(objective, dual_objective)
    return CoupledSolution(
        g, first_intercept, objective, dual_objective, gap, state.iterations, optimum.optimal,
        second_dual=h / problem.penalty, second_intercept=second_intercept,
        second_values=second_values, second_weights=optimum.weights,
        point=optimum.point,
    )  # fmt: skip


def _with_more_digits(
    problem: CoupledProblem, optimum: Optimum, g: np.ndarray, h: np.ndarray
) -> tuple[Optimum, list[float]]:
    """Return the solution with functions from sums with twice the digits, where these matter.

    Constants are subtracted from the functions and added to the multipliers, and returned: a large
    one would take the digits of the rest.
    """
    shifts, functions = [0.0, 0.0], [optimum.first, optimum.second]
    duals, grams = [g, h / problem.penalty], problem.grams or ()
    for k, (gram, dual) in enumerate(zip(grams, duals, strict=False)):
        size = float(np.abs(dual) @ np.sqrt(np.abs(gram.diagonal())))
        known = k == 1 and optimum.weights is not None
        rounded = size * size * EPSILON > options.negligible_rounding * float(np.abs(dual).sum())
        exact = gram.exact_sums(dual) if rounded and not known else None
        if exact is not None:
            (total, rest), _ = exact
            shifts[k] = -float(np.median(total))
            functions[k] = (total + shifts[k]) + rest
    moved = optimum.constants - np.array(shifts)
    return optimum._replace(first=functions[0], second=functions[1], constants=moved), [
        -shift for shift in shifts
    ]


def advance(state: State) -> bool:
    """Work for a fraction of a second; return whether the solver has finished."""
    left = state.max_iter - state.iterations if state.max_iter >= 0 else options.slice_visits
    if state.finished or left <= 0:
        state.finished = True
    elif state.iterations < state.update_limit:
        _update_pairs(state, min(left, options.slice_visits // state.point.size + 1))
    elif state.last:
        state.finished = True
    elif state.interior is None:
        _plan(state)
    else:
        _interior_point_step(state)
    return state.finished


def _update_pairs(state: State, steps: int) -> None:
    problem = state.problem
    steps = min(steps, state.update_limit - state.iterations)
    arrays = Arrays(
        problem.first, problem.second, *state.diagonals, problem.kind, problem.lower,
        problem.upper, problem.linear, problem.directions, problem.relation, state.point,
        *state.functions,
    )  # fmt: skip
    # A state may be resumed with a smaller tol.
    state.violation = min(state.violation, state.tol)
    tol = max(state.violation, state.rounding_floor())
    flat = max(options.flat_curvature * sum(state.sizes), TINY)
    done, violation = update_pairs(arrays, problem.exchange, tol, steps, flat)
    state.iterations += done
    if violation < state.violation:
        state.converged = True
        state.finished = state.indefinite or state.gap() <= options.gap_tol
        state.violation *= options.violation_decrease
    elif done < steps:
        # No move has a gain: what is left are rounding errors.
        state.update_limit = state.iterations
    if state.iterations >= state.update_limit:
        state.recompute_functions()


def _plan(state: State) -> None:
    """Prepare the interior-point method, and let pair updates take as long as it will."""
    state.interior = start_interior_point(state.problem)
    if state.interior is None:
        state.update_limit, state.last = options.most_updates * state.point.size, True
        state.indefinite, state.violation = True, state.tol
        state.finished = state.converged
    elif not state.problem.low_rank:
        updates = _interior_point_updates(state.interior, state)
        state.update_limit = max(state.update_limit, updates)


def _interior_point_updates(interior: InteriorPoint, state: State) -> int:
    """Return the number of pair updates that take as long as the interior-point method."""
    work = options.interior_point_steps * interior.equations.work
    return equivalent_updates(work, state.point.size)


def _interior_point_step(state: State) -> None:
    """Take a step of the interior-point method; if it ends without success, continue with pairs."""
    assert state.interior is not None
    state.iterations += 1
    if not state.interior.advance():
        return
    optimum = state.interior.finish()
    before, value = state.point.copy(), state.dual_objective()
    state.point[:] = optimum.point
    state.recompute_functions()
    if optimum.optimal and _is_accurate(state, optimum):
        state.converged = True
        # Where the functions of the point are less accurate than the optimum's, pairs continue.
        state.finished = optimum.weights is not None or state.gap() <= options.gap_tol
        state.exact = optimum if state.finished else None
    elif state.dual_objective() < value:
        state.point[:] = before
        state.recompute_functions()
    further = max(state.iterations, _interior_point_updates(state.interior, state))
    state.update_limit, state.last = state.iterations + further, True


def _is_accurate(state: State, optimum: Optimum) -> bool:
    """Return whether the functions of the point are those of the optimum, up to the tolerance."""
    distance = np.abs(state.functions - [optimum.first, optimum.second]).max(axis=1)
    return bool(
        distance[0] < state.tol and (optimum.weights is not None or distance[1] < state.tol)
    )


def finish(state: State) -> Optimum:
    """Return the solution, exact where the active-set method applies."""
    if state.converged or state.last:
        refined = refine_by_active_set(state.problem, state.point)
        if refined is not None:
            return refined
    exact = state.exact
    if exact is not None and exact.weights is not None:
        return exact
    state.recompute_functions()
    first, second = state.functions
    if exact is not None:  # its functions only approximate those of the point
        return exact._replace(first=first, second=second)
    return Optimum(state.point, first, second, _constants(state), None, state.converged)


def _constants(state: State) -> np.ndarray:
    """Return the multipliers of the sums, which the free variables determine on average.

    A kind without free variables gives an interval, which has a small weight.
    """
    problem, point = state.problem, state.point
    u, w = np.moveaxis(problem.directions[problem.kind], -1, 0)
    residual = problem.linear - u * state.functions[0] - w * state.functions[1]
    rising, falling = point < problem.upper, point > problem.lower
    rows, values = [], []
    for number, direction in enumerate(problem.directions):
        members = problem.kind == number
        free = members & rising & falling
        if free.any():
            value, weight = residual[free].mean(), np.sqrt(np.count_nonzero(free))
        else:
            least = residual[members & rising].max(initial=-np.inf)
            greatest = residual[members & falling].min(initial=np.inf)
            known = [end for end in (least, greatest) if np.isfinite(end)]
            if not known:
                continue
            value = np.mean(known)
            weight = options.interval_weight if len(known) == 2 else options.ray_weight
        rows.append(weight * direction)
        values.append(weight * value)
    return np.linalg.lstsq(np.array(rows), np.array(values), rcond=options.multiplier_rank_tol)[0]
