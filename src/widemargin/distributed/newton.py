"""Newton's method on sums over partitions, which ends what coordinate descent leaves.

The dual is solved by the proximal method: with an anchor a, the last dual point,

    max over alpha   dual(alpha) - sum_i rho_i / 2 (alpha_i - a_i)^2

is the dual of a linear classifier whose loss is differentiable. At weights w with the slack
u_i = margin_i - sign_i <w, z_i> its dual point is

    alpha_i = clip((u_i + rho_i a_i) / (softness_i + rho_i), 0, ceiling_i)

and its gradient is w - sum_i sign_i alpha_i z_i. Half the squared norm of the gradient is the
duality gap of this problem: once that is a share of the gap of the problem itself, alpha becomes
the anchor. The squared hinge is differentiable: rho is 0. Otherwise rho_i = width / ceiling_i: the
kink of the loss is rounded over ``width`` of the slack.

An iteration takes two rounds. In the first, partitions sum up the gradient and the second
derivatives of the samples at which alpha lies between its bounds; with few features as a matrix,
otherwise as products in conjugate gradients, each of which is a round. In the second, they sum up
the derivative along the step at some lengths. The number of rounds hardly depends on the number of
partitions, and every point yields the bounds of the certificate.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from widemargin._base.numeric import TINY
from widemargin._base.options import distributed_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.distributed.cocoa import Joint
from widemargin.distributed.samples import LinearSamples, Measured, Rows


@dataclass(frozen=True)
class Iterate(Measured):
    """The common state of all partitions.

    Attributes
    ----------
    joint : Joint
        With the weights, and the objectives so far.
    step : ndarray of shape (n_functions, n_features + 1)
        Newton step from the weights; 0 for functions that move their anchor instead.
    width : ndarray of shape (n_functions,)
        Slack over which the kink of the loss is rounded.
    anchoring : ndarray of bool, shape (n_functions,)
        Functions whose dual point becomes the anchor.
    """

    joint: Joint
    step: np.ndarray
    width: np.ndarray
    anchoring: np.ndarray

    @classmethod
    def start(cls, joint: Joint) -> "Iterate":
        """Return the state at the best weights of the rounds before."""
        n_functions = len(joint.weights)
        width = np.full(n_functions, options.first_width)
        joint = replace(joint, weights=joint.best)
        return cls(joint, np.zeros_like(joint.weights), width, np.zeros(n_functions, dtype=bool))


class Derivatives(NamedTuple):
    """Sums over samples for each function: objectives, gradient, and second derivatives."""

    losses: np.ndarray
    values: np.ndarray
    combined: np.ndarray
    matrix: np.ndarray | None
    diagonal: np.ndarray | None

    def plus(self, other: "Derivatives") -> "Derivatives":
        sums: list[Any] = [
            None if mine is None else mine + theirs
            for mine, theirs in zip(self, other, strict=True)
        ]
        return Derivatives(*sums)


def dual_point(
    samples: LinearSamples, anchor: np.ndarray, weights: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, dual variables and second derivatives of the rounded loss."""
    scores = samples.scores(samples.take(weights))
    dual, curvature = _response(samples, anchor, samples.margin - samples.sign * scores, width)
    return scores, dual, curvature


def _response(
    samples: LinearSamples, anchor: np.ndarray, slack: np.ndarray, width: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    softness, ceiling = samples.loss.softness(samples.cost), samples.loss.ceiling(samples.cost)
    rho = np.zeros(slack.shape)
    if not samples.loss.differentiable:
        rho = width[:, np.newaxis] / np.maximum(ceiling, TINY)
    free = (slack + rho * anchor) / (softness + rho)
    dual = np.clip(free, 0.0, ceiling)
    return dual, np.where(free == dual, 1.0 / (softness + rho), 0.0) * (free > 0.0)


def move_anchor(samples: LinearSamples, anchor: np.ndarray, iterate: Iterate) -> np.ndarray:
    """Return the anchor, moved to the dual point for functions that need it."""
    if not iterate.anchoring.any():
        return anchor
    # The width has been lowered for the problem around the next anchor.
    width = iterate.width / options.width_factor
    _, dual, _ = dual_point(samples, anchor, iterate.joint.weights, width)
    return np.where(iterate.anchoring[:, np.newaxis], dual, anchor)


def derivatives(
    samples: LinearSamples, anchor: np.ndarray, iterate: Iterate, direct: bool
) -> Derivatives:
    """Sum up objectives and derivatives over the samples of a partition."""
    weights = iterate.joint.weights
    scores, dual, curvature = dual_point(samples, anchor, weights, iterate.width)
    total = np.zeros(weights.shape)
    samples.combine(samples.sign * dual).add_to(total)
    losses, values = samples.losses(scores), samples.dual_values(dual)
    size = weights.shape[1]
    if direct:
        matrix = np.zeros((len(weights), size, size))
        for j in np.flatnonzero(iterate.joint.active):
            _add_products(samples, curvature[j], matrix[j])
        return Derivatives(losses, values, total, matrix, None)
    diagonal = np.zeros(weights.shape)
    squares = samples.X.multiply(samples.X) if sp.issparse(samples.X) else samples.X**2
    sums = (squares.T @ curvature.T).T
    constant = samples.bias**2 * curvature.sum(axis=1)
    Rows(samples.columns, np.column_stack([sums, constant])).add_to(diagonal)
    return Derivatives(losses, values, total, None, diagonal)


def _add_products(samples: LinearSamples, curvature: np.ndarray, matrix: np.ndarray) -> None:
    """Add sum_i curvature_i z_i z_i' to a matrix, block by block."""
    rows = np.flatnonzero(curvature)
    columns = np.arange(len(matrix)) if samples.columns is None else samples.columns
    step = max(1, options.multiplied_entries // len(matrix))
    with single_threaded_blas():
        for first in range(0, len(rows), step):
            chosen = rows[first : first + step]
            root = np.sqrt(curvature[chosen])[:, np.newaxis]
            X = samples.X[chosen]
            Z = np.empty((len(chosen), len(columns)))
            Z[:, :-1] = X.toarray() if sp.issparse(X) else X
            Z[:, -1] = samples.bias
            Z *= root
            matrix[np.ix_(columns, columns)] += Z.T @ Z


def product(
    samples: LinearSamples, anchor: np.ndarray, iterate: Iterate, direction: np.ndarray
) -> np.ndarray:
    """Multiply the second derivatives of a partition by a direction, for each function."""
    _, _, curvature = dual_point(samples, anchor, iterate.joint.weights, iterate.width)
    total = np.zeros(direction.shape)
    image = curvature * samples.scores(samples.take(direction))
    samples.combine(image).add_to(total)
    return total


def slopes(samples: LinearSamples, anchor: np.ndarray, iterate: Iterate) -> np.ndarray:
    """Sum up the derivative of the rounded loss along the step, at ``options.lengths``."""
    weights = iterate.joint.weights
    scores = samples.scores(samples.take(weights))
    change = samples.sign * samples.scores(samples.take(iterate.step))
    slack = samples.margin - samples.sign * scores
    result = np.empty((len(options.lengths), len(weights)))
    for k, length in enumerate(options.lengths):
        dual, _ = _response(samples, anchor, slack - length * change, iterate.width)
        result[k] = -(dual * change).sum(axis=1)
    return result


def seen(iterate: Iterate, sums: Derivatives, gap_tol: float) -> tuple[Iterate, np.ndarray]:
    """Record the objectives; return also the gradient, 0 for functions that are done or anchor."""
    joint, combined = iterate.joint, sums.combined
    objective = 0.5 * (joint.weights**2).sum(axis=1) + sums.losses
    bound = sums.values - 0.5 * (combined**2).sum(axis=1)
    gradient = joint.weights - combined
    inner = 0.5 * (gradient**2).sum(axis=1)
    anchoring = inner <= options.inner_share * np.maximum(objective - bound, 0.0)
    joint = joint.seen(joint.weights, objective, bound)
    joint = replace(joint, active=joint.gap > gap_tol, rounds=joint.rounds + 1)
    anchoring &= joint.active
    gradient[anchoring | ~joint.active] = 0.0
    width = np.where(anchoring, options.width_factor, 1.0) * iterate.width
    return replace(iterate, joint=joint, anchoring=anchoring, width=width), gradient


def direct_step(iterate: Iterate, sums: Derivatives, gap_tol: float) -> Iterate:
    """Record the objectives, and solve the Newton equations of all functions."""
    iterate, gradient = seen(iterate, sums, gap_tol)
    step = np.zeros(gradient.shape)
    assert sums.matrix is not None
    for j in np.flatnonzero(gradient.any(axis=1)):
        matrix = np.eye(gradient.shape[1]) + sums.matrix[j]
        with single_threaded_blas():
            try:
                step[j] = -cho_solve(cho_factor(matrix), gradient[j])
            except LinAlgError:
                step[j] = -gradient[j] / matrix.diagonal()
    return replace(iterate, step=step)


def joint_of(iterate: Iterate) -> Joint:
    """Return the part of the state that all methods share."""
    return iterate.joint


@dataclass(frozen=True)
class Equations(Measured):
    """Conjugate gradients on the Newton equations of all functions at once.

    Attributes
    ----------
    iterate : Iterate
    diagonal : ndarray of shape (n_functions, n_features + 1)
        Of the second derivatives.
    solution, residual, direction : ndarray of shape (n_functions, n_features + 1)
    first : ndarray of shape (n_functions,)
        Norm of the gradient.
    """

    iterate: Iterate
    diagonal: np.ndarray
    solution: np.ndarray
    residual: np.ndarray
    direction: np.ndarray
    first: np.ndarray

    @classmethod
    def start(cls, iterate: Iterate, sums: Derivatives, gap_tol: float) -> "Equations":
        """Record the objectives, and begin at a step of zero."""
        iterate, gradient = seen(iterate, sums, gap_tol)
        assert sums.diagonal is not None
        diagonal, residual = 1.0 + sums.diagonal, -gradient
        zeros, first = np.zeros_like(residual), np.sqrt((residual**2).sum(axis=1))
        return cls(iterate, diagonal, zeros, residual, residual / diagonal, first)

    @property
    def finished(self) -> bool:
        """Whether the residuals of all functions are small."""
        norm = np.sqrt((self.residual**2).sum(axis=1))
        return bool((norm <= options.residual_share * self.first).all())

    def advance(self, image: np.ndarray) -> "Equations":
        """Take a step, given the sums of the products with the direction."""
        image = image + self.direction
        bend = (self.direction * image).sum(axis=1)
        product = (self.residual**2 / self.diagonal).sum(axis=1)
        length = np.where(bend > 0.0, product / np.maximum(bend, TINY), 0.0)[:, np.newaxis]
        solution = self.solution + length * self.direction
        residual = self.residual - length * image
        following = (residual**2 / self.diagonal).sum(axis=1)
        turn = np.where(product > 0.0, following / np.maximum(product, TINY), 0.0)
        direction = residual / self.diagonal + turn[:, np.newaxis] * self.direction
        joint = replace(self.iterate.joint, rounds=self.iterate.joint.rounds + 1)
        return replace(
            self, iterate=replace(self.iterate, joint=joint), solution=solution,
            residual=residual, direction=direction,
        )  # fmt: skip

    def finish(self) -> Iterate:
        """Return the iterate with its step."""
        return replace(self.iterate, step=self.solution)


def take_step(iterate: Iterate, sums: np.ndarray) -> Iterate:
    """Move along the step to the minimum, between lengths at which the derivative is known."""
    joint, step, lengths = iterate.joint, iterate.step, np.array(options.lengths)
    slope = sums + (joint.weights * step).sum(axis=1) + np.outer(lengths, (step**2).sum(axis=1))
    chosen = np.zeros(len(step))
    for j in np.flatnonzero(step.any(axis=1)):
        last = int(np.argmax(slope[:, j] >= 0.0))
        if slope[last, j] < 0.0:
            chosen[j] = lengths[-1]
        elif last:
            low, high = slope[last - 1, j], slope[last, j]
            share = low / (low - high) if high > low else 1.0
            chosen[j] = lengths[last - 1] + share * (lengths[last] - lengths[last - 1])
    joint = replace(
        joint, weights=joint.weights + chosen[:, np.newaxis] * step, rounds=joint.rounds + 1
    )
    return replace(iterate, joint=joint)
