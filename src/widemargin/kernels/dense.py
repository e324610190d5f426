"""Dense Gram matrices of small problems, filled row by row when rows are needed.

A problem seldom needs more than the rows of its support vectors: only those are copied from a
larger matrix, or computed.
"""

from typing import Any

import numpy as np

from widemargin._base.jit import compiled, uncompiled
from widemargin.kernels.functions import rbf_row, rbf_row_by_vectors
from widemargin.kernels.gram import Gram, MatrixGram


class DenseMatrix:
    """A dense Gram matrix in float64 whose rows are copied or computed when needed.

    Parameters
    ----------
    source : ndarray of shape (m, m) or (d, n)
        A matrix in memory. With ``gamma`` the features of the samples, from which rows of the rbf
        kernel are computed.
    samples : ndarray of shape (n,), optional
        Which rows and columns of it make this one; all by default.
    gamma : float, optional
    memory : ndarray, optional
        A vector of at least n * n entries to hold the rows: new memory is slow to write to.

    Attributes
    ----------
    matrix : ndarray of shape (n, n)
        Rows that are not ``filled`` have no values yet.
    filled : ndarray of shape (n,)
    """

    def __init__(
        self, source: np.ndarray, samples: np.ndarray | None = None, gamma: float | None = None,
        memory: np.ndarray | None = None,
    ):  # fmt: skip
        self.gamma = 0.0 if gamma is None else gamma
        if gamma is not None:
            self.source, self.samples = source, None
            self._set_empty(source.shape[1], memory)
        elif samples is None:
            matrix = np.ascontiguousarray(source, dtype=np.float64)
            # Compiled code that may fill rows does not take arrays that are read-only.
            self.matrix = self.source = matrix if matrix.flags.writeable else matrix.copy()
            self.samples = np.arange(len(source))
            self.filled = np.ones(len(source), dtype=bool)
        else:
            self.source, self.samples = source, samples
            self._set_empty(len(samples), memory)

    def _set_empty(self, size: int, memory: np.ndarray | None) -> None:
        memory = np.empty(size * size) if memory is None else memory
        self.matrix = memory[: size * size].reshape(size, size)
        self.filled = np.zeros(size, dtype=bool)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None, float]:
        """What compiled code needs to fill rows."""
        return self.matrix, self.filled, self.source, self.samples, self.gamma

    def rows(self, index: np.ndarray) -> np.ndarray:
        """Return the matrix with the rows ``index`` filled."""
        fill_rows(*self.arrays, index)
        return self.matrix

    def subset(self, index: np.ndarray) -> "DenseMatrix":
        """Return the matrix of some of the samples."""
        if self.samples is None:
            return DenseMatrix(np.take(self.source, index, axis=1), gamma=self.gamma)
        return DenseMatrix(self.source, self.samples[index])


class SubsetGram(Gram):
    """The Gram matrix of some samples of one in memory; a `Gram`.

    Parameters
    ----------
    whole : MatrixGram
    samples : ndarray of shape (n,)
        Which of its samples.
    memory : ndarray, optional
        See `DenseMatrix`.
    exact : bool, default=True
        Whether certificates may take sums with twice the digits of float64, which take longer than
        a search, whose gaps nobody sees, takes for the problem.
    """

    float64_rows = True

    def __init__(
        self, whole: MatrixGram, samples: np.ndarray, memory: np.ndarray | None = None,
        exact: bool = True,
    ):  # fmt: skip
        self.whole, self.samples, self.exact = whole, samples, exact
        self.dense = DenseMatrix(whole.matrix, samples, memory=memory)
        self.size = len(samples)
        self.positive_semidefinite = whole.positive_semidefinite

    def diagonal(self) -> np.ndarray:
        return self.whole.diagonal()[self.samples]

    def rounding(self) -> float:
        return self.whole.rounding()

    def block(self, rows: Any, columns: Any = slice(None)) -> np.ndarray:
        return gather(self.whole.matrix, self.samples[rows], self.samples[columns])

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.dense.rows(index), index

    def exact_sums(self, dual: np.ndarray) -> Any:
        return super().exact_sums(dual) if self.exact else None

    def subset(self, index: np.ndarray) -> "SubsetGram":
        return SubsetGram(self.whole, self.samples[index], exact=self.exact)


class SharedGram(SubsetGram):
    """All samples of a Gram matrix in memory, whose rows are not copied.

    Parameters
    ----------
    whole : MatrixGram
    exact : bool, default=True
        See `SubsetGram`.
    """

    def __init__(self, whole: MatrixGram, exact: bool = True):
        self.whole, self.samples, self.exact = whole, np.arange(whole.size), exact
        self.dense, self.size = DenseMatrix(whole.matrix), whole.size
        self.positive_semidefinite = whole.positive_semidefinite


def dense_matrix(gram: Gram) -> DenseMatrix:
    """Return the whole of a Gram matrix, filled when needed if it is part of one in memory."""
    dense = gram.dense
    return DenseMatrix(gram.block(slice(None), slice(None))) if dense is None else dense


def gather(matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return matrix[rows][:, columns], for index arrays, without the interpreter lock."""
    starts = np.flatnonzero(np.diff(columns, prepend=-2) != 1)
    return _gather(matrix, rows, columns, np.append(starts, len(columns)))


@compiled(work=lambda *arguments: 2.0 * len(arguments[-1]) + 0.01 * arguments[0].size)
def fill_rows(matrix, filled, source, samples, gamma, index):
    """Fill those of the rows ``index`` that are not filled yet."""
    for i in index:
        filled_row(matrix, filled, source, samples, gamma, i)


@compiled
def filled_row(matrix, filled, source, samples, gamma, i):
    """Return row i, copied or (without ``samples``) computed first if it is not filled yet."""
    row = matrix[i]
    if not filled[i]:
        filled[i] = True
        if samples is None:
            rbf_row(source, gamma, i, matrix)
        else:
            whole = source[samples[i]]
            for k in range(samples.shape[0]):
                row[k] = whole[samples[k]]
    return row


@compiled(work=lambda matrix, rows, columns, starts: 0.01 * len(rows) * len(columns))
def _gather(matrix, rows, columns, starts):
    """matrix[rows][:, columns] for columns that increase by one between ``starts``."""
    out = np.empty((rows.shape[0], columns.shape[0]))
    for a in range(rows.shape[0]):
        row, target = matrix[rows[a]], out[a]
        for run in range(starts.shape[0] - 1):
            first, last = starts[run], starts[run + 1]
            block, source = target[first:last], row[columns[first] :]
            for b in range(last - first):
                block[b] = source[b]
    return out


@uncompiled(filled_row)
def filled_row_by_vectors(matrix, filled, source, samples, gamma, i):
    """`filled_row` in vector operations."""
    if not filled[i]:
        filled[i] = True
        if samples is None:
            rbf_row_by_vectors(source, gamma, i, matrix)
        else:
            matrix[i] = source[samples[i]][samples]
    return matrix[i]


@uncompiled(_gather)
def _gather_by_vectors(matrix, rows, columns, starts):
    return matrix[rows[:, np.newaxis], columns].astype(np.float64)
