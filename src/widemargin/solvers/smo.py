"""Sequential minimal optimisation of the hinge problem (see `problem`).

Every round takes a set of rows W, solves the dual over beta_W alone with the others fixed, and
carries the change over to the residual of all rows:

    min over d   1/2 d' K_WW d - residual_W' d,   beta_W + d in its box,  sum(d) = 0

The subproblem is solved by pairs chosen by the second-order rule of Fan, Chen and Lin (2005) in
compiled code over a dense K_WW; without an intercept by single coordinates.

What W is depends on the size of the problem. Up to `WHOLE_ROWS` rows the whole Gram matrix is at
hand: W starts as all rows and shrinks to those that may still move. Above it W is the
`BATCH_ROWS` most violating rows, half of them kept from the round before, and only their rows of
the Gram matrix are ever asked for.

Stops when no pair of rows violates the optimality conditions by more than ``tol`` (scikit-learn's
meaning), or on the relative duality gap where ``gap_tol`` is given.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from widemargin._core.compiled import compiled
from widemargin._core.progress import drive
from widemargin._core.threads import effective_threads, for_each
from widemargin.solvers.polish import MOST_FREE, polish
from widemargin.solvers.problem import HingeProblem, NotSeparableError, Solution, certify

WHOLE_ROWS = 3000
BATCH_ROWS = 1024

_SLICE_WORK = 50_000_000
_SHRINK_ROWS = 500
_SHRINK_STEPS = 1000
_CARRY_COLUMNS = 4096
_FLAT = 1e-12
_HOPELESS = 1e10
_FIRST_GAP_TOL = 0.1
_SMALLEST_TOL = 1e-13


def solve_hinge(
    problem: HingeProblem,
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    max_iter: int = -1,
    shrinking: bool = True,
    dual: np.ndarray | None = None,
    report: Callable[["State"], bool] | None = None,
) -> Solution:
    """Solve the problem from start to end.

    Parameters
    ----------
    problem : HingeProblem
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
    gap_tol : float, optional
        Stop on this relative duality gap instead.
    max_iter : int, default=-1
        Most pair updates; -1 for no limit.
    shrinking : bool, default=True
        Whether rows that will not move are left out of the work for a while.
    dual : ndarray of shape (n,), optional
        Feasible point to start from.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.

    Returns
    -------
    Solution
    """
    state = start(
        problem, tol=tol, gap_tol=gap_tol, max_iter=max_iter, shrinking=shrinking, dual=dual
    )
    drive(lambda: advance(state), None if report is None else lambda: report(state))
    return finish(state)


@dataclass
class State:
    """Where the solver stands: `numbers` is all that is needed to go on elsewhere."""

    problem: HingeProblem
    gap_tol: float | None
    max_iter: int
    shrinking: bool
    dual: np.ndarray
    residual: np.ndarray
    tol: float
    iterations: int = 0
    rounds: int = 0
    finished: bool = False
    converged: bool = False
    working: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    lower: np.ndarray = field(init=False)
    upper: np.ndarray = field(init=False)
    diagonal: np.ndarray = field(init=False)
    floor: float = field(init=False)
    hard: bool = field(init=False)
    matrix: np.ndarray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.lower, self.upper = self.problem.bounds()
        self.hard = bool((self.problem.cost == np.inf).any())
        self.diagonal = self.problem.gram.diagonal()
        # Pairs of rows that the kernel cannot tell apart are given this much curvature.
        largest = float(np.abs(self.diagonal).max(initial=0.0))
        self.floor = max(_FLAT * largest, np.finfo(float).tiny)
        if self.problem.size <= WHOLE_ROWS:
            matrix = self.problem.gram.block(slice(None))
            self.matrix = np.ascontiguousarray(matrix, dtype=np.float64)

    def numbers(self) -> dict[str, object]:
        """The state as plain arrays and numbers, for a checkpoint."""
        names = ("dual", "residual", "tol", "iterations", "rounds", "finished", "converged", "working")
        return {name: getattr(self, name) for name in names}

    def resume(self, numbers: dict) -> "State":
        """Go on from the `numbers` of another state of the same problem."""
        for name, value in numbers.items():
            setattr(self, name, value.copy() if isinstance(value, np.ndarray) else value)
        return self


def start(problem, *, tol=1e-3, gap_tol=None, max_iter=-1, shrinking=True, dual=None) -> State:
    """A state at ``dual``, or at zero."""
    residual = problem.linear().copy()
    if dual is None:
        dual = np.zeros(problem.size)
    else:
        dual = problem.check_feasible(dual)
        residual -= _kernel_times(problem.gram, dual)
    if gap_tol is not None:
        tol = max(tol, _FIRST_GAP_TOL)
    return State(problem, gap_tol, max_iter, shrinking, dual, residual, tol)


def advance(state: State) -> bool:
    """Work for about a fifth of a second; True when there is nothing more to do."""
    if state.finished:
        return True
    violation = _violation(state)
    if violation < state.tol:
        _accept(state)
        return state.finished
    steps = _SLICE_WORK // state.problem.size + 1
    if state.max_iter >= 0:
        steps = min(steps, state.max_iter - state.iterations)
    if steps <= 0:
        state.finished = True
    elif state.matrix is None:
        _batch_round(state, violation, steps)
    else:
        _whole_round(state, steps)
    _check_separable(state)
    return state.finished


def finish(state: State) -> Solution:
    """The solution at the state, brought to machine precision where that is cheap."""
    problem = state.problem
    if _can_polish(state):

        def descend(factor):
            steps = 100 * problem.size
            done = _solve_over_all(state, factor * state.tol, steps)
            return done < steps

        polish(
            state.matrix,
            problem.linear(),
            state.lower,
            state.upper,
            state.dual,
            state.residual,
            problem.intercept,
            descend,
        )
    return certify(problem, state.dual, state.residual, state.iterations, state.converged)


def _can_polish(state: State) -> bool:
    if not state.converged or state.matrix is None or not state.problem.gram.positive_semidefinite:
        return False
    free = (state.lower < state.dual) & (state.dual < state.upper)
    return np.count_nonzero(free) <= MOST_FREE


def _accept(state: State) -> None:
    """The tolerance is met: done, unless it is the gap that counts and it is still open."""
    if state.gap_tol is not None:
        solution = certify(state.problem, state.dual, state.residual, 0, True)
        if not solution.gap <= state.gap_tol and state.tol > _SMALLEST_TOL:
            state.tol *= 0.1
            return
        state.converged = bool(solution.gap <= state.gap_tol)
    else:
        state.converged = True
    state.finished = True


def _violation(state: State) -> float:
    """By how much the worst pair of rows (or row) violates the optimality conditions."""
    rising = state.residual.max(initial=-np.inf, where=state.dual < state.upper)
    falling = state.residual.min(initial=np.inf, where=state.dual > state.lower)
    return rising - falling if state.problem.intercept else max(rising, -falling, 0.0)


def _whole_round(state: State, steps: int) -> None:
    """A round over all rows; after the first one, over those that may still move."""
    n = state.problem.size
    if not state.shrinking or n < _SHRINK_ROWS:
        _solve_over_all(state, state.tol, steps)
        return
    if state.rounds == 0:
        _solve_over_all(state, state.tol, min(steps, _SHRINK_STEPS))
        return
    working = _may_move(state)
    if len(working) == n:
        _solve_over_all(state, state.tol, steps)
    else:
        square = state.matrix[np.ix_(working, working)]
        _solve_over(state, working, square, state.matrix, working, state.tol, steps)


def _batch_round(state: State, violation: float, steps: int) -> None:
    """A round over the most violating rows, whose rows of the Gram matrix are asked for."""
    working = _most_violating(state)
    rows = state.problem.gram.block(working)
    tol = max(0.5 * state.tol, 0.1 * violation)
    square = np.ascontiguousarray(rows[:, working], dtype=np.float64)
    _solve_over(state, working, square, rows, np.arange(len(working)), tol, steps)
    state.working = working


def _solve_over_all(state: State, tol: float, steps: int) -> int:
    """Solve with all rows free, in place; how many steps it took."""
    done = _descend(state, state.matrix, state.dual, state.residual, slice(None), tol, steps)
    state.iterations += done
    state.rounds += 1
    return done


def _solve_over(state, working, square, rows, positions, tol, steps) -> None:
    """Solve over the rows ``working`` and carry the change over to the residual of all rows.

    ``square`` is K_WW; row ``positions[a]`` of ``rows`` is the row of the Gram matrix that
    belongs to ``working[a]``.
    """
    dual, residual = state.dual[working], state.residual[working]
    state.iterations += _descend(state, square, dual, residual, working, tol, steps)
    state.rounds += 1
    change = dual - state.dual[working]
    moved = np.flatnonzero(change)
    state.dual[working] = dual
    chunks = range(0, state.problem.size, _CARRY_COLUMNS)
    for_each(
        lambda first: _carry_over(
            rows, positions[moved], change[moved], state.residual, first, first + _CARRY_COLUMNS
        ),
        chunks,
        effective_threads() if len(chunks) > 1 else 1,
    )


def _descend(state, square, dual, residual, working, tol, steps) -> int:
    descend = _descend_by_pairs if state.problem.intercept else _descend_by_ones
    lower, upper = state.lower[working], state.upper[working]
    diagonal = state.diagonal[working]
    return descend(square, diagonal, lower, upper, dual, residual, tol, steps, state.floor)


def _may_move(state: State) -> np.ndarray:
    """Rows not held at a bound by the sign of their residual's distance to all others."""
    rise, fall = state.dual < state.upper, state.dual > state.lower
    highest = state.residual.max(initial=-np.inf, where=rise)
    lowest = state.residual.min(initial=np.inf, where=fall)
    if not state.problem.intercept:
        highest = lowest = 0.0
    held = ~fall & (state.residual < lowest) | ~rise & (state.residual > highest)
    return np.flatnonzero(~held)


def _most_violating(state: State) -> np.ndarray:
    """`BATCH_ROWS` rows to work on: half from the last round, the rest from both ends."""
    n, size = state.problem.size, min(BATCH_ROWS, state.problem.size)
    chosen = np.zeros(n, dtype=bool)
    chosen[state.working[-(size // 2) :]] = True
    wanted = size - np.count_nonzero(chosen)
    rise, fall = state.dual < state.upper, state.dual > state.lower
    if state.problem.intercept:
        ends = [np.where(rise & ~chosen, state.residual, -np.inf)]
        ends.append(np.where(fall & ~chosen, -state.residual, -np.inf))
    else:
        up = np.where(rise, state.residual, -np.inf)
        down = np.where(fall, -state.residual, -np.inf)
        ends = [np.where(chosen, -np.inf, np.maximum(up, down))]
    new = []
    for end in ends:
        count = wanted // len(ends)
        best = np.argpartition(-end, count)[:count]
        best = best[(end[best] > -np.inf) & ~chosen[best]]
        chosen[best] = True
        new.append(best)
    kept = state.working[-(size // 2) :]
    return np.concatenate([kept, *new])


def _check_separable(state: State) -> None:
    """Rows of infinite cost let the dual grow without bound when they cannot be separated.

    The dual value D bounds the margin any f can reach by 1 / sqrt(2 D): past `_HOPELESS` times
    the data's size in the feature space there is no margin left to find. Where all costs are
    infinite any multiple of a feasible point is feasible: going to the best one grows D as fast
    as the direction allows.
    """
    if not state.hard:
        return
    cone = bool((state.problem.cost == np.inf).all())
    linear = state.problem.linear()
    gain = float(np.sum(state.dual * linear))
    norm = float(np.sum(state.dual * (linear - state.residual)))
    if gain <= 0.0:
        return
    value = gain - 0.5 * norm
    if cone:
        value = 0.5 * gain**2 / norm if norm > 0.0 else np.inf
    if 2.0 * value * float(state.diagonal.max()) > _HOPELESS:
        raise NotSeparableError(
            "The rows of infinite cost cannot be separated with this kernel: give them a finite "
            "cost, or use a kernel (or larger gamma) that can tell them apart."
        )
    if cone and gain > 1.5 * norm:
        factor = gain / norm
        state.dual *= factor
        state.residual -= (factor - 1.0) * (linear - state.residual)


@compiled
def _descend_by_pairs(square, diagonal, lower, upper, dual, residual, tol, steps, floor):
    """Move pairs of dual variables against each other until none violates by tol."""
    n = dual.shape[0]
    i, highest = -1, -np.inf
    for k in range(n):
        if residual[k] > highest and dual[k] < upper[k]:
            i, highest = k, residual[k]
    for step in range(steps):
        if i < 0:
            return step
        row = square[i]
        j, lowest, gain, curvature = -1, np.inf, 0.0, 1.0
        for k in range(n):
            if dual[k] > lower[k]:
                lowest = min(lowest, residual[k])
                slope = highest - residual[k]
                if slope > 0.0:
                    bend = diagonal[i] + diagonal[k] - 2.0 * row[k]
                    bend = bend if bend > floor else floor
                    if slope * slope * curvature > gain * bend:
                        j, gain, curvature = k, slope * slope, bend
        if j < 0 or highest - lowest < tol:
            return step
        up, down = upper[i] - dual[i], dual[j] - lower[j]
        length = min((highest - residual[j]) / curvature, up, down)
        dual[i] = upper[i] if length == up else dual[i] + length
        dual[j] = lower[j] if length == down else dual[j] - length
        other = square[j]
        i, highest = -1, -np.inf
        for k in range(n):
            r = residual[k] - length * (row[k] - other[k])
            residual[k] = r
            if r > highest and dual[k] < upper[k]:
                i, highest = k, r
    return steps


@compiled
def _descend_by_ones(square, diagonal, lower, upper, dual, residual, tol, steps, floor):
    """Move single dual variables, the one that gains most first, until none violates by tol."""
    n = dual.shape[0]
    for step in range(steps):
        i, gain, change, worst = -1, 0.0, 0.0, 0.0
        for k in range(n):
            bend = diagonal[k] if diagonal[k] > floor else floor
            length = min(max(residual[k] / bend, lower[k] - dual[k]), upper[k] - dual[k])
            if length != 0.0:
                worst = max(worst, abs(residual[k]))
                gained = length * (residual[k] - 0.5 * length * bend)
                if gained > gain:
                    i, gain, change = k, gained, length
        if i < 0 or worst < tol:
            return step
        if change == upper[i] - dual[i]:
            dual[i] = upper[i]
        elif change == lower[i] - dual[i]:
            dual[i] = lower[i]
        else:
            dual[i] += change
        row = square[i]
        for k in range(n):
            residual[k] -= change * row[k]
    return steps


@compiled
def _carry_over(rows, positions, change, residual, first, last):
    """residual -= change' rows[positions], columns first to last."""
    last = min(last, residual.shape[0])
    part = residual[first:last]
    for a in range(positions.shape[0]):
        row = rows[positions[a], first:last]
        for k in range(part.shape[0]):
            part[k] -= change[a] * row[k]
