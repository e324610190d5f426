"""Losses of linear classifiers: a new loss is one class here.

A loss l(s) of the slack s is convex, zero for s <= 0, quadratic up to a certain slack and linear
beyond it. Two numbers describe it, its second derivative where it is quadratic and its largest
first derivative:

    l'(s) = min(curvature * s, slope)    for s > 0

The hinge has no quadratic part (infinite curvature), the squared hinge no linear one (infinite
slope), the Huberized hinge has both. With cost c, the conjugate of c * l adds to the dual

    0 <= alpha <= ceiling = c * slope    and    1/2 softness alpha^2,   softness = 1 / (c curvature)

so that the dual of every such loss is a box and a diagonal quadratic term, which is what the
compiled coordinate descent solves. Newton's method needs a differentiable loss: finite curvature.
A shift of the slack is not part of a loss: it is a margin.
"""

from typing import Any, ClassVar

import numpy as np

from widemargin._base.numeric import TINY

LOSSES: dict[str, "Loss"] = {}
"""Losses by the name that estimators accept for their parameter ``loss``."""


class Loss:
    """A piecewise quadratic loss, declared by its name, `curvature` and `slope`."""

    name: ClassVar[str]
    curvature: float
    """Second derivative of the quadratic part; infinite for a kink at 0."""
    slope: float
    """Largest derivative; infinite for a loss without a linear part."""

    @property
    def differentiable(self) -> bool:
        return self.curvature < np.inf

    @property
    def width(self) -> float:
        """Slack at which the quadratic part ends."""
        return self.slope / self.curvature

    def value(self, slack: np.ndarray) -> np.ndarray:
        """Compute the loss for each slack."""
        slack = np.maximum(0.0, slack)
        if not self.differentiable:
            return self.slope * slack
        if self.slope == np.inf:
            return 0.5 * self.curvature * (slack * slack)
        quadratic = np.minimum(slack, self.width)
        return 0.5 * self.curvature * quadratic**2 + self.slope * (slack - quadratic)

    def derivative(self, slack: Any) -> np.ndarray:
        """Compute the first derivative of a differentiable loss for each slack."""
        derivative = np.maximum(0.0, self.curvature * slack)
        return derivative if self.slope == np.inf else np.minimum(derivative, self.slope)

    def is_curved(self, slack: np.ndarray) -> np.ndarray:
        """Return whether the second derivative is `curvature`, and not 0, for each slack."""
        curved = slack > 0.0
        return curved if self.slope == np.inf else curved & (slack < self.width)

    def ceiling(self, cost: np.ndarray) -> np.ndarray:
        """Return the upper bounds of the dual variables of samples with these costs."""
        return np.full(cost.shape, np.inf) if self.slope == np.inf else self.slope * cost

    def softness(self, cost: np.ndarray) -> np.ndarray:
        """Return the coefficients of 1/2 alpha^2 in the dual for samples with these costs."""
        if not self.differentiable:
            return np.zeros(cost.shape)
        return 1.0 / self.curvature / np.maximum(cost, TINY)


def register_loss(loss: type[Loss]) -> type[Loss]:
    """Make a class of losses known by its name; to be used as a decorator."""
    LOSSES[loss.name] = loss()
    return loss


@register_loss
class Hinge(Loss):
    """max(0, s)."""

    name = "hinge"
    curvature = np.inf
    slope = 1.0


@register_loss
class SquaredHinge(Loss):
    """max(0, s)^2."""

    name = "squared_hinge"
    curvature = 2.0
    slope = np.inf
