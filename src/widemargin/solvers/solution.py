"""The result of a solver, and its duality gap.

Every solver maximizes a dual problem. Any feasible dual point gives a lower bound of the primal
objective, and a function f whose primal objective can be computed. Their difference bounds the
distance of both from the optimum, whatever the solver did to find the point.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin._base.numeric import TINY

Report = Callable[[Any], bool] | None
"""A function that is called with the state after every slice of work; True stops the solver."""


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
    rounded : bool
        Whether rounding errors of float64 are not negligible in the objectives. If so, they were
        computed with more digits, or the gap includes a bound of the errors.
    """

    dual: np.ndarray
    intercept: float
    objective: float
    dual_objective: float
    gap: float
    iterations: int
    converged: bool
    weights: np.ndarray | None = None
    rounded: bool = False


def relative_gap(objective: float, bound: float, positive_semidefinite: bool = True) -> float:
    """Return (objective - bound) / objective, or nan where the kernel may be indefinite."""
    if not positive_semidefinite:
        return np.nan
    if not objective < np.inf:  # infinite, or nan after an overflow
        return np.inf
    # No objective is negative: 0 is a bound, too, and the only one where sums have overflowed.
    bound = bound if 0.0 < bound < np.inf else 0.0
    return max(0.0, objective - bound) / max(abs(objective), TINY)
