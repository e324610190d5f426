"""Small hinge problems (see `problem`), with little Python code around the compiled steps.

One-vs-one, folds and values of C make many problems of a few hundred samples, each of which takes
less time than the checks, reports and changes of method that `smo` has for large ones. Most of them
need nothing but its first steps, which are all that there is here: pair updates to the tolerance,
Newton steps to machine precision, the certificate.
"""

from typing import Any

import numpy as np

from widemargin._base.numeric import TINY
from widemargin._base.options import newton_options
from widemargin._base.options import smo_options as options
from widemargin.kernels import Gram
from widemargin.kernels.dense import dense_matrix
from widemargin.solvers.free_set_newton import free_set_newton
from widemargin.solvers.hinge.pairs import descend_with_intercept
from widemargin.solvers.hinge.problem import HingeProblem, certify
from widemargin.solvers.solution import Solution
from widemargin.solvers.stopping import rounding_floor


class SmallSolver:
    """Solver of problems with an intercept over the same samples, for increasing costs.

    Parameters
    ----------
    gram : Gram
        A matrix for which `applies` is true. The problems to solve differ in their costs only;
        each starts from the solution of the one before.

    Attributes
    ----------
    dual : ndarray of shape (n,)
        Where the last call of `solve` ended.
    updates : int
        Number of its pair updates.
    """

    def __init__(self, gram: Gram):
        self.dense, self.diagonal = dense_matrix(gram), gram.diagonal()
        self.largest = float(np.abs(self.diagonal).max(initial=0.0))
        self.dual = np.zeros(gram.size)
        self.residual: Any = None
        self.updates = 0

    @staticmethod
    def applies(gram: Gram) -> bool:
        """Return whether problems over these samples are small."""
        return gram.positive_semidefinite and gram.size <= options.dense_size

    def solve(self, problem: HingeProblem, tol: float) -> Solution | None:
        """Return the solution, or None if it takes more than these steps."""
        if self.residual is None:
            self.residual = problem.linear().copy()
        self.updates, size = 0, problem.size
        # All bounds together limit the rounding errors, which are then below tol everywhere.
        if not rounding_floor(float(problem.cost.sum()) * self.largest) <= tol:  # nan: inf * 0
            return None
        period = options.newton_period * size
        steps = options.shrink_steps if size >= options.shrink_size else period
        if not self._descend(problem, tol, steps):
            return None
        self._refine(problem, tol, period)
        point = self.dual.copy(), self.residual, self.updates
        solution = certify(problem, *point, converged=True)
        return solution if solution.gap <= options.rounded_gap else None

    def _refine(self, problem: HingeProblem, tol: float, period: int) -> None:
        """Improve the solution to machine precision, as `smo` does."""
        lower, upper = problem.bounds()
        if problem.size > newton_options.most_free:
            free = np.count_nonzero((lower < self.dual) & (self.dual < upper))
            if free > newton_options.most_free:
                return
        # Rows of nonzero dual variables are filled: pair updates have used them.
        arrays = self.dense.matrix, problem.linear(), lower, upper, self.dual, self.residual
        for round_ in range(newton_options.rounds):
            if round_:
                rounding = rounding_floor(float(np.abs(self.dual).sum()) * self.largest)
                if not self._descend(problem, max(0.1**round_ * tol, rounding), period):
                    return
            if free_set_newton(*arrays, intercept=True) <= newton_options.precision:
                return

    def _descend(self, problem: HingeProblem, tol: float, steps: int) -> bool:
        """Update pairs until none violates by ``tol``; return whether ``steps`` sufficed."""
        floor = max(options.flat_curvature * self.largest, TINY)
        point = *problem.bounds(), self.dual, self.residual
        done = descend_with_intercept(*self.dense.arrays, self.diagonal, *point, tol, steps, floor)
        self.updates += done
        return done < steps
