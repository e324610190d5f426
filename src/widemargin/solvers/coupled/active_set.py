"""Active-set method: from a point of the coupled problem to its exact optimum, on small problems.

The variables strictly between their bounds, and those released since, are the working set F. On it
the optimality conditions are linear equations in the step d, the weights t of the second function
in the columns of the factor R (M = R R' / penalty) and the constants c = (c_1, c_2):

    H d + W R_F t + L c = p_F - u f_F          H = u u' K_FF, plus w w' M_FF without a factor
    R_F' W d - penalty t = -R' h
    L' d = -(sum(g), sum(h))

where W = diag(w) and the rows of L are the directions (u, w). If the step leaves the bounds it is
cut there and the variable that blocks it leaves F. If a variable outside F violates its condition,
the one with the largest violation joins. t is an unknown beside d because h determines it poorly
when the penalty is small.

This is `free_set_newton` with other equations: they are indefinite, and variables may join.
"""

import numpy as np
from scipy import linalg

from widemargin._base.numeric import TINY
from widemargin._base.options import active_set_options as options
from widemargin.solvers.coupled.problem import CoupledProblem, Optimum
from widemargin.solvers.free_set_newton import longest_step


def refine_by_active_set(problem: CoupledProblem, point: np.ndarray) -> Optimum | None:
    """Go from a feasible point to the optimum.

    Returns
    -------
    Optimum or None
        None if the equations cannot be solved or are too large, or take too many steps.
    """
    state, work = _ActiveSet(problem, point), 0.0
    for _ in range(options.steps):
        size = len(state.working) + len(state.weights) + 2
        work += size**3
        if size > options.most_unknowns or work > options.most_work or not state.working:
            break
        blocked = state.step()
        if blocked is None:
            break
        if not blocked:
            functions = state.functions()
            joining = state.largest_violation(*functions)
            if joining is None:
                point = state.point.reshape(point.shape)
                weights = None if problem.factor is None else state.weights
                return Optimum(point, *functions, state.constants, weights, True)
            state.working.append(joining)
    return None


class _ActiveSet:
    def __init__(self, problem: CoupledProblem, point: np.ndarray):
        self.problem = problem
        self.shape = point.shape
        n = point.shape[1]
        self.sample = np.tile(np.arange(n), len(point))
        self.direction = problem.directions[problem.kind.ravel()]
        self.lower, self.upper = problem.lower.ravel(), problem.upper.ravel()
        self.linear = problem.linear.ravel()
        self.point = point.ravel().copy()
        self.factor = np.zeros((n, 0)) if problem.factor is None else problem.factor
        self.weights = np.zeros(self.factor.shape[1])
        self.constants = np.zeros(2)
        self.scale = 1.0 + float(np.abs(self.linear).max(initial=0.0))
        inside = (self.lower < self.point) & (self.point < self.upper)
        self.working: list[int] = np.flatnonzero(inside).tolist()

    def step(self) -> bool | None:
        """Step to where the equations hold on F; return whether a bound was in the way.

        None if the equations have no solution.
        """
        index = np.array(self.working)
        solution = _solve(*self._equations(index))
        if solution is None:
            return None
        m = len(index)
        step, weights, constants = np.split(solution, [m, m + len(self.weights)])
        lower, upper = self.lower[index], self.upper[index]
        length, blocking = longest_step(self.point[index], step, lower, upper, False)
        length = max(0.0, length)
        self.point[index] += length * step
        self.weights = self.weights + length * (weights - self.weights)
        self.constants = constants
        if blocking >= 0:
            v = index[blocking]
            self.point[v] = self.upper[v] if step[blocking] > 0.0 else self.lower[v]
            self.working.remove(v)
        return blocking >= 0

    def _equations(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the matrix and the right-hand side of the equations on F."""
        problem = self.problem
        samples, direction = self.sample[index], self.direction[index]
        g, h = problem.expansions(self.point.reshape(self.shape))
        u, w = direction.T
        block = np.outer(u, u) * problem.first[np.ix_(samples, samples)]
        right = self.linear[index] - u * (problem.first[samples] @ g)
        if problem.factor is None:
            block += np.outer(w, w) * problem.second[np.ix_(samples, samples)]
            right -= w * (problem.second[samples] @ h)
        m, r = len(index), len(self.weights)
        # Keeps the equations solvable where F has dependent variables, or lacks a direction.
        ridge = options.ridge * max(float(block.diagonal().max()), TINY)
        matrix = np.diag(
            np.repeat([ridge, -problem.penalty, -options.multiplier_ridge * ridge], [m, r, 2])
        )
        matrix[:m, :m] += block
        matrix[:m, m:] = np.hstack([w[:, None] * self.factor[samples], direction])
        matrix[m:, :m] = matrix[:m, m:].T
        sums = -np.array([g.sum(), h.sum()])
        return matrix, np.concatenate([right, -(self.factor.T @ h), sums])

    def functions(self) -> tuple[np.ndarray, np.ndarray]:
        """Return f and e at the samples."""
        g, h = self.problem.expansions(self.point.reshape(self.shape))
        if self.problem.factor is None:
            return self.problem.first @ g, self.problem.second @ h
        return self.problem.first @ g, self.factor @ self.weights

    def largest_violation(self, first: np.ndarray, second: np.ndarray) -> int | None:
        """Return the variable outside F that violates its condition most; None if none does."""
        u, w = self.direction.T
        values = u * (first[self.sample] + self.constants[0])
        values += w * (second[self.sample] + self.constants[1])
        residual = self.linear - values
        violation = np.where(self.point < self.upper, residual, 0.0)
        violation = np.maximum(violation, np.where(self.point > self.lower, -residual, 0.0))
        violation[self.working] = 0.0
        worst = int(np.argmax(violation))
        scale = max(self.scale, float(np.abs(values).max()))
        return worst if violation[worst] > options.joining_violation * scale else None


def _solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """Return the solution after one step of refinement; None if the matrix is singular."""
    factors, pivots, failed = linalg.lapack.dgetrf(matrix)
    if failed:
        return None
    solution = linalg.lu_solve((factors, pivots), right, check_finite=False)
    solution += linalg.lu_solve((factors, pivots), right - matrix @ solution, check_finite=False)
    return solution if np.isfinite(solution).all() else None
