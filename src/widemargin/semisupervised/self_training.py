"""Self-training: train, evaluate, assign pseudo-labels to unlabeled samples, and repeat.

Every round trains on the labeled samples and on the unlabeled samples with a pseudo-label, and
chooses two thresholds on the validation samples. Unlabeled samples with scores above the upper
threshold get a positive pseudo-label, those below the lower one a negative one, and the others
none.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from widemargin._base.options import preference_options
from widemargin.semisupervised.constraints import (
    Constraints,
    ScoredSamples,
    ThresholdCurve,
    with_share,
)
from widemargin.semisupervised.guarantee import guarantee_chance, shift_pvalue
from widemargin.semisupervised.split import LabelSplit
from widemargin.semisupervised.targets import PartialLabels


class RoundModel(NamedTuple):
    """A model trained in one round, and its scores.

    Attributes
    ----------
    model : object
        The fitted model.
    scores : ndarray
        Scores of all samples, labeled ones first. Those of training samples may be missing.
    fold_scores : ndarray of shape (n_folds, n_unlabeled) or None
        Scores of the unlabeled samples by the models that leave out a fold.
    """

    model: Any
    scores: np.ndarray
    fold_scores: np.ndarray | None = None


class Learner:
    """Trains the models of all rounds. A subclass implements `train`.

    Parameters
    ----------
    parent : estimator
        With the parameters `update`, `max_rounds`, `min_new`, `patience`, `time_limit` and
        `threshold`.
    data : PartialLabels
    split : LabelSplit
    """

    def __init__(self, parent: Any, data: PartialLabels, split: LabelSplit) -> None:
        self.parent, self.data, self.split = parent, data, split

    def train(self, pseudo_labels: np.ndarray, fold_labels: np.ndarray) -> RoundModel:
        """Train with the labeled samples and these pseudo-labels.

        The models that leave out a fold have pseudo-labels of their own, so that they do not depend
        on the labels of the fold.
        """
        raise NotImplementedError

    def state(self, best: RoundModel) -> dict[str, Any]:
        """Return what `resume` needs as arrays and numbers."""
        return {}

    def expected(self) -> dict[str, Any]:
        """Return a state to check a saved one with, see `checkpoint.check_state`."""
        return {}

    def resume(
        self, state: dict[str, Any], pseudo_labels: np.ndarray, fold_labels: np.ndarray
    ) -> RoundModel:
        """Continue from a saved state; return the best model, trained with these labels."""
        return self.train(pseudo_labels, fold_labels)

    def scored(self, trained: RoundModel, indices: np.ndarray) -> ScoredSamples:
        """Return a part of the labeled samples with the scores of a model."""
        weight = None if self.data.weight is None else self.data.weight[indices]
        return ScoredSamples(trained.scores[indices], self.data.positive[indices], weight)


@dataclass
class TrainingState:
    """State of self-training after a round: arrays, apart from the model.

    Attributes
    ----------
    pseudo_labels : ndarray of shape (n_unlabeled,)
        1, -1 or 0 (none) for every unlabeled sample.
    fold_labels : ndarray of shape (n_folds, n_unlabeled)
        Pseudo-labels for the models that leave out a fold.
    best : RoundModel or None
        The best model so far.
    best_pseudo_labels, best_fold_labels : ndarray or None
        The pseudo-labels it was trained with.
    best_rank : ndarray of shape (2,)
        What makes it the best: its negative violation of the constraints, or with a confidence its
        estimated chance of a guarantee; and its objective.
    history : dict of ndarray
        See `history_` of the estimators.
    seen : ndarray of str
        Digests of the pseudo-labels of earlier rounds.
    finished : bool
        Whether the pseudo-labels do not change any more.
    shift : float or None
        P-value of equal distributions of the scores of calibration samples and unlabeled samples
        in the first round, whose model has seen neither.
    """

    pseudo_labels: np.ndarray
    fold_labels: np.ndarray
    best: Any = None
    best_pseudo_labels: np.ndarray | None = None
    best_fold_labels: np.ndarray | None = None
    best_rank: np.ndarray = field(default_factory=lambda: np.full(2, -np.inf))
    history: dict[str, np.ndarray] = field(default_factory=dict)
    seen: np.ndarray = field(default_factory=lambda: np.empty(0, dtype="U64"))
    finished: bool = False
    shift: float | None = None

    def expected(self, saved: dict[str, Any]) -> dict[str, Any]:
        """Return a state to check a saved one with, see `checkpoint.check_state`."""
        rounds = len(saved["seen"])
        history = {name: np.full(rounds, value) for name, value in _HISTORY.items()}
        labels, fold_labels = (np.full_like(a, -1) for a in (self.pseudo_labels, self.fold_labels))
        return {
            "pseudo_labels": labels,
            "fold_labels": fold_labels,
            "best_pseudo_labels": labels,
            "best_fold_labels": fold_labels,
            "best_rank": np.full(2, np.inf),
            "history": history,
            "seen": np.full(rounds, "", dtype="U64"),
            "finished": False,
            "shift": None if saved["shift"] is None else 0.0,
        }


# Values of each type, nan where it is permitted.
_HISTORY = {
    **dict.fromkeys(("added", "positive", "negative"), 0),
    **dict.fromkeys(("upper", "lower", "precision", "recall", "f1"), np.nan),
    **dict.fromkeys(("threshold", "objective"), np.nan),
    "best": False,
}


def self_train(
    learner: Learner,
    constraints: Constraints,
    state: TrainingState,
    report: Callable[[TrainingState], bool] = lambda state: False,
) -> None:
    """Run rounds until the pseudo-labels do not change, keeping the best model in ``state``.

    Parameters
    ----------
    learner : Learner
        The parameters of its estimator: With ``update='incremental'`` pseudo-labels are final, with
        'recompute' they are recomputed in every round. Training stops after `max_rounds`, or when
        fewer than `min_new` pseudo-labels change, or when `patience` rounds in a row were no better
        than the best one, or after `time_limit` seconds. With ``threshold='tuned'`` or 'smoothed',
        models are compared at their tuned thresholds, else at 0. With 'zero', samples with scores
        above 0 get positive pseudo-labels, else those above the adjusted threshold.
    constraints : Constraints
    state : TrainingState
        Initial state. It is modified.
    report : callable
        Called with the state after every round. If it returns True, training stops.
    """
    options, start = learner.parent, perf_counter()
    limit = options.max_rounds
    while not state.finished and (limit is None or len(state.seen) < limit):
        trained = learner.train(state.pseudo_labels, state.fold_labels)
        state.seen = np.append(state.seen, _digest(state.pseudo_labels))
        figures = _evaluate(learner, constraints, state, trained)
        scores = trained.scores[len(learner.data.y) :]
        if len(state.seen) == 1 and len(learner.split.calibration):
            calibration = learner.scored(trained, learner.split.calibration)
            state.shift = shift_pvalue(calibration, scores, options.positive_share)
        labels = _next_labels(scores, figures, state.pseudo_labels, options.update)
        changed = int(np.count_nonzero(labels != state.pseudo_labels))
        for name, value in {"added": changed, **figures}.items():
            past = state.history.get(name, np.empty(0, dtype=type(value)))
            state.history[name] = np.append(past, value)
        stalled = changed < max(1, options.min_new) or _digest(labels) in state.seen
        since_best = int(state.history["best"][::-1].argmax())
        stalled |= options.patience is not None and since_best >= options.patience
        state.finished = stalled
        if not stalled:
            state.pseudo_labels = labels
            if trained.fold_scores is not None:
                state.fold_labels = _next_labels(
                    trained.fold_scores, figures, state.fold_labels, options.update
                )
        late = options.time_limit is not None and perf_counter() - start > options.time_limit
        if report(state) or late:
            break


def _next_labels(
    scores: np.ndarray, figures: dict[str, Any], labels: np.ndarray, update: str
) -> np.ndarray:
    """Return the pseudo-labels of the next round."""
    pseudo_labels = (scores > figures["upper"]).astype(np.int8) - (scores < figures["lower"])
    return (
        np.where(labels != 0, labels, pseudo_labels) if update == "incremental" else pseudo_labels
    )


def _evaluate(
    learner: Learner, constraints: Constraints, state: TrainingState, trained: RoundModel
) -> dict[str, Any]:
    """Return the metrics of a model for the history, and keep it if it is the best.

    A model that meets the constraints is better than one that does not, then a smaller violation,
    then a greater objective. The earlier of equally good models is kept. With a confidence, a later
    model must be better by more than the noise of the estimates, see `_more_certain`.
    """
    unweighted = learner.scored(trained, learner.split.validation)
    samples = with_share(unweighted, learner.parent.positive_share)
    scores, positive, weight = samples
    threshold = learner.parent.threshold
    at_zero = ThresholdCurve(samples, np.zeros(1))
    upper = 0.0 if threshold == "zero" else constraints.adjusted_threshold(samples)
    negative_weight = None if weight is None else weight[~positive]
    lower = min(float(np.average(scores[~positive], weights=negative_weight)), upper)
    curve = ThresholdCurve(samples) if threshold in ("tuned", "smoothed") else at_zero
    index = constraints.best_index(curve)
    objective = float(constraints.objective(curve)[index])
    n_calibration = len(learner.split.calibration)
    if n_calibration:
        parent = learner.parent
        chance = guarantee_chance(
            constraints, parent.confidence, unweighted, n_calibration, parent.positive_share
        )
        rank = np.array([chance, objective])
        is_best = _more_certain(rank, state.best_rank)
    else:
        rank = np.array([-constraints.violation(curve)[index], objective])
        is_best = tuple(rank) > tuple(state.best_rank)
    if is_best:
        state.best, state.best_rank = trained, rank
        state.best_pseudo_labels, state.best_fold_labels = state.pseudo_labels, state.fold_labels
    return {
        "positive": int(np.count_nonzero(state.pseudo_labels > 0)),
        "negative": int(np.count_nonzero(state.pseudo_labels < 0)),
        "upper": upper,
        "lower": lower,
        "precision": float(at_zero.precision[0]),
        "recall": float(at_zero.recall[0]),
        "f1": float(at_zero.f_score()[0]),
        "threshold": float(curve.thresholds[index]),
        "objective": objective,
        "best": is_best,
    }


def _more_certain(rank: np.ndarray, best: np.ndarray) -> bool:
    """Return whether a model replaces the best one so far, if a guarantee is to be given.

    Its estimated chance must be greater by more than a tolerance. If the chance of the earlier
    model is near 0 or 1, so that it is nearly certain whether there will be a guarantee, a greater
    objective is enough, at a chance that is not worse. Otherwise the earlier model, and finally
    that of the first round, is kept, and the guarantee is that of the labeled samples alone,
    whatever the number of unlabeled samples. A model chosen by differences within the noise would
    only lose and gain guarantees at random, in the more rounds, the more unlabeled samples there
    are.
    """
    if not np.isfinite(best).all():
        return True
    (chance, objective), (best_chance, best_objective) = rank, best
    if chance > best_chance + preference_options.chance_gain:
        return True
    certain = min(best_chance, 1.0 - best_chance) <= preference_options.certain_chance
    gain = preference_options.objective_gain * abs(best_objective)
    return bool(certain and chance >= best_chance and objective > best_objective + gain)


def _digest(labels: np.ndarray) -> str:
    return hashlib.sha256(labels.tobytes()).hexdigest()
