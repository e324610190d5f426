"""Some classes are rare: decide with other priors or costs, and measure what that gives.

Class weights and class margins (``class_weight`` and ``class_margin`` of the machines) change what
is learnt; rescaling changes only what is decided. Resampling is imbalanced-learn's, whose samplers
and pipelines take the estimators of this library as they are.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import gmean
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import average_precision_score, precision_recall_fscore_support
from sklearn.utils import check_array, column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, has_fit_parameter

from widemargin._base.sklearn_compat import (
    HasMethods,
    StrOptions,
    check_y,
    fit_context,
    safe_indexing,
)
from widemargin._base.targets import encode_targets
from widemargin._base.validation import validate_shape

__all__ = ["ImbalanceReport", "RescaledClassifier", "imbalance_report"]

_MOST_FOLDS = 5


class RescaledClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""A classifier that decides under other priors, or other costs, than it was trained with.

    A classifier trained on few positives finds few. Threshold moving mends this after training:
    instead of :math:`p / (1 - p) > 1` it decides by :math:`p / (1 - p) > n_+ / n_-`. For several
    classes, with priors :math:`\pi` in the training data and :math:`\rho` where it is used,

    .. math::

        q_k \propto p_k \, \frac{\rho_k}{\pi_k}, \qquad
        \hat y = \arg\min_j \sum_k q_k \, c_{kj}

    where :math:`c_{kj}` is the cost of taking class k for class j.

    Parameters
    ----------
    estimator : estimator object
        A classifier. One without `predict_proba` is calibrated first, by
        :class:`sklearn.calibration.CalibratedClassifierCV`.

    priors : {'uniform'}, array-like of shape (n_classes,), dict or None, default='uniform'
        How frequent the classes are where the classifier is used; they need not add up to 1.
        'uniform' makes the mean recall of the classes as large as it gets. None keeps the priors
        of the training data.

    costs : array-like of shape (n_classes,) or (n_classes, n_classes), dict or None, default=None
        The cost of an error: one number for every true class, or a matrix with a row for every true
        class and a column for every decision. None means that all errors cost the same.

    method : {'sigmoid', 'isotonic', 'temperature'}, default='sigmoid'
        How an estimator without probabilities is calibrated.

    cv : int, cross-validation generator, iterable or None, default=None
        The folds of calibration. None means as many as the rarest class has rows, at most five.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.

    training_priors_ : ndarray of shape (n_classes,)
        How frequent the classes are in the training data.

    priors_ : ndarray of shape (n_classes,)
        The priors under which it decides.

    costs_ : ndarray of shape (n_classes, n_classes)
        The costs under which it decides.

    estimator_ : estimator object
        The fitted estimator, calibrated where it had to be.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during fit, when they are all strings.

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : Searches the threshold for a score.

    Notes
    -----
    A machine that has given up on a rare class ranks its rows no better than by chance, and no
    threshold helps. Give an `SVC` class weights inside: calibration brings its probabilities back
    to the priors of the training data, whatever the weights. An estimator that has probabilities
    of its own, as :class:`sklearn.linear_model.LogisticRegression`, must be trained without class
    weights: its probabilities would be those of balanced classes already, and rescaling them by
    the training priors would correct twice.

    A matrix of costs may hold gains (numbers below zero) and costs of right decisions. Costs and
    priors are two ways to say the same: the priors of the training data with costs inverse to
    them give the decisions of uniform priors.

    References
    ----------
    C. Elkan, The Foundations of Cost-Sensitive Learning, IJCAI 2001.

    Examples
    --------
    >>> from sklearn.metrics import recall_score
    >>> from widemargin import SVC, RescaledClassifier
    >>> from widemargin.datasets import make_long_tail
    >>> X, y = make_long_tail(n_samples=1000, n_classes=2, imbalance=20, random_state=0)
    >>> plain = SVC().fit(X, y)
    >>> moved = RescaledClassifier(SVC(class_weight="balanced")).fit(X, y)
    >>> bool(recall_score(y, moved.predict(X)) > recall_score(y, plain.predict(X)))
    True
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"])],
        "priors": [StrOptions({"uniform"}), "array-like", dict, None],
        "costs": ["array-like", dict, None],
        "method": [StrOptions({"sigmoid", "isotonic", "temperature"})],
        "cv": ["cv_object"],
    }

    def __init__(self, estimator, *, priors="uniform", costs=None, method="sigmoid", cv=None):
        self.estimator = estimator
        self.priors = priors
        self.costs = costs
        self.method = method
        self.cv = cv

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        given = get_tags(self.estimator).input_tags
        tags.input_tags.sparse = given.sparse
        tags.input_tags.pairwise = given.pairwise
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None):
        """Train the estimator and, where it gives no probabilities, calibrate it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows, for estimators that take them; a row of weight 0 is left out. The
            priors of the training data are weighted too.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if sample_weight is not None and not has_fit_parameter(self.estimator, "sample_weight"):
            raise TypeError(
                f"sample_weight was given, but {self.estimator!r} does not take it: leave it out."
            )
        validate_shape(self, X, y)
        y = check_y(y, estimator=self)
        check_classification_targets(y)
        check_consistent_length(X, y)
        rows, labels = encode_targets(y, sample_weight, class_weight=None)
        classes, codes, weight = labels.classes, labels.codes, labels.weight
        training_priors = np.bincount(codes, weights=weight) / (
            len(codes) if weight is None else weight.sum()
        )
        priors, costs = self._check_priors(classes, training_priors), self._check_costs(classes)
        estimator = self._calibrated(np.bincount(codes), weight is not None)
        if weight is None:
            estimator.fit(X, y)
        elif len(weight) == len(y) or get_tags(self).input_tags.pairwise:
            estimator.fit(X, y, sample_weight=sample_weight)
        else:
            estimator.fit(safe_indexing(X, rows), y[rows], sample_weight=weight)
        self.estimator_, self.classes_ = estimator, classes
        self.training_priors_, self.priors_, self.costs_ = training_priors, priors, costs
        return self

    def predict_proba(self, X):
        """Probabilities of the classes under `priors_`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Their rows add up to 1.
        """
        check_is_fitted(self)
        validate_shape(self, X)
        known = np.isin(self.estimator_.classes_, self.classes_)
        probabilities = self.estimator_.predict_proba(X)[:, known]
        rescaled = probabilities * (self.priors_ / self.training_priors_)
        total = rescaled.sum(axis=1, keepdims=True)
        return np.where(total > 0, rescaled, self.priors_) / np.where(total > 0, total, 1.0)

    def predict(self, X):
        """The class of every row whose expected cost is least.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            One of `classes_` for every row.
        """
        probabilities = self.predict_proba(X)
        if self.costs is None:
            return self.classes_[probabilities.argmax(axis=1)]
        return self.classes_[(probabilities @ self.costs_).argmin(axis=1)]

    def _calibrated(self, counts, weighted):
        """The estimator to fit, one that gives probabilities."""
        if hasattr(self.estimator, "predict_proba"):
            return clone(self.estimator)
        estimator = clone(self.estimator)
        if weighted and get_config()["enable_metadata_routing"]:
            estimator.set_fit_request(sample_weight=True)
        cv = self.cv
        if cv is None:
            cv = min(_MOST_FOLDS, counts.min())
            if cv < 2:
                raise ValueError(
                    "y must hold at least two rows of every class to calibrate "
                    f"{type(self.estimator).__name__}, the rarest class has {counts.min()} row: "
                    "give an estimator with predict_proba."
                )
        return CalibratedClassifierCV(estimator, method=self.method, cv=cv, ensemble=False)

    def _check_priors(self, classes, training_priors):
        if self.priors is None:
            return training_priors
        if isinstance(self.priors, str):
            return np.full(len(classes), 1.0 / len(classes))
        priors = _per_class("priors", self.priors, classes)
        if (priors < 0).any() or not priors.sum() > 0:
            raise ValueError(f"priors must be at least 0 and not all 0, got {self.priors!r}.")
        return priors / priors.sum()

    def _check_costs(self, classes):
        different = 1.0 - np.eye(len(classes))
        if self.costs is None:
            return different
        if not isinstance(self.costs, dict) and np.ndim(self.costs) == 2:
            costs = check_array(self.costs, input_name="costs")
            if costs.shape != different.shape:
                raise ValueError(
                    f"costs must have a row and a column for each of the {len(classes)} classes, "
                    f"got shape {costs.shape}."
                )
            return costs
        costs = _per_class("costs", self.costs, classes)
        if (costs < 0).any():
            raise ValueError(f"costs by class must be at least 0, got {self.costs!r}.")
        return costs[:, np.newaxis] * different


@dataclass(frozen=True)
class ImbalanceReport:
    """What `imbalance_report` found; printed, it is a table.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The labels.
    counts : ndarray of shape (n_classes,)
        How frequent the classes are (in training, where that was told).
    group : ndarray of shape (n_classes,)
        'head', 'medium' or 'tail'.
    recall : ndarray of shape (n_classes,)
        Share of the rows of each class that were found; nan for classes without rows.
    recall_of_group : dict
        Mean recall of the classes of each group that has any.
    balanced_accuracy : float
        Mean recall of all classes.
    macro_f1 : float
        Mean over classes of the harmonic mean of precision and recall.
    g_mean : float
        Geometric mean of the recalls.
    average_precision : float or None
        Mean over classes of the area under precision over recall, where scores were given.
    """

    classes: np.ndarray
    counts: np.ndarray
    group: np.ndarray
    recall: np.ndarray
    recall_of_group: dict = field(repr=False)
    balanced_accuracy: float
    macro_f1: float
    g_mean: float
    average_precision: float | None = None

    def __str__(self):
        width = max(5, *(len(str(name)) for name in self.classes))
        lines = [f"{'class':<{width}}  {'count':>7}  group   recall"]
        for k in np.argsort(-self.counts, kind="stable"):
            lines.append(
                f"{self.classes[k]!s:<{width}}  {self.counts[k]:>7g}  {self.group[k]:<6}  "
                f"{self.recall[k]:6.3f}"
            )
        lines.append("")
        lines += [f"recall of the {name:<6}   {r:.3f}" for name, r in self.recall_of_group.items()]
        lines.append(f"balanced accuracy      {self.balanced_accuracy:.3f}")
        lines.append(f"macro F1               {self.macro_f1:.3f}")
        lines.append(f"G-mean                 {self.g_mean:.3f}")
        if self.average_precision is not None:
            lines.append(f"average precision      {self.average_precision:.3f}")
        return "\n".join(lines)


def imbalance_report(
    y_true, scores, *, classes=None, counts=None, bounds=(20, 100), sample_weight=None
):
    """Measures that tell how rare classes fare.

    Accuracy is that of the frequent classes. Here every class counts the same, and the recall is
    told for classes with many rows (the head), with few (the tail) and between.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    scores : array-like of shape (n_samples,) or (n_samples, n_classes)
        Scores or probabilities of the classes; with two classes also scores (not probabilities) of
        the second one, which is decided for where they are positive; or the decisions themselves.
    classes : array-like of shape (n_classes,), default=None
        The labels in the order of the columns of `scores`; by default those of `y_true`, sorted,
        which is right only if it has rows of all of them.
    counts : array-like of shape (n_classes,) or dict, default=None
        How many rows of every class there were in training; by default those in `y_true`.
    bounds : tuple of two numbers, default=(20, 100)
        Classes with fewer than the first are the tail, with more than the second the head.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of rows.

    Returns
    -------
    report : ImbalanceReport
        With one attribute for each measure; ``print(report)`` shows a table.

    Examples
    --------
    >>> from widemargin import imbalance_report
    >>> report = imbalance_report(["no"] * 8 + ["yes"] * 2, ["no"] * 9 + ["yes"], bounds=(4, 6))
    >>> report.recall
    array([1. , 0.5])
    >>> report.balanced_accuracy
    0.75
    >>> report.recall_of_group
    {'head': 1.0, 'tail': 0.5}
    """
    y_true = column_or_1d(y_true)
    classes = np.unique(y_true) if classes is None else column_or_1d(classes)
    unknown = np.setdiff1d(y_true, classes).tolist()
    if unknown:
        raise ValueError(f"classes must hold all labels of y_true, {unknown} are missing.")
    if len(bounds) != 2 or not bounds[0] <= bounds[1]:
        raise ValueError(f"bounds must be two numbers, the smaller first, got {bounds!r}.")
    decided, scores = _decisions(scores, classes)
    check_consistent_length(y_true, decided, sample_weight)
    _, recall, f1, found = precision_recall_fscore_support(
        y_true, decided, labels=classes, sample_weight=sample_weight, zero_division=0.0
    )
    present = found > 0
    if counts is None:
        counts = np.array([(y_true == name).sum() for name in classes])
    else:
        counts = _per_class("counts", counts, classes)
    group = np.where(counts > bounds[1], "head", np.where(counts < bounds[0], "tail", "medium"))
    average_precision = None
    if scores is not None:
        average_precision = float(
            np.mean(
                [
                    average_precision_score(
                        y_true == classes[k], scores[:, k], sample_weight=sample_weight
                    )
                    for k in np.flatnonzero(present)
                ]
            )
        )
    return ImbalanceReport(
        classes=classes,
        counts=counts,
        group=group,
        recall=np.where(present, recall, np.nan),
        recall_of_group={
            name: float(recall[present & (group == name)].mean())
            for name in ("head", "medium", "tail")
            if (present & (group == name)).any()
        },
        balanced_accuracy=float(recall[present].mean()),
        macro_f1=float(f1[present].mean()),
        g_mean=float(gmean(recall[present])),
        average_precision=average_precision,
    )


def _decisions(scores, classes):
    """The decided class of every row, and an array of scores by class, if scores were given."""
    scores = np.asarray(scores)
    if scores.ndim == 2 and scores.shape[1] == len(classes):
        return classes[scores.argmax(axis=1)], scores
    if scores.ndim == 1 and np.isin(scores, classes).all():
        return scores, None
    if scores.ndim == 1 and len(classes) == 2 and scores.dtype.kind == "f":
        if scores.min() >= 0 and scores.max() <= 1:
            raise ValueError(
                "scores of one column are decided at 0, got numbers between 0 and 1 only, as "
                "probabilities are: give both columns of predict_proba, or the probabilities of "
                "the second class less the threshold."
            )
        return classes[(scores > 0).astype(np.intp)], np.column_stack([-scores, scores])
    raise ValueError(
        f"scores must have a column for each of the {len(classes)} classes {classes.tolist()}, or "
        "be decisions for them, or for two classes floating-point scores of the second; got an "
        f"array of shape {scores.shape} and type {scores.dtype}. If y_true lacks a class, name all "
        "of them by classes=."
    )


def _per_class(name, values, classes):
    """Numbers by class from an array in the order of the classes, or from a dict."""
    if isinstance(values, dict):
        missing = [label for label in classes.tolist() if label not in values]
        unknown = [label for label in values if label not in classes.tolist()]
        if missing or unknown:
            raise ValueError(
                f"{name} must have a number for every class ({classes.tolist()}) and no other, got "
                f"{values!r}."
            )
        values = [values[label] for label in classes.tolist()]
    values = check_array(values, ensure_2d=False, dtype=np.float64, input_name=name)
    if values.shape != classes.shape:
        raise ValueError(
            f"{name} must have a number for each of the {len(classes)} classes, got shape "
            f"{values.shape}."
        )
    return values
