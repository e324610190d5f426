"""Rows of which only some have labels, checked and told apart."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import validate_data

from widemargin.svm.training import canonical, check_classes, whole_weights

_UNLABELED = -1


class SomeLabels:
    """The part of a two-class estimator that checks what it is given to learn from."""

    pos_label: Any
    classes_: np.ndarray

    # Rows without labels are not sliced as labelled ones are: cross-validation must not have them.
    __metadata_request__fit = {"X_unlabeled": UNUSED}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    def _check_training(self, X, y, X_unlabeled, sample_weight):
        """Labelled rows with labels and weights, and unlabelled rows."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", accept_sparse="csr")
        X = canonical(X)
        weight = whole_weights(sample_weight, y)
        if X_unlabeled is None:
            self._unlabeled = _without_label(y)
            labeled, unlabeled = ~self._unlabeled, X[self._unlabeled]
        else:
            unlabeled = canonical(
                validate_data(
                    self, X_unlabeled, reset=False, dtype=np.float64, order="C",
                    accept_sparse="csr",
                )
            )  # fmt: skip
            if sp.issparse(X) != sp.issparse(unlabeled):
                raise TypeError("X_unlabeled must be sparse if X is, and dense if it is not.")
            labeled = np.ones(len(y), dtype=bool)
        if weight is not None:
            labeled &= weight > 0.0
            if weight.min() < 0.0:
                raise ValueError(f"sample_weight must be at least 0, got {weight.min()}.")
            weight = weight[labeled]
        X, y = X[labeled], y[labeled]
        check_classes(y)
        self._set_classes(y)
        return X, y, weight, unlabeled

    def _set_classes(self, y):
        self.classes_ = np.unique(y)
        if len(self.classes_) != 2:
            classes = "class" if len(self.classes_) == 1 else "classes"
            raise ValueError(
                "Only binary classification is supported: y must hold labels of two classes "
                f"(-1 marks rows without one), got {len(self.classes_)} {classes}. For several "
                "classes put it into sklearn.multiclass.OneVsRestClassifier."
            )
        self.pos_label_ = self.classes_[1] if self.pos_label is None else self.pos_label
        if self.pos_label_ not in self.classes_:
            raise ValueError(
                f"pos_label must be one of the labels {self.classes_.tolist()}, got "
                f"{self.pos_label!r}."
            )
        self._negative = self.classes_[self.classes_ != self.pos_label_][0]


def _without_label(y):
    """Which rows are marked as having none."""
    if y.dtype.kind in "iuf":
        return y == _UNLABELED
    if y.dtype.kind == "O":
        return np.array([not isinstance(label, str) and label == _UNLABELED for label in y])
    return np.zeros(len(y), dtype=bool)
