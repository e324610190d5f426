"""Sequential minimal optimisation of the hinge problem (see `problem`).

Every round takes a set of rows W, solves the dual over beta_W alone with the others fixed, and
carries the change over to the residual of all rows:

    min over d   1/2 d' K_WW d - residual_W' d,   beta_W + d in its box,  sum(d) = 0

The subproblem is solved by pairs chosen by the second-order rule of Fan, Chen and Lin (2005) in
compiled code over a dense K_WW; without an intercept nothing ties the pair together.

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
from widemargin._core.products import tiled_multiply
from widemargin._core.progress import drive
from widemargin._core.threads import for_each
from widemargin.solvers.polish import MOST_FREE, leap, polish
from widemargin.solvers.problem import HingeProblem, NotSeparableError, Solution, certify

WHOLE_ROWS = 3000
BATCH_ROWS = 1024

_SLICE_WORK = 50_000_000
_LEAP_STEPS = 100
_SHRINK_ROWS = 500
_SHRINK_STEPS = 1000
_CARRY_COLUMNS = 4096
_RECHECKS = 3
_RECHECK_ROWS = 512
_RECHECK_ENTRIES = 1 << 22
_SAME_OBJECTIVE = 1e-5
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
    drive(lambda: advance(state), lambda: report is not None and report(state))
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
    rechecks: int = 0
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
        names = (
            "dual",
            "residual",
            "tol",
            "iterations",
            "rounds",
            "finished",
            "converged",
            "working",
        )
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
        _add_kernel_sum(problem.gram, dual, residual)
    if gap_tol is not None:
        tol = max(tol, _FIRST_GAP_TOL)
    return State(problem, gap_tol, max_iter, shrinking, dual, residual, tol)


def advance(state: State) -> bool:
    """Work for about a fifth of a second; True when there is nothing more to do."""
    steps = _SLICE_WORK // state.problem.size + 1
    if state.max_iter >= 0:
        steps = min(steps, state.max_iter - state.iterations)
    if state.finished or steps <= 0:
        state.finished = True
        return True
    violation = _violation(state)
    if violation < max(state.tol, _rounding(state)):
        _accept(state)
    elif state.matrix is None:
        _batch_round(state, violation, steps)
    else:
        _whole_round(state, steps)
    _check_separable(state)
    return state.finished


def finish(state: State) -> Solution:
    """The solution at the state, brought to machine precision where that is cheap."""
    problem = state.problem
    if state.converged and _can_leap(state):

        def descend(factor):
            steps = _LEAP_STEPS * problem.size
            return _solve_over_all(state, factor * state.tol, steps) < steps

        polish(*_faces(state), descend)
    return solution_at(state)


def solution_at(state: State) -> Solution:
    """The solution as far as it is known."""
    dual, residual = state.dual.copy(), state.residual
    return certify(state.problem, dual, residual, state.iterations, state.converged)


def _can_leap(state: State) -> bool:
    """Whether Newton steps on the free rows make sense and are cheap."""
    if state.matrix is None or not state.problem.gram.positive_semidefinite:
        return False
    free = (state.lower < state.dual) & (state.dual < state.upper)
    return np.count_nonzero(free) <= MOST_FREE


def _faces(state: State) -> tuple:
    """What Newton steps work on."""
    linear, intercept = state.problem.linear(), state.problem.intercept
    return (
        state.matrix, linear, state.lower, state.upper, state.dual, state.residual, intercept,
    )  # fmt: skip


def _accept(state: State) -> None:
    """The tolerance is met: done, unless rounding or an open gap says otherwise."""
    if state.matrix is None and state.rechecks < _RECHECKS and not _recheck(state):
        return
    if state.gap_tol is not None:
        closed = solution_at(state).gap <= state.gap_tol
        if not closed and state.tol > _SMALLEST_TOL:
            state.tol *= 0.1
            return
        state.converged = closed
    else:
        state.converged = True
    state.finished = True


def _recheck(state: State) -> bool:
    """Whether the residual, computed from float32 rows, stands up to float64.

    A sample of the support vectors is looked at first. If their errors could matter, to the
    tolerance or to the objective, all support vectors get their residual in float64.
    """
    state.rechecks += 1
    support = np.flatnonzero(state.dual)
    sample = support[:: max(1, len(support) // _RECHECK_ROWS)]
    error = np.abs(_exact_residual(state, sample, support) - state.residual[sample])
    size = float(np.abs(state.dual).sum())
    value = float(np.sum(state.dual * (state.problem.linear() + state.residual)))
    if error.max() <= 0.1 * state.tol and error.mean() * size <= _SAME_OBJECTIVE * abs(value):
        return True
    state.residual[support] = _exact_residual(state, support, support)
    if state.rechecks == _RECHECKS:
        state.problem.gram.sharpen()
    return _violation(state) < state.tol


def _exact_residual(state: State, rows, support) -> np.ndarray:
    """The residual of ``rows`` in float64."""
    dual, values = state.dual[support][:, np.newaxis], []
    size = max(1, _RECHECK_ENTRIES // len(support))
    for i in range(0, len(rows), size):
        block = state.problem.gram.block(rows[i : i + size], support)
        values.append(tiled_multiply(block, dual)[:, 0])
    return state.problem.linear()[rows] - np.concatenate(values)


def _violation(state: State) -> float:
    """By how much the worst pair of rows (or row) violates the optimality conditions."""
    rising = state.residual.max(initial=-np.inf, where=state.dual < state.upper)
    falling = state.residual.min(initial=np.inf, where=state.dual > state.lower)
    return rising - falling if state.problem.intercept else max(rising, -falling, 0.0)


def _rounding(state: State) -> float:
    """Violations below this are rounding errors of the residual."""
    size = float(np.abs(state.dual).sum()) * float(np.abs(state.diagonal).max(initial=0.0))
    return 4.0 * np.finfo(float).eps * size


def _whole_round(state: State, steps: int) -> None:
    """A round over all rows; after the first one, over those that may still move."""
    n = state.problem.size
    if n < _SHRINK_ROWS or not state.shrinking:
        crawl = _LEAP_STEPS * n
        if _solve_over_all(state, state.tol, min(steps, crawl)) == crawl and _can_leap(state):
            # Pairs crawl along the valleys of an ill-conditioned kernel: jump.
            leap(*_faces(state))
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
    rows, places = state.problem.gram.rows(working)
    tol = max(0.5 * state.tol, 0.1 * violation)
    _solve_over(state, working, _square(rows, places, working), rows, places, tol, steps)
    state.working = working


def _solve_over_all(state: State, tol: float, steps: int) -> int:
    """Solve with all rows free, in place; how many steps it took."""
    tol = max(tol, _rounding(state))
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
    tol = max(tol, _rounding(state))
    state.iterations += _descend(state, square, dual, residual, working, tol, steps)
    state.rounds += 1
    change = dual - state.dual[working]
    moved = np.flatnonzero(change)
    state.dual[working] = dual
    _carry(rows, positions[moved], change[moved], state.residual)


def _carry(rows, positions, change, residual) -> None:
    """residual -= change' rows[positions], in pieces over threads."""
    for_each(
        lambda first: _carry_over(rows, positions, change, residual, first, first + _CARRY_COLUMNS),
        range(0, len(residual), _CARRY_COLUMNS),
    )


def _add_kernel_sum(gram, dual, residual) -> None:
    """residual -= K dual."""
    support = np.flatnonzero(dual)
    size = min(BATCH_ROWS, gram.most_rows)
    for i in range(0, len(support), size):
        part = support[i : i + size]
        _carry(*gram.rows(part), dual[part], residual)


def _descend(state, square, dual, residual, working, tol, steps) -> int:
    descend = _descend_by_pairs if state.problem.intercept else _descend_freely
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
    n = state.problem.size
    size = min(BATCH_ROWS, n, state.problem.gram.most_rows)
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
        raise NotSeparableError
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
        if residual[k] >= highest and dual[k] < upper[k]:
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
                    if slope * slope * curvature >= gain * bend:
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
            if r >= highest and dual[k] < upper[k]:
                i, highest = k, r
    return steps


@compiled
def _descend_freely(square, diagonal, lower, upper, dual, residual, tol, steps, floor):
    """Move dual variables that no equality ties together until none violates by tol.

    The row that gains most alone moves together with the one that gains most beside it: single
    moves crawl where rows are nearly parallel, as they are when a constant column stands in for
    the intercept.
    """
    n = dual.shape[0]
    for step in range(steps):
        i, gain, worst = -1, 0.0, 0.0
        for k in range(n):
            bend = max(diagonal[k], floor)
            move = min(max(residual[k] / bend, lower[k] - dual[k]), upper[k] - dual[k])
            if move != 0.0:
                worst = max(worst, abs(residual[k]))
                gained = move * (residual[k] - 0.5 * move * bend)
                if gained > gain:
                    i, gain = k, gained
        if i < 0 or worst < tol:
            return step
        row = square[i]
        bend = max(diagonal[i], floor)
        first = min(max(residual[i] / bend, lower[i] - dual[i]), upper[i] - dual[i])
        j, second = -1, 0.0
        for k in range(n):
            if k != i:
                determinant = max(bend * diagonal[k] - row[k] * row[k], floor * bend)
                move = (residual[k] * bend - residual[i] * row[k]) / determinant
                move = min(max(move, lower[k] - dual[k]), upper[k] - dual[k])
                own = (residual[i] - move * row[k]) / bend
                own = min(max(own, lower[i] - dual[i]), upper[i] - dual[i])
                gained = own * (residual[i] - 0.5 * own * bend - move * row[k])
                gained += move * (residual[k] - 0.5 * move * diagonal[k])
                if gained > gain:
                    j, gain, first, second = k, gained, own, move
        dual[i] = _moved(dual[i], first, lower[i], upper[i])
        for k in range(n):
            residual[k] -= first * row[k]
        if j >= 0:
            dual[j] = _moved(dual[j], second, lower[j], upper[j])
            other = square[j]
            for k in range(n):
                residual[k] -= second * other[k]
    return steps


@compiled
def _moved(value, move, lower, upper):
    """Landing exactly on a bound that was the reason to stop."""
    if move == upper - value:
        return upper
    if move == lower - value:
        return lower
    return value + move


@compiled
def _square(rows, places, columns):
    """rows[places][:, columns] in float64."""
    out = np.empty((places.shape[0], columns.shape[0]))
    for a in range(places.shape[0]):
        row = rows[places[a]]
        for b in range(columns.shape[0]):
            out[a, b] = row[columns[b]]
    return out


@compiled
def _carry_over(rows, positions, change, residual, first, last):
    """residual -= change' rows[positions], columns first to last."""
    last = min(last, residual.shape[0])
    part = residual[first:last]
    for a in range(positions.shape[0]):
        row = rows[positions[a], first:last]
        for k in range(part.shape[0]):
            part[k] -= change[a] * row[k]
