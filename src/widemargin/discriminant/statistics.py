r"""Weight, mean and scatter of every class, gathered in one pass and merged without loss of digits.

For the rows x of class k, with weights w:

    W_k = sum w,    m_k = sum w x / W_k,    S_k = sum w (x - m_k)(x - m_k)'

Rows come in chunks. Features far from zero are taken less an origin near them, which costs no
digits, so that an offset is gone before anything is added up. Within a chunk rows are centred by
the chunk's own class means before they are multiplied, and two sets of rows A and B are merged by

    S = S_A + S_B + W_A W_B / (W_A + W_B) (m_A - m_B)(m_A - m_B)'

(Chan, Golub and LeVeque, 1979). Where the amount of shrinkage has to be estimated, third and
fourth moments are kept too:

    T_ij = sum w z_i^2 z_j,    F_ij = sum w z_i^2 z_j^2    with z = x - m_k

Beyond the rows themselves this takes memory for the scatter, a few times, and for some chunks.
"""

import numpy as np
import scipy.sparse as sp

from widemargin._base.threads import for_each, single_threaded_blas
from widemargin.discriminant.namespaces import beside, foreign_namespace, to_numpy

# Entries of a chunk: one and its centred copy stay in the processor's cache.
_CHUNK = 1 << 19

# Rows are dealt to this many threads at most, each with a scatter of its own; together these have
# no more entries than the second number. Neither depends on the machine, or bits would.
_LANES = 8
_LANE_ENTRIES = 1 << 23

# Rows of each class in a chunk, per feature, where every class has a scatter of its own.
_ROWS_PER_MERGE = 4

# On a device of another library fewer, larger chunks are better.
_DEVICE_CHUNKS = 32

# Rows whose mean is the origin, and how many deviations are far.
_ORIGIN_ROWS = 256
_FAR = 100.0

# The error of a mean, relative to it and to the square root of the number of rows.
_ROUNDING = 4.0 * float(np.finfo(float).eps)

# Columns of a block of the product; wider data are multiplied block by block on all threads.
_BLOCK = 1024


class ClassStatistics:
    """Weight, mean and scatter of every class.

    Parameters
    ----------
    n_classes : int
    n_features : int
    scatter : {"pooled", "classes", "none"}, default="pooled"
        Whether the scatters of all classes are summed up, kept apart, or left out.
    fourth : bool, default=False
        Whether third and fourth moments are kept, of each class.

    Attributes
    ----------
    count : ndarray of shape (n_classes,)
        Rows of positive weight.
    weight : ndarray of shape (n_classes,)
        Sum of their weights.
    origin : ndarray of shape (n_features,)
        What is taken from all rows: the mean of some first ones where that is far from zero.
    shift : ndarray of shape (n_classes, n_features)
        Mean of every class less the origin; zero where it has no rows yet.
    scatter : ndarray of shape (1 or n_classes or 0, n_features, n_features)
        Sum of squares and products around the mean of the class.
    """

    def __init__(self, n_classes, n_features, *, scatter="pooled", fourth=False):
        self.kind = (scatter, fourth)
        self.count = np.zeros(n_classes, dtype=np.int64)
        self.weight = np.zeros(n_classes)
        self.origin = np.zeros(n_features)
        self.shift = np.zeros((n_classes, n_features))
        groups = {"pooled": 1, "classes": n_classes, "none": 0}[scatter]
        shape = (groups, n_features, n_features)
        self.scatter = np.zeros(shape)
        self.third = np.zeros(shape) if fourth else None
        self.fourth = np.zeros(shape) if fourth else None

    @property
    def mean(self):
        """Mean of every class; the origin where it has no rows yet."""
        return self.origin + self.shift

    @property
    def per_class(self):
        """Whether every class has a scatter of its own."""
        return self.kind[0] == "classes"

    def pooled_scatter(self):
        """The scatter within classes: the sum over them, of shape (n_features, n_features)."""
        return self.scatter.sum(axis=0)

    def settled(self):
        """These statistics, in which features that vary by rounding errors alone do not vary.

        The mean of equal numbers need not be that number to the last digit.
        """
        scatter = self.pooled_scatter().diagonal()
        error = rounding_of(self.mean, self.count.sum())
        flat = (scatter > 0.0) & (scatter <= self.weight.sum() * error**2)
        if not flat.any():
            return self
        result = self.placed(np.arange(len(self.count)), len(self.count))
        for moments in (result.scatter, result.third, result.fourth):
            if moments is not None:
                moments[:, flat, :] = moments[:, :, flat] = 0.0
        result.shift[:, flat] = self.weight @ self.shift[:, flat] / self.weight.sum()
        return result

    def empty(self, n_classes=None):
        """Statistics of the same kind and origin, of no rows."""
        scatter, fourth = self.kind
        n_classes = len(self.count) if n_classes is None else n_classes
        result = ClassStatistics(n_classes, len(self.origin), scatter=scatter, fourth=fourth)
        result.origin = self.origin
        return result

    def update(self, X, codes, weight=None):
        """Take in rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Of any namespace; it is read chunk by chunk.
        codes : ndarray of shape (n_samples,)
            Index of each row's class.
        weight : ndarray of shape (n_samples,), default=None
            Weight of each row, at least 0.
        """
        if X.shape[0] and not self.count.any():
            self.origin = _origin_of(X)
        step, lanes = self._plan(*X.shape)
        starts = range(0, X.shape[0], step)
        if foreign_namespace(X) is not None:
            for start in range(0, X.shape[0], _DEVICE_CHUNKS * step):
                self.merge(self._of_rows(X, codes, weight, start, _DEVICE_CHUNKS * step))
            return

        def read(lane):
            part = self.empty()
            with single_threaded_blas():  # where BLAS runs on OpenMP, each thread has its own limit
                for start in starts[
                    lane * len(starts) // lanes : (lane + 1) * len(starts) // lanes
                ]:
                    part.merge(self._of_rows(X, codes, weight, start, step))
            return part

        with single_threaded_blas():
            for part in for_each(read, range(lanes)):
                self.merge(part)

    def merge(self, other):
        """Take in the rows of other statistics of the same classes."""
        if not self.count.any():
            self.origin = other.origin
        total = self.weight + other.weight
        share = other.weight / np.where(total > 0, total, 1.0)
        step = other.shift + (other.origin - self.origin) - self.shift
        if self.per_class:
            for k in np.flatnonzero(other.count):
                self._merge_class(k, other, share[k], step[k])
        elif len(self.scatter):
            between = np.sqrt(self.weight * share)[:, np.newaxis] * step
            self.scatter += other.scatter
            self.scatter += between.T @ between
        self.shift += share[:, np.newaxis] * step
        self.count = self.count + other.count
        self.weight = total

    def placed(self, index, n_classes):
        """These statistics among ``n_classes`` classes, of which they are those at ``index``."""
        result = self.empty(n_classes)
        for name in ("count", "weight", "shift"):
            getattr(result, name)[index] = getattr(self, name)
        where = index if self.per_class else slice(None)
        for name in ("scatter", "third", "fourth"):
            if getattr(self, name) is not None:
                getattr(result, name)[where] = getattr(self, name)
        return result

    def total(self):
        """The statistics of all rows as one class."""
        if not self.per_class:
            result = self.empty(1)
            shift = self.weight @ self.shift / self.weight.sum()
            between = np.sqrt(self.weight)[:, np.newaxis] * (self.shift - shift)
            result.count[0], result.weight[0], result.shift[0] = (
                self.count.sum(),
                self.weight.sum(),
                shift,
            )
            result.scatter[:] = self.scatter + between.T @ between
            return result
        result = self.empty(1)
        for k in np.flatnonzero(self.count):
            part = self.empty(1)
            for name in ("count", "weight", "shift", "scatter", "third", "fourth"):
                if getattr(self, name) is not None:
                    setattr(part, name, getattr(self, name)[[k]])
            result.merge(part)
        return result

    def _plan(self, n_rows, n_features):
        """Rows of a chunk, and into how many lanes the chunks are dealt."""
        step = max(256, _CHUNK // n_features)
        if self.per_class:
            # To merge classes costs as much as to multiply some rows of each: read more at a time.
            step = max(step, min(_ROWS_PER_MERGE * self.scatter.size // n_features, 8 * step))
        entries = self.scatter.size * (1 if self.fourth is None else 3)
        lanes = min(_LANES, -(-n_rows // step), _LANE_ENTRIES // max(1, entries))
        return step, max(1, lanes)

    def _of_rows(self, X, codes, weight, start, step):
        """The statistics of ``step`` rows."""
        rows = slice(start, min(start + step, X.shape[0]))
        X, codes, weight = X[rows, :], codes[rows], None if weight is None else weight[rows]
        part = self.empty()
        n_classes = len(self.count)
        present = codes if weight is None else codes[weight > 0]
        part.count = np.bincount(present, minlength=n_classes)
        part.weight = np.bincount(codes, weights=weight, minlength=n_classes).astype(float)
        if self.kind[0] == "pooled" and foreign_namespace(X) is not None:
            return part._read_on_device(X, codes, weight)
        X = dense_rows(X)
        return part._read(X - self.origin if self.origin.any() else X, codes, weight)

    def _read_on_device(self, X, codes, weight):
        """Means and pooled scatter by products in the namespace of X, where X is."""
        members = np.equal.outer(codes, np.arange(len(self.count))).astype(float)
        root = np.sqrt(np.ones(len(codes)) if weight is None else weight)[:, np.newaxis]
        shares = root**2 * members / np.where(self.weight > 0, self.weight, 1.0)
        members, root, shares = (beside(part, X, X.dtype) for part in (members, root, shares))
        X = X - beside(self.origin, X, X.dtype)
        shift = shares.T @ X
        centred = root * (X - members @ shift)
        self.shift = to_numpy(shift).astype(np.float64)
        self.scatter[0] = to_numpy(centred.T @ centred)
        return self

    def _read(self, X, codes, weight):
        n_classes, n_rows = len(self.count), len(codes)
        members = np.ones(n_rows) if weight is None else weight
        sums = sp.csc_array((members, codes, np.arange(n_rows + 1)), (n_classes, n_rows)) @ X
        self.shift = sums / np.where(self.weight > 0, self.weight, 1.0)[:, np.newaxis]
        if not len(self.scatter):
            return self

        centred = self.shift.take(codes, axis=0)
        np.subtract(X, centred, out=centred)
        root = None if weight is None else np.sqrt(weight)[:, np.newaxis]
        if not self.per_class:
            if root is not None:
                centred *= root
            _write_gram(centred, self.scatter[0])
            return self
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=n_classes))
        for k in np.flatnonzero(self.count):
            rows = order[ends[k - 1] if k else 0 : ends[k]]
            self._set_class(k, centred[rows], None if root is None else root[rows])
        return self

    def _set_class(self, k, rows, root):
        """Moments of the centred rows of one class; ``root`` are the square roots of weights."""
        scaled = rows if root is None else rows * root
        _write_gram(scaled, self.scatter[k])
        if self.third is not None and self.fourth is not None:
            self.third[k] = (scaled * scaled).T @ rows
            _write_gram(scaled * rows, self.fourth[k])

    def _merge_class(self, k, other, share, step):
        if self.third is not None and self.fourth is not None:
            mine = _shifted(self, k, -share * step)
            theirs = _shifted(other, k, (1.0 - share) * step)
            self.third[k], self.fourth[k] = mine[0] + theirs[0], mine[1] + theirs[1]
        self.scatter[k] += other.scatter[k]
        self.scatter[k] += np.outer(self.weight[k] * share * step, step)


def rounding_of(means, n_rows):
    """How far apart equal numbers and their mean may be, by feature."""
    return _ROUNDING * np.sqrt(n_rows) * np.abs(means).max(axis=0)


def _origin_of(X):
    """The mean of the first rows, to as many digits as a number of either type has.

    It is zero where the mean is not far from it: such features lose no digits that are missed.
    """
    rows = dense_rows(X[: min(_ORIGIN_ROWS, X.shape[0]), :])
    mean, most = rows.mean(axis=0), np.finfo(np.float32).max
    mean[np.abs(mean) <= _FAR * rows.std(axis=0)] = 0.0
    return mean.clip(-most, most).astype(np.float32).astype(np.float64)


def dense_rows(X):
    """A chunk of rows as a C-contiguous float64 array."""
    if sp.issparse(X):
        return X.toarray().astype(np.float64, copy=False)
    return np.ascontiguousarray(to_numpy(X), dtype=np.float64)


def _write_gram(Z, out):
    """Write Z'Z into ``out``, in blocks of columns on all threads."""
    if Z.shape[1] <= _BLOCK:
        np.matmul(Z.T, Z, out=out)
        return
    cuts = [slice(start, start + _BLOCK) for start in range(0, Z.shape[1], _BLOCK)]
    pairs = [(rows, columns) for i, rows in enumerate(cuts) for columns in cuts[i:]]

    def multiply(pair):
        rows, columns = pair
        out[rows, columns] = Z[:, rows].T @ Z[:, columns]
        if rows != columns:
            out[columns, rows] = out[rows, columns].T

    for_each(multiply, pairs)


def _shifted(statistics, k, shift):
    """Third and fourth moments of class k around its mean less ``shift``."""
    scatter, third, fourth = (
        getattr(statistics, name)[k] for name in ("scatter", "third", "fourth")
    )
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
