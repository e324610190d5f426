"""From a point of the two-kernel problem (see `two_kernels`) to its exact optimum, if it is small.

The variables inside their boxes, and those let go of since, make the working set F. On it the
optimality conditions are linear equations in the step d, the weights v of the second function in
the columns of its factor R (M = R R' / penalty) and the constants c = (c_1, c_2):

    H d + W R_F v + L c = p_F - u f_F          H = u u' K_FF, or with M where there is no factor
    R_F' W d - penalty v = -R' h
    L' d = -(sum(g), sum(h))

Where the step leads out of the box it is cut and the variable that blocked it leaves F; where a
variable outside F violates, the worst one joins. v stands beside d since h says little about it
when the penalty is small.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import linalg

from widemargin._base.threads import single_threaded_blas

if TYPE_CHECKING:
    from widemargin.solvers.coupled.two_kernels import TwoKernelProblem

MOST_UNKNOWNS = 400

_ROUNDS = 500
_PROXIMITY = 1e-11
_PRECISION = 1e-9
_WORK = 4e9
_TINY = float(np.finfo(float).tiny)


class Settled(NamedTuple):
    """Where a method ended, in the terms of `TwoKernelSolution`."""

    point: np.ndarray
    first: np.ndarray
    second: np.ndarray
    constants: np.ndarray
    weights: np.ndarray | None
    optimal: bool


def settle(problem: "TwoKernelProblem", point: np.ndarray) -> Settled | None:
    """Go from a feasible point to the optimum; None where that would be too much work."""
    with single_threaded_blas():
        return _Search(problem, point).run()


class _Search:
    def __init__(self, problem, point):
        self.problem = problem
        self.shape = point.shape
        n = point.shape[1]
        self.row = np.tile(np.arange(n), len(point))
        self.direction = problem.lines[problem.line.ravel()]
        self.lower, self.upper = problem.lower.ravel(), problem.upper.ravel()
        self.linear = problem.linear.ravel()
        self.point = point.ravel().copy()
        self.factor = np.zeros((n, 0)) if problem.factor is None else problem.factor
        self.weights = np.zeros(self.factor.shape[1])
        self.constants = np.zeros(2)
        self.scale = 1.0 + float(np.abs(self.linear).max(initial=0.0))
        self.working = list(np.flatnonzero(self._inside()))

    def run(self) -> Settled | None:
        work = 0.0
        for _ in range(_ROUNDS):
            size = len(self.working) + len(self.weights) + 2
            work += size**3
            if size > MOST_UNKNOWNS or work > _WORK or not self.working:
                break
            blocked = self._step()
            if blocked is None:
                return None
            if blocked:
                continue
            joins = self._most_violating()
            if joins is None:
                return self._answer(True)
            self.working.append(joins)
        return self._answer(False) if self.working and work > 0.0 else None

    def _step(self) -> bool | None:
        """Step to where the equations hold on F; whether something was in the way."""
        problem, index = self.problem, np.array(self.working)
        rows, direction = self.row[index], self.direction[index]
        g, h = problem.sides(self.point.reshape(self.shape))
        u, w = direction.T
        square = np.outer(u, u) * problem.first[np.ix_(rows, rows)]
        right = self.linear[index] - u * (problem.first[rows] @ g)
        if problem.factor is None:
            square += np.outer(w, w) * problem.second[np.ix_(rows, rows)]
            right -= w * (problem.second[rows] @ h)
        m, r = len(index), len(self.weights)
        # A little that keeps the equations solvable where F has variables, or lines, to spare.
        little = _PROXIMITY * max(float(square.diagonal().max()), _TINY)
        system = np.diag(np.repeat([little, -problem.penalty, -0.01 * little], [m, r, 2]))
        system[:m, :m] += square
        system[:m, m:] = np.hstack([w[:, None] * self.factor[rows], direction])
        system[m:, :m] = system[:m, m:].T
        sums = -np.array([g.sum(), h.sum()])
        wanted = np.concatenate([right, -(self.factor.T @ h), sums])
        solution = _solve(system, wanted)
        if solution is None:
            return None
        step, target, constants = np.split(solution, [m, m + r])
        length, blocking = self._room(index, step)
        self.point[index] += length * step
        self.weights = self.weights + length * (target - self.weights)
        self.constants = constants
        if blocking is not None:
            v = index[blocking]
            self.point[v] = self.upper[v] if step[blocking] > 0.0 else self.lower[v]
            self.working.remove(v)
        return blocking is not None

    def _room(self, index, step) -> tuple[float, int | None]:
        """How much of the step the boxes leave, and the variable that stops it."""
        ends = np.where(step > 0.0, self.upper[index], self.lower[index])
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step == 0.0, np.inf, (ends - self.point[index]) / step)
        first = int(np.argmin(room))
        if room[first] < 1.0:
            return max(0.0, float(room[first])), first
        return 1.0, None

    def _functions(self) -> tuple[np.ndarray, np.ndarray]:
        g, h = self.problem.sides(self.point.reshape(self.shape))
        if self.problem.factor is None:
            return self.problem.first @ g, self.problem.second @ h
        return self.problem.first @ g, self.factor @ self.weights

    def _most_violating(self) -> int | None:
        first, second = self._functions()
        u, w = self.direction.T
        values = u * (first[self.row] + self.constants[0])
        values += w * (second[self.row] + self.constants[1])
        residual = self.linear - values
        violation = np.where(self.point < self.upper, residual, 0.0)
        violation = np.maximum(violation, np.where(self.point > self.lower, -residual, 0.0))
        violation[self.working] = 0.0
        worst = int(np.argmax(violation))
        scale = max(self.scale, float(np.abs(values).max()))
        return worst if violation[worst] > _PRECISION * scale else None

    def _answer(self, optimal: bool) -> Settled:
        first, second = self._functions()
        weights = None if self.problem.factor is None else self.weights
        point = self.point.reshape(self.shape)
        return Settled(point, first, second, self.constants, weights, optimal)

    def _inside(self) -> np.ndarray:
        return (self.lower < self.point) & (self.point < self.upper)


def _solve(system, right) -> np.ndarray | None:
    """The solution after one step of refinement; None where there is none to speak of."""
    factors, pivots, failed = linalg.lapack.dgetrf(system)
    if failed:
        return None
    solution = linalg.lu_solve((factors, pivots), right, check_finite=False)
    solution += linalg.lu_solve((factors, pivots), right - system @ solution, check_finite=False)
    return solution if np.isfinite(solution).all() else None
