"""Dual coordinate descent for linear classifiers (see `linear_problem`).

One dual variable at a time is set to its optimal value with the others fixed, and w is updated: a
row of X is read twice and the Gram matrix is never formed. Samples are visited in a new random
order in every pass, and those that stay at a bound are left out of the passes until the others
have converged (shrinking; Hsieh et al., 2008). If few dual variables are strictly inside their
bounds, Newton steps on these (see `free_set_newton`) come between the passes, as often as they
cost no more than the passes. If they are many, conjugate gradients take the place of the Newton
steps, once the set of these variables hardly changes: coordinate descent takes thousands of passes
from there to a small tolerance.

There are two stopping rules. With ``tol``, the solver stops when the projected gradients of all
samples lie within ``tol`` of each other, as liblinear does, and small problems are then solved to
machine precision. With ``gap_tol``, it stops on the relative duality gap, which is computed every
few passes and wherever a tolerance is met (see `stopping`): with margins that differ by sample a
small violation does not bound the objective.

With few features, the interior-point method of `soft_margin` takes over when the passes have taken
about as long as it will: they are many only where the features are ill-conditioned. A pass that
leaves samples out counts by the share of those that it visits.

References
----------
C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan: A dual coordinate descent
method for large-scale linear SVM. ICML 2008.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.callbacks import run_in_slices
from widemargin._base.checkpoint import TaskCheckpoint
from widemargin._base.jit import compiled, uncompiled
from widemargin._base.numeric import TINY
from widemargin._base.options import coordinate_descent_options as options
from widemargin._base.options import newton_options
from widemargin._base.threads import single_threaded_blas
from widemargin.kernels.functions import squared_norms
from widemargin.solvers.free_set_newton import free_set_newton
from widemargin.solvers.hinge import soft_margin
from widemargin.solvers.hinge.linear_problem import LinearProblem, certify
from widemargin.solvers.hinge.problem import NotSeparableError
from widemargin.solvers.jit import add_row, dot_row, row_arrays, shuffle
from widemargin.solvers.solution import Report, Solution
from widemargin.solvers.states import ACTIVE, CONVERGED, FINISHED, PASSES, POSITION, PassState
from widemargin.solvers.stopping import rounding_floor

# Further entries of the counts of `PassState` (samples that stay for the next pass, and those that
# all passes have visited), and entries of the extremes.
_STAYING, _VISITED = POSITION + 1, POSITION + 2
_HIGHEST, _LOWEST, _LAST_HIGHEST, _LAST_LOWEST = range(4)


def solve_dual(
    problem: LinearProblem,
    *,
    report: Report = None,
    checkpoint: TaskCheckpoint | None = None,
    **parameters: Any,
) -> Solution:
    """Solve the problem by dual coordinate descent.

    Parameters
    ----------
    problem : LinearProblem
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.
    checkpoint : TaskCheckpoint, optional
        Saves the state now and then, and resumes it.
    **parameters
        Those of `State`.

    Returns
    -------
    Solution
    """
    state = State(problem, **parameters)
    run_in_slices(advance, state, report, checkpoint)
    return finish(state, report)


@dataclass
class State(PassState):
    """State of the solver.

    Parameters
    ----------
    problem : LinearProblem
    shrinking : bool, default=True
        Whether samples that stay at a bound are left out of some passes.
    **parameters
        Those of `PassState`. The violation is the difference of two projected gradients, and
        ``dual`` is signed; the attribute is alpha of the module's docstring.
    """

    problem: LinearProblem
    shrinking: bool = True
    # Passes at the last computation of the gap.
    passes_at_check: int = 0
    gradient_steps: int = options.first_gradient_steps
    """Most steps of conjugate gradients at a time."""
    handed_over: bool = False
    interior: Any = None
    best: Any = None

    saved = (
        *PassState.saved,
        *(
            "handed_over",
            "passes_at_check",
            "weights",
            "order",
            "extremes",
            "gradient_steps",
            "was_free",
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        problem, (n, d) = self.problem, self.problem.X.shape
        softness, self.ceiling = problem.softness(), problem.ceiling()
        if self.dual is None:
            self.dual, self.weights = np.zeros(n), np.zeros(d + 1)
        elif np.shape(self.dual) != (n,):
            raise ValueError(f"dual must have shape {(n,)}, got {np.shape(self.dual)}.")
        else:
            self.dual = np.clip(problem.sign * self.dual, 0.0, self.ceiling)
            self.weights = problem.combine(problem.sign * self.dual)
        # Samples whose variables were free after the last slice.
        self.was_free = np.zeros(n, dtype=bool)
        # First the samples of this pass in their order, then those that are left out of it.
        self.order = np.arange(n, dtype=np.uint32)
        # Extremes of the projected gradient in this pass, and those of the last one.
        self.extremes = np.array([-np.inf, np.inf, np.inf, -np.inf])
        norms = squared_norms(problem.X) if problem.norms is None else problem.norms
        norms = norms + problem.bias**2
        self.largest_norm = float(norms.max(initial=0.0))
        # The loss of a row of zeros is constant: TINY moves its variable to its bound.
        diagonal = np.maximum(norms + softness, TINY)
        target = problem.sign * problem.margin
        # What a step reads for its sample, side by side in memory: sign * margin, the second
        # derivative of the dual, softness, sign * ceiling.
        self.constants = np.column_stack([target, diagonal, softness, problem.sign * self.ceiling])


def advance(state: State) -> bool:
    """Work for about 0.2 seconds; return whether the solver has finished."""
    per_row = state.problem.X.size // state.problem.size + options.step_work
    one_pass = per_row * state.problem.size
    if not state.handed_over and state.iterations >= _handover_passes(state, one_pass):
        _hand_over(state)
    if state.interior is not None and not state.finished:
        _interior_point_step(state)
    elif not state.finished:
        # At least one whole pass between Newton steps, since they restart the pass under way.
        price = max(_newton_work(state), one_pass)
        work = min(options.slice_work, options.slice_passes * one_pass, price - state.worked)
        _descend(state, state.tol, state.max_iter, int(work) // per_row + 1)
        state.worked += work
        if state.gap_tol is not None:
            _check_gap(state, state.gap_tol)
        if not state.finished and state.worked >= price:
            _newton_step(state)
            state.worked = 0.0
        elif not state.finished and price == np.inf:
            _conjugate_gradient_steps(state)
    return state.finished


def finish(state: State, report: Report = None) -> Solution:
    """Return the solution, refined to machine precision where that is cheap."""
    if state.best is not None:
        return state.best
    small = state.problem.X.size <= options.refined_entries
    if state.converged and state.gap_tol is None and small:
        _refine(state)
    solution = solution_at(state)
    strict = state.gap_tol is None and state.tol <= options.strict_tol
    if state.converged and strict and solution.gap > options.accepted_gap:
        return soft_margin.end_linear(state, solution, report)
    return solution


def solution_at(state: State) -> Solution:
    """Return the solution at the state."""
    dual = state.problem.sign * state.dual
    # Not the weights of the state, which carry the rounding errors of all steps.
    weights = state.problem.combine(dual)
    return certify(state, weights, dual, weights)


def _interior_point_step(state: State) -> None:
    """Take a step of the interior-point method, whose weights and dual point are the result."""
    with single_threaded_blas():
        if not soft_margin.advance(state.interior):
            return
        state.set_status(finished=True, converged=True)
        best = soft_margin.finish_linear(state.interior, state)
    enough = options.accepted_gap if state.gap_tol is None else state.gap_tol
    state.set_status(finished=True, converged=best.gap <= enough)
    state.best = replace(best, converged=state.converged)


def _handover_passes(state: State, one_pass: float) -> float:
    """Return the number of passes that take as long as the interior-point method."""
    n, d = state.problem.X.shape
    work = options.interior_products * n * d * d + options.interior_work
    return min(options.latest_handover, work / one_pass)


def _hand_over(state: State) -> None:
    """Begin the interior-point method, which ends what coordinate descent does not."""
    state.handed_over, state.interior = True, soft_margin.start_linear(state.problem)


def _descend(state: State, tol: float, max_iter: int, steps: int) -> None:
    problem, tol = state.problem, max(tol, _rounding(state))
    coordinate_steps(
        *row_arrays(problem.X), problem.bias, state.constants, state.dual, state.weights,
        state.order, state.counts, state.extremes, state.random, tol, state.shrinking, max_iter,
        steps,
    )  # fmt: skip


def _rounding(state: State) -> float:
    """Return the difference of gradients that rounding errors may cause."""
    size = np.sqrt(np.sum(state.weights * state.weights) * state.largest_norm)
    if state.gap_tol is not None:
        # Large dual variables cannot be changed by less than their own rounding errors.
        size = max(size, state.dual.max(initial=0.0) * state.largest_norm)
    return rounding_floor(1.0 + size)


def _check_gap(state: State, gap_tol: float) -> None:
    """Stop if the gap is reached; if only ``tol`` is, lower it."""
    at_tol = state.converged
    if not state.finished and state.iterations < state.passes_at_check + options.slice_passes:
        return
    state.passes_at_check = state.iterations
    solution = solution_at(state)
    assert solution.weights is not None
    state.weights = solution.weights
    if solution.gap <= gap_tol or at_tol:
        state.finish_or_tighten(solution.gap, rounded=state.tol <= _rounding(state))
        _restart_pass(state)


def _newton_step(state: State) -> None:
    """Take a Newton step on the free variables, which converge slowly by coordinates."""
    problem = state.problem
    free = _free_variables(state)
    reduced = problem.subset(free)
    with single_threaded_blas():
        matrix = reduced.X @ reduced.X.T
    matrix = matrix.toarray() if sp.issparse(matrix) else np.ascontiguousarray(matrix)
    matrix += problem.bias**2
    sign, ceiling = reduced.sign, reduced.ceiling()
    before = sign * state.dual[free]
    residual = sign * reduced.margin - reduced.scores(state.weights)
    if problem.loss.differentiable:
        softness = reduced.softness()
        matrix += np.diag(softness)
        residual -= softness * before
    with single_threaded_blas():
        linear = residual + matrix @ before
    after = before.copy()
    lower, upper = np.where(sign > 0, 0.0, -ceiling), np.where(sign > 0, ceiling, 0.0)
    try:
        free_set_newton(matrix, linear, lower, upper, after, residual, False)
    except NotSeparableError:
        if problem.loss.differentiable:
            return  # there is a maximum: rounding hides it where softness is tiny
        raise
    state.dual[free] = sign * after
    state.weights += reduced.combine(after - before)
    _restart_pass(state)


def _conjugate_gradient_steps(state: State) -> None:
    """Maximize the dual over the free variables by conjugate gradients, if they hardly change.

    The result is moved to the bounds that it exceeds, and taken if that is better, in full or in
    part. The number of steps follows their success.
    """
    free = _free_variables(state)
    was_free, state.was_free = state.was_free, np.zeros(state.problem.size, dtype=bool)
    state.was_free[free] = True
    if np.count_nonzero(was_free != state.was_free) > options.changed_share * len(free):
        return
    reduced = state.problem.subset(free)
    sign, softness, before = reduced.sign, reduced.softness(), reduced.sign * state.dual[free]
    residual = sign * reduced.margin - reduced.scores(state.weights) - softness * before
    change, ceiling = _conjugate_gradients(state, reduced, free, residual), reduced.ceiling()
    lower, upper = np.where(sign > 0, 0.0, -ceiling), np.where(sign > 0, ceiling, 0.0)
    for length in options.gradient_lengths:
        after = np.clip(before + length * change, lower, upper)
        move = after - before
        weights = reduced.combine(move)
        bend = np.sum(weights * weights) + np.sum(softness * move * move)
        if np.sum(residual * move) > 0.5 * bend:
            state.dual[free] = sign * after
            state.weights = state.weights + weights
            state.was_free[free] = (lower < after) & (after < upper)
            _restart_pass(state)
            break
    else:
        length = 0.0
    steps = 2 * state.gradient_steps if length == 1.0 else state.gradient_steps // 2
    state.gradient_steps = min(max(steps, options.fewest_gradient_steps), options.gradient_steps)


def _conjugate_gradients(
    state: State, reduced: LinearProblem, free: np.ndarray, residual: np.ndarray
) -> np.ndarray:
    """Return the change of the free variables that maximizes the dual without its bounds."""
    enough = options.gradient_share * max(state.tol, _rounding(state))
    softness, diagonal = reduced.softness(), state.constants[free, 1]
    change, scaled = np.zeros(len(free)), residual / diagonal
    direction, product = scaled, np.sum(residual * scaled)
    for _ in range(state.gradient_steps):
        image = reduced.scores(reduced.combine(direction)) + softness * direction
        bend = np.sum(direction * image)
        if not bend > 0.0:
            break
        change = change + product / bend * direction
        residual = residual - product / bend * image
        if np.abs(residual).max() <= enough:
            break
        scaled = residual / diagonal
        product, last = np.sum(residual * scaled), product
        direction = scaled + product / last * direction
    return change


def _restart_pass(state: State) -> None:
    """Discard the gradients seen in the pass under way."""
    state.counts[POSITION] = state.counts[_STAYING] = 0
    state.extremes[[_HIGHEST, _LOWEST]] = -np.inf, np.inf


def _newton_work(state: State) -> float:
    """Return the approximate work of a Newton step; infinite with too many free variables."""
    free = len(_free_variables(state))
    if not 0 < free <= newton_options.most_free:
        return np.inf
    work = free * free * (state.problem.X.size / state.problem.size + free)
    return work / options.newton_speed


def _free_variables(state: State) -> np.ndarray:
    return np.flatnonzero((state.dual > 0.0) & (state.dual < state.ceiling))


def _refine(state: State) -> None:
    """Alternate Newton steps and a few passes until they reach machine precision."""
    counts = state.counts.copy()
    for _ in range(options.refine_rounds):
        if _newton_work(state) == np.inf:
            break
        _newton_step(state)
        state.set_status(finished=False, converged=False)
        limit = state.iterations + options.refine_passes
        _descend(state, options.refined_tol, limit, options.slice_work)
        if state.converged:
            break
    state.counts = counts


def _steps_work(data, indices, indptr, bias, constants, *rest):
    """Return the time of a few passes as plain Python."""
    samples = len(constants)
    return min(rest[-1], options.slice_passes * samples) * (8.0 + 0.5 * data.size / samples)


@compiled(work=_steps_work, cost=3.0, lists=True)
def coordinate_steps(
    data, indices, indptr, bias, constants, dual, weights, order, counts, extremes, random, tol,
    shrinking, max_iter, steps,
):  # fmt: skip
    """Take coordinate steps, pass after pass, until the end or until ``steps`` are done."""
    n = dual.shape[0]
    constant = weights.shape[0] - 1
    active, position, staying = counts[ACTIVE], counts[POSITION], counts[_STAYING]
    highest, lowest = extremes[_HIGHEST], extremes[_LOWEST]
    last_highest, last_lowest = extremes[_LAST_HIGHEST], extremes[_LAST_LOWEST]
    touched, lanes = 0.0, np.empty(16)
    for _ in range(steps):
        if position == active:
            counts[_VISITED] += active
            counts[PASSES] = (counts[_VISITED] + n - 1) // n
            if highest - lowest <= tol:
                if staying == n:
                    counts[FINISHED] = counts[CONVERGED] = 1
                    break
                active = n
                last_highest, last_lowest = np.inf, -np.inf
            else:
                active = staying
                last_highest = highest if highest > 0.0 else np.inf
                last_lowest = lowest if lowest < 0.0 else -np.inf
            highest, lowest = -np.inf, np.inf
            position = staying = 0
        if counts[PASSES] >= max_iter:
            counts[FINISHED] = 1
            break
        if active == 0:  # all were left out in one pass: the next one visits all of them
            continue
        if position == 0:
            shuffle(order, active, random)
        i = order[position]
        if position + 1 < active:
            # Reading a little of the next row now hides the latency of memory.
            touched += _touch(data, indices, indptr, constants, dual, order[position + 1], constant)
        position += 1
        alpha = dual[i]
        entries = constants[i]
        target, diagonal, softness, bound = entries[0], entries[1], entries[2], entries[3]
        sign, ceiling = math.copysign(1.0, bound), abs(bound)
        score = bias * weights[constant] + dot_row(data, indices, indptr, i, weights, lanes)
        gradient = sign * (score - target) + softness * alpha
        projected = gradient
        if alpha == 0.0:
            projected = min(gradient, 0.0)
        elif alpha == ceiling:
            projected = max(gradient, 0.0)
        if projected != 0.0:
            dual[i] = min(max(alpha - gradient / diagonal, 0.0), ceiling)
            change = sign * (dual[i] - alpha)
            add_row(data, indices, indptr, i, change, weights)
            weights[constant] += change * bias
        elif shrinking and not last_lowest <= gradient <= last_highest:
            continue
        order[position - 1] = order[staying]
        order[staying] = i
        staying += 1
        highest, lowest = max(highest, projected), min(lowest, projected)
    counts[ACTIVE], counts[POSITION], counts[_STAYING] = active, position, staying
    extremes[_HIGHEST], extremes[_LOWEST] = highest, lowest
    extremes[_LAST_HIGHEST], extremes[_LAST_LOWEST] = last_highest, last_lowest
    return touched


@compiled
def _touch(data, indices, indptr, constants, dual, i, length):
    """Read a value of row i of each array."""
    if indices is None:
        return data[i * length] + constants[i, 0] + dual[i]
    first = indptr[i]
    if first == indptr[i + 1]:
        return 0.0
    return data[first] + indices[first] + constants[i, 0] + dual[i]


@uncompiled(_touch)
def _touch_nothing(*arguments):
    """Return 0: plain Python gains nothing from reading ahead."""
    return 0.0
