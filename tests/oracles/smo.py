"""Sequential minimal optimization in plain NumPy: a short reference implementation.

Solves, in beta_i = sign_i * alpha_i,

    min over beta   1/2 beta' K beta - (sign * margin)' beta
    subject to      0 <= sign_i * beta_i <= cost_i,  sum(beta) = 0 when there is an intercept

by updating the pair of coordinates (one coordinate without an intercept) with the largest
predicted decrease, until no coordinate violates the optimality conditions by more than `tol`.
"""

from typing import NamedTuple

import numpy as np


class Reference(NamedTuple):
    """Solution: ``sign * dual`` is within the bounds, ``intercept`` is that of the decision."""

    dual: np.ndarray
    intercept: float
    iterations: int


class NotConvergedError(RuntimeError):
    """More iterations than allowed."""


def solve_by_smo(problem, tol=1e-9, max_iter=100_000):
    """Solve a `Hinge` problem by SMO in plain NumPy."""
    advance = _move_pair if problem.intercept else _move_one
    lower = np.where(problem.sign > 0, 0.0, -problem.cost)
    upper = np.where(problem.sign > 0, problem.cost, 0.0)
    dual = np.zeros(len(problem.sign))
    # sign * margin - f, which is minus the gradient of the objective.
    ascent = (problem.sign * problem.margin).astype(float)
    for iteration in range(max_iter):
        if not advance(problem.gram, dual, ascent, lower, upper, tol):
            intercept = _intercept(problem, dual, ascent, lower, upper)
            return Reference(dual, intercept, iteration)
    raise NotConvergedError(f"SMO did not reach tol={tol} in {max_iter} iterations")


def _move_pair(gram, dual, ascent, lower, upper, tol):
    """Raise one coordinate and lower another by as much; False at the optimum."""
    raisable, lowerable = dual < upper, dual > lower
    first = np.argmax(np.where(raisable, ascent, -np.inf))
    violation = np.where(lowerable, ascent[first] - ascent, -np.inf)
    if violation.max() <= tol:
        return False
    curvature = gram[first, first] + np.diag(gram) - 2.0 * gram[first]
    curvature = np.maximum(curvature, 1e-12 * gram.diagonal().max())
    second = np.argmax(np.where(violation > 0, violation**2 / curvature, -np.inf))
    above, below = upper[first] - dual[first], dual[second] - lower[second]
    step = min(violation[second] / curvature[second], above, below)
    # A coordinate that reaches its bound is set to it exactly, not up to rounding.
    dual[first] = upper[first] if step == above else dual[first] + step
    dual[second] = lower[second] if step == below else dual[second] - step
    ascent -= step * (gram[first] - gram[second])
    return True


def _move_one(gram, dual, ascent, lower, upper, tol):
    """Move one coordinate to its minimum; False at the optimum."""
    movable = np.where(ascent > 0, dual < upper, dual > lower)
    if not movable.any() or np.abs(ascent[movable]).max() <= tol:
        return False
    curvature = np.maximum(np.diag(gram), 1e-12 * gram.diagonal().max())
    best = np.argmax(np.where(movable, ascent**2 / curvature, -np.inf))
    target = dual[best] + ascent[best] / curvature[best]
    step = np.clip(target, lower[best], upper[best]) - dual[best]
    dual[best] = np.clip(target, lower[best], upper[best])
    ascent -= step * gram[best]
    return True


def _intercept(problem, dual, ascent, lower, upper):
    """Mean over the free coordinates, or the middle of the interval that the bounds permit."""
    if not problem.intercept:
        return 0.0
    raisable, lowerable = dual < upper, dual > lower
    if (raisable & lowerable).any():
        return float(ascent[raisable & lowerable].mean())
    return float((ascent[raisable].max() + ascent[lowerable].min()) / 2)
