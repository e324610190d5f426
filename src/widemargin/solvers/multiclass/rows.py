"""Crammer and Singer's machine with linear functions (see `crammer_singer`).

Rows come in a new random order in every pass. Rows and classes at rest are left out until the
others have settled.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from widemargin._base.callbacks import run_in_slices
from widemargin._base.threads import single_threaded_blas
from widemargin.kernels.functions import squared_norms
from widemargin.solvers.jit.random import random_state
from widemargin.solvers.jit.rows import count_entries, row_arrays
from widemargin.solvers.multiclass.newton import MOST_WORK, free_rows, leap
from widemargin.solvers.multiclass.problem import (
    FIRST_GAP_TOL,
    SMALLEST_TOL,
    MultiClassSolution,
    certify,
    feasible,
)
from widemargin.solvers.multiclass.steps import FULL, POSITION, WORST, sweep
from widemargin.solvers.states import PASSES, PassState

_SLICE_WORK = 50_000_000
_STEP_WORK = 50
_LEAP_PASSES = 5
_CHEAP_LEAP = 2_000_000
# A multiplication in a leap costs a fraction of one in a pass, where rows come in random order.
_LEAP_SPEED = 8
_POLISHED_WORK = 200_000
_POLISHED_TOL = 1e-10
_POLISH_ROUNDS = 100
_POLISH_PASSES = 20
_WITHOUT_END = np.iinfo(np.int64).max


def solve_rows(
    X,
    label: np.ndarray,
    cost: np.ndarray,
    n_classes: int,
    *,
    margin: np.ndarray | None = None,
    bias: float = 0.0,
    tol: float = 1e-4,
    gap_tol: float | None = None,
    max_iter: int = 1000,
    seed: int = 0,
    dual: np.ndarray | None = None,
    report: Callable[["State"], bool] | None = None,
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
    margin : ndarray of shape (n,), optional
        Positive; 1 for all rows if it is not given.
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
        Point to start from, made feasible if it is not.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.

    Returns
    -------
    MultiClassSolution
    """
    state = start(
        X, label, cost, n_classes, margin=margin, bias=bias, tol=tol, gap_tol=gap_tol,
        max_iter=max_iter, seed=seed, dual=dual,
    )  # fmt: skip
    run_in_slices(advance, state, report)
    return finish(state)


@dataclass
class State(PassState):
    """Where the solver stands."""

    kept: ClassVar = (
        "dual", "weights", "tol", "order", "classes", "active_classes", "counts", "levels",
        "random", "worked",
    )  # fmt: skip

    X: np.ndarray
    label: np.ndarray
    margin: np.ndarray
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
    # As in `Passing`; then active rows, position in this pass, whether all was active at its start.
    counts: np.ndarray
    # The worst violation of this pass, and the one below which everything is made active again.
    levels: np.ndarray
    random: np.ndarray
    # Work since the last leap, which is taken when it costs no more than that.
    worked: float = 0.0
    norms: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.norms = squared_norms(self.X) + self.bias**2


def start(
    X, label, cost, n_classes, *, margin=None, bias=0.0, tol=1e-4, gap_tol=None, max_iter=1000,
    seed=0, dual=None,
) -> State:  # fmt: skip
    """A state at ``dual``, or at zero."""
    n, d = X.shape
    label, cost = np.asarray(label, dtype=np.int64), np.asarray(cost, dtype=np.float64)
    if dual is None:
        dual, weights = np.zeros((n, n_classes)), np.zeros((d + 1, n_classes))
    else:
        dual = feasible(dual, label, cost, n_classes)
        weights = _combine(X, bias, dual)
    tol = tol if gap_tol is None else max(tol, FIRST_GAP_TOL)
    return State(
        X,
        label,
        np.ones(n) if margin is None else np.asarray(margin, dtype=np.float64),
        cost,
        bias,
        gap_tol,
        max_iter if max_iter >= 0 else _WITHOUT_END,
        dual,
        weights,
        tol,
        order=np.arange(n),
        classes=np.tile(np.arange(n_classes, dtype=np.uint32), (n, 1)),
        active_classes=np.full(n, n_classes),
        counts=np.array([0, 0, 0, n, 0, 1]),
        levels=np.array([0.0, max(1.0, 10.0 * tol)]),
        random=random_state(seed),
    )


def advance(state: State) -> bool:
    """Work for about a fifth of a second; True when there is nothing more to do."""
    if not state.finished:
        n, n_classes = state.dual.shape
        per_row = (count_entries(state.X) // n + 1) * n_classes + _STEP_WORK
        limit = min(state.max_iter, state.iterations + _LEAP_PASSES)
        state.worked += per_row * _work(state, state.tol, limit, _SLICE_WORK // per_row + 1)
        if state.converged:
            _end_by_gap(state)
        elif state.iterations < state.max_iter:
            state.set_status(finished=False, converged=False)
        if not state.finished:
            _leap_if_cheap(state)
    return state.finished


def finish(state: State) -> MultiClassSolution:
    """The solution at the state, brought to high precision where that is cheap."""
    small = state.X.shape[1] * state.dual.size <= _POLISHED_WORK
    if state.converged and state.gap_tol is None and small:
        passes = state.iterations
        for _ in range(_POLISH_ROUNDS):
            _leap(state, free_rows(state.dual, state.label, state.cost))
            state.set_status(finished=False, converged=False)
            _work(state, _POLISHED_TOL, state.iterations + _POLISH_PASSES, _SLICE_WORK)
            if state.converged:
                break
        state.set_status(finished=True, converged=True)
        state.counts[PASSES] = passes
    return solution_at(state)


def solution_at(state: State) -> MultiClassSolution:
    """The solution as far as it is known."""
    dual = state.dual.copy()
    weights = _combine(state.X, state.bias, dual)
    with single_threaded_blas():
        scores = state.X @ weights[:-1] + state.bias * weights[-1]
    return certify(state, dual, weights, scores.T, float(np.sum(weights * weights)))


def _combine(X, bias, dual) -> np.ndarray:
    with single_threaded_blas():
        return np.vstack([X.T @ dual, bias * dual.sum(axis=0)])


def _end_by_gap(state: State) -> None:
    """Where the gap decides, go on at a smaller tolerance until it is closed."""
    if state.gap_tol is not None:
        closed = solution_at(state).gap <= state.gap_tol
        tighter = not closed and state.tol > SMALLEST_TOL
        if tighter:
            state.tol *= 0.1
        state.set_status(finished=not tighter, converged=closed)


def _leap_if_cheap(state: State) -> None:
    free = free_rows(state.dual, state.label, state.cost)
    affordable = max(state.worked, _CHEAP_LEAP)
    if _leap_work(state, free) <= affordable:
        _leap(state, free, _LEAP_SPEED * affordable)
        state.worked = 0.0


def _leap_work(state: State, free: np.ndarray) -> float:
    """About how much work a leap is; infinite where it has nothing to be about."""
    n = len(free)
    if not n:
        return np.inf
    return n * n * (count_entries(state.X) / len(state.dual) + n) / _LEAP_SPEED


def _leap(state: State, free: np.ndarray, most_work: float = MOST_WORK) -> None:
    """A Newton step on free variables, after which the pass under way starts afresh."""
    part = state.X[free]
    with single_threaded_blas():
        square = part @ part.T
        scores = part @ state.weights[:-1] + state.bias * state.weights[-1]
    square = square.toarray() if sp.issparse(square) else np.ascontiguousarray(square)
    before = state.dual[free]
    dual, scores = before.copy(), np.ascontiguousarray(scores.T)
    fixed = state.label[free], state.margin[free], state.cost[free]
    if leap(square + state.bias**2, *fixed, dual, scores, most_work):
        state.dual[free] = dual
        state.weights += _combine(part, state.bias, dual - before)
        # What this pass has seen no longer holds, nor that the rows left out of it are at rest.
        state.counts[[POSITION, FULL]] = 0
        state.levels[WORST] = 0.0


def _work(state: State, tol: float, max_iter: int, steps: int) -> int:
    # Violations below this are rounding errors of the scores.
    size = np.sqrt(state.norms.max(initial=0.0) * np.square(state.weights).sum(axis=0).max())
    rounding = 8.0 * np.finfo(float).eps * (1.0 + float(size))
    return sweep(
        *row_arrays(state.X),
        state.bias,
        state.label,
        state.margin,
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
