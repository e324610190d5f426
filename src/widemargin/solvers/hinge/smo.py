"""Sequential minimal optimization (SMO) of the hinge problem (see `problem`).

Every round takes a working set W, solves the dual over beta_W with the other variables fixed, and
updates the residual of the other samples:

    min over d   1/2 d' K_WW d - residual_W' d,   beta_W + d within its bounds,  sum(d) = 0

The subproblem is solved by pair updates, chosen by the second-order rule of Fan, Chen and Lin
(2005), in compiled code over a dense K_WW (see `pairs`). Without an intercept there is no sum.

The working set depends on the size of the problem. Up to `dense_size` samples the whole Gram
matrix is held and W is all of them. Above it W is up to `working_set_size` of the most violating
samples, half of them kept from the round before, and only their rows of the Gram matrix are
computed.

`shrinking` removes samples at their bounds for a while, `precision` checks float32 kernel values,
and `free_set_newton` takes over where pair updates converge slowly, and at the end to bring the
solution to machine precision. Where they do not converge within a certain amount of work, or
rounding keeps them from the optimum, the interior-point method of `soft_margin` ends the fit.

Stops when no pair of samples violates the optimality conditions by more than ``tol`` (as in
scikit-learn), or on the relative duality gap where ``gap_tol`` is given.

References
----------
R.-E. Fan, P.-H. Chen, C.-J. Lin: Working set selection using second order information for training
support vector machines. JMLR 2005.
"""

from dataclasses import KW_ONLY, InitVar, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from widemargin._base.callbacks import run_in_slices
from widemargin._base.checkpoint import TaskCheckpoint
from widemargin._base.numeric import TINY
from widemargin._base.options import newton_options, stopping_options
from widemargin._base.options import smo_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.kernels.dense import DenseMatrix, dense_matrix
from widemargin.solvers.free_set_newton import free_set_newton
from widemargin.solvers.hinge import pairs, soft_margin
from widemargin.solvers.hinge.precision import check_residual, exact_residual, recompute_residual
from widemargin.solvers.hinge.problem import HingeProblem, NotSeparableError, certify
from widemargin.solvers.hinge.shrinking import ActiveSet, shrink, subtract_rows, unshrink
from widemargin.solvers.hinge.small import SmallSolver
from widemargin.solvers.solution import Report, Solution
from widemargin.solvers.states import Resumable
from widemargin.solvers.stopping import initial_tol, next_tol


def solve_hinge(
    problem: HingeProblem,
    *,
    exact: bool = True,
    report: Report = None,
    checkpoint: TaskCheckpoint | None = None,
    **parameters: Any,
) -> Solution:
    """Solve a hinge problem.

    Parameters
    ----------
    problem : HingeProblem
    exact : bool, default=True
        Whether to bring a solution to machine precision where few variables are free.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.
    checkpoint : TaskCheckpoint, optional
        Saves the state after some slices, and resumes it.
    **parameters
        Those of `State`.

    Returns
    -------
    Solution
    """
    small, tol = None, parameters.get("tol", 1e-3)
    if exact and report is None and problem.intercept and _is_plain(**parameters):
        small = SmallSolver(problem.gram) if SmallSolver.applies(problem.gram) else None
        solution = None if small is None else small.solve(problem, tol)
        if solution is not None:
            return solution
    state = State(problem, **parameters)
    if small is not None and small.updates:
        state.active.dual[:] = small.dual
        state.active.update_residual(state.active.dual)
        state.iterations, state.rounds = small.updates, 1
    run_in_slices(advance, state, report, checkpoint)
    return finish(state, exact)


def solve_from(
    problem: HingeProblem,
    start: tuple[np.ndarray | None, np.ndarray | None],
    *,
    report: Report = None,
    checkpoint: TaskCheckpoint | None = None,
    **parameters: Any,
) -> tuple[Solution, np.ndarray]:
    """Solve a hinge problem from a point; return f without its intercept at all samples, too.

    Parameters
    ----------
    problem : HingeProblem
    start : tuple of ndarray of shape (n,) or None
        ``dual`` and ``values`` of `State`.
    report, checkpoint, **parameters
        See `solve_hinge`.

    Returns
    -------
    solution : Solution
    values : ndarray of shape (n,)
    """
    state = State(problem, dual=start[0], values=start[1], **parameters)
    run_in_slices(advance, state, report, checkpoint)
    solution = finish(state)
    return solution, problem.linear() - state.active.residual


def _is_plain(
    tol: float = 1e-3, gap_tol: Any = None, max_iter: int = -1, shrinking: bool = True,
    strict: bool = True, dual: Any = None, values: Any = None,
) -> bool:  # fmt: skip
    """Return whether the parameters of `State` are those of the small solver."""
    return gap_tol is None and max_iter < 0 and dual is None


@dataclass
class State(Resumable):
    """State of the solver, at ``dual`` or at zero.

    Parameters
    ----------
    problem : HingeProblem
    tol : float, default=1e-3
        Tolerance on the violation of the optimality conditions.
    gap_tol : float, optional
        Tolerance on the relative duality gap, to stop on instead. Ignored where there is no gap,
        because the kernel is not known to be positive semidefinite.
    max_iter : int, default=-1
        Largest number of pair updates; -1 for no limit.
    shrinking : bool, default=True
        Whether to use the shrinking heuristic.
    strict : bool, default=True
        Whether a small tolerance requires a small duality gap too.
    dual : ndarray of shape (n,), optional
        Feasible point to start from.
    values : ndarray of shape (n,), optional
        Values of f at ``dual`` without its intercept, if they are known.
    """

    problem: HingeProblem
    _: KW_ONLY
    tol: float = 1e-3
    gap_tol: float | None = None
    max_iter: int = -1
    shrinking: bool = True
    strict: bool = True
    dual: InitVar[np.ndarray | None] = None
    values: InitVar[np.ndarray | None] = None

    saved: ClassVar[tuple[str, ...]] = (
        "iterations",
        "rounds",
        "rechecks",
        "worked",
        "limit",
        "float64",
        "working_set",
        "tightened",
    )

    def __post_init__(self, dual: np.ndarray | None, values: np.ndarray | None) -> None:
        problem, gram, n = self.problem, self.problem.gram, self.problem.size
        dense = dense_matrix(gram) if n <= options.dense_size else None
        diagonal = gram.diagonal()
        largest = float(np.abs(diagonal).max(initial=0.0))
        start = np.zeros(n) if dual is None else problem.check_feasible(dual)
        residual, bounds = problem.linear().copy(), problem.bounds()
        whole = ActiveSet(np.arange(n), gram, start, residual, *bounds, diagonal, largest, dense)
        # Small problems do not start from ``values``, which may be float32: nothing rechecks them
        # there.
        if dual is not None and values is not None and dense is None:
            whole.residual -= values
        elif dual is not None:
            whole.update_residual(whole.dual)
        self.active_sets = [whole]
        self.gap_tol = self.gap_tol if gram.positive_semidefinite else None
        self.tol = self.first_tol = initial_tol(self.tol, self.gap_tol)
        # Factor of the tolerance, where a small violation leaves a large gap.
        self.tightened = 1.0
        # Smallest curvature along a pair, for pairs of samples with equal kernel rows.
        self.floor = max(options.flat_curvature * whole.largest, TINY)
        # Whether some costs are infinite.
        self.hard = bool((problem.cost == np.inf).any())
        self.iterations = self.rounds = self.rechecks = 0
        self.float64 = gram.float64_rows
        self.finished = self.converged = False
        self.working_set = np.empty(0, dtype=np.intp)
        # Kernel values used so far, and how many before the interior-point method takes over.
        self.worked = 0.0
        most = max(options.handover_work, 0.1 * options.handover_updates * n * n)
        limit = min(max(options.handover_updates * n * n, 0.05 * options.handover_work), most)
        eligible = gram.positive_semidefinite and not self.hard and bool((problem.cost > 0).any())
        self.limit = limit if eligible else np.inf
        self.interior: soft_margin.State | None = None
        self.best: Solution | None = None

    @property
    def active(self) -> ActiveSet:
        """The samples that the solver works on now."""
        return self.active_sets[-1]

    @property
    def violation(self) -> float:
        """Largest violation of the optimality conditions by active samples."""
        return self.active.violation(self.problem.intercept)

    @property
    def uses_float32(self) -> bool:
        """Whether kernel values of the active samples are float32."""
        return self.active.dense is None and not self.float64

    def numbers(self) -> dict[str, Any]:
        numbers = super().numbers()
        for level, active in enumerate(self.active_sets):
            for name in ("index", "dual", "residual"):
                numbers[f"{name}_{level}"] = getattr(active, name)
        return numbers

    def resume(self, numbers: dict[str, Any]) -> Self:
        super().resume(numbers)
        if self.gap_tol is None:
            self.tol = self.first_tol * self.tightened
        del self.active_sets[1:]
        if self.float64:
            self.active.gram.use_float64()
        for level in range(sum(name.startswith("dual_") for name in numbers)):
            if level:
                self.active_sets.append(self.active.subset(numbers[f"index_{level}"].copy()))
            self.active.dual[:] = numbers[f"dual_{level}"]
            self.active.residual[:] = numbers[f"residual_{level}"]
        return self


def advance(state: State) -> bool:
    """Work for about a fifth of a second; return whether the solver has finished."""
    steps = options.slice_work if state.max_iter < 0 else state.max_iter - state.iterations
    if state.finished or steps <= 0:
        state.finished = True
        return True
    if state.worked >= state.limit:
        return _interior_point_step(state)
    violation = state.violation
    if violation < state.tol or violation < state.active.rounding():
        if len(state.active_sets) > 1:
            unshrink(state)
        else:
            _finish_if_accurate(state)
    elif not shrink(state):
        if state.active.dense is None:
            _working_set_round(state, violation, steps)
        else:
            _dense_round(state, steps)
        _check_separable(state)
    return state.finished


def finish(state: State, exact: bool = True) -> Solution:
    """Return the solution, brought to machine precision if ``exact`` and it is cheap."""
    while len(state.active_sets) > 1:
        unshrink(state)
    if state.best is not None:
        return state.best
    if exact and state.converged and state.active.dense is not None and _newton_applies(state):
        _refine(state)
    recompute_residual(state)
    solution = solution_at(state)
    missed = state.gap_tol is not None and solution.gap > state.gap_tol
    return replace(solution, converged=False) if missed else solution


def solution_at(state: State) -> Solution:
    """Return the current solution; the residual of inactive samples may be out of date."""
    dual, residual, index = state.active_sets[0].dual.copy(), state.active_sets[0].residual, None
    for active in state.active_sets[1:]:
        residual = residual.copy() if index is None else residual
        index = active.index if index is None else index[active.index]
        dual[index], residual[index] = active.dual, active.residual
    return certify(state.problem, dual, residual, state.iterations, state.converged)


def values_at(state: State, exact: np.ndarray) -> np.ndarray:
    """Return f without its intercept at all samples, after `finish`.

    At the samples ``exact`` it is summed anew in float64, so that equal samples have equal values;
    elsewhere the rounding of the residual depends on the label.
    """
    active = state.active
    values = state.problem.linear() - active.residual
    values[exact] = -exact_residual(active, np.zeros(active.size), exact)
    return values


def _refine(state: State) -> None:
    """Improve the solution to machine precision, where that is possible.

    Where variables at their bounds violate the optimality conditions after the Newton steps, pair
    updates continue at a tenth of the tolerance, and the steps are tried again.
    """
    steps = options.newton_period * state.problem.size
    for round_ in range(newton_options.rounds):
        if round_ and _descend_over_all(state, 0.1**round_ * state.tol, steps) == steps:
            return
        if _newton_steps(state) <= newton_options.precision:
            return


def _finish_if_accurate(state: State) -> None:
    """Finish, as the tolerance is met, unless float32 values or the duality gap forbid it."""
    unchecked = state.uses_float32 and state.rechecks < options.rechecks
    if unchecked and not check_residual(state):
        return
    if state.gap_tol is not None:
        recompute_residual(state)
        solution, rounding = solution_at(state), state.active.rounding()
        closed, rounded = solution.gap <= state.gap_tol, state.violation < rounding
        tighter = next_tol(state.tol, closed=closed, rounded=rounded)
        if tighter is not None:
            state.tol = tighter
            return
        state.converged = closed
    else:
        # A point that rounding keeps from tol is a solution if its gap is small (or nan).
        solution, floor = solution_at(state), state.active.rounding()
        met = state.violation < state.tol >= floor
        small = not solution.gap > options.rounded_gap
        # A gap of this size after a small violation: the costs are large beside the objective.
        strict = state.strict and state.tol <= options.strict_tol and state.limit < np.inf
        if strict and not small and state.active.dense is not None and _newton_applies(state):
            _refine(state)
            small = solution_at(state).gap <= options.rounded_gap
        if strict and not small and met and state.tol > stopping_options.smallest_tol:
            state.tightened *= stopping_options.tightening
            state.tol = state.first_tol * state.tightened
            return
        # A larger gap than the violation explains means that rounding hides violations.
        explained = state.tol * float(state.problem.cost.sum())
        trusted = not solution.rounded or solution.gap * solution.objective <= explained < np.inf
        state.converged = small or (met and trusted and not strict)
    if state.converged or state.limit == np.inf:
        state.finished = True
    else:
        state.worked = state.limit


def _interior_point_step(state: State) -> bool:
    """Take a step of the interior-point method; return whether it has finished.

    The better solution of both methods is the result.
    """
    with single_threaded_blas():
        if state.interior is None:
            while len(state.active_sets) > 1:
                unshrink(state)
            problem = _bounded_problem(state.problem)
            near = solution_at(state) if problem is state.problem else None
            state.interior = soft_margin.start(problem, near)
            if state.interior is None:  # too large
                state.limit = np.inf
                return False
        if not soft_margin.advance(state.interior):
            state.iterations += 1
            return False
        solution, residual = soft_margin.finish(state.interior, state.iterations)
        if len(residual) < state.problem.size:
            dual = np.zeros(state.problem.size)
            dual[state.problem.cost > 0.0] = solution.dual
            support = np.flatnonzero(dual)
            values = state.problem.gram.block(slice(None), support) @ dual[support]
            solution, residual = replace(solution, dual=dual), state.problem.linear() - values
    recompute_residual(state)
    last = solution_at(state)
    if solution.gap < last.gap:
        state.active.dual[:], state.active.residual[:] = solution.dual, residual
    else:
        solution = last
    enough = options.rounded_gap if state.gap_tol is None else state.gap_tol
    state.finished, state.converged = True, solution.gap <= enough
    state.best = replace(solution, converged=state.converged)
    return True


def _bounded_problem(problem: HingeProblem) -> HingeProblem:
    """Return the problem without samples of cost 0, which have no interior."""
    used = np.flatnonzero(problem.cost > 0.0)
    if len(used) == problem.size:
        return problem
    data = problem.sign[used], problem.margin[used], problem.cost[used]
    return HingeProblem(problem.gram.subset(used), *data, problem.intercept)


def _dense_round(state: State, steps: int) -> None:
    """Update pairs of all active samples."""
    size = state.active.size
    period = options.newton_period * size
    first = state.shrinking and state.rounds == 0 and size >= options.shrink_size
    most = min(steps, options.shrink_steps if first else period, options.slice_work // size + 1)
    before = state.iterations
    done = _descend_over_all(state, state.tol, most)
    slow = done == most and before // period < state.iterations // period
    if slow and _newton_applies(state):
        _newton_steps(state)


def _working_set_round(state: State, violation: float, steps: int) -> None:
    """Update pairs of the most violating samples, whose rows of the Gram matrix are computed."""
    active, working_set = state.active, _most_violating(state)
    rows, positions = active.gram.rows(working_set)
    tol = max(0.5 * state.tol, options.violation_share * violation)
    dual, residual = active.dual[working_set], active.residual[working_set]
    if positions is working_set and rows.dtype == np.float64:
        # Rows of a matrix in memory: those that pair updates use are copied.
        dense, diagonal = DenseMatrix(rows, working_set), active.diagonal[working_set]
    else:
        dense = DenseMatrix(pairs.gather_columns(rows, positions, working_set))
        # Not the diagonal in float64: beside float32 rows, pair updates might not terminate.
        diagonal = dense.matrix.diagonal().copy()
    steps = min(steps, options.slice_work // len(working_set))
    before, period = state.iterations, options.newton_period * active.size
    _descend(state, dense, diagonal, dual, residual, working_set, tol, steps)
    change = dual - active.dual[working_set]
    moved = np.flatnonzero(change)
    subtract_rows(rows, positions[moved], change[moved], active.residual)
    active.dual[working_set], active.residual[working_set] = dual, residual
    state.working_set = working_set
    state.worked += options.round_work * len(working_set) * active.size
    if before // period < state.iterations // period:
        _newton_on_free_samples(state)


def _newton_on_free_samples(state: State) -> None:
    """Take Newton steps on the free variables, with all others fixed.

    Not where costs are infinite: float32 errors of the residual could look like a dual without
    bound.
    """
    if state.hard or not _newton_applies(state):
        return
    free = np.flatnonzero(state.active.free)
    state.active_sets.append(state.active.subset(free, dense=True))
    _newton_steps(state)
    unshrink(state)


def _descend_over_all(state: State, tol: float, steps: int) -> int:
    active = state.active
    point = active.dual, active.residual
    return _descend(state, active.dense, active.diagonal, *point, slice(None), tol, steps)


def _descend(state, dense, diagonal, dual, residual, working_set, tol, steps) -> int:
    """Update pairs in place until none violates by ``tol``; return the number of updates."""
    active, problem = state.active, state.problem
    descend = pairs.descend_with_intercept if problem.intercept else pairs.descend_without_intercept
    done = descend(
        *dense.arrays, diagonal, active.lower[working_set], active.upper[working_set], dual,
        residual, max(tol, active.rounding()), steps, state.floor,
    )  # fmt: skip
    state.iterations += done
    state.rounds += 1
    state.worked += done * len(dual)
    return done


def _most_violating(state: State) -> np.ndarray:
    """Return a working set: half from the last round, the rest the most violating samples."""
    active = state.active
    share = max(options.smallest_working_set, active.size // options.working_set_share)
    size = min(options.working_set_size, share, active.size, active.gram.max_rows)
    if size == active.size:
        return np.arange(size)
    n_retained = min(len(state.working_set), max(0, min(size // 2, size - 2)))
    retained = state.working_set[len(state.working_set) - n_retained :]
    available = np.ones(active.size, dtype=bool)
    available[retained] = False
    rising = np.where(available & (active.dual < active.upper), active.residual, -np.inf)
    falling = np.where(available & (active.dual > active.lower), -active.residual, -np.inf)
    sides = [rising, falling] if state.problem.intercept else [np.maximum(rising, falling)]
    chosen = [retained]
    for side in sides:
        side[~available] = -np.inf
        count = (size - n_retained) // len(sides)
        best = np.argpartition(-side, count)[:count]
        best = best[side[best] > -np.inf]
        available[best] = False
        chosen.append(best)
    return np.concatenate(chosen)


def _newton_applies(state: State) -> bool:
    """Return whether Newton steps on the free variables are possible and cheap."""
    if not state.problem.gram.positive_semidefinite:
        return False
    return int(np.count_nonzero(state.active.free)) <= newton_options.most_free


def _newton_steps(state: State) -> float:
    """Take Newton steps on the free variables of the active samples; return the violation.

    The linear term includes the contributions of inactive ones.
    """
    active, linear = state.active, state.problem.linear()
    support = np.flatnonzero(active.dual)
    assert active.dense is not None
    matrix = active.dense.rows(support)
    if len(state.active_sets) > 1:
        linear = active.residual.copy()
        subtract_rows(matrix, support, -active.dual[support], linear)
    point = active.lower, active.upper, active.dual, active.residual
    return free_set_newton(matrix, linear, *point, state.problem.intercept)


def _check_separable(state: State) -> None:
    """Raise `NotSeparableError` if samples of infinite cost cannot be separated.

    The dual then grows without bound. Its value D bounds the margin of any f by 1 / sqrt(2 D):
    above `separability` times the size of the data in the feature space there is no margin. Where
    all costs are infinite any multiple of a feasible point is feasible, and moving to the best
    multiple makes D grow as fast as the direction permits.
    """
    if not state.hard:
        return
    active, linear = state.active, state.problem.linear()
    cone = bool((state.problem.cost == np.inf).all())
    gain = float(np.sum(active.dual * linear))
    with np.errstate(over="ignore", invalid="ignore"):  # unbounded with an indefinite kernel
        norm = float(np.sum(active.dual * (linear - active.residual)))
    if gain <= 0.0:
        return
    value = gain - 0.5 * norm
    if cone:
        value = 0.5 * gain**2 / norm if norm > 0.0 else np.inf
    # Not a number: the dual has overflowed, as with a kernel that is 0 everywhere.
    if not state.problem.separable and not 2.0 * value * active.largest <= options.separability:
        raise NotSeparableError
    if cone and gain > options.cone_growth * norm > 0.0:
        factor = gain / norm
        active.dual *= factor
        active.residual -= (factor - 1.0) * (linear - active.residual)
