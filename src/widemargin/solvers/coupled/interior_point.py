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
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy import linalg

from widemargin._base.numeric import TINY
from widemargin._base.options import coupled_options as options
from widemargin._base.options import interior_point_options
from widemargin._base.threads import single_threaded_blas
from widemargin.solvers.coupled.problem import CoupledProblem, Optimum
from widemargin.solvers.interior_point import (
    Progress,
    cholesky,
    predictor_corrector,
    scaled_least_squares,
    sum_over_chunks,
)

Response = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
Solve = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def start_interior_point(problem: CoupledProblem) -> "InteriorPoint | None":
    """Return the state at the starting point; None if a kernel is not positive semidefinite."""
    with single_threaded_blas():
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
        self.ridge = np.concatenate(
            [np.ones(rows.shape[1]), [0.0], np.full(factor.shape[1], penalty), [0.0]]
        )
        self.size = len(self.ridge)
        self.work = float(len(rows)) * self.size**2

    def values(self, unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F and E."""
        first, second = np.split(unknowns, [self.first.shape[1]])
        return self.first @ first, self.second @ second

    def weights(self, unknowns: np.ndarray) -> np.ndarray:
        """Return t."""
        return unknowns[self.first.shape[1] : -1]

    def residual(self, unknowns: np.ndarray, g: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return the difference between the functions of g and h and those of the unknowns."""
        return np.concatenate([g @ self.first, h @ self.second]) - self.ridge * unknowns

    def factorize(self, response: Response) -> Solve:
        """Return a function from g and h, moved at fixed functions, to the step of the unknowns."""
        matrix = self._matrix(*response[:3])
        matrix[np.diag_indices(self.size)] += self.ridge
        factor = cholesky(matrix)

        def step(unknowns: np.ndarray, g: np.ndarray, h: np.ndarray) -> np.ndarray:
            return linalg.cho_solve(factor, self.residual(unknowns, g, h), check_finite=False)

        return step

    def balance(
        self, response: tuple[np.ndarray, ...], residual: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return F and E whose response removes the residual."""
        return self.values(scaled_least_squares(self._matrix(*response), residual))

    def _matrix(self, t_11: np.ndarray, t_12: np.ndarray, t_22: np.ndarray) -> np.ndarray:
        """Return T between the columns, summed over fixed chunks for any number of threads."""

        def part(rows: slice) -> np.ndarray:
            A, B = self.first[rows], self.second[rows]
            mixed = A.T @ (t_12[rows, np.newaxis] * B)
            return np.block(
                [
                    [A.T @ (t_11[rows, np.newaxis] * A), mixed],
                    [mixed.T, B.T @ (t_22[rows, np.newaxis] * B)],
                ]
            )

        return sum_over_chunks(part, len(self.first))


class SampleEquations:
    """Equations for a and t where f = K a."""

    def __init__(self, matrix: np.ndarray, factor: np.ndarray, penalty: float):
        self.matrix = matrix
        self.second = np.hstack([factor, np.ones((len(factor), 1))])
        self.ridge = np.append(np.full(factor.shape[1], penalty), 0.0)
        self.size = len(matrix) + 1 + len(self.ridge)
        self.work = float(len(matrix)) ** 2 * (len(matrix) / 3.0 + 2.0 * len(self.ridge))

    def values(self, unknowns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return F and E."""
        own, constant, second = self._parts(unknowns)
        return self.matrix @ own + constant, self.second @ second

    def weights(self, unknowns: np.ndarray) -> np.ndarray:
        """Return t."""
        return unknowns[len(self.matrix) + 1 : -1]

    def residual(self, unknowns: np.ndarray, g: np.ndarray, h: np.ndarray) -> np.ndarray:
        """Return the difference between the functions of g and h and those of the unknowns."""
        own, _, second = self._parts(unknowns)
        return np.concatenate([g - own, [g.sum()], h @ self.second - self.ridge * second])

    def factorize(self, response: Response) -> Solve:
        """Return a function from g and h, moved at fixed functions, to the step of the unknowns."""
        t_11, t_12, _, alone = response
        matrix = self.matrix.copy()
        matrix[np.diag_indices(len(matrix))] += 1.0 / t_11
        factor = cholesky(matrix)
        edge = np.hstack([np.ones((len(matrix), 1)), (t_12 / t_11)[:, np.newaxis] * self.second])
        across = linalg.cho_solve(factor, edge, check_finite=False)
        small = edge.T @ across
        small[1:, 1:] += (self.second.T * alone) @ self.second + np.diag(self.ridge)
        rest = cholesky(small)

        def step(unknowns: np.ndarray, g: np.ndarray, h: np.ndarray) -> np.ndarray:
            own, _, second = self._parts(unknowns)
            pull = (g - own) / t_11
            right = (h - t_12 * pull) @ self.second - self.ridge * second
            wanted = across.T @ pull + np.append(own.sum(), right)
            others = linalg.cho_solve(rest, wanted, check_finite=False)
            moved = linalg.cho_solve(factor, pull - edge @ others, check_finite=False)
            return np.append(moved, others)

        return step

    def balance(
        self, response: tuple[np.ndarray, ...], residual: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return constants F and E whose response removes the residual of the sums."""
        t_11, t_12, t_22 = (float(t.sum()) for t in response)
        sums = residual[[len(self.matrix), -1]]
        constants = scaled_least_squares(np.array([[t_11, t_12], [t_12, t_22]]), sums)
        return constants[0] * np.ones(len(self.matrix)), constants[1] * np.ones(len(self.matrix))

    def _parts(self, unknowns: np.ndarray) -> list[np.ndarray]:
        n = len(self.matrix)
        return np.split(unknowns, [n, n + 1])


@dataclass
class InteriorPoint:
    """Point in the interior of the bounds, and the best one so far.

    ``below`` and ``above`` are the distances of the variables to their bounds, more accurate than
    the differences would be. Where a bound is missing the distance is 1 and the multiplier 0.
    """

    problem: CoupledProblem
    equations: FeatureEquations | SampleEquations
    below: np.ndarray = field(init=False)
    above: np.ndarray = field(init=False)
    low: np.ndarray = field(init=False)
    high: np.ndarray = field(init=False)
    unknowns: np.ndarray = field(init=False)
    iterations: int = 0
    progress: Progress = field(init=False)

    def __post_init__(self) -> None:
        problem = self.problem
        self.fixed = problem.upper <= problem.lower
        self.capped = np.isfinite(problem.upper) & ~self.fixed
        self.span = np.where(self.capped, problem.upper - problem.lower, np.abs(problem.offset))
        self.u, self.w = np.moveaxis(problem.directions[problem.kind], -1, 0)
        self.below = np.where(self.fixed, 1.0, 0.5 * self.span)
        self.above = np.where(self.capped, 0.5 * self.span, 1.0)
        self.low, self.high = np.where(self.fixed, 0.0, 1.0), np.where(self.capped, 1.0, 0.0)
        self.unknowns = np.zeros(self.equations.size)
        self.progress = Progress(options.precision, options.near)

    def advance(self) -> bool:
        """Take one step; return whether the method has ended."""
        with single_threaded_blas():
            return self._advance()

    def _advance(self) -> bool:
        problem = self.problem
        F, E = self.equations.values(self.unknowns)
        residual = problem.linear - self.u * F - self.w * E + self.low - self.high
        residual[self.fixed] = 0.0
        point = np.where(self.fixed, problem.lower, problem.lower + self.below)
        g, h = problem.expansions(point)
        product = float((self.low * self.below).sum() + (self.high * self.above).sum())
        value = abs(float((problem.linear * point).sum()))
        distance = self._distance(residual, g, h, product / max(value, TINY), F, E)
        kept = (self.below, self.above, self.low, self.high, self.unknowns)
        if self.progress.update(distance, kept):
            return True
        if self.iterations >= interior_point_options.iterations:
            return True
        try:
            self._step(residual, g, h)
        except linalg.LinAlgError:
            return True
        self.iterations += 1
        return False

    def _step(self, residual: np.ndarray, g: np.ndarray, h: np.ndarray) -> None:
        below, above, low, high = self.below, self.above, self.low, self.high
        inverse = 1.0 / np.where(self.fixed, np.inf, low / below + high / above)
        solve = self.equations.factorize(self._response(inverse))

        def direction(change: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            low_change, high_change = change[0], np.where(self.capped, change[1], 0.0)
            q = inverse * (residual + low_change / below - high_change / above)
            step = solve(self.unknowns, g + (self.u * q).sum(axis=0), h + (self.w * q).sum(axis=0))
            dF, dE = self.equations.values(step)
            move = q - inverse * (self.u * dF + self.w * dE)
            low_step = np.where(self.fixed, 0.0, (low_change - low * move) / below)
            high_step = np.where(self.capped, (high_change + high * move) / above, 0.0)
            up = np.where(self.capped, -move, 0.0)
            return step, np.stack([move, up]), np.stack([low_step, high_step])

        count = int(np.count_nonzero(~self.fixed) + np.count_nonzero(self.capped))
        values, multipliers = np.stack([below, above]), np.stack([low, high])
        step, dv, dm, length = predictor_corrector(direction, values, multipliers, count)
        self.unknowns = self.unknowns + length * step
        self.below, self.above = values + length * dv
        self.low, self.high = multipliers + length * dm

    def _distance(
        self,
        residual: np.ndarray,
        g: np.ndarray,
        h: np.ndarray,
        gap: float,
        F: np.ndarray,
        E: np.ndarray,
    ) -> float:
        """Return the distance of the point from the optimum.

        The error of the functions grows with the drift, but with the square root of the gap: the
        square of the drift is compared with the gap, equal to the drift at the accepted distance.
        """
        drift = self.equations.residual(self.unknowns, g, h)
        mass = np.abs(g).sum() + np.abs(h).sum()
        drifted = float(np.abs(drift).max()) / max(1.0, float(mass))
        violation = float(np.abs(residual).max()) / _function_size(F, E)
        return max(gap, violation, drifted**2 / options.near)

    def _response(self, inverse: np.ndarray) -> Response:
        """Return T_11, T_12, T_22, and T_22 - T_12^2 / T_11 as a sum of non-negative terms."""
        u, w = self.u, self.w
        t_11 = (u * u * inverse).sum(axis=0)
        area = np.zeros_like(t_11)
        for a, b in combinations(range(len(u)), 2):
            area += (u[a] * w[b] - u[b] * w[a]) ** 2 * inverse[a] * inverse[b]
        t_12, t_22 = (u * w * inverse).sum(axis=0), (w * w * inverse).sum(axis=0)
        return t_11, t_12, t_22, area / t_11

    def finish(self) -> Optimum:
        """Return the best point, with variables close to a bound moved there."""
        problem = self.problem
        below, above, low, high, unknowns = self.progress.point
        at_lower = self.fixed | (below < low * self.span)
        at_upper = self.capped & (above < high * self.span) & ~at_lower
        inside = np.where(
            self.capped & (above < below), problem.upper - above, problem.lower + below
        )
        point = np.where(at_lower, problem.lower, np.where(at_upper, problem.upper, inside))
        point = self._balanced(point, ~(at_lower | at_upper), unknowns)
        F, E = self.equations.values(unknowns)
        weights = self.equations.weights(unknowns)
        constants = unknowns[[self.equations.size - len(weights) - 2, -1]]
        return Optimum(
            point,
            F - constants[0],
            E - constants[1],
            constants,
            None if problem.factor is None else weights,
            self._is_optimal(F, E),
        )

    def _is_optimal(self, F: np.ndarray, E: np.ndarray) -> bool:
        """Return whether F and E of the best point are accurate.

        They are if the point has the required precision. Where rounding prevents that, the change
        of the functions in the steps after the best point measures their error: the distance does
        not, as the error goes with its square root. Constants are not unique and do not count.
        """
        progress = self.progress
        if progress.best < options.precision:
            return True
        if progress.best >= options.near or progress.point[-1] is self.unknowns:
            return False
        last = self.equations.values(self.unknowns)
        change = max(float(np.ptp(b - a)) for a, b in zip((F, E), last, strict=True))
        return change < options.function_error * _function_size(F, E)

    def _balanced(self, point: np.ndarray, free: np.ndarray, unknowns: np.ndarray) -> np.ndarray:
        """Return the point with its free variables moved to satisfy the equations."""
        problem, u, w = self.problem, self.u, self.w
        distance = np.where(free, np.minimum(point - problem.lower, problem.upper - point), 0.0)
        g, h = problem.expansions(point)
        response = tuple((a * b * distance**2).sum(axis=0) for a, b in ((u, u), (u, w), (w, w)))
        dF, dE = self.equations.balance(response, self.equations.residual(unknowns, g, h))
        moved = point - distance**2 * (u * dF + w * dE)
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
