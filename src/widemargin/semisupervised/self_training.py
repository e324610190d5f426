"""Self-training: train, evaluate, assign pseudo-labels to unlabeled samples, and repeat.

Every round trains on the labeled samples and on the unlabeled samples with a pseudo-label, and
chooses two thresholds on the validation samples. Unlabeled samples with scores above the upper
threshold get a positive pseudo-label, those below the lower one a negative one, and the others
none.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from widemargin.semisupervised.constraints import (
    Constraints,
    ThresholdCurve,
    adjusted_threshold,
    tuned_threshold,
)

HISTORY = (
    "added", "positive", "negative", "upper", "lower", "precision", "recall", "f1",
    "threshold", "objective", "best",
)  # fmt: skip


@dataclass(frozen=True)
class RoundModel:
    """A model trained in one round, and its scores.

    Attributes
    ----------
    model : object
        The fitted model.
    validation, unlabeled : ndarray
        Scores of the validation and of the unlabeled samples.
    calibration : ndarray or None
        Scores of the calibration samples, if there are any.
    """

    model: Any
    validation: np.ndarray
    unlabeled: np.ndarray
    calibration: np.ndarray | None = None


class Learner(Protocol):
    """Trains the models of all rounds."""

    def train(self, pseudo_labels: np.ndarray) -> RoundModel:
        """Train with the labeled samples and these pseudo-labels."""

    def state(self, best: RoundModel) -> dict[str, Any]:
        """Return what `resume` needs as arrays and numbers."""

    def resume(self, state: dict[str, Any], pseudo_labels: np.ndarray) -> RoundModel:
        """Continue from a saved state; return the best model, trained with these labels."""


@dataclass
class SelfTrainingState:
    """State of self-training after a round.

    Attributes
    ----------
    pseudo_labels : ndarray of shape (n_unlabeled,)
        1, -1 or 0 (none) for every unlabeled sample.
    best : RoundModel or None
        The best model so far.
    best_pseudo_labels : ndarray or None
        The pseudo-labels it was trained with.
    best_rank : tuple
        What makes it the best.
    history : dict of list
    seen : list of str
        Digests of the pseudo-labels of earlier rounds.
    finished : bool
    """

    pseudo_labels: np.ndarray
    best: RoundModel | None = None
    best_pseudo_labels: np.ndarray | None = None
    best_rank: tuple[float, ...] = ()
    history: dict[str, list] = field(default_factory=lambda: {name: [] for name in HISTORY})
    seen: list[str] = field(default_factory=list)
    finished: bool = False

    def arrays(self) -> dict[str, Any]:
        """Return the state without the model as arrays and numbers, for a checkpoint."""
        return {
            "pseudo_labels": self.pseudo_labels,
            "best_pseudo_labels": self.best_pseudo_labels,
            "best_rank": np.array(self.best_rank, dtype=np.float64),
            "history": {name: np.array(values) for name, values in self.history.items()},
            "seen": np.array(self.seen),
            "finished": self.finished,
        }

    @staticmethod
    def from_arrays(arrays: dict[str, Any], best: RoundModel) -> "SelfTrainingState":
        """Return the state with these `arrays` and this best model."""
        lists = {
            "best_rank": tuple(arrays["best_rank"].tolist()),
            "history": {name: values.tolist() for name, values in arrays["history"].items()},
            "seen": arrays["seen"].tolist(),
        }
        return SelfTrainingState(best=best, **{**arrays, **lists})


def self_train(
    train: Callable[[np.ndarray], RoundModel],
    positive: np.ndarray,
    weight: np.ndarray | None,
    constraints: Constraints,
    state: SelfTrainingState,
    *,
    update: str = "incremental",
    max_rounds: int | None = None,
    min_new: int = 1,
    threshold: str = "adjusted",
    report: Callable[[SelfTrainingState], bool] = lambda state: False,
) -> None:
    """Run rounds until the pseudo-labels do not change, keeping the best model in ``state``.

    Parameters
    ----------
    train : callable
        ``train(pseudo_labels)`` returns a `RoundModel`.
    positive : ndarray of bool of shape (n_validation,)
        Which validation samples are positive.
    weight : ndarray of shape (n_validation,) or None
        Weights of the validation samples.
    constraints : Constraints
    state : SelfTrainingState
        Initial state. It is modified.
    update : {'incremental', 'recompute'}
        Whether pseudo-labels are final, or recomputed in every round.
    max_rounds : int, default=None
    min_new : int, default=1
        Stop when fewer pseudo-labels than this change.
    threshold : {'tuned', 'adjusted', 'zero'}
        With 'tuned', models are compared at their tuned thresholds, else at 0. With 'zero', samples
        with scores above 0 get positive pseudo-labels, else those above the adjusted threshold.
    report : callable
        Called with the state after every round. If it returns True, training stops.
    """
    rounds = state.history["added"]
    while not state.finished:
        trained = train(state.pseudo_labels)
        state.seen.append(_digest(state.pseudo_labels))
        upper, lower = _evaluate(state, trained, positive, weight, constraints, threshold)
        scores = trained.unlabeled
        labels = (scores > upper).astype(np.int8) - (scores < lower).astype(np.int8)
        if update == "incremental":
            labels = np.where(state.pseudo_labels != 0, state.pseudo_labels, labels)
        changed = int(np.count_nonzero(labels != state.pseudo_labels))
        rounds.append(changed)
        stalled = changed < max(1, min_new) or _digest(labels) in state.seen
        state.finished = stalled or len(rounds) == max_rounds
        if not stalled:
            state.pseudo_labels = labels
        if report(state):
            break


def _evaluate(
    state: SelfTrainingState,
    trained: RoundModel,
    positive: np.ndarray,
    weight: np.ndarray | None,
    constraints: Constraints,
    threshold: str,
) -> tuple[float, float]:
    """Record the metrics of a model, keep it if it is the best, return upper and lower threshold.

    A model that meets the constraints is better than one that does not, then a smaller violation,
    then a greater objective. The earlier of equally good models is kept.
    """
    scores = trained.validation
    at_zero = ThresholdCurve(scores, positive, weight, thresholds=np.zeros(1))
    upper = (
        0.0 if threshold == "zero" else adjusted_threshold(constraints, scores, positive, weight)
    )
    negative_weight = None if weight is None else weight[~positive]
    lower = min(float(np.average(scores[~positive], weights=negative_weight)), upper)
    curve = ThresholdCurve(scores, positive, weight) if threshold == "tuned" else at_zero
    index = tuned_threshold(constraints, curve)
    violation = float(constraints.violation(curve)[index])
    rank = (float(violation == 0.0), -violation, float(constraints.objective(curve)[index]))
    is_best = state.best is None or rank > state.best_rank
    if is_best:
        state.best, state.best_pseudo_labels, state.best_rank = trained, state.pseudo_labels, rank
    figures = {
        "positive": int(np.count_nonzero(state.pseudo_labels > 0)),
        "negative": int(np.count_nonzero(state.pseudo_labels < 0)),
        "upper": upper,
        "lower": lower,
        "precision": float(at_zero.precision[0]),
        "recall": float(at_zero.recall[0]),
        "f1": float(at_zero.f_score()[0]),
        "threshold": float(curve.thresholds[index]),
        "objective": rank[-1],
        "best": is_best,
    }
    for name, value in figures.items():
        state.history[name].append(value)
    return upper, lower


def _digest(labels: np.ndarray) -> str:
    return hashlib.sha256(labels.tobytes()).hexdigest()
