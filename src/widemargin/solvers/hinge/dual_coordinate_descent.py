"""Dual coordinate descent for linear machines (see `linear`).

One dual variable at a time is moved to where the dual is best in it, with w kept up to date: a row
is read twice and the Gram matrix never appears. Rows come in a new random order in every pass, and
those that stay at a bound are left out of the passes until the others have settled (Hsieh et al.,
2008). Where few rows are inside their box, Newton steps on these (see `polish`) come between the
passes, as often as they cost no more than the passes do. Stops when the projected gradients of all
rows lie within ``tol`` of each other, which is liblinear's rule.

On small problems the answer is then polished to machine precision.

References
----------
C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan: A dual coordinate descent
method for large-scale linear SVM. ICML 2008.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from widemargin._base.callbacks import run_in_slices
from widemargin._base.jit import compiled
from widemargin._base.options import newton_options
from widemargin._base.threads import single_threaded_blas
from widemargin.kernels.functions import squared_norms
from widemargin.solvers.free_set_newton import free_set_newton
from widemargin.solvers.hinge.linear_problem import (
    LinearProblem,
    LinearSolution,
    certify,
    check_dual,
)
from widemargin.solvers.hinge.problem import NotSeparableError
from widemargin.solvers.states import PASSES, Passing, flat_rows, random_state

_SLICE_WORK = 50_000_000
_STEP_WORK = 20
_CHUNK_PASSES = 20
_POLISHED_ENTRIES = 20_000
_POLISHED_TOL = 1e-12
_POLISH_PASSES = 20
_POLISH_ROUNDS = 20


def descend_linear(
    problem: LinearProblem,
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
    shrinking: bool = True,
    seed: int = 0,
    dual: np.ndarray | None = None,
    report: Callable[["State"], bool] | None = None,
) -> LinearSolution:
    """Solve the problem from start to end.

    Parameters
    ----------
    problem : LinearProblem
    tol : float, default=1e-4
        Largest difference of two projected gradients.
    max_iter : int, default=1000
        Most passes over the rows.
    shrinking : bool, default=True
        Whether rows that stay at a bound are left out for a while.
    seed : int, default=0
        Of the order of rows.
    dual : ndarray of shape (n,), optional
        Point to start from.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.

    Returns
    -------
    LinearSolution
    """
    state = start(problem, tol=tol, max_iter=max_iter, shrinking=shrinking, seed=seed, dual=dual)
    run_in_slices(advance, state, report)
    return finish(state)


@dataclass
class State(Passing):
    """Where the solver stands."""

    kept: ClassVar = ("dual", "weights", "order", "counts", "extremes", "random", "worked")

    problem: LinearProblem
    tol: float
    max_iter: int
    shrinking: bool
    dual: np.ndarray
    weights: np.ndarray
    # First the rows of this pass in their order, then those that are left out of it.
    order: np.ndarray
    # As in `Passing`; then rows of this pass, position in it, rows that stay for the next one.
    counts: np.ndarray
    # Extremes of the projected gradient in this pass, and those of the last one.
    extremes: np.ndarray
    random: np.ndarray
    # Work since the last leap, which is taken when it costs no more than that.
    worked: float = 0.0
    # What a step needs to know of its row, side by side in memory; margins bear the rows' signs.
    constants: np.ndarray = field(init=False)
    largest_norm: float = field(init=False)

    def __post_init__(self) -> None:
        known = self.problem.norms
        norms = squared_norms(self.problem.X) if known is None else known
        norms = norms + self.problem.bias**2
        self.largest_norm = float(norms.max(initial=0.0))
        # A row of zeros costs the same whatever the weights: tiny sends its variable to its bound.
        curvature = norms + self.problem.softness()
        diagonal = np.maximum(curvature, np.finfo(float).tiny)
        aim = self.problem.sign * self.problem.margin
        self.constants = np.column_stack(
            [aim, diagonal, self.problem.softness(), self.problem.ceiling()]
        )


def start(problem, *, tol=1e-4, max_iter=1000, shrinking=True, seed=0, dual=None) -> State:
    """A state at ``dual``, or at zero."""
    n, d = problem.X.shape
    if dual is None:
        dual, weights = np.zeros(n), np.zeros(d + 1)
    else:
        dual = check_dual(problem, dual)
        weights = problem.combine(problem.sign * dual)
    return State(
        problem,
        tol,
        max_iter,
        shrinking,
        dual,
        weights,
        order=np.arange(n, dtype=np.uint32),
        counts=np.array([0, 0, 0, n, 0, 0]),
        extremes=np.array([-np.inf, np.inf, np.inf, -np.inf]),
        random=random_state(seed),
    )


def advance(state: State) -> bool:
    """Work for about a fifth of a second; True when there is nothing more to do."""
    if not state.finished:
        per_row = state.problem.entries // state.problem.size + _STEP_WORK
        one_pass = per_row * state.problem.size
        # Between leaps there is a whole pass, since a leap starts the one under way afresh.
        price = max(_leap_work(state), one_pass)
        work = min(_SLICE_WORK, _CHUNK_PASSES * one_pass, price - state.worked)
        _work(state, state.tol, state.max_iter, int(work) // per_row + 1)
        state.worked += work
        if not state.finished and state.worked >= price:
            _leap(state)
            state.worked = 0.0
    return state.finished


def finish(state: State) -> LinearSolution:
    """The solution at the state, brought to machine precision where that is cheap."""
    if state.converged and state.problem.entries <= _POLISHED_ENTRIES:
        _polish(state)
    return solution_at(state)


def solution_at(state: State) -> LinearSolution:
    """The solution as far as it is known."""
    dual = state.dual.copy()
    # Not the weights kept up to date, which carry the rounding errors of all steps.
    weights = state.problem.combine(state.problem.sign * dual)
    return certify(state.problem, weights, dual, weights, state.iterations, state.converged)


def _work(state: State, tol: float, max_iter: int, steps: int) -> None:
    problem = state.problem
    _descend(
        *flat_rows(problem.X),
        problem.bias,
        state.constants,
        state.dual,
        state.weights,
        state.order,
        state.counts,
        state.extremes,
        state.random,
        max(tol, _rounding(state)),
        state.shrinking,
        max_iter,
        steps,
    )


def _rounding(state: State) -> float:
    """Differences of gradients below this are rounding errors."""
    size = np.sqrt(np.sum(state.weights * state.weights) * state.largest_norm)
    return 4.0 * np.finfo(float).eps * (1.0 + float(size))


def _leap(state: State) -> None:
    """A Newton step on the rows inside their box: they crawl where features are ill-conditioned."""
    problem = state.problem
    free = _free_rows(state)
    part = problem.part(free)
    with single_threaded_blas():
        matrix = part.X @ part.X.T
    matrix = matrix.toarray() if sp.issparse(matrix) else np.ascontiguousarray(matrix)
    matrix += problem.bias**2 + np.diag(part.softness())
    sign, ceiling = part.sign, part.ceiling()
    before = sign * state.dual[free]
    residual = sign * part.margin - part.scores(state.weights) - part.softness() * before
    with single_threaded_blas():
        linear = residual + matrix @ before
    after = before.copy()
    lower, upper = np.where(sign > 0, 0.0, -ceiling), np.where(sign > 0, ceiling, 0.0)
    try:
        free_set_newton(matrix, linear, lower, upper, after, residual, False)
    except NotSeparableError:
        if problem.squared:
            return  # there is a maximum: rounding hides it where softness is tiny
        raise
    state.dual[free] = sign * after
    state.weights += part.combine(after - before)
    # What this pass has seen of the gradients no longer holds.
    state.counts[_POSITION] = state.counts[_STAYING] = 0
    state.extremes[[_HIGHEST, _LOWEST]] = -np.inf, np.inf


def _leap_work(state: State) -> float:
    """About how much work a leap is; infinite with too many rows inside their box."""
    free = len(_free_rows(state))
    if not 0 < free <= newton_options.most_free:
        return np.inf
    # A multiplication here costs a fraction of one in a pass, where rows come in random order.
    return free * free * (state.problem.entries / state.problem.size + free) / 8


def _free_rows(state: State) -> np.ndarray:
    return np.flatnonzero((state.dual > 0.0) & (state.dual < state.problem.ceiling()))


def _polish(state: State) -> None:
    """Leap to the optimum and let a few passes confirm it, or move on to where to leap from."""
    passes = state.iterations
    for _ in range(_POLISH_ROUNDS):
        if _leap_work(state) == np.inf:
            break
        _leap(state)
        state.end(finished=False, converged=False)
        _work(state, _POLISHED_TOL, state.iterations + _POLISH_PASSES, _SLICE_WORK)
        if state.converged:
            break
    state.end(finished=True, converged=True)
    state.counts[PASSES] = passes


_PASSES, _FINISHED, _CONVERGED, _ACTIVE, _POSITION, _STAYING = range(6)
_HIGHEST, _LOWEST, _LAST_HIGHEST, _LAST_LOWEST = range(4)


@compiled
def _descend(
    data, indices, indptr, bias, constants, dual, weights, order, counts, extremes, random, tol,
    shrinking, max_iter, steps,
):  # fmt: skip
    """Coordinate steps, pass after pass, until the end or until ``steps`` are done."""
    n = dual.shape[0]
    constant = weights.shape[0] - 1
    active, position, staying = counts[_ACTIVE], counts[_POSITION], counts[_STAYING]
    highest, lowest = extremes[_HIGHEST], extremes[_LOWEST]
    last_highest, last_lowest = extremes[_LAST_HIGHEST], extremes[_LAST_LOWEST]
    touched, lanes = 0.0, np.empty(16)
    for _ in range(steps):
        if position == active:
            counts[_PASSES] += 1
            if highest - lowest <= tol:
                if staying == n:
                    counts[_FINISHED] = counts[_CONVERGED] = 1
                    break
                active = n
                last_highest, last_lowest = np.inf, -np.inf
            else:
                active = staying
                last_highest = highest if highest > 0.0 else np.inf
                last_lowest = lowest if lowest < 0.0 else -np.inf
            highest, lowest = -np.inf, np.inf
            position = staying = 0
        if counts[_PASSES] >= max_iter:
            counts[_FINISHED] = 1
            break
        if active == 0:  # all were left out in one pass: the next one is about all of them
            continue
        if position == 0:
            _shuffle(order, active, random)
        i = order[position]
        if position + 1 < active:
            # Reading a little of the next row now hides how long memory takes to answer.
            touched += _touch(data, indices, indptr, constants, dual, order[position + 1], constant)
        position += 1
        alpha = dual[i]
        aim, diagonal = constants[i, 0], constants[i, 1]
        sign = 1.0 if aim > 0.0 else -1.0
        softness, ceiling = constants[i, 2], constants[i, 3]
        score = bias * weights[constant] + _dot(data, indices, indptr, i, weights, lanes)
        gradient = sign * (score - aim) + softness * alpha
        projected = gradient
        if alpha == 0.0:
            projected = min(gradient, 0.0)
        elif alpha == ceiling:
            projected = max(gradient, 0.0)
        if projected != 0.0:
            dual[i] = min(max(alpha - gradient / diagonal, 0.0), ceiling)
            change = sign * (dual[i] - alpha)
            _add(data, indices, indptr, i, change, weights)
            weights[constant] += change * bias
        elif shrinking and not last_lowest <= gradient <= last_highest:
            continue
        order[position - 1] = order[staying]
        order[staying] = i
        staying += 1
        highest, lowest = max(highest, projected), min(lowest, projected)
    counts[_ACTIVE], counts[_POSITION], counts[_STAYING] = active, position, staying
    extremes[_HIGHEST], extremes[_LOWEST] = highest, lowest
    extremes[_LAST_HIGHEST], extremes[_LAST_LOWEST] = last_highest, last_lowest
    return touched


@compiled
def _shuffle(order, active, random):
    for position in range(active):
        other = position + _below(random, active - position)
        i = order[other]
        order[other] = order[position]
        order[position] = i


@compiled
def _touch(data, indices, indptr, constants, dual, i, length):
    if indices is None:
        return data[i * length] + constants[i, 0] + dual[i]
    first = indptr[i]
    if first == indptr[i + 1]:
        return 0.0
    return data[first] + indices[first] + constants[i, 0] + dual[i]


@compiled
def _dot(data, indices, indptr, i, weights, lanes):
    """<w, x_i>; long sums go by ``lanes``, since one alone waits for every addition."""
    total = 0.0
    if indices is None:
        length = weights.shape[0] - 1
        row = data[i * length : (i + 1) * length]
        even = length - length % 16 if length >= 64 else 0
        if even > 0:
            lanes[:] = 0.0
            for k in range(0, even, 16):
                for lane in range(16):
                    lanes[lane] += row[k + lane] * weights[k + lane]
            for lane in range(16):
                total += lanes[lane]
        for k in range(even, length):
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
    # The high bits as a fraction of the bound: no division.
    return np.int64(((z >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))
