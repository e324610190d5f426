"""Kernel functions, evaluated for whole blocks of samples at a time.

=============  ============================================
linear         <x, y>
poly           (gamma <x, y> + coef0)^degree
rbf            exp(-gamma ||x - y||^2)
sigmoid        tanh(gamma <x, y> + coef0)
laplacian      exp(-gamma ||x - y||_1)
=============  ============================================

A kernel is one class: a subclass of `KernelFunction` with a name, decorated with `register`. All
but the Laplacian are a matrix product followed by an elementwise function, which is applied tile
by tile while the tile is in the cache of the processor.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base import extended
from widemargin._base.extended import Pair
from widemargin._base.jit import compiled, uncompiled
from widemargin._base.matmul import tiled_product
from widemargin._base.numeric import EPSILON
from widemargin._base.options import kernel_options as options
from widemargin._base.threads import for_each
from widemargin._base.validation import canonical_csr

KERNELS: dict[str, "type[KernelFunction]"] = {}
KERNEL_NAMES = KERNELS.keys()
"""The names of the registered kernels, as a set that follows registrations."""

Finish = Callable[[np.ndarray, slice, slice], None]


def register(kernel: "type[KernelFunction]") -> "type[KernelFunction]":
    """Add a kernel to those that estimators accept by name."""
    KERNELS[kernel.name] = kernel
    return kernel


def kernel_function(
    name: str, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0
) -> "KernelFunction":
    """Return a registered kernel with its parameters."""
    if name not in KERNELS:
        raise ValueError(f"kernel must be one of {tuple(KERNELS)}, got {name!r}.")
    return KERNELS[name](gamma, degree, coef0)


class KernelFunction:
    """Base class of kernels: functions of inner products.

    A subclass has a `name`, sets those of the attributes below that differ, and implements
    `finish`; also `diagonal` if it uses norms and is not translation invariant, and `fill` if it is
    not a function of inner products. Samples are arrays or CSR matrices, in float32 or float64.

    Parameters
    ----------
    gamma : float, default=1.0
        Kernel coefficient.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Independent term of the polynomial and sigmoid kernels.
    """

    name: str
    """The value of an estimator's ``kernel`` parameter."""
    uses_gamma = True
    uses_norms = False
    """Whether `finish` needs the squared norms of the samples."""
    translation_invariant = False
    """Whether the kernel is a function of x - y that is 1 at 0."""
    finishes_upper = False
    """Whether `finish` can leave out the entries below the diagonal of a symmetric matrix."""

    def __init__(self, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0):
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    @property
    def positive_semidefinite(self) -> bool:
        """Whether every Gram matrix of this kernel is positive semidefinite."""
        return False

    def finish(self, out, rows, columns, X_norms, Y_norms, upper=False):
        """Turn the inner products in the tile ``out[rows, columns]`` into kernel values.

        ``out`` is C-contiguous. ``X_norms`` and ``Y_norms`` are the squared norms of all samples,
        or None. With ``upper``, entries below the diagonal may be left as they are.
        """
        raise NotImplementedError

    def squared_norms(self, X: Any) -> np.ndarray | None:
        """Return ||x||^2 of each sample if the kernel needs it, else None."""
        return squared_norms(X) if self.uses_norms else None

    def accurate(self, X: Any) -> "KernelFunction":
        """Return the same kernel, computed such that rounding does not hide small distances."""
        return self

    def rounding(self, norms: np.ndarray) -> float:
        """Return a bound of the rounding errors of k(x, y), relative to sqrt(k(x, x) k(y, y)).

        ``norms`` are the squared norms of all samples.
        """
        return EPSILON

    def exact_values(self, X: np.ndarray, Y: np.ndarray) -> tuple[Pair, np.ndarray | float]:
        """Return the kernel values with more digits, and bounds of their relative errors."""
        return extended.exact(self.matrix(X, Y)), self.rounding(squared_norms(X))

    def diagonal(self, X: Any) -> np.ndarray:
        """Return k(x, x) of each sample, in float64."""
        if self.translation_invariant:
            return np.ones(X.shape[0])
        values = squared_norms(X).astype(np.float64, copy=False)[:, np.newaxis]
        self.finish(values, slice(None), slice(None), None, None)
        return values[:, 0]

    def matrix(
        self, X: Any, Y: Any, X_norms: Any = None, Y_norms: Any = None, out: Any = None
    ) -> np.ndarray:
        """Return the kernel values between the samples of X and Y, in their dtype.

        ``X_norms`` and ``Y_norms`` are what `squared_norms` returned for X and Y; they are computed
        if they are missing. ``out`` is C-contiguous.
        """
        if out is None:
            out = np.empty((X.shape[0], Y.shape[0]), dtype=X.dtype)
        if out.size == 0:
            return out
        if self.uses_norms:
            X_norms = squared_norms(X) if X_norms is None else X_norms
            Y_norms = squared_norms(Y) if Y_norms is None else Y_norms
        upper = X is Y and self.finishes_upper and len(out) <= options.largest_mirrored

        def finish(_: Any, rows: slice, columns: slice) -> None:
            self.finish(out, rows, columns, X_norms, Y_norms, upper)

        self.fill(X, Y, out, finish)
        if upper:
            _mirror(out)
        return out

    def fill(self, X: Any, Y: Any, out: np.ndarray, finish: Finish | None = None) -> None:
        """Write what does not depend on gamma, the inner products of the samples, to ``out``.

        ``finish(tile, rows, columns)`` is called for each tile when it is complete.
        """
        if sp.issparse(X):
            sparse_product(X, Y, out, finish)
        else:
            tiled_product(X, Y, out=out, finish=finish)


@register
class Linear(KernelFunction):
    """The inner product."""

    name = "linear"
    uses_gamma = False
    positive_semidefinite = True

    def finish(self, out, rows, columns, X_norms, Y_norms, upper=False):
        """Leave the inner products as they are."""

    def fill(self, X, Y, out, finish=None):
        super().fill(X, Y, out)

    def exact_values(self, X, Y):
        return inner_products(X, Y), extended.rounding(X.shape[1])


@register
class Polynomial(KernelFunction):
    """A power of the inner product."""

    name = "poly"

    @property
    def positive_semidefinite(self) -> bool:
        return self.gamma >= 0 and self.coef0 >= 0

    def finish(self, out, rows, columns, X_norms, Y_norms, upper=False):
        tile = out[rows, columns]
        tile *= self.gamma
        tile += self.coef0
        with np.errstate(over="ignore"):  # values that are not finite are refused or predicted with
            np.power(tile, self.degree, out=tile)

    def rounding(self, norms):
        return max(1, self.degree) * EPSILON

    def exact_values(self, X, Y):
        product, rest = inner_products(X, Y)
        base = extended.multiply((product, rest), extended.exact(np.full_like(product, self.gamma)))
        base = extended.add(base, extended.exact(np.full_like(product, self.coef0)))
        return extended.power(base, self.degree), self.degree * extended.rounding(X.shape[1])


@register
class RBF(KernelFunction):
    """The Gaussian of the distance."""

    name = "rbf"
    uses_norms = translation_invariant = finishes_upper = True
    positive_semidefinite = True

    def finish(self, out, rows, columns, X_norms, Y_norms, upper=False):
        finish = _finish_rbf_float32 if out.dtype == np.float32 else _finish_rbf_float64
        start, stop, _ = rows.indices(out.shape[0])
        first, last, _ = columns.indices(out.shape[1])
        gamma = out.dtype.type(self.gamma)
        finish(out, start, stop, first, last, X_norms, Y_norms, gamma, upper)

    def accurate(self, X):
        exponent = self.gamma * float(squared_norms(X).max(initial=0.0))
        return DirectRBF(self.gamma) if options.far_exponent < exponent < np.inf else self

    def rounding(self, norms):
        return (1.0 + 4.0 * self.gamma * float(norms.max(initial=0.0))) * EPSILON

    def exact_values(self, X, Y):
        exponents = self.gamma * squared_distances(X)(slice(None), Y)
        # The samples may have been rounded when their mean was subtracted.
        sizes = np.sqrt(squared_norms(X))[:, np.newaxis] + np.sqrt(squared_norms(Y))
        moved = 4.0 * np.sqrt(self.gamma * exponents) * sizes
        return _exponentials(exponents, X.shape[1], moved)


class DirectRBF(RBF):
    """The same from the differences of the features, for samples that are far from each other.

    Not registered: `RBF.accurate` returns it. Distances are a hundred times slower so, and as
    accurate as the samples: that of equal samples is 0.
    """

    uses_norms = finishes_upper = False

    def finish(self, out, rows, columns, X_norms, Y_norms, upper=False):
        """Turn squared distances into kernel values."""
        tile = out[rows, columns]
        tile *= -self.gamma
        np.exp(tile, out=tile)

    def fill(self, X, Y, out, finish=None):
        """Write the squared distances between samples to ``out``."""
        distances = squared_distances(X)

        def fill(start: int) -> None:
            rows = slice(start, start + options.stripe)
            out[rows] = distances(rows, Y)
            if finish is not None:
                finish(out[rows], rows, slice(0, out.shape[1]))

        for_each(fill, range(0, len(out), options.stripe))

    def rounding(self, norms):
        return EPSILON

    def exact_values(self, X, Y):
        return _exponentials(self.gamma * squared_distances(X)(slice(None), Y), X.shape[1])


@register
class Sigmoid(KernelFunction):
    """The hyperbolic tangent of the inner product, which may be indefinite."""

    name = "sigmoid"

    def finish(self, out, rows, columns, X_norms, Y_norms, upper=False):
        tile = out[rows, columns]
        tile *= self.gamma
        tile += self.coef0
        np.tanh(tile, out=tile)


@register
class Laplacian(KernelFunction):
    """The exponential of the city-block distance."""

    name = "laplacian"
    translation_invariant = True
    positive_semidefinite = True

    def finish(self, out, rows, columns, X_norms, Y_norms, upper=False):
        """Turn distances into kernel values."""
        tile = out[rows, columns]
        tile *= -self.gamma
        np.exp(tile, out=tile)

    def fill(self, X, Y, out, finish=None):
        """Write the distances between samples to ``out``."""
        distances = city_block_distances(X, Y)

        def fill(start: int) -> None:
            rows = slice(start, start + options.stripe)
            stripe = distances(rows)
            if finish is not None:  # in float64, whatever the dtype of the result is
                self.finish(stripe, slice(None), slice(None), None, None)
            out[rows] = stripe

        for_each(fill, range(0, len(out), options.stripe))

    def exact_values(self, X, Y):
        return _exponentials(self.gamma * city_block_distances(X, Y)(slice(None)), X.shape[1])


class PlusOne(KernelFunction):
    """Another kernel plus one: the kernel of its features and a constant one."""

    def __init__(self, function: KernelFunction):
        super().__init__(function.gamma, function.degree, function.coef0)
        self.function = function
        self.name = function.name
        self.uses_norms = function.uses_norms
        self.translation_invariant = function.translation_invariant

    @property
    def positive_semidefinite(self) -> bool:
        return self.function.positive_semidefinite

    def diagonal(self, X: Any) -> np.ndarray:
        return self.function.diagonal(X) + 1.0

    def matrix(self, X, Y, X_norms=None, Y_norms=None, out=None):
        out = self.function.matrix(X, Y, X_norms, Y_norms, out)
        out += 1.0
        return out

    def accurate(self, X):
        function = self.function.accurate(X)
        return self if function is self.function else PlusOne(function)

    def rounding(self, norms):
        return self.function.rounding(norms)

    def exact_values(self, X, Y):
        values, errors = self.function.exact_values(X, Y)
        return extended.add(values, extended.exact(np.ones_like(values[0]))), errors


def squared_norms(X: Any) -> np.ndarray:
    """Return ||x||^2 of each row of a dense or CSR matrix, in the dtype of X."""
    if sp.issparse(X):
        squares = np.append(X.data * X.data, X.dtype.type(0))
        sums = np.add.reduceat(squares, X.indptr[:-1]) if X.shape[0] else squares[:0]
        return np.where(np.diff(X.indptr) > 0, sums, X.dtype.type(0))
    return np.einsum("ij,ij->i", X, X)


def inner_products(X: np.ndarray, Y: np.ndarray) -> Pair:
    """Return <x, y> of all pairs of samples with twice the digits."""
    return extended.weighted_sum(extended.exact(X[:, np.newaxis]), extended.exact(Y))


def squared_distances(X: Any) -> Callable[[slice, Any], np.ndarray]:
    """Return a function from a slice of X, and Y, to ||x - y||^2, from differences of features."""
    from scipy.spatial.distance import cdist

    if not sp.issparse(X):
        return lambda rows, Y: cdist(X[rows], Y, "sqeuclidean")

    def distances(rows: slice, Y: Any) -> np.ndarray:
        block, Y = canonical_csr(X[rows]), canonical_csr(Y)
        return _sparse_distances(
            block.data, block.indices, block.indptr, Y.data, Y.indices, Y.indptr
        )

    return distances


def _exponentials(
    exponents: np.ndarray, n_features: int, moved: np.ndarray | float = 0.0
) -> tuple[Pair, np.ndarray]:
    """Return exp(-exponent), and bounds of the relative errors by rounding."""
    errors = (2.0 + (n_features + 2.0) * exponents + moved) * EPSILON
    return extended.exact(np.exp(-exponents)), errors


def city_block_distances(X: Any, Y: Any) -> Callable[[slice], np.ndarray]:
    """Return a function from a slice of the samples of X to their distances ||x - y||_1 to Y."""
    if sp.issparse(X):
        from sklearn.metrics.pairwise import manhattan_distances

        X, Y = canonical_csr(X), canonical_csr(Y)  # indices of 32 bits
        return lambda rows: manhattan_distances(X[rows], Y)
    from scipy.spatial.distance import cdist

    return lambda rows: cdist(X[rows], Y, "cityblock")


def sparse_product(X: Any, Y: Any, out: np.ndarray, finish: Finish | None = None) -> np.ndarray:
    """Write X @ Y.T of two CSR matrices to a dense array, finished in stripes of columns.

    Rows of X are made dense in portions, so that each row of Y is multiplied with many at once.
    """
    height = max(1, min(X.shape[0], options.dense_portion // max(1, X.shape[1])))

    def fill(start: int) -> None:
        columns = slice(start, min(start + options.stripe, Y.shape[0]))
        out[rows, columns] = (Y[columns] @ dense).T
        if finish is not None:
            finish(out[rows, columns], rows, columns)

    for top in range(0, X.shape[0], height):
        rows = slice(top, min(top + height, X.shape[0]))
        dense = np.ascontiguousarray(X[rows].toarray().T)
        for_each(fill, range(0, Y.shape[0], options.stripe))
    return out


# The exponential of the rbf kernel is written out (range reduction, Taylor polynomial, exponent
# bits) because a call to the C library does not vectorize. Adding 1.5 * 2^(mantissa bits) leaves
# the power k in the low bits of the sum; shifted into the exponent they are 2^k. Accurate to one
# unit in the last place; below the logarithm of the smallest normal number the answer is that
# number.


def _tile_work(out, start, stop, first, last, *rest):
    return 0.06 * (stop - start) * (last - first)


@compiled(work=_tile_work)
def _finish_rbf_float64(out, start, stop, first, last, row_norms, column_norms, gamma, upper):
    """Turn inner products into exp(-gamma d^2) within one tile of a C-contiguous ``out``."""
    power = np.empty(last - first)
    bits = power.view(np.int64)
    magic = 6755399441055744.0
    for i in range(start, stop):
        begin = max(first, min(i, last)) if upper else first
        row, norm, norms = out[i, begin:last], row_norms[i], column_norms[begin:last]
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


@compiled(work=_tile_work)
def _finish_rbf_float32(out, start, stop, first, last, row_norms, column_norms, gamma, upper):
    """`_finish_rbf_float64` in float32."""
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
        begin = max(first, min(i, last)) if upper else first
        row, norm, norms = out[i, begin:last], row_norms[i], column_norms[begin:last]
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
def rbf_row(features, gamma, i, out):
    """Write the rbf kernel values of sample i against all to ``out[i]``.

    ``features`` has a row for each feature, so that the loops over samples vectorize. Differences
    of features, unlike norms, lose no digits: the value of sample i itself is 1.
    """
    d, row = features.shape[0], out[i]
    row[:] = 0.0
    even = d - d % 4
    for f in range(0, even, 4):
        w, x, y, z = features[f], features[f + 1], features[f + 2], features[f + 3]
        a, b, c, e = w[i], x[i], y[i], z[i]
        for j in range(row.shape[0]):
            p, q, r, s = w[j] - a, x[j] - b, y[j] - c, z[j] - e
            row[j] -= 0.5 * ((p * p + q * q) + (r * r + s * s))
    for f in range(even, d):
        w, a = features[f], features[f, i]
        for j in range(row.shape[0]):
            row[j] -= 0.5 * ((w[j] - a) * (w[j] - a))
    zeros = np.zeros(row.shape[0])
    _finish_rbf_float64(out, i, i + 1, 0, row.shape[0], zeros, zeros, gamma, False)


@compiled(work=lambda out: 0.01 * out.size)
def _mirror(out):
    """Copy what is above the diagonal to below it."""
    for i in range(out.shape[0]):
        for j in range(i):
            out[i, j] = out[j, i]


@compiled(work=lambda data, *rest: 1.0 * data.size * len(rest[-1]))
def _sparse_distances(data, indices, indptr, other_data, other_indices, other_indptr):
    """Return squared distances of the rows of two CSR matrices with sorted indices."""
    out = np.zeros((indptr.shape[0] - 1, other_indptr.shape[0] - 1))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            p, q, total = indptr[i], other_indptr[j], 0.0
            while p < indptr[i + 1] or q < other_indptr[j + 1]:
                more, others = p < indptr[i + 1], q < other_indptr[j + 1]
                first = more and (not others or indices[p] <= other_indices[q])
                second = others and (not more or other_indices[q] <= indices[p])
                difference = (data[p] if first else 0.0) - (other_data[q] if second else 0.0)
                total += difference * difference
                p += first
                q += second
            out[i, j] = total
    return out


@uncompiled(_finish_rbf_float64)
def _finish_rbf_by_vectors(out, start, stop, first, last, row_norms, column_norms, gamma, upper):
    tile, rows, columns = (
        out[start:stop, first:last],
        np.arange(start, stop),
        np.arange(first, last),
    )
    distance = row_norms[start:stop, np.newaxis] + column_norms[first:last] - 2.0 * tile
    values = _exponential(np.maximum(-gamma * np.maximum(distance, 0.0), -708.0))
    np.copyto(tile, values, where=columns >= rows[:, np.newaxis] if upper else True)


def _exponential(x):
    magic = 6755399441055744.0
    shifted = x * 1.4426950408889634 + magic
    k = shifted - magic
    r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    p = np.full_like(x, 1.0 / 6227020800.0)
    for n in range(12, -1, -1):
        p *= r
        p += 1.0 / math.factorial(n)
    return p * ((shifted.view(np.int64) + 1023) << 52).view(np.float64)


@uncompiled(_finish_rbf_float32)
def _finish_float32_by_vectors(
    out, start, stop, first, last, row_norms, column_norms, gamma, upper
):
    tile, rows, columns = (
        out[start:stop, first:last],
        np.arange(start, stop),
        np.arange(first, last),
    )
    zero, lowest, two = np.float32(0), np.float32(-87.0), np.float32(2)
    distance = row_norms[start:stop, np.newaxis] + column_norms[first:last] - two * tile
    values = _exponential_float32(np.maximum(-gamma * np.maximum(distance, zero), lowest))
    np.copyto(tile, values, where=columns >= rows[:, np.newaxis] if upper else True)


def _exponential_float32(x):
    magic = np.float32(12582912.0)
    shifted = x * np.float32(1.44269504) + magic
    k = shifted - magic
    r = (x - k * np.float32(0.693359375)) - k * np.float32(-2.12194440e-4)
    p = np.full_like(x, 1 / 5040)
    for n in range(6, -1, -1):
        p *= r
        p += np.float32(1 / math.factorial(n))
    return p * ((shifted.view(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)


@uncompiled(rbf_row)
def rbf_row_by_vectors(features, gamma, i, out):
    """`rbf_row` in vector operations."""
    d, row = features.shape[0], np.zeros(out.shape[1])
    differences = features - features[:, [i]]
    squares = differences * differences
    even = d - d % 4
    for f in range(0, even, 4):
        row -= 0.5 * ((squares[f] + squares[f + 1]) + (squares[f + 2] + squares[f + 3]))
    for f in range(even, d):
        row -= 0.5 * squares[f]
    distance = 0.0 - 2.0 * row
    out[i] = _exponential(np.maximum(-gamma * np.maximum(distance, 0.0), -708.0))


@uncompiled(_mirror)
def _mirror_by_vectors(out):
    below = np.tri(len(out), k=-1, dtype=bool)
    out[below] = out.T[below]
