"""Gram matrices of small problems as one dense array, filled in row by row as rows are needed.

A machine over some rows of a larger matrix seldom looks at more than the rows of its support
vectors: those alone are copied.
"""

import numpy as np

from widemargin._base.jit import compiled
from widemargin.kernels.gram import MatrixGram


class Square:
    """A dense Gram matrix in float64.

    Parameters
    ----------
    source : ndarray of shape (m, m)
        A matrix at hand.
    places : ndarray of shape (n,), optional
        Which rows and columns of it make this one; all when not given.

    Attributes
    ----------
    matrix : ndarray of shape (n, n)
        Rows that are not ``known`` hold nothing yet.
    known : ndarray of shape (n,)
    """

    def __init__(self, source: np.ndarray, places: np.ndarray | None = None):
        if places is None:
            matrix = np.ascontiguousarray(source, dtype=np.float64)
            # Compiled code that may fill in rows refuses arrays that are read-only.
            self.matrix = self.source = matrix if matrix.flags.writeable else matrix.copy()
            self.places = np.arange(len(source))
            self.known = np.ones(len(source), dtype=bool)
        else:
            self.source, self.places = source, places
            self.matrix = np.empty((len(places), len(places)))
            self.known = np.zeros(len(places), dtype=bool)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """All there is to it, for compiled code that fills it in."""
        return self.matrix, self.known, self.source, self.places

    def rows(self, index: np.ndarray) -> np.ndarray:
        """The matrix with the rows ``index`` in their places."""
        _fill(*self.arrays, index)
        return self.matrix

    def part(self, index: np.ndarray) -> "Square":
        """The matrix of some of its rows."""
        return Square(self.source, self.places[index])


class SubsetGram:
    """The Gram matrix of some rows of one at hand; a `Gram`.

    Parameters
    ----------
    whole : MatrixGram
    places : ndarray of shape (n,)
        Which of its rows.
    """

    def __init__(self, whole: MatrixGram, places: np.ndarray):
        self.whole, self.places = whole, places
        self.square = Square(whole.matrix, places)
        self.size = self.most_rows = len(places)
        self.positive_semidefinite = whole.positive_semidefinite

    def diagonal(self) -> np.ndarray:
        return self.whole.diagonal()[self.places]

    def block(self, rows, columns=slice(None)) -> np.ndarray:
        return gather(self.whole.matrix, self.places[rows], self.places[columns])

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.square.rows(index), index

    def narrow(self, index: np.ndarray) -> "SubsetGram":
        """The Gram matrix of the rows ``index``."""
        return SubsetGram(self.whole, self.places[index])

    def sharpen(self) -> None:
        """Nothing to do: the matrix is what it is."""


def square_of(gram) -> Square:
    """The whole of a Gram matrix, that of a `SubsetGram` as far as it was needed."""
    own = getattr(gram, "square", None)
    return Square(gram.block(slice(None), slice(None))) if own is None else own


def gather(matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """matrix[rows][:, columns], for index arrays, without the interpreter lock."""
    starts = np.flatnonzero(np.diff(columns, prepend=-2) != 1)
    return _gather(matrix, rows, columns, np.append(starts, len(columns)))


@compiled
def _fill(matrix, known, source, places, index):
    """Copy those of the rows ``index`` that are not there yet."""
    for i in index:
        if not known[i]:
            known[i] = True
            row, given = matrix[i], source[places[i]]
            for k in range(places.shape[0]):
                row[k] = given[places[k]]


@compiled
def _gather(matrix, rows, columns, starts):
    """matrix[rows][:, columns], where columns go up by ones from each of ``starts`` to the next."""
    out = np.empty((rows.shape[0], columns.shape[0]))
    for a in range(rows.shape[0]):
        row, target = matrix[rows[a]], out[a]
        for run in range(starts.shape[0] - 1):
            first, last = starts[run], starts[run + 1]
            part, source = target[first:last], row[columns[first] :]
            for b in range(last - first):
                part[b] = source[b]
    return out
