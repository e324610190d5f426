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
    X : ndarray, CSR matrix or DataFrame
        All samples, labeled ones first.
    y : ndarray of shape (n_labeled,)
    weight : ndarray of shape (n_labeled + n_unlabeled,) or None
        Weights of all samples, 1 for unlabeled ones.
    labels : ndarray of shape (2,)
        Labels of the negative and of the positive class.
    is_unlabeled : ndarray of bool of shape (n_samples,)
        Which of the samples passed as X are unlabeled.
    labeled : ndarray of shape (n_labeled,)
        Indices of the labeled samples among those passed as X.
    """

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    labels: np.ndarray
    is_unlabeled: np.ndarray
    labeled: np.ndarray

    @property
    def positive(self) -> np.ndarray:
        """Which labeled samples are positive."""
        return self.y == self.labels[1]

    @property
    def n_unlabeled(self) -> int:
        """Number of unlabeled samples."""
        return num_samples(self.X) - len(self.y)


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
        self, X: Any, y: ArrayLike, X_unlabeled: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model to labeled and unlabeled samples.

        Parameters
        ----------
        <<X_train>>

        <<y_partial>>

        <<X_unlabeled>>

        <<partial_sample_weight>>

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
        y, missing = fill_missing_labels(y)
        X, y = self._validate_labeled(X, y)
        is_unlabeled = missing
        minus_one_is_unlabeled = X_unlabeled is None and not missing.any()
        if minus_one_is_unlabeled:
            is_unlabeled = find_unlabeled(y)
        if X_unlabeled is not None:
            X_unlabeled = self._validate_unlabeled(X_unlabeled)
        weight = validate_all_weights(sample_weight, y)
        labeled = np.flatnonzero(~is_unlabeled)
        if weight is not None:
            is_unlabeled &= weight > 0.0
            weight = weight[labeled]
        check_class_labels(y[labeled])
        counted, weight = validate_weights(weight, y[labeled])
        labeled = labeled[counted]
        labels = self._negative_and_positive(y[labeled], minus_one_is_unlabeled)
        X = safe_indexing(X, np.append(labeled, np.flatnonzero(is_unlabeled)))
        if X_unlabeled is not None:
            X = _stack(X, X_unlabeled)
        if weight is not None:
            weight = np.append(weight, np.ones(num_samples(X) - len(labeled)))
        return PartialLabels(X, y[labeled], weight, labels, is_unlabeled, labeled)

    def _validate_unlabeled(self, X_unlabeled: Any) -> Any:
        """Return validated unlabeled samples; an error names the argument, which is not X."""
        try:
            return self._validate_samples(X_unlabeled)
        except (TypeError, ValueError) as error:
            raise type(error)(f"X_unlabeled is not valid. {error}") from error

    def _negative_and_positive(self, y: np.ndarray, minus_one_is_unlabeled: bool) -> np.ndarray:
        """Return the labels of the negative and of the positive class."""
        classes = np.unique(y)
        if len(classes) != 2:
            meaning = (
                "unlabeled samples"
                if minus_one_is_unlabeled
                else "a class, with X_unlabeled, or because y contains NaN or None"
            )
            raise ValueError(
                "Only binary classification is supported: y must contain labels of two classes (-1 "
                f"means {meaning}), got {len(classes)} "
                f"{'class' if len(classes) == 1 else 'classes'}. For several classes, fit one "
                "binary classifier per class, with y equal to 1 for the class, 0 for the other "
                "classes and -1 for unlabeled samples."
            )
        return negative_and_positive(classes, getattr(self, "pos_label", None))


def negative_and_positive(classes: np.ndarray, pos_label: Any) -> np.ndarray:
    """Return two sorted labels, the positive one last; None stands for the greater one."""
    if pos_label is None:
        return classes
    if np.ndim(pos_label) or pos_label not in classes.tolist():
        raise ValueError(
            f"pos_label must be one of the labels {classes.tolist()}, got {pos_label!r}."
        )
    return classes if pos_label == classes[1] else classes[::-1]


def _stack(X: Any, X_unlabeled: Any) -> Any:
    """Return labeled and unlabeled samples in one container."""
    if sp.issparse(X) != sp.issparse(X_unlabeled):
        raise TypeError(
            "X_unlabeled must be sparse if X is sparse, and dense if X is dense. Convert one of "
            "them."
        )
    if hasattr(X, "columns") != hasattr(X_unlabeled, "columns"):
        raise TypeError(
            "X_unlabeled must be a DataFrame if X is one, and an array otherwise. Convert one of "
            "them."
        )
    if sp.issparse(X):
        return sp.vstack([X, X_unlabeled]).tocsr()
    if hasattr(X, "iloc"):
        return sys.modules["pandas"].concat([X, X_unlabeled])
    return X.vstack(X_unlabeled) if hasattr(X, "vstack") else np.concatenate([X, X_unlabeled])


def fill_missing_labels(y: Any) -> tuple[Any, np.ndarray]:
    """Return labels without missing ones, which are replaced by another label, and which they are.

    None, NaN and the missing values of nullable columns are missing labels.
    """
    nullable = not isinstance(getattr(y, "dtype", None), np.dtype | None)
    # A list keeps integers integers; an array of a nullable column may be of floats.
    values = np.array(list(y), dtype=object) if nullable else np.asarray(y)
    missing = np.zeros(len(values) if values.ndim else 0, dtype=bool)
    if values.ndim == 1 and values.dtype.kind == "f":
        missing = np.isnan(values)
    elif values.ndim == 1 and values.dtype.kind == "O":
        missing = np.array([is_missing(label) for label in values], dtype=bool)
    if not missing.any() and (not nullable or isinstance(next(iter(values), ""), str)):
        return y, missing
    present = values[~missing]
    if not len(present):
        raise ValueError("y must contain labels of two classes, got only missing labels.")
    filled = np.empty(len(values), dtype=np.array(present.tolist()).dtype)
    filled[~missing], filled[missing] = present, present[0]
    return filled, missing


def is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN or the missing value of a nullable column."""
    try:
        return label is None or bool(label != label)  # NaN
    except TypeError:  # the missing value of pandas cannot be compared
        return True


def find_unlabeled(y: np.ndarray) -> np.ndarray:
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
