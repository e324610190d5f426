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

from widemargin._base import extended
from widemargin._base.extended import Pair
from widemargin._base.numeric import EPSILON
from widemargin._base.options import kernel_options as options
from widemargin._base.threads import for_each
from widemargin.kernels.functions import (
    DirectRBF,
    KernelFunction,
    Linear,
    PlusOne,
    squared_norms,
)


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
    offset: Any = None
    """Offset of the features that the values are without, see `KernelGram.without_offset`."""

    @property
    def max_rows(self) -> int:
        """Number of rows that can be requested at once."""
        return self.size

    def rounding(self) -> float:
        """Return a bound of the errors of k(x, y), relative to sqrt(k(x, x) k(y, y))."""
        return EPSILON

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

    def exact_sums(self, dual: np.ndarray) -> tuple[Pair, np.ndarray] | None:
        """Return K dual with twice the digits of float64, and bounds of its errors.

        None if that takes too long. K includes the `offset`.
        """
        support = np.flatnonzero(dual)
        if self._exact_work(len(support)) > options.exact_sum_work:
            return None
        height = max(
            1, options.exact_entries // max(1, self._exact_work(len(support)) // self.size)
        )
        slices = [slice(start, start + height) for start in range(0, self.size, height)]
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            sums = [self._exact_rows(rows, support, dual[support]) for rows in slices]
        total, rest, errors = (np.concatenate(arrays) for arrays in zip(*sums, strict=True))
        return ((total, rest), errors) if np.isfinite(total + rest + errors).all() else None

    def _exact_work(self, n_support: int) -> int:
        """Return the number of products in twice the digits that `exact_sums` needs."""
        return self.size * max(1, n_support)

    def _exact_rows(self, rows: slice, support: np.ndarray, dual: np.ndarray) -> tuple:
        """Return sums for some samples, their rounding errors, and bounds of what remains."""
        values, roots = self.block(rows, support), np.sqrt(np.abs(self.diagonal()))
        sums = extended.weighted_sum(extended.exact(values), extended.exact(dual))
        return *sums, self.rounding() * float(np.abs(dual) @ roots[support]) * roots[rows]

    def without_offset(self) -> "Gram":
        """Return a Gram matrix that differs in what the intercept makes up for."""
        return self

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
            centered = X - self.origin
            self.function = function.accurate(centered)
            if self.function is not function and function.translation_invariant:
                self.origin, centered = None, X  # differences of features lose no digits
            X = centered
        else:
            self.function = function.accurate(X)
        self._set_samples(X)

    def _set_samples(self, X: Any, norms: np.ndarray | None = None) -> Self:
        """Set samples from which the origin has been subtracted."""
        self.X = X if sp.issparse(X) else np.ascontiguousarray(X)
        self.norms = self.function.squared_norms(self.X) if norms is None else norms
        self.size, self.dtype = X.shape[0], X.dtype
        return self

    def without_offset(self) -> "KernelGram":
        """Return the Gram matrix of a linear kernel without the offset of the features.

        This changes f by a constant for dual variables that sum to 0, and permits to compute with
        more digits. Features are changed where their offset takes digits, and the difference from
        it is exact.
        """
        if not isinstance(self.function, Linear) or sp.issparse(self.X) or not self.size:
            return self
        mean, width = self.X.mean(axis=0), np.ptp(self.X, axis=0)
        near = width < options.offset_width * np.abs(mean)
        if not near.any():
            return self
        gram = copy(self)
        gram.offset = np.where(near, mean, 0.0)
        return gram._set_samples(self.X - gram.offset)

    def is_finite(self) -> bool:
        norms = self.diagonal() if self.norms is None else self.norms
        return bool(np.isfinite(norms).all())

    def fits_float32(self) -> bool:
        if isinstance(self.function, DirectRBF):
            return False  # float32 hides the distances that matter
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

    def rounding(self) -> float:
        return self.function.rounding(self._squared_norms())

    def exact_sums(self, dual: np.ndarray) -> tuple[Pair, np.ndarray] | None:
        linear = isinstance(self.function, Linear) and self.size * self.X.shape[1]
        if not 0 < linear <= options.exact_sum_work:
            return None if linear else super().exact_sums(dual)
        X = self._dense(slice(None))
        offset = np.zeros(X.shape[1]) if self.offset is None else self.offset
        samples = extended.two_sum(X, offset)
        support = np.flatnonzero(dual)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            columns = samples[0][support].T, samples[1][support].T
            weights = extended.matrix_product(columns, extended.exact(dual[support]))
            total, rest = extended.matrix_product(samples, weights)
            sizes = np.abs(samples[0]) @ (np.abs(dual[support]) @ np.abs(samples[0][support]))
            errors = extended.rounding(len(support) + X.shape[1]) * sizes
        return ((total, rest), errors) if np.isfinite(total + rest + errors).all() else None

    def _exact_work(self, n_support: int) -> int:
        digits = not self.function.translation_invariant  # products of features need them, too
        return super()._exact_work(n_support) * (self.X.shape[1] + 1 if digits else 1)

    def _exact_rows(self, rows: slice, support: np.ndarray, dual: np.ndarray) -> tuple:
        values, errors = self.function.exact_values(self._dense(rows), self._dense(support))
        sums = extended.weighted_sum(values, extended.exact(dual))
        sizes = errors * np.abs(values[0]) * np.abs(dual)
        return *sums, sizes.sum(axis=1)

    def _dense(self, index: Any) -> np.ndarray:
        X: Any = self.X[index]
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
    error : float, default=0.0
        Bound of the rounding errors of its values, see `Gram.rounding`.
    """

    def __init__(self, matrix: np.ndarray, positive_semidefinite: bool = True, error: float = 0.0):
        self.matrix = matrix
        self.error = error
        self.size = len(matrix)
        self.positive_semidefinite = positive_semidefinite
        self.float64_rows = matrix.dtype == np.float64
        self._diagonal: np.ndarray | None = None

    def is_finite(self) -> bool:
        return bool(np.isfinite(self.matrix).all())

    def rounding(self) -> float:
        return self.error

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
        return MatrixGram(self.matrix[np.ix_(index, index)], self.positive_semidefinite, self.error)


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
        elif n_matrices < 2 or len(gammas) == 1 or isinstance(gram.function, DirectRBF):
            matrix = None  # free the previous one first
            matrix = gram.block(slice(None))
            yield MatrixGram(matrix, gram.positive_semidefinite, gram.rounding())
        else:
            if common is None or matrix is None:
                common = np.empty((gram.size, gram.size), dtype=gram.dtype)
                gram.function.fill(gram.X, gram.X, common)
                matrix = np.empty_like(common)
            _finish(gram, common, matrix)
            yield MatrixGram(matrix, gram.positive_semidefinite, gram.rounding())


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
