"""Constraints for several classes: one binary classifier with constraints for each of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_consistent_length, column_or_1d

from widemargin.semisupervised.targets import fill_missing_labels, find_unlabeled

_BOUNDS = ("precision", "recall", "false_positive_rate")


@dataclass(frozen=True)
class ClassDecisions:
    """Fitted binary classifiers, one for each class with constraints.

    Attributes
    ----------
    models : dict
        Fitted classifiers by class label, in the order of the constraints. The labels of each are 1
        for its class and 0 for all others.
    """

    models: dict[Any, Any]

    @property
    def classes(self) -> list:
        """Labels of the classes that have constraints, in the order of the columns."""
        return list(self.models)

    @property
    def guaranteed(self) -> bool:
        """Whether the constraints of all classes hold together with the confidence."""
        guarantees = [model.guarantee_ for model in self.models.values()]
        return all(one is not None and one.guaranteed for one in guarantees)

    def accept(self, X: Any) -> NDArray[np.bool_]:
        """Decide for each class whether samples belong to it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        accepted : ndarray of bool of shape (n_samples, n_constrained_classes)
            A sample may be accepted for several classes, or for none.
        """
        return np.stack([model.predict(X) == 1 for model in self.models.values()], axis=1)


def fit_per_class(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    constraints: dict[Any, dict[str, float]],
    *,
    X_unlabeled: Any = None,
    groups: ArrayLike | None = None,
) -> ClassDecisions:
    """Fit a binary classifier with constraints for each class that has some.

    The result is a set of accepted classes for each sample. To choose one class of them would
    change the precision and recall of all, so that their constraints need not hold any more.

    Parameters
    ----------
    estimator : PreferenceSVC or PreferenceClassifier
        It is cloned for each class. With a confidence 1 - a, each of K classes has the confidence
        1 - a / K, so that all constraints hold together with probability 1 - a.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training samples.
    y : array-like of shape (n_samples,)
        Labels of any number of classes. None, NaN and missing values mean unlabeled. If there are
        none, -1 means unlabeled, unless `X_unlabeled` is passed.
    constraints : dict
        For each class, by its label, the bounds on `precision`, `recall` and `false_positive_rate`.
    X_unlabeled : {array-like, sparse matrix} of shape (n_unlabeled, n_features), default=None
        Unlabeled samples.
    groups : array-like of shape (n_samples,), default=None
        Groups of samples that are not independent.

    Returns
    -------
    decisions : ClassDecisions
        The fitted classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from widemargin import PreferenceClassifier
    >>> from widemargin.semisupervised.per_class import fit_per_class
    >>> X, y = load_iris(return_X_y=True)
    >>> y[::3] = -1
    >>> base = PreferenceClassifier(GaussianNB(), random_state=0)
    >>> decisions = fit_per_class(base, X, y, {0: {"precision": 0.9}, 2: {"recall": 0.8}})
    >>> decisions.accept(X[:5])
    array([[ True, False],
           [ True, False],
           [ True, False],
           [ True, False],
           [ True, False]])
    """
    filled, unlabeled = fill_missing_labels(y)
    labels = column_or_1d(filled)
    check_consistent_length(X, labels)
    if X_unlabeled is None and not unlabeled.any():
        unlabeled = find_unlabeled(labels)
    _check_constraints(estimator, constraints, np.unique(labels[~unlabeled]).tolist())
    risk = None if estimator.confidence is None else (1.0 - estimator.confidence) / len(constraints)
    models = {}
    for label, bounds in constraints.items():
        # NaN means unlabeled, with and without X_unlabeled.
        is_class = np.where(unlabeled, np.nan, labels == label)
        model = clone(estimator).set_params(**{**dict.fromkeys(_BOUNDS), **bounds})
        if risk is not None:
            model.set_params(confidence=1.0 - risk)
        models[label] = model.fit(X, is_class, X_unlabeled=X_unlabeled, groups=groups)
    return ClassDecisions(models)


def _check_constraints(estimator: Any, constraints: dict, classes: list) -> None:
    """Raise a ValueError unless all constraints are bounds for classes."""
    if estimator.pos_label is not None:
        raise ValueError(
            "pos_label of the estimator must be None, because each class with constraints is the "
            f"positive class of a classifier, got {estimator.pos_label!r}."
        )
    unknown = [label for label in constraints if label not in classes]
    if unknown or not constraints:
        raise ValueError(
            f"constraints must contain bounds by class label, for labels in {classes}, got "
            f"{list(constraints)}."
        )
    for label, bounds in constraints.items():
        if not bounds or not set(bounds) <= set(_BOUNDS):
            raise ValueError(
                f"constraints of class {label!r} must be a dict with at least one of "
                f"{', '.join(_BOUNDS)}, got {bounds!r}."
            )
