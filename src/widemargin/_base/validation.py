"""Validation of samples and sample weights: each input is checked once, where it enters."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from widemargin._base.sklearn_compat import (
    check_feature_names,
    check_n_features,
    check_sample_weight,
    check_y,
    naming,
)

# Sums of squares of larger values overflow float64.
LARGEST_VALUE = 1e150


@dataclass(frozen=True)
class ValidatedSamples:
    """Samples that a meta-estimator has validated and passes on to an estimator of the library.

    `validate_training` and `validate_predict` take the values, and in training the labels, without
    checking them again. Only the number and the names of the features are compared.

    Attributes
    ----------
    values : ndarray or sparse matrix of shape (n_samples, n_features)
        In float64, C-contiguous or canonical CSR.
    original : array-like, sparse matrix or DataFrame
        The same samples as the user passed them, with the names of their features.
    """

    values: Any
    original: Any

    def take_features(self, estimator: Any, reset: bool) -> Any:
        """Store the features as those seen in fit, or compare them; return the values."""
        check_feature_names(estimator, self.original, reset=reset)
        check_n_features(estimator, self.values, reset=reset)
        return self.values


def validate_training(estimator: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Return X in float64, dense or canonical CSR, and class labels; set ``n_features_in_``."""
    if isinstance(X, ValidatedSamples):
        return X.take_features(estimator, reset=True), y
    with naming("X"):
        X, y = validate_data(estimator, X, y, dtype=np.float64, order="C", accept_sparse="csr")
    check_class_labels(y)
    return canonical_csr(X), y


def validate_kernel_training(estimator: Any, X: Any, y: Any, kernel: Any) -> tuple[Any, np.ndarray]:
    """Return training samples and labels of a kernel method.

    Samples for a callable kernel are not looked at: they may be anything that it takes. X must be
    square for ``kernel="precomputed"``.
    """
    if callable(kernel):
        check_consistent_length(X, y)
        y = column_or_1d(y, warn=True)
        check_class_labels(y)
        return X, y
    if kernel == "precomputed" and sp.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported. Pass X as an array.")
    X, y = validate_training(estimator, X, y)
    if kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(
            "X must be a square matrix for kernel='precomputed', the kernel values between all "
            f"training samples, got shape {X.shape}."
        )
    return X, y


def validate_predict(estimator: Any, X: Any, check_finite: bool = True) -> Any:
    """Return X in float64, dense or CSR, after comparing its features with those seen in fit."""
    if isinstance(X, ValidatedSamples):
        return X.take_features(estimator, reset=False)
    return validate_data(
        estimator, X, reset=False, dtype=np.float64, order="C", accept_sparse="csr",
        ensure_all_finite=check_finite,
    )  # fmt: skip


def validate_shape(estimator: Any, X: Any, y: Any = "no_validation") -> None:
    """Check the shape of X and its features, leaving the values to a wrapped estimator.

    Parameters
    ----------
    estimator : estimator
        The meta-estimator. Its ``n_features_in_`` and ``feature_names_in_`` are set if `y` is
        given, and compared with X otherwise.
    X : array-like, sparse matrix, DataFrame, or a sequence of texts or dicts
        Samples. The contents of texts and dicts are not checked.
    y : array-like, default="no_validation"
        Target labels, when the estimator is being fitted.
    """
    if not _is_sequence_of_objects(X):
        check_array(X, accept_sparse=True, dtype=None, ensure_all_finite=False, estimator=estimator)
    fitting = not isinstance(y, str)
    validate_data(estimator, X, y, reset=fitting, skip_check_array=True)


def validate_meta_training(meta: Any, X: Any, y: Any, sample_weight: Any) -> np.ndarray:
    """Return class labels, and leave the values of X to the ``estimator`` of a meta-estimator."""
    estimator = meta.estimator
    if sample_weight is not None and not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(
            f"sample_weight cannot be used, because fit of {estimator!r} does not accept it. Leave "
            "it out."
        )
    validate_shape(meta, X, y)
    labels = check_y(y, estimator=meta)
    check_class_labels(labels)
    check_consistent_length(X, labels)
    refuse_unlabeled(meta, estimator, labels)
    return labels


def validate_weights(
    sample_weight: Any, y: np.ndarray
) -> tuple[np.ndarray | slice, np.ndarray | None]:
    """Return the samples of positive weight and their weights (None without weights)."""
    weight = validate_all_weights(sample_weight, y)
    if weight is None:
        return slice(None), None
    positive = np.flatnonzero(weight > 0)
    if not len(positive):
        raise ValueError(
            "Invalid input - all samples have zero or negative weights. sample_weight must be "
            "positive for samples of at least two classes."
        )
    if (y[positive] == y[positive[0]]).all() and (y != y[positive[0]]).any():
        raise ValueError(
            "Invalid input - all samples with positive weights belong to the same class. "
            "sample_weight must be positive for samples of at least two classes."
        )
    check_non_negative(weight)
    return positive, weight[positive]


def check_non_negative(weight: np.ndarray) -> None:
    """Raise a ValueError if a sample weight is negative."""
    if weight.min() < 0:
        raise ValueError(
            f"sample_weight must be non-negative, got {weight.min()}. Use 0 to leave a sample out."
        )


def validate_all_weights(sample_weight: Any, y: np.ndarray) -> np.ndarray | None:
    """Return the weights of all samples, zeros included (None without weights)."""
    if sample_weight is None:
        return None
    return check_sample_weight(sample_weight, y, dtype=np.float64, allow_all_zero_weights=True)


def check_index(X: Any, other: Any, name: str) -> None:
    """Raise a ValueError if X and another pandas object, an argument, are indexed differently."""
    first: Any = getattr(X, "index", None)
    second: Any = getattr(other, "index", None)
    indexed = hasattr(first, "equals") and hasattr(second, "equals")
    if indexed and len(first) == len(second) and not first.equals(second):
        raise ValueError(
            f"X and {name} must have the same index, got different ones: their rows would be "
            f"paired by position. Align them, for example with {name}.loc[X.index], or reset the "
            "index of both."
        )


def check_magnitude(X: Any) -> None:
    """Raise a ValueError if sums of squares of the values in X would overflow."""
    values = X.data if sp.issparse(X) else X
    largest = max(float(values.max(initial=0)), -float(values.min(initial=0)))
    if largest > LARGEST_VALUE:
        raise ValueError(
            f"X must contain values of magnitude up to {LARGEST_VALUE:g}, got {largest:.3g}. "
            "Scale the features, for example with StandardScaler."
        )


def check_class_labels(y: np.ndarray) -> None:
    """Raise a ValueError unless y contains class labels."""
    # scikit-learn's check reads every label; labels of these types cannot be anything else.
    if y.dtype.kind in "biuUST":
        return
    if y.dtype == object and not all(isinstance(label, str) for label in y):
        types = ", ".join(sorted({type(label).__name__ for label in y}))
        raise ValueError(
            f"Unknown label type: y must contain class labels of one type, got {types} in an array "
            "of objects. Use strings, or an array of numbers, for example y.astype(int)."
        )
    check_classification_targets(y)


def refuse_unlabeled(meta: Any, estimator: Any, y: np.ndarray) -> None:
    """Raise a ValueError if -1 in y means unlabeled to the estimator but a class to ``meta``."""
    if y.dtype.kind not in "ifO" or not (y == -1).any():
        return
    nested = [estimator]
    while hasattr(nested[-1], "steps") or hasattr(nested[-1], "estimator"):
        last = nested[-1]
        nested.append(last.steps[-1][1] if hasattr(last, "steps") else last.estimator)
    if any(
        has_fit_parameter(base, "X_unlabeled")
        or type(base).__module__.startswith("sklearn.semi_supervised")
        for base in nested
    ):
        raise ValueError(
            f"y contains -1, which means unlabeled to {type(estimator).__name__} but a class to "
            f"{type(meta).__name__}. Use other class labels, and fit one binary classifier per "
            "class, with y equal to 1 for the class, 0 for the other classes and -1 for unlabeled "
            "samples, to train on unlabeled samples."
        )


def check_several_classes(n_classes: int) -> None:
    """Raise a ValueError unless there are at least two classes."""
    if n_classes < 2:
        raise ValueError(
            "y must contain at least two classes: the number of classes has to be greater than "
            f"one; got {n_classes} class."
        )


def canonical_csr(X: Any) -> Any:
    """Return X without duplicate entries and with 32-bit indices; dense X is returned as it is."""
    if not sp.issparse(X):
        return X
    check_indices(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype != np.int32 or X.indptr.dtype != np.int32:
        if max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
            raise ValueError(
                f"X must have fewer than 2^31 entries and features, got {X.nnz} entries in shape "
                f"{X.shape}."
            )
        arrays = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = type(X)(arrays, shape=X.shape)
    return X


def check_indices(X: Any) -> None:
    """Raise a ValueError if a CSR matrix has entries outside its shape; SciPy does not check that.

    Compiled code would read and write beyond the ends of arrays.
    """
    if X.nnz and not 0 <= X.indices.min() <= X.indices.max() < X.shape[1]:
        raise ValueError(
            f"X must have column indices from 0 to {X.shape[1] - 1}, got {X.indices.min()} to "
            f"{X.indices.max()}. Pass the number of features when the sparse matrix is made."
        )


def _is_sequence_of_objects(X: Any) -> bool:
    if isinstance(X, dict) or (hasattr(X, "shape") and len(X.shape) != 1):
        return False
    first = next(iter(X), None) if hasattr(X, "__iter__") else None
    return isinstance(first, str | bytes | dict)
