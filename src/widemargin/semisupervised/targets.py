"""Validation of training data of which only some samples are labeled."""

import sys
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import validate_data

from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import fit_context, num_samples, safe_indexing
from widemargin._base.validation import (
    canonical_csr,
    check_class_labels,
    validate_all_weights,
    validate_predict,
    validate_weights,
)


@dataclass(frozen=True)
class PartialLabels:
    """Labeled samples of positive weight, and unlabeled samples.

    Attributes
    ----------
    X, unlabeled : ndarray, CSR matrix or DataFrame
        Labeled and unlabeled samples.
    y : ndarray of shape (n_labeled,)
    weight : ndarray of shape (n_labeled,) or None
    is_unlabeled : ndarray of bool of shape (n_samples,)
        Which of the samples passed as X are unlabeled.
    classes : ndarray of shape (2,)
    positive_label, negative_label : label
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    unlabeled: Any
    is_unlabeled: np.ndarray
    classes: np.ndarray
    positive_label: Any
    negative_label: Any

    @property
    def positive(self) -> np.ndarray:
        """Which labeled samples are positive."""
        return self.y == self.positive_label

    @property
    def n_unlabeled(self) -> int:
        """Number of unlabeled samples."""
        return num_samples(self.unlabeled)

    def all_samples(self) -> Any:
        """Return all samples, labeled ones first."""
        X, unlabeled = self.X, self.unlabeled
        if sp.issparse(X):
            return sp.vstack([X, unlabeled]).tocsr()
        if hasattr(X, "iloc"):
            return sys.modules["pandas"].concat([X, unlabeled])
        if hasattr(X, "vstack"):
            return X.vstack(unlabeled)
        return np.concatenate([X, unlabeled])

    def all_weights(self) -> np.ndarray | None:
        """Return the weights of all samples, 1 for unlabeled ones; None without weights."""
        if self.weight is None:
            return None
        return np.append(self.weight, np.ones(self.n_unlabeled))


@shared_docs
class PartialLabelsMixin:
    """Fit and validation of binary classifiers for labeled and unlabeled samples.

    A subclass implements `_fit`, which has the arguments of `fit`.
    """

    # Unlabeled samples are not indexed like labeled ones: cross-validation must not slice them.
    __metadata_request__fit = {"X_unlabeled": UNUSED}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        X_unlabeled: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to labeled and unlabeled samples.

        Parameters
        ----------
        <<X_train>>

        <<y_partial>>

        <<X_unlabeled>>

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples in `X`. Unlabeled samples of weight 0 are left out; other weights
            of unlabeled samples are ignored.

        Returns
        -------
        <<returns_self>>
        """
        self._fit(X, y, X_unlabeled, sample_weight)
        return self

    def _fit(self, X: Any, y: ArrayLike, X_unlabeled: Any, sample_weight: ArrayLike | None) -> None:
        raise NotImplementedError

    def _validate_labeled(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Return validated samples and labels, some of which may be -1 for unlabeled."""
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", accept_sparse="csr")
        return canonical_csr(X), y

    def _validate_samples(self, X: Any) -> Any:
        """Return validated samples with the features seen in fit."""
        return canonical_csr(validate_predict(self, X))

    def _validate_fit(
        self, X: Any, y: Any, X_unlabeled: Any, sample_weight: ArrayLike | None
    ) -> PartialLabels:
        X, y = self._validate_labeled(X, y)
        if X_unlabeled is None:
            is_unlabeled = _find_unlabeled(y)
        else:
            is_unlabeled = np.zeros(len(y), dtype=bool)
            X_unlabeled = self._validate_samples(X_unlabeled)
            _check_same_container(X, X_unlabeled)
        weight = validate_all_weights(sample_weight, y)
        labeled = np.flatnonzero(~is_unlabeled)
        if weight is not None:
            is_unlabeled &= weight > 0.0
            weight = weight[labeled]
        check_class_labels(y[labeled])
        counted, weight = validate_weights(weight, y[labeled])
        labeled = labeled[counted]
        unlabeled = safe_indexing(X, is_unlabeled) if X_unlabeled is None else X_unlabeled
        X, y = safe_indexing(X, labeled), y[labeled]
        classes = _two_classes(y, minus_one_is_unlabeled=X_unlabeled is None)
        pos_label = getattr(self, "pos_label", None)
        positive_label = classes[1] if pos_label is None else pos_label
        if positive_label not in classes:
            raise ValueError(
                f"pos_label must be one of the labels {classes.tolist()}, got {pos_label!r}."
            )
        negative_label = classes[classes != positive_label][0]
        return PartialLabels(
            X, y, weight, unlabeled, is_unlabeled, classes, positive_label, negative_label
        )


def is_frame(X: Any) -> bool:
    """Return whether X is a DataFrame."""
    return hasattr(X, "columns")


def _check_same_container(X: Any, X_unlabeled: Any) -> None:
    if sp.issparse(X) != sp.issparse(X_unlabeled):
        raise TypeError(
            "X_unlabeled must be sparse if X is sparse, and dense if X is dense. Convert one of "
            "them."
        )
    if is_frame(X) != is_frame(X_unlabeled):
        raise TypeError(
            "X_unlabeled must be a DataFrame if X is one, and an array otherwise. Convert one of "
            "them."
        )


def _two_classes(y: np.ndarray, minus_one_is_unlabeled: bool) -> np.ndarray:
    classes = np.unique(y)
    if len(classes) != 2:
        meaning = "unlabeled samples" if minus_one_is_unlabeled else "a class, with X_unlabeled"
        raise ValueError(
            "Only binary classification is supported: y must contain labels of two classes (-1 "
            f"means {meaning}), got {len(classes)} {'class' if len(classes) == 1 else 'classes'}. "
            "For several classes, fit one binary classifier per class, with y equal to 1 for the "
            "class, 0 for the other classes and -1 for unlabeled samples."
        )
    return classes


def _find_unlabeled(y: np.ndarray) -> np.ndarray:
    """Return which samples are marked as unlabeled."""
    if y.dtype.kind in "iuf":
        return y == -1
    if y.dtype.kind == "O":
        return np.array([not isinstance(label, str) and label == -1 for label in y])
    if y.dtype.kind in "US" and (y == "-1").any():
        raise ValueError(
            "y contains the string '-1', which does not mark unlabeled samples. A list of strings "
            "and the number -1 was converted to strings. Pass y as an array of dtype object."
        )
    return np.zeros(len(y), dtype=bool)
