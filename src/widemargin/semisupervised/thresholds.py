"""What labels alone give: the rivals that every machine of unlabelled rows has to beat.

All three train the classifier on all labelled rows; they differ in the threshold it decides by: its
own, the one that meets the demand best on scores of rows that training had left out, or the one
that accepts as large a share of rows as is positive among the labelled ones.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    FixedThresholdClassifier,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.utils import check_random_state, column_or_1d

from widemargin._base.sklearn_compat import safe_indexing
from widemargin.semisupervised.constraints import Curve, Demand, between, refined


def labels_only(estimator: Any, X: Any, y: ArrayLike) -> Any:
    """The classifier as it is, trained on the labelled rows.

    Parameters
    ----------
    estimator : classifier
        It is cloned.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Labelled rows.
    y : array-like of shape (n_samples,)
        Their labels.

    Returns
    -------
    classifier
        Fitted.
    """
    return clone(estimator).fit(X, y)


def cross_fitted_threshold(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    demand: Demand | None = None,
    pos_label: Any = None,
    cv: int = 5,
    random_state: Any = None,
) -> FixedThresholdClassifier:
    """The classifier with the threshold that meets a demand best on rows left out of training.

    Parameters
    ----------
    estimator : classifier
        With `decision_function` or `predict_proba`; it is cloned.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Labelled rows.
    y : array-like of shape (n_samples,)
        Their labels, of two classes.
    demand : Demand, default=None
        What is asked for; the greatest F1 when None.
    pos_label : label, default=None
        The positive class; the greater label when None.
    cv : int, default=5
        Number of folds. Every row is scored by a classifier of the other folds.
    random_state : int, RandomState instance or None, default=None
        Draws the folds.

    Returns
    -------
    FixedThresholdClassifier
        Fitted, of a classifier that was trained on all rows.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from widemargin.semisupervised.thresholds import cross_fitted_threshold
    >>> from widemargin.semisupervised.constraints import Demand
    >>> X, y = make_classification(400, weights=[0.8], flip_y=0.1, random_state=0)
    >>> model = cross_fitted_threshold(
    ...     LogisticRegression(), X, y, demand=Demand(precision=0.9), random_state=0
    ... )
    >>> bool(y[model.predict(X) == 1].mean() > 0.85)
    True
    """
    y, pos_label = _labels(y, pos_label)
    method = _method(estimator)
    # An integer, so that the folds are those of one draw.
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    folds = StratifiedKFold(cv, shuffle=True, random_state=seed)
    given = cross_val_predict(clone(estimator), X, y, cv=folds, method=method)
    curve = Curve(_for_label(given, y, pos_label), y == pos_label)
    threshold = curve.thresholds[refined(Demand() if demand is None else demand, curve)]
    return _fixed(labels_only(estimator, X, y), threshold, method, pos_label, X, y)


def prior_threshold(
    estimator: Any, X: Any, y: ArrayLike, X_unlabeled: Any, *, pos_label: Any = None
) -> FixedThresholdClassifier:
    """The classifier with the threshold that accepts as many unlabelled rows as should be positive.

    That is the share of positive rows among the labelled ones. Equal scores are never told apart:
    of the shares to be had, the nearest is taken.

    Parameters
    ----------
    estimator : classifier
        With `decision_function` or `predict_proba`; it is cloned.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Labelled rows.
    y : array-like of shape (n_samples,)
        Their labels, of two classes.
    X_unlabeled : {array-like, sparse matrix} of shape (n_unlabeled, n_features)
        Rows without labels.
    pos_label : label, default=None
        The positive class; the greater label when None.

    Returns
    -------
    FixedThresholdClassifier
        Fitted.
    """
    y, pos_label = _labels(y, pos_label)
    method = _method(estimator)
    model = labels_only(estimator, X, y)
    scores = _for_label(getattr(model, method)(X_unlabeled), y, pos_label)
    distinct, counts = np.unique(scores, return_counts=True)
    accepted = np.append(np.cumsum(counts[::-1])[::-1], 0)
    nearest = np.abs(accepted - len(scores) * np.mean(y == pos_label)).argmin()
    return _fixed(model, between(distinct)[nearest], method, pos_label, X, y)


def _labels(y, pos_label):
    """The labels as an array, and the positive one of the two."""
    y = column_or_1d(y)
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"y must hold labels of two classes, got {classes.tolist()}.")
    if pos_label is None:
        return y, classes[1]
    if pos_label not in classes:
        raise ValueError(f"pos_label must be one of {classes.tolist()}, got {pos_label!r}.")
    return y, pos_label


def _method(estimator):
    return "decision_function" if hasattr(estimator, "decision_function") else "predict_proba"


def _for_label(given, y, pos_label):
    """Scores, or probabilities, of the positive class."""
    second = pos_label == np.unique(y)[1]
    if given.ndim == 2:
        return given[:, int(second)]
    return given if second else -given


def _fixed(model, threshold, method, pos_label, X, y):
    """The fitted classifier with a threshold."""
    wrapped = FixedThresholdClassifier(
        FrozenEstimator(model),
        threshold=float(threshold),
        pos_label=pos_label,
        response_method=method,
    )
    # Nothing is trained here: it only has to see both labels.
    return wrapped.fit(safe_indexing(X, slice(0, 2)), np.unique(y))
