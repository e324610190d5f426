"""Rounds of CoCoA+: dual coordinate descent on each partition, and a step that joins them.

In a round, each partition k changes its own dual variables by some passes of coordinate descent on

    max over delta   sum margin delta - <w, A delta> - sigma / 2 ||A delta||^2 - softness terms

with A delta = sum_i sign_i delta_i z_i and the common weights w (Ma et al., 2015): ``sigma``
accounts for the changes that the other partitions make at the same time. With sigma equal to the
number of partitions all changes can be added. Here they are directions: the dual objective over
their lengths is a quadratic in as many variables as there are partitions, whose maximum within the
bounds is the next point. It is never below that of plain adding.

References
----------
C. Ma, V. Smith, M. Jaggi, M. I. Jordan, P. Richtarik, M. Takac: Adding vs. averaging in distributed
primal-dual optimization. ICML 2015.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from widemargin._base.numeric import TINY
from widemargin._base.options import distributed_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.distributed.samples import LinearSamples, Measured, Rows
from widemargin.solvers.hinge.dual_coordinate_descent import coordinate_steps
from widemargin.solvers.jit import random_state, row_arrays
from widemargin.solvers.states import ACTIVE


class DualPoint(NamedTuple):
    """Dual variables of a partition, and the change that the last round proposes."""

    dual: np.ndarray
    change: np.ndarray


class Proposal(NamedTuple):
    """What a partition reports of a round, for each function.

    Attributes
    ----------
    losses : ndarray of shape (n_functions,)
        Sum of the losses at the weights of the round.
    values : ndarray of shape (n_functions,)
        Terms of the dual objective at the dual point of the round.
    slope, bend : ndarray of shape (n_functions,)
        Derivatives of these terms along the change.
    longest : ndarray of shape (n_functions,)
        Largest multiple of the change within the bounds.
    move : Rows
        Change of the weights.
    """

    losses: np.ndarray
    values: np.ndarray
    slope: np.ndarray
    bend: np.ndarray
    longest: np.ndarray
    move: Rows


@dataclass(frozen=True)
class Joint(Measured):
    """The common state of all partitions.

    Attributes
    ----------
    weights : ndarray of shape (n_functions, n_features + 1)
        Weights of the dual point.
    lengths : ndarray of shape (n_functions, n_partitions)
        Lengths of the changes of the last round.
    objective, bound : ndarray of shape (n_functions,)
        Smallest primal and largest dual objective so far.
    best : ndarray of shape (n_functions, n_features + 1)
        Weights of the smallest primal objective.
    rounds : int
    active : ndarray of bool, shape (n_functions,)
        Functions whose gap is above the tolerance.
    """

    weights: np.ndarray
    lengths: np.ndarray
    objective: np.ndarray
    bound: np.ndarray
    best: np.ndarray
    rounds: int
    active: np.ndarray

    @classmethod
    def start(cls, n_functions: int, n_features: int, n_partitions: int) -> "Joint":
        """Return the state at weights of zero."""
        weights = np.zeros((n_functions, n_features + 1))
        return cls(
            weights,
            np.zeros((n_functions, n_partitions)),
            np.full(n_functions, np.inf),
            np.zeros(n_functions),
            weights,
            0,
            np.ones(n_functions, dtype=bool),
        )

    @property
    def gap(self) -> np.ndarray:
        """Relative duality gap of each function."""
        gap = np.maximum(self.objective - self.bound, 0.0)
        return np.where(gap < np.inf, gap / np.maximum(self.objective, TINY), np.inf)

    def seen(self, weights: np.ndarray, objective: Any, bound: Any) -> "Joint":
        """Return the state with the objectives of one more point."""
        better = objective < self.objective
        return replace(
            self,
            objective=np.where(better, objective, self.objective),
            best=np.where(better[:, np.newaxis], weights, self.best),
            bound=np.maximum(self.bound, bound),
        )


def start_point(samples: LinearSamples) -> DualPoint:
    """Return the dual point of zero."""
    zeros = np.zeros(samples.positive.shape)
    return DualPoint(zeros, zeros)


def propose(
    samples: LinearSamples, point: DualPoint, number: int, joint: Joint, passes: int
) -> tuple[DualPoint, Proposal]:
    """Take the step of the last round in partition ``number``, and propose the next change."""
    dual = taken(samples, point, number, joint)
    weights = samples.take(joint.weights)
    losses, values = samples.losses(samples.scores(weights)), samples.dual_values(dual)
    change, move = np.zeros(dual.shape), np.zeros(weights.shape)
    for j in np.flatnonzero(joint.active):
        seed = number + options.seed_step * joint.rounds
        change[j], move[j] = _descend(
            samples,
            dual[j],
            weights[j],
            samples.sign[j],
            float(joint.lengths.shape[1]),
            passes,
            seed,
        )
    softness, ceiling = samples.loss.softness(samples.cost), samples.loss.ceiling(samples.cost)
    slope = change @ samples.margin - (dual * change) @ softness
    bend = (change * change) @ softness
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(change > 0.0, (ceiling - dual) / change, -dual / change)
    room = np.where(change == 0.0, np.inf, room)
    longest = np.minimum(np.maximum(room.min(axis=1, initial=np.inf), 1.0), options.longest_step)
    report = Proposal(losses, values, slope, bend, longest, Rows(samples.columns, move))
    return DualPoint(dual, change), report


def taken(samples: LinearSamples, point: DualPoint, number: int, joint: Joint) -> np.ndarray:
    """Return the dual variables after the step of the last round."""
    dual = point.dual + joint.lengths[:, [number]] * point.change
    return np.clip(dual, 0.0, samples.loss.ceiling(samples.cost))


def _descend(
    samples: LinearSamples, dual: Any, weights: Any, sign: Any, sigma: float, passes: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the change of the dual variables of one function, and that of the weights.

    The subproblem is that of `coordinate_steps` in the variables sigma * dual, with ceilings
    multiplied and softness divided by sigma.
    """
    n = len(samples.cost)
    softness = samples.loss.softness(samples.cost) / sigma
    ceiling = sigma * samples.loss.ceiling(samples.cost)
    diagonal = np.maximum(samples.norms + softness, TINY)
    target = sign * samples.margin
    constants = np.column_stack([target, diagonal, softness, sign * ceiling])
    scaled, moved = np.minimum(sigma * dual, ceiling), weights.copy()
    counts, extremes = np.zeros(7, np.int64), np.array([-np.inf, np.inf, np.inf, -np.inf])
    counts[ACTIVE] = n
    coordinate_steps(
        *row_arrays(samples.X), samples.bias, constants, scaled, moved,
        np.arange(n, dtype=np.uint32), counts, extremes, random_state(seed),
        options.round_tol, True, passes, n * (passes + 1),
    )  # fmt: skip
    return scaled / sigma - dual, (moved - weights) / sigma


def join(joint: Joint, proposals: list[Proposal], gap_tol: float = 0.0) -> Joint:
    """Record the objectives of the round, and take the best step along the proposed changes."""
    n_functions, size = joint.weights.shape
    norm = 0.5 * (joint.weights**2).sum(axis=1)
    objective = norm + sum(each.losses for each in proposals)
    bound = sum(each.values for each in proposals) - norm
    joint = joint.seen(joint.weights, objective, bound)
    joint = replace(joint, active=joint.active & (joint.gap > gap_tol))
    lengths = np.zeros((n_functions, len(proposals)))
    weights = joint.weights.copy()
    for j in np.flatnonzero(joint.active):
        moves = np.zeros((len(proposals), size))
        for move, each in zip(moves, proposals, strict=True):
            Rows(each.move.columns, each.move.values[[j]]).add_to(move[np.newaxis])
        slope, bend, longest = (
            np.array([getattr(each, name)[j] for each in proposals])
            for name in ("slope", "bend", "longest")
        )
        with single_threaded_blas():
            gram = moves @ moves.T + np.diag(bend)
            lengths[j] = best_lengths(gram, slope - moves @ weights[j], longest)
            weights[j] += lengths[j] @ moves
    return replace(joint, weights=weights, lengths=lengths, rounds=joint.rounds + 1)


def best_lengths(gram: np.ndarray, slope: np.ndarray, longest: np.ndarray) -> np.ndarray:
    """Maximize slope @ t - t @ gram @ t / 2 over 0 <= t <= longest, by coordinates."""
    lengths, gradient = np.zeros(len(slope)), slope.astype(float)
    diagonal = np.maximum(gram.diagonal(), TINY)
    for _ in range(options.length_sweeps):
        largest = 0.0
        for k in range(len(slope)):
            new = min(max(lengths[k] + gradient[k] / diagonal[k], 0.0), longest[k])
            step = new - lengths[k]
            if step:
                lengths[k] = new
                gradient -= step * gram[k]
                largest = max(largest, abs(step))
        if largest <= options.length_tol:
            break
    return lengths
