"""The problem of Crammer and Singer with linear functions (see `problem`).

Samples are visited in a new random order in every pass. Samples and classes that are optimal are
left out of the passes until the others have converged.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from widemargin._base.callbacks import run_in_slices
from widemargin._base.options import crammer_singer_options as options
from widemargin._base.options import newton_options
from widemargin._base.threads import single_threaded_blas
from widemargin.kernels.functions import squared_norms
from widemargin.solvers.jit.random import random_state
from widemargin.solvers.jit.rows import count_entries, row_arrays
from widemargin.solvers.multiclass.newton import free_samples, newton_step
from widemargin.solvers.multiclass.problem import CrammerSingerProblem
from widemargin.solvers.multiclass.steps import FULL, WORST, sweep
from widemargin.solvers.solution import Solution
from widemargin.solvers.states import PASSES, POSITION, PassState
from widemargin.solvers.stopping import initial_tol, next_tol, rounding_floor


def solve_linear(
    X: Any,
    problem: CrammerSingerProblem,
    report: Callable[["State"], bool] | None = None,
    **parameters: Any,
) -> Solution:
    """Solve the problem with linear functions.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    problem : CrammerSingerProblem
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.
    **parameters
        Those of `start`.

    Returns
    -------
    Solution
    """
    state = start(X, problem, **parameters)
    run_in_slices(advance, state, report)
    return finish(state)


@dataclass
class State(PassState):
    """State of the solver."""

    kept: ClassVar = (
        "dual", "weights", "tol", "order", "classes", "active_classes", "counts", "levels",
        "random", "worked",
    )  # fmt: skip

    X: Any
    problem: CrammerSingerProblem
    gap_tol: float | None
    max_iter: int
    dual: np.ndarray
    weights: np.ndarray
    tol: float
    # A permutation of the samples, and for each sample one of the classes; the first are active.
    order: np.ndarray
    classes: np.ndarray
    active_classes: np.ndarray
    # As in `PassState`, then whether all samples were active at the start of the pass.
    counts: np.ndarray
    # The largest violation of this pass, and the one below which all samples become active again.
    levels: np.ndarray
    random: np.ndarray
    # Work since the last Newton step, which is taken when it costs no more than that.
    worked: float = 0.0
    norms: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.norms = squared_norms(self.X) + self.problem.bias**2


def start(
    X: Any,
    problem: CrammerSingerProblem,
    *,
    tol: float = 1e-4,
    gap_tol: float | None = None,
    max_iter: int = 1000,
    seed: int = 0,
    dual: np.ndarray | None = None,
) -> State:
    """Return a state at ``dual``, or at zero.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Float64; C-contiguous, or CSR with 32-bit indices and without duplicate entries.
    problem : CrammerSingerProblem
    tol : float, default=1e-4
        Tolerance on the violation of a sample's optimality conditions.
    gap_tol : float, optional
        Relative duality gap to stop at, instead of ``tol``.
    max_iter : int, default=1000
        Maximum number of passes over the samples; -1 for no limit.
    seed : int, default=0
        Seed of the order of the samples.
    dual : ndarray of shape (n, n_classes), optional
        Dual variables to start from, made feasible if they are not.
    """
    n, n_classes = problem.shape
    if dual is None:
        dual, weights = np.zeros(problem.shape), np.zeros((X.shape[1] + 1, n_classes))
    else:
        dual = problem.make_feasible(dual)
        weights = _combine(X, problem.bias, dual)
    tol = initial_tol(tol, gap_tol)
    return State(
        X,
        problem,
        gap_tol,
        max_iter if max_iter >= 0 else np.iinfo(np.int64).max,
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
    """Work for about 0.2 seconds; return whether the solver has finished."""
    if not state.finished:
        n, n_classes = state.dual.shape
        per_sample = (count_entries(state.X) // n + 1) * n_classes + options.visit_work
        limit = min(state.max_iter, state.iterations + options.newton_passes)
        steps = _descend(state, state.tol, limit, options.slice_work // per_sample + 1)
        state.worked += per_sample * steps
        if state.converged:
            _check_gap(state)
        elif state.iterations < state.max_iter:
            state.set_status(finished=False, converged=False)
        if not state.finished:
            _newton_step_if_cheap(state)
    return state.finished


def finish(state: State) -> Solution:
    """Return the solution, refined to high precision where that is cheap."""
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
    return solution_at(state)


def solution_at(state: State) -> Solution:
    """Return the solution at the state."""
    dual = state.dual.copy()
    weights = _combine(state.X, state.problem.bias, dual)
    scores, norm = _scores(state.X, state.problem.bias, weights), float(np.sum(weights * weights))
    counts = state.iterations, state.converged
    return state.problem.certify(dual, scores.T, norm, *counts, weights=weights)


def _combine(X: Any, bias: float, dual: np.ndarray) -> np.ndarray:
    with single_threaded_blas():
        return np.vstack([X.T @ dual, bias * dual.sum(axis=0)])


def _scores(X: Any, bias: float, weights: np.ndarray) -> np.ndarray:
    with single_threaded_blas():
        return X @ weights[:-1] + bias * weights[-1]


def _check_gap(state: State) -> None:
    """Where the gap decides, continue at a smaller tolerance until it is closed."""
    if state.gap_tol is not None:
        closed = solution_at(state).gap <= state.gap_tol
        tol = next_tol(state.tol, closed=closed)
        state.tol = state.tol if tol is None else tol
        state.set_status(finished=tol is None, converged=closed)


def _newton_step_if_cheap(state: State) -> None:
    free = free_samples(state.problem, state.dual)
    n, affordable = len(free), max(state.worked, options.cheap_newton_work)
    work = n * n * (count_entries(state.X) / state.problem.size + n) / options.newton_speed
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
    return sweep(
        *row_arrays(state.X),
        state.problem.bias,
        state.problem.label,
        state.problem.margin,
        state.problem.cost,
        state.norms,
        state.dual,
        state.weights,
        state.order,
        state.classes,
        state.active_classes,
        state.counts,
        state.levels,
        state.random,
        max(tol, rounding_floor(1.0 + size, options.linear_rounding)),
        max_iter,
        steps,
    )
