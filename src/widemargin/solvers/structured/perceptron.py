"""The structured perceptron, with averaging.

For sample i, with the prediction y = argmax_y w . phi(x_i, y) at the current weights,

    w <- w + rate_t cost_i ( phi(x_i, y_i) - phi(x_i, y) ),    rate_t = (t0 + t) ** decay

in pass t. There is no regularization and no margin; on samples that can be separated the number
of mistakes is finite (Collins, 2002). The average of the weights after all steps predicts better
than the last weights where the samples cannot be separated.

References
----------
M. Collins: Discriminative training methods for hidden Markov models: theory and experiments with
perceptron algorithms. EMNLP 2002.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from widemargin.solvers.structured.problem import SolverState, StructuredSolution


@dataclass(kw_only=True)
class PerceptronState(SolverState):
    """State of the perceptron.

    The objective in the record is the sum of the losses of the predictions in a pass, each made
    before the step on its sample. There is no dual problem: the gap is 1 while there are mistakes.

    Parameters
    ----------
    batch : bool, default=False
        Whether to predict for all samples before one step for all of them.
    decay, offset : float, default=0
        Exponent and t0 of the rate.
    averaging : bool, default=True
        Whether to return the average of the weights after all steps.
    average_from : int, default=0
        The first pass that is averaged; -1 for the last one alone.
    shuffle : bool, default=True
        Whether to shuffle the samples in each pass.
    """

    batch: bool = False
    decay: float = 0.0
    offset: float = 10.0
    averaging: bool = True
    average_from: int = 0
    shuffle: bool = True
    average: np.ndarray = field(init=False)
    steps: int = 0

    saved = ("w", "average", "steps", "iterations")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.average = self.w.copy()

    @property
    def rate(self) -> float:
        """Length of the steps of the current pass."""
        return float((self.offset + self.iterations) ** self.decay) if self.decay else 1.0

    def iterate(self) -> None:
        order = np.flatnonzero(self.cost > 0.0)
        if self.shuffle and not self.batch:
            order = self.random.permutation(order)
        if self.iterations > 0 and self.average_from in (self.iterations, -1):
            self.steps = 0  # the average starts again
        run = getattr(self.oracle, "perceptron_pass", None)
        loss = None if run is None or self.batch or self.is_bounded else run(order, self)
        if loss is None:
            loss = self._step_samples([order] if self.batch else order[:, np.newaxis])
        self.iterations += 1
        w = self.average if self.averaging else self.w
        self.record.objective = np.inf  # the weights of the last pass count, not the best
        self.record.add(self.iterations, w, loss, loss, 0.0)
        self.finished = loss == 0.0 or self.iterations >= self.max_iter

    def finish(self) -> StructuredSolution:
        return self.record.solution(self.iterations, self.tol)

    def _step_samples(self, batches: Any) -> float:
        total = 0.0
        for samples in batches:
            loss, change = self.oracle.mistakes(self.w, samples, self.rate * self.cost[samples])
            total += loss
            self.w = self.project(self.w + change)
            self.steps += 1
            self.average += (self.w - self.average) / self.steps
        return total
