"""The multi-class machine of Crammer and Singer: one problem over the functions of all classes.

    min over f   1/2 sum_k ||f_k||^2  +  sum_i cost_i * max_k (1[k != y_i] + f_k(x_i) - f_y_i(x_i))

Its dual, with f_k = sum_i alpha_ik k(x_i, .):

    max over alpha   sum_i alpha_iy_i - 1/2 sum_k ||f_k||^2
    subject to       sum_k alpha_ik = 0,   alpha_iy_i <= cost_i,   alpha_ik <= 0 for k != y_i

One row at a time is moved to its best dual variables with those of all others fixed (Keerthi et
al., 2008). With g_k = f_k(x_i) + 1[k != y_i], curvature a = k(x_i, x_i), bounds u_k and
top_k = g_k + a (u_k - alpha_k), they are

    alpha_k = u_k - max(0, top_k - level) / a    where   sum_k max(0, top_k - level) = a cost_i

which is exact and needs no search. A row is optimal when no g_k exceeds the least one among the
classes that are not at their bound; the largest excess is what ``tol`` is about, as in liblinear.

`solve_rows` keeps the weights of linear functions, leaving out rows and classes at rest;
`solve_gram` works on batches of violating rows of a Gram matrix and keeps the scores of all rows.
The constant feature ``bias`` stands for an intercept: it adds bias^2 to every kernel value.

References
----------
K. Crammer, Y. Singer: On the algorithmic implementation of multiclass kernel-based vector
machines. JMLR 2001.
S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin: A sequential dual method for
large scale multi-class linear SVMs. KDD 2008.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from widemargin._core.compiled import compiled
from widemargin._core.progress import drive
from widemargin._core.threads import for_each, single_threaded_blas
from widemargin.kernels import Gram
from widemargin.kernels.functions import squared_norms

BATCH_ROWS = 512

_SLICE_WORK = 50_000_000
_STEP_WORK = 50
_CARRY_COLUMNS = 4096
_BATCH_PASSES = 20
_POLISHED_WORK = 200_000
_POLISH_WORK = 400_000_000
_POLISHED_TOL = 1e-10
_FIRST_GAP_TOL = 0.1
_SMALLEST_TOL = 1e-13


@dataclass(frozen=True)
class MultiClassSolution:
    """What a solver found.

    Attributes
    ----------
    dual : ndarray of shape (n, n_classes)
    weights : ndarray of shape (d + 1, n_classes) or None
        Of the features and of the constant one; None for a solution over a Gram matrix.
    objective : float
    dual_objective : float
        A lower bound of the objective where the kernel is positive semidefinite.
    gap : float
        (objective - dual_objective) / objective; nan where the kernel is not known to be positive
        semidefinite.
    iterations : int
        Passes over rows, or batches of them.
    converged : bool
    """

    dual: np.ndarray
    weights: np.ndarray | None
    objective: float
    dual_objective: float
    gap: float
    iterations: int
    converged: bool


def solve_rows(
    X,
    label: np.ndarray,
    cost: np.ndarray,
    n_classes: int,
    *,
    bias: float = 0.0,
    tol: float = 1e-4,
    gap_tol: float | None = None,
    max_iter: int = 1000,
    seed: int = 0,
    dual: np.ndarray | None = None,
    report: Callable[["RowsState"], bool] | None = None,
) -> MultiClassSolution:
    """Solve the problem with linear functions.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Float64; C-contiguous, or CSR without duplicate entries.
    label : ndarray of shape (n,)
        Whole numbers from 0 to ``n_classes - 1``.
    cost : ndarray of shape (n,)
        Positive and finite.
    n_classes : int
    bias : float, default=0.0
        The constant feature; 0 for no intercept.
    tol : float, default=1e-4
        Largest violation of a row's optimality conditions.
    gap_tol : float, optional
        Stop on this relative duality gap instead.
    max_iter : int, default=1000
        Most passes over the rows; -1 for no limit.
    seed : int, default=0
        Of the order of rows.
    dual : ndarray of shape (n, n_classes), optional
        Feasible point to start from.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.

    Returns
    -------
    MultiClassSolution
    """
    state = start_rows(
        X, label, cost, n_classes, bias=bias, tol=tol, gap_tol=gap_tol, max_iter=max_iter,
        seed=seed, dual=dual,
    )  # fmt: skip
    drive(lambda: advance_rows(state), lambda: report is not None and report(state))
    return finish_rows(state)


def solve_gram(
    gram: Gram,
    label: np.ndarray,
    cost: np.ndarray,
    n_classes: int,
    *,
    bias: float = 0.0,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    max_iter: int = -1,
    seed: int = 0,
    dual: np.ndarray | None = None,
    report: Callable[["GramState"], bool] | None = None,
) -> MultiClassSolution:
    """Solve the problem over a Gram matrix.

    Parameters are those of `solve_rows`, with the Gram matrix in place of the rows; an iteration is
    a batch of rows.
    """
    state = start_gram(
        gram, label, cost, n_classes, bias=bias, tol=tol, gap_tol=gap_tol, max_iter=max_iter,
        seed=seed, dual=dual,
    )  # fmt: skip
    drive(lambda: advance_gram(state), lambda: report is not None and report(state))
    return finish_gram(state)


@dataclass
class RowsState:
    """Where `solve_rows` stands: `numbers` is all that is needed to go on elsewhere."""

    X: np.ndarray
    label: np.ndarray
    cost: np.ndarray
    bias: float
    gap_tol: float | None
    max_iter: int
    dual: np.ndarray
    weights: np.ndarray
    tol: float
    # A permutation of the rows, and for each row one of the classes; the first so many are active.
    order: np.ndarray
    classes: np.ndarray
    active_classes: np.ndarray
    # Active rows, position in this pass, passes, whether all was active at its start, over, by tol.
    counts: np.ndarray
    # The worst violation of this pass, and the one below which everything is made active again.
    levels: np.ndarray
    random: np.ndarray
    norms: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.norms = squared_norms(self.X) + self.bias**2

    @property
    def iterations(self) -> int:
        return int(self.counts[_PASSES])

    @property
    def finished(self) -> bool:
        return bool(self.counts[_FINISHED])

    @property
    def converged(self) -> bool:
        return bool(self.counts[_CONVERGED])

    def numbers(self) -> dict[str, object]:
        """The state as plain arrays and numbers, for a checkpoint."""
        names = (
            "dual", "weights", "tol", "order", "classes", "active_classes", "counts", "levels",
            "random",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def resume(self, numbers: dict) -> "RowsState":
        """Go on from the `numbers` of another state of the same problem."""
        return _resume(self, numbers)


@dataclass
class GramState:
    """Where `solve_gram` stands: `numbers` is all that is needed to go on elsewhere."""

    gram: Gram
    label: np.ndarray
    cost: np.ndarray
    bias: float
    gap_tol: float | None
    max_iter: int
    dual: np.ndarray
    # One row for each class.
    scores: np.ndarray
    tol: float
    random: np.ndarray
    iterations: int = 0
    finished: bool = False
    converged: bool = False
    working: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    norms: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.norms = self.gram.diagonal() + self.bias**2

    def numbers(self) -> dict[str, object]:
        """The state as plain arrays and numbers, for a checkpoint."""
        names = (
            "dual", "scores", "tol", "random", "iterations", "finished", "converged", "working",
        )  # fmt: skip
        return {name: getattr(self, name) for name in names}

    def resume(self, numbers: dict) -> "GramState":
        """Go on from the `numbers` of another state of the same problem."""
        return _resume(self, numbers)


def start_rows(
    X, label, cost, n_classes, *, bias=0.0, tol=1e-4, gap_tol=None, max_iter=1000, seed=0, dual=None
) -> RowsState:
    """A state at ``dual``, or at zero."""
    n, d = X.shape
    label, cost = np.asarray(label, dtype=np.int64), np.asarray(cost, dtype=np.float64)
    if dual is None:
        dual, weights = np.zeros((n, n_classes)), np.zeros((d + 1, n_classes))
    else:
        dual = _check_dual(dual, label, cost, n_classes)
        weights = _combine(X, bias, dual)
    tol = tol if gap_tol is None else max(tol, _FIRST_GAP_TOL)
    return RowsState(
        X,
        label,
        cost,
        bias,
        gap_tol,
        max_iter if max_iter >= 0 else np.iinfo(np.int64).max,
        dual,
        weights,
        tol,
        order=np.arange(n),
        classes=np.tile(np.arange(n_classes, dtype=np.int32), (n, 1)),
        active_classes=np.full(n, n_classes),
        counts=np.array([n, 0, 0, 1, 0, 0]),
        levels=np.array([0.0, max(1.0, 10.0 * tol)]),
        random=_random(seed),
    )


def start_gram(
    gram, label, cost, n_classes, *, bias=0.0, tol=1e-3, gap_tol=None, max_iter=-1, seed=0,
    dual=None,
) -> GramState:  # fmt: skip
    """A state at ``dual``, or at zero."""
    label, cost = np.asarray(label, dtype=np.int64), np.asarray(cost, dtype=np.float64)
    scores = np.zeros((n_classes, gram.size))
    if dual is None:
        dual = np.zeros((gram.size, n_classes))
    else:
        dual = _check_dual(dual, label, cost, n_classes)
    tol = tol if gap_tol is None else max(tol, _FIRST_GAP_TOL)
    state = GramState(gram, label, cost, bias, gap_tol, max_iter, dual, scores, tol, _random(seed))
    moved = np.flatnonzero(dual.any(axis=1))
    step = min(BATCH_ROWS, gram.most_rows)
    for first in range(0, len(moved), step):
        part = moved[first : first + step]
        _carry(state, part, dual[part])
    return state


def advance_rows(state: RowsState) -> bool:
    """Work for about a fifth of a second; True when there is nothing more to do."""
    if not state.finished:
        n, n_classes = state.dual.shape
        entries = state.X.nnz if sp.issparse(state.X) else state.X.size
        steps = _SLICE_WORK // ((entries // n + 1) * n_classes + _STEP_WORK) + 1
        _work(state, state.tol, state.max_iter, steps)
        if state.converged and state.gap_tol is not None:
            closed = rows_solution_at(state).gap <= state.gap_tol
            if not closed and state.tol > _SMALLEST_TOL:
                state.tol *= 0.1
                state.counts[_FINISHED] = 0
            state.counts[_CONVERGED] = closed
    return state.finished


def advance_gram(state: GramState) -> bool:
    """Work on one batch of rows; True when there is nothing more to do."""
    if state.finished:
        return True
    violation = _violations(state)
    worst = float(violation.max(initial=0.0))
    if worst <= max(state.tol, _rounding(state)):
        state.finished = state.converged = True
        if state.gap_tol is not None:
            state.converged = gram_solution_at(state).gap <= state.gap_tol
            if not state.converged and worst > _SMALLEST_TOL:
                state.tol *= 0.1
                state.finished = False
    elif 0 <= state.max_iter <= state.iterations:
        state.finished = True
    else:
        _batch(state, violation, max(0.5 * state.tol, 0.1 * worst))
        state.iterations += 1
    return state.finished


def finish_rows(state: RowsState) -> MultiClassSolution:
    """The solution at the state, brought to high precision where that is cheap."""
    work = state.X.shape[1] * state.dual.size
    if state.converged and state.gap_tol is None and work <= _POLISHED_WORK:
        passes = state.iterations
        state.counts[_FINISHED] = 0
        _work(
            state, _POLISHED_TOL, np.iinfo(np.int64).max, _POLISH_WORK // (work // len(state.dual))
        )
        state.counts[_FINISHED] = state.counts[_CONVERGED] = 1
        state.counts[_PASSES] = passes
    return rows_solution_at(state)


def finish_gram(state: GramState) -> MultiClassSolution:
    """The solution at the state, brought to high precision where that is cheap."""
    small = state.dual.size * state.gram.size <= _POLISHED_WORK
    if state.converged and state.gap_tol is None and small:
        for _ in range(_POLISH_WORK // (_POLISHED_WORK * _BATCH_PASSES)):
            violation = _violations(state)
            if violation.max(initial=0.0) <= max(_POLISHED_TOL, _rounding(state)):
                break
            _batch(state, violation, 0.5 * _POLISHED_TOL)
    return gram_solution_at(state)


def rows_solution_at(state: RowsState) -> MultiClassSolution:
    """The solution as far as it is known."""
    dual = state.dual.copy()
    weights = _combine(state.X, state.bias, dual)
    with single_threaded_blas():
        scores = state.X @ weights[:-1] + state.bias * weights[-1]
    norm = float(np.sum(weights * weights))
    return _certify(state, dual, weights, scores.T, norm, True)


def gram_solution_at(state: GramState) -> MultiClassSolution:
    """The solution as far as it is known."""
    dual = state.dual.copy()
    norm = float(np.sum(dual * state.scores.T))
    known = state.gram.positive_semidefinite
    return _certify(state, dual, None, state.scores, norm, known)


def _certify(state, dual, weights, scores, norm, known) -> MultiClassSolution:
    rows = np.arange(len(dual))
    own = scores[state.label, rows]
    rivals = scores + 1.0
    rivals[state.label, rows] = own
    loss = np.sum(state.cost * (rivals.max(axis=0) - own))
    objective = 0.5 * norm + float(loss)
    dual_objective = float(dual[rows, state.label].sum()) - 0.5 * norm
    gap = max(0.0, objective - dual_objective) / max(objective, np.finfo(float).tiny)
    return MultiClassSolution(
        dual,
        weights,
        objective,
        dual_objective,
        gap if known else np.nan,
        state.iterations,
        state.converged,
    )


def _check_dual(dual, label, cost, n_classes) -> np.ndarray:
    """A feasible copy of ``dual``, or a ValueError if it is not near one."""
    dual = np.array(dual, dtype=np.float64)
    rows = np.arange(len(label))
    if dual.shape != (len(label), n_classes):
        raise ValueError(f"dual must have shape {(len(label), n_classes)}, got {dual.shape}.")
    rivals = np.minimum(dual, 0.0)
    rivals[rows, label] = 0.0
    own = -rivals.sum(axis=1)
    scale = np.maximum(1.0, cost)
    if (
        not (np.abs(dual[rows, label] - own) <= 1e-9 * scale).all()
        or not (own <= cost + 1e-9 * scale).all()
    ):
        raise ValueError("dual must sum to 0 over classes, within 0 and cost for each row's own.")
    rivals *= (cost / np.maximum(own, cost))[:, np.newaxis]
    rivals[rows, label] = np.minimum(-rivals.sum(axis=1), cost)
    return rivals


def _combine(X, bias, dual) -> np.ndarray:
    with single_threaded_blas():
        return np.vstack([X.T @ dual, bias * dual.sum(axis=0)])


def _random(seed) -> np.ndarray:
    return np.array([seed ^ 0x9E3779B97F4A7C15], dtype=np.uint64)


def _resume(state, numbers):
    for name, value in numbers.items():
        setattr(state, name, value.copy() if isinstance(value, np.ndarray) else value)
    return state


def _work(state: RowsState, tol: float, max_iter: int, steps: int) -> None:
    size = np.sqrt(state.norms.max(initial=0.0) * np.square(state.weights).sum(axis=0).max())
    rounding = 8.0 * np.finfo(float).eps * (1.0 + float(size))
    if sp.issparse(state.X):
        parts = state.X.data, state.X.indices.view(np.uint32), state.X.indptr.view(np.uint32)
    else:
        parts = state.X.ravel(), None, None
    _sweep(
        *parts,
        state.bias,
        state.label,
        state.cost,
        state.norms,
        state.dual,
        state.weights,
        state.order,
        state.classes,
        state.active_classes,
        state.counts,
        state.levels,
        state.random,
        max(tol, rounding),
        max_iter,
        steps,
    )


def _violations(state: GramState) -> np.ndarray:
    """By how much every row violates its optimality conditions."""
    rows = np.arange(state.gram.size)
    gradient = state.scores + 1.0
    gradient[state.label, rows] -= 1.0
    free = state.dual.T < 0.0
    free[state.label, rows] = state.dual[rows, state.label] < state.cost
    return gradient.max(axis=0) - gradient.min(axis=0, where=free, initial=np.inf)


def _rounding(state: GramState) -> float:
    """Violations below this are rounding errors of the scores."""
    size = np.abs(state.scores).max(initial=0.0)
    return 64.0 * np.finfo(float).eps * (1.0 + float(size))


def _batch(state: GramState, violation: np.ndarray, tol: float) -> None:
    """Solve over the most violating rows, half of them kept from the last batch."""
    size = min(BATCH_ROWS, state.gram.most_rows, state.gram.size)
    kept = state.working[-(size // 2) :] if size < state.gram.size else state.working[:0]
    rest = violation.copy()
    rest[kept] = -np.inf
    new = np.argsort(-rest, kind="stable")[: size - len(kept)]
    working = np.concatenate([kept, new])
    square = state.gram.block(working, working) + state.bias**2
    dual, scores = state.dual[working], np.ascontiguousarray(state.scores[:, working])
    _settle(
        square,
        state.label[working],
        state.cost[working],
        state.norms[working],
        dual,
        scores,
        state.random,
        max(tol, _rounding(state)),
        _BATCH_PASSES,
    )
    change = dual - state.dual[working]
    moved = change.any(axis=1)
    state.dual[working] = dual
    state.working = working
    _carry(state, working[moved], change[moved])


def _carry(state: GramState, rows: np.ndarray, change: np.ndarray) -> None:
    """Add to all scores what a change of the dual variables of ``rows`` makes of them."""
    array, places = state.gram.rows(rows)
    coefficients = np.ascontiguousarray(change.T)
    shift = state.bias**2 * change.sum(axis=0)[:, np.newaxis]

    def add(first):
        columns = slice(first, first + _CARRY_COLUMNS)
        values = array[places, columns].astype(np.float64, copy=False)
        with single_threaded_blas():
            state.scores[:, columns] += coefficients @ values + shift

    for_each(add, range(0, state.gram.size, _CARRY_COLUMNS))


_ACTIVE, _POSITION, _PASSES, _FULL, _FINISHED, _CONVERGED = range(6)
_WORST, _LOOSE = range(2)


@compiled
def _sweep(
    data, indices, indptr, bias, label, cost, norms, dual, weights, order, classes,
    active_classes, counts, levels, random, tol, max_iter, steps,
):  # fmt: skip
    """Best responses of rows, pass after pass, until the end or until ``steps`` are done."""
    n, n_classes = dual.shape
    gradient, change = np.empty(n_classes), np.empty(n_classes)
    for _ in range(steps):
        if counts[_POSITION] == counts[_ACTIVE]:
            counts[_PASSES] += 1
            counts[_POSITION] = 0
            if levels[_WORST] <= max(levels[_LOOSE], tol):
                if levels[_WORST] <= tol and counts[_FULL] == 1:
                    counts[_FINISHED] = counts[_CONVERGED] = 1
                    levels[_WORST] = 0.0
                    return
                counts[_ACTIVE], counts[_FULL] = n, 1
                active_classes[:] = n_classes
                levels[_LOOSE] = max(0.5 * levels[_LOOSE], tol)
            else:
                counts[_FULL] = 0
            levels[_WORST] = 0.0
        if counts[_PASSES] >= max_iter:
            counts[_FINISHED] = 1
            return
        position, active = counts[_POSITION], counts[_ACTIVE]
        other = position + _below(random, active - position)
        i = order[other]
        order[other] = order[position]
        order[position] = i
        members, own, mine = classes[i], label[i], dual[i]
        m = active_classes[i]
        _gradient(data, indices, indptr, i, bias, own, members, m, weights, gradient)
        highest, lowest = _extremes(gradient, mine, own, cost[i], members, m)
        m = _rest(gradient, mine, own, cost[i], members, m, lowest)
        active_classes[i] = m
        if m <= 1:
            counts[_ACTIVE] -= 1
            order[position] = order[counts[_ACTIVE]]
            order[counts[_ACTIVE]] = i
            continue
        counts[_POSITION] += 1
        levels[_WORST] = max(levels[_WORST], highest - lowest)
        if highest - lowest > 0.1 * tol:
            _respond(gradient, mine, own, cost[i], norms[i], members, m, change)
            _add(data, indices, indptr, i, bias, members, m, change, weights)


@compiled
def _settle(square, label, cost, norms, dual, scores, random, tol, passes):
    """Best responses of the rows of a batch until none violates by more than tol."""
    n, n_classes = dual.shape
    gradient, change = np.empty(n_classes), np.empty(n_classes)
    members, order = np.arange(n_classes), np.arange(n)
    for _ in range(passes):
        worst = 0.0
        for position in range(n):
            other = position + _below(random, n - position)
            i = order[other]
            order[other] = order[position]
            order[position] = i
            own, mine = label[i], dual[i]
            for k in range(n_classes):
                gradient[k] = scores[k, i] + (0.0 if k == own else 1.0)
            highest, lowest = _extremes(gradient, mine, own, cost[i], members, n_classes)
            worst = max(worst, highest - lowest)
            if highest - lowest > 0.1 * tol:
                _respond(gradient, mine, own, cost[i], norms[i], members, n_classes, change)
                row = square[i]
                for k in range(n_classes):
                    if change[k] != 0.0:
                        line, amount = scores[k], change[k]
                        for j in range(n):
                            line[j] += amount * row[j]
        if worst <= tol:
            return


@compiled
def _extremes(gradient, mine, own, cost, members, m):
    """The greatest g of all active classes, and the least of those not at their bound."""
    highest, lowest = -np.inf, np.inf
    for t in range(m):
        k = members[t]
        highest = max(highest, gradient[k])
        if mine[k] < (cost if k == own else 0.0):
            lowest = min(lowest, gradient[k])
    return highest, lowest


@compiled
def _rest(gradient, mine, own, cost, members, m, lowest):
    """Move classes held at their bounds behind the active ones; how many stay active."""
    t = 0
    while t < m:
        k = members[t]
        if gradient[k] < lowest and mine[k] == (cost if k == own else 0.0):
            m -= 1
            members[t] = members[m]
            members[m] = k
        else:
            t += 1
    return m


@compiled
def _respond(gradient, mine, own, cost, norm, members, m, change):
    """Give a row its best dual variables; ``change`` is by how much they changed.

    The level is found by dropping classes that do not reach it until all that are left do.
    """
    curvature = norm if norm > 0.0 else 1.0
    for t in range(m):
        k = members[t]
        bound = cost if k == own else 0.0
        change[k] = gradient[k] + curvature * (bound - mine[k])
    level, reaching = -np.inf, m + 1
    while True:
        total, count = -curvature * cost, 0
        for t in range(m):
            top = change[members[t]]
            if top > level:
                total += top
                count += 1
        if count >= reaching or count == 0:  # rounding may bring a dropped class back
            break
        level, reaching = total / count, count
    for t in range(m):
        k = members[t]
        bound = cost if k == own else 0.0
        new = bound - max(0.0, change[k] - level) / curvature
        change[k] = new - mine[k]
        mine[k] = new


@compiled
def _gradient(data, indices, indptr, i, bias, own, members, m, weights, gradient):
    """g of the active classes of row i."""
    n_classes = gradient.shape[0]
    constant = weights.shape[0] - 1
    if indices is None:
        first, last = i * constant, (i + 1) * constant
    else:
        first, last = np.int64(indptr[i]), np.int64(indptr[i + 1])
    if 2 * m > n_classes:
        line = weights[constant]
        for k in range(n_classes):
            gradient[k] = 1.0 + bias * line[k]
        for p in range(first, last):
            value = data[p]
            line = weights[p - first] if indices is None else weights[indices[p]]
            for k in range(n_classes):
                gradient[k] += value * line[k]
    else:
        for t in range(m):
            gradient[members[t]] = 1.0 + bias * weights[constant, members[t]]
        for p in range(first, last):
            value = data[p]
            line = weights[p - first] if indices is None else weights[indices[p]]
            for t in range(m):
                gradient[members[t]] += value * line[members[t]]
    gradient[own] -= 1.0


@compiled
def _add(data, indices, indptr, i, bias, members, m, change, weights):
    """Carry a change of the dual variables of row i over to the weights."""
    constant = weights.shape[0] - 1
    moved = np.empty(m, np.int64)
    count = 0
    for t in range(m):
        if change[members[t]] != 0.0:
            moved[count] = members[t]
            count += 1
    if indices is None:
        first, last = i * constant, (i + 1) * constant
    else:
        first, last = np.int64(indptr[i]), np.int64(indptr[i + 1])
    for p in range(first, last):
        value = data[p]
        line = weights[p - first] if indices is None else weights[indices[p]]
        for t in range(count):
            line[moved[t]] += value * change[moved[t]]
    for t in range(count):
        weights[constant, moved[t]] += bias * change[moved[t]]


@compiled
def _below(random, bound):
    """A random whole number from 0 to below ``bound``, by Marsaglia's xorshift."""
    z = random[0]
    z ^= z << np.uint64(13)
    z ^= z >> np.uint64(7)
    z ^= z << np.uint64(17)
    random[0] = z
    # The high bits as a fraction of the bound: no division.
    return np.int64(((z >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))
