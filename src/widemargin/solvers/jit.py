"""Compiled functions that several solvers share: rows of matrices, random numbers.

Compiled functions take a matrix as the three arrays of `row_arrays`, so that one function serves
both formats. A vector of weights has one entry more than the matrix has columns: the last one is
the weight of the constant feature, which these functions leave to their callers.
Random numbers come from a state that the caller keeps.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.jit import compiled, uncompiled

_64_BITS = (1 << 64) - 1  # Python's integers do not overflow: a mask does it for them


def row_arrays(X: Any) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return the values, column indices and row starts of X; a dense matrix has values only."""
    if not sp.issparse(X):
        return X.ravel(), None, None
    # Unsigned indices spare compiled code the check for indices that count from the end.
    return X.data, X.indices.view(np.uint32), X.indptr.view(np.uint32)


@compiled
def copy_entries(source, target):
    """Copy a vector. For ``target[:] = source`` numba also compiles a message for other shapes."""
    for k in range(target.shape[0]):
        target[k] = source[k]


@compiled
def add_multiple(factor, source, target, first):
    """Add factor * source to the entries of ``target`` from ``first`` on."""
    for k in range(source.shape[0]):
        target[first + k] += factor * source[k]


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


def random_state(seed: int) -> np.ndarray:
    """Return the state of a generator: an array of one 64-bit number."""
    return np.array([seed ^ 0x9E3779B97F4A7C15], dtype=np.uint64)


@compiled
def random_below(random, bound):
    """Return a random integer from 0 to ``bound - 1``, by Marsaglia's xorshift."""
    z = random[0]
    z ^= z << np.uint64(13)
    z ^= z >> np.uint64(7)
    z ^= z << np.uint64(17)
    random[0] = z
    # The high bits as a fraction of the bound: no division.
    return np.int64(((z >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@compiled
def draw(order, position, end, random):
    """Exchange the entry at ``position`` with a random one from there to ``end``; return it."""
    other = position + random_below(random, end - position)
    i = order[other]
    order[other] = order[position]
    order[position] = i
    return i


@compiled
def shuffle(order, count, random):
    """Shuffle the first ``count`` entries of ``order`` in place."""
    for position in range(count):
        draw(order, position, count, random)


# The same for Python's numbers, which run until the functions above are compiled. The sums have the
# same order.


@uncompiled(copy_entries)
def _copy_entries_by_vectors(source, target):
    target[:] = source


@uncompiled(add_multiple)
def _add_multiple_by_vectors(factor, source, target, first):
    target[first : first + len(source)] += factor * source


@uncompiled(dot_row)
def _dot_row_of_numbers(data, indices, indptr, i, weights, lanes):
    length, total = weights.shape[0] - 1, 0.0
    if indices is not None:
        first, last = indptr[i], indptr[i + 1]
        for value, j in zip(data[first:last], indices[first:last], strict=True):
            total += value * weights[j]
        return total
    if length >= 64:
        return dot_row.__wrapped__(data, indices, indptr, i, weights, lanes)
    for value, weight in zip(data[i * length : (i + 1) * length], weights, strict=False):
        total += value * weight
    return total


@uncompiled(add_row)
def _add_row_of_numbers(data, indices, indptr, i, factor, weights):
    if indices is not None:
        first, last = indptr[i], indptr[i + 1]
        for value, j in zip(data[first:last], indices[first:last], strict=True):
            weights[j] += factor * value
        return
    length = weights.shape[0] - 1
    row = data[i * length : (i + 1) * length]
    weights[:length] = [
        weight + factor * value for weight, value in zip(weights, row, strict=False)
    ]


@uncompiled(random_below)
def _random_number_below(random, bound):
    z = _next_number(int(random[0]))
    random[0] = z
    return ((z >> 32) * int(bound)) >> 32


@uncompiled(shuffle)
def _shuffle_by_numbers(order, count, random):
    z = int(random[0])
    for position in range(count):
        z = _next_number(z)
        other = position + (((z >> 32) * (count - position)) >> 32)
        order[position], order[other] = order[other], order[position]
    random[0] = z


def _next_number(z: int) -> int:
    z ^= (z << 13) & _64_BITS
    z ^= z >> 7
    return z ^ ((z << 17) & _64_BITS)
