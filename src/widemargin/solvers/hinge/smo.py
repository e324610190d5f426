"""Sequential minimal optimisation of the hinge problem (see `problem`).

Every round takes a set of rows W, solves the dual over beta_W alone with the others fixed, and
carries the change over to the residual of the other rows:

    min over d   1/2 d' K_WW d - residual_W' d,   beta_W + d in its box,  sum(d) = 0

The subproblem is solved by pairs chosen by the second-order rule of Fan, Chen and Lin (2005) in
compiled code over a dense K_WW; without an intercept nothing ties the pair together.

What W is depends on the size of the problem. Up to `WHOLE_ROWS` rows the whole Gram matrix is at
hand and W is all of them. Above it W is up to `BATCH_ROWS` most violating rows, half of them kept
from the round before, and only their rows of the Gram matrix are ever asked for.

Shrinking narrows the scope: once half of the rows are held at a bound, the problem is solved over
the others as if there were no more, then the residual of those left out is caught up with, and
if any of them violates now it goes on. A narrow scope has shorter rows, more of which fit into
memory, and ends up small enough for a whole matrix.

Stops when no pair of rows violates the optimality conditions by more than ``tol`` (scikit-learn's
meaning), or on the relative duality gap where ``gap_tol`` is given.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from widemargin._base.callbacks import run_in_slices
from widemargin._base.matmul import tiled_multiply
from widemargin._base.options import newton_options
from widemargin._base.threads import for_each
from widemargin.kernels import Gram
from widemargin.kernels.dense import Square, square_of
from widemargin.solvers.free_set_newton import free_set_newton, refine
from widemargin.solvers.hinge.pairs import (
    carry_over,
    descend_by_pairs,
    descend_freely,
    ends,
    rows_between,
)
from widemargin.solvers.hinge.problem import HingeProblem, NotSeparableError
from widemargin.solvers.solution import Solution, certify
from widemargin.solvers.stopping import initial_tol, next_tol, rounding_floor

# Measured: from 2,000 rows on batches win, and they should be about a sixth of a small problem.
WHOLE_ROWS = 2000
BATCH_ROWS = 1024

_SLICE_WORK = 50_000_000
_LEAP_STEPS = 100
_SHRINK_ROWS = 500
_SHRINK_STEPS = 1000
_NARROWING = 0.5
_CARRY_COLUMNS = 4096
_FEWEST_ROWS = 32
_RECHECKS = 3
_RECHECK_ROWS = 512
_RECHECK_ENTRIES = 1 << 22
_SAME_OBJECTIVE = 1e-5
_DOUBT = 10.0
_ROUNDED_GAP = 1e-3
_FLAT = 1e-12
_HOPELESS = 1e10
_TINY = float(np.finfo(float).tiny)


def solve_hinge(
    problem: HingeProblem,
    *,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    max_iter: int = -1,
    shrinking: bool = True,
    dual: np.ndarray | None = None,
    exact: bool = True,
    report: Callable[["State"], bool] | None = None,
) -> Solution:
    """Solve the problem from start to end.

    Parameters
    ----------
    problem : HingeProblem
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
    gap_tol : float, optional
        Stop on this relative duality gap instead, where there is one: the kernel is known to be
        positive semidefinite.
    max_iter : int, default=-1
        Most pair updates; -1 for no limit.
    shrinking : bool, default=True
        Whether rows that will not move are left out of the work for a while.
    dual : ndarray of shape (n,), optional
        Feasible point to start from.
    exact : bool, default=True
        Whether a solution to tol is brought to machine precision where few rows are free.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.

    Returns
    -------
    Solution
    """
    state = start(
        problem, tol=tol, gap_tol=gap_tol, max_iter=max_iter, shrinking=shrinking, dual=dual
    )
    run_in_slices(advance, state, report)
    return finish(state, exact)


@dataclass
class Scope:
    """Rows that are worked on, and what is known of them.

    The first scope is all rows. A narrow one has copies of the entries of its ``index`` in the
    one before it, which stays as it was.
    """

    index: np.ndarray
    gram: Gram
    dual: np.ndarray
    residual: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    diagonal: np.ndarray
    largest: float
    """The largest of the Gram matrix's values."""
    square: Square | None = None
    """The Gram matrix where it is at hand; else its rows are asked of ``gram``."""

    @property
    def size(self) -> int:
        return len(self.dual)


@dataclass
class State:
    """Where the solver stands: `numbers` is all that is needed to go on elsewhere."""

    problem: HingeProblem
    gap_tol: float | None
    max_iter: int
    shrinking: bool
    scopes: list[Scope]
    tol: float
    iterations: int = 0
    rounds: int = 0
    rechecks: int = 0
    sharp: bool = False
    finished: bool = False
    converged: bool = False
    working: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    floor: float = field(init=False)
    hard: bool = field(init=False)

    def __post_init__(self) -> None:
        self.hard = bool((self.problem.cost == np.inf).any())
        # Pairs of rows that the kernel cannot tell apart are given this much curvature.
        self.floor = max(_FLAT * self.scope.largest, _TINY)

    @property
    def scope(self) -> Scope:
        """The rows that are worked on now."""
        return self.scopes[-1]

    def numbers(self) -> dict[str, object]:
        """The state as plain arrays and numbers, for a checkpoint."""
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        for level, scope in enumerate(self.scopes):
            for name in _SCOPE_NUMBERS:
                numbers[f"{name}_{level}"] = getattr(scope, name)
        return numbers

    def resume(self, numbers: dict) -> "State":
        """Go on from the `numbers` of another state of the same problem."""
        for name in _NUMBERS:
            setattr(self, name, numbers[name])
        self.working = self.working.copy()
        del self.scopes[1:]
        if self.sharp:
            self.scope.gram.sharpen()
        for level in range(sum(name.startswith("dual_") for name in numbers)):
            if level:
                self.scopes.append(_narrowed(self.scope, numbers[f"index_{level}"].copy()))
            self.scope.dual[:] = numbers[f"dual_{level}"]
            self.scope.residual[:] = numbers[f"residual_{level}"]
        return self


_NUMBERS = (
    "tol", "iterations", "rounds", "rechecks", "sharp", "finished", "converged", "working",
)  # fmt: skip
_SCOPE_NUMBERS = ("index", "dual", "residual")


def start(
    problem, *, tol=1e-3, gap_tol=None, max_iter=-1, shrinking=True, dual=None, values=None
) -> State:
    """A state at ``dual``, or at zero; ``values`` are those of f there, if they are known."""
    gram, residual = problem.gram, problem.linear().copy()
    square = square_of(gram) if problem.size <= WHOLE_ROWS else None
    if dual is None:
        dual = np.zeros(problem.size)
    else:
        dual = problem.check_feasible(dual)
        if square is not None:
            # Rows of a cache, and values made of them, may be float32: nothing rechecks them here.
            support = np.flatnonzero(dual)
            _carry(square.rows(support), support, dual[support], residual)
        elif values is None:
            _subtract_kernel_sum(gram, dual, residual)
        else:
            residual -= values
    diagonal = gram.diagonal()
    largest = float(np.abs(diagonal).max(initial=0.0))
    everything = Scope(
        np.arange(problem.size), gram, dual, residual, *problem.bounds(), diagonal, largest, square
    )
    if not gram.positive_semidefinite:
        gap_tol = None  # there is no gap to stop on
    tol = initial_tol(tol, gap_tol)
    return State(problem, gap_tol, max_iter, shrinking, [everything], tol)


def advance(state: State) -> bool:
    """Work for about a fifth of a second; True when there is nothing more to do."""
    steps = _SLICE_WORK if state.max_iter < 0 else state.max_iter - state.iterations
    if state.finished or steps <= 0:
        state.finished = True
        return True
    violation = _violation(state)
    if violation < state.tol or violation < _rounding(state.scope):
        if len(state.scopes) > 1:
            _widen(state)
        else:
            _accept(state)
    elif not _narrow(state):
        if state.scope.square is None:
            _batch_round(state, violation, steps)
        else:
            _whole_round(state, steps)
        _check_separable(state)
    return state.finished


def finish(state: State, exact: bool = True) -> Solution:
    """The solution at the state, brought to machine precision where that is wanted and cheap."""
    while len(state.scopes) > 1:
        _widen(state)
    if exact and state.converged and _can_leap(state):

        def descend(factor):
            steps = _LEAP_STEPS * state.problem.size
            return _solve_over_all(state, factor * state.tol, steps) < steps

        refine(*_faces(state), descend)
    _settle(state)
    return solution_at(state)


def add_kernel_sum(gram: Gram, change: np.ndarray, values: np.ndarray) -> None:
    """Take the values of f to where the dual variables have changed, in place."""
    _subtract_kernel_sum(gram, -change, values)


def values_at(state: State, exact: np.ndarray) -> np.ndarray:
    """f without its intercept at all rows, after `finish`.

    At the rows ``exact`` it is summed anew in float64: equal rows have equal values there, which
    rounding of what is left of their margins would tell apart by their labels.
    """
    scope = state.scope
    values, support = state.problem.linear() - scope.residual, np.flatnonzero(scope.dual)
    values[exact] = -_exact_residual(scope, np.zeros(scope.size), exact, support)
    return values


def solution_at(state: State) -> Solution:
    """The solution as far as it is known: rows out of scope may have moved on unseen."""
    dual, residual, index = state.scopes[0].dual.copy(), state.scopes[0].residual, None
    for scope in state.scopes[1:]:
        residual = residual.copy() if index is None else residual
        index = scope.index if index is None else index[scope.index]
        dual[index], residual[index] = scope.dual, scope.residual
    return certify(state.problem, dual, residual, state.iterations, state.converged)


def _accept(state: State) -> None:
    """The tolerance is met: done, unless rounding or an open gap says otherwise."""
    unsure = state.scope.square is None and not state.sharp and state.rechecks < _RECHECKS
    if unsure and not _recheck(state):
        return
    if state.gap_tol is not None:
        _settle(state)
        solution, rounding = solution_at(state), _rounding(state.scope)
        closed, rounded = solution.gap <= state.gap_tol, _violation(state) < rounding
        tighter = next_tol(state.tol, closed=closed, rounded=rounded)
        if tighter is not None:
            state.tol = tighter
            return
        # What rounding of the slacks may add to the objective does not count as a gap.
        noise = rounding * float(np.sum(state.problem.cost))
        state.converged = closed or (rounded and solution.gap * solution.objective <= noise)
    else:
        state.converged = _violation(state) < state.tol or _is_near(state)
    state.finished = True


def _is_near(state: State) -> bool:
    """Whether a point that rounding keeps from the tolerance is a solution all the same."""
    solution = solution_at(state)
    return not solution.gap > _ROUNDED_GAP


def _recheck(state: State) -> bool:
    """Whether the residual, computed from float32 rows, stands up to float64.

    A sample of the support vectors is looked at. Errors that could matter to the objective are
    mended for all support vectors; where they reach the tolerance the solver goes on in float64.
    """
    state.rechecks += 1
    scope, linear = state.scope, state.problem.linear()
    support = np.flatnonzero(scope.dual)
    sample = support[:: max(1, len(support) // _RECHECK_ROWS)]
    error = np.abs(_exact_residual(scope, linear, sample, support) - scope.residual[sample])
    worst = float(error.max(initial=0.0))
    size = float(np.abs(scope.dual).sum())
    value = float(np.sum(scope.dual * (linear + scope.residual)))
    same = float(error.sum()) * size <= _SAME_OBJECTIVE * abs(value) * len(sample)
    if worst <= 0.1 * state.tol and same:
        return True
    if worst <= state.tol:
        scope.residual[support] = _exact_residual(scope, linear, support, support)
        return _violation(state) < state.tol
    state.sharp = True
    scope.gram.sharpen()
    scope.residual[:] = linear
    _subtract_kernel_sum(scope.gram, scope.dual, scope.residual)
    return False


def _settle(state: State) -> None:
    """Compute in float64 what the certificate is made of, where rows were float32.

    That is the residual of the support vectors and of other rows that might fall short of their
    margins; how far the rest are beyond theirs, or rows that cost nothing, does not matter.
    """
    scope, problem = state.scope, state.problem
    if scope.square is not None or state.sharp:
        return
    support = np.flatnonzero(scope.dual)
    exact = _support_residual(scope, problem.linear(), support)
    error = float(np.abs(exact - scope.residual[support]).max(initial=0.0))
    scope.residual[support] = exact
    slack = problem.sign * (scope.residual - solution_at(state).intercept)
    matters = (scope.dual == 0.0) & (problem.cost > 0.0)
    doubtful = np.flatnonzero(matters & (slack > -_DOUBT * error))
    scope.residual[doubtful] = _exact_residual(scope, problem.linear(), doubtful, support)


def _support_residual(scope: Scope, linear, support) -> np.ndarray:
    """The residual of the support vectors in float64; every pair of them is looked at once."""
    dual, out = scope.dual[support], linear[support]
    size = max(1, _RECHECK_ENTRIES // max(1, len(support)))
    for i in range(0, len(support), size):
        part, later = support[i : i + size], support[i + size :]
        for first, columns in ((i, part), (i + size, later)):
            block = scope.gram.block(part, columns)
            weights = dual[first : first + len(columns), np.newaxis]
            out[i : i + size] -= tiled_multiply(block, weights)[:, 0]
        _carry(block, np.arange(len(part)), dual[i : i + size], out[i + size :])
    return out


def _exact_residual(scope: Scope, linear, rows, support) -> np.ndarray:
    """The residual of ``rows`` in float64."""
    dual, out = scope.dual[support][:, np.newaxis], linear[rows]
    size = max(1, _RECHECK_ENTRIES // max(1, len(support)))
    for i in range(0, len(rows), size):
        block = scope.gram.block(rows[i : i + size], support)
        out[i : i + size] -= tiled_multiply(block, dual)[:, 0]
    return out


def _ends(scope: Scope) -> tuple[float, float]:
    """The highest residual of rows that can rise and the lowest of rows that can fall."""
    return ends(scope.dual, scope.residual, scope.lower, scope.upper)


def _violation(state: State) -> float:
    """By how much the worst pair of rows (or row) violates the optimality conditions."""
    highest, lowest = _ends(state.scope)
    return highest - lowest if state.problem.intercept else max(highest, -lowest, 0.0)


def _rounding(scope: Scope) -> float:
    """Violations below this are rounding errors of the residual."""
    return rounding_floor(float(np.abs(scope.dual).sum()) * scope.largest)


def _narrow(state: State) -> bool:
    """Leave out the rows that are held at a bound, if they are many."""
    scope = state.scope
    if not state.shrinking or state.hard or scope.size < _SHRINK_ROWS:
        return False
    held = scope.lower == scope.upper
    if state.rounds:
        highest, lowest = _ends(scope) if state.problem.intercept else (0.0, 0.0)
        held |= (scope.dual <= scope.lower) & (scope.residual < lowest)
        held |= (scope.dual >= scope.upper) & (scope.residual > highest)
    if np.count_nonzero(held) < _NARROWING * scope.size:
        return False
    state.scopes.append(_narrowed(scope, np.flatnonzero(~held)))
    state.working = np.empty(0, dtype=np.intp)
    return True


def _narrowed(scope: Scope, index: np.ndarray) -> Scope:
    gram, square = scope.gram, None
    if scope.square is not None:
        square = scope.square.part(index)
    elif len(index) <= WHOLE_ROWS:
        square = Square(gram.block(index, index))
    else:
        gram = gram.narrow(index)
    names = ("dual", "residual", "lower", "upper", "diagonal")
    parts = (getattr(scope, name)[index] for name in names)
    return Scope(index, gram, *parts, scope.largest, square)


def _widen(state: State) -> None:
    """Go back to the scope before; catch up with the residual of the rows that were left out."""
    narrow = state.scopes.pop()
    scope, index = state.scope, narrow.index
    narrow.gram = scope.gram  # its rows make room for those of the wider scope
    change = np.zeros(scope.size)
    change[index] = narrow.dual - scope.dual[index]
    if scope.square is None:
        _subtract_kernel_sum(scope.gram, change, scope.residual)
    else:
        moved = np.flatnonzero(change)
        _carry(scope.square.rows(moved), moved, change[moved], scope.residual)
    scope.dual[index], scope.residual[index] = narrow.dual, narrow.residual
    state.working = np.empty(0, dtype=np.intp)


def _whole_round(state: State, steps: int) -> None:
    """A round over all rows in scope."""
    size = state.scope.size
    crawl = _LEAP_STEPS * size
    if state.shrinking and state.rounds == 0 and size >= _SHRINK_ROWS:
        crawl = _SHRINK_STEPS
    before, most = state.iterations, min(steps, crawl, _SLICE_WORK // size + 1)
    done, period = _solve_over_all(state, state.tol, most), _LEAP_STEPS * size
    if done == most and before // period < state.iterations // period and _can_leap(state):
        # Pairs crawl along the valleys of an ill-conditioned kernel: jump.
        free_set_newton(*_faces(state))


def _batch_round(state: State, violation: float, steps: int) -> None:
    """A round over the most violating rows, whose rows of the Gram matrix are asked for."""
    scope, working = state.scope, _most_violating(state)
    rows, places = scope.gram.rows(working)
    tol = max(0.5 * state.tol, 0.1 * violation)
    dual, residual = scope.dual[working], scope.residual[working]
    square = Square(rows_between(rows, places, working))
    steps = min(steps, _SLICE_WORK // len(working))
    # Not the scope's diagonal, which is exact: beside rounded rows, pairs might go in circles.
    _descend(state, square, square.matrix.diagonal().copy(), dual, residual, working, tol, steps)
    change = dual - scope.dual[working]
    moved = np.flatnonzero(change)
    _carry(rows, places[moved], change[moved], scope.residual)
    scope.dual[working], scope.residual[working] = dual, residual
    state.working = working


def _solve_over_all(state: State, tol: float, steps: int) -> int:
    """Solve with all rows in scope free, in place; how many steps it took."""
    scope = state.scope
    point = scope.dual, scope.residual
    return _descend(state, scope.square, scope.diagonal, *point, slice(None), tol, steps)


def _descend(state, square, diagonal, dual, residual, working, tol, steps) -> int:
    scope = state.scope
    descend = descend_by_pairs if state.problem.intercept else descend_freely
    done = descend(
        *square.arrays,
        diagonal,
        scope.lower[working],
        scope.upper[working],
        dual,
        residual,
        max(tol, _rounding(scope)),
        steps,
        state.floor,
    )
    state.iterations += done
    state.rounds += 1
    return done


def _subtract_kernel_sum(gram, change, residual) -> None:
    """residual -= K change."""
    moved = np.flatnonzero(change)
    size = min(BATCH_ROWS, gram.most_rows)
    for i in range(0, len(moved), size):
        part = moved[i : i + size]
        _carry(*gram.rows(part), change[part], residual)


def _carry(rows, places, change, residual) -> None:
    """residual -= change' rows[places], in pieces over threads."""
    for_each(
        lambda first: carry_over(rows, places, change, residual, first, first + _CARRY_COLUMNS),
        range(0, len(residual), _CARRY_COLUMNS),
    )


def _most_violating(state: State) -> np.ndarray:
    """`BATCH_ROWS` rows to work on: half from the last round, the rest from both ends."""
    scope = state.scope
    size = min(BATCH_ROWS, max(_FEWEST_ROWS, scope.size // 6), scope.size, scope.gram.most_rows)
    if size == scope.size:
        return np.arange(size)
    n_kept = min(len(state.working), max(0, min(size // 2, size - 2)))
    kept = state.working[len(state.working) - n_kept :]
    free = np.ones(scope.size, dtype=bool)
    free[kept] = False
    rising = np.where(free & (scope.dual < scope.upper), scope.residual, -np.inf)
    falling = np.where(free & (scope.dual > scope.lower), -scope.residual, -np.inf)
    sides = [rising, falling] if state.problem.intercept else [np.maximum(rising, falling)]
    chosen = [kept]
    for side in sides:
        side[~free] = -np.inf
        count = (size - n_kept) // len(sides)
        best = np.argpartition(-side, count)[:count]
        best = best[side[best] > -np.inf]
        free[best] = False
        chosen.append(best)
    return np.concatenate(chosen)


def _can_leap(state: State) -> bool:
    """Whether Newton steps on the free rows make sense and are cheap."""
    scope = state.scope
    if scope.square is None or not state.problem.gram.positive_semidefinite:
        return False
    free = (scope.lower < scope.dual) & (scope.dual < scope.upper)
    return np.count_nonzero(free) <= newton_options.most_free


def _faces(state: State) -> tuple:
    """What Newton steps work on.

    In a narrow scope the rows that were left out are part of p.
    """
    scope, linear = state.scope, state.problem.linear()
    support = np.flatnonzero(scope.dual)
    matrix = scope.square.rows(support)
    if len(state.scopes) > 1:
        linear = scope.residual.copy()
        _carry(matrix, support, -scope.dual[support], linear)
    bounds = scope.lower, scope.upper
    point = scope.dual, scope.residual
    return matrix, linear, *bounds, *point, state.problem.intercept


def _check_separable(state: State) -> None:
    """Rows of infinite cost let the dual grow without bound when they cannot be separated.

    The dual value D bounds the margin any f can reach by 1 / sqrt(2 D): past `_HOPELESS` times
    the data's size in the feature space there is no margin left to find. Where all costs are
    infinite any multiple of a feasible point is feasible: going to the best one grows D as fast
    as the direction allows.
    """
    if not state.hard:
        return
    scope, linear = state.scope, state.problem.linear()
    cone = bool((state.problem.cost == np.inf).all())
    gain = float(np.sum(scope.dual * linear))
    norm = float(np.sum(scope.dual * (linear - scope.residual)))
    if gain <= 0.0:
        return
    value = gain - 0.5 * norm
    if cone:
        value = 0.5 * gain**2 / norm if norm > 0.0 else np.inf
    if not state.problem.separable and 2.0 * value * scope.largest > _HOPELESS:
        raise NotSeparableError
    if cone and gain > 1.5 * norm > 0.0:
        factor = gain / norm
        scope.dual *= factor
        scope.residual -= (factor - 1.0) * (linear - scope.residual)
