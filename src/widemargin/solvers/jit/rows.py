"""Compiled access to the rows of a dense or CSR matrix.

Compiled functions take a matrix as the three arrays of `row_arrays`, so that one function serves
both formats. A vector of weights has one entry more than the matrix has columns: the last one is
the weight of the constant feature, which these functions leave to their callers.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.jit import compiled


def row_arrays(X: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return the values, column indices and row starts of X; a dense matrix has values only."""
    if not sp.issparse(X):
        return X.ravel(), None, None
    # Unsigned indices spare compiled code the check for indices that count from the end.
    return X.data, X.indices.view(np.uint32), X.indptr.view(np.uint32)


def count_entries(X: Any) -> int:
    """Return how many values are stored in X."""
    return X.nnz if sp.issparse(X) else X.size


@compiled
def row_ends(indices, indptr, i, length):
    """Return the positions at which the values of row i begin and end."""
    if indices is None:
        return i * length, (i + 1) * length
    return np.int64(indptr[i]), np.int64(indptr[i + 1])


@compiled
def column_of(indices, p, first):
    """Return the column of the value at position p, in a row whose values begin at ``first``."""
    return p - first if indices is None else indices[p]


@compiled
def dot_row(data, indices, indptr, i, weights, lanes):
    """Return <w, x_i>.

    Long dense rows are summed in 16 ``lanes`` (an array of that length, for scratch), since a
    single sum has to wait for the result of every addition.
    """
    total = 0.0
    if indices is None:
        length = weights.shape[0] - 1
        row = data[i * length : (i + 1) * length]
        even = length - length % 16 if length >= 64 else 0
        if even > 0:
            lanes[:] = 0.0
            for k in range(0, even, 16):
                for lane in range(16):
                    lanes[lane] += row[k + lane] * weights[k + lane]
            for lane in range(16):
                total += lanes[lane]
        for k in range(even, length):
            total += row[k] * weights[k]
    else:
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * weights[indices[k]]
    return total


@compiled
def add_row(data, indices, indptr, i, factor, weights):
    """Add factor * x_i to w."""
    if indices is None:
        length = weights.shape[0] - 1
        row = data[i * length : (i + 1) * length]
        for k in range(length):
            weights[k] += factor * row[k]
    else:
        for k in range(indptr[i], indptr[i + 1]):
            weights[indices[k]] += factor * data[k]
