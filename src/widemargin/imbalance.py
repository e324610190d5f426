"""Imbalanced classes: decisions under other priors or costs, and metrics for rare classes.

Class weights and class margins (``class_weight`` and ``class_margin`` of the classifiers) change
the fitted model; rescaling changes only its decisions. For resampling, use imbalanced-learn: its
samplers and pipelines accept the estimators of this library.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import gmean
from sklearn import get_config
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import average_precision_score, precision_recall_fscore_support
from sklearn.utils import check_array, column_or_1d, get_tags, indexable
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from widemargin._base.docs import shared_docs
from widemargin._base.options import rescaling_options
from widemargin._base.routing import RoutesFitMetadata, select_metadata
from widemargin._base.sklearn_compat import (
    BaseEstimator,
    HasMethods,
    StrOptions,
    fit_context,
    num_samples,
    safe_indexing,
)
from widemargin._base.targets import encode_targets
from widemargin._base.validation import validate_meta_training, validate_shape


@shared_docs
class RescaledClassifier(RoutesFitMetadata, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    r"""Classifier with decisions for other class priors, or other costs, than in training.

    A classifier trained on few positive samples predicts few. Threshold moving corrects this after
    training: the positive class is predicted if :math:`p / (1 - p) > n_+ / n_-` instead of
    :math:`p / (1 - p) > 1`. For several classes, with priors :math:`\pi` in the training data and
    :math:`\rho` in the application, the prediction is

    .. math::

        q_k \propto p_k \, \frac{\rho_k}{\pi_k}, \qquad
        \hat y = \arg\min_j \sum_k q_k \, c_{kj}

    where :math:`c_{kj}` is the cost of predicting class j for a sample of class k.

    Parameters
    ----------
    estimator : estimator object
        Classifier. If it has no `predict_proba`, it is calibrated with
        :class:`sklearn.calibration.CalibratedClassifierCV`.

    priors : {'uniform'}, array-like of shape (n_classes,), dict or None, default='uniform'
        Class priors in the application. They need not sum to 1. 'uniform' maximizes the mean recall
        of the classes. If None, the priors of the training data are used.

    costs : array-like of shape (n_classes,) or (n_classes, n_classes), dict or None, default=None
        Cost of errors: one number for each true class, or a matrix with a row for each true class
        and a column for each predicted class. If None, all errors have the same cost.

    method : {'sigmoid', 'isotonic', 'temperature'}, default='sigmoid'
        Calibration method for an estimator without `predict_proba`.

    cv : int, cross-validation generator, iterable or None, default=None
        Cross-validation of the calibration. If None, the number of folds is the number of samples
        of the rarest class, at most five.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.

    training_priors_ : ndarray of shape (n_classes,)
        Class priors in the training data.

    priors_ : ndarray of shape (n_classes,)
        Class priors used for predictions.

    costs_ : ndarray of shape (n_classes, n_classes)
        Costs used for predictions.

    estimator_ : estimator object
        The fitted estimator, calibrated if necessary.

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : Tunes the threshold for a metric.

    Notes
    -----
    If a classifier ignores a rare class, it ranks the samples of that class randomly, and no
    threshold helps. Use class weights for an `SVC`: calibration makes its probabilities those of
    the priors in the training data, whatever the weights. An estimator with `predict_proba`, such
    as :class:`sklearn.linear_model.LogisticRegression`, must be trained without class weights and
    samplers. With them, its probabilities are those of balanced classes already, and rescaling by
    the training priors would correct twice. A warning is issued if the mean probability of the
    rarest class is closer to the uniform prior than to its share of the training samples.

    A matrix of costs may contain gains (negative numbers) and costs of correct predictions. Costs
    and priors are equivalent: the priors of the training data, with costs inversely proportional to
    them, give the same predictions as uniform priors.

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self.estimator).input_tags
        tags.input_tags.sparse, tags.input_tags.pairwise = base.sparse, base.pairwise
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, **metadata: Any
    ) -> Self:
        """Fit the estimator and, if it has no `predict_proba`, calibrate it.

        Parameters
        ----------
        <<X_train>>

        <<y>>

        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights, for estimators that accept them. Samples of weight 0 are left out. The
            priors of the training data are weighted too.

        <<fit_metadata>>

        Returns
        -------
        <<returns_self>>
        """
        routed = self._routed(metadata)
        labels = validate_meta_training(self, X, y, sample_weight)
        counted, targets = encode_targets(labels, sample_weight, class_weight=None)
        classes, codes, weight = targets.classes, targets.codes, targets.weight
        totals = np.bincount(codes, weights=weight)
        training_priors = totals / totals.sum()
        priors, costs = self._check_priors(classes, training_priors), self._check_costs(classes)
        estimator = self._calibrated(np.bincount(codes), weight is not None)
        weights = {} if weight is None else {"sample_weight": sample_weight}
        # The calibration routes the metadata itself.
        passed = routed if hasattr(self.estimator, "predict_proba") else metadata
        if len(codes) < len(labels) and not get_tags(self).input_tags.pairwise:
            passed = select_metadata(passed, np.arange(len(labels))[counted], len(labels))
            X, labels, weights = (
                safe_indexing(X, counted),
                labels[counted],
                {"sample_weight": weight},
            )
        estimator.fit(X, labels, **weights, **passed)
        self.estimator_, self.classes_ = estimator, classes
        self.training_priors_, self.priors_, self.costs_ = training_priors, priors, costs
        self._has_costs = self.costs is not None
        if hasattr(self.estimator, "predict_proba") and not get_tags(self).input_tags.pairwise:
            self._warn_if_balanced(X, weight)
        return self

    def _warn_if_balanced(self, X: Any, weight: np.ndarray | None) -> None:
        """Warn if the probabilities are those of balanced classes, not of the training priors."""
        n = num_samples(X)
        samples = np.unique(np.linspace(0, n - 1, rescaling_options.checked_samples).astype(int))
        known = np.isin(self.estimator_.classes_, self.classes_)
        chosen = self.estimator_.predict_proba(safe_indexing(*indexable(X), samples))[:, known]
        weights = None if weight is None else weight[samples]
        mean = np.average(chosen, axis=0, weights=weights)
        rarest = int(self.training_priors_.argmin())
        prior, uniform = self.training_priors_[rarest], 1.0 / len(self.classes_)
        # Closer to the uniform prior than to the training prior, as a ratio.
        if (
            uniform > rescaling_options.least_imbalance * prior
            and mean[rarest] ** 2 > prior * uniform
        ):
            warnings.warn(
                f"The mean probability of class {self.classes_[rarest]} is {mean[rarest]:.2g} on "
                f"training samples, but only {prior:.2g} of them belong to it. The probabilities "
                "are nearly those of balanced classes, for example because of a sampler, class "
                "weights or a balanced forest, and rescaling them corrects twice. Use the "
                "estimator alone, or train it without balancing, or wrap it in "
                "CalibratedClassifierCV.",
                UserWarning,
                stacklevel=4,
            )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Compute class probabilities for the priors `priors_`.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Each row sums to 1.
        """
        check_is_fitted(self)
        validate_shape(self, X)
        known = np.isin(self.estimator_.classes_, self.classes_)
        probabilities = self.estimator_.predict_proba(X)[:, known]
        if np.isnan(probabilities).any():
            raise ValueError(
                f"The probabilities of {type(self.estimator_).__name__} must be numbers, got NaN. "
                "Scale the features, remove constant ones, or use another estimator."
            )
        rescaled = probabilities * (self.priors_ / self.training_priors_)
        total = rescaled.sum(axis=1, keepdims=True)
        return np.where(total > 0, rescaled, self.priors_) / np.where(total > 0, total, 1.0)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class labels with the smallest expected cost.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        <<returns_labels>>
        """
        probabilities = self.predict_proba(X)
        if self._has_costs:
            return self.classes_[(probabilities @ self.costs_).argmin(axis=1)]
        return self.classes_[probabilities.argmax(axis=1)]

    def _calibrated(self, counts: np.ndarray, weighted: bool) -> Any:
        """Return an unfitted estimator with `predict_proba`."""
        if hasattr(self.estimator, "predict_proba"):
            return clone(self.estimator)
        estimator = clone(self.estimator)
        if weighted and get_config()["enable_metadata_routing"]:
            estimator.set_fit_request(sample_weight=True)
        cv = self.cv
        if cv is None:
            cv = min(rescaling_options.max_folds, counts.min())
            if cv < 2:
                raise ValueError(
                    "y must contain at least two samples of each class to calibrate "
                    f"{type(self.estimator).__name__}, got {counts.min()} of the rarest class. Use "
                    "an estimator with predict_proba."
                )
        return CalibratedClassifierCV(estimator, method=self.method, cv=cv, ensemble=False)

    def _check_priors(self, classes: np.ndarray, training_priors: np.ndarray) -> np.ndarray:
        if self.priors is None:
            return training_priors
        if isinstance(self.priors, str):
            return np.full(len(classes), 1.0 / len(classes))
        priors = _per_class("priors", self.priors, classes)
        if (priors < 0).any() or not priors.sum() > 0:
            raise ValueError(f"priors must be non-negative and not all 0, got {self.priors!r}.")
        return priors / priors.sum()

    def _check_costs(self, classes: np.ndarray) -> np.ndarray:
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
            raise ValueError(f"costs by class must be non-negative, got {self.costs!r}.")
        return costs[:, np.newaxis] * different


@dataclass(frozen=True)
class ImbalanceReport:
    """Result of `imbalance_report`. Its string is a table.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    counts : ndarray of shape (n_classes,)
        Number of (training) samples of each class.
    group : ndarray of shape (n_classes,)
        'head', 'medium' or 'tail'.
    recall : ndarray of shape (n_classes,)
        Recall of each class, nan for classes without samples.
    recall_of_group : dict
        Mean recall of the classes in each group that is not empty.
    balanced_accuracy : float
        Mean recall of all classes.
    macro_f1 : float
        Mean F1 of all classes.
    g_mean : float
        Geometric mean of the recalls.
    average_precision : float or None
        Mean average precision of all classes, if scores were passed.
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

    def __str__(self) -> str:
        width = max(5, *(len(str(name)) for name in self.classes))
        lines = [f"{'class':<{width}}  {'count':>7}  group   recall"]
        for k in np.argsort(-self.counts, kind="stable"):
            lines.append(
                f"{self.classes[k]!s:<{width}}  {self.counts[k]:>7g}  {self.group[k]:<6}  "
                f"{self.recall[k]:6.3f}"
            )
        metrics = [(f"recall of the {name}", r) for name, r in self.recall_of_group.items()]
        names = ("balanced accuracy", "macro F1", "G-mean", "average precision")
        values = (self.balanced_accuracy, self.macro_f1, self.g_mean, self.average_precision)
        metrics += zip(names, values, strict=True)
        lines += ["", *(f"{name:<23}{value:.3f}" for name, value in metrics if value is not None)]
        return "\n".join(lines)


@shared_docs
def imbalance_report(
    y_true: ArrayLike,
    scores: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    counts: ArrayLike | dict | None = None,
    bounds: Sequence[float] = (20, 100),
    sample_weight: ArrayLike | None = None,
) -> ImbalanceReport:
    """Compute metrics for imbalanced classes.

    Accuracy is dominated by the frequent classes. In this report all classes have the same weight,
    and the recall is reported for classes with many samples (head), few samples (tail) and between.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    scores : array-like of shape (n_samples,) or (n_samples, n_classes)
        Scores or probabilities of the classes; with two classes also scores (not probabilities) of
        the second class, which is predicted if they are positive; or predicted labels.
    classes : array-like of shape (n_classes,), default=None
        Class labels in the order of the columns of `scores`. If None, the sorted labels in
        `y_true`, which must then contain all classes.
    <<class_count_groups>>
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights.

    Returns
    -------
    report : ImbalanceReport
        An attribute for each metric; ``print(report)`` prints a table.

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
        raise ValueError(f"classes must contain all labels in y_true, {unknown} are missing.")
    if len(bounds) != 2 or not bounds[0] <= bounds[1]:
        raise ValueError(f"bounds must be two numbers in ascending order, got {bounds!r}.")
    predicted, class_scores = _predictions(np.asarray(scores), classes)
    check_consistent_length(y_true, predicted, sample_weight)
    _, recall, f1, support = precision_recall_fscore_support(
        y_true, predicted, labels=classes, sample_weight=sample_weight, zero_division=0.0
    )
    present = support > 0
    if counts is None:
        counts = np.array([(y_true == name).sum() for name in classes])
    else:
        counts = _per_class("counts", counts, classes)
    group = np.where(counts > bounds[1], "head", np.where(counts < bounds[0], "tail", "medium"))
    average_precision = None
    if class_scores is not None:
        members = np.asarray(y_true)[:, np.newaxis] == classes[present]
        ranks = class_scores[:, present]
        average_precision = average_precision_score(members, ranks, sample_weight=sample_weight)
    groups = {name: present & (group == name) for name in ("head", "medium", "tail")}
    recalls = {
        name: float(recall[in_group].mean()) for name, in_group in groups.items() if in_group.any()
    }
    return ImbalanceReport(
        classes=classes,
        counts=counts,
        group=group,
        recall=np.where(present, recall, np.nan),
        recall_of_group=recalls,
        balanced_accuracy=float(recall[present].mean()),
        macro_f1=float(f1[present].mean()),
        g_mean=float(gmean(recall[present])),
        average_precision=average_precision,
    )


def _predictions(scores: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return predicted labels and, if scores were passed, the scores of all classes."""
    if scores.ndim == 2 and scores.shape[1] == len(classes):
        return classes[scores.argmax(axis=1)], scores
    if scores.ndim == 1 and np.isin(scores, classes).all():
        return scores, None
    if scores.ndim == 1 and len(classes) == 2 and scores.dtype.kind == "f":
        if scores.min() >= 0 and scores.max() <= 1:
            raise ValueError(
                "scores of the second class must be positive for that class, got numbers between 0 "
                "and 1, which look like probabilities. Pass both columns of predict_proba, or "
                "subtract the threshold from the probabilities."
            )
        return classes[(scores > 0).astype(np.intp)], np.column_stack([-scores, scores])
    raise ValueError(
        f"scores must have one column for each of the {len(classes)} classes {classes.tolist()}, "
        "or contain predicted labels, or for two classes floating-point scores of the second; got "
        f"an array of shape {scores.shape} and dtype {scores.dtype}. If y_true lacks a class, pass "
        "all of them as classes."
    )


def _per_class(name: str, values: Any, classes: np.ndarray) -> np.ndarray:
    """Return the numbers of all classes, from an array in their order or a dict."""
    if isinstance(values, dict):
        missing = [label for label in classes.tolist() if label not in values]
        unknown = [label for label in values if label not in classes.tolist()]
        if missing or unknown:
            raise ValueError(
                f"{name} must contain one number for each of the classes {classes.tolist()} and no "
                f"others, got {values!r}."
            )
        values = [values[label] for label in classes.tolist()]
    values = check_array(values, ensure_2d=False, dtype=np.float64, input_name=name)
    if values.shape != classes.shape:
        raise ValueError(
            f"{name} must contain one number for each of the {len(classes)} classes, got shape "
            f"{values.shape}."
        )
    return values
