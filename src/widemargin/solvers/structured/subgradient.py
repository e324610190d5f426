"""Subgradient descent for the structured problem, on all samples or on mini-batches.

    min over w   1/2 ||w - anchor||^2  +  sum_i cost_i * H_i(w)

(H_i is defined in `structured.problem`). With g = w - anchor - (n / |B|) sum_{i in B} cost_i d_i
over a batch B of samples, a step is

    velocity <- momentum * velocity - (1 - momentum) * eta_t * g,    w <- w + velocity,
    eta_t = rate / (1 + t / t0) ** decay

where rate = 1 / t0 makes eta_t = 1 / (t0 + t), the step for a strongly convex function. The steps
of a pass touch every H_i from below, so that every pass gives a plane below the objective. The
average of the planes, with weights that grow with the number of the pass, gives the lower bound.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from widemargin.solvers.structured.problem import PassState

AVERAGINGS = ("linear", "squared")


@dataclass(kw_only=True)
class SubgradientState(PassState):
    """State of subgradient descent.

    Parameters
    ----------
    batch_size : int, optional
        Samples per step; all by default.
    rate : float, optional
        Length of the first step; ``1 / offset`` by default.
    offset : float, default=10.0
        The constant t0 of the schedule.
    decay : float, default=1.0
        Exponent of the schedule.
    momentum : float, default=0.0
        Fraction of the last step that is repeated, with the rest of the new one.
    averaging : {'linear', 'squared'}, optional
        Weights of the iterates in the average that is returned; None returns the last iterate.
    shuffle : bool, default=True
        Whether to shuffle the samples in each pass.
    """

    batch_size: int | None = None
    rate: float | None = None
    offset: float = 10.0
    decay: float = 1.0
    momentum: float = 0.0
    averaging: str | None = "linear"
    shuffle: bool = True
    velocity: np.ndarray = field(init=False)
    average: np.ndarray = field(init=False)
    plane: np.ndarray = field(init=False)
    average_weight: float = 0.0
    plane_loss: float = 0.0
    steps: int = 0

    saved = (
        "w", "velocity", "average", "average_weight", "plane", "plane_loss", "steps", "iterations",
    )  # fmt: skip

    def __post_init__(self) -> None:
        warm = self.w is not None
        super().__post_init__()
        self.velocity, self.plane = np.zeros_like(self.w), np.zeros_like(self.w)
        self.average = self.w.copy()
        if warm:
            # The first steps are long: they may leave weights that were better.
            self.record_at(self.w, 0.0)

    def run_pass(self) -> None:
        n = self.oracle.n_samples
        batch_size = n if self.batch_size is None else min(self.batch_size, n)
        order = self.random.permutation(n) if self.shuffle and batch_size < n else np.arange(n)
        plane = np.zeros_like(self.w)
        loss = self._compiled_pass(order, batch_size, plane)
        if loss is None:
            loss = self._step_batches(order, batch_size, plane)
        # The passes have weights 1, 2, 3, ...
        share = 2.0 / (self.iterations + 2.0)
        self.plane += share * (plane - self.plane)
        self.plane_loss += share * (loss - self.plane_loss)

    def check_gap(self) -> None:
        w = self.w if self.averaging is None else self.average
        self.record_at(w, self.lower_bound(self.plane, self.plane_loss))

    def schedule(self) -> tuple[float, float, float]:
        """Return rate, offset and decay of the lengths of steps."""
        rate = 1.0 / self.offset if self.rate is None else self.rate
        return rate, self.offset, self.decay

    def _compiled_pass(self, order: np.ndarray, batch_size: int, plane: np.ndarray) -> Any:
        """Run a pass whose steps do not touch all weights, or return None if there is none."""
        run = getattr(self.oracle, "subgradient_pass", None)
        whole = batch_size == len(order)  # threads share the work of a batch of all samples
        if run is None or whole or self.momentum or self.anchor.any() or self.is_bounded:
            return None
        return run(order, batch_size, self, plane)

    def _step_batches(self, order: np.ndarray, batch_size: int, plane: np.ndarray) -> float:
        loss, n = 0.0, len(order)
        for first in range(0, n, batch_size):
            samples = order[first : first + batch_size]
            violations = self.oracle.violations(self.w, samples=samples, weight=self.cost[samples])
            plane += violations.difference
            loss += float(np.sum(self.cost[samples] * violations.losses))
            self._step(n / len(samples) * violations.difference)
        return loss

    def _step(self, pull: np.ndarray) -> None:
        self.steps += 1
        rate, offset, decay = self.schedule()
        eta = rate / (1.0 + self.steps / offset) ** decay
        gradient = self.w - self.anchor - pull
        self.velocity = self.momentum * self.velocity - (1.0 - self.momentum) * eta * gradient
        self.w = self.project(self.w + self.velocity)
        if self.averaging is not None:
            weight = float(self.steps) ** (1 if self.averaging == "linear" else 2)
            self.average_weight += weight
            self.average += weight / self.average_weight * (self.w - self.average)
