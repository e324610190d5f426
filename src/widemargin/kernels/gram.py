"""Gram matrices: k(x_i, x_j) over the training rows, served in blocks.

Solvers see the `Gram` protocol and nothing else: they ask for the diagonal and for blocks of rows
against columns, never for the data. A block is read-only by contract: it may be a view of something
shared.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from widemargin.kernels.functions import KernelFunction


class Gram(Protocol):
    """What a solver needs to know of a kernel matrix."""

    size: int
    """Number of rows."""

    positive_semidefinite: bool
    """Whether this is known; an indefinite kernel has no duality gap."""

    def diagonal(self) -> np.ndarray:
        """k(x_i, x_i) of all rows, float64."""

    def block(self, rows, columns=slice(None)) -> np.ndarray:
        """k(x_i, x_j) for i in ``rows`` and j in ``columns`` (index arrays or slices)."""

    def subset(self, index: np.ndarray) -> "Gram":
        """The Gram matrix of the rows ``index``."""


class KernelGram:
    """The Gram matrix of a named kernel over dense or CSR rows.

    Parameters
    ----------
    function : KernelFunction
    X : ndarray or CSR matrix of shape (n, d), float32 or float64
        Dense rows are moved to their mean where the kernel does not notice (rbf, laplacian):
        squared distances then lose no digits to a common offset.
    """

    def __init__(self, function: KernelFunction, X):
        self.function = function
        self.origin = None
        if function.name == "rbf" and not sp.issparse(X) and len(X):
            self.origin = X.mean(axis=0)
            X = X - self.origin
        self._set_rows(X)

    def _set_rows(self, X, norms=None) -> None:
        self.X = X if sp.issparse(X) else np.ascontiguousarray(X)
        self.norms = self.function.squared_norms(self.X) if norms is None else norms
        self.size = X.shape[0]

    @property
    def positive_semidefinite(self) -> bool:
        return self.function.positive_semidefinite

    def diagonal(self) -> np.ndarray:
        return self.function.diagonal(self.X)

    def block(self, rows, columns=slice(None)) -> np.ndarray:
        return self.function.matrix(
            self.X[rows],
            self._take(columns),
            None if self.norms is None else self.norms[rows],
            None if self.norms is None else self.norms[columns],
        )

    def against(self, X) -> np.ndarray:
        """k(x, x_j) of new rows against these rows."""
        if self.origin is not None:
            X = X - self.origin
        return self.function.matrix(X, self.X, None, self.norms)

    def subset(self, index: np.ndarray) -> "KernelGram":
        part = object.__new__(KernelGram)
        part.function, part.origin = self.function, self.origin
        part._set_rows(self.X[index], None if self.norms is None else self.norms[index])
        return part

    def _take(self, columns):
        everything = isinstance(columns, slice) and columns == slice(None)
        return self.X if everything else self.X[columns]


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
        self.size = len(matrix)
        self.positive_semidefinite = positive_semidefinite

    def diagonal(self) -> np.ndarray:
        return self.matrix.diagonal().astype(np.float64)

    def block(self, rows, columns=slice(None)) -> np.ndarray:
        if isinstance(rows, slice) or isinstance(columns, slice):
            return np.ascontiguousarray(self.matrix[rows, columns])
        return self.matrix[np.ix_(rows, columns)]

    def subset(self, index: np.ndarray) -> "MatrixGram":
        return MatrixGram(self.matrix[np.ix_(index, index)], self.positive_semidefinite)


class CallableGram:
    """The Gram matrix of a user's function ``kernel(X, Y)`` over rows of any kind it takes."""

    positive_semidefinite = False

    def __init__(self, function: Callable[[Any, Any], np.ndarray], X):
        self.function = function
        self.X = X
        self.size = X.shape[0]

    def diagonal(self) -> np.ndarray:
        rows = (self.X[i : i + 1] for i in range(self.size))
        return np.array([float(self._call(row, row)[0, 0]) for row in rows])

    def block(self, rows, columns=slice(None)) -> np.ndarray:
        return self._call(self.X[rows], self.X[columns])

    def against(self, X) -> np.ndarray:
        return self._call(X, self.X)

    def subset(self, index: np.ndarray) -> "CallableGram":
        return CallableGram(self.function, self.X[index])

    def _call(self, X, Y) -> np.ndarray:
        block = self.function(X, Y)
        block = block.toarray() if sp.issparse(block) else np.asarray(block)
        if block.shape != (X.shape[0], Y.shape[0]):
            raise ValueError(
                f"kernel returned an array of shape {block.shape} for {X.shape[0]} and "
                f"{Y.shape[0]} rows; it must return one value for every pair of rows."
            )
        return np.ascontiguousarray(block, dtype=np.float64)
