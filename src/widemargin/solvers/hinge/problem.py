"""The problem that every binary hinge method is a case of.

    min over f, b   1/2 ||f||^2  +  sum_i cost_i * max(0, margin_i - sign_i (f(x_i) + b))

Its dual, in the signed variables beta_i = sign_i * alpha_i, with p_i = sign_i * margin_i:

    min over beta   1/2 beta' K beta - p' beta
    subject to      0 <= sign_i * beta_i <= cost_i,   and sum(beta) = 0 where there is an intercept

f(x) = sum_i beta_i k(x_i, x). The solvers maintain the residual p - K beta, which is minus the
gradient of the dual. It also gives the slack without intercept:
sign_i * residual_i = margin_i - sign_i * f(x_i).
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from widemargin._base import extended
from widemargin._base.jit import compiled, uncompiled
from widemargin._base.numeric import EPSILON
from widemargin._base.options import smo_options as options
from widemargin.kernels import Gram, MatrixGram
from widemargin.solvers.solution import Solution, relative_gap

_ERRORS = {
    1: "sign must be +1 or -1 everywhere.",
    2: "margin must be finite.",
    3: "cost must be at least 0 (infinite is allowed).",
}


class NotSeparableError(ValueError):
    """Samples of infinite cost are not separable."""

    def __init__(self) -> None:
        super().__init__(
            "The samples of infinite cost are not separable with this kernel. Use a finite cost "
            "(C), or another kernel or a larger gamma."
        )


@dataclass(frozen=True)
class HingeProblem:
    """Data of a hinge problem.

    Parameters
    ----------
    gram : Gram or ndarray of shape (n, n)
        Gram matrix K of the samples.
    sign : ndarray of shape (n,)
        Class of each sample, +1 or -1.
    margin : ndarray of shape (n,) or float, default=1.0
        Margin that each sample should reach, positive or negative.
    cost : ndarray of shape (n,) or float, default=1.0
        Cost of a unit of slack, at least 0; ``np.inf`` makes the margin a hard constraint.
    intercept : bool, default=True
        Whether there is an intercept b, which is not regularized.
    separable : bool, default=False
        Whether samples of infinite cost are known to be separable, however small the margin.
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
        sign = np.asarray(self.sign, dtype=np.float64)
        margin, cost = _per_sample(self.margin, sign), _per_sample(self.cost, sign)
        gram = MatrixGram(self.gram) if isinstance(self.gram, np.ndarray) else self.gram
        if sign.shape != (gram.size,):
            raise ValueError(f"sign must have {gram.size} entries, got shape {sign.shape}.")
        error, lower, upper, linear = _dual_form(sign, margin, cost)
        if error:
            raise ValueError(_ERRORS[error])
        vars(self).update(gram=gram, sign=sign, margin=margin, cost=cost)
        vars(self).update(_bounds=(lower, upper), _linear=linear)

    @property
    def size(self) -> int:
        return len(self.sign)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the lower and upper bounds of the signed dual variables."""
        return self._bounds

    def linear(self) -> np.ndarray:
        """Return p, the linear term of the dual."""
        return self._linear

    def check_feasible(self, dual: np.ndarray) -> np.ndarray:
        """Return a copy of ``dual`` clipped to its bounds; raise ValueError if it is infeasible."""
        dual = np.array(dual, dtype=np.float64)
        if dual.shape != self.sign.shape:
            raise ValueError(f"dual must have shape {self.sign.shape}, got {dual.shape}.")
        lower, upper = self.bounds()
        inside = np.clip(dual, lower, upper)
        scale = max(1.0, float(np.max(np.abs(dual), initial=0.0)))
        allowed = options.feasibility * scale
        if not np.all(np.abs(inside - dual) <= allowed):
            raise ValueError("dual must lie between 0 and sign * cost in every entry.")
        if self.intercept and not abs(inside.sum()) <= allowed * len(dual):
            raise ValueError("dual must sum to 0 in a problem with an intercept.")
        return inside

    def is_feasible(self, dual: np.ndarray) -> bool:
        """Return whether `check_feasible` accepts ``dual``."""
        try:
            self.check_feasible(dual)
        except ValueError:
            return False
        return True


def certify(
    problem: HingeProblem,
    dual: np.ndarray,
    residual: np.ndarray,
    iterations: int,
    converged: bool,
) -> Solution:
    """Return the solution of a hinge problem at a dual point.

    Where rounding errors of the residual may matter, it is computed with twice the digits of
    float64, as far as that does not take too long. What error remains is added to the gap.

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
    gram, bounds = problem.gram, problem.bounds()
    data = problem.sign, problem.margin, *bounds, dual
    intercept, objective, bound = certificate(*data, residual, 0.0, problem.intercept)
    error = _rounding_error(
        problem.sign, *bounds, dual, residual - intercept, gram.diagonal(), gram.rounding()
    )
    rounded = error > options.negligible_rounding * objective
    if gram.offset is not None or rounded:
        exact = gram.exact_sums(dual)
        if exact is not None:
            intercept, objective, bound, error = _exact_certificate(problem, dual, *exact)
    error = error if error > options.negligible_rounding * objective else 0.0
    gap = relative_gap(objective, bound - error, gram.positive_semidefinite)
    return Solution(dual, intercept, objective, bound, gap, iterations, converged, rounded=rounded)


def _exact_certificate(
    problem: HingeProblem, dual: np.ndarray, values: extended.Pair, errors: np.ndarray
) -> tuple[float, float, float, float]:
    """Return the intercept of the least loss, both objectives and a bound of their error.

    ``values`` is K dual with twice the digits, up to ``errors``.
    """
    sign, margin, linear = problem.sign, problem.margin, problem.linear()
    data = sign, margin, *problem.bounds(), dual
    candidates, excess = [0.0], math.fsum(dual) if problem.intercept else 0.0
    if problem.intercept:
        residual = linear - values[0]
        first, *_ = certificate(*data, residual, 0.0, True)
        candidates = [first, least_loss_intercept(problem, residual)]
    points = []
    for intercept in candidates:
        total, rest = extended.two_sum(-values[0], np.array(-intercept))
        shifted = (total + linear) + (rest - values[1])
        _, objective, bound = certificate(*data, shifted, intercept * excess, False)
        # Moving a variable to where the sum is 0 changes the dual objective by its residual.
        free = np.argmin(np.abs(shifted))
        bound -= abs(excess * (float(shifted[free]) + intercept))
        points.append((objective, intercept, bound, shifted))
    objective, intercept, bound, shifted = min(points, key=lambda point: point[0])
    return intercept, objective, bound, _objective_error(*data, shifted, errors)


def least_loss_intercept(problem: HingeProblem, residual: np.ndarray) -> float:
    """Return the intercept of the least loss: its slope rises by the cost at every kink."""
    cost = np.minimum(problem.cost, np.finfo(np.float64).max / (2 * problem.size))
    order = np.argsort(residual)
    slopes = np.cumsum(cost[order]) - cost[problem.sign > 0.0].sum()
    kink = min(int(np.searchsorted(slopes, 0.0)), problem.size - 1)
    return float(residual[order[kink]])


def _per_sample(value: Any, sign: np.ndarray) -> np.ndarray:
    value = np.asarray(value, dtype=np.float64)
    if value.ndim == 0:
        return np.full(sign.shape, value)
    if value.shape != sign.shape:
        raise ValueError(f"margin and cost must have shape {sign.shape}, got {value.shape}.")
    return value


def _vector_work(sign, *rest):
    """Return the microseconds of the vector operations below."""
    return 30.0 + 0.05 * len(sign)


@compiled(work=_vector_work)
def _dual_form(sign, margin, cost):
    """Return an error code (0 if the problem is valid), the bounds and p of the dual."""
    n = sign.shape[0]
    lower, upper, linear = np.zeros(n), np.zeros(n), np.empty(n)
    error = 0
    for k in range(n):
        if abs(sign[k]) != 1.0:
            error = 1
        elif not abs(margin[k]) < np.inf:
            error = 2
        elif not cost[k] >= 0.0:
            error = 3
        if sign[k] > 0.0:
            upper[k] = cost[k]
        else:
            lower[k] = -cost[k]
        linear[k] = sign[k] * margin[k]
    return error, lower, upper, linear


@compiled(work=_vector_work)
def certificate(sign, margin, lower, upper, dual, residual, excess, with_intercept):
    """Return the intercept, the primal objective and the dual objective at a dual point.

    ``excess`` is what the squared norm of f is too large by, computed from the residual.

    The intercept is the mean of those at which the free samples are on the margin; without free
    samples it is the middle of the interval that the others permit. Where samples of infinite cost
    violate the margin, f is scaled up until they do not; the objective is infinite if no scale
    suffices.
    """
    n = dual.shape[0]
    total, free = 0.0, 0
    least, greatest = -np.inf, np.inf
    norm, gain = -excess, 0.0
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
        intercept = total / free if free > 0 else _middle(least, greatest)
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
            slack = sign[k] * (residual[k] - intercept)
            if scale > 1.0:
                slack = margin[k] - scale * (margin[k] - slack)
            cost = upper[k] - lower[k]
            if cost < np.inf:
                objective += cost * max(slack, 0.0)
            elif slack > 1e-12 * abs(margin[k]):
                objective = np.inf
    return intercept, objective, gain - 0.5 * norm


@compiled
def _middle(least, greatest):
    """Return the middle of an interval, its finite end, or 0 if it has none."""
    if least > -np.inf and greatest < np.inf:
        return 0.5 * (least + greatest)
    if least > -np.inf:
        return least
    return greatest if greatest < np.inf else 0.0


@compiled(work=_vector_work)
def _rounding_error(sign, lower, upper, dual, residual, norms, rounding):
    """Return a bound of the error of the objectives by rounding errors of the residual.

    They are at most ``rounding`` times the sum of the sizes of its terms.
    """
    size = 0.0
    for k in range(dual.shape[0]):
        size += abs(dual[k]) * math.sqrt(abs(norms[k]))
    errors = np.empty(dual.shape[0])
    for k in range(dual.shape[0]):
        errors[k] = max(rounding, EPSILON) * (size * math.sqrt(abs(norms[k])) + abs(residual[k]))
    return _objective_error(sign, errors, lower, upper, dual, residual, errors)


@compiled(work=_vector_work)
def _objective_error(sign, margin, lower, upper, dual, residual, errors):
    """Return a bound of the error of the objectives by errors of the residual.

    Errors of slacks are multiplied by finite costs; f is scaled to satisfy the margins where costs
    are infinite.
    """
    total = 0.0
    for k in range(dual.shape[0]):
        cost = upper[k] - lower[k]
        if cost < np.inf and sign[k] * residual[k] > -errors[k]:
            total += cost * errors[k]
        total += abs(dual[k]) * errors[k]
    return total


# The same in vector operations, which run until the functions above are compiled. The sums have the
# same order.


@uncompiled(_dual_form)
def _dual_form_by_vectors(sign, margin, cost):
    invalid = np.abs(sign) != 1.0, ~(np.abs(margin) < np.inf), ~(cost >= 0.0)
    errors = np.select(invalid, [1, 2, 3])
    error = int(errors[np.flatnonzero(errors)[-1]]) if errors.any() else 0
    positive = sign > 0.0
    return error, np.where(positive, 0.0, -cost), np.where(positive, cost, 0.0), sign * margin


@uncompiled(certificate)
def _certificate_by_vectors(sign, margin, lower, upper, dual, residual, excess, with_intercept):
    norm = _sum_in_order(-excess, dual * (sign * margin - residual))
    gain = _sum_in_order(0.0, dual * sign * margin)
    intercept = 0.0
    if with_intercept:
        free = (lower < dual) & (dual < upper)
        rising = ~free & (dual < upper)
        falling = ~free & ~rising & (dual > lower)
        least = residual[rising].max(initial=-np.inf)
        greatest = residual[falling].min(initial=np.inf)
        if free.any():
            intercept = _sum_in_order(0.0, residual[free]) / np.count_nonzero(free)
        else:
            intercept = _middle(least, greatest)
    cost, slack, scale = upper - lower, sign * (residual - intercept), 1.0
    hard = cost == np.inf
    if hard.any():
        scores = margin - slack
        below = hard & (scores < margin)
        if not (scores[below] > 0.0).all():
            return intercept, np.inf, gain - 0.5 * norm
        scale = max(scale, (margin[below] / scores[below]).max(initial=1.0))
    if not scale < np.inf:
        return intercept, np.inf, gain - 0.5 * norm
    if scale > 1.0:
        slack = margin - scale * (margin - slack)
    objective = _sum_in_order(0.5 * norm * scale * scale, (cost * np.maximum(slack, 0.0))[~hard])
    if (hard & (slack > 1e-12 * np.abs(margin))).any():
        objective = np.inf
    return intercept, objective, gain - 0.5 * norm


@uncompiled(_rounding_error)
def _rounding_error_by_vectors(sign, lower, upper, dual, residual, norms, rounding):
    roots = np.sqrt(np.abs(norms))
    size = _sum_in_order(0.0, np.abs(dual) * roots)
    errors = max(rounding, EPSILON) * (size * roots + np.abs(residual))
    return _objective_error_by_vectors(sign, errors, lower, upper, dual, residual, errors)


@uncompiled(_objective_error)
def _objective_error_by_vectors(sign, margin, lower, upper, dual, residual, errors):
    cost = upper - lower
    counted = (cost < np.inf) & (sign * residual > -errors)
    # Adding 0.0 changes no bits of a sum that is not negative.
    terms = np.where(counted, cost * errors, 0.0), np.abs(dual) * errors
    return _sum_in_order(0.0, np.column_stack(terms).ravel())


def _sum_in_order(first: float, terms: np.ndarray) -> float:
    """Return first + terms[0] + terms[1] + ..., added from left to right."""
    return float(np.add.accumulate(np.concatenate(((first,), terms)))[-1])
