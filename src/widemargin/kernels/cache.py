"""A cache of kernel values for all problems over the same samples.

One-vs-one, one-vs-rest, folds and rounds of self-training solve many problems whose Gram matrices
overlap. A `GramCache` knows how the samples fall into consecutive groups (classes, folds). A
problem takes the Gram matrix of a union of groups from it, which shares the values that others
have computed, within one limit on memory.
"""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.options import kernel_options as options
from widemargin.kernels.dense import DenseMatrix
from widemargin.kernels.functions import RBF
from widemargin.kernels.gram import Gram, MatrixGram, is_everything


class GramCache:
    """Blocks and rows of one Gram matrix, computed once and cached within a limit on memory.

    For small problems, which are solved on their whole matrix, it holds the whole matrix if that
    fits, else the blocks between groups; for large ones, rows in float32.

    Parameters
    ----------
    gram : Gram
        Computes the values.
    cache_bytes : int
        Limit on memory; two rows are cached in any case.
    group_sizes : sequence of int, optional
        Sizes of the consecutive groups of samples; one group by default.
    shared : bool, default=False
        Whether several problems over all samples will be solved.
    jobs : int, default=1
        Number of problems solved at once, which request rows while others use theirs. They share
        the limit, but each may hold the rows of its working set, so that what is computed does not
        depend on this.
    """

    def __init__(
        self, gram: Gram, cache_bytes: int, group_sizes: Sequence[int] | None = None,
        shared: bool = False, jobs: int = 1,
    ):  # fmt: skip
        sizes = [gram.size] if group_sizes is None else list(group_sizes)
        if sum(sizes) != gram.size:
            raise ValueError(f"group_sizes must add up to {gram.size} samples, got {sum(sizes)}.")
        self.gram = gram
        self.cache_bytes = int(cache_bytes)
        self.shared = shared
        self.jobs = jobs
        self.groups = [slice(a, b) for a, b in pairwise(accumulate(sizes, initial=0))]
        self._lock = threading.RLock()
        self._whole: np.ndarray | None = None
        self._blocks: OrderedDict[tuple[int, int], np.ndarray] = OrderedDict()
        self._block_bytes = 0
        self._row_caches: list[weakref.ref[RowCache]] = []
        self._shared_rows: weakref.ref | None = None
        self._shared_rows_held: RowCache | None = None

    @property
    def nbytes(self) -> int:
        """Memory in use."""
        return self._block_bytes + self._fixed_bytes()

    def of(self, *groups: int) -> "UnionGram":
        """Return the Gram matrix of the samples of ``groups`` (by default, of all)."""
        return UnionGram(self, groups or tuple(range(len(self.groups))))

    @cached_property
    def diagonal(self) -> np.ndarray:
        """The values k(x_i, x_i) of all samples."""
        return self.gram.diagonal()

    @cached_property
    def features(self) -> np.ndarray | None:
        """The features of the samples, a row for each, where small problems compute rows from them.

        The whole matrix takes longer where most of its rows are needed by no problem.
        """
        gram, rbf = self.gram, isinstance(getattr(self.gram, "function", None), RBF)
        if self.shared or not rbf or sp.issparse(gram.X) or gram.X.dtype != np.float64:  # type: ignore[attr-defined]
            return None
        X = gram.X  # type: ignore[attr-defined]
        return np.ascontiguousarray(X.T) if X.shape[1] <= options.on_demand_features else None

    def whole(self) -> np.ndarray | None:
        """Return the whole matrix in float64 if it fits."""
        if isinstance(self.gram, MatrixGram):
            return self.gram.matrix
        needed = 8 * self.gram.size**2
        with self._lock:
            if self._whole is None and self.cache_bytes >= self._fixed_bytes() + needed:
                self._evict(needed)
                self._whole = self.gram.block(slice(None))
            return self._whole

    def between(self, first: int, second: int) -> np.ndarray:
        """Return the block of group ``first`` against group ``second``."""
        if first > second:
            return self.between(second, first).T
        key = (first, second)
        with self._lock:
            if key in self._blocks:
                self._blocks.move_to_end(key)
                return self._blocks[key]
        # Computed outside the lock: two threads may compute the same block, to the same bits.
        block = self.gram.block(self.groups[first], self.groups[second])
        with self._lock:
            if key not in self._blocks and block.nbytes <= self.cache_bytes - self._fixed_bytes():
                self._evict(block.nbytes)
                self._blocks[key] = block
                self._block_bytes += block.nbytes
        return block

    def row_cache(self, gram: Gram, float64: bool = False) -> "RowCache":
        """Return a cache of rows of ``gram`` in what is left of the memory.

        Rows are float32 and may be computed from dense samples in place of sparse ones, unless
        they must be float64 or are too large for float32.
        """
        with self._lock:
            float64 = float64 or not gram.fits_float32()
            row_bytes = (8 if float64 else 4) * gram.size
            limit = self.cache_bytes // 2 if self.shared else self.cache_bytes
            share = limit if self.shared and gram is self.gram else limit // self.jobs
            most = row_bytes * min(gram.size, options.most_rows)
            if self.cache_bytes - self._fixed_bytes() < most:
                self._whole = None
            capacity = min(share, self.cache_bytes - self._fixed_bytes()) // row_bytes
            at_once = capacity if self.jobs == 1 else limit // row_bytes
            source = gram if float64 else gram.as_float32(self.cache_bytes // 4)
            rows = RowCache(source, capacity, at_once)
            self._evict(rows.nbytes)
            alive = [other for other in self._row_caches if other() is not None]
            self._row_caches = [*alive, weakref.ref(rows)]
            return rows

    def shared_rows(self) -> "RowCache":
        """Return the cache of rows of all samples that problems over most of them share.

        If there are several such problems it lives as long as this cache and takes half of the
        memory, so that each problem can have a smaller one.
        """
        with self._lock:
            rows = self._shared_rows() if self._shared_rows is not None else None
            if rows is None:
                rows = self.row_cache(self.gram)
                self._shared_rows = weakref.ref(rows)
                self._shared_rows_held = rows if self.shared else None
            return rows

    def _fixed_bytes(self) -> int:
        """Memory that eviction does not free."""
        # Not a WeakSet: another thread that gives up its rows would change it meanwhile.
        rows = sum(getattr(rows(), "nbytes", 0) for rows in self._row_caches)
        return rows + (0 if self._whole is None else self._whole.nbytes)

    def _evict(self, needed: int) -> None:
        while self._blocks and self.cache_bytes - self.nbytes < needed:
            _, block = self._blocks.popitem(last=False)
            self._block_bytes -= block.nbytes


class CachedGram(Gram):
    """A Gram matrix with a cache of rows, such as that of the samples left after shrinking."""

    def __init__(self, cache: GramCache, gram: Gram, float64: bool = False):
        self._cache = cache
        self._gram = gram
        self._float64 = float64
        self._row_cache: RowCache | None = None
        self.size = gram.size
        self.positive_semidefinite = gram.positive_semidefinite

    @property
    def max_rows(self) -> int:
        return self._rows().max_rows

    def diagonal(self) -> np.ndarray:
        return self._gram.diagonal()

    def block(self, rows: Any, columns: Any = slice(None)) -> np.ndarray:
        return self._gram.block(rows, columns)

    @property
    def offset(self) -> Any:
        return self._gram.offset

    def rounding(self) -> float:
        return self._gram.rounding()

    def exact_sums(self, dual: np.ndarray) -> Any:
        return self._gram.exact_sums(dual)

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._rows().rows(index)

    def subset(self, index: np.ndarray) -> "CachedGram":
        """Return the Gram matrix of some samples; the rows of this one are given up."""
        self._row_cache = None
        return CachedGram(self._cache, self._gram.subset(index), self._float64)

    def use_float64(self) -> None:
        self._row_cache = None
        self._float64 = True

    def _rows(self) -> "RowCache":
        if self._row_cache is None:
            self._row_cache = self._new_rows()
        return self._row_cache

    def _new_rows(self) -> "RowCache":
        return self._cache.row_cache(self._gram, self._float64)


class UnionGram(CachedGram):
    """The Gram matrix of the samples of some groups of a `GramCache`."""

    def __init__(self, cache: GramCache, groups: tuple[int, ...]):
        super().__init__(cache, cache.gram)
        self._groups = groups
        self._slices = [cache.groups[g] for g in groups]
        self.size = sum(s.stop - s.start for s in self._slices)

    def diagonal(self) -> np.ndarray:
        return np.concatenate([self._cache.diagonal[s] for s in self._slices])

    @cached_property
    def dense(self) -> DenseMatrix | None:
        """The whole matrix; rows are computed when needed, or copied from that of the cache."""
        features = self._cache.features
        if features is not None:
            selected = np.concatenate([features[:, s] for s in self._slices], axis=1)
            return DenseMatrix(selected, gamma=self._gram.function.gamma)  # type: ignore[attr-defined]
        whole = self._cache.whole()
        if whole is None:
            return None
        return DenseMatrix(whole) if self._is_whole() else DenseMatrix(whole, self._index())

    def block(self, rows: Any, columns: Any = slice(None)) -> np.ndarray:
        if not (is_everything(rows) and is_everything(columns)):
            index = self._index()
            return self._gram.block(index[rows], index[columns])
        whole = self._cache.whole()
        if whole is None:
            between = self._cache.between
            return np.block([[between(i, j) for j in self._groups] for i in self._groups])
        return whole if self._is_whole() else whole[np.ix_(self._index(), self._index())]

    def features(self) -> np.ndarray | None:
        features = self._gram.features()
        return None if features is None else features[self._index()]

    def exact_sums(self, dual: np.ndarray) -> Any:
        gram = self._gram if self._is_whole() else self._gram.subset(self._index())
        return gram.exact_sums(dual)

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if not self._shares_rows() or (self._is_whole() and self._cache.jobs == 1):
            return super().rows(index)
        return self._rows().copied_rows(self._index()[index], self._index()), np.arange(len(index))

    def subset(self, index: np.ndarray) -> CachedGram:
        return super().subset(self._index()[index])

    def _new_rows(self) -> "RowCache":
        """The shared rows if this union has most of the samples, else a cache of its own."""
        if self._shares_rows():
            return self._cache.shared_rows()
        return self._cache.row_cache(self._gram.subset(self._index()), self._float64)

    def _shares_rows(self) -> bool:
        return 2 * self.size > self._gram.size and not self._float64

    def _index(self) -> np.ndarray:
        return np.concatenate([np.arange(s.start, s.stop) for s in self._slices])

    def _is_whole(self) -> bool:
        return self._groups == tuple(range(len(self._cache.groups)))


class RowCache:
    """The rows of a Gram matrix that were requested last.

    Missing rows are computed together, in place of those that have been in the cache longest.

    Parameters
    ----------
    gram : Gram
    capacity : int
        Number of rows to hold: at least `max_rows`, and at most all of them.
    max_rows : int, optional
        Number of rows that may be requested at once, between 2 and 1024; ``capacity`` by default.
    """

    def __init__(self, gram: Any, capacity: int, max_rows: int | None = None):
        self.gram = gram
        wanted = max(capacity if max_rows is None else max_rows, options.fewest_rows)
        self.max_rows = min(wanted, options.most_rows, gram.size)
        self._capacity = min(max(capacity, self.max_rows), gram.size)
        self._lock = threading.RLock()
        self._matrix = gram.matrix if isinstance(gram, MatrixGram) else None
        if self._matrix is not None:
            self.nbytes = 0
            return
        self._array = np.empty((self._capacity, gram.size), dtype=self.gram.dtype)
        self.nbytes = self._array.nbytes
        self._position_of = np.full(gram.size, -1)
        self._row_at = np.full(self._capacity, -1)
        self._next = 0

    def copied_rows(self, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return a copy of some columns of rows, which other threads do not overwrite."""
        with self._lock:
            array, positions = self.rows(index)
            return array[np.ix_(positions, columns)]

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return an array and the positions of the rows ``index`` (distinct, at most `max_rows`).

        They stay there until rows are requested again.
        """
        if self._matrix is not None:
            return self._matrix, index
        with self._lock:
            start, missing = self._reserve(index)
            if len(missing):
                stop = start + len(missing)
                # A row that was in the way of others moves: its old position is empty now.
                left = self._position_of[missing]
                self._row_at[left[left >= 0]] = -1
                self._position_of[missing] = -1
                evicted = self._row_at[start:stop]
                self._position_of[evicted[evicted >= 0]] = -1
                self.gram.block(missing, out=self._array[start:stop])
                self._row_at[start:stop] = missing
                self._position_of[missing] = np.arange(start, stop)
                self._next = stop
            return self._array, self._position_of[index]

    def _reserve(self, index: np.ndarray) -> tuple[int, np.ndarray]:
        """Return the first position for missing rows, and the rows missing once it is cleared."""
        positions = self._position_of[index]
        missing = positions < 0
        while True:
            count = np.count_nonzero(missing)
            start = self._next if self._next + count <= self._capacity else 0
            lost = missing | ((positions >= start) & (positions < start + count))
            if np.count_nonzero(lost) == count:
                return start, index[missing]
            missing = lost
