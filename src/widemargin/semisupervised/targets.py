"""Rows of which only some have labels, checked and told apart."""

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import validate_data

from widemargin._base.sklearn_compat import num_samples, safe_indexing
from widemargin._base.validation import (
    canonical_csr,
    check_class_labels,
    validate_all_weights,
    validate_predict,
    validate_weights,
)

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

    def _look_at_training(self, X, y):
        """Rows and labels, checked; some of the labels may be marks."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", accept_sparse="csr")
        return canonical_csr(X), y

    def _look_at(self, X):
        """Rows, checked against those of training."""
        return canonical_csr(validate_predict(self, X))

    def _check_training(self, X, y, X_unlabeled, sample_weight) -> "GivenRows":
        X, y = self._look_at_training(X, y)
        if X_unlabeled is None:
            marked = _without_label(y)
        else:
            marked = np.zeros(len(y), dtype=bool)
            X_unlabeled = self._look_at(X_unlabeled)
            if sp.issparse(X) != sp.issparse(X_unlabeled):
                raise TypeError("X_unlabeled must be sparse if X is, and dense if it is not.")
            if is_frame(X) != is_frame(X_unlabeled):
                raise TypeError("X_unlabeled must be a data frame if X is, and none if it is not.")
        weight = validate_all_weights(sample_weight, y)
        labeled = np.flatnonzero(~marked)
        if weight is not None:
            marked &= weight > 0.0
        check_class_labels(y[labeled])
        rows, weight = validate_weights(None if weight is None else weight[labeled], y[labeled])
        labeled = labeled[rows]
        unlabeled = safe_indexing(X, marked) if X_unlabeled is None else X_unlabeled
        X, y = safe_indexing(X, labeled), y[labeled]
        classes = np.unique(y)
        if len(classes) != 2:
            kind = "class" if len(classes) == 1 else "classes"
            mark = "marks rows without one" if X_unlabeled is None else "is one, with X_unlabeled"
            raise ValueError(
                "Only binary classification is supported: y must hold labels of two classes "
                f"(-1 {mark}), got {len(classes)} {kind}. For several classes fit one machine for "
                "each, with y 1 for the class, 0 for the others and -1 as it is."
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
    X, unlabeled : ndarray or CSR matrix, or whatever a classifier takes
    y : ndarray of shape (n,)
    weight : ndarray of shape (n,) or None
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

    @property
    def n_unlabeled(self) -> int:
        return num_samples(self.unlabeled)

    def together(self):
        """All rows, labelled ones first."""
        X, unlabeled = self.X, self.unlabeled
        if sp.issparse(X):
            return sp.vstack([X, unlabeled]).tocsr()
        if hasattr(X, "iloc"):
            return sys.modules["pandas"].concat([X, unlabeled])
        if hasattr(X, "vstack"):
            return X.vstack(unlabeled)
        return np.concatenate([X, unlabeled])

    def weights_together(self) -> np.ndarray | None:
        """The weights of all rows, 1 without a label; None for no weights."""
        if self.weight is None:
            return None
        return np.append(self.weight, np.ones(self.n_unlabeled))


def is_frame(X: Any) -> bool:
    """Whether rows come with names of columns."""
    return hasattr(X, "columns")


def _without_label(y):
    """Which rows are marked as having none."""
    if y.dtype.kind in "iuf":
        return y == _UNLABELED
    if y.dtype.kind == "O":
        return np.array([not isinstance(label, str) and label == _UNLABELED for label in y])
    if y.dtype.kind in "US" and (y == str(_UNLABELED)).any():
        raise ValueError(
            "y holds the text '-1', which marks no row: a list of texts and the number -1 has "
            "become texts alone. Give y as an array of dtype object."
        )
    return np.zeros(len(y), dtype=bool)
