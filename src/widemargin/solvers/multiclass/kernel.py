"""The problem of Crammer and Singer over a Gram matrix (see `problem`).

The samples that violate their optimality conditions most are optimized together, a batch at a
time, and the scores of all samples are updated for the change of their dual variables.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin._base import extended
from widemargin._base.callbacks import run_in_slices
from widemargin._base.checkpoint import TaskCheckpoint
from widemargin._base.numeric import EPSILON
from widemargin._base.options import crammer_singer_options as options
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin.kernels import Gram
from widemargin.solvers.multiclass.newton import free_samples, newton_step
from widemargin.solvers.multiclass.problem import CrammerSingerProblem, CrammerSingerState
from widemargin.solvers.multiclass.steps import optimize_batch
from widemargin.solvers.solution import Report, Solution
from widemargin.solvers.states import PASSES
from widemargin.solvers.stopping import rounding_floor


def solve_kernel(
    gram: Gram,
    problem: CrammerSingerProblem,
    report: Report = None,
    checkpoint: TaskCheckpoint | None = None,
    **parameters: Any,
) -> Solution:
    """Solve the problem over a Gram matrix.

    Parameters are those of `solve_linear`, with the Gram matrix in place of the samples; an
    iteration is a batch of samples.
    """
    state = State(problem, gram, **parameters)
    run_in_slices(advance, state, report, checkpoint)
    return finish(state)


@dataclass
class State(CrammerSingerState):
    """State of the solver; ``scores`` has one row for each class."""

    gram: Gram

    saved = (*CrammerSingerState.saved, "scores", "working")

    def __post_init__(self) -> None:
        if not self.gram.positive_semidefinite:
            self.gap_tol = None  # there is no gap to stop on
        super().__post_init__()
        self.norms = self.gram.diagonal() + self.problem.bias**2
        self.scores = np.zeros((self.problem.n_classes, self.problem.size))
        self.working = np.empty(0, dtype=np.intp)
        nonzero = np.flatnonzero(self.dual.any(axis=1))
        step = min(options.batch_samples, self.gram.max_rows)
        for first in range(0, len(nonzero), step):
            samples = nonzero[first : first + step]
            _update_scores(self, samples, self.dual[samples])


def advance(state: State) -> bool:
    """Optimize one batch of samples; return whether the solver has finished."""
    if state.finished:
        return True
    violation = _violations(state)
    worst, rounding = float(violation.max(initial=0.0)), _rounding(state)
    if worst <= max(state.tol, rounding):
        gap = np.nan if state.gap_tol is None else solution_at(state).gap
        state.finish_or_tighten(gap, rounded=worst <= rounding)
    elif state.iterations >= state.max_iter:
        state.set_status(finished=True, converged=False)
    else:
        _optimize_worst(state, violation, max(0.5 * state.tol, options.violation_share * worst))
        state.counts[PASSES] += 1
    return state.finished


def finish(state: State) -> Solution:
    """Return the solution, refined to high precision where that is cheap."""
    small = state.dual.size * state.gram.size <= options.refined_size
    if state.converged and state.gap_tol is None and small:
        for _ in range(options.refine_steps):
            violation = _violations(state)
            if violation.max(initial=0.0) <= max(options.refined_violation, _rounding(state)):
                break
            _optimize_worst(state, violation, 0.5 * options.refined_violation)
    return solution_at(state)


def solution_at(state: State) -> Solution:
    """Return the solution at the state."""
    gram, known = state.gram, state.gram.positive_semidefinite
    norm = float(np.sum(state.dual * state.scores.T))
    roots = np.sqrt(np.abs(state.norms))
    errors = max(gram.rounding(), EPSILON) * float(np.abs(state.dual).sum(axis=1) @ roots) * roots
    return state.certify(extended.exact(state.scores), norm, known, errors)


def _violations(state: State) -> np.ndarray:
    """Return the violation of the optimality conditions of every sample."""
    problem = state.problem
    gradients = problem.gradients(state.scores)
    samples = np.arange(problem.size)
    free = state.dual.T < 0.0
    free[problem.label, samples] = state.dual[samples, problem.label] < problem.cost
    return gradients.max(axis=0) - gradients.min(axis=0, where=free, initial=np.inf)


def _rounding(state: State) -> float:
    """Return the violation that rounding errors of the scores may cause."""
    size = np.abs(state.scores).max(initial=0.0)
    return rounding_floor(1.0 + size, options.kernel_rounding)


def _optimize_worst(state: State, violation: np.ndarray, tol: float) -> None:
    """Optimize the samples that violate most, half of them kept from the last batch."""
    size = min(options.batch_samples, state.gram.max_rows, state.gram.size)
    retained = state.working[-(size // 2) :] if size < state.gram.size else state.working[:0]
    rest = violation.copy()
    rest[retained] = -np.inf
    new = np.argsort(-rest, kind="stable")[: size - len(retained)]
    working = np.concatenate([retained, new])
    problem = state.problem.subset(working)
    matrix = state.gram.block(working, working) + problem.bias**2
    dual, scores = state.dual[working], np.ascontiguousarray(state.scores[:, working])
    converged = optimize_batch(
        matrix, problem.label, problem.margin, problem.cost, state.norms[working], dual, scores,
        state.random, max(tol, _rounding(state)), options.batch_passes,
    )  # fmt: skip
    if not converged:
        free = free_samples(problem, dual)
        free_dual, values = dual[free], np.ascontiguousarray(scores[:, free])
        newton_step(problem.subset(free), matrix[np.ix_(free, free)], free_dual, values)
        dual[free] = free_dual
    change = dual - state.dual[working]
    moved = change.any(axis=1)
    state.dual[working] = dual
    state.working = working
    _update_scores(state, working[moved], change[moved])


def _update_scores(state: State, samples: np.ndarray, change: np.ndarray) -> None:
    """Update all scores for a change of the dual variables of ``samples``."""
    array, positions = state.gram.rows(samples)
    coefficients = np.ascontiguousarray(change.T)
    shift = state.problem.bias**2 * change.sum(axis=0)[:, np.newaxis]

    def update(first):
        columns = slice(first, first + options.update_columns)
        values = array[positions, columns].astype(np.float64, copy=False)
        with single_threaded_blas():
            state.scores[:, columns] += coefficients @ values + shift

    for_each(update, range(0, state.gram.size, options.update_columns))
