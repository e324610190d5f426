"""Crammer and Singer's machine over a Gram matrix (see `crammer_singer`).

The rows that violate most are solved for together, a batch at a time, and the change of their dual
variables is carried over to the scores of all rows.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from widemargin._base.callbacks import run_in_slices
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin.kernels import Gram
from widemargin.solvers.jit.random import random_state
from widemargin.solvers.multiclass.newton import free_rows, leap
from widemargin.solvers.multiclass.problem import (
    FIRST_GAP_TOL,
    SMALLEST_TOL,
    MultiClassSolution,
    certify,
    feasible,
)
from widemargin.solvers.multiclass.steps import settle
from widemargin.solvers.states import Resumable

BATCH_ROWS = 512

_CARRY_COLUMNS = 4096
_BATCH_PASSES = 20
_POLISHED_WORK = 200_000
_POLISH_ROUNDS = 100
_POLISHED_TOL = 1e-10


def solve_gram(
    gram: Gram,
    label: np.ndarray,
    cost: np.ndarray,
    n_classes: int,
    *,
    margin: np.ndarray | None = None,
    bias: float = 0.0,
    tol: float = 1e-3,
    gap_tol: float | None = None,
    max_iter: int = -1,
    seed: int = 0,
    dual: np.ndarray | None = None,
    report: Callable[["State"], bool] | None = None,
) -> MultiClassSolution:
    """Solve the problem over a Gram matrix.

    Parameters are those of `solve_rows`, with the Gram matrix in place of the rows; an iteration is
    a batch of rows.
    """
    state = start(
        gram, label, cost, n_classes, margin=margin, bias=bias, tol=tol, gap_tol=gap_tol,
        max_iter=max_iter, seed=seed, dual=dual,
    )  # fmt: skip
    run_in_slices(advance, state, report)
    return finish(state)


@dataclass
class State(Resumable):
    """Where the solver stands."""

    kept: ClassVar = (
        "dual", "scores", "tol", "random", "iterations", "finished", "converged", "working",
    )  # fmt: skip

    gram: Gram
    label: np.ndarray
    margin: np.ndarray
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


def start(
    gram, label, cost, n_classes, *, margin=None, bias=0.0, tol=1e-3, gap_tol=None, max_iter=-1,
    seed=0, dual=None,
) -> State:  # fmt: skip
    """A state at ``dual``, or at zero."""
    label, cost = np.asarray(label, dtype=np.int64), np.asarray(cost, dtype=np.float64)
    scores = np.zeros((n_classes, gram.size))
    if dual is None:
        dual = np.zeros((gram.size, n_classes))
    else:
        dual = feasible(dual, label, cost, n_classes)
    if not gram.positive_semidefinite:
        gap_tol = None  # there is no gap to stop on
    tol = tol if gap_tol is None else max(tol, FIRST_GAP_TOL)
    margin = np.ones(gram.size) if margin is None else np.asarray(margin, dtype=np.float64)
    random = random_state(seed)
    state = State(gram, label, margin, cost, bias, gap_tol, max_iter, dual, scores, tol, random)
    moved = np.flatnonzero(dual.any(axis=1))
    step = min(BATCH_ROWS, gram.max_rows)
    for first in range(0, len(moved), step):
        part = moved[first : first + step]
        _carry(state, part, dual[part])
    return state


def advance(state: State) -> bool:
    """Work on one batch of rows; True when there is nothing more to do."""
    if state.finished:
        return True
    violation = _violations(state)
    worst = float(violation.max(initial=0.0))
    if worst <= max(state.tol, _rounding(state)):
        state.finished = state.converged = True
        if state.gap_tol is not None:
            state.converged = solution_at(state).gap <= state.gap_tol
            rounded = worst <= _rounding(state)
            if not state.converged and not rounded and state.tol > SMALLEST_TOL:
                state.tol *= 0.1
                state.finished = False
    elif 0 <= state.max_iter <= state.iterations:
        state.finished = True
    else:
        _batch(state, violation, max(0.5 * state.tol, 0.1 * worst))
        state.iterations += 1
    return state.finished


def finish(state: State) -> MultiClassSolution:
    """The solution at the state, brought to high precision where that is cheap."""
    small = state.dual.size * state.gram.size <= _POLISHED_WORK
    if state.converged and state.gap_tol is None and small:
        for _ in range(_POLISH_ROUNDS):
            violation = _violations(state)
            if violation.max(initial=0.0) <= max(_POLISHED_TOL, _rounding(state)):
                break
            _batch(state, violation, 0.5 * _POLISHED_TOL)
    return solution_at(state)


def solution_at(state: State) -> MultiClassSolution:
    """The solution as far as it is known."""
    dual = state.dual.copy()
    norm = float(np.sum(dual * state.scores.T))
    return certify(state, dual, None, state.scores, norm, state.gram.positive_semidefinite)


def _violations(state: State) -> np.ndarray:
    """By how much every row violates its optimality conditions."""
    rows = np.arange(state.gram.size)
    gradient = state.scores + state.margin
    gradient[state.label, rows] -= state.margin
    free = state.dual.T < 0.0
    free[state.label, rows] = state.dual[rows, state.label] < state.cost
    return gradient.max(axis=0) - gradient.min(axis=0, where=free, initial=np.inf)


def _rounding(state: State) -> float:
    """Violations below this are rounding errors of the scores."""
    size = np.abs(state.scores).max(initial=0.0)
    return 64.0 * np.finfo(float).eps * (1.0 + float(size))


def _batch(state: State, violation: np.ndarray, tol: float) -> None:
    """Solve over the most violating rows, half of them kept from the last batch."""
    size = min(BATCH_ROWS, state.gram.max_rows, state.gram.size)
    kept = state.working[-(size // 2) :] if size < state.gram.size else state.working[:0]
    rest = violation.copy()
    rest[kept] = -np.inf
    new = np.argsort(-rest, kind="stable")[: size - len(kept)]
    working = np.concatenate([kept, new])
    square = state.gram.block(working, working) + state.bias**2
    dual, scores = state.dual[working], np.ascontiguousarray(state.scores[:, working])
    fixed = state.label[working], state.margin[working], state.cost[working]
    tol = max(tol, _rounding(state))
    norms = state.norms[working]
    if not settle(square, *fixed, norms, dual, scores, state.random, tol, _BATCH_PASSES):
        _leap(square, *fixed, dual, scores)
    change = dual - state.dual[working]
    moved = change.any(axis=1)
    state.dual[working] = dual
    state.working = working
    _carry(state, working[moved], change[moved])


def _leap(square, label, margin, cost, dual, scores) -> None:
    """A Newton step on the free variables of a batch that passes have not settled."""
    free = free_rows(dual, label, cost)
    part, values = dual[free], np.ascontiguousarray(scores[:, free])
    if leap(square[np.ix_(free, free)], label[free], margin[free], cost[free], part, values):
        with single_threaded_blas():
            scores += (part - dual[free]).T @ square[free]
        dual[free] = part


def _carry(state: State, rows: np.ndarray, change: np.ndarray) -> None:
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
