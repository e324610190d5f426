"""Base class of the classifiers with constraints: split of the labels, self-training, threshold."""

import os
import warnings
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from widemargin._base.callbacks import FitProgress
from widemargin._base.checkpoint import CheckpointKeeper
from widemargin._base.docs import shared_docs
from widemargin._base.options import preference_options
from widemargin._base.sklearn_compat import (
    BaseEstimator,
    Interval,
    StrOptions,
    fit_context,
    validate_parameters,
)
from widemargin._base.transactions import unchanged_by_failure
from widemargin.semisupervised.constraints import (
    Constraints,
    ScoredSamples,
    ThresholdCurve,
    with_share,
)
from widemargin.semisupervised.guarantee import Guarantee, guaranteed_threshold
from widemargin.semisupervised.self_training import Learner, TrainingState, self_train
from widemargin.semisupervised.split import LabelSplit, split_labels, validate_groups
from widemargin.semisupervised.targets import (
    PartialLabels,
    PartialLabelsMixin,
    fill_missing_labels,
)

# Parameters that bound the work: a checkpoint may be resumed with others.
_WORK = ("checkpoint", "max_rounds", "max_iter", "cache_size", "time_limit")
_FRACTION = Interval(Real, 0.0, 1.0, closed="right")


@shared_docs
class PreferenceBase(PartialLabelsMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Binary classifier with constraints, trained on labeled and unlabeled samples.

    A subclass implements `_learner`, `_set_model` and `_score`.
    """

    _shift: float | None

    _parameter_constraints: dict = {
        "precision": [_FRACTION, None],
        "recall": [_FRACTION, None],
        "false_positive_rate": [Interval(Real, 0.0, 1.0, closed="both"), None],
        "beta": [Interval(Real, 0.0, None, closed="neither")],
        "cost_ratio": [Interval(Real, 0.0, None, closed="neither"), None],
        "margin": [Interval(Real, 0.5, 1.0, closed="left"), None],
        "confidence": [Interval(Real, 0.0, 1.0, closed="neither"), None],
        "positive_share": [Interval(Real, 0.0, 1.0, closed="neither"), None],
        "split": [StrOptions({"cross", "holdout", "resubstitution"})],
        "update": [StrOptions({"incremental", "recompute"})],
        "threshold": [StrOptions({"tuned", "smoothed", "adjusted", "zero"})],
        "max_rounds": [Interval(Integral, 1, None, closed="left"), None],
        "min_new": [Interval(Integral, 1, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "pos_label": "no_validation",
        "checkpoint": [str, os.PathLike, None],
        "random_state": ["random_state"],
    }

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        X_unlabeled: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to labeled and unlabeled samples.

        Parameters
        ----------
        <<X_train>>

        <<y_partial>>

        <<X_unlabeled>>

        <<partial_sample_weight>>

        groups : array-like of shape (n_samples,), default=None
            Groups of the samples in `X`, such as the customer that they belong to. Samples of the
            same group are not independent. They are in the same part of the split, and only one
            sample of each group is used for calibration, so that a guarantee is about a random
            sample of a random group.

        Returns
        -------
        <<returns_self>>
        """
        self._fit(X, y, X_unlabeled, sample_weight, groups)
        return self

    def set_constraints(
        self,
        *,
        precision: float | None = None,
        recall: float | None = None,
        false_positive_rate: float | None = None,
        beta: float = 1.0,
        cost_ratio: float | None = None,
        margin: float | None = 0.9,
        confidence: float | None = None,
    ) -> Self:
        """Set other constraints and choose a new threshold, without training.

        Like `set_params`, this sets the parameters of the estimator; those that are not passed are
        reset to their defaults. Choose the constraints before looking at the results: trying
        several until one can be guaranteed invalidates the confidence.

        Parameters
        ----------
        <<constraint_parameters>>

        <<constraint_margin>>

        confidence : float, default=None
            Probability with which the constraints must hold on new samples. Requires an estimator
            fitted with a confidence, or new labeled samples passed to `recalibrate`.

        Returns
        -------
        self : object
            The estimator, with new `threshold_`, `constraints_` and `guarantee_`.
        """
        check_is_fitted(self)
        constraints = Constraints(precision, recall, false_positive_rate, beta, cost_ratio, margin)
        with unchanged_by_failure(self):
            self.set_params(**vars(constraints), confidence=confidence)
            validate_parameters(self)
            self._choose_threshold()
        return self

    def recalibrate(self, X: Any, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Choose a new threshold with new labeled samples, for the constraints in the parameters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples that were not used in `fit`.

        y : array-like of shape (n_samples,)
            Their labels, of both classes.

        groups : array-like of shape (n_samples,), default=None
            Groups of samples that are not independent, as in `fit`: one random sample of each group
            is used.

        Returns
        -------
        self : object
            The estimator, with new `threshold_`, `constraints_` and `guarantee_`. Later calls of
            `set_constraints` use the same samples.
        """
        filled, missing = fill_missing_labels(y)
        scores, labels = self.score_samples(X), column_or_1d(filled)
        positive = labels == self.pos_label_
        unknown = missing | ~np.isin(labels, self.classes_)
        if len(labels) != len(scores) or unknown.any() or positive.all() or not positive.any():
            raise ValueError(
                f"y must contain a label for each of the {len(scores)} samples in X, and both of "
                f"the labels {self.classes_.tolist()}, got {len(labels)} labels, "
                f"{int(missing.sum())} of them missing, with the values "
                f"{np.unique(labels).tolist()}."
            )
        chosen = np.arange(len(labels))
        if groups is not None:
            units = validate_groups(groups, len(labels), chosen)
            order = check_random_state(self.random_state).permutation(len(labels))
            chosen = order[np.unique(units[order], return_index=True)[1]]
        with unchanged_by_failure(self):
            self._validation = ScoredSamples(scores, positive)
            self._calibration = ScoredSamples(scores[chosen], positive[chosen])
            self._shift = None
            self._choose_threshold()
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Compute the scores of the positive class, before the threshold is subtracted.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Samples with scores greater than `threshold_` are predicted positive.
        """
        check_is_fitted(self)
        return self._score(self._validate_samples(X))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute the decision function.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Difference of score and threshold, positive for ``classes_[1]``.
        """
        above = self.score_samples(X) - self.threshold_
        if self._positive_is_second:
            return above
        # A score equal to the threshold is not accepted: the sign is that of ``classes_[1]``.
        return np.where(above == 0.0, np.finfo(np.float64).tiny, -above)

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        <<returns_labels>>
        """
        accepted = self.score_samples(X) > self.threshold_
        return self.classes_[(accepted == self._positive_is_second).astype(np.intp)]

    @property
    def _positive_is_second(self) -> bool:
        return self.pos_label_ == self.classes_[1]

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        X_unlabeled: Any,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | None = None,
    ) -> None:
        constraints = self._constraints()
        if self.confidence is not None and sample_weight is not None:
            raise ValueError(
                "sample_weight cannot be combined with confidence, because the guarantee counts "
                "samples. Leave one of them out."
            )
        data = self._validate_fit(X, y, X_unlabeled, sample_weight)
        split = self._split_labels(data, groups)
        progress = FitProgress(self, 1, X, y, {"sample_weight": sample_weight})
        learner = self._learner(data, split)
        state = self._self_train(learner, constraints, progress)
        best = state.best
        self.classes_, self.pos_label_ = np.unique(data.labels), data.labels[1]
        self._set_model(learner, best.model)
        self.history_, self.n_iter_ = state.history, len(state.seen)
        self.pseudo_labels_ = state.pseudo_labels
        self._validation = learner.scored(best, split.validation)
        self._calibration = learner.scored(best, split.calibration)
        self._reference, self._shift = self._validation, state.shift
        self._choose_threshold(stacklevel=6)
        progress.close()

    def _learner(self, data: PartialLabels, split: LabelSplit) -> Learner:
        """Return what trains the model of each round."""
        raise NotImplementedError

    def _set_model(self, learner: Any, model: Any) -> None:
        """Set the fitted attributes of the best model."""
        raise NotImplementedError

    def _score(self, X: Any) -> NDArray[np.float64]:
        """Compute the scores of validated samples."""
        raise NotImplementedError

    def _constraints(self) -> Constraints:
        """Return the constraints in the parameters."""
        if self.cost_ratio is not None and self.beta != 1.0:
            raise ValueError(
                "beta and cost_ratio cannot be combined: the objective is either F-beta or the "
                f"cost of errors. Got beta={self.beta} and cost_ratio={self.cost_ratio}."
            )
        constraints = Constraints(**{f.name: getattr(self, f.name) for f in fields(Constraints)})
        if self.confidence is not None and not constraints.bounds:
            raise ValueError(
                "confidence requires a constraint to guarantee. Set precision, recall or "
                "false_positive_rate."
            )
        return constraints

    def _split_labels(self, data: PartialLabels, groups: ArrayLike | None = None) -> LabelSplit:
        calibrate = self.confidence is not None
        if self.split == "resubstitution" and calibrate:
            raise ValueError(
                "confidence requires samples that are not used in training. Use split='cross' or "
                "split='holdout'."
            )
        groups_of_labeled = None
        if groups is not None:
            groups_of_labeled = validate_groups(groups, len(data.is_unlabeled), data.labeled)
        rng = check_random_state(self.random_state)
        return split_labels(data.y, self.split, calibrate, groups_of_labeled, rng)

    def _self_train(
        self, learner: Learner, constraints: Constraints, progress: FitProgress
    ) -> TrainingState:
        """Run the rounds, from a checkpoint if there is one, and return the final state."""
        keeper = self._checkpoint_keeper(learner)
        shape = len(learner.split.folds) + 1, learner.data.n_unlabeled
        labels = np.zeros(shape, dtype=np.int8)
        state = TrainingState(labels[0], labels[1:])
        saved = keeper.load(
            lambda saved: {"rounds": state.expected(saved["rounds"]), "learner": learner.expected()}
        )
        if saved is not None:
            rounds = saved["rounds"]
            labels, fold_labels = rounds["best_pseudo_labels"], rounds["best_fold_labels"]
            best = learner.resume(saved["learner"], labels, fold_labels)
            state = TrainingState(**saved["rounds"], best=best)
        with progress.task(0, name="rounds") as stop:

            def report(state: TrainingState) -> bool:
                rounds = {name: value for name, value in vars(state).items() if name != "best"}
                keeper.save(lambda: {"rounds": rounds, "learner": learner.state(state.best)})
                return stop()

            self_train(learner, constraints, state, report)
        return state

    def _checkpoint_keeper(self, learner: Learner) -> CheckpointKeeper:
        if (
            self.checkpoint is not None
            and self.random_state is None
            and self.split != "resubstitution"
        ):
            raise ValueError(
                "checkpoint requires random_state, so that a later fit splits the labeled samples "
                "in the same way. Set random_state to an integer."
            )
        parameters = {k: v for k, v in self.get_params().items() if k not in _WORK}
        identity = repr(sorted(parameters.items())), vars(learner.data), learner.split
        return CheckpointKeeper(self.checkpoint, type(self).__name__, *identity)

    def _choose_threshold(self, stacklevel: int = 4) -> None:
        """Set the threshold and its guarantee."""
        constraints, guarantee, threshold = self._constraints(), None, 0.0
        validation = with_share(self._validation, self.positive_share)
        if self.confidence is not None:
            guarantee = self._guarantee(constraints, stacklevel)
            threshold = guarantee.threshold
        elif self.threshold in ("tuned", "smoothed"):
            threshold = _tuned_threshold(constraints, validation, stacklevel)
            if self.threshold == "smoothed":
                threshold = constraints.smoothed_threshold(validation)
        elif self.threshold == "adjusted":
            threshold = constraints.adjusted_threshold(validation)
        self.constraints_, self.guarantee_, self.threshold_ = constraints, guarantee, threshold
        curve = ThresholdCurve(validation, np.array([threshold]))
        self.margins_ = constraints.margins(curve)

    def _guarantee(self, constraints: Constraints, stacklevel: int) -> Guarantee:
        positive = self._calibration.positive
        if not len(positive):
            raise NotFittedError(
                "confidence requires calibration samples. Fit with a confidence, or call "
                "recalibrate with new labeled samples first."
            )
        if positive.all() or not positive.any():
            raise ValueError(
                "groups must leave calibration samples of both classes, one per group. Label more "
                "groups."
            )
        guarantee = guaranteed_threshold(
            constraints, self.confidence, self._calibration, self._reference, self.positive_share
        )
        reason = "" if guarantee.guaranteed else self._why_not_guaranteed(constraints, guarantee)
        if self._shift is not None and self._shift < preference_options.shift_level:
            guarantee = replace(guarantee, guaranteed=False, more_samples=None)
            reason = self._shift_message()
        if reason:
            warnings.warn(reason, UserWarning, stacklevel=stacklevel)
        return replace(guarantee, shift_pvalue=self._shift, reason=reason)

    def _shift_message(self) -> str:
        mixed = "" if self.positive_share is None else f" with positive_share={self.positive_share}"
        return (
            "Calibration samples and unlabeled samples have different distributions of scores"
            f"{mixed} (p-value {self._shift:.2g}), so that nothing is guaranteed for samples like "
            "the unlabeled ones. If the labeled samples were drawn by class, set positive_share to "
            "the true fraction of positive samples; else label a random part of the unlabeled "
            "samples and call recalibrate."
        )

    def _why_not_guaranteed(self, constraints: Constraints, guarantee: Guarantee) -> str:
        positive, more = self._calibration.positive, guarantee.more_samples
        n_positive, n = int(positive.sum()), len(positive)
        needed = (
            "no number of samples up to 1,000 times as many would be enough at this quality of the "
            "scores"
            if more is None
            else f"about {more} more calibration samples are needed"
        )
        return (
            f"With {n_positive} positive and {n - n_positive} negative calibration samples, "
            f"{_describe(constraints.bounds)} cannot be guaranteed at confidence "
            f"{self.confidence:g} (achievable separately: {_describe(guarantee.achievable)}; "
            f"{needed}). Using the best threshold without a guarantee. Label more samples and fit "
            "again or call recalibrate, or lower the confidence or the constraints."
        )


def _tuned_threshold(constraints: Constraints, samples: ScoredSamples, stacklevel: int) -> float:
    """Return the best threshold on the validation samples; warn if it violates the bounds."""
    curve = ThresholdCurve(samples)
    best = constraints.best_index(curve)
    threshold = float(curve.thresholds[best])
    if constraints.violation(curve)[best] > 0.0:
        message = _why_unreachable(constraints, ThresholdCurve(samples, [threshold]))
        warnings.warn(message, UserWarning, stacklevel=stacklevel)
    return threshold


def _why_unreachable(constraints: Constraints, curve: ThresholdCurve) -> str:
    """Describe by how much the bounds are missed at the only threshold of the curve."""
    rates = {name: float(getattr(curve, name)[0]) for name in constraints.bounds}
    values = ", ".join(f"{name} {rate:.3g}" for name, rate in rates.items())
    if constraints.margin is None:
        return (
            f"No threshold meets {_describe(constraints.bounds)} on the validation samples. Using "
            f"the one with the smallest violation ({values}). Lower the constraints, or use "
            "another classifier or other features."
        )
    levels = ", ".join(f"{name} {v:.2g}" for name, v in constraints.margins(curve).items())
    return (
        f"No threshold meets {_describe(constraints.bounds)} with margin {constraints.margin:g} on "
        f"the validation samples. Using the one with the smallest violation ({values}; margins "
        f"reached: {levels}). Label more samples, lower the margin or the constraints, or set "
        "margin=None to compare the rates without a margin."
    )


def _describe(bounds: dict[str, float]) -> str:
    return ", ".join(
        f"{name} {'<=' if name == 'false_positive_rate' else '>='} {bound:.3g}"
        for name, bound in bounds.items()
    )
