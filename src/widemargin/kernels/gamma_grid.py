"""Whole Gram matrices of the same rows for one gamma after another.

Kernels that differ in gamma are made of the same inner products or distances between rows: these
are computed once where there is room to keep them.
"""

from collections.abc import Collection, Iterator

import numpy as np

from widemargin._base.threads import for_each
from widemargin.kernels.functions import KernelFunction, city_block_distances
from widemargin.kernels.gram import KernelGram, MatrixGram

_STRIPE = 16


def gram_matrices(
    gram_at, gammas: Collection[float], cache_bytes: float
) -> Iterator[MatrixGram | None]:
    """The whole Gram matrix for every gamma, valid until the next one is asked for.

    Parameters
    ----------
    gram_at : callable
        ``gram_at(gamma)`` is a `KernelGram`, or a `MatrixGram`, which is passed on.
    gammas : collection of float
    cache_bytes : float
        Memory that matrices may take. Without room for two, what they have in common is computed
        every time.

    Yields
    ------
    MatrixGram or None
        None where there is no room for one.
    """
    common = matrix = None
    for gram in map(gram_at, gammas):
        room = cache_bytes // (8 * gram.size**2)
        if isinstance(gram, MatrixGram):
            yield gram
        elif room < 1:
            yield None
        elif room < 2 or len(gammas) == 1:
            matrix = None  # let go of the last one first
            matrix = gram.block(slice(None))
            yield MatrixGram(matrix, gram.positive_semidefinite)
        else:
            if common is None:
                common = _common_part(gram)
                matrix = np.empty_like(common)
            _finish(gram, common, matrix)
            yield MatrixGram(matrix, gram.positive_semidefinite)


def _common_part(gram: KernelGram) -> np.ndarray:
    """What the Gram matrices of all gammas are made of: inner products, or distances."""
    X = gram.X
    if gram.function.name != "laplacian":
        return KernelFunction("linear").matrix(X, X)
    distances = city_block_distances(X, X)
    common = np.empty((X.shape[0], X.shape[0]))
    _in_stripes(lambda rows: np.copyto(common[rows], distances(rows)), common)
    return common


def _finish(gram: KernelGram, common: np.ndarray, out: np.ndarray) -> None:
    """Make the Gram matrix of the common part."""
    if gram.function.name == "laplacian":

        def finish(rows):
            stripe = np.multiply(common[rows], -gram.function.gamma, out=out[rows])
            np.exp(stripe, out=stripe)

    else:
        from_products = gram.function.finisher(out, gram.norms, gram.norms)

        def finish(rows):
            out[rows] = common[rows]
            from_products(None, rows, slice(None))

    _in_stripes(finish, out)


def _in_stripes(function, matrix: np.ndarray) -> None:
    for_each(lambda top: function(slice(top, top + _STRIPE)), range(0, len(matrix), _STRIPE))
