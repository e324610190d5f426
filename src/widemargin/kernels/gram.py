"""Gram matrices: k(x_i, x_j) of training samples, in blocks and in rows.

Solvers use the `Gram` protocol and nothing else. A block is exact (float64): small problems are
solved on it. Large problems use rows. Rows may be float32, and come as an array together with the
positions of the requested rows in it, so that nothing has to be copied out of a cache. Arrays that
are returned may be shared and must not be written to.
"""

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from widemargin._base.options import kernel_options as options
from widemargin.kernels.functions import KernelFunction, squared_norms


class Gram(Protocol):
    """What a solver needs of a Gram matrix."""

    @property
    def size(self) -> int:
        """Number of samples."""

    @property
    def positive_semidefinite(self) -> bool:
        """Whether this is known; an indefinite kernel has no duality gap."""

    @property
    def max_rows(self) -> int:
        """Number of rows that can be requested at once."""

    def diagonal(self) -> np.ndarray:
        """Return k(x_i, x_i) of all samples, float64."""

    def block(self, rows: Any, columns: Any) -> np.ndarray:
        """Return k(x_i, x_j), float64, for index arrays or slices of i and j."""

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return an array and the positions in it of the rows ``index`` (distinct)."""

    def subset(self, index: np.ndarray) -> "Gram":
        """Return the Gram matrix of the samples ``index``, which will be used from now on."""

    def use_float64(self) -> None:
        """Return rows in float64 from now on."""


class KernelGram:
    """The Gram matrix of a named kernel over dense or CSR samples.

    Parameters
    ----------
    function : KernelFunction
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
        The mean of dense samples is subtracted where the kernel depends on squared distances (rbf),
        which then lose no digits to a common offset.
    center : bool, default=False
        Whether to subtract the mean of dense samples whatever the kernel is.
    """

    def __init__(self, function: KernelFunction, X: Any, center: bool = False):
        origin = None
        center = center or (function.translation_invariant and function.uses_norms)
        if center and not sp.issparse(X) and len(X):
            origin = X.mean(axis=0)
            X = X - origin
        self._set(function, X, origin)

    def _set(
        self, function: KernelFunction, X: Any, origin: Any, norms: np.ndarray | None = None
    ) -> "KernelGram":
        self.function = function
        self.origin = origin
        self.X = X if sp.issparse(X) else np.ascontiguousarray(X)
        self.norms = function.squared_norms(self.X) if norms is None else norms
        self.size = self.max_rows = X.shape[0]
        self.positive_semidefinite = function.positive_semidefinite
        return self

    def is_finite(self) -> bool:
        """Return whether the values of X are small enough for the kernel."""
        norms = self.diagonal() if self.norms is None else self.norms
        return bool(np.isfinite(norms).all())

    def fits_float32(self) -> bool:
        """Return whether float32 can hold the values of X and of the kernel."""
        return fits_float32(np.abs(self.diagonal())) and fits_float32(self._squared_norms())

    def diagonal(self) -> np.ndarray:
        return self.function.diagonal(self.X)

    def block(
        self, rows: Any, columns: Any = slice(None), out: np.ndarray | None = None
    ) -> np.ndarray:
        return self.function.matrix(
            self.X if is_everything(rows) else self.X[rows],
            self.X if is_everything(columns) else self.X[columns],
            None if self.norms is None else self.norms[rows],
            None if self.norms is None else self.norms[columns],
            out,
        )

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.block(index), np.arange(len(index))

    def subset(self, index: np.ndarray) -> "KernelGram":
        """Return the Gram matrix of the samples ``index``."""
        norms = None if self.norms is None else self.norms[index]
        return object.__new__(KernelGram)._set(self.function, self.X[index], self.origin, norms)

    def use_float64(self) -> None:
        """Do nothing: rows have the dtype of X."""

    def cross_values(self, X: Any) -> np.ndarray:
        """Return the kernel values of new samples against those of this matrix."""
        if sp.issparse(X) and not sp.issparse(self.X):
            X = X.toarray()
        if self.origin is not None:
            X = X - self.origin
        X = X.astype(self.X.dtype, copy=False)
        return self.function.matrix(X, self.X, None, self.norms)

    def are_far(self, X: Any) -> np.ndarray:
        """Return which new samples have more than twice the largest norm of those here."""
        if self.origin is not None:
            X = X - self.origin
        return ~(squared_norms(X) <= 4.0 * self._squared_norms().max(initial=0.0))

    def _squared_norms(self) -> np.ndarray:
        return squared_norms(self.X) if self.norms is None else self.norms

    def as_float32(self, dense_bytes: int) -> "KernelGram":
        """Return the same in float32; sparse samples become dense if that is faster and fits."""
        X: Any = self.X.astype(np.float32)
        if sp.issparse(X) and _is_faster_dense(X, dense_bytes):
            X = X.toarray()
        return object.__new__(KernelGram)._set(self.function, X, self.origin)


class MatrixGram:
    """A Gram matrix that is held in memory.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
    positive_semidefinite : bool, default=True
        Whether the caller knows that it is.
    """

    def __init__(self, matrix: np.ndarray, positive_semidefinite: bool = True):
        self.matrix = matrix
        self.size = self.max_rows = len(matrix)
        self.positive_semidefinite = positive_semidefinite
        self._diagonal: np.ndarray | None = None

    def is_finite(self) -> bool:
        """Return whether all values are finite."""
        return bool(np.isfinite(self.matrix).all())

    def fits_float32(self) -> bool:
        """Return True: the rows are used as they are."""
        return True

    def diagonal(self) -> np.ndarray:
        if self._diagonal is None:
            self._diagonal = self.matrix.diagonal().astype(np.float64)
        return self._diagonal

    def block(self, rows: Any, columns: Any = slice(None)) -> np.ndarray:
        if isinstance(rows, slice) or isinstance(columns, slice):
            return np.ascontiguousarray(self.matrix[rows, columns])
        return self.matrix[np.ix_(rows, columns)]

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.matrix, index

    def subset(self, index: np.ndarray) -> "MatrixGram":
        """Return the Gram matrix of the samples ``index``."""
        return MatrixGram(self.matrix[np.ix_(index, index)], self.positive_semidefinite)

    def use_float64(self) -> None:
        """Do nothing: rows have the dtype of the matrix."""

    def as_float32(self, dense_bytes: int) -> "MatrixGram":
        """Return the matrix itself."""
        return self


def fits_float32(sizes: np.ndarray) -> bool:
    """Return whether non-negative values are small enough for sums of them in float32."""
    return bool(sizes.max(initial=0.0) < 1e-3 * float(np.finfo(np.float32).max))


def is_everything(index: Any) -> bool:
    """Return whether an index array or slice is ``slice(None)``."""
    return isinstance(index, slice) and index == slice(None)


def _is_faster_dense(X: Any, dense_bytes: int) -> bool:
    entries = X.shape[0] * X.shape[1]
    return entries <= options.dense_advantage * X.nnz and entries * X.dtype.itemsize <= dense_bytes
