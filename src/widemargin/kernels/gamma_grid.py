"""Whole Gram matrices of the same samples for several values of gamma.

Kernels that differ in gamma are functions of the same inner products or distances between samples.
These are computed once if there is enough memory to keep them.
"""

from collections.abc import Callable, Collection, Iterator

import numpy as np

from widemargin._base.options import kernel_options as options
from widemargin._base.threads import for_each
from widemargin.kernels.gram import KernelGram, MatrixGram


def gram_matrices(
    gram_at: Callable[[float], KernelGram | MatrixGram],
    gammas: Collection[float],
    cache_bytes: float,
) -> Iterator[MatrixGram | None]:
    """Generate the whole Gram matrix for each gamma, valid until the next one is requested.

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
        elif n_matrices < 2 or len(gammas) == 1:
            matrix = None  # free the previous one first
            matrix = gram.block(slice(None))
            yield MatrixGram(matrix, gram.positive_semidefinite)
        else:
            if common is None or matrix is None:
                common = np.empty((gram.size, gram.size), dtype=gram.X.dtype)
                gram.function.fill(gram.X, gram.X, common)
                matrix = np.empty_like(common)
            _finish(gram, common, matrix)
            yield MatrixGram(matrix, gram.positive_semidefinite)


def _finish(gram: KernelGram, common: np.ndarray, out: np.ndarray) -> None:
    """Compute the Gram matrix from inner products or distances."""

    def finish(start: int) -> None:
        rows = slice(start, start + options.finish_rows)
        out[rows] = common[rows]
        gram.function.finish(out, rows, slice(None), gram.norms, gram.norms)

    for_each(finish, range(0, len(out), options.finish_rows))
