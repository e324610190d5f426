"""One memory for all problems over the same rows.

One-vs-one, one-vs-rest, folds and rounds solve many problems whose Gram matrices overlap. A
`GramCache` is told how the rows fall into consecutive groups (classes, folds); a problem asks it
for the Gram matrix of a union of groups and gets a view that fills, and is served from, what the
others have computed, within one budget of bytes.
"""

import threading
import weakref
from collections import OrderedDict
from itertools import pairwise

import numpy as np

from widemargin.kernels.gram import Gram

ITEM = 8


class GramCache:
    """Blocks and rows of one Gram matrix, computed once and kept while the budget lasts.

    What is kept: the whole matrix where it fits, else the blocks between groups for problems that
    ask for all of their matrix, and rows for problems that ask for some of them.

    Parameters
    ----------
    gram : Gram
        Where the values come from.
    cache_bytes : int
        Memory that what is kept may take. Never exceeded.
    group_sizes : sequence of int, optional
        Sizes of the consecutive groups of rows; one group when not given.
    """

    def __init__(self, gram: Gram, cache_bytes: int, group_sizes=None):
        sizes = [gram.size] if group_sizes is None else list(group_sizes)
        if sum(sizes) != gram.size:
            raise ValueError(f"group_sizes must add up to {gram.size} rows, got {sum(sizes)}.")
        ends = np.cumsum([0, *sizes])
        self.gram = gram
        self.cache_bytes = int(cache_bytes)
        self.groups = [slice(int(a), int(b)) for a, b in pairwise(ends)]
        self._lock = threading.RLock()
        self._whole = None
        self._diagonal = None
        self._blocks: OrderedDict[tuple[int, int], np.ndarray] = OrderedDict()
        self._block_bytes = 0
        self._row_bytes = 0
        self._all_rows: weakref.ref | None = None

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        return (
            self._block_bytes + self._row_bytes + (0 if self._whole is None else self._whole.nbytes)
        )

    def of(self, *groups: int) -> "UnionGram":
        """The Gram matrix of the rows of ``groups`` (all of them when none is named)."""
        return UnionGram(self, groups or tuple(range(len(self.groups))))

    def diagonal(self) -> np.ndarray:
        with self._lock:
            if self._diagonal is None:
                self._diagonal = self.gram.diagonal()
            return self._diagonal

    def whole(self) -> np.ndarray | None:
        """The whole matrix if it fits into the budget."""
        with self._lock:
            if self._whole is None and self._room() >= ITEM * self.gram.size**2:
                self._whole = self.gram.block(slice(None))
            return self._whole

    def between(self, first: int, second: int) -> np.ndarray:
        """The block of group ``first`` against group ``second``, kept for the next who asks."""
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
            if key not in self._blocks and block.nbytes <= self.cache_bytes - self._row_bytes:
                self._blocks[key] = block
                self._block_bytes += block.nbytes
                self._evict(0)
        return block

    def row_store(self, gram: Gram, everything: bool) -> "RowStore":
        """A store of rows of ``gram``; there is one for the rows of all groups, shared."""
        with self._lock:
            store = self._all_rows() if everything and self._all_rows is not None else None
            if store is None:
                wanted = min(gram.size, (self.cache_bytes - self._row_bytes) // (ITEM * gram.size))
                store = RowStore(gram, max(int(wanted), 0))
                self._evict(store.nbytes)
                self._row_bytes += store.nbytes
                weakref.finalize(store, self._release, store.nbytes)
                if everything:
                    self._all_rows = weakref.ref(store)
            return store

    def _room(self) -> int:
        return self.cache_bytes - self._row_bytes - self._block_bytes

    def _evict(self, wanted: int) -> None:
        while self._blocks and self._room() < wanted:
            _, block = self._blocks.popitem(last=False)
            self._block_bytes -= block.nbytes

    def _release(self, nbytes: int) -> None:
        with self._lock:
            self._row_bytes -= nbytes


class UnionGram:
    """The Gram matrix of some groups of a `GramCache`; a `Gram`."""

    def __init__(self, cache: GramCache, groups: tuple[int, ...]):
        self._cache = cache
        self._groups = groups
        self._slices = [cache.groups[g] for g in groups]
        self.size = sum(s.stop - s.start for s in self._slices)
        self.positive_semidefinite = cache.gram.positive_semidefinite
        self._store = None

    def diagonal(self) -> np.ndarray:
        return np.concatenate([self._cache.diagonal()[s] for s in self._slices])

    def block(self, rows, columns=slice(None)) -> np.ndarray:
        whole = self._cache.whole()
        if whole is not None:
            return self._from_whole(whole, rows, columns)
        if _is_all(rows) and _is_all(columns):
            return self._from_blocks()
        return self._from_rows(np.arange(self.size)[rows])[:, columns]

    def subset(self, index: np.ndarray) -> Gram:
        return self._cache.gram.subset(self._index()[index])

    def _index(self) -> np.ndarray:
        return np.concatenate([np.arange(s.start, s.stop) for s in self._slices])

    def _is_everything(self) -> bool:
        return self.size == self._cache.gram.size

    def _from_whole(self, whole, rows, columns) -> np.ndarray:
        if self._is_everything():
            return whole[rows][:, columns]
        if _is_all(rows) and _is_all(columns):
            return self._assemble(lambda first, second: whole[first, second])
        index = self._index()
        return whole[np.ix_(index[rows], index[columns])]

    def _from_blocks(self) -> np.ndarray:
        """All of this union's matrix, from the blocks between its groups."""
        if len(self._cache.groups) == 1:
            return self._cache.gram.block(slice(None))
        number = dict(zip((s.start for s in self._slices), self._groups, strict=True))
        return self._assemble(
            lambda first, second: self._cache.between(number[first.start], number[second.start])
        )

    def _assemble(self, block) -> np.ndarray:
        """One matrix of ``block(first, second)`` over all pairs of this union's slices."""
        out = np.empty((self.size, self.size))
        top = 0
        for first in self._slices:
            height, left = first.stop - first.start, 0
            for second in self._slices:
                width = second.stop - second.start
                out[top : top + height, left : left + width] = block(first, second)
                left += width
            top += height
        return out

    def _from_rows(self, rows: np.ndarray) -> np.ndarray:
        """Rows by way of a store: the shared one where this union has most of the rows."""
        shared = 2 * self.size > self._cache.gram.size
        if self._store is None:
            gram = self._cache.gram if shared else self.subset(np.arange(self.size))
            self._store = self._cache.row_store(gram, everything=shared)
        if not shared:
            return self._store.rows(rows)
        if self._is_everything():
            return self._store.rows(self._index()[rows])
        return self._store.rows(self._index()[rows])[:, self._index()]


def _is_all(index) -> bool:
    return isinstance(index, slice) and index == slice(None)


class RowStore:
    """Rows of a Gram matrix in a fixed number of slots; the least recently asked for is replaced.

    Parameters
    ----------
    gram : Gram
    n_slots : int
        How many rows are kept. Asking for more at once computes without keeping.
    """

    def __init__(self, gram: Gram, n_slots: int):
        self.gram = gram
        self.nbytes = n_slots * gram.size * ITEM
        self._slots = np.empty((n_slots, gram.size))
        self._slot_of = np.full(gram.size, -1)
        self._row_in = np.full(n_slots, -1)
        self._asked = np.zeros(n_slots, dtype=np.int64)
        self._clock = 0
        self._lock = threading.Lock()

    def rows(self, index: np.ndarray) -> np.ndarray:
        """The rows ``index`` (distinct) of the matrix, float64, a copy."""
        with self._lock:
            self._clock += 1
            slots = self._slot_of[index]
            held = slots >= 0
            self._asked[slots[held]] = self._clock
            out = np.empty((len(index), self.gram.size))
            np.take(self._slots, slots[held], axis=0, out=out[: held.sum()])
            missing = index[~held]
            if len(missing):
                out[held.sum() :] = self.gram.block(missing)
                self._keep(missing, out[held.sum() :])
        order = np.empty(len(index), dtype=np.intp)
        order[np.flatnonzero(held)] = np.arange(held.sum())
        order[np.flatnonzero(~held)] = np.arange(held.sum(), len(index))
        return out[order] if not held.all() else out

    def _keep(self, index: np.ndarray, rows: np.ndarray) -> None:
        """Put rows into the slots asked for longest ago, but none of the current request's."""
        free = np.flatnonzero(self._asked < self._clock)
        kept = min(len(free), len(index))
        oldest = free[np.argsort(self._asked[free], kind="stable")[:kept]]
        evicted = self._row_in[oldest]
        self._slot_of[evicted[evicted >= 0]] = -1
        self._slots[oldest] = rows[:kept]
        self._row_in[oldest] = index[:kept]
        self._slot_of[index[:kept]] = oldest
        self._asked[oldest] = self._clock
