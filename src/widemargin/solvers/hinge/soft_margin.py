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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from widemargin._base.numeric import EPSILON, TINY
from widemargin._base.options import interior_point_options as options
from widemargin.solvers import interior_point
from widemargin.solvers.hinge.hard_margin import FeatureEquations, SampleEquations
from widemargin.solvers.hinge.problem import HingeProblem, certify
from widemargin.solvers.solution import Solution


@dataclass
class State:
    """A point inside the bounds, at first in the middle between them.

    ``distances`` are those of the dual variables to their lower and upper bounds, more accurate
    than the differences would be.

    Parameters
    ----------
    problem : HingeProblem
        With finite costs.
    equations : FeatureEquations or SampleEquations
    mean : ndarray, optional
        Mean of the features, if it was subtracted from them.
    """

    problem: HingeProblem
    equations: FeatureEquations | SampleEquations
    mean: np.ndarray | None = None

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

    @property
    def beta(self) -> np.ndarray:
        return self.problem.sign * self.distances[0]

    @property
    def weights(self) -> np.ndarray | None:
        """Weights of the features of a linear kernel at the best point, if they are unknowns."""
        known = isinstance(self.equations, FeatureEquations) and self.problem.gram.features()
        return None if known is False or known is None else self.progress.point[-1][:-1]


def advance(state: State) -> bool:
    """Take one step; return whether the method has ended."""
    problem, sign, equations = state.problem, state.problem.sign, state.equations
    distances, multipliers, beta = state.distances, state.multipliers, state.beta
    scores = equations.scores(state.unknowns)
    # All in terms of alpha = sign * beta, whose bounds are 0 and the cost.
    residual = problem.margin - sign * scores + multipliers[0] - multipliers[1]
    value = abs(float(problem.margin @ distances[0]))
    gap = float((multipliers * distances).sum()) / max(value, TINY)
    distance = max(gap, float(np.abs(residual).max()) / (1.0 + float(np.abs(scores).max())))
    point = distances, multipliers, state.unknowns
    if state.progress.update(distance, point) or state.iterations >= options.iterations:
        return True
    inverse = 1.0 / (multipliers / distances).sum(axis=0)
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


def finish(state: State, iterations: int = 0) -> tuple[Solution, np.ndarray]:
    """Return the best of the points next to the last one, and its residual.

    Variables whose distance to a bound is small beside their multiplier are moved there, and the
    others such that the equations still hold.
    """
    problem, sign = state.problem, state.problem.sign
    (inside, above), (low, high), unknowns = state.progress.point
    at_zero, at_cost = inside < low * state.span, above < high * state.span
    snapped = np.where(at_cost & ~at_zero, problem.cost, np.where(at_zero, 0.0, inside))
    found = []
    for alpha in (snapped, np.minimum(inside, problem.cost)):
        beta, weight = sign * alpha, np.minimum(alpha, problem.cost - alpha)
        for _ in range(options.refinements):
            beta = np.clip(state.equations.balance(beta, weight, unknowns), *problem.bounds())
            if problem.intercept:
                # Rounding errors of the sum are multiplied by the mean of the features.
                beta[weight.argmax()] -= math.fsum(beta)
            found.append(_certified(state, np.clip(beta, *problem.bounds()), iterations))
            if found[-1][0].gap <= options.certified_gap:
                return found[-1]
    return min(found, key=lambda candidate: candidate[0].gap)


def _certified(state: State, beta: np.ndarray, iterations: int) -> tuple[Solution, np.ndarray]:
    """Return the solution at a dual point, with the intercept of the least loss, and its residual.

    Over features f is more accurate without their mean, which only the intercept depends on.
    """
    problem, mean, accuracy = state.problem, state.mean, {}
    weights, value = state.equations.unknowns(beta), 0.0
    if isinstance(state.equations, SampleEquations) or problem.gram.features() is None:
        support = np.flatnonzero(beta)
        scores = problem.gram.block(slice(None), slice(None))[:, support] @ beta[support]
    else:
        scores = state.equations.scores(weights)
        accuracy["norms"] = state.equations.squared_norms
    if mean is not None:
        total, size = math.fsum(beta), float(np.sum(mean * mean))
        value = float(np.sum(weights[:-1] * mean)) + total * size
        accuracy["errors"] = EPSILON * (1.0 + abs(value)), abs(total) * math.sqrt(size)
    residual = problem.linear() - scores
    solution = certify(problem, beta, residual, iterations, True, **accuracy)
    if problem.intercept:
        # The slope of the loss rises by the cost at every kink.
        order = np.argsort(residual)
        slopes = np.cumsum(problem.cost[order]) - problem.cost[problem.sign > 0.0].sum()
        intercept = float(residual[order][min(np.searchsorted(slopes, 0.0), problem.size - 1)])
        fixed = replace(problem, intercept=False)
        best = certify(fixed, beta, residual - intercept, iterations, True, **accuracy)
        if best.gap < solution.gap:
            solution = replace(best, intercept=intercept)
    return replace(solution, intercept=solution.intercept - value), residual - value


def start(problem: HingeProblem) -> State | None:
    """Return the state with the equations of the least work; None if they are too many.

    The intercept permits to subtract the mean of the features of a linear kernel.
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
            return State(problem, SampleEquations(matrix, problem.intercept))
    else:
        return None
    return State(problem, FeatureEquations(factor, problem.intercept), mean)


def pivoted_cholesky(gram: Any, most: int) -> np.ndarray | None:
    """Return R with R R' = K up to rounding; None if it has more than ``most`` columns."""
    remaining = np.array(gram.diagonal(), dtype=np.float64)
    smallest = len(remaining) * EPSILON * float(remaining.max(initial=0.0))
    rows = np.empty((most, len(remaining)))
    for k in range(most):
        pivot = int(remaining.argmax())
        if not remaining[pivot] > smallest:
            return np.ascontiguousarray(rows[:k].T)
        values = gram.block(np.array([pivot]), slice(None))[0]
        rows[k] = (values - rows[:k, pivot] @ rows[:k]) / np.sqrt(remaining[pivot])
        remaining -= rows[k] ** 2
        remaining[pivot] = 0.0
    return None
