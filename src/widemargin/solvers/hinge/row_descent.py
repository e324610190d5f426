"""Dual coordinate descent of the hinge problem over explicit rows (see `problem`).

The kernel is linear, K = Z Z' over rows z_i = (x_i, bias), and there is no free intercept, so that
the dual has a box and nothing else. One dual variable at a time is moved to where the dual is best
in it, with w = Z' beta kept up to date: a row is read twice and K never appears. Rows come in a new
random order in every pass; those that stay at a bound are left out for the rest of a bout of
passes.

After every bout the duality gap is computed over all rows. It decides when to stop: with margins
that differ by row a small violation says little about the objective. Where few rows are inside
their box a Newton step on these (see `polish`) comes between the bouts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from widemargin._base.callbacks import run_in_slices
from widemargin._base.jit import compiled
from widemargin._base.options import newton_options
from widemargin._base.threads import single_threaded_blas
from widemargin.kernels.functions import squared_norms
from widemargin.solvers.free_set_newton import free_set_newton
from widemargin.solvers.hinge.problem import HingeProblem
from widemargin.solvers.solution import Solution, certify
from widemargin.solvers.states import entries, random_state

_BOUT_PASSES = 20
_BOUT_WORK = 50_000_000
_ROW_WORK = 20
_FIRST_TOL = 1e-2
_TINY = float(np.finfo(float).tiny)


def descend_rows(
    problem: HingeProblem,
    rows,
    bias: float = 0.0,
    *,
    gap_tol: float = 1e-6,
    max_iter: int = -1,
    seed: int = 0,
    report: Callable[["State"], bool] | None = None,
) -> Solution:
    """Solve the problem from start to end.

    Parameters
    ----------
    problem : HingeProblem
        Without intercept, with finite costs. Its Gram matrix, that of the rows, is not looked at.
    rows : ndarray or CSR matrix of shape (n, d)
        Float64; C-contiguous, or CSR with 32-bit indices and no duplicate entries.
    bias : float, default=0.0
        The constant feature; 0 for none.
    gap_tol : float, default=1e-6
        Relative duality gap to stop at.
    max_iter : int, default=-1
        Most passes over the rows; -1 for no limit.
    seed : int, default=0
        Of the order of rows.
    report : callable, optional
        Called with the state after every bout of passes; True stops the solver.

    Returns
    -------
    Solution
    """
    state = start(problem, rows, bias, gap_tol=gap_tol, max_iter=max_iter, seed=seed)
    run_in_slices(advance, state, report)
    return solution_at(state)


@dataclass
class State:
    """Where the solver stands."""

    problem: HingeProblem
    rows: np.ndarray
    bias: float
    gap_tol: float
    max_iter: int
    dual: np.ndarray
    weights: np.ndarray
    order: np.ndarray
    random: np.ndarray
    tol: float
    iterations: int = 0
    finished: bool = False
    converged: bool = False
    curvature: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        # A row of zeros costs the same whatever the weights: tiny sends its variable to its bound.
        self.curvature = np.maximum(squared_norms(self.rows) + self.bias**2, _TINY)

    def scores(self) -> np.ndarray:
        """f of all rows."""
        with single_threaded_blas():
            return self.rows @ self.weights[:-1] + self.bias * self.weights[-1]

    def combine(self, coefficients, index=slice(None)) -> np.ndarray:
        """sum_i coefficients_i z_i."""
        with single_threaded_blas():
            features = self.rows[index].T @ coefficients
        return np.append(features, self.bias * coefficients.sum())


def start(problem, rows, bias=0.0, *, gap_tol=1e-6, max_iter=-1, seed=0) -> State:
    """A state at zero."""
    n, d = rows.shape
    scale = float(np.abs(problem.margin).max(initial=_TINY))
    return State(
        problem,
        rows,
        float(bias),
        gap_tol,
        max_iter,
        dual=np.zeros(n),
        weights=np.zeros(d + 1),
        order=np.arange(n),
        random=random_state(seed),
        tol=_FIRST_TOL * scale,
    )


def advance(state: State) -> bool:
    """One bout of passes and a look at the gap; True when there is nothing more to do."""
    work = entries(state.rows) + _ROW_WORK * state.problem.size
    passes = int(np.clip(_BOUT_WORK // work, 1, _BOUT_PASSES))
    if state.max_iter >= 0:
        passes = min(passes, state.max_iter - state.iterations)
    lower, upper = state.problem.bounds()
    done, settled = _descend(
        *_parts(state.rows), state.bias, state.problem.linear(), lower, upper, state.curvature,
        state.dual, state.weights, state.order, state.random, state.tol, passes,
    )  # fmt: skip
    state.iterations += done
    # Not the weights kept up to date, which carry the rounding errors of all steps.
    state.weights = state.combine(state.dual)
    state.converged = solution_at(state).gap <= state.gap_tol
    exhausted = 0 <= state.max_iter <= state.iterations
    state.finished = state.converged or exhausted or state.tol < _rounding(state)
    if not state.finished:
        if settled:
            state.tol *= 0.1
        _leap(state)
    return state.finished


def solution_at(state: State) -> Solution:
    """The solution as far as it is known."""
    residual = state.problem.linear() - state.scores()
    dual = state.dual.copy()
    return certify(state.problem, dual, residual, state.iterations, state.converged)


def _parts(rows):
    """The arrays behind the rows; a dense matrix has no indices."""
    if not sp.issparse(rows):
        return rows.ravel(), None, None
    return rows.data, rows.indices, rows.indptr


def _rounding(state: State) -> float:
    """Violations below this are rounding errors."""
    size = np.linalg.norm(state.weights) * np.sqrt(state.curvature.max())
    return 4.0 * float(np.finfo(float).eps) * (1.0 + float(size))


def _leap(state: State) -> None:
    """A Newton step on the rows inside their box, which crawl where features are alike."""
    lower, upper = state.problem.bounds()
    free = np.flatnonzero((lower < state.dual) & (state.dual < upper))
    if not 0 < len(free) <= newton_options.most_free:
        return
    part = state.rows[free]
    with single_threaded_blas():
        matrix = part @ part.T
    matrix = matrix.toarray() if sp.issparse(matrix) else np.ascontiguousarray(matrix)
    matrix += state.bias**2
    residual = state.problem.linear()[free] - state.scores()[free]
    before = state.dual[free]
    with single_threaded_blas():
        linear = residual + matrix @ before
    after = before.copy()
    free_set_newton(matrix, linear, lower[free], upper[free], after, residual, False)
    state.dual[free] = after
    state.weights = state.combine(state.dual)


@compiled
def _descend(
    data, indices, indptr, bias, linear, lower, upper, curvature, dual, weights, order, random, tol,
    passes,
):  # fmt: skip
    """Passes of coordinate steps; how many there were, and whether all rows came to rest."""
    n = dual.shape[0]
    constant = weights.shape[0] - 1
    active = n
    last_highest, last_lowest = np.inf, -np.inf
    for done in range(passes):
        highest, lowest = 0.0, 0.0
        position = 0
        while position < active:
            other = position + _below(random, active - position)
            i = order[other]
            order[other] = order[position]
            order[position] = i
            residual = (
                linear[i] - bias * weights[constant] - _dot(data, indices, indptr, i, weights)
            )
            stuck = (dual[i] <= lower[i] and residual <= 0.0) or (
                dual[i] >= upper[i] and residual >= 0.0
            )
            if stuck:
                if residual < last_lowest or residual > last_highest:
                    active -= 1
                    order[position] = order[active]
                    order[active] = i
                else:
                    position += 1
                continue
            position += 1
            highest, lowest = max(highest, residual), min(lowest, residual)
            before = dual[i]
            dual[i] = min(max(before + residual / curvature[i], lower[i]), upper[i])
            change = dual[i] - before
            if change != 0.0:
                _add(data, indices, indptr, i, change, weights)
                weights[constant] += change * bias
        if highest - lowest <= tol:
            return done + 1, True
        last_highest = highest if highest > 0.0 else np.inf
        last_lowest = lowest if lowest < 0.0 else -np.inf
    return passes, False


@compiled
def _dot(data, indices, indptr, i, weights):
    """<w, x_i>."""
    total = 0.0
    if indices is None:
        length = weights.shape[0] - 1
        row = data[i * length : (i + 1) * length]
        for k in range(length):
            total += row[k] * weights[k]
    else:
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * weights[indices[k]]
    return total


@compiled
def _add(data, indices, indptr, i, change, weights):
    """w += change * x_i."""
    if indices is None:
        length = weights.shape[0] - 1
        row = data[i * length : (i + 1) * length]
        for k in range(length):
            weights[k] += change * row[k]
    else:
        for k in range(indptr[i], indptr[i + 1]):
            weights[indices[k]] += change * data[k]


@compiled
def _below(random, bound):
    """A random whole number from 0 to below ``bound``, by Marsaglia's xorshift."""
    z = random[0]
    z ^= z << np.uint64(13)
    z ^= z >> np.uint64(7)
    z ^= z << np.uint64(17)
    random[0] = z
    return np.int64(((z >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))
