"""Kernel functions: what two rows have in common, for whole blocks of rows at a time.

=============  ============================================
linear         <x, y>
poly           (gamma <x, y> + coef0)^degree
rbf            exp(-gamma ||x - y||^2)
sigmoid        tanh(gamma <x, y> + coef0)
laplacian      exp(-gamma ||x - y||_1)
=============  ============================================

All but the laplacian are a matrix product followed by an elementwise finish, which runs tile by
tile while the tile is in the processor's cache.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from widemargin._base.jit import compiled
from widemargin._base.matmul import tiled_product
from widemargin._base.threads import for_each

KERNEL_NAMES = ("linear", "poly", "rbf", "sigmoid", "laplacian")

_STRIPE = 512
_DENSE_PORTION = 1 << 23
_MIRRORED = 512


@dataclass(frozen=True)
class KernelFunction:
    """One of the named kernels with its parameters.

    Parameters
    ----------
    name : {"linear", "poly", "rbf", "sigmoid", "laplacian"}
    gamma : float
        Scale of poly, rbf, sigmoid and laplacian.
    degree : int
        Degree of poly.
    coef0 : float
        Constant of poly and sigmoid.
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in KERNEL_NAMES:
            raise ValueError(f"kernel must be one of {KERNEL_NAMES}, got {self.name!r}.")

    @property
    def positive_semidefinite(self) -> bool:
        """Whether every Gram matrix of this kernel is positive semidefinite."""
        return self.name in ("linear", "rbf", "laplacian") or (
            self.name == "poly" and self.gamma >= 0 and self.coef0 >= 0
        )

    @property
    def translation_invariant(self) -> bool:
        return self.name in ("rbf", "laplacian")

    def squared_norms(self, X) -> np.ndarray | None:
        """||x||^2 of every row where the kernel needs it, else None."""
        return squared_norms(X) if self.name == "rbf" else None

    def diagonal(self, X) -> np.ndarray:
        """k(x, x) of every row of X, in float64."""
        if self.translation_invariant:
            return np.ones(X.shape[0])
        norms = squared_norms(X).astype(np.float64, copy=False)
        if self.name == "poly":
            return (self.gamma * norms + self.coef0) ** self.degree
        if self.name == "sigmoid":
            return np.tanh(self.gamma * norms + self.coef0)
        return norms

    def matrix(self, X, Y, X_norms=None, Y_norms=None, out=None) -> np.ndarray:
        """The block k(x, y) over the rows of X and Y, in their dtype.

        ``X_norms`` and ``Y_norms`` are what `squared_norms` gave for X and Y; they are computed
        here when missing. ``out`` is C-contiguous.
        """
        if out is None:
            out = np.empty((X.shape[0], Y.shape[0]), dtype=X.dtype)
        if out.size == 0:
            return out
        if self.name == "laplacian":
            return self._laplacian(X, Y, out)
        if self.name == "rbf":
            X_norms = squared_norms(X) if X_norms is None else X_norms
            Y_norms = squared_norms(Y) if Y_norms is None else Y_norms
        mirrored = X is Y and self.name == "rbf" and len(out) <= _MIRRORED
        finish = self.finisher(out, X_norms, Y_norms, mirrored)
        if sp.issparse(X):
            sparse_product(X, Y, out, finish)
        else:
            tiled_product(X, Y, out=out, finish=finish)
        if mirrored:
            _mirror(out)
        return out

    def finisher(self, out, X_norms, Y_norms, mirrored=False) -> Callable | None:
        """What turns the inner products in a tile of ``out`` into kernel values.

        Below the diagonal of a matrix that is to be ``mirrored`` the rbf kernel leaves them.
        """
        gamma, coef0, degree = self.gamma, self.coef0, self.degree
        finish = _finish_rbf_single if out.dtype == np.float32 else _finish_rbf_double

        def rbf(_, rows, columns):
            start, stop, _ = rows.indices(out.shape[0])
            first, last, _ = columns.indices(out.shape[1])
            scale = out.dtype.type(gamma)
            finish(out, start, stop, first, last, X_norms, Y_norms, scale, mirrored)

        def poly(_, rows, columns):
            tile = out[rows, columns]
            tile *= gamma
            tile += coef0
            np.power(tile, degree, out=tile)

        def sigmoid(_, rows, columns):
            tile = out[rows, columns]
            tile *= gamma
            tile += coef0
            np.tanh(tile, out=tile)

        return {"linear": None, "rbf": rbf, "poly": poly, "sigmoid": sigmoid}[self.name]

    def _laplacian(self, X, Y, out) -> np.ndarray:
        distances = city_block_distances(X, Y)

        def fill(start):
            rows = slice(start, start + _STRIPE)
            stripe = distances(rows)
            stripe *= -self.gamma
            np.exp(stripe, out=out[rows], casting="same_kind")

        for_each(fill, range(0, len(out), _STRIPE))
        return out


def squared_norms(X) -> np.ndarray:
    """||x||^2 of every row of a dense or CSR matrix, in X's dtype."""
    if sp.issparse(X):
        squares = np.append(X.data * X.data, X.dtype.type(0))
        sums = np.add.reduceat(squares, X.indptr[:-1]) if X.shape[0] else squares[:0]
        return np.where(np.diff(X.indptr) > 0, sums, X.dtype.type(0))
    return np.einsum("ij,ij->i", X, X)


def city_block_distances(X, Y) -> Callable[[slice], np.ndarray]:
    """A function from a slice of the rows of X to their distances ||x - y||_1 to Y, in float64."""
    if sp.issparse(X):
        from sklearn.metrics.pairwise import manhattan_distances

        X, Y = _with_short_indices(X), _with_short_indices(Y)
        return lambda rows: manhattan_distances(X[rows], Y)
    from scipy.spatial.distance import cdist

    return lambda rows: cdist(X[rows], Y, "cityblock")


def _with_short_indices(X):
    """X with 32-bit indices, which scikit-learn's distances between sparse rows need."""
    if X.indices.dtype == X.indptr.dtype == np.int32:
        return X
    parts = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    return type(X)(parts, shape=X.shape)


def sparse_product(X, Y, out, finish=None) -> np.ndarray:
    """X @ Y.T of two CSR matrices into a dense array, finished in stripes of columns.

    Rows of X are made dense in portions, so that each row of Y is multiplied with many at once.
    """
    height = max(1, min(X.shape[0], _DENSE_PORTION // max(1, X.shape[1])))

    def fill(stripe):
        columns = slice(stripe, min(stripe + _STRIPE, Y.shape[0]))
        out[rows, columns] = (Y[columns] @ dense).T
        if finish is not None:
            finish(None, rows, columns)

    for top in range(0, X.shape[0], height):
        rows = slice(top, min(top + height, X.shape[0]))
        dense = np.ascontiguousarray(X[rows].toarray().T)
        for_each(fill, range(0, Y.shape[0], _STRIPE))
    return out


# The exponential of the rbf kernel is written out (range reduction, Taylor polynomial, exponent
# bits) because a call to the C library does not vectorise. Adding 1.5 * 2^(mantissa bits) leaves
# the power k in the low bits of the sum; shifted into the exponent they are 2^k. Accurate to one
# unit in the last place; below the logarithm of the smallest normal number the answer is that
# number.


@compiled
def _finish_rbf_double(out, start, stop, first, last, row_norms, column_norms, gamma, mirrored):
    """Turn inner products into exp(-gamma d^2) within one tile of a C-contiguous ``out``."""
    power = np.empty(last - first)
    bits = power.view(np.int64)
    magic = 6755399441055744.0
    for i in range(start, stop):
        begin = max(first, min(i, last)) if mirrored else first
        row = out[i, begin:last]
        norms = column_norms[begin:last]
        norm = row_norms[i]
        for j in range(row.shape[0]):
            distance = norm + norms[j] - 2.0 * row[j]
            distance = distance if distance > 0.0 else 0.0
            x = -gamma * distance
            x = x if x > -708.0 else -708.0
            shifted = x * 1.4426950408889634 + magic
            power[j] = shifted
            k = shifted - magic
            r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
            p = 1.0 / 6227020800.0
            p = p * r + 1.0 / 479001600.0
            p = p * r + 1.0 / 39916800.0
            p = p * r + 1.0 / 3628800.0
            p = p * r + 1.0 / 362880.0
            p = p * r + 1.0 / 40320.0
            p = p * r + 1.0 / 5040.0
            p = p * r + 1.0 / 720.0
            p = p * r + 1.0 / 120.0
            p = p * r + 1.0 / 24.0
            p = p * r + 1.0 / 6.0
            p = p * r + 0.5
            p = p * r + 1.0
            row[j] = p * r + 1.0
        for j in range(row.shape[0]):
            bits[j] = (bits[j] + 1023) << 52
        for j in range(row.shape[0]):
            row[j] *= power[j]


@compiled
def _finish_rbf_single(out, start, stop, first, last, row_norms, column_norms, gamma, mirrored):
    """`_finish_rbf_double` in float32."""
    power = np.empty(last - first, np.float32)
    bits = power.view(np.int32)
    magic = np.float32(12582912.0)
    two, one, half, zero = np.float32(2), np.float32(1), np.float32(0.5), np.float32(0)
    lowest, inverse = np.float32(-87.0), np.float32(1.44269504)
    high, low = np.float32(0.693359375), np.float32(-2.12194440e-4)
    c3, c4, c5 = np.float32(1 / 6), np.float32(1 / 24), np.float32(1 / 120)
    c6, c7 = np.float32(1 / 720), np.float32(1 / 5040)
    exponent, bias = np.int32(23), np.int32(127)
    for i in range(start, stop):
        begin = max(first, min(i, last)) if mirrored else first
        row = out[i, begin:last]
        norms = column_norms[begin:last]
        norm = row_norms[i]
        for j in range(row.shape[0]):
            distance = norm + norms[j] - two * row[j]
            distance = distance if distance > zero else zero
            x = -gamma * distance
            x = x if x > lowest else lowest
            shifted = x * inverse + magic
            power[j] = shifted
            k = shifted - magic
            r = (x - k * high) - k * low
            p = c7 * r + c6
            p = p * r + c5
            p = p * r + c4
            p = p * r + c3
            p = p * r + half
            p = p * r + one
            row[j] = p * r + one
        for j in range(row.shape[0]):
            bits[j] = (bits[j] + bias) << exponent
        for j in range(row.shape[0]):
            row[j] *= power[j]


@compiled
def _mirror(out):
    """Copy what is above the diagonal to below it."""
    for i in range(out.shape[0]):
        for j in range(i):
            out[i, j] = out[j, i]
