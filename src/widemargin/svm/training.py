"""What all machines start from: checked rows, encoded labels, and what every row costs."""

import warnings
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, validate_data

from widemargin.costs import class_margins, class_weights, row_costs

_LARGEST = 1e150


@dataclass(frozen=True)
class Labels:
    """Encoded labels of rows, and the weights and margins that come with them.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    codes : ndarray of shape (n,)
        Index of each row's class.
    weight : ndarray of shape (n,) or None
        Positive sample weights, if there are any.
    weight_of_class : ndarray of shape (n_classes,)
    margin_of_class : ndarray of shape (n_classes,)
    """

    classes: np.ndarray
    codes: np.ndarray
    weight: np.ndarray | None
    weight_of_class: np.ndarray
    margin_of_class: np.ndarray

    def costs(self, C: float) -> np.ndarray:
        """What a unit of slack costs in each row."""
        return row_costs(C, self.codes, self.weight_of_class, self.weight)

    def margins(self) -> np.ndarray:
        """How far from the boundary each row should be."""
        return self.margin_of_class[self.codes]

    def in_order(self, order) -> Self:
        """Those of the rows ``order``."""
        weight = None if self.weight is None else self.weight[order]
        return replace(self, codes=self.codes[order], weight=weight)


def encode(y, sample_weight, class_weight, class_margin=None) -> tuple[np.ndarray | slice, Labels]:
    """Which rows have positive weight, and their labels."""
    rows, weight = check_weights(sample_weight, y)
    classes, codes = np.unique(y[rows], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            "y must hold at least two classes; the number of classes has to be greater than "
            f"one; got {len(classes)} class."
        )
    weights = class_weights(class_weight, classes, y[rows], weight)
    margins = class_margins(class_margin, classes, y[rows], weight)
    return rows, Labels(classes, codes, weight, weights, margins)


def check_weights(sample_weight, y):
    """Which rows have positive weight, and their weights (None for no weights)."""
    if sample_weight is None:
        return slice(None), None
    weight = whole_weights(sample_weight, y)
    rows = np.flatnonzero(weight > 0)
    if not len(rows):
        raise ValueError(
            "Invalid input - all samples have zero or negative weights. sample_weight must be "
            "positive for rows of at least two classes."
        )
    if (y[rows] == y[rows[0]]).all() and (y != y[rows[0]]).any():
        raise ValueError(
            "Invalid input - all samples with positive weights belong to the same class. "
            "sample_weight must be positive for rows of at least two classes."
        )
    if weight.min() < 0:
        raise ValueError(
            f"sample_weight must be at least 0, got {weight.min()}: use 0 to leave a row out."
        )
    return rows, weight[rows]


def whole_weights(sample_weight, y):
    """The weights of all rows, of weight 0 too (None for no weights)."""
    if sample_weight is None:
        return None
    return _check_sample_weight(sample_weight, y, dtype=np.float64, allow_all_zero_weights=True)


def check_training_rows(estimator, X, y):
    """X in float64, dense or CSR, and labels of classes."""
    X, y = validate_data(estimator, X, y, dtype=np.float64, order="C", accept_sparse="csr")
    check_classes(y)
    return canonical(X), y


def check_rows(estimator, X):
    """X in float64, dense or CSR, with the features of fit."""
    return validate_data(
        estimator, X, reset=False, dtype=np.float64, order="C", accept_sparse="csr"
    )


def check_sizes(X):
    """Raise a ValueError if squares of the values in X would be too large to add up."""
    values = X.data if sp.issparse(X) else X
    largest = max(values.max(initial=0.0), -values.min(initial=0.0))
    if largest > _LARGEST:
        raise ValueError(
            f"X must hold values up to {_LARGEST:g}, got {largest:.3g}: preprocess them, for "
            "example by StandardScaler."
        )


def check_classes(y):
    """Raise a ValueError unless y holds labels of classes."""
    # scikit-learn's check looks at every label; labels of these types can be nothing else.
    if y.dtype.kind not in "biuUST":
        check_classification_targets(y)


def canonical(X):
    """X, or a copy of it without entries that are stored in parts and with 32-bit indices."""
    if not sp.issparse(X):
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype != np.int32 or X.indptr.dtype != np.int32:
        if max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
            raise ValueError(
                f"X must have fewer than 2^31 entries and columns, got {X.nnz} entries in shape "
                f"{X.shape}."
            )
        parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = type(X)(parts, shape=X.shape)
    return X


def early_end(solutions, max_iter, asked):
    """Tell why solvers ended before they had converged, and what to do.

    ``asked`` says whether a callback asked for it.
    """
    if asked:
        return "Solver terminated early (a callback asked for it)."
    limited = any(not s.converged and 0 <= max_iter <= s.iterations for s in solutions)
    # No gap is known where the kernel may be indefinite.
    known = not any(np.isnan(s.gap) for s in solutions if not s.converged)
    held = "rounding" if known else "rounding, or a kernel that is not positive semidefinite,"
    cause = f"max_iter={max_iter}" if limited else f"{held} keeps it from tol"
    return (
        f"Solver terminated early ({cause}).  Consider pre-processing your data with "
        "StandardScaler or MinMaxScaler."
    )


def tell(estimator, solutions, asked):
    """Print a line for every machine if that is wanted; warn if some have not converged."""
    if estimator.verbose:
        print_solutions(type(estimator).__name__, solutions)
    if not all(solution.converged for solution in solutions):
        warnings.warn(
            f"{early_end(solutions, estimator.max_iter, asked)} Largest relative duality gap: "
            f"{max(solution.gap for solution in solutions):.1e}.",
            ConvergenceWarning,
            stacklevel=4,
        )


def constant_feature(estimator):
    """The value of the feature behind a regularised intercept; 0 for none."""
    return float(estimator.intercept_scaling) if estimator.fit_intercept else 0.0


def print_solutions(name, solutions):
    """Print a line for every machine."""
    for number, s in enumerate(solutions, start=1):
        print(
            f"[{name}] machine {number} of {len(solutions)}: {s.iterations} iterations, "
            f"objective {s.objective:.6g}, relative gap {s.gap:.1e}"
        )
