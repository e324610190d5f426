r"""Weight, mean and scatter of every class, computed in one pass and merged accurately.

For the samples x of class k, with weights w:

    W_k = sum w,    m_k = sum w x / W_k,    S_k = sum w (x - m_k)(x - m_k)'

Samples are read in chunks. From features far from zero an origin near their mean is subtracted,
which is exact, so that sums lose no digits to an offset. Within a chunk the samples are centered by
the class means of the chunk before they are multiplied, and two sets of samples A and B are merged
by

    S = S_A + S_B + W_A W_B / (W_A + W_B) (m_A - m_B)(m_A - m_B)'

(Chan, Golub and LeVeque, 1979). If the amount of shrinkage is estimated, third and fourth moments
are computed as well:

    T_ij = sum w z_i^2 z_j,    F_ij = sum w z_i^2 z_j^2    with z = x - m_k

Besides the samples this needs memory for a few scatter matrices and some chunks.
"""

import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import gen_batches

from widemargin._base.numeric import EPSILON
from widemargin._base.options import discriminant_options as options
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin.discriminant.namespaces import foreign_namespace, to_namespace_of, to_numpy


class ClassStatistics:
    """Weight, mean and scatter of every class.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    n_features : int
        Number of features.
    scatter : {"pooled", "classes", "none"}, default="pooled"
        Whether to compute the sum of the scatter matrices of all classes, one for each class, or
        none.
    fourth : bool, default=False
        Whether to compute third and fourth moments of each class.

    Attributes
    ----------
    per_class : bool
        Whether there is a scatter matrix for each class.
    count : ndarray of shape (n_classes,)
        Number of samples of positive weight.
    weight : ndarray of shape (n_classes,)
        Sum of their weights.
    origin : ndarray of shape (n_features,)
        Subtracted from all samples: the mean of the first ones where it is far from zero.
    shift : ndarray of shape (n_classes, n_features)
        Mean of every class minus the origin; zero for a class without samples.
    scatter : ndarray of shape (1 or n_classes or 0, n_features, n_features)
        Sum of squares and products around the mean of the class.
    """

    def __init__(self, n_classes: int, n_features: int, *, scatter="pooled", fourth=False) -> None:
        self.kind, self.per_class = (scatter, fourth), scatter == "classes"
        self.count = np.zeros(n_classes, dtype=np.int64)
        self.weight = np.zeros(n_classes)
        self.origin = np.zeros(n_features)
        self.shift = np.zeros((n_classes, n_features))
        groups = {"pooled": 1, "classes": n_classes, "none": 0}[scatter]
        shape = (groups, n_features, n_features)
        self.scatter = np.zeros(shape)
        self.third: Any = np.zeros(shape) if fourth else None
        self.fourth: Any = np.zeros(shape) if fourth else None

    @property
    def mean(self) -> np.ndarray:
        """Mean of every class; the origin for a class without samples."""
        return self.origin + self.shift

    def pooled_scatter(self) -> np.ndarray:
        """Return the sum of the scatter matrices of the classes."""
        return self.scatter.sum(axis=0)

    def without_rounding(self) -> "ClassStatistics":
        """Return the statistics with zero scatter of features that vary by rounding errors only.

        The mean of equal numbers may differ from them in the last digit.
        """
        scatter = self.pooled_scatter().diagonal()
        error = rounding_error(self.mean, self.count.sum())
        flat = (scatter > 0.0) & (scatter <= self.weight.sum() * error**2)
        if not flat.any():
            return self
        result = copy.deepcopy(self)
        for moments in (result.scatter, result.third, result.fourth):
            if moments is not None:
                moments[:, flat, :] = moments[:, :, flat] = 0.0
        result.shift[:, flat] = self.weight @ self.shift[:, flat] / self.weight.sum()
        return result

    def empty(self, n_classes: int | None = None) -> "ClassStatistics":
        """Return statistics of the same kind and origin without samples."""
        scatter, fourth = self.kind
        n_classes = len(self.count) if n_classes is None else n_classes
        result = ClassStatistics(n_classes, len(self.origin), scatter=scatter, fourth=fourth)
        result.origin = self.origin
        return result

    def update(self, X: Any, codes: np.ndarray, weight: np.ndarray | None = None) -> None:
        """Add samples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Samples, in any namespace. They are read chunk by chunk.
        codes : ndarray of shape (n_samples,)
            Class index of each sample.
        weight : ndarray of shape (n_samples,), default=None
            Non-negative weight of each sample.
        """
        if not X.shape[0]:
            return
        if not self.count.any():
            self.origin = _origin_of(X)
        step, lanes = self._plan(*X.shape)
        if foreign_namespace(X) is not None:
            for rows in gen_batches(X.shape[0], step * options.device_chunks):
                self.merge(self._of_samples(X, codes, weight, rows))
            return
        blocks = list(gen_batches(X.shape[0], step))

        def read(lane: int) -> ClassStatistics:
            partial, ends = self.empty(), [k * len(blocks) // lanes for k in (lane, lane + 1)]
            with single_threaded_blas():  # if BLAS runs on OpenMP, each thread has its own limit
                for rows in blocks[slice(*ends)]:
                    partial.merge(self._of_samples(X, codes, weight, rows))
            return partial

        with single_threaded_blas():
            for partial in for_each(read, range(lanes)):
                self.merge(partial)

    def merge(self, other: "ClassStatistics") -> None:
        """Add the samples of other statistics of the same classes."""
        if not self.count.any():
            self.origin = other.origin
        total = self.weight + other.weight
        share = other.weight / np.where(total > 0, total, 1.0)
        step = other.shift + (other.origin - self.origin) - self.shift
        if self.per_class:
            for k in np.flatnonzero(other.count):
                if self.fourth is not None:
                    moments = _shifted_moments(self, k, -share[k] * step[k])
                    added = _shifted_moments(other, k, (1.0 - share[k]) * step[k])
                    self.third[k], self.fourth[k] = moments[0] + added[0], moments[1] + added[1]
                self.scatter[k] += other.scatter[k]
                self.scatter[k] += np.outer(self.weight[k] * share[k] * step[k], step[k])
        elif len(self.scatter):
            between = np.sqrt(self.weight * share)[:, np.newaxis] * step
            self.scatter += other.scatter
            self.scatter += between.T @ between
        self.shift += share[:, np.newaxis] * step
        self.count = self.count + other.count
        self.weight = total

    def expanded(self, index: np.ndarray, n_classes: int) -> "ClassStatistics":
        """Return statistics of ``n_classes`` classes in which these classes are at ``index``."""
        result = self.empty(n_classes)
        for name in ("count", "weight", "shift"):
            getattr(result, name)[index] = getattr(self, name)
        where = index if self.per_class else slice(None)
        for name in ("scatter", "third", "fourth"):
            if getattr(self, name) is not None:
                getattr(result, name)[where] = getattr(self, name)
        return result

    def total(self) -> "ClassStatistics":
        """Return the statistics of all samples as one class."""
        result = self.empty(1)
        if not self.per_class:
            result.count[0], result.weight[0] = self.count.sum(), self.weight.sum()
            result.shift[0] = self.weight @ self.shift / self.weight.sum()
            between = np.sqrt(self.weight)[:, np.newaxis] * (self.shift - result.shift)
            result.scatter[:] = self.scatter + between.T @ between
            return result
        for k in np.flatnonzero(self.count):
            single = self.empty(1)
            for name in ("count", "weight", "shift", "scatter", "third", "fourth"):
                if getattr(self, name) is not None:
                    setattr(single, name, getattr(self, name)[[k]])
            result.merge(single)
        return result

    def _plan(self, n_samples: int, n_features: int) -> tuple[int, int]:
        """Return the number of samples of a chunk, and the number of lanes for the chunks."""
        step = max(options.smallest_chunk, options.chunk_entries // n_features)
        if self.per_class:
            # Merging classes costs as much as multiplying some samples of each: use larger chunks.
            enough = options.samples_per_merge * self.scatter.size // n_features
            step = max(step, min(enough, options.largest_chunk * step))
        entries = self.scatter.size * (1 if self.fourth is None else 3)
        lanes = min(options.lanes, -(-n_samples // step), options.lane_entries // max(1, entries))
        return step, max(1, lanes)

    def _of_samples(self, X: Any, codes: Any, weight: Any, rows: slice) -> "ClassStatistics":
        """Return the statistics of some of the samples."""
        X, codes, weight = X[rows, :], codes[rows], None if weight is None else weight[rows]
        statistics = self.empty()
        n_classes = len(self.count)
        present = codes if weight is None else codes[weight > 0]
        statistics.count = np.bincount(present, minlength=n_classes)
        statistics.weight = np.bincount(codes, weights=weight, minlength=n_classes).astype(float)
        if self.kind[0] == "pooled" and foreign_namespace(X) is not None:
            statistics._read_on_device(X, codes, weight)
        else:
            X = as_dense(X)
            statistics._read(X - self.origin if self.origin.any() else X, codes, weight)
        return statistics

    def _read_on_device(self, X: Any, codes: np.ndarray, weight: np.ndarray | None) -> None:
        """Set the means and the pooled scatter by products in the namespace of X."""
        members = np.equal.outer(codes, np.arange(len(self.count))).astype(float)
        root = np.sqrt(np.ones(len(codes)) if weight is None else weight)[:, np.newaxis]
        shares = root**2 * members / np.where(self.weight > 0, self.weight, 1.0)
        members, root, shares, origin = (
            to_namespace_of(array, X, X.dtype) for array in (members, root, shares, self.origin)
        )
        X = X - origin
        shift = shares.T @ X
        centered = root * (X - members @ shift)
        self.shift = to_numpy(shift).astype(np.float64)
        self.scatter[0] = to_numpy(centered.T @ centered)

    def _read(self, X: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> None:
        """Set the means and the moments around them."""
        n_classes, n_samples = len(self.count), len(codes)
        members = np.ones(n_samples) if weight is None else weight
        sums = sp.csc_array((members, codes, np.arange(n_samples + 1)), (n_classes, n_samples)) @ X
        self.shift = sums / np.where(self.weight > 0, self.weight, 1.0)[:, np.newaxis]
        if not len(self.scatter):
            return
        centered = self.shift.take(codes, axis=0)
        np.subtract(X, centered, out=centered)
        root = None if weight is None else np.sqrt(weight)[:, np.newaxis]
        if not self.per_class:
            if root is not None:
                centered *= root
            _write_gram(centered, self.scatter[0])
            return
        ends = np.cumsum(np.bincount(codes, minlength=n_classes))
        groups = np.split(np.argsort(codes, kind="stable"), ends[:-1])
        for k in np.flatnonzero(self.count):
            Z = centered[groups[k]]
            scaled = Z if root is None else Z * root[groups[k]]
            _write_gram(scaled, self.scatter[k])
            if self.fourth is not None:
                self.third[k] = (scaled * scaled).T @ Z
                _write_gram(scaled * Z, self.fourth[k])


def rounding_error(means: np.ndarray, n_samples: int) -> np.ndarray:
    """Return the largest rounding error of the mean of equal numbers, for each feature."""
    return options.rounding * EPSILON * np.sqrt(n_samples) * np.abs(means).max(axis=0)


def _origin_of(X: Any) -> np.ndarray:
    """Return the mean of the first samples, rounded to float32 so that subtraction is exact.

    It is zero for features whose mean is close to zero: these lose no relevant digits.
    """
    first = as_dense(X[: min(options.origin_samples, X.shape[0]), :])
    mean, most = first.mean(axis=0), np.finfo(np.float32).max
    mean[np.abs(mean) <= options.far * first.std(axis=0)] = 0.0
    return mean.clip(-most, most).astype(np.float32).astype(np.float64)


def as_dense(X: Any) -> np.ndarray:
    """Return a chunk of samples as a C-contiguous float64 array."""
    if sp.issparse(X):
        return X.toarray().astype(np.float64, copy=False)
    return np.ascontiguousarray(to_numpy(X), dtype=np.float64)


def sample_blocks(X: Any) -> list[slice]:
    """Return slices of samples that are small enough to be copied."""
    step = max(options.smallest_chunk, options.predict_entries // max(1, X.shape[1]))
    return [slice(start, start + step) for start in range(0, X.shape[0], step)]


def _write_gram(Z: np.ndarray, out: np.ndarray) -> None:
    """Write Z'Z into ``out``, in blocks of columns on all threads."""
    width = options.product_columns
    if Z.shape[1] <= width:
        np.matmul(Z.T, Z, out=out)
        return
    cuts = list(gen_batches(Z.shape[1], width))
    pairs = [(rows, columns) for i, rows in enumerate(cuts) for columns in cuts[i:]]

    def multiply(pair: tuple[slice, slice]) -> None:
        rows, columns = pair
        out[rows, columns] = Z[:, rows].T @ Z[:, columns]
        if rows != columns:
            out[columns, rows] = out[rows, columns].T

    for_each(multiply, pairs)


def _shifted_moments(statistics: ClassStatistics, k: Any, shift: np.ndarray) -> tuple:
    """Return the third and fourth moments of class k around its mean minus ``shift``."""
    scatter, third, fourth = statistics.scatter[k], statistics.third[k], statistics.fourth[k]
    weight, variance, square = statistics.weight[k], scatter.diagonal(), shift * shift
    new_third = (
        third
        + np.outer(variance, shift)
        + 2.0 * shift[:, np.newaxis] * scatter
        + weight * np.outer(square, shift)
    )
    tilted = 2.0 * third * shift
    product = np.outer(variance, square)
    new_fourth = (
        fourth
        + (tilted + tilted.T)
        + (product + product.T)
        + 4.0 * np.outer(shift, shift) * scatter
        + weight * np.outer(square, square)
    )
    return new_third, new_fourth
