"""The problem every binary hinge method here is a case of, and what solving it gives.

    min over f, b   1/2 ||f||^2  +  sum_i cost_i * max(0, margin_i - sign_i (f(x_i) + b))

Its dual, in the signed variables beta_i = sign_i * alpha_i, with p_i = sign_i * margin_i:

    min over beta   1/2 beta' K beta - p' beta
    subject to      0 <= sign_i * beta_i <= cost_i,   and sum(beta) = 0 where there is an intercept

f(x) = sum_i beta_i k(x_i, x). The solvers keep the residual p - K beta, which is minus the dual's
gradient and also what is left of each margin: sign_i * residual_i = margin_i - sign_i * f(x_i).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from widemargin._base.jit import compiled
from widemargin.kernels import Gram, MatrixGram

_TINY = float(np.finfo(float).tiny)
_FAULTS = {
    1: "sign must be +1 or -1 everywhere.",
    2: "margin must be finite.",
    3: "cost must be at least 0 (infinite is allowed).",
}


class NotSeparableError(ValueError):
    """Rows of infinite cost cannot all be put on their side of the margin."""

    def __init__(self) -> None:
        super().__init__(
            "The rows of infinite cost cannot be separated with this kernel: give them a finite "
            "cost, or use a kernel (or a larger gamma) that can tell them apart."
        )


@dataclass(frozen=True)
class HingeProblem:
    """Numbers that make the hinge problem.

    Parameters
    ----------
    gram : Gram or ndarray of shape (n, n)
    sign : ndarray of shape (n,)
        +1 or -1.
    margin : ndarray of shape (n,) or float, default=1.0
        Of any sign.
    cost : ndarray of shape (n,) or float, default=1.0
        At least 0; ``np.inf`` makes the margin a hard constraint.
    intercept : bool, default=True
    separable : bool, default=False
        Whether rows of infinite cost are known to have a solution, however small its margin.
    """

    gram: Gram
    sign: np.ndarray
    margin: Any = 1.0
    cost: Any = 1.0
    intercept: bool = True
    separable: bool = False
    _bounds: tuple[np.ndarray, np.ndarray] = field(init=False, repr=False)
    _linear: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        settle = object.__setattr__
        sign = np.asarray(self.sign, dtype=np.float64)
        settle(self, "sign", sign)
        settle(self, "margin", _per_row(self.margin, sign))
        settle(self, "cost", _per_row(self.cost, sign))
        if isinstance(self.gram, np.ndarray):
            settle(self, "gram", MatrixGram(self.gram))
        if sign.shape != (self.gram.size,):
            raise ValueError(f"sign must have {self.gram.size} entries, got shape {sign.shape}.")
        fault, lower, upper, linear = _dual_form(sign, self.margin, self.cost)
        if fault:
            raise ValueError(_FAULTS[fault])
        settle(self, "_bounds", (lower, upper))
        settle(self, "_linear", linear)

    @property
    def size(self) -> int:
        return len(self.sign)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The least and greatest value of each signed dual variable."""
        return self._bounds

    def linear(self) -> np.ndarray:
        """p of the dual."""
        return self._linear

    def check_feasible(self, dual: np.ndarray) -> np.ndarray:
        """A copy of ``dual`` put exactly into its box, or a ValueError if it is not near it."""
        dual = np.array(dual, dtype=np.float64)
        if dual.shape != self.sign.shape:
            raise ValueError(f"dual must have shape {self.sign.shape}, got {dual.shape}.")
        lower, upper = self.bounds()
        inside = np.clip(dual, lower, upper)
        scale = max(1.0, float(np.max(np.abs(dual), initial=0.0)))
        if not np.all(np.abs(inside - dual) <= 1e-9 * scale):
            raise ValueError("dual must lie between 0 and sign * cost in every entry.")
        if self.intercept and not abs(inside.sum()) <= 1e-9 * scale * len(dual):
            raise ValueError("dual must sum to 0 in a problem with an intercept.")
        return inside


@dataclass(frozen=True)
class Solution:
    """What a solver found.

    Attributes
    ----------
    dual : ndarray of shape (n,)
        Signed dual variables: f(x) = sum_i dual_i k(x_i, x).
    intercept : float
    objective : float
        Primal value. With infinite costs, of f scaled to meet them.
    dual_objective : float
        Value of the maximised dual, a lower bound of the objective.
    gap : float
        (objective - dual_objective) / objective; nan where the kernel is not known to be positive
        semidefinite, since the dual then bounds nothing.
    iterations : int
    converged : bool
    """

    dual: np.ndarray
    intercept: float
    objective: float
    dual_objective: float
    gap: float
    iterations: int
    converged: bool


def certify(problem, dual, residual, iterations, converged) -> Solution:
    """The Solution at a dual point: intercept, both objectives and the gap between them."""
    lower, upper = problem.bounds()
    intercept, objective, dual_objective = _certificate(
        problem.sign, problem.margin, lower, upper, dual, residual, problem.intercept
    )
    if not problem.gram.positive_semidefinite:
        gap = np.nan
    elif objective == np.inf:
        gap = np.inf
    else:
        gap = max(0.0, objective - dual_objective) / max(abs(objective), _TINY)
    return Solution(dual, intercept, objective, dual_objective, gap, iterations, converged)


def _per_row(value, sign) -> np.ndarray:
    value = np.asarray(value, dtype=np.float64)
    if value.ndim == 0:
        return np.full(sign.shape, value)
    if value.shape != sign.shape:
        raise ValueError(f"margin and cost must have shape {sign.shape}, got {value.shape}.")
    return value


@compiled
def _dual_form(sign, margin, cost):
    """The box and p of the dual, after the number of what is wrong with the problem, or 0."""
    n = sign.shape[0]
    lower, upper, linear = np.zeros(n), np.zeros(n), np.empty(n)
    fault = 0
    for k in range(n):
        if abs(sign[k]) != 1.0:
            fault = 1
        elif not abs(margin[k]) < np.inf:
            fault = 2
        elif not cost[k] >= 0.0:
            fault = 3
        if sign[k] > 0.0:
            upper[k] = cost[k]
        else:
            lower[k] = -cost[k]
        linear[k] = sign[k] * margin[k]
    return fault, lower, upper, linear


@compiled
def _certificate(sign, margin, lower, upper, dual, residual, with_intercept):
    """The intercept, the primal objective and the dual objective at a dual point.

    The intercept is where free rows meet their margins, on average; without free rows it is the
    middle of the interval that the others leave. Rows of infinite cost that fall short of their
    margins are made up for by scaling f; the objective is infinite if that cannot help.
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
