"""PreferenceClassifier: a demand met with few labels and many rows without, over any classifier."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.validation import has_fit_parameter

from widemargin._base.numeric import log_odds
from widemargin._base.sklearn_compat import HasMethods, check_y, safe_indexing
from widemargin._base.validation import validate_shape
from widemargin.semisupervised.base import PreferenceBase
from widemargin.semisupervised.targets import is_frame


class PreferenceClassifier(PreferenceBase):
    r"""A demand such as "precision at least 0.9", met by any classifier.

    Rows that have no labels help. The classifier is trained on part of the labelled rows and judged
    on the others. Unlabelled rows
    that score above a threshold which meets the demand there are taken for positive, those below
    the mean of the negative rows for negative, and it is trained again, until no row is added. The
    best of these classifiers is kept, with the threshold that solves

    .. math::

        \max_\delta \; F_1(\delta) \quad \text{subject to} \quad
        \mathrm{precision}(\delta) \ge p, \; \mathrm{recall}(\delta) \ge r

    on the rows that judged it. Without a demand it is the one with the greatest F1.

    Parameters
    ----------
    estimator : classifier
        With `decision_function` or `predict_proba`; it is cloned.

    precision : float, default=None
        Least share of accepted rows that are positive.

    recall : float, default=None
        Least share of positive rows that are accepted.

    false_positive_rate : float, default=None
        Greatest share of negative rows that are accepted.

    beta : float, default=1.0
        F-beta is maximised within the demands.

    cost_ratio : float, default=None
        What accepting a negative row costs in units of leaving out a positive one: that cost is
        minimised in place of F-beta.

    confidence : float, default=None
        The probability with which demands shall hold on new rows. Takes a third of the labels to
        make sure of, or half where there is one round only: without unlabelled rows or with
        ``max_rounds=1``. `promise_` says whether it can be given.

    split : {'part', 'full'}, default='part'
        Whether half of the labelled rows train and the others judge, or all do both.

    update : {'inc', 'rec'}, default='inc'
        Whether labels of unlabelled rows stay once given, or are given anew in every round.

    threshold : {'refined', 'adjusted', 'zero'}, default='refined'
        The final threshold: the best by the demand, the upper one of the kept round, or 0. With
        'zero' nothing is adjusted in the rounds either: unlabelled rows that score above 0 become
        positive. With a `confidence` it is the one that `promise_` is about.

    max_rounds : int, default=None
        Most rounds.

    min_new : int, default=1
        Stop when fewer rows than this get a label in a round.

    pos_label : label, default=None
        The positive class; the second of `classes_` when None.

    checkpoint : str or path-like, default=None
        File to which the rounds so far are written after each of them. A fit that finds it, for the
        same data and parameters, goes on from there.

    random_state : int, RandomState instance or None, default=None
        Splits the labelled rows.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels.

    pos_label_ : label
        The positive one.

    estimator_ : classifier
        The one that was kept.

    threshold_ : float
        Rows whose score is greater are positive.

    promise_ : Promise or None
        With a `confidence`: whether the demand is ``kept`` on new rows with that probability, and
        what would have been ``possible``.

    history_ : dict of ndarray
        By round: rows that got another label then (``added``), soft labels trained on
        (``positive``, ``negative``), thresholds (``upper``, ``lower``), ``precision``, ``recall``
        and ``f1`` at 0 on the judging rows, what is maximised (``value``) where the machine would
        be used (``used_at``), and whether it was the best so far (``kept``).

    n_iter_ : int
        Rounds.

    soft_labels_ : ndarray of shape (n_unlabeled,)
        The last labels of the unlabelled rows: 1, -1, or 0 for none.

    n_features_in_ : int
        Number of features.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X has names.

    See Also
    --------
    PreferenceSVC : The same over a kernel machine that goes on from round to round.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from widemargin import PreferenceClassifier
    >>> X, y = make_classification(600, weights=[0.8], flip_y=0.1, random_state=0)
    >>> y[200:400] = -1
    >>> model = PreferenceClassifier(GaussianNB(), precision=0.9, random_state=0)
    >>> model.fit(X[:400], y[:400]).predict(X[400:405])
    array([0, 0, 1, 0, 0])
    """

    _parameter_constraints: dict = {
        "estimator": [
            HasMethods(["fit", "decision_function"]),
            HasMethods(["fit", "predict_proba"]),
        ],
        **PreferenceBase._parameter_constraints,
    }

    def __init__(
        self,
        estimator,
        *,
        precision=None,
        recall=None,
        false_positive_rate=None,
        beta=1.0,
        cost_ratio=None,
        confidence=None,
        split="part",
        update="inc",
        threshold="refined",
        max_rounds=None,
        min_new=1,
        pos_label=None,
        checkpoint=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.precision = precision
        self.recall = recall
        self.false_positive_rate = false_positive_rate
        self.beta = beta
        self.cost_ratio = cost_ratio
        self.confidence = confidence
        self.split = split
        self.update = update
        self.threshold = threshold
        self.max_rounds = max_rounds
        self.min_new = min_new
        self.pos_label = pos_label
        self.checkpoint = checkpoint
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        given = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.allow_nan = given.sparse, given.allow_nan
        return tags

    def _look_at_training(self, X, y):
        validate_shape(self, X, y)
        y = check_y(y, estimator=self)
        check_consistent_length(X, y)
        return _indexable(X), y

    def _look_at(self, X):
        validate_shape(self, X)
        return _indexable(X)

    def _learner(self, given, parts):
        return _Learner(self.estimator, given, parts)

    def _keep(self, learner, best):
        self.estimator_ = best.estimator

    def _raw_scores(self, X):
        return scores_of(self.estimator_, self._look_at(X))


@dataclass(frozen=True)
class _Trained:
    estimator: Any
    steering: np.ndarray
    certifying: np.ndarray | None
    unlabeled: np.ndarray


class _Learner:
    """Trains clones of a classifier on labelled rows and rows with soft labels."""

    def __init__(self, estimator, given, parts):
        if given.weight is not None and not has_fit_parameter(estimator, "sample_weight"):
            raise ValueError(
                f"sample_weight was given, but {type(estimator).__name__} takes none in fit."
            )
        self.estimator, self.X, self.truth = estimator, given.together(), given.truth
        self.weight, self.parts, self.n_labeled = given.weight, parts, len(given.y)
        self.n_rows = self.n_labeled + given.n_unlabeled

    def train(self, soft):
        own, taken = self.parts[0], np.flatnonzero(soft)
        rows = np.append(own, self.n_labeled + taken)
        y = np.concatenate([self.truth[own], soft[taken] > 0]).astype(np.intp)
        weights = {}
        if self.weight is not None:
            weights["sample_weight"] = np.append(self.weight[own], np.ones(len(taken)))
        model = clone(self.estimator).fit(safe_indexing(self.X, rows), y, **weights)

        def scores(rows):
            return scores_of(model, safe_indexing(self.X, rows)) if len(rows) else np.empty(0)

        return _Trained(
            model,
            scores(self.parts[1]),
            scores(self.parts[2]) if len(self.parts) > 2 else None,
            scores(np.arange(self.n_labeled, self.n_rows)),
        )

    def numbers(self, best):
        """Nothing: the best classifier is trained again on the labels it had."""
        return {}

    def resume(self, numbers, best_soft):
        return self.train(best_soft)


def _indexable(X):
    """A frame as it is; all else as an array that rows can be taken from."""
    if sp.issparse(X):
        return X.tocsr()
    return X if is_frame(X) else np.asarray(X)


def scores_of(model, X):
    """Decision values, or log-odds of probabilities, for the class 1 of 0 and 1."""
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=np.float64)
    return log_odds(np.asarray(model.predict_proba(X))[:, 1])
