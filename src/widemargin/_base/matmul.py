"""Matrix products with the same bits for any number of threads and any choice of rows.

The rounding of an entry of ``A @ B.T`` in BLAS depends on the shape of the call: on the position of
the entry among the blocks of the inner loops, on the rows left over at the edge, on the number of
threads. A row of kernel values would then change in its last bits with the other rows that are
computed in the same call. Here a product is cut into tiles of shapes for which, by a trial with the
installed BLAS, all positions are rounded alike. BLAS runs on one thread, and the tiles are computed
in parallel.
"""

import functools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from widemargin._base.options import matmul_options as options
from widemargin._base.threads import for_each, single_threaded_blas

_thread_buffers = threading.local()


def tiled_product(
    A: np.ndarray, B: np.ndarray, out: np.ndarray | None = None, finish: Callable | None = None
) -> np.ndarray:
    """Return ``A @ B.T``, each entry of which depends on its own two rows only, to the last bit.

    Parameters
    ----------
    A : ndarray of shape (m, k)
        C-contiguous, float32 or float64.
    B : ndarray of shape (n, k)
        C-contiguous, of the same dtype.
    out : ndarray of shape (m, n), default=None
        Array to write the product to.
    finish : callable, default=None
        Called as ``finish(tile, rows, columns)`` when the view ``tile = out[rows, columns]`` is
        complete and still in cache, on the thread that computed it. The last two are slices.

    Returns
    -------
    out : ndarray of shape (m, n)
    """
    if out is None:
        out = np.empty((A.shape[0], B.shape[0]), dtype=A.dtype)
    if np.may_share_memory(A, B):
        A = A.copy()  # NumPy computes the product of a matrix with itself by another routine
    layout = _layout(A.dtype, A.shape[1])
    row_panels = _panels(A, layout.height, layout.row_quantum, 0)
    column_step = layout.width - 2 * layout.guard
    column_panels = _panels(B, column_step, layout.column_quantum, layout.guard)

    def make_tile(columns: slice, right: np.ndarray, rows: slice, left: np.ndarray) -> None:
        target = out[rows, columns]
        fits = target.shape == (left.shape[0], right.shape[0])
        if fits and target.strides[1] == target.itemsize:
            np.matmul(left, right.T, out=target)
        else:
            scratch = _scratch(left.shape[0], right.shape[0], out.dtype)
            np.matmul(left, right.T, out=scratch)
            target[...] = scratch[: target.shape[0], layout.guard : layout.guard + target.shape[1]]
        if finish is not None:
            finish(target, rows, columns)

    if out.size:
        tiles = [(*right, *left) for right in column_panels for left in row_panels]
        _run(make_tile, tiles, row_panels[0][1].shape[0] * column_panels[0][1].size)
    return out


def tiled_multiply(A: np.ndarray, V: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Return ``A @ V`` for few columns, with the properties of `tiled_product`.

    Parameters
    ----------
    A : ndarray of shape (m, k)
        C-contiguous, float32 or float64.
    V : ndarray of shape (k, p)
        Of the same dtype; p is small.
    out : ndarray of shape (m, p), default=None
        Array to write the product to.

    Returns
    -------
    out : ndarray of shape (m, p)
    """
    if out is None:
        out = np.empty((A.shape[0], V.shape[1]), dtype=A.dtype)
    # The few columns become rows, the dimension that is padded least.
    tiled_product(np.ascontiguousarray(V.T), A, out=out.T)
    return out


def multiply_vectors(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return ``A @ B.T`` for very few rows of B, with the properties of `tiled_product`.

    A tile would be padded. `numpy.einsum` sums rows in the same order, unlike BLAS, as long as they
    fit into its buffer.

    Parameters
    ----------
    A : ndarray of shape (m, k)
        C-contiguous, float64.
    B : ndarray of shape (p, k)
        Of the same dtype.

    Returns
    -------
    out : ndarray of shape (m, p)
    """
    out = np.empty((A.shape[0], len(B)))
    step, length = max(1, options.vector_work // max(1, A.shape[1])), options.buffered_values

    def multiply(start: int) -> None:
        rows = slice(start, start + step)
        for k, vector in enumerate(B):
            np.einsum("ij,j->i", A[rows, :length], vector[:length], out=out[rows, k])
            for j in range(length, len(vector), length):
                piece = slice(j, j + length)
                out[rows, k] += np.einsum("ij,j->i", A[rows, piece], vector[piece])

    for_each(multiply, range(0, len(A), step))
    return out


class _Layout(NamedTuple):
    """Shapes of tiles in which all positions are rounded alike.

    A tile has a multiple of ``row_quantum`` rows, at most ``height``, and a multiple of
    ``column_quantum`` columns, at most ``width``. Its first and last ``guard`` columns are
    computed and discarded.
    """

    row_quantum: int
    column_quantum: int
    guard: int
    height: int = options.tile_height
    width: int = options.tile_width


# In order of cost. Some BLAS libraries have other routines for small products: then all tiles must
# have one shape. In the last layout at least the grid fixes the positions.
_LAYOUTS = [
    _Layout(row_quantum=4, column_quantum=16, guard=0),
    _Layout(row_quantum=12, column_quantum=32, guard=8),
    _Layout(row_quantum=48, column_quantum=96, guard=16),
    _Layout(row_quantum=48, column_quantum=options.tile_width, guard=0, height=48),
    _Layout(row_quantum=48, column_quantum=options.tile_width, guard=16, height=48),
    _Layout(row_quantum=options.tile_height, column_quantum=options.tile_width, guard=0),
]


def _layout(dtype: np.dtype, k: int) -> _Layout:
    # BLAS cuts long rows into blocks, so that longer ones are like shorter ones.
    return _tried_layout(dtype, min(k, 400))


@functools.cache
def _tried_layout(dtype: Any, k: int) -> _Layout:
    """Return the first layout in which the installed BLAS rounds all positions alike."""
    generator = np.random.default_rng(0)
    left = generator.random((options.tile_height, k), dtype=dtype) - dtype.type(0.5)
    right = generator.random((options.tile_width, k), dtype=dtype) - dtype.type(0.5)
    with single_threaded_blas():
        for layout in _LAYOUTS[:-1]:
            if _rounds_alike(layout, left[: layout.height], right, generator):
                return layout
    return _LAYOUTS[-1]


def _rounds_alike(layout: _Layout, left: np.ndarray, right: np.ndarray, generator: Any) -> bool:
    """Return whether tiles of all sizes, with rows permuted, repeat the bits of the largest."""
    largest = np.matmul(left, right.T)
    for size in (1, 1, 2, 3, 5, 7):
        height = min(size * layout.row_quantum, layout.height)
        width = min(size * layout.column_quantum, layout.width)
        rows = generator.integers(layout.height, size=height)
        columns = generator.integers(layout.guard, layout.width - layout.guard, size=width)
        tile = np.matmul(left[rows], right[columns].T)
        inner = slice(layout.guard, width - layout.guard)
        if not np.array_equal(tile[:, inner], largest[rows[:, np.newaxis], columns[inner]]):
            return False
    return True


def _panels(matrix: np.ndarray, step: int, quantum: int, guard: int) -> list[tuple]:
    """Cut the rows of ``matrix`` into steps.

    Return for each its slice and a matrix with these rows, ``guard`` rows before them and at least
    as many after them, a multiple of ``quantum`` together. The rows around are those of ``matrix``,
    or zeros.
    """
    panels = []
    length = len(matrix)
    for start in range(0, length, step):
        stop = min(start + step, length)
        first = start - guard
        last = first + -(-(stop - first + guard) // quantum) * quantum
        if first >= 0 and last <= length:
            panel = matrix[first:last]
        else:
            panel = np.zeros((last - first, matrix.shape[1]), dtype=matrix.dtype)
            present = matrix[max(first, 0) : min(last, length)]
            offset = max(-first, 0)
            panel[offset : offset + len(present)] = present
        panels.append((slice(start, stop), panel))
    return panels


def _scratch(rows: int, columns: int, dtype: np.dtype) -> np.ndarray:
    """Return an uninitialized matrix that the calling thread may use until its next call."""
    buffers = vars(_thread_buffers)
    if dtype.char not in buffers:
        buffers[dtype.char] = np.empty(options.tile_height * options.tile_width, dtype=dtype)
    return buffers[dtype.char][: rows * columns].reshape(rows, columns)


def _run(make_tile: Callable[..., None], tiles: list[tuple], tile_work: int) -> None:
    is_serial = tile_work <= options.serial_work
    limit: AbstractContextManager = nullcontext() if is_serial else single_threaded_blas()
    step = max(1, options.portion_work // max(1, tile_work))

    def make_portion(start: int) -> None:
        # Where BLAS runs on OpenMP, each thread has its own setting.
        with limit:
            for tile in tiles[start : start + step]:
                make_tile(*tile)

    with limit:
        for_each(make_portion, range(0, len(tiles), step))
