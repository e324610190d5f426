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

from widemargin.kernels.gram import KernelGram, MatrixGram, _is_all

_FEWEST_ROWS = 2


class GramCache:
    """Blocks and rows of one Gram matrix, computed once and kept while the budget lasts.

    For small problems, which are solved on all of their matrix, it keeps the whole matrix where
    that fits, else the blocks between groups; for large ones, rows in float32.

    Parameters
    ----------
    gram : KernelGram or MatrixGram
        Where the values come from.
    cache_bytes : int
        Memory that what is kept may take; two rows are kept even so.
    group_sizes : sequence of int, optional
        Sizes of the consecutive groups of rows; one group when not given.
    shared : bool, default=False
        Whether several problems over all rows are to come.
    """

    def __init__(
        self, gram: KernelGram | MatrixGram, cache_bytes: int, group_sizes=None, shared=False
    ):
        sizes = [gram.size] if group_sizes is None else list(group_sizes)
        if sum(sizes) != gram.size:
            raise ValueError(f"group_sizes must add up to {gram.size} rows, got {sum(sizes)}.")
        self.gram = gram
        self.cache_bytes = int(cache_bytes)
        self.shared = shared
        ends = np.cumsum([0, *sizes]).tolist()
        self.groups = [slice(a, b) for a, b in pairwise(ends)]
        self._lock = threading.RLock()
        self._whole: np.ndarray | None = None
        self._diagonal: np.ndarray | None = None
        self._blocks: OrderedDict[tuple[int, int], np.ndarray] = OrderedDict()
        self._block_bytes = 0
        self._row_bytes = 0
        self._shared_ring: weakref.ref | None = None
        self._kept_ring: RowRing | None = None

    @property
    def nbytes(self) -> int:
        """Bytes held now."""
        whole = 0 if self._whole is None else self._whole.nbytes
        return self._block_bytes + self._row_bytes + whole

    def of(self, *groups: int) -> "UnionGram":
        """The Gram matrix of the rows of ``groups`` (all of them when none is named)."""
        return UnionGram(self, groups or tuple(range(len(self.groups))))

    def diagonal(self) -> np.ndarray:
        with self._lock:
            if self._diagonal is None:
                self._diagonal = self.gram.diagonal()
            return self._diagonal

    def whole(self) -> np.ndarray | None:
        """The whole matrix in float64 if it fits into the budget."""
        if isinstance(self.gram, MatrixGram):
            return self.gram.matrix
        with self._lock:
            if self._whole is None and self._room() >= 8 * self.gram.size**2:
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
                self._evict(block.nbytes)
                self._blocks[key] = block
                self._block_bytes += block.nbytes
        return block

    def row_ring(self, gram: KernelGram | MatrixGram, exact: bool = False) -> "RowRing":
        """A ring of rows of ``gram`` in what is left of the budget.

        Rows are float32 and may come from dense rows in place of sparse ones, unless they are to
        be ``exact``.
        """
        with self._lock:
            room = self.cache_bytes - self._row_bytes
            if gram is self.gram and self.shared:
                room //= 2
            ring = RowRing(
                gram if exact else gram.single(self.cache_bytes),
                room // ((8 if exact else 4) * gram.size),
            )
            self._evict(ring.nbytes)
            self._row_bytes += ring.nbytes
            weakref.finalize(ring, self._release, ring.nbytes)
            return ring

    def shared_ring(self) -> "RowRing":
        """The ring of all rows that problems over most of them share.

        Where there are several such problems it lives as long as the cache and takes half of the
        budget, so that each has room for a narrower one.
        """
        with self._lock:
            ring = self._shared_ring() if self._shared_ring is not None else None
            if ring is None:
                ring = self.row_ring(self.gram)
                self._shared_ring = weakref.ref(ring)
                self._kept_ring = ring if self.shared else None
            return ring

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
        self._ring: RowRing | None = None

    @property
    def most_rows(self) -> int:
        return self._rows_from().most_rows

    def diagonal(self) -> np.ndarray:
        return np.concatenate([self._cache.diagonal()[s] for s in self._slices])

    def block(self, rows, columns=slice(None)) -> np.ndarray:
        if not (_is_all(rows) and _is_all(columns)):
            index = self._index()
            return self._cache.gram.block(index[rows], index[columns])
        whole = self._cache.whole()
        if whole is not None:
            if self._is_everything():
                return whole
            return self._assemble(lambda first, second: whole[first, second])
        if len(self._groups) == 1:
            return self._cache.gram.block(self._slices[0], self._slices[0])
        number = dict(zip((s.start for s in self._slices), self._groups, strict=True))
        return self._assemble(
            lambda first, second: self._cache.between(number[first.start], number[second.start])
        )

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ring = self._rows_from()
        if ring.gram.size == self.size:
            return ring.rows(index)
        own = self._index()
        array, places = ring.rows(own[index])
        return np.ascontiguousarray(array[places][:, own]), np.arange(len(index))

    def narrow(self, index: np.ndarray) -> "NarrowGram":
        """The Gram matrix of some rows; this one gives up its own for the time being."""
        self._ring = None
        return NarrowGram(self._cache, self._cache.gram.subset(self._index()[index]))

    def sharpen(self) -> None:
        """Serve rows in float64 from now on."""
        self._ring = None
        self._ring = self._cache.row_ring(self._cache.gram.subset(self._index()), exact=True)

    def _rows_from(self) -> "RowRing":
        """The shared ring where this union has most of the rows, else one of its own."""
        if self._ring is None:
            if 2 * self.size > self._cache.gram.size:
                self._ring = self._cache.shared_ring()
            else:
                self._ring = self._cache.row_ring(self._cache.gram.subset(self._index()))
        return self._ring

    def _index(self) -> np.ndarray:
        return np.concatenate([np.arange(s.start, s.stop) for s in self._slices])

    def _is_everything(self) -> bool:
        return self.size == self._cache.gram.size

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


class NarrowGram:
    """The Gram matrix of rows that a problem has narrowed down to; a `Gram`."""

    def __init__(self, cache: GramCache, gram: KernelGram | MatrixGram):
        self._cache = cache
        self._gram = gram
        self._ring: RowRing | None = None
        self.size = gram.size
        self.positive_semidefinite = gram.positive_semidefinite

    @property
    def most_rows(self) -> int:
        return self._rows_from().most_rows

    def diagonal(self) -> np.ndarray:
        return self._gram.diagonal()

    def block(self, rows, columns=slice(None)) -> np.ndarray:
        return self._gram.block(rows, columns)

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._rows_from().rows(index)

    def narrow(self, index: np.ndarray) -> "NarrowGram":
        """The Gram matrix of some rows; this one gives up its own for the time being."""
        self._ring = None
        return NarrowGram(self._cache, self._gram.subset(index))

    def sharpen(self) -> None:
        """Serve rows in float64 from now on."""
        self._ring = None
        self._ring = self._cache.row_ring(self._gram, exact=True)

    def _rows_from(self) -> "RowRing":
        if self._ring is None:
            self._ring = self._cache.row_ring(self._gram)
        return self._ring


class RowRing:
    """The rows of a Gram matrix that were asked for last, as many as there is room for.

    Rows that are asked for and missing are computed together, straight into the places of those
    that came in longest ago.

    Parameters
    ----------
    gram : KernelGram or MatrixGram
    n_places : int
        How many rows are kept; at least two and at most all of them.
    """

    def __init__(self, gram: KernelGram | MatrixGram, n_places: int):
        self.gram = gram
        self.most_rows = min(max(n_places, _FEWEST_ROWS), gram.size)
        self._held = gram.matrix if isinstance(gram, MatrixGram) else None
        if self._held is not None:
            self.nbytes = 0
            return
        self._array = np.empty((self.most_rows, gram.size), dtype=gram.X.dtype)
        self.nbytes = self._array.nbytes
        self._place_of = np.full(gram.size, -1)
        self._row_at = np.full(self.most_rows, -1)
        self._next = 0
        self._lock = threading.Lock()

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """An array and the places in it of the rows ``index`` (distinct, at most `most_rows`)."""
        if self._held is not None:
            return self._held, index
        with self._lock:
            start, missing = self._make_room(index)
            if len(missing):
                stop = start + len(missing)
                self._place_of[self._row_at[start:stop][self._row_at[start:stop] >= 0]] = -1
                self.gram.block(missing, out=self._array[start:stop])
                self._row_at[start:stop] = missing
                self._place_of[missing] = np.arange(start, stop)
                self._next = stop
            return self._array, self._place_of[index]

    def _make_room(self, index: np.ndarray) -> tuple[int, np.ndarray]:
        """Where to put what is missing, and what that is once its places are given up."""
        missing = index[self._place_of[index] < 0]
        while True:
            start = self._next if self._next + len(missing) <= self.most_rows else 0
            places = self._place_of[index]
            lost = (places < 0) | ((places >= start) & (places < start + len(missing)))
            if np.count_nonzero(lost) == len(missing):
                return start, missing
            missing = index[lost]
