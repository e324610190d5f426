"""Subgradient descent for the structured problem, on all samples or on a few at a time.

    min over w   1/2 ||w - anchor||^2  +  sum_i cost_i * H_i(w)

(`structured.problem` says what H_i is). With g = w - anchor - (n / |B|) sum_{i in B}
cost_i d_i over a batch B of samples, a step is

    velocity <- momentum * velocity - eta_t * g,    w <- w + velocity,
    eta_t = rate / (1 + t / t0) ** decay

where rate = 1 / t0 makes eta_t = 1 / (t0 + t), the step for a strongly convex function. The steps
of a pass together touch every H_i from below, so that every pass gives a plane below the objective.
The mean of the planes, with weights that grow with the number of the pass, gives the lower bound.
"""

from dataclasses import dataclass

import numpy as np

from widemargin.solvers.structured.problem import (
    Oracle,
    Record,
    StructuredSolution,
    lower_bound,
    upper_bounds,
)

AVERAGINGS = ("linear", "squared")


@dataclass
class DescentState:
    """Where the descent stands: `numbers` is all that is needed to go on elsewhere."""

    oracle: Oracle
    cost: np.ndarray
    anchor: np.ndarray | None
    tol: float
    max_iter: int
    check_every: int
    batch: int
    rate: float
    offset: float
    decay: float
    momentum: float
    averaging: str | None
    shuffle: bool
    random: np.random.Generator
    w: np.ndarray
    velocity: np.ndarray
    average: np.ndarray
    average_weight: float
    plane: np.ndarray
    plane_loss: float
    record: Record
    steps: int = 0
    iterations: int = 0
    finished: bool = False

    def numbers(self) -> dict[str, object]:
        """The state as plain arrays and numbers, for a checkpoint."""
        names = (
            "w", "velocity", "average", "average_weight", "plane", "plane_loss", "steps",
            "iterations",
        )  # fmt: skip
        plain = {name: getattr(self, name) for name in names}
        random = self.random.bit_generator.state
        return {**plain, "record": self.record.numbers(), "random": random}

    def resume(self, numbers: dict) -> "DescentState":
        """Go on from the `numbers` of another state of the same problem."""
        numbers = dict(numbers)
        self.random.bit_generator.state = numbers.pop("random")
        self.record = Record.of(numbers.pop("record"))
        for name, value in numbers.items():
            setattr(self, name, value)
        self.finished = self.record.settled(self.tol)
        return self


def start_descent(
    oracle: Oracle,
    cost: np.ndarray,
    *,
    anchor: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = 100,
    check_every: int = 10,
    batch: int | None = None,
    rate: float | None = None,
    offset: float = 10.0,
    decay: float = 1.0,
    momentum: float = 0.0,
    averaging: str | None = "linear",
    shuffle: bool = True,
    seed: int = 0,
    w: np.ndarray | None = None,
) -> DescentState:
    """A state at the anchor, or at ``w``; ``batch=None`` takes all samples for every step."""
    cost = np.asarray(cost, dtype=float)
    given = w is not None
    if w is None:
        w = np.zeros(oracle.size) if anchor is None else anchor
    w = np.array(w, dtype=float)
    n = oracle.n_samples
    state = DescentState(
        oracle, cost, anchor, tol, max_iter, check_every, n if batch is None else min(batch, n),
        1.0 / offset if rate is None else rate, offset, decay, momentum, averaging, shuffle,
        np.random.default_rng(seed), w, np.zeros_like(w), w.copy(), 0.0, np.zeros_like(w), 0.0,
        Record(w.copy()),
    )  # fmt: skip
    if given:
        # The first steps are long: what was good before they began must not be forgotten.
        objective, bound, _ = upper_bounds(oracle, w, cost, anchor)
        state.record.enter(0, w, objective, bound, 0.0)
    return state


def advance_descent(state: DescentState) -> bool:
    """Make a pass over the samples; True when there is nothing more to do."""
    if state.finished or state.iterations >= state.max_iter:
        return True
    n = state.oracle.n_samples
    order = state.random.permutation(n) if state.shuffle and state.batch < n else np.arange(n)
    plane, loss = np.zeros_like(state.w), 0.0
    for first in range(0, n, state.batch):
        samples = order[first : first + state.batch]
        found = state.oracle.violations(state.w, samples=samples, weight=state.cost[samples])
        plane += found.difference
        loss += float(np.sum(state.cost[samples] * found.losses))
        _step(state, n / len(samples) * found.difference)
    state.iterations += 1
    # Weights 1, 2, 3, ... of the passes.
    share = 2.0 / (state.iterations + 1.0)
    state.plane += share * (plane - state.plane)
    state.plane_loss += share * (loss - state.plane_loss)
    last = state.iterations >= state.max_iter
    if last or state.iterations % state.check_every == 0:
        _check(state)
        state.finished = last or state.record.settled(state.tol)
    return state.finished


def finish_descent(state: DescentState) -> StructuredSolution:
    """The solution at the state."""
    curve = state.record.curves["iteration"]
    if not curve or (not state.finished and curve[-1] != state.iterations):
        _check(state)
    return state.record.solution(state.iterations, state.tol)


def _step(state, pull):
    state.steps += 1
    eta = state.rate / (1.0 + state.steps / state.offset) ** state.decay
    distance = state.w if state.anchor is None else state.w - state.anchor
    state.velocity = state.momentum * state.velocity - eta * (distance - pull)
    state.w = state.w + state.velocity
    if state.averaging is not None:
        weight = float(state.steps) ** (1 if state.averaging == "linear" else 2)
        state.average_weight += weight
        state.average += weight / state.average_weight * (state.w - state.average)


def _check(state):
    w = state.w if state.averaging is None else state.average
    objective, bound, _ = upper_bounds(state.oracle, w, state.cost, state.anchor)
    dual = lower_bound(state.plane, state.plane_loss, state.anchor)
    state.record.enter(state.iterations, w, objective, bound, dual)
