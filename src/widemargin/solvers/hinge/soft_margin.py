"""The hinge problem with finite costs, by a primal-dual interior-point method.

With f = K beta and F = f + b, every beta_i of the dual (see `problem`) has a multiplier for each of
its bounds, and at the solution

    p - F = high - low,    low (beta - lower) = 0,    high (upper - beta) = 0,    low, high >= 0

`interior_point` follows the central path to it in 20 to 50 steps, whatever the conditioning. A step
of beta is (q - dF) / D with D = low / (beta - lower) + high / (upper - beta): the equations are
those of `hard_margin` with 1 / D in the place of a / s. They are over the weights where K = R R'
has few columns: the features of a linear kernel, or a pivoted Cholesky factor of K. SMO hands over
to this method where pair updates converge slowly.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg

from widemargin._base.callbacks import run_in_slices
from widemargin._base.numeric import EPSILON, TINY
from widemargin._base.options import interior_point_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.kernels import KernelGram, kernel_function
from widemargin.solvers import interior_point
from widemargin.solvers.hinge import linear_problem
from widemargin.solvers.hinge.hard_margin import FeatureEquations, SampleEquations
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.problem import HingeProblem, certify, least_loss_intercept
from widemargin.solvers.solution import Report, Solution


@dataclass
class State:
    """A point inside the bounds, at first in the middle between them or next to a given one.

    ``distances`` are those of the dual variables to their lower and upper bounds, more accurate
    than the differences would be.

    Parameters
    ----------
    problem : HingeProblem
        With finite costs.
    equations : FeatureEquations or SampleEquations
    mean : ndarray, optional
        Mean of the features, if it was subtracted from them.
    softness : ndarray of shape (n,) or float, default=0.0
        Coefficients of 1/2 beta^2 in the dual, for differentiable losses (see `linear_problem`).
    near : Solution, optional
        Solution next to which to start, of equations over the samples. It saves half of the steps
        even where its gap is large.
    """

    problem: HingeProblem
    equations: FeatureEquations | SampleEquations
    mean: np.ndarray | None = None
    softness: Any = 0.0
    near: Solution | None = None

    def __post_init__(self) -> None:
        self.span = np.maximum(self.problem.cost, TINY)
        # To the bounds 0 and cost of alpha = sign * beta.
        self.distances = np.stack([0.5 * self.span, 0.5 * self.span])
        self.unknowns = self.equations.start(self.beta)
        size = float(np.abs(self.equations.scores(self.unknowns)).max(initial=0.0))
        self.multipliers = np.full((2, self.problem.size), 1.0 + size)
        dense = isinstance(self.equations, SampleEquations)
        precision = options.dense_precision if dense else options.soft_precision
        self.progress = interior_point.Progress(precision, options.near)
        self.iterations = 0
        if self.near is not None and self.near.gap > 0.0:
            self._start_at(self.near)

    def _start_at(self, solution: Solution) -> None:
        """Move to the inside from a solution, with about equal products of the pairs."""
        sign, size = self.problem.sign, self.problem.size
        self.unknowns = np.append(solution.dual, solution.intercept)
        slack = self.problem.margin - sign * self.equations.scores(self.unknowns)
        product = solution.gap * solution.objective / (2.0 * size)
        margin = np.minimum(product / np.maximum(np.abs(slack), 1.0), 0.1 * self.span)
        inside = np.clip(sign * solution.dual, margin, self.span - margin)
        self.distances = np.stack([inside, self.span - inside])
        self.unknowns[:-1] = self.beta
        self.multipliers = np.maximum(product / self.distances, [-slack, slack])

    @property
    def beta(self) -> np.ndarray:
        return self.problem.sign * self.distances[0]

    @property
    def weights(self) -> np.ndarray | None:
        """Weights of the features of a linear kernel at the best point, if they are unknowns."""
        linear = isinstance(self.equations, FeatureEquations) and self.mean is None
        known = linear and self.problem.gram.features() is not None
        return self.progress.point[-1][:-1] if known and self.progress.point else None


@interior_point.quiet
def advance(state: State) -> bool:
    """Take one step; return whether the method has ended."""
    problem, sign, equations = state.problem, state.problem.sign, state.equations
    distances, multipliers, beta = state.distances, state.multipliers, state.beta
    scores = equations.scores(state.unknowns)
    # All in terms of alpha = sign * beta, whose bounds are 0 and the cost.
    residual = problem.margin - sign * scores + multipliers[0] - multipliers[1]
    residual -= state.softness * distances[0]
    value = abs(float(problem.margin @ distances[0]))
    gap = float((multipliers * distances).sum()) / max(value, TINY)
    distance = max(gap, float(np.abs(residual).max()) / (1.0 + float(np.abs(scores).max())))
    point = distances, multipliers, state.unknowns
    if state.progress.update(distance, point) or state.iterations >= options.iterations:
        return True
    inverse = 1.0 / (state.softness + (multipliers / distances).sum(axis=0))
    try:
        solve = equations.factorize(inverse)
    except linalg.LinAlgError:
        return True

    def direction(change: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        pull = change / distances
        wanted = residual + pull[0] - pull[1]
        step = solve(state.unknowns, beta, sign * wanted)
        if isinstance(equations, SampleEquations):  # the unknowns are beta
            move = sign * step[:-1]
        else:
            move = inverse * (wanted - sign * equations.scores(step))
        moves = np.stack([move, -move])
        return step, moves, (change - multipliers * moves) / distances

    count = 2 * problem.size
    step, moves, changes, length = interior_point.predictor_corrector(
        direction, distances, multipliers, count
    )
    state.unknowns = state.unknowns + length * step
    state.distances = distances + length * moves
    state.multipliers = multipliers + length * changes
    state.iterations += 1
    return False


@interior_point.quiet
def finish(state: State, iterations: int = 0) -> tuple[Solution, np.ndarray]:
    """Return the best of the points next to the last one, and its residual."""
    candidates = []
    for beta in points(state):
        candidates.append(_certified(state, beta, iterations))
        if candidates[-1][0].gap <= options.certified_gap:
            break
    return min(candidates, key=lambda candidate: candidate[0].gap)


def points(state: State) -> Iterator[np.ndarray]:
    """Generate feasible points next to the last one.

    Variables whose distance to a bound is small beside their multiplier are moved there, and the
    others such that the equations still hold.
    """
    problem, sign = state.problem, state.problem.sign
    last = state.distances, state.multipliers, state.unknowns
    (inside, above), (low, high), unknowns = state.progress.point or last
    at_zero, at_cost = inside < low * state.span, above < high * state.span
    snapped = np.where(at_cost & ~at_zero, problem.cost, np.where(at_zero, 0.0, inside))
    for alpha in (snapped, np.minimum(inside, problem.cost)):
        beta, weight = sign * alpha, np.minimum(alpha, problem.cost - alpha)
        dense = isinstance(state.equations, SampleEquations)  # nothing to refine there
        for _ in range(1 if dense else options.refinements):
            beta = np.clip(state.equations.balance(beta, weight, unknowns), *problem.bounds())
            if problem.intercept:
                # Rounding errors of the sum are multiplied by the mean of the features.
                beta[weight.argmax()] -= math.fsum(beta)
            yield np.clip(beta, *problem.bounds())


def _certified(state: State, beta: np.ndarray, iterations: int) -> tuple[Solution, np.ndarray]:
    """Return the solution at a dual point, and its residual."""
    problem, mean = state.problem, state.mean
    if isinstance(state.equations, SampleEquations):
        scores = state.equations.matrix @ beta
    elif problem.gram.features() is None:
        support = np.flatnonzero(beta)
        scores = problem.gram.block(slice(None), slice(None))[:, support] @ beta[support]
    else:
        weights = state.equations.unknowns(beta)
        scores = state.equations.scores(weights)
        if mean is not None:
            size = float(np.sum(mean * mean))
            scores = scores + (float(np.sum(weights[:-1] * mean)) + math.fsum(beta) * size)
    residual = problem.linear() - scores
    solution = certify(problem, beta, residual, iterations, True)
    if problem.intercept and problem.gram.offset is None and not solution.rounded:
        # The mean of those of the free samples is less accurate than the one of the least loss.
        intercept = least_loss_intercept(problem, residual)
        fixed = replace(problem, intercept=False)
        best = certify(fixed, beta, residual - intercept, iterations, True)
        if best.gap < solution.gap and not best.rounded:
            solution = replace(best, intercept=intercept)
    return solution, residual


def start(problem: HingeProblem, near: Solution | None = None) -> State | None:
    """Return the state with the equations of the least work; None if they are too many.

    The intercept permits to subtract the mean of the features of a linear kernel. ``near`` is the
    solution next to which to start where steps are expensive.
    """
    factor, n, mean = problem.gram.features(), problem.size, None
    if factor is not None and 2 * factor.shape[1] <= n:
        if problem.intercept:
            mean = factor.mean(axis=0)
            factor = factor - mean
    elif n <= options.largest_dense:
        factor = pivoted_cholesky(problem.gram, min(n // 2, options.largest_rank))
        if factor is None:
            matrix = problem.gram.block(slice(None), slice(None))
            return State(problem, SampleEquations(matrix, problem.intercept), near=near)
    else:
        return None
    return State(problem, FeatureEquations(factor, problem.intercept), mean)


def start_linear(problem: LinearProblem) -> State | None:
    """Return the state for a linear classifier; None if its features are too many."""
    (n, d), cost = problem.X.shape, problem.ceiling()
    few = d <= options.most_linear_features and n * d * d <= options.linear_products
    if not few or not (problem.cost > 0.0).all():
        return None
    if problem.loss.slope == np.inf:
        # The objective at 0 bounds the losses, so that these bounds are never reached.
        margin = np.full(n, problem.margin)
        highest = np.sum(problem.cost * problem.loss.value(np.abs(margin)))
        slack = np.sqrt(2.0 * highest / problem.loss.curvature / problem.cost)
        cost = 2.0 * problem.cost * problem.loss.curvature * slack
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    features = np.hstack([X, np.full((n, 1), problem.bias)])
    gram = KernelGram(kernel_function("linear"), features)
    hinge = HingeProblem(gram, problem.sign, problem.margin, cost, False)
    return State(hinge, FeatureEquations(features, False), softness=problem.softness())


@interior_point.quiet
def finish_linear(state: State, solver: Any) -> Solution:
    """Return the best of the points next to the last one, with weights of the linear classifier.

    ``solver`` is the state of the solver that has handed over, as for `linear_problem.certify`.
    """
    problem, candidates = solver.problem, []
    for dual in points(state):
        combined = problem.combine(dual)
        for weights in (combined, state.weights):
            if weights is not None and np.isfinite(weights).all():
                candidates.append(linear_problem.certify(solver, weights, dual, combined))
        if candidates and candidates[-1].gap <= options.certified_gap:
            break
    return min(candidates, key=lambda solution: solution.gap)


def end_linear(solver: Any, solution: Solution, report: Report = None) -> Solution:
    """Return the solution of this method, if it is better than what a solver has stopped at.

    ``report`` is called with the state of the solver after every step; True stops the method.
    """
    state = start_linear(solver.problem)
    if state is None:
        return replace(solution, converged=solution.converged and not solution.rounded)
    with single_threaded_blas():
        run_in_slices(advance, state, report and (lambda _: report(solver)))
        best = min(solution, finish_linear(state, solver), key=lambda candidate: candidate.gap)
    return replace(best, converged=best.gap <= options.accepted_gap)


def pivoted_cholesky(gram: Any, most: int) -> np.ndarray | None:
    """Return R with R R' = K up to rounding; None if it has more than ``most`` columns."""
    remaining = np.array(gram.diagonal(), dtype=np.float64)
    smallest = len(remaining) * EPSILON * float(remaining.max(initial=0.0))
    rows, half, early = np.empty((most, len(remaining))), most // 8, most // 4
    for k in range(most):
        pivot = int(remaining.argmax())
        if not remaining[pivot] > smallest:
            return np.ascontiguousarray(rows[:k].T)
        if k == half:
            before = remaining[pivot]
        if k == early > half and most >= options.long_factor:
            # The diagonal falls more and more slowly: at twice this rate it is not small in time.
            rate = math.log(before / remaining[pivot]) / (early - half)
            if math.log(remaining[pivot] / smallest) > 2.0 * rate * (most - early):
                return None
        values = gram.block(np.array([pivot]), slice(None))[0]
        rows[k] = (values - rows[:k, pivot] @ rows[:k]) / np.sqrt(remaining[pivot])
        remaining -= rows[k] ** 2
        remaining[pivot] = 0.0
    return None
