"""Gram matrices: k(x_i, x_j) of training samples, in blocks and in rows.

Solvers use the `Gram` protocol and nothing else. A block is exact (float64): small problems are
solved on it. Large problems use rows. Rows may be float32, and come as an array together with the
positions of the requested rows in it, so that nothing has to be copied out of a cache. Arrays that
are returned may be shared and must not be written to.
"""

from collections.abc import Callable, Collection, Iterator
from copy import copy
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from widemargin._base.options import kernel_options as options
from widemargin._base.threads import for_each
from widemargin.kernels.functions import KernelFunction, PlusOne, squared_norms


class Gram:
    """Base class of Gram matrices: what a solver and a cache need of them.

    A subclass implements `diagonal`, `block` and `subset`; also `rows` if it has them in memory,
    and `fits_float32` and `as_float32` if rows in float32 are faster. A `RowCache` over it needs
    `dtype`, and writes rows to an argument ``out`` of `block`.
    """

    size: int
    """Number of samples."""
    positive_semidefinite: bool
    """Whether this is known; an indefinite kernel has no duality gap."""
    dtype: Any
    """Type of the values that `block` computes, and of the rows in a cache."""
    float64_rows: bool = False
    """Whether `rows` returns float64 values from the start."""
    dense: Any = None
    """The whole as a `DenseMatrix`, if it is part of a matrix in memory."""

    @property
    def max_rows(self) -> int:
        """Number of rows that can be requested at once."""
        return self.size

    def diagonal(self) -> np.ndarray:
        """Return k(x_i, x_i) of all samples, float64."""
        raise NotImplementedError

    def block(self, rows: Any, columns: Any = slice(None)) -> np.ndarray:
        """Return k(x_i, x_j), float64, for index arrays or slices of i and j."""
        raise NotImplementedError

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return an array and the positions in it of the rows ``index`` (distinct)."""
        return self.block(index), np.arange(len(index))

    def subset(self, index: np.ndarray) -> "Gram":
        """Return the Gram matrix of the samples ``index``, which will be used from now on."""
        raise NotImplementedError

    def features(self) -> np.ndarray | None:
        """Return R with K = R R' where it is known: the features of a linear kernel."""
        return None

    def use_float64(self) -> None:
        """Return rows in float64 from now on, if they are not."""

    def is_finite(self) -> bool:
        """Return whether the values of the kernel are finite."""
        return bool(np.isfinite(self.diagonal()).all())

    def fits_float32(self) -> bool:
        """Return whether float32 can hold all values, if `as_float32` rounds them."""
        return True

    def as_float32(self, dense_bytes: int) -> "Gram":
        """Return the same in float32; sparse samples become dense if that is faster and fits."""
        return self


class KernelGram(Gram):
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
        self.function = function
        self.positive_semidefinite = function.positive_semidefinite
        self.origin: Any = None
        center = center or (function.translation_invariant and function.uses_norms)
        if center and not sp.issparse(X) and len(X):
            self.origin = X.mean(axis=0)
            X = X - self.origin
        self._set_samples(X)

    def _set_samples(self, X: Any, norms: np.ndarray | None = None) -> Self:
        """Set samples from which the origin has been subtracted."""
        self.X = X if sp.issparse(X) else np.ascontiguousarray(X)
        self.norms = self.function.squared_norms(self.X) if norms is None else norms
        self.size, self.dtype = X.shape[0], X.dtype
        return self

    def is_finite(self) -> bool:
        norms = self.diagonal() if self.norms is None else self.norms
        return bool(np.isfinite(norms).all())

    def fits_float32(self) -> bool:
        return fits_float32(np.abs(self.diagonal())) and fits_float32(self._squared_norms())

    def diagonal(self) -> np.ndarray:
        return self.function.diagonal(self.X)

    def block(self, rows: Any, columns: Any = slice(None), out: Any = None) -> np.ndarray:
        return self.function.matrix(
            self.X if is_everything(rows) else self.X[rows],
            self.X if is_everything(columns) else self.X[columns],
            None if self.norms is None else self.norms[rows],
            None if self.norms is None else self.norms[columns],
            out,
        )

    def subset(self, index: np.ndarray) -> "KernelGram":
        norms = None if self.norms is None else self.norms[index]
        return copy(self)._set_samples(self.X[index], norms)

    def features(self) -> np.ndarray | None:
        if self.function.name != "linear" or isinstance(self.function, PlusOne):
            return None
        X: Any = self.X
        return X.toarray() if sp.issparse(X) else X

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
        X: Any = self.X.astype(np.float32)
        entries = X.shape[0] * X.shape[1]
        if sp.issparse(X) and entries <= min(options.dense_advantage * X.nnz, dense_bytes // 4):
            X = X.toarray()
        return copy(self)._set_samples(X)


class MatrixGram(Gram):
    """A Gram matrix that is held in memory.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
    positive_semidefinite : bool, default=True
        Whether the caller knows that it is.
    """

    def __init__(self, matrix: np.ndarray, positive_semidefinite: bool = True):
        self.matrix = matrix
        self.size = len(matrix)
        self.positive_semidefinite = positive_semidefinite
        self._diagonal: np.ndarray | None = None

    def is_finite(self) -> bool:
        return bool(np.isfinite(self.matrix).all())

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
        return MatrixGram(self.matrix[np.ix_(index, index)], self.positive_semidefinite)


def gram_matrices(
    gram_at: Callable[[float], Any], gammas: Collection[float], cache_bytes: float
) -> Iterator[MatrixGram | None]:
    """Generate the whole Gram matrix for each gamma, valid until the next one is requested.

    Kernels that differ in gamma are functions of the same inner products or distances between
    samples. These are computed once if there is enough memory to keep them.

    Parameters
    ----------
    gram_at : callable
        ``gram_at(gamma)`` is a `KernelGram`, or a `MatrixGram`, which is passed on.
    gammas : collection of float
    cache_bytes : float
        Memory for matrices. If two do not fit, what they have in common is computed every time.

    Yields
    ------
    MatrixGram or None
        None if not even one matrix fits.
    """
    common = matrix = None
    for gram in map(gram_at, gammas):
        n_matrices = cache_bytes // (8 * gram.size**2)
        if isinstance(gram, MatrixGram):
            yield gram
        elif n_matrices < 1:
            yield None
        elif n_matrices < 2 or len(gammas) == 1:
            matrix = None  # free the previous one first
            matrix = gram.block(slice(None))
            yield MatrixGram(matrix, gram.positive_semidefinite)
        else:
            if common is None or matrix is None:
                common = np.empty((gram.size, gram.size), dtype=gram.dtype)
                gram.function.fill(gram.X, gram.X, common)
                matrix = np.empty_like(common)
            _finish(gram, common, matrix)
            yield MatrixGram(matrix, gram.positive_semidefinite)


def _finish(gram: KernelGram, common: np.ndarray, out: np.ndarray) -> None:
    """Compute the Gram matrix from inner products or distances."""

    def finish(start: int) -> None:
        rows = slice(start, start + options.finish_rows)
        out[rows] = common[rows]
        gram.function.finish(out, rows, slice(None), gram.norms, gram.norms)

    for_each(finish, range(0, len(out), options.finish_rows))


def fits_float32(sizes: np.ndarray) -> bool:
    """Return whether non-negative values are small enough for sums of them in float32."""
    return bool(sizes.max(initial=0.0) < options.float32_range * float(np.finfo(np.float32).max))


def is_everything(index: Any) -> bool:
    """Return whether an index array or slice is ``slice(None)``."""
    return isinstance(index, slice) and index == slice(None)
