"""Gram matrices: k(x_i, x_j) over the training rows, served in blocks and in rows.

Solvers see the `Gram` protocol and nothing else. A block is exact (float64) and is what small
problems are solved on. Rows are what large problems live on: they may be float32, and they come as
an array together with the places at which the wanted rows stand in it, so that nothing has to be
copied out of a cache. What is returned is read-only by contract: it may be shared.
"""

from typing import Protocol

import numpy as np
import scipy.sparse as sp

from widemargin.kernels.functions import KernelFunction, squared_norms

_LARGEST_SINGLE = 1e-3 * float(np.finfo(np.float32).max)


class Gram(Protocol):
    """What a solver needs to know of a kernel matrix."""

    @property
    def size(self) -> int:
        """Number of rows."""

    @property
    def positive_semidefinite(self) -> bool:
        """Whether this is known; an indefinite kernel has no duality gap."""

    @property
    def most_rows(self) -> int:
        """How many rows can be had at once."""

    def diagonal(self) -> np.ndarray:
        """k(x_i, x_i) of all rows, float64."""

    def block(self, rows, columns) -> np.ndarray:
        """k(x_i, x_j), float64, for i in ``rows`` and j in ``columns`` (index arrays or slices)."""

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """An array and the places in it of the Gram matrix's rows ``index`` (distinct)."""

    def narrow(self, index: np.ndarray) -> "Gram":
        """The Gram matrix of the rows ``index``, of which rows will be asked from now on."""

    def sharpen(self) -> None:
        """Serve rows in float64 from now on."""


class KernelGram:
    """The Gram matrix of a named kernel over dense or CSR rows.

    Parameters
    ----------
    function : KernelFunction
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
        Dense rows are moved to their mean where the kernel does not notice (rbf): squared
        distances then lose no digits to a common offset.
    center : bool, default=False
        Whether to subtract the mean of dense rows whatever the kernel is.
    """

    def __init__(self, function: KernelFunction, X, center: bool = False):
        origin = None
        if (center or function.name == "rbf") and not sp.issparse(X) and len(X):
            origin = X.mean(axis=0)
            X = X - origin
        self._set(function, X, origin)

    def _set(self, function, X, origin, norms=None) -> "KernelGram":
        self.function = function
        self.origin = origin
        self.X = X if sp.issparse(X) else np.ascontiguousarray(X)
        self.norms = function.squared_norms(self.X) if norms is None else norms
        self.size = self.most_rows = X.shape[0]
        self.positive_semidefinite = function.positive_semidefinite
        return self

    def is_finite(self) -> bool:
        """Whether the numbers in X are small enough for the kernel."""
        norms = self.diagonal() if self.norms is None else self.norms
        return bool(np.isfinite(norms).all())

    def fits_single(self) -> bool:
        """Whether float32 can hold the numbers in X and the values of the kernel."""
        sizes = np.abs(self.diagonal()).max(initial=0.0), self._own_norms().max(initial=0.0)
        return bool(max(sizes) < _LARGEST_SINGLE)

    def diagonal(self) -> np.ndarray:
        return self.function.diagonal(self.X)

    def block(self, rows, columns=slice(None), out=None) -> np.ndarray:
        own = self.norms is not None
        return self.function.matrix(
            self.X if _is_all(rows) else self.X[rows],
            self.X if _is_all(columns) else self.X[columns],
            self.norms[rows] if own else None,
            self.norms[columns] if own else None,
            out,
        )

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.block(index), np.arange(len(index))

    def narrow(self, index: np.ndarray) -> "KernelGram":
        """The Gram matrix of the rows ``index``."""
        return self.subset(index)

    def sharpen(self) -> None:
        """Nothing to do: rows come in the dtype of X."""

    def against(self, X) -> np.ndarray:
        """k(x, x_j) of new rows against these rows."""
        if sp.issparse(X) and not sp.issparse(self.X):
            X = X.toarray()
        if self.origin is not None:
            X = X - self.origin
        X = X.astype(self.X.dtype, copy=False)
        return self.function.matrix(X, self.X, None, self.norms)

    def are_far(self, X) -> np.ndarray:
        """Which of new rows are more than twice as far out as any of these rows."""
        if self.origin is not None:
            X = X - self.origin
        return ~(squared_norms(X) <= 4.0 * self._own_norms().max(initial=0.0))

    def subset(self, index: np.ndarray) -> "KernelGram":
        """The Gram matrix of the rows ``index``."""
        norms = None if self.norms is None else self.norms[index]
        return object.__new__(KernelGram)._set(self.function, self.X[index], self.origin, norms)

    def _own_norms(self) -> np.ndarray:
        return squared_norms(self.X) if self.norms is None else self.norms

    def single(self, dense_bytes: int) -> "KernelGram":
        """The same in float32; sparse rows become dense where that is faster and fits."""
        X = self.X.astype(np.float32)
        if sp.issparse(X) and _better_dense(X, dense_bytes):
            X = X.toarray()
        return object.__new__(KernelGram)._set(self.function, X, self.origin)


class MatrixGram:
    """A Gram matrix that is given whole.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
    positive_semidefinite : bool, default=True
        What the caller knows of it.
    """

    def __init__(self, matrix: np.ndarray, positive_semidefinite: bool = True):
        self.matrix = matrix
        self.size = self.most_rows = len(matrix)
        self.positive_semidefinite = positive_semidefinite
        self._diagonal: np.ndarray | None = None

    def is_finite(self) -> bool:
        """Whether all values are."""
        return bool(np.isfinite(self.matrix).all())

    def fits_single(self) -> bool:
        """Yes: its rows are served as they are."""
        return True

    def diagonal(self) -> np.ndarray:
        if self._diagonal is None:
            self._diagonal = self.matrix.diagonal().astype(np.float64)
        return self._diagonal

    def block(self, rows, columns=slice(None)) -> np.ndarray:
        if isinstance(rows, slice) or isinstance(columns, slice):
            return np.ascontiguousarray(self.matrix[rows, columns])
        return self.matrix[np.ix_(rows, columns)]

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.matrix, index

    def subset(self, index: np.ndarray) -> "MatrixGram":
        """The Gram matrix of the rows ``index``."""
        return MatrixGram(self.matrix[np.ix_(index, index)], self.positive_semidefinite)

    def narrow(self, index: np.ndarray) -> "MatrixGram":
        """The Gram matrix of the rows ``index``."""
        return self.subset(index)

    def sharpen(self) -> None:
        """Nothing to do: the matrix is what it is."""

    def single(self, dense_bytes: int) -> "MatrixGram":
        """Return this matrix: it is there already."""
        return self


# A dense product does this many multiplications in the time of one of a sparse product (measured).
_DENSE_ADVANTAGE = 32


def _better_dense(X, dense_bytes: int) -> bool:
    entries = X.shape[0] * X.shape[1]
    return entries <= _DENSE_ADVANTAGE * X.nnz and entries * X.dtype.itemsize <= dense_bytes


def _is_all(index) -> bool:
    return isinstance(index, slice) and index == slice(None)
