"""What preference machines share: the split of the labels, the rounds, the threshold."""

import os
import warnings
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d

from widemargin._base.callbacks import FitProgress
from widemargin._base.checkpoint import CheckpointKeeper
from widemargin._base.sklearn_compat import Interval, StrOptions, fit_context
from widemargin.semisupervised.constraints import NAMES, Curve, Demand, adjusted, refined
from widemargin.semisupervised.guarantee import Promise, promise
from widemargin.semisupervised.self_training import HISTORY, State, run
from widemargin.semisupervised.targets import SomeLabels

_SHARE = Interval(Real, 0.0, 1.0, closed="right")


class PreferenceBase(SomeLabels, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """A two-class machine that meets a demand; subclasses say how rows are learned from.

    A subclass has ``_learner(given, parts)``, whose ``train(soft)`` trains a round, ``_keep`` for
    the best of them, and ``_raw_scores(X)``.
    """

    _parameter_constraints: dict = {
        "precision": [_SHARE, None],
        "recall": [_SHARE, None],
        "false_positive_rate": [Interval(Real, 0.0, 1.0, closed="both"), None],
        "beta": [Interval(Real, 0.0, None, closed="neither")],
        "cost_ratio": [Interval(Real, 0.0, None, closed="neither"), None],
        "confidence": [Interval(Real, 0.0, 1.0, closed="neither"), None],
        "split": [StrOptions({"part", "full"})],
        "update": [StrOptions({"inc", "rec"})],
        "threshold": [StrOptions({"refined", "adjusted", "zero"})],
        "max_rounds": [Interval(Integral, 1, None, closed="left"), None],
        "min_new": [Interval(Integral, 1, None, closed="left")],
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
    ) -> Self:
        """Learn from labelled and unlabelled rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        y : array-like of shape (n_samples,)
            Labels of two classes; -1 for rows that have none, unless `X_unlabeled` is given.

        X_unlabeled : {array-like, sparse matrix} of shape (n_unlabeled, n_features), default=None
            Rows without labels. -1 is a label like any other then.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows of `X`; of those without a label only whether it is 0 counts. A
            demand with a `confidence` counts rows and takes none.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        demand = self._demand()
        if self.confidence is not None and sample_weight is not None:
            raise ValueError("confidence counts rows: it cannot be had with sample_weight.")
        given = self._check_training(X, y, X_unlabeled, sample_weight)
        truth, weight = given.truth, given.weight
        parts = self._parts(given)
        steer = parts[1]
        progress = FitProgress.open(self, 1, X, y, {"sample_weight": sample_weight})
        learner = self._learner(given, parts)
        keeper = self._checkpoint_keeper(given, parts)
        saved = keeper.load()
        if saved is None:
            state = State(np.zeros(given.n_unlabeled, dtype=np.int8))
        else:
            best = learner.resume(saved["learner"], saved["rounds"]["best_soft"])
            state = State.resume(saved["rounds"], best)
        with progress.task(0, name="rounds") as stop:

            def report(state):
                keeper.save(
                    lambda: {"rounds": state.numbers(), "learner": learner.numbers(state.best)}
                )
                return stop()

            run(
                learner.train,
                truth[steer],
                None if weight is None else weight[steer],
                demand,
                state,
                update=self.update,
                max_rounds=self.max_rounds,
                min_new=self.min_new,
                threshold=self.threshold,
                report=report,
            )
        self.classes_, self.pos_label_, self._negative = (
            given.classes,
            given.positive,
            given.negative,
        )
        self._keep(learner, state.best)
        self.history_ = {name: np.array(state.history[name]) for name in HISTORY}
        self.n_iter_ = len(self.history_["added"])
        self.soft_labels_ = state.soft
        self._steering = (
            state.best.steering,
            truth[steer],
            None if weight is None else weight[steer],
        )
        self._certifying = (state.best.certifying, truth[parts[2]]) if len(parts) > 2 else None
        self._others = state.best.unlabeled
        self._settle(demand, self.confidence, stacklevel=5)
        progress.close()
        return self

    def set_demand(
        self,
        *,
        precision: float | None = None,
        recall: float | None = None,
        false_positive_rate: float | None = None,
        beta: float = 1.0,
        cost_ratio: float | None = None,
        confidence: float | None = None,
    ) -> Self:
        """Ask for something else, without training again.

        What is not named is asked for no longer. A promise holds for a demand that was made
        beforehand: asking one after the other until one can be promised spends the confidence.

        Parameters
        ----------
        precision : float, default=None
            Least share of accepted rows that are positive.

        recall : float, default=None
            Least share of positive rows that are accepted.

        false_positive_rate : float, default=None
            Greatest share of negative rows that are accepted.

        beta : float, default=1.0
            F-beta is maximised within the demands.

        cost_ratio : float, default=None
            What accepting a negative row costs in units of leaving out a positive one.

        confidence : float, default=None
            The probability with which demands shall hold on new rows. Needs a fit with a
            confidence, or rows given to `recalibrate`.

        Returns
        -------
        self : object
            The estimator, with a new `threshold_` and `promise_`.
        """
        check_is_fitted(self)
        asked = {
            "precision": precision,
            "recall": recall,
            "false_positive_rate": false_positive_rate,
            "beta": beta,
            "cost_ratio": cost_ratio,
            "confidence": confidence,
        }
        before = {name: getattr(self, name) for name in asked}
        vars(self).update(asked)
        try:
            self._validate_params()
            self._settle(self._demand(), self.confidence)
        except BaseException:
            vars(self).update(before)
            raise
        return self

    def recalibrate(self, X: Any, y: ArrayLike) -> Self:
        """Choose the threshold anew on rows that the machine has not seen.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        y : array-like of shape (n_samples,)
            Their labels, of both classes.

        Returns
        -------
        self : object
            The estimator, with a new `threshold_` and `promise_`. Later demands go by these rows.
        """
        check_is_fitted(self)
        scores, y = self._raw_scores(X), column_or_1d(y)
        truth = y == self.pos_label_
        unknown = ~np.isin(y, self.classes_)
        if len(y) != len(scores) or unknown.any() or truth.all() or not truth.any():
            raise ValueError(
                f"y must hold one of the labels {self.classes_.tolist()} for every row of X, and "
                f"each of them somewhere, got {np.unique(y).tolist()} for {len(scores)} rows."
            )
        before = self._steering, self._certifying
        self._steering, self._certifying = (scores, truth, None), (scores, truth)
        try:
            self._settle(self._demand(), self.confidence)
        except BaseException:
            self._steering, self._certifying = before
            raise
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """How far the score of every row is above the threshold.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        above = self._raw_scores(X) - self.threshold_
        return above if self.pos_label_ == self.classes_[1] else -above

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            One of `classes_` for every row.
        """
        check_is_fitted(self)
        accepted = self._raw_scores(X) > self.threshold_
        return np.where(accepted, self.pos_label_, self._negative)

    def _demand(self) -> Demand:
        if self.cost_ratio is not None and self.beta != 1.0:
            raise ValueError("beta and cost_ratio exclude each other: F-beta or costs.")
        demand = Demand(**{name: getattr(self, name) for name in NAMES})
        if self.confidence is not None and not demand.limits:
            raise ValueError(
                "confidence needs something to promise: give precision, recall or "
                "false_positive_rate."
            )
        return demand

    def _checkpoint_keeper(self, given, parts) -> CheckpointKeeper:
        if self.checkpoint is not None and self.random_state is None and self.split == "part":
            raise ValueError(
                "checkpoint requires random_state, so that a later fit splits the labeled samples "
                "in the same way. Set random_state to an integer."
            )
        parameters = {k: v for k, v in self.get_params().items() if k != "checkpoint"}
        data = given.X, given.truth, given.weight, given.unlabeled, *parts
        return CheckpointKeeper(
            self.checkpoint, type(self).__name__, repr(sorted(parameters.items())), *data
        )

    def _parts(self, given):
        """Labelled rows to train on, to steer by, and with a confidence to certify by."""
        if self.split == "full":
            if self.confidence is not None:
                raise ValueError(
                    "confidence needs rows that training has not seen: use split='part'."
                )
            everything = np.arange(len(given.y))
            return everything, everything
        # Of one round nothing is chosen by the rows that judge it: they may certify it as well.
        steered = self.max_rounds != 1 and given.n_unlabeled > 0
        n_parts = 3 if self.confidence is not None and steered else 2
        rng = check_random_state(self.random_state)
        parts: list[list[np.ndarray]] = [[] for _ in range(n_parts)]
        for side in (False, True):
            rows = rng.permutation(np.flatnonzero(given.truth == side))
            if len(rows) < n_parts:
                label = given.positive if side else given.negative
                advice = ", or use split='full'" if self.confidence is None else ""
                raise ValueError(
                    f"y must hold at least {n_parts} rows of every class for split='part'"
                    f"{' with a confidence' if n_parts > 2 else ''}, got {len(rows)} of class "
                    f"{label}: label more rows{advice}."
                )
            for part, own in zip(parts, np.array_split(rows, n_parts), strict=True):
                part.append(own)
        split = tuple(np.sort(np.concatenate(part)) for part in parts)
        return split if self.confidence is None or steered else (*split, split[1])

    def _settle(self, demand, confidence, stacklevel=4):
        """Set the threshold, and what is promised of it."""
        scores, truth, weight = self._steering
        if confidence is not None:
            self.promise_ = self._promised(demand, confidence, stacklevel)
            self.threshold_ = self.promise_.threshold
            return
        self.promise_ = None
        if self.threshold == "refined":
            curve = Curve(scores, truth, weight)
            self.threshold_ = float(curve.thresholds[refined(demand, curve)])
        else:
            at = {"adjusted": adjusted, "zero": _zero}[self.threshold]
            self.threshold_ = at(demand, scores, truth, weight)

    def _promised(self, demand, confidence, stacklevel) -> Promise:
        if self._certifying is None:
            raise NotFittedError(
                "confidence needs rows that have not been used yet: fit with a confidence, or "
                "call recalibrate with new labelled rows first."
            )
        scores, truth = self._certifying
        others = self._others if len(self._others) else None
        given = promise(demand, confidence, scores, truth, others)
        if not given.kept:
            wanted, could = (
                ", ".join(f"{name} {value:.3g}" for name, value in what.items())
                for what in (demand.limits, given.possible)
            )
            warnings.warn(
                f"{wanted} cannot be promised with confidence {confidence:g} by "
                f"{int(truth.sum())} positive and {int((~truth).sum())} negative rows; alone, "
                f"{could} could. The threshold is a best effort: give more labels (recalibrate), "
                "a lower confidence or a smaller demand.",
                UserWarning,
                stacklevel=stacklevel,
            )
        return given


def _zero(demand, scores, truth, weight):
    return 0.0
