"""Targets of label trees: class labels, indicator matrices and lists of labels as one matrix."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_consistent_length

MULTICLASS, INDICATOR, SPARSE, LISTS = "multiclass", "indicator", "sparse", "lists"


@dataclass(frozen=True)
class EncodedLabels:
    """Labels of samples as a sparse matrix.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Labels.
    matrix : CSR array of shape (n_samples, n_classes)
        1 where a sample has a label; float32, without explicit zeros.
    form : str
        How labels were passed, which is how `predict` returns them.
    dtype : dtype
        Of an indicator matrix.
    """

    classes: np.ndarray
    matrix: Any
    form: str
    dtype: Any = np.int64

    @property
    def mean_labels(self) -> float:
        """Mean number of labels of the samples that have any."""
        return self.matrix.nnz / np.count_nonzero(np.diff(self.matrix.indptr))

    @property
    def most_labels(self) -> int:
        """Largest number of labels of a sample."""
        return int(np.diff(self.matrix.indptr).max())


def form_of(y: Any) -> str:
    """Return how y lists labels."""
    if sp.issparse(y):
        return SPARSE
    if _is_sequence_of_lists(y):
        return LISTS
    shape = np.asarray(y).shape
    return INDICATOR if len(shape) > 1 and shape[1:] != (1,) else MULTICLASS


def encode_indicator(y: Any, X: Any) -> EncodedLabels:
    """Return the labels of an indicator matrix."""
    form = SPARSE if sp.issparse(y) else INDICATOR
    y = y if form == SPARSE else _numeric(np.asarray(y))
    if y.dtype.kind not in "biuf" or y.ndim != 2 or y.shape[1] == 0:
        raise ValueError(
            "y must be a 1d array of class labels, an indicator matrix of zeros and ones, or a "
            f"list of lists of labels; got an array of shape {y.shape} and dtype {y.dtype}."
        )
    check_consistent_length(X, y)
    matrix = sp.csr_array(y, dtype=np.float32, copy=form == SPARSE)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not (matrix.data == 1.0).all():
        wrong = matrix.data[matrix.data != 1.0][0]
        raise ValueError(
            f"y must contain only zeros and ones if it is an indicator matrix, got {wrong}. Each "
            "column stands for a label. Class labels belong in a 1d array."
        )
    if matrix.nnz == 0:
        raise ValueError("y must contain at least one label, got an indicator matrix of zeros.")
    return EncodedLabels(np.arange(matrix.shape[1]), matrix, form, y.dtype)


def encode_lists(y: Any, X: Any) -> EncodedLabels:
    """Return the labels of lists of labels."""
    check_consistent_length(X, y)
    rows = [_checked(labels, number) for number, labels in enumerate(y)]
    flat = [label for labels in rows for label in labels]
    if not flat:
        raise ValueError("y must contain at least one label, got empty lists only.")
    if not (all(isinstance(label, str) for label in flat) or np.array(flat).dtype.kind in "iu"):
        kinds = sorted({type(label).__name__ for label in flat})
        raise ValueError(
            "y must contain lists of labels that are all strings or all integers, got labels of "
            f"type {' and '.join(kinds)}."
        )
    classes, codes = np.unique(np.array(flat), return_inverse=True)
    indptr = np.cumsum([0, *map(len, rows)])
    matrix = sp.csr_array(
        (np.ones(len(flat), np.float32), codes, indptr), shape=(len(rows), len(classes))
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return EncodedLabels(classes, matrix, LISTS)


def encode_codes(classes: np.ndarray, codes: np.ndarray) -> EncodedLabels:
    """Return the labels of samples that have one class each."""
    n = len(codes)
    matrix = sp.csr_array(
        (np.ones(n, np.float32), codes, np.arange(n + 1)), shape=(n, len(classes))
    )
    return EncodedLabels(classes, matrix, MULTICLASS)


def decode_labels(chosen: Any, classes: np.ndarray, form: str, dtype: Any) -> Any:
    """Return an indicator matrix of predicted labels in the form that labels were passed in.

    Parameters
    ----------
    chosen : CSR array of shape (n_samples, n_classes)
    classes : ndarray of shape (n_classes,)
    form : {'indicator', 'sparse', 'lists'}
    dtype : dtype
        Of indicators.
    """
    if form == LISTS:
        return [
            labels.tolist() for labels in np.split(classes[chosen.indices], chosen.indptr[1:-1])
        ]
    return chosen.astype(dtype) if form == SPARSE else chosen.toarray().astype(dtype)


def equal_sets(y: Any, predicted: list[list]) -> np.ndarray:
    """Return for each sample whether its list of labels has the predicted ones and no others."""
    check_consistent_length(y, predicted)
    pairs = enumerate(zip(y, predicted, strict=True))
    return np.array([set(_checked(true, n)) == set(labels) for n, (true, labels) in pairs])


def numbers_of(labels: np.ndarray, classes: np.ndarray, name: str) -> np.ndarray:
    """Return the positions of labels in the sorted classes."""
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(f"{name} must be a list of labels, got an array of shape {labels.shape}.")
    try:
        numbers = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    except TypeError as error:
        kinds = " and ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise ValueError(
            f"{name} must contain labels seen in fit, got objects of type {kinds}."
        ) from error
    unknown = np.flatnonzero(classes[numbers] != labels)
    if len(unknown):
        label = labels.tolist()[unknown[0]]
        raise ValueError(f"{name} must contain labels seen in fit, got {label!r}, which was not.")
    return numbers


def _numeric(y: np.ndarray) -> np.ndarray:
    """Return an array of objects, such as that of a DataFrame, as one of numbers if it is."""
    try:
        return y.astype(np.float64) if y.dtype == object else y
    except (TypeError, ValueError):
        return y


def _is_sequence_of_lists(y: Any) -> bool:
    """Return whether y is a sequence of lists, tuples, sets or arrays of labels."""
    is_sequence = isinstance(y, list | tuple) or getattr(y, "dtype", 0) == np.dtype(object)
    if not is_sequence or len(getattr(y, "shape", [0])) != 1:
        return False
    if not any(isinstance(labels, list | tuple | set | frozenset | np.ndarray) for labels in y):
        return False
    # As in scikit-learn, lists of equal length that contain only 0 and 1 are an indicator matrix.
    # As lists of labels, they would give the same labels to all samples.
    lengths = {len(labels) if hasattr(labels, "__len__") else 0 for labels in y}
    return len(lengths) != 1 or max(lengths) < 2 or not {x for row in y for x in row} <= {0, 1}


def _checked(labels: Any, number: int) -> list:
    if isinstance(labels, str) or not hasattr(labels, "__iter__"):
        raise ValueError(
            f"y must contain a list of labels for every sample, got {labels!r} for sample {number}."
        )
    return list(labels)
