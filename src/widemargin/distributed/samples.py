"""The samples of one partition, and what a linear classifier computes from them.

The problem is that of `solvers.hinge.linear_problem`, for several functions at once (one for each
class against the rest). A partition holds the columns of X that occur in it and exchanges only the
weights of these features, so that the traffic of sparse data is in proportion to their entries.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from dask.sizeof import sizeof

from widemargin._base.threads import single_threaded_blas
from widemargin.kernels.functions import squared_norms
from widemargin.solvers.hinge.losses import Loss


class Rows(NamedTuple):
    """Sums over functions for some features: ``values[j, k]`` belongs to feature ``columns[k]``."""

    columns: Any
    values: np.ndarray

    def add_to(self, total: np.ndarray) -> None:
        """Add the values to an array of shape (n_functions, n_features + 1)."""
        if self.columns is None:
            total += self.values
        else:
            total[:, self.columns] += self.values


class Measured:
    """Base of classes whose objects report their bytes; Dask moves what it takes for small."""

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(sizeof(value) for value in vars(self).values())


@dataclass(frozen=True)
class LinearSamples(Measured):
    """Samples of a partition with their targets.

    Attributes
    ----------
    X : ndarray or CSR array of shape (n, n_columns)
    columns : ndarray of shape (n_columns + 1,) or None
        Features of the columns and the constant feature; None for all features.
    positive : ndarray of bool, shape (n_functions, n)
        Whether a sample is in the positive class of a function.
    cost : ndarray of shape (n,)
    margin : ndarray of shape (n,)
    loss : Loss
    bias : float
        Value of the constant feature.
    norms : ndarray of shape (n,)
        Squared norms of the samples with the constant feature.
    """

    X: Any
    columns: Any
    positive: np.ndarray
    cost: np.ndarray
    margin: np.ndarray
    loss: Loss
    bias: float
    norms: np.ndarray

    @classmethod
    def of(cls, X, positive, cost, margin, loss, bias) -> "LinearSamples":
        """Return the samples, without the columns that are zero in all of them."""
        columns = None
        if sp.issparse(X):
            used = np.unique(X.indices)
            if len(used) < X.shape[1]:
                arrays = X.data, np.searchsorted(used, X.indices).astype(np.int32), X.indptr
                columns = np.append(used, X.shape[1])
                X = sp.csr_array(arrays, shape=(X.shape[0], len(used)))
        norms = squared_norms(X) + bias**2
        return cls(X, columns, positive, cost, margin, loss, bias, norms)

    @property
    def sign(self) -> np.ndarray:
        """Return +1 or -1 for each function and sample."""
        return np.where(self.positive, 1.0, -1.0)

    def take(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights of the columns of this partition."""
        return weights if self.columns is None else weights[:, self.columns]

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Compute the scores of the samples, given the weights of the columns."""
        with single_threaded_blas():
            return (self.X @ weights[:, :-1].T).T + self.bias * weights[:, -1:]

    def combine(self, coefficients: np.ndarray) -> Rows:
        """Return the sums of the samples with these coefficients for each function."""
        with single_threaded_blas():
            sums = (self.X.T @ coefficients.T).T
        constant = self.bias * coefficients.sum(axis=1)
        return Rows(self.columns, np.column_stack([sums, constant]))

    def dual_values(self, dual: np.ndarray) -> np.ndarray:
        """Compute the dual objective of each function without the term of the weights."""
        return dual @ self.margin - 0.5 * (dual * dual) @ self.loss.softness(self.cost)

    def losses(self, scores: np.ndarray) -> np.ndarray:
        """Compute the sum of the losses for each function."""
        return self.loss.value(self.margin - self.sign * scores) @ self.cost
