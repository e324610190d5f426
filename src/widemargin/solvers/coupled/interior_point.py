"""Primal-dual interior-point method for the coupled problem (see `problem`).

At the optimum every variable s with direction (u, w) has a multiplier for each of its bounds:

    p - u F - w E = high - low,   low (s - lower) = 0,   high (upper - s) = 0,   low, high >= 0

Newton's method follows the points where both products have the same value, as that value goes to 0
(Mehrotra's predictor-corrector method). It takes 20 to 50 steps whatever the condition of the data.
A step of s is (q - u dF - w dE) / D with D = low / (s - lower) + high / (upper - s), so that the
response of the g and h of a sample to a change of its functions is a matrix of shape (2, 2),
T = sum (u, w)(u, w)' / D. With M = R R' / penalty and e = R t, the equations are over t and, where
K = X X' has few columns, over the weights a of f = X a, else over f = K a:

    ([X 0]' T [X 0]  +  [I     0    ]) [da]
    ([0 R]    [0 R]     [0  penalty ]) [dt]  =  ...                O(n (columns of X and R)^2)

    K + diag(1 / T_11) instead of the first block                  O(n^3)

both with a column of ones for each constant.
"""

from collections.abc import Callable
from itertools import combinations

import numpy as np
from scipy import linalg

from widemargin._base.numeric import TINY
from widemargin._base.options import coupled_options as options
from widemargin._base.options import interior_point_options
from widemargin.solvers.coupled.problem import CoupledProblem, Optimum
from widemargin.solvers.interior_point import (
    Progress,
    cholesky,
    predictor_corrector,
    scaled_least_squares,
    sum_over_chunks,
)

Pair = tuple[np.ndarray, np.ndarray]
Solve = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def start_interior_point(problem: CoupledProblem) -> "InteriorPoint | None":
    """Return the state at the starting point; None if a kernel is not positive semidefinite."""
    factor, penalty = problem.factor, problem.penalty
    if factor is None:
        factor, penalty = _low_rank_factor(problem.second), 1.0
    rows = _low_rank_factor(problem.first)
    if rows is None or factor is None:
        return None
    n_columns = rows.shape[1] + factor.shape[1]
    if options.samples_per_column * n_columns <= len(rows):
        return InteriorPoint(problem, FeatureEquations(rows, factor, penalty))
    return InteriorPoint(problem, SampleEquations(problem.first, factor, penalty))


class FeatureEquations:
    """Equations for a and t where f = X a; each is followed by its constant.

    ``work`` is the approximate number of multiplications of a step.
    """

    def __init__(self, rows: np.ndarray, factor: np.ndarray, penalty: float):
        ones = np.ones((len(rows), 1))
        self.first, self.second = np.hstack([rows, ones]), np.hstack([factor, ones])
        ridges = (np.ones(rows.shape[1]), 0.0), (np.full(factor.shape[1], penalty), 0.0)
        self.ridge = np.concatenate([np.append(*ridge) for ridge in ridges])
        self.size = len(self.ridge)
        self.work = float(len(rows)) * self.size**2

    def values(self, unknowns: np.ndarray) -> Pair:
        """Return F and E."""
        first, second = np.split(unknowns, [self.first.shape[1]])
        return self.first @ first, self.second @ second

    def residual(self, unknowns: np.ndarray, g: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return the difference between the functions of g and h and those of the unknowns."""
        return np.concatenate([g @ self.first, h @ self.second]) - self.ridge * unknowns

    def factorize(self, response: np.ndarray, alone: np.ndarray) -> Solve:
        """Return a function from g and h, moved at fixed functions, to the step of the unknowns."""
        matrix = self._matrix(*response)
        matrix[np.diag_indices(self.size)] += self.ridge
        factor = cholesky(matrix)

        def step(unknowns, g, h):
            return linalg.cho_solve(factor, self.residual(unknowns, g, h), check_finite=False)

        return step

    def balance(self, response: np.ndarray, residual: np.ndarray) -> Pair:
        """Return F and E whose response removes the residual."""
        return self.values(scaled_least_squares(self._matrix(*response), residual))

    def _matrix(self, t_11: np.ndarray, t_12: np.ndarray, t_22: np.ndarray) -> np.ndarray:
        """Return T between the columns, summed over fixed chunks for any number of threads."""

        def product(rows: slice) -> np.ndarray:
            A, B = self.first[rows], self.second[rows]
            mixed = A.T @ (t_12[rows, np.newaxis] * B)
            scaled_A, scaled_B = (t[rows, np.newaxis] * C for t, C in ((t_11, A), (t_22, B)))
            return np.block([[A.T @ scaled_A, mixed], [mixed.T, B.T @ scaled_B]])

        return sum_over_chunks(product, len(self.first))


class SampleEquations:
    """Equations for a and t where f = K a."""

    def __init__(self, matrix: np.ndarray, factor: np.ndarray, penalty: float):
        self.matrix = matrix
        self.second = np.hstack([factor, np.ones((len(factor), 1))])
        self.ridge = np.append(np.full(factor.shape[1], penalty), 0.0)
        self.size = len(matrix) + 1 + len(self.ridge)
        self.work = float(len(matrix)) ** 2 * (len(matrix) / 3.0 + 2.0 * len(self.ridge))

    def values(self, unknowns: np.ndarray) -> Pair:
        """Return F and E."""
        first, constant, second = self._split(unknowns)
        return self.matrix @ first + constant, self.second @ second

    def residual(self, unknowns: np.ndarray, g: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return the difference between the functions of g and h and those of the unknowns."""
        first, _, second = self._split(unknowns)
        return np.concatenate([g - first, [g.sum()], h @ self.second - self.ridge * second])

    def factorize(self, response: np.ndarray, alone: np.ndarray) -> Solve:
        """Return a function from g and h, moved at fixed functions, to the step of the unknowns."""
        t_11, t_12, _ = response
        matrix = self.matrix.copy()
        matrix[np.diag_indices(len(matrix))] += 1.0 / t_11
        factor = cholesky(matrix)
        edge = np.hstack([np.ones((len(matrix), 1)), (t_12 / t_11)[:, np.newaxis] * self.second])
        across = linalg.cho_solve(factor, edge, check_finite=False)
        small = edge.T @ across
        small[1:, 1:] += (self.second.T * alone) @ self.second + np.diag(self.ridge)
        rest = cholesky(small)

        def step(unknowns, g, h):
            first, _, second = self._split(unknowns)
            pull = (g - first) / t_11
            right = (h - t_12 * pull) @ self.second - self.ridge * second
            wanted = across.T @ pull + np.append(first.sum(), right)
            others = linalg.cho_solve(rest, wanted, check_finite=False)
            moved = linalg.cho_solve(factor, pull - edge @ others, check_finite=False)
            return np.append(moved, others)

        return step

    def balance(self, response: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """Return constants F and E whose response removes the residual of the sums."""
        t_11, t_12, t_22 = response.sum(axis=1)
        sums = residual[[len(self.matrix), -1]]
        return scaled_least_squares(np.array([[t_11, t_12], [t_12, t_22]]), sums)

    def _split(self, unknowns: np.ndarray) -> list[np.ndarray]:
        n = len(self.matrix)
        return np.split(unknowns, [n, n + 1])


class InteriorPoint:
    """Point in the interior of the bounds, and the best one so far.

    ``distances`` are those of the variables to their lower and upper bounds, more accurate than the
    differences would be. Where a bound is missing the distance is 1 and the multiplier 0. A
    variable is fixed if its bounds are equal.
    """

    def __init__(self, problem: CoupledProblem, equations: FeatureEquations | SampleEquations):
        self.problem, self.equations = problem, equations
        self.fixed = problem.upper <= problem.lower
        capped = np.isfinite(problem.upper) & ~self.fixed
        self.bounded = np.stack([~self.fixed, capped])
        self.span = np.where(capped, problem.upper - problem.lower, np.abs(problem.offset))
        self.u, self.w = np.moveaxis(problem.directions[problem.kind], -1, 0)
        self.distances = np.where(self.bounded, 0.5 * self.span, 1.0)
        self.multipliers = np.where(self.bounded, 1.0, 0.0)
        self.unknowns = np.zeros(equations.size)
        self.iterations = 0
        self.progress = Progress(options.stopping_distance, options.rounding_distance)

    def advance(self) -> bool:
        """Take one step; return whether the method has ended."""
        problem = self.problem
        F, E = self.equations.values(self.unknowns)
        low, high = self.multipliers
        residual = problem.linear - self.u * F - self.w * E + low - high
        residual[self.fixed] = 0.0
        point = np.where(self.fixed, problem.lower, problem.lower + self.distances[0])
        g, h = problem.expansions(point)
        value = abs(float((problem.linear * point).sum()))
        gap = float((self.multipliers * self.distances).sum()) / max(value, TINY)
        # The error of the functions grows with the drift, but with the square root of the gap: the
        # square of the drift is compared with the gap, equal to it at the accepted distance.
        drift = np.abs(self.equations.residual(self.unknowns, g, h)).max()
        drift /= max(1.0, np.abs(g).sum() + np.abs(h).sum())
        violation = np.abs(residual).max() / _function_size(F, E)
        distance = float(max(gap, violation, drift**2 / options.rounding_distance))
        stop = self.progress.update(distance, (self.distances, self.multipliers, self.unknowns))
        if stop or self.iterations >= interior_point_options.iterations:
            return True
        try:
            self._step(residual, g, h)
        except linalg.LinAlgError:
            return True
        self.iterations += 1
        return False

    def _step(self, residual: np.ndarray, g: np.ndarray, h: np.ndarray) -> None:
        distances, multipliers, u, w = self.distances, self.multipliers, self.u, self.w
        curvature = (multipliers / distances).sum(axis=0)
        inverse = 1.0 / np.where(self.fixed, np.inf, curvature)
        solve = self.equations.factorize(self._response(inverse), self._alone(inverse))

        def direction(change: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            change = np.where(self.bounded, change, 0.0)
            pull = change / distances
            q = inverse * (residual + pull[0] - pull[1])
            step = solve(self.unknowns, g + (u * q).sum(axis=0), h + (w * q).sum(axis=0))
            dF, dE = self.equations.values(step)
            move = q - inverse * (u * dF + w * dE)
            moves = np.where(self.bounded, [move, -move], 0.0)
            return step, moves, (change - multipliers * moves) / distances

        count = int(np.count_nonzero(self.bounded))
        step, moves, changes, length = predictor_corrector(direction, distances, multipliers, count)
        self.unknowns = self.unknowns + length * step
        self.distances = distances + length * moves
        self.multipliers = multipliers + length * changes

    def _response(self, inverse: np.ndarray) -> np.ndarray:
        """Return T_11, T_12 and T_22 of the samples."""
        pairs = (self.u, self.u), (self.u, self.w), (self.w, self.w)
        return np.stack([(a * b * inverse).sum(axis=0) for a, b in pairs])

    def _alone(self, inverse: np.ndarray) -> np.ndarray:
        """Return T_22 - T_12^2 / T_11 as a sum of non-negative terms."""
        u, w = self.u, self.w
        area = np.zeros(u.shape[1])
        for a, b in combinations(range(len(u)), 2):
            area += (u[a] * w[b] - u[b] * w[a]) ** 2 * inverse[a] * inverse[b]
        return area / (u * u * inverse).sum(axis=0)

    def finish(self) -> Optimum:
        """Return the best point, with variables close to a bound moved there."""
        problem, equations = self.problem, self.equations
        (below, above), (low, high), unknowns = self.progress.point
        capped = self.bounded[1]
        at_lower = self.fixed | (below < low * self.span)
        at_upper = capped & (above < high * self.span) & ~at_lower
        inside = np.where(capped & (above < below), problem.upper - above, problem.lower + below)
        point = np.where(at_lower, problem.lower, np.where(at_upper, problem.upper, inside))
        point = self._balanced(point, ~(at_lower | at_upper), unknowns)
        F, E = equations.values(unknowns)
        constants = unknowns[[-1 - equations.second.shape[1], -1]]
        weights = None if problem.factor is None else unknowns[-equations.second.shape[1] : -1]
        f, e = F - constants[0], E - constants[1]
        return Optimum(point, f, e, constants, weights, self._is_optimal(F, E))

    def _is_optimal(self, F: np.ndarray, E: np.ndarray) -> bool:
        """Return whether F and E of the best point are accurate.

        They are if the point has the required precision. Where rounding prevents that, the change
        of the functions in the steps after the best point measures their error: the distance does
        not, as the error goes with its square root. Constants are not unique and do not count.
        """
        progress = self.progress
        if progress.best < options.stopping_distance:
            return True
        if progress.best >= options.rounding_distance or progress.point[-1] is self.unknowns:
            return False
        last = self.equations.values(self.unknowns)
        change = max(float(np.ptp(b - a)) for a, b in zip((F, E), last, strict=True))
        return change < options.function_error * _function_size(F, E)

    def _balanced(self, point: np.ndarray, free: np.ndarray, unknowns: np.ndarray) -> np.ndarray:
        """Return the point with its free variables moved to satisfy the equations."""
        problem = self.problem
        distance = np.where(free, np.minimum(point - problem.lower, problem.upper - point), 0.0)
        residual = self.equations.residual(unknowns, *problem.expansions(point))
        dF, dE = self.equations.balance(self._response(distance**2), residual)
        moved = point - distance**2 * (self.u * dF + self.w * dE)
        return np.clip(moved, problem.lower, problem.upper)


def _function_size(F: np.ndarray, E: np.ndarray) -> float:
    return 1.0 + float(np.abs(F).max()) + float(np.abs(E).max())


def _low_rank_factor(matrix: np.ndarray) -> np.ndarray | None:
    """Return R of as few columns as possible with matrix = R R'; None if it is indefinite."""
    factor, order, rank, _ = linalg.lapack.dpstrf(matrix, lower=1)
    rows = np.empty((len(matrix), rank))
    rows[order - 1] = np.tril(factor)[:, :rank]
    ones = np.ones(len(matrix))
    error = float(np.abs(matrix @ ones - rows @ (rows.T @ ones)).max())
    return rows if error <= 1e-8 * float(np.abs(matrix).max()) * len(matrix) else None
