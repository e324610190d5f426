"""Supervised baselines that any semi-supervised method has to beat.

All three train the classifier on all labeled samples. They differ in the decision threshold: the
classifier's own; the one that meets the constraints best on cross-validated scores; or the one that
accepts the same fraction of samples as is positive among the labeled ones.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, StratifiedKFold, cross_val_predict
from sklearn.utils import check_random_state, column_or_1d

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import safe_indexing
from widemargin._base.validation import check_class_labels
from widemargin.semisupervised.constraints import Constraints, ScoredSamples, midpoints
from widemargin.semisupervised.targets import negative_and_positive


def labels_only(estimator: Any, X: Any, y: ArrayLike) -> Any:
    """Fit the classifier to the labeled samples.

    Parameters
    ----------
    estimator : classifier
        It is cloned.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Labeled samples.
    y : array-like of shape (n_samples,)
        Their labels.

    Returns
    -------
    classifier
        Fitted classifier.
    """
    return clone(estimator).fit(X, _check_labels(y, None)[0])


@shared_docs
def cross_fitted_threshold(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    constraints: Constraints | None = None,
    pos_label: Any = None,
    cv: int = 5,
    random_state: Any = None,
) -> FixedThresholdClassifier:
    """Fit the classifier, with a threshold tuned on cross-validated scores.

    Parameters
    ----------
    <<baseline_parameters>>
    constraints : Constraints, default=None
        Constraints on the threshold. If None, it maximizes F1.
    pos_label : label, default=None
        The positive class. If None, it is the greater label.
    cv : int, default=5
        Number of folds. Every sample is scored by a classifier trained on the other folds.
    random_state : int, RandomState instance or None, default=None
        Determines the folds.

    Returns
    -------
    FixedThresholdClassifier
        Fitted classifier.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from widemargin.semisupervised.thresholds import cross_fitted_threshold
    >>> from widemargin.semisupervised.constraints import Constraints
    >>> X, y = make_classification(400, weights=[0.8], flip_y=0.1, random_state=0)
    >>> model = cross_fitted_threshold(
    ...     LogisticRegression(), X, y, constraints=Constraints(precision=0.9), random_state=0
    ... )
    >>> bool(y[model.predict(X) == 1].mean() > 0.85)
    True
    """
    y, pos_label = _check_labels(y, pos_label)
    method = _response_method(estimator)
    # An integer, so that the folds are those of one draw.
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    folds = StratifiedKFold(cv, shuffle=True, random_state=seed)
    response = cross_val_predict(clone(estimator), X, y, cv=folds, method=method)
    samples = ScoredSamples(_positive_scores(response, y, pos_label), y == pos_label)
    threshold = (constraints or Constraints()).tuned_threshold(samples)
    return _fixed_threshold(labels_only(estimator, X, y), threshold, pos_label, X, y)


@shared_docs
def prior_threshold(
    estimator: Any, X: Any, y: ArrayLike, X_unlabeled: Any, *, pos_label: Any = None
) -> FixedThresholdClassifier:
    """Fit the classifier, with a threshold that accepts the expected number of unlabeled samples.

    This is the fraction of positive samples among the labeled ones. Samples with equal scores are
    never separated; the nearest possible fraction is used.

    Parameters
    ----------
    <<baseline_parameters>>
    X_unlabeled : {array-like, sparse matrix} of shape (n_unlabeled, n_features)
        Unlabeled samples.
    pos_label : label, default=None
        The positive class. If None, it is the greater label.

    Returns
    -------
    FixedThresholdClassifier
        Fitted classifier.
    """
    y, pos_label = _check_labels(y, pos_label)
    method = _response_method(estimator)
    model = labels_only(estimator, X, y)
    response = getattr(model, method)(X_unlabeled)
    scores = _positive_scores(response, y, pos_label)
    distinct, counts = np.unique(scores, return_counts=True)
    accepted = np.append(np.cumsum(counts[::-1])[::-1], 0)
    nearest = np.abs(accepted - len(scores) * np.mean(y == pos_label)).argmin()
    return _fixed_threshold(model, midpoints(distinct)[nearest], pos_label, X, y)


def _check_labels(y: ArrayLike, pos_label: Any) -> tuple[np.ndarray, Any]:
    """Return the labels as an array, and the positive label."""
    labels = column_or_1d(y)
    check_class_labels(labels)
    classes = np.unique(labels)
    if len(classes) != 2:
        raise ValueError(
            f"y must contain labels of two classes, of labeled samples only, got "
            f"{classes.tolist()}."
        )
    return labels, negative_and_positive(classes, pos_label)[1]


def _response_method(estimator: Any) -> str:
    for method in ("decision_function", "predict_proba"):
        if hasattr(estimator, method):
            return method
    raise AttributeError(
        f"estimator must have decision_function or predict_proba; {type(estimator).__name__} has "
        "neither."
    )


def _positive_scores(response: np.ndarray, y: np.ndarray, pos_label: Any) -> np.ndarray:
    """Return the scores or probabilities of the positive class."""
    is_second = pos_label == np.unique(y)[1]
    if response.ndim == 2:
        return response[:, int(is_second)]
    return response if is_second else -response


def _fixed_threshold(model: Any, threshold: float, pos_label: Any, X: Any, y: Any) -> Any:
    """Return the fitted classifier with another threshold."""
    options = {"pos_label": pos_label, "response_method": _response_method(model)}
    wrapped = FixedThresholdClassifier(
        FrozenEstimator(model), threshold=float(threshold), **options
    )
    # The frozen model is not trained here; fit only has to see both labels.
    return wrapped.fit(safe_indexing(X, slice(0, 2)), np.unique(y))
