"""The result of a solver, and the duality gap that certifies it.

Every solver maximizes a dual problem. Any feasible dual point gives a lower bound of the primal
objective, and a function f whose primal objective can be computed. Their difference bounds the
distance of both from the optimum, whatever the solver did to find the point.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.numeric import TINY

if TYPE_CHECKING:
    from widemargin.solvers.hinge.problem import HingeProblem


@dataclass(frozen=True)
class Solution:
    """Result of a solver.

    Attributes
    ----------
    dual : ndarray of shape (n,)
        Dual variables. Those of the hinge problem are signed: f(x) = sum_i dual_i k(x_i, x).
    intercept : float
    objective : float
        Primal objective. With infinite costs, that of f scaled to satisfy the margins.
    dual_objective : float
        Dual objective, a lower bound of the optimal primal objective.
    gap : float
        (objective - dual_objective) / objective; nan where the kernel is not known to be positive
        semidefinite, since the dual is no bound then.
    iterations : int
    converged : bool
    weights : ndarray or None
        Weights of the features and of the constant feature, for linear functions.
    """

    dual: np.ndarray
    intercept: float
    objective: float
    dual_objective: float
    gap: float
    iterations: int
    converged: bool
    weights: np.ndarray | None = None


def relative_gap(objective: float, bound: float, positive_semidefinite: bool = True) -> float:
    """Return (objective - bound) / objective, or nan where the kernel may be indefinite."""
    if not positive_semidefinite:
        return np.nan
    if objective == np.inf:
        return np.inf
    return max(0.0, objective - bound) / max(abs(objective), TINY)


def certify(
    problem: "HingeProblem",
    dual: np.ndarray,
    residual: np.ndarray,
    iterations: int,
    converged: bool,
) -> Solution:
    """Return the solution of a hinge problem at a dual point.

    Parameters
    ----------
    problem : HingeProblem
    dual : ndarray of shape (n,)
        Feasible signed dual variables.
    residual : ndarray of shape (n,)
        p - K dual.
    iterations : int
    converged : bool
    """
    lower, upper = problem.bounds()
    intercept, objective, dual_objective = _certificate(
        problem.sign, problem.margin, lower, upper, dual, residual, problem.intercept
    )
    gap = relative_gap(objective, dual_objective, problem.gram.positive_semidefinite)
    return Solution(dual, intercept, objective, dual_objective, gap, iterations, converged)


@compiled
def _certificate(sign, margin, lower, upper, dual, residual, with_intercept):
    """Return the intercept, the primal objective and the dual objective at a dual point.

    The intercept is the mean of those at which the free samples are on the margin; without free
    samples it is the middle of the interval that the others permit. Where samples of infinite cost
    violate the margin, f is scaled up until they do not; the objective is infinite if no scale
    suffices.
    """
    n = dual.shape[0]
    total, free = 0.0, 0
    least, greatest = -np.inf, np.inf
    norm, gain = 0.0, 0.0
    for k in range(n):
        norm += dual[k] * (sign[k] * margin[k] - residual[k])
        gain += dual[k] * sign[k] * margin[k]
        if lower[k] < dual[k] < upper[k]:
            total += residual[k]
            free += 1
        elif dual[k] < upper[k]:
            least = max(least, residual[k])
        elif dual[k] > lower[k]:
            greatest = min(greatest, residual[k])
    intercept = 0.0
    if with_intercept:
        if free > 0:
            intercept = total / free
        elif least > -np.inf and greatest < np.inf:
            intercept = 0.5 * (least + greatest)
        elif least > -np.inf:
            intercept = least
        elif greatest < np.inf:
            intercept = greatest
    scale = 1.0
    for k in range(n):
        if upper[k] - lower[k] == np.inf:
            score = margin[k] - sign[k] * (residual[k] - intercept)
            if score < margin[k]:
                scale = max(scale, margin[k] / score) if score > 0.0 else np.inf
    objective = np.inf
    if scale < np.inf:
        objective = 0.5 * norm * scale * scale
        for k in range(n):
            slack = margin[k] - scale * (margin[k] - sign[k] * (residual[k] - intercept))
            cost = upper[k] - lower[k]
            if cost < np.inf:
                objective += cost * max(slack, 0.0)
            elif slack > 1e-12 * abs(margin[k]):
                objective = np.inf
    return intercept, objective, gain - 0.5 * norm
