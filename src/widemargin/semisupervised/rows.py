"""Rows of which only some have labels, checked and told apart."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import validate_data

from widemargin.svm.training import canonical, check_classes, check_weights, whole_weights

_UNLABELED = -1


class SomeLabels:
    """The part of a two-class estimator that checks what it is given to learn from."""

    # Rows without labels are not sliced as labelled ones are: cross-validation must not have them.
    __metadata_request__fit = {"X_unlabeled": UNUSED}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    def _check_training(self, X, y, X_unlabeled, sample_weight) -> "GivenRows":
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", accept_sparse="csr")
        X = canonical(X)
        if X_unlabeled is None:
            marked = _without_label(y)
            unlabeled = X[marked]
        else:
            marked = np.zeros(len(y), dtype=bool)
            unlabeled = validate_data(
                self, X_unlabeled, reset=False, dtype=np.float64, order="C", accept_sparse="csr"
            )
            if sp.issparse(X) != sp.issparse(unlabeled):
                raise TypeError("X_unlabeled must be sparse if X is, and dense if it is not.")
            unlabeled = canonical(unlabeled)
        weight = whole_weights(sample_weight, y)
        labeled = np.flatnonzero(~marked)
        X, y = X[labeled], y[labeled]
        check_classes(y)
        rows, weight = check_weights(None if weight is None else weight[labeled], y)
        X, y = X[rows], y[rows]
        classes = np.unique(y)
        if len(classes) != 2:
            kind = "class" if len(classes) == 1 else "classes"
            raise ValueError(
                "Only binary classification is supported: y must hold labels of two classes "
                f"(-1 marks rows without one), got {len(classes)} {kind}. For several classes "
                "put it into sklearn.multiclass.OneVsRestClassifier."
            )
        named = getattr(self, "pos_label", None)
        positive = classes[1] if named is None else named
        if positive not in classes:
            raise ValueError(
                f"pos_label must be one of the labels {classes.tolist()}, got {named!r}."
            )
        negative = classes[classes != positive][0]
        return GivenRows(X, y, weight, unlabeled, marked, classes, positive, negative)


@dataclass(frozen=True)
class GivenRows:
    """Labelled rows of positive weight, and rows without labels.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
    unlabeled : ndarray or CSR matrix of shape (k, d)
    marked : ndarray of bool
        Which of the rows as they were given have no label.
    classes : ndarray of shape (2,)
    positive, negative : label
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    unlabeled: Any
    marked: np.ndarray
    classes: np.ndarray
    positive: Any
    negative: Any

    @property
    def truth(self) -> np.ndarray:
        """Which labelled rows are positive."""
        return self.y == self.positive

    def together(self):
        """All rows, labelled ones first."""
        if sp.issparse(self.X):
            return sp.vstack([self.X, self.unlabeled]).tocsr()
        return np.vstack([self.X, self.unlabeled])

    def weights_together(self) -> np.ndarray | None:
        """The weights of all rows, 1 without a label; None for no weights."""
        if self.weight is None:
            return None
        return np.append(self.weight, np.ones(self.unlabeled.shape[0]))


def _without_label(y):
    """Which rows are marked as having none."""
    if y.dtype.kind in "iuf":
        return y == _UNLABELED
    if y.dtype.kind == "O":
        return np.array([not isinstance(label, str) and label == _UNLABELED for label in y])
    return np.zeros(len(y), dtype=bool)
