"""One memory for all problems over the same rows.

One-vs-one, one-vs-rest, folds and rounds solve many problems whose Gram matrices overlap. A
`GramCache` is told how the rows fall into consecutive groups (classes, folds); a problem asks it
for the Gram matrix of a union of groups and gets a view that fills, and is served from, what the
others have computed, within one budget of bytes.
"""

import threading
import weakref
from collections import OrderedDict
from itertools import accumulate, pairwise

import numpy as np

from widemargin.kernels.dense import Square
from widemargin.kernels.gram import KernelGram, MatrixGram, _is_all

_FEWEST_ROWS = 2
_MOST_ROWS = 1024


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
    jobs : int, default=1
        How many problems will be solved at once, and so may ask for rows while others use theirs.
        They share the budget, but each gets room for the rows it works on, so that what is
        computed does not depend on this.
    """

    def __init__(
        self,
        gram: KernelGram | MatrixGram,
        cache_bytes: int,
        group_sizes=None,
        shared: bool = False,
        jobs: int = 1,
    ):
        sizes = [gram.size] if group_sizes is None else list(group_sizes)
        if sum(sizes) != gram.size:
            raise ValueError(f"group_sizes must add up to {gram.size} rows, got {sum(sizes)}.")
        self.gram = gram
        self.cache_bytes = int(cache_bytes)
        self.shared = shared
        self.jobs = jobs
        self.groups = [slice(a, b) for a, b in pairwise(accumulate(sizes, initial=0))]
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
        return self._block_bytes + self._fixed_bytes()

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
            if self._whole is None and self.cache_bytes >= self._row_bytes + 8 * self.gram.size**2:
                self._evict(8 * self.gram.size**2)
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
            if key not in self._blocks and block.nbytes <= self.cache_bytes - self._fixed_bytes():
                self._evict(block.nbytes)
                self._blocks[key] = block
                self._block_bytes += block.nbytes
        return block

    def row_ring(self, gram: KernelGram | MatrixGram, exact: bool = False) -> "RowRing":
        """A ring of rows of ``gram`` in what is left of the budget.

        Rows are float32 and may come from dense rows in place of sparse ones, unless they are to
        be ``exact`` or too large for that.
        """
        with self._lock:
            exact = exact or not gram.fits_single()
            row_bytes = (8 if exact else 4) * gram.size
            budget = self.cache_bytes // 2 if self.shared else self.cache_bytes
            share = budget if self.shared and gram is self.gram else budget // self.jobs
            if self.cache_bytes - self._fixed_bytes() < row_bytes * min(gram.size, _MOST_ROWS):
                self._whole = None
            places = min(share, self.cache_bytes - self._fixed_bytes()) // row_bytes
            at_once = places if self.jobs == 1 else budget // row_bytes
            ring = RowRing(gram if exact else gram.single(self.cache_bytes // 4), places, at_once)
            self._evict(ring.nbytes)
            self._row_bytes += ring.nbytes
            weakref.finalize(ring, _release, weakref.ref(self), ring.nbytes)
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

    def _fixed_bytes(self) -> int:
        """Bytes that eviction does not free."""
        return self._row_bytes + (0 if self._whole is None else self._whole.nbytes)

    def _room(self) -> int:
        return self.cache_bytes - self.nbytes

    def _evict(self, wanted: int) -> None:
        while self._blocks and self._room() < wanted:
            _, block = self._blocks.popitem(last=False)
            self._block_bytes -= block.nbytes


def _release(cache: "weakref.ref[GramCache]", nbytes: int) -> None:
    """Tell the cache, if it is still there, that a ring of rows is gone."""
    owner = cache()
    if owner is not None:
        with owner._lock:
            owner._row_bytes -= nbytes


class UnionGram:
    """The Gram matrix of some groups of a `GramCache`; a `Gram`."""

    def __init__(self, cache: GramCache, groups: tuple[int, ...]):
        self._cache = cache
        self._groups = groups
        self._slices = [cache.groups[g] for g in groups]
        self.size = sum(s.stop - s.start for s in self._slices)
        self.positive_semidefinite = cache.gram.positive_semidefinite
        self._ring: RowRing | None = None
        self._sharp = False

    @property
    def most_rows(self) -> int:
        return self._rows_from().most_rows

    def diagonal(self) -> np.ndarray:
        return np.concatenate([self._cache.diagonal()[s] for s in self._slices])

    @property
    def square(self) -> Square | None:
        """The whole of it, to be copied by rows from the cache's matrix, where that has one."""
        whole = self._cache.whole()
        if whole is None:
            return None
        return Square(whole) if self._is_everything() else Square(whole, self._index())

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
        if not self._shares_rows() or (self._is_everything() and self._cache.jobs == 1):
            return ring.rows(index)
        return ring.copied_rows(self._index()[index], self._index()), np.arange(len(index))

    def narrow(self, index: np.ndarray) -> "NarrowGram":
        """The Gram matrix of some rows; this one gives up its own for the time being."""
        self._ring = None
        part = self._cache.gram.subset(self._index()[index])
        return NarrowGram(self._cache, part, self._sharp)

    def sharpen(self) -> None:
        """Serve rows in float64 from now on."""
        self._ring = None
        self._sharp = True

    def _rows_from(self) -> "RowRing":
        """The shared ring where this union has most of the rows, else one of its own."""
        if self._ring is None:
            if self._shares_rows():
                self._ring = self._cache.shared_ring()
            else:
                own = self._cache.gram.subset(self._index())
                self._ring = self._cache.row_ring(own, exact=self._sharp)
        return self._ring

    def _shares_rows(self) -> bool:
        return 2 * self.size > self._cache.gram.size and not self._sharp

    def _index(self) -> np.ndarray:
        return np.concatenate([np.arange(s.start, s.stop) for s in self._slices])

    def _is_everything(self) -> bool:
        return self._groups == tuple(range(len(self._cache.groups)))

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

    def __init__(self, cache: GramCache, gram: KernelGram | MatrixGram, sharp: bool):
        self._cache = cache
        self._gram = gram
        self._ring: RowRing | None = None
        self._sharp = sharp
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
        return NarrowGram(self._cache, self._gram.subset(index), self._sharp)

    def sharpen(self) -> None:
        """Serve rows in float64 from now on."""
        self._ring = None
        self._sharp = True

    def _rows_from(self) -> "RowRing":
        if self._ring is None:
            self._ring = self._cache.row_ring(self._gram, exact=self._sharp)
        return self._ring


class RowRing:
    """The rows of a Gram matrix that were asked for last, as many as there is room for.

    Rows that are asked for and missing are computed together, straight into the places of those
    that came in longest ago.

    Parameters
    ----------
    gram : KernelGram or MatrixGram
    n_places : int
        How many rows are kept, if they are no fewer than `most_rows`, and at most all of them.
    most_rows : int, optional
        How many rows may be asked for at once, between 2 and 1024; ``n_places`` when not given.
    """

    def __init__(self, gram: KernelGram | MatrixGram, n_places: int, most_rows: int | None = None):
        self.gram = gram
        wanted = n_places if most_rows is None else most_rows
        self.most_rows = min(max(wanted, _FEWEST_ROWS), _MOST_ROWS, gram.size)
        self._places = min(max(n_places, self.most_rows), gram.size)
        self._lock = threading.RLock()
        self._held = gram.matrix if isinstance(gram, MatrixGram) else None
        if self._held is not None:
            self.nbytes = 0
            return
        self._array = np.empty((self._places, gram.size), dtype=gram.X.dtype)
        self.nbytes = self._array.nbytes
        self._place_of = np.full(gram.size, -1)
        self._row_at = np.full(self._places, -1)
        self._next = 0

    def copied_rows(self, index: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Some columns of rows, out of reach of others who ask for rows at the same time."""
        with self._lock:
            array, places = self.rows(index)
            return array[np.ix_(places, columns)]

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """An array and the places in it of the rows ``index`` (distinct, at most `most_rows`).

        They stay there until rows are asked for again.
        """
        if self._held is not None:
            return self._held, index
        with self._lock:
            start, missing = self._make_room(index)
            if len(missing):
                stop = start + len(missing)
                # A row that was in the way of others moves: its old place is empty now.
                left = self._place_of[missing]
                self._row_at[left[left >= 0]] = -1
                self._place_of[missing] = -1
                evicted = self._row_at[start:stop]
                self._place_of[evicted[evicted >= 0]] = -1
                self.gram.block(missing, out=self._array[start:stop])
                self._row_at[start:stop] = missing
                self._place_of[missing] = np.arange(start, stop)
                self._next = stop
            return self._array, self._place_of[index]

    def _make_room(self, index: np.ndarray) -> tuple[int, np.ndarray]:
        """Where to put what is missing, and what that is once its places are given up."""
        places = self._place_of[index]
        missing = places < 0
        while True:
            count = np.count_nonzero(missing)
            start = self._next if self._next + count <= self._places else 0
            lost = missing | ((places >= start) & (places < start + count))
            if np.count_nonzero(lost) == count:
                return start, index[missing]
            missing = lost
