"""Solver of the coupled problem: pair updates, an interior-point method and an active-set method.

Where M has low rank (a linear kernel of fewer features than samples) the interior-point method
starts at once: pairs converge slowly there. With other kernels `pair_updates` come first, which are
10 to 100 times as fast on most problems. As soon as they have taken as long as the interior-point
method will, that one takes over, so that both take at most about twice the time of the better one.
Where it fails, which rounding may cause, pairs continue. On small problems the active-set method
computes the exact solution at the end. ``benchmarks/privileged.py --only methods`` compares the
methods.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from widemargin._base.callbacks import run_in_slices
from widemargin._base.matmul import tiled_multiply
from widemargin._base.numeric import TINY
from widemargin._base.options import coupled_options as options
from widemargin.solvers.coupled.active_set import refine_by_active_set
from widemargin.solvers.coupled.interior_point import InteriorPoint, start_interior_point
from widemargin.solvers.coupled.pair_updates import update_pairs
from widemargin.solvers.coupled.problem import CoupledProblem, CoupledSolution, Optimum
from widemargin.solvers.stopping import equivalent_updates, rounding_floor


@dataclass
class State:
    """State of the solver; ``first`` and ``second`` are f and e at the point."""

    problem: CoupledProblem
    tol: float
    max_iter: int
    point: np.ndarray
    first: np.ndarray
    second: np.ndarray
    iterations: int = 0
    finished: bool = False
    converged: bool = False
    exact: Optimum | None = None
    interior: InteriorPoint | None = None
    last: bool = False
    """Whether no other method is left when the pair updates end."""
    update_limit: int = field(init=False)
    """Number of iterations at which the pair updates end."""
    flat: float = field(init=False)
    """Smallest curvature along a move."""

    def __post_init__(self) -> None:
        self.update_limit = 0 if self.problem.low_rank else self.point.size
        largest = sum(float(np.abs(m.diagonal()).max()) for m in self._matrices())
        self.flat = max(options.flat_curvature * largest, TINY)

    def _matrices(self) -> tuple[np.ndarray, np.ndarray]:
        return self.problem.first, self.problem.second

    def recompute_functions(self) -> None:
        """Compute f and e from the point, without the rounding errors of the updates."""
        for function, matrix, dual in zip(
            (self.first, self.second),
            self._matrices(),
            self.problem.expansions(self.point),
            strict=True,
        ):
            function[:] = tiled_multiply(matrix, dual[:, np.newaxis])[:, 0]

    def dual_objective(self) -> float:
        g, h = self.problem.expansions(self.point)
        norms = float(g @ self.first + h @ self.second)
        return float((self.problem.linear * self.point).sum()) - 0.5 * norms

    def rounding_floor(self) -> float:
        """Return the violation below which there are rounding errors only."""
        return sum(
            rounding_floor(np.abs(dual).sum() * np.abs(m.diagonal()).max())
            for dual, m in zip(self.problem.expansions(self.point), self._matrices(), strict=True)
        )


def solve_coupled(
    problem: CoupledProblem,
    point: np.ndarray,
    *,
    tol: float = 1e-3,
    max_iter: int = -1,
    report: Callable[[State], bool] | None = None,
) -> CoupledSolution:
    """Solve the problem from a feasible point.

    Parameters
    ----------
    problem : CoupledProblem
    point : ndarray of shape (groups, n)
        Within the bounds, with both sums 0.
    tol : float, default=1e-3
        Tolerance on the violation of the optimality conditions.
    max_iter : int, default=-1
        Limit on the number of pair updates and interior-point steps together; -1 for no limit. The
        solver ends by itself: with an indefinite kernel, for which there is no interior-point
        method, after 10,000 updates per variable, and where the interior-point method fails after
        as many updates as take its time, or as were made before.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.

    Returns
    -------
    CoupledSolution
    """
    state = start(problem, point, tol, max_iter)
    run_in_slices(advance, state, report)
    return finish(state)


def start(
    problem: CoupledProblem, point: np.ndarray, tol: float = 1e-3, max_iter: int = -1
) -> State:
    """Return the state at a feasible point."""
    n = len(problem.first)
    state = State(problem, tol, max_iter, point.copy(), np.empty(n), np.empty(n))
    state.recompute_functions()
    return state


def advance(state: State) -> bool:
    """Work for a fraction of a second; return whether the solver has finished."""
    left = state.max_iter - state.iterations if state.max_iter >= 0 else options.slice_work
    if state.finished or left <= 0:
        state.finished = True
    elif state.iterations < state.update_limit:
        _update_pairs(state, min(left, options.slice_work // state.point.size + 1))
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
    done, violation = update_pairs(
        problem.first, problem.second, problem.first.diagonal().copy(),
        problem.second.diagonal().copy(), problem.kind, problem.lower, problem.upper,
        problem.linear, problem.directions, problem.relation, problem.exchange, state.point,
        state.first, state.second, max(state.tol, state.rounding_floor()), steps, state.flat,
    )  # fmt: skip
    state.iterations += done
    if violation < state.tol:
        state.finished = state.converged = True
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
    elif not state.problem.low_rank:
        state.update_limit = max(state.update_limit, _interior_point_updates(state))


def _interior_point_updates(state: State) -> int:
    """Return the number of pair updates that take as long as the interior-point method."""
    assert state.interior is not None
    work = options.interior_point_steps * state.interior.equations.work
    return equivalent_updates(work, state.point.size)


def _interior_point_step(state: State) -> None:
    """Take a step of the interior-point method; if it ends without success, continue with pairs."""
    assert state.interior is not None
    state.iterations += 1
    if not state.interior.advance():
        return
    found = state.interior.finish()
    before, value = state.point.copy(), state.dual_objective()
    state.point[:] = found.point
    state.recompute_functions()
    if found.optimal and _is_accurate(state, found):
        state.exact = found
        state.finished = state.converged = True
    elif state.dual_objective() < value:
        state.point[:] = before
        state.recompute_functions()
    further = max(state.iterations, _interior_point_updates(state))
    state.update_limit, state.last = state.iterations + further, True


def _is_accurate(state: State, found: Optimum) -> bool:
    """Return whether the functions of the point are those found, up to the tolerance."""
    distance = float(np.abs(state.first - found.first).max())
    if found.weights is None:
        distance = max(distance, float(np.abs(state.second - found.second).max()))
    return distance < state.tol


def finish(state: State) -> CoupledSolution:
    """Return the solution, exact where the active-set method applies."""
    exact = state.exact
    if state.converged or state.last:
        refined = refine_by_active_set(state.problem, state.point)
        exact = refined if refined is not None and refined.optimal else exact
    if exact is None:
        state.recompute_functions()
        exact = Optimum(
            state.point, state.first, state.second, _constants(state), None, state.converged
        )
    g, h = state.problem.expansions(exact.point)
    return CoupledSolution(
        exact.point, g, h, exact.first, exact.second, exact.constants, exact.weights,
        state.iterations, exact.optimal,
    )  # fmt: skip


def _constants(state: State) -> np.ndarray:
    """Return the multipliers of the sums, which the free variables determine on average.

    A kind without free variables gives an interval, which has a small weight.
    """
    problem, point = state.problem, state.point
    u, w = np.moveaxis(problem.directions[problem.kind], -1, 0)
    residual = problem.linear - u * state.first - w * state.second
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
            value, weight = np.mean(known), 1e-4 if len(known) == 2 else 1e-8
        rows.append(weight * direction)
        values.append(weight * value)
    return np.linalg.lstsq(np.array(rows), np.array(values), rcond=1e-14)[0]
