"""The problem of Crammer and Singer with linear functions (see `problem`).

Samples are visited in a new random order in every pass. Samples and classes that are optimal are
left out of the passes until the others have converged. With few features the interior-point method
of `interior` takes over after `handover_passes` passes.
"""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base import extended
from widemargin._base.callbacks import run_in_slices
from widemargin._base.checkpoint import TaskCheckpoint
from widemargin._base.numeric import EPSILON
from widemargin._base.options import crammer_singer_options as options
from widemargin._base.options import kernel_options, newton_options
from widemargin._base.threads import single_threaded_blas
from widemargin.kernels.functions import squared_norms
from widemargin.solvers import interior_point
from widemargin.solvers.jit import row_arrays
from widemargin.solvers.multiclass import interior
from widemargin.solvers.multiclass.newton import free_samples, newton_step
from widemargin.solvers.multiclass.problem import CrammerSingerProblem, CrammerSingerState
from widemargin.solvers.multiclass.steps import FULL, WORST, sweep
from widemargin.solvers.solution import Report, Solution
from widemargin.solvers.states import PASSES, POSITION
from widemargin.solvers.stopping import rounding_floor


def solve_linear(
    X: Any,
    problem: CrammerSingerProblem,
    report: Report = None,
    checkpoint: TaskCheckpoint | None = None,
    **parameters: Any,
) -> Solution:
    """Solve the problem with linear functions.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Float64; C-contiguous, or CSR with 32-bit indices and without duplicate entries.
    problem : CrammerSingerProblem
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.
    checkpoint : TaskCheckpoint, optional
        Saves the state after some slices, and resumes it.
    **parameters
        Those of `PassState`. ``dual`` of shape (n, n_classes) is made feasible if it is not.

    Returns
    -------
    Solution
    """
    state = State(problem, X, **parameters)
    run_in_slices(advance, state, report, checkpoint)
    return finish(state)


@dataclass
class State(CrammerSingerState):
    """State of the solver."""

    X: Any
    _: KW_ONLY
    handed_over: bool = False
    best: Any = None

    saved = (
        *CrammerSingerState.saved, "handed_over", "weights", "order", "classes", "active_classes",
        "levels",
    )  # fmt: skip

    def __post_init__(self) -> None:
        cold = self.dual is None
        super().__post_init__()
        (n, n_classes), bias = self.problem.shape, self.problem.bias
        zero = np.zeros((self.X.shape[1] + 1, n_classes))
        self.weights = zero if cold else _combine(self.X, bias, self.dual)
        self.norms = squared_norms(self.X) + bias**2
        # A permutation of the samples, and for each sample one of the classes; the first are
        # active.
        self.order = np.arange(n)
        self.classes = np.tile(np.arange(n_classes, dtype=np.uint32), (n, 1))
        self.active_classes = np.full(n, n_classes)
        self.counts[FULL] = 1
        # The largest violation of this pass, and the one below which all samples become active
        # again.
        self.levels = np.array([0.0, max(1.0, 10.0 * self.tol)])


def advance(state: State) -> bool:
    """Work for about 0.2 seconds; return whether the solver has finished."""
    if not state.finished:
        n, n_classes = state.dual.shape
        per_sample = (state.X.size // n + 1) * n_classes + options.visit_work
        limit = min(state.max_iter, state.iterations + options.newton_passes)
        steps = _descend(state, state.tol, limit, options.slice_work // per_sample + 1)
        state.worked += per_sample * steps
        if state.converged:
            gap = np.nan if state.gap_tol is None else solution_at(state).gap
            state.finish_or_tighten(gap)
        elif state.iterations < state.max_iter:
            state.set_status(finished=False, converged=False)
        if not state.finished:
            _newton_step_if_cheap(state)
        if not state.handed_over and state.iterations >= options.handover_passes:
            state.handed_over = True
            _end_by_interior_point(state)
    return state.finished


def finish(state: State) -> Solution:
    """Return the solution, refined to high precision where that is cheap."""
    if state.best is not None:
        return state.best
    small = state.X.shape[1] * state.dual.size <= options.refined_size
    if state.converged and state.gap_tol is None and small:
        passes = state.iterations
        for _ in range(options.refine_steps):
            _newton_step(state, free_samples(state.problem, state.dual), newton_options.work)
            state.set_status(finished=False, converged=False)
            limit = state.iterations + options.refine_passes
            _descend(state, options.refined_violation, limit, options.slice_work)
            if state.converged:
                break
        state.set_status(finished=True, converged=True)
        state.counts[PASSES] = passes
    solution = solution_at(state)
    strict = state.gap_tol is None and state.tol <= options.strict_tol
    if state.converged and strict and solution.gap > options.accepted_gap:
        _end_by_interior_point(state)
        solution = state.best or replace(solution, converged=not solution.rounded)
    return solution


def solution_at(state: State) -> Solution:
    """Return the solution at the state."""
    # Not the weights of the state, which carry the rounding errors of all steps.
    weights = _combine(state.X, state.problem.bias, state.dual)
    return _certified(state, weights, weights)


def _certified(state: State, weights: np.ndarray, combined: np.ndarray) -> Solution:
    """Return the solution at ``weights``, with the bound given by the dual variables.

    ``combined`` are the weights that the dual variables stand for.

    Where rounding errors may matter, the sums have twice the digits of float64 if that does not
    take too long.
    """
    bias = state.problem.bias
    scores, norm = _scores(state.X, bias, weights).T, float(np.sum(weights * weights))
    roots = np.sqrt(state.norms)
    sizes = float(np.abs(state.dual).sum(axis=1) @ roots), np.sqrt(norm)
    fields = {"weights": weights, "bound_norm": float(np.sum(combined * combined))}
    errors = EPSILON * max(sizes) * roots
    solution = state.certify(extended.exact(scores), norm, True, errors, **fields)
    if solution.rounded and weights.size * state.problem.size <= kernel_options.exact_sum_work:
        dense = state.X.toarray() if sp.issparse(state.X) else state.X
        samples = np.hstack([dense, np.full((len(dense), 1), bias)])
        exact_scores = _exact_product(samples, weights)
        combined, rest = _exact_product(samples.T, state.dual)
        fields["bound_norm"] = float(np.sum(combined * combined) + 2.0 * np.sum(combined * rest))
        precise = state.certify(exact_scores, norm, True, **fields)
        solution = replace(precise, rounded=True) if np.isfinite(precise.gap) else solution
    return solution


def _exact_product(matrix: np.ndarray, columns: np.ndarray) -> extended.Pair:
    """Return the products with twice the digits, one row for each of the columns."""
    pairs = [extended.matrix_product(extended.exact(matrix), extended.exact(c)) for c in columns.T]
    return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


@interior_point.quiet
def _end_by_interior_point(state: State) -> None:
    """Set the solution of the interior-point method, if it is better than the current one."""
    before = solution_at(state)
    with single_threaded_blas():
        inner = interior.start(state.X, state.problem)
        if inner is None:
            return
        run_in_slices(interior.advance, inner)
        candidates = []
        for dual, weights in interior.points(inner):
            state.dual = dual
            combined = _combine(state.X, state.problem.bias, dual)
            candidates.append(_certified(state, weights, combined))
    best = min([before, *candidates], key=lambda solution: solution.gap)
    state.dual = best.dual
    enough = options.accepted_gap if state.gap_tol is None else state.gap_tol
    state.set_status(finished=True, converged=best.gap <= enough)
    state.best = replace(best, converged=state.converged)


def _combine(X: Any, bias: float, dual: np.ndarray) -> np.ndarray:
    weights = np.empty((X.shape[1] + 1, dual.shape[1]))
    with single_threaded_blas():
        weights[:-1] = X.T @ dual
    weights[-1] = bias * dual.sum(axis=0)
    return weights


def _scores(X: Any, bias: float, weights: np.ndarray) -> np.ndarray:
    with single_threaded_blas():
        return X @ weights[:-1] + bias * weights[-1]


def _newton_step_if_cheap(state: State) -> None:
    free = free_samples(state.problem, state.dual)
    n, affordable = len(free), max(state.worked, options.cheap_newton_work)
    work = n * n * (state.X.size / state.problem.size + n) / options.newton_speed
    if n and work <= affordable:
        _newton_step(state, free, options.newton_speed * affordable)
        state.worked = 0.0


def _newton_step(state: State, free: np.ndarray, work: float) -> None:
    """Take a Newton step on the free variables, and restart the pass under way."""
    X, problem = state.X[free], state.problem.subset(free)
    with single_threaded_blas():
        matrix = X @ X.T
    matrix = matrix.toarray() if sp.issparse(matrix) else np.ascontiguousarray(matrix)
    scores = np.ascontiguousarray(_scores(X, problem.bias, state.weights).T)
    before = state.dual[free]
    dual = before.copy()
    if newton_step(problem, matrix + problem.bias**2, dual, scores, work):
        state.dual[free] = dual
        state.weights += _combine(X, problem.bias, dual - before)
        # The violations seen in this pass no longer hold, nor that samples left out are optimal.
        state.counts[[POSITION, FULL]] = 0
        state.levels[WORST] = 0.0


def _descend(state: State, tol: float, max_iter: int, steps: int) -> int:
    size = np.sqrt(state.norms.max(initial=0.0) * np.square(state.weights).sum(axis=0).max())
    tol = max(tol, rounding_floor(1.0 + size, options.linear_rounding))
    problem = state.problem
    return sweep(
        *row_arrays(state.X), problem.bias, problem.label, problem.margin, problem.cost,
        state.norms, state.dual, state.weights, state.order, state.classes, state.active_classes,
        state.counts, state.levels, state.random, tol, max_iter, steps,
    )  # fmt: skip
