"""The two-kernel problem (see `two_kernels`) by a primal-dual interior-point method.

With the functions F_i = f_i + c_1 and E_i = e_i + c_2, whose constants are the multipliers of the
two sums, every variable s along (u, w) has at the optimum a multiplier for either end of its box:

    p - u F - w E = high - low,   low (s - lower) = 0,   high (upper - s) = 0,   low, high >= 0

Newton's method follows the points where both products are the same small number, as it goes to 0
(Mehrotra's predictor and corrector), in some 20 to 50 steps however rows and kernels lie. A step of
s is (q - u dF - w dE) / D with D = low / (s - lower) + high / (upper - s), so a row answers to a
change of its functions by a matrix of two rows and columns, T = sum (u, w)(u, w)' / D. With
M = R R' / penalty and e = R t, the equations are over t and, where K = X X' has few columns, over
f = X a, else over f = K a:

    ([X 0]' T [X 0]  +  [I     0    ]) [da]
    ([0 R]    [0 R]     [0  penalty ]) [dt]  =  ...                O(n (columns of X and R)^2)

    K + diag(1 / T_11) in the place of the first block             O(n^3)

both with a column of ones for each constant.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from widemargin._base.threads import for_each, single_threaded_blas
from widemargin.solvers.coupled.active_set import Settled
from widemargin.solvers.hinge.hard_margin import least_squares, room

if TYPE_CHECKING:
    from widemargin.solvers.coupled.two_kernels import TwoKernelProblem

_PRECISION = 1e-11
_NEAR = 1e-7
_MOST_ROUNDS = 100
_STALLED = 5
_LOST = 40
_NEARLY_ALL = 0.995
_CHUNK = 2048
_ROWS_FOR_A_COLUMN = 2
_LITTLE = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)
_TINY = float(np.finfo(float).tiny)


def start(problem: "TwoKernelProblem") -> "Path | None":
    """The beginning of the path; None where a kernel is not positive semidefinite."""
    with single_threaded_blas():
        factor, penalty = problem.factor, problem.penalty
        if factor is None:
            factor, penalty = _factor(problem.second), 1.0
        rows = _factor(problem.first)
        if rows is None or factor is None:
            return None
        n_columns = rows.shape[1] + factor.shape[1]
        if _ROWS_FOR_A_COLUMN * n_columns <= len(rows):
            return Path(problem, OverColumns(rows, factor, penalty))
        return Path(problem, OverRows(problem.first, factor, penalty))


class OverColumns:
    """Equations for a and t where f = X a; the constants stand behind either.

    ``work`` is how many multiplications a step takes, about.
    """

    def __init__(self, rows, factor, penalty):
        ones = np.ones((len(rows), 1))
        self.first, self.second = np.hstack([rows, ones]), np.hstack([factor, ones])
        self.ridge = np.concatenate(
            [np.ones(rows.shape[1]), [0.0], np.full(factor.shape[1], penalty), [0.0]]
        )
        self.size = len(self.ridge)
        self.work = float(len(rows)) * self.size**2

    def values(self, unknowns) -> tuple[np.ndarray, np.ndarray]:
        """F and E."""
        first, second = np.split(unknowns, [self.first.shape[1]])
        return self.first @ first, self.second @ second

    def weights(self, unknowns) -> np.ndarray:
        """The unknown t."""
        return unknowns[self.first.shape[1] : -1]

    def missing(self, unknowns, g, h) -> np.ndarray:
        """By how much the functions are not those of g and h."""
        return np.concatenate([g @ self.first, h @ self.second]) - self.ridge * unknowns

    def factorise(self, answer) -> Callable:
        """A function from g and h, had they moved alone, to the step of the unknowns."""
        matrix = self._matrix(*answer[:3])
        matrix[np.diag_indices(self.size)] += self.ridge
        factor = _cholesky(matrix)

        def step(unknowns, g, h):
            return linalg.cho_solve(factor, self.missing(unknowns, g, h), check_finite=False)

        return step

    def balance(self, answer, missing) -> tuple[np.ndarray, np.ndarray]:
        """F and E whose answer makes up for what is missing."""
        return self.values(least_squares(self._matrix(*answer), missing))

    def _matrix(self, t_11, t_12, t_22) -> np.ndarray:
        """T between the columns: a sum over chunks of fixed size, for any number of threads."""

        def part(begin):
            own = slice(begin, begin + _CHUNK)
            A, B = self.first[own], self.second[own]
            mixed = A.T @ (t_12[own, np.newaxis] * B)
            return np.block(
                [
                    [A.T @ (t_11[own, np.newaxis] * A), mixed],
                    [mixed.T, B.T @ (t_22[own, np.newaxis] * B)],
                ]
            )

        parts = for_each(part, range(0, len(self.first), _CHUNK))
        return sum(parts[1:], start=parts[0])


class OverRows:
    """The same for a and t where f = K a."""

    def __init__(self, matrix, factor, penalty):
        self.matrix = matrix
        self.second = np.hstack([factor, np.ones((len(factor), 1))])
        self.ridge = np.append(np.full(factor.shape[1], penalty), 0.0)
        self.size = len(matrix) + 1 + len(self.ridge)
        self.work = float(len(matrix)) ** 2 * (len(matrix) / 3.0 + 2.0 * len(self.ridge))

    def values(self, unknowns) -> tuple[np.ndarray, np.ndarray]:
        """F and E."""
        own, constant, second = self._parts(unknowns)
        return self.matrix @ own + constant, self.second @ second

    def weights(self, unknowns) -> np.ndarray:
        """The unknown t."""
        return unknowns[len(self.matrix) + 1 : -1]

    def missing(self, unknowns, g, h) -> np.ndarray:
        """By how much the functions are not those of g and h."""
        own, _, second = self._parts(unknowns)
        return np.concatenate([g - own, [g.sum()], h @ self.second - self.ridge * second])

    def factorise(self, answer) -> Callable:
        """A function from g and h, had they moved alone, to the step of the unknowns."""
        t_11, t_12, _, alone = answer
        matrix = self.matrix.copy()
        matrix[np.diag_indices(len(matrix))] += 1.0 / t_11
        factor = _cholesky(matrix)
        edge = np.hstack([np.ones((len(matrix), 1)), (t_12 / t_11)[:, np.newaxis] * self.second])
        across = linalg.cho_solve(factor, edge, check_finite=False)
        small = edge.T @ across
        small[1:, 1:] += (self.second.T * alone) @ self.second + np.diag(self.ridge)
        rest = _cholesky(small)

        def step(unknowns, g, h):
            own, _, second = self._parts(unknowns)
            pull = (g - own) / t_11
            right = (h - t_12 * pull) @ self.second - self.ridge * second
            wanted = across.T @ pull + np.append(own.sum(), right)
            others = linalg.cho_solve(rest, wanted, check_finite=False)
            moved = linalg.cho_solve(factor, pull - edge @ others, check_finite=False)
            return np.append(moved, others)

        return step

    def balance(self, answer, missing) -> tuple[np.ndarray, np.ndarray]:
        """F and E, constants here, whose answer makes up for what is missing of the sums."""
        t_11, t_12, t_22 = (float(t.sum()) for t in answer)
        sums = missing[[len(self.matrix), -1]]
        constants = least_squares(np.array([[t_11, t_12], [t_12, t_22]]), sums)
        return constants[0] * np.ones(len(self.matrix)), constants[1] * np.ones(len(self.matrix))

    def _parts(self, unknowns) -> list[np.ndarray]:
        n = len(self.matrix)
        return np.split(unknowns, [n, n + 1])


@dataclass
class Path:
    """A point inside, the best one so far, and how to go on."""

    problem: "TwoKernelProblem"
    equations: OverColumns | OverRows
    below: np.ndarray = field(init=False)
    above: np.ndarray = field(init=False)
    low: np.ndarray = field(init=False)
    high: np.ndarray = field(init=False)
    unknowns: np.ndarray = field(init=False)
    iterations: int = 0
    done: bool = False
    best: float = np.inf
    since_best: int = 0

    def __post_init__(self) -> None:
        problem = self.problem
        self.fixed = problem.upper <= problem.lower
        self.capped = np.isfinite(problem.upper) & ~self.fixed
        self.span = np.where(self.capped, problem.upper - problem.lower, np.abs(problem.offset))
        self.u, self.w = np.moveaxis(problem.lines[problem.line], -1, 0)
        # What a point is away from the ends of its box, known better than their difference; 1 and a
        # multiplier of 0 where there is no such end.
        self.below = np.where(self.fixed, 1.0, 0.5 * self.span)
        self.above = np.where(self.capped, 0.5 * self.span, 1.0)
        self.low, self.high = np.where(self.fixed, 0.0, 1.0), np.where(self.capped, 1.0, 0.0)
        self.unknowns = np.zeros(self.equations.size)
        self.kept = (self.below, self.above, self.low, self.high, self.unknowns)

    def advance(self) -> bool:
        """Take one step; True when there is nothing more to do."""
        with single_threaded_blas():
            self.done = self._advance()
        return self.done

    def _advance(self) -> bool:
        problem = self.problem
        below, above, low, high = self.below, self.above, self.low, self.high
        F, E = self.equations.values(self.unknowns)
        residual = problem.linear - self.u * F - self.w * E + low - high
        residual[self.fixed] = 0.0
        point = np.where(self.fixed, problem.lower, problem.lower + below)
        g, h = problem.sides(point)
        product = float((low * below).sum() + (high * above).sum())
        value = abs(float((problem.linear * point).sum()))
        if self._judge(residual, g, h, product / max(value, _TINY), F, E):
            return True
        stiffness = np.where(self.fixed, np.inf, low / below + high / above)
        inverse = 1.0 / stiffness
        try:
            solve = self.equations.factorise(self._answer(inverse))
        except linalg.LinAlgError:
            return True

        def direction(wanted_low, wanted_high):
            q = inverse * (residual + wanted_low / below - wanted_high / above)
            step = solve(self.unknowns, g + (self.u * q).sum(axis=0), h + (self.w * q).sum(axis=0))
            dF, dE = self.equations.values(step)
            move = q - inverse * (self.u * dF + self.w * dE)
            low_step = np.where(self.fixed, 0.0, (wanted_low - low * move) / below)
            high_step = np.where(self.capped, (wanted_high + high * move) / above, 0.0)
            up = np.where(self.capped, -move, 0.0)
            pairs = ((below, move), (above, up), (low, low_step), (high, high_step))
            return step, move, low_step, high_step, min(room(*pair) for pair in pairs)

        _, move, low_step, high_step, length = direction(-low * below, -high * above)
        ahead = float(((low + length * low_step) * (below + length * move)).sum())
        ahead += float(((high + length * high_step) * (above - length * move)).sum())
        count = np.count_nonzero(~self.fixed) + np.count_nonzero(self.capped)
        target = (ahead / product) ** 3 * product / count
        step, move, low_step, high_step, length = direction(
            target - low * below - move * low_step,
            np.where(self.capped, target - high * above + move * high_step, 0.0),
        )
        length *= _NEARLY_ALL
        self.unknowns = self.unknowns + length * step
        self.below = below + length * move
        self.above = np.where(self.capped, above - length * move, 1.0)
        self.low, self.high = low + length * low_step, high + length * high_step
        self.iterations += 1
        return False

    def _judge(self, residual, g, h, gap, F, E) -> bool:
        """Keep the point if it is the best so far; whether there is no use in going on."""
        drift = self.equations.missing(self.unknowns, g, h)
        taken = np.abs(g).sum() + np.abs(h).sum()
        size = 1.0 + float(np.abs(F).max()) + float(np.abs(E).max())
        distance = max(
            gap,
            float(np.abs(residual).max()) / size,
            float(np.abs(drift).max()) / max(1.0, float(taken)),
        )
        self.since_best += 1
        if distance < self.best:
            self.best, self.since_best = distance, 0
            self.kept = (self.below, self.above, self.low, self.high, self.unknowns)
        stalled = self.since_best > (_STALLED if self.best < _NEAR else _LOST)
        return distance < _PRECISION or self.iterations >= _MOST_ROUNDS or stalled

    def _answer(self, inverse) -> tuple[np.ndarray, ...]:
        """T_11, T_12, T_22, and T_22 - T_12^2 / T_11 as a sum of what is not negative."""
        u, w = self.u, self.w
        t_11 = (u * u * inverse).sum(axis=0)
        area = np.zeros_like(t_11)
        for a, b in combinations(range(len(u)), 2):
            area += (u[a] * w[b] - u[b] * w[a]) ** 2 * inverse[a] * inverse[b]
        t_12, t_22 = (u * w * inverse).sum(axis=0), (w * w * inverse).sum(axis=0)
        return t_11, t_12, t_22, area / t_11

    def finish(self) -> Settled:
        """The best point, with variables next to an end of their box put there."""
        problem = self.problem
        below, above, low, high, unknowns = self.kept
        down = self.fixed | (below < low * self.span)
        up = self.capped & (above < high * self.span) & ~down
        inside = np.where(
            self.capped & (above < below), problem.upper - above, problem.lower + below
        )
        point = np.where(down, problem.lower, np.where(up, problem.upper, inside))
        point = self._balanced(point, ~(down | up), unknowns)
        F, E = self.equations.values(unknowns)
        n_first = self.equations.size - 1 - len(self.equations.weights(unknowns))
        constants = unknowns[[n_first - 1, -1]]
        weights = None if problem.factor is None else self.equations.weights(unknowns)
        return Settled(
            point, F - constants[0], E - constants[1], constants, weights, self.best < _NEAR
        )

    def _balanced(self, point, free, unknowns) -> np.ndarray:
        """The point, with its free variables moved by next to nothing to where it belongs."""
        problem = self.problem
        room = np.where(free, np.minimum(point - problem.lower, problem.upper - point), 0.0)
        g, h = problem.sides(point)
        answer = ((a * b * room**2).sum(axis=0) for a, b in self._products())
        dF, dE = self.equations.balance(tuple(answer), self.equations.missing(unknowns, g, h))
        moved = point - room**2 * (self.u * dF + self.w * dE)
        return np.clip(moved, problem.lower, problem.upper)

    def _products(self):
        return (self.u, self.u), (self.u, self.w), (self.w, self.w)


def _cholesky(matrix) -> tuple[np.ndarray, bool]:
    """The Cholesky factor, of a little more where the matrix is singular to rounding.

    That shortens steps along what the matrix does not see and changes nothing of where they lead.
    """
    diagonal = matrix.diagonal().copy()
    for little in _LITTLE:
        matrix[np.diag_indices(len(matrix))] = diagonal * (1.0 + little)
        try:
            return linalg.cho_factor(matrix, lower=True, check_finite=False)
        except linalg.LinAlgError:
            continue
    raise linalg.LinAlgError


def _factor(matrix) -> np.ndarray | None:
    """R of few columns with matrix = R R', None where there is none."""
    factor, order, rank, _ = linalg.lapack.dpstrf(matrix, lower=1)
    rows = np.empty((len(matrix), rank))
    rows[order - 1] = np.tril(factor)[:, :rank]
    ones = np.ones(len(matrix))
    error = float(np.abs(matrix @ ones - rows @ (rows.T @ ones)).max())
    return rows if error <= 1e-8 * float(np.abs(matrix).max()) * len(matrix) else None
