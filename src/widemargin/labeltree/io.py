"""Reader and writer of the text format of the Extreme Classification Repository.

The first line has the numbers of samples, features and labels. Each of the others is a sample: its
labels, separated by commas, then its features as ``number:value``, separated by spaces.
"""

import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.checkpoint import atomic_write
from widemargin._base.options import label_tree_options as options

PathLike = str | os.PathLike[str]

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
# Numbers of at most 15 digits: integers, and floats of them, are exact.
_INDEX = r"\d{1,15}"
_HEADER = re.compile(rf"({_INDEX}) ({_INDEX}) ({_INDEX})\s*")
_SAMPLE = re.compile(rf"({_INDEX}(?:,{_INDEX})*)?((?: +{_INDEX}:{_NUMBER})*)\s*")


def load_extreme_format(path: PathLike) -> tuple[Any, Any]:
    r"""Read a file in the format of the Extreme Classification Repository.

    Parameters
    ----------
    path : str or path-like
        Text file. Its first line is ``n_samples n_features n_labels``; every other line is a
        sample, such as ``3,7 0:0.5 12:0.25``. A sample without labels begins with a space.

    Returns
    -------
    X : CSR array of shape (n_samples, n_features)
        Samples, in float64.
    Y : CSR array of shape (n_samples, n_labels)
        Indicator matrix of their labels, in float32.

    Raises
    ------
    ValueError
        If a line is malformed; the message contains its number.

    See Also
    --------
    save_extreme_format : Write such a file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from widemargin import load_extreme_format
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.txt"
    ...     _ = path.write_text("2 3 4\n1,3 0:0.5 2:1\n0 1:2.5\n")
    ...     X, Y = load_extreme_format(path)
    >>> X.toarray()
    array([[0.5, 0. , 1. ],
           [0. , 2.5, 0. ]])
    """
    features, labels = zip(*read_extreme_chunks(path), strict=True)
    return sp.vstack(features, format="csr"), sp.vstack(labels, format="csr")


def read_extreme_chunks(path: PathLike) -> Iterator[tuple[Any, Any]]:
    """Read a file in the format of the Extreme Classification Repository, some lines at a time.

    Parameters
    ----------
    path : str or path-like

    Yields
    ------
    X, Y : CSR arrays
        As of `load_extreme_format`, at least one pair.
    """
    with open(path, encoding="ascii", errors="replace") as file:
        header = _HEADER.fullmatch(file.readline())
        if header is None:
            raise ValueError(
                f"{path}, line 1: the numbers of samples, features and labels are needed, such as "
                "'1000 500 30'."
            )
        n_samples, n_features, n_labels = map(int, header.groups())
        read = 0
        while (lines := list(islice(file, options.text_lines))) or not read:
            features, labels = _Entries(n_features, "feature"), _Entries(n_labels, "label")
            _parse(lines, read, path, features, labels)
            yield features.matrix(path, read), labels.matrix(path, read)
            if not lines:
                break
            read += len(lines)
    if read != n_samples:
        raise ValueError(f"{path} has {read} samples, but its first line announces {n_samples}.")


def is_extreme_format(path: PathLike) -> bool:
    """Return whether a file begins like one of the Extreme Classification Repository."""
    with open(path, encoding="ascii", errors="replace") as file:
        return _HEADER.fullmatch(file.readline(100)) is not None


def save_extreme_format(path: PathLike, X: Any, Y: Any) -> None:
    """Write samples and labels in the format of the Extreme Classification Repository.

    An existing file is replaced when the new one is complete.

    Parameters
    ----------
    path : str or path-like
        File to write.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples. Values are written so that they are read back exactly.
    Y : {array-like, sparse matrix} of shape (n_samples, n_labels)
        Indicator matrix of their labels.

    See Also
    --------
    load_extreme_format : Read such a file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from widemargin import save_extreme_format
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "data.txt"
    ...     save_extreme_format(path, [[0.5, 0.0], [0.0, 2.0]], [[1, 1], [0, 0]])
    ...     print(path.read_text(), end="")
    2 2 2
    0,1 0:0.5
     1:2.0
    """
    X, Y = _writable(X, "X"), _writable(Y, "Y")
    if X.shape[0] != Y.shape[0]:
        raise ValueError(
            f"X and Y must have the same number of samples, got {X.shape[0]} and {Y.shape[0]}."
        )
    if not (Y.data == 1.0).all():
        raise ValueError(
            f"Y must contain only zeros and ones, got {Y.data[Y.data != 1.0][0]!r}: the format has "
            "no values of labels."
        )
    with atomic_write(path) as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        for i in range(X.shape[0]):
            row = slice(X.indptr[i], X.indptr[i + 1])
            labels = ",".join(map(str, Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist()))
            pairs = zip(X.indices[row].tolist(), X.data[row].tolist(), strict=True)
            values = " ".join(f"{column}:{value!r}" for column, value in pairs)
            file.write(f"{labels} {values}\n".encode())


def _writable(matrix: Any, name: str) -> Any:
    """Return a canonical copy of a matrix; raise a ValueError if it cannot be written."""
    matrix = matrix if sp.issparse(matrix) else np.asarray(matrix)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be a matrix of numbers, got an array of shape {matrix.shape} and dtype "
            f"{matrix.dtype}."
        )
    matrix = sp.csr_array(matrix, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{name} must not contain nan or infinity.")
    return matrix


class _Entries:
    """Entries of a sparse matrix that is read in chunks of rows."""

    def __init__(self, width: int, name: str) -> None:
        self.width, self.name = width, name
        self.columns: list[np.ndarray] = []
        self.values: list[np.ndarray] = []
        self.counts: list[int] = []

    def matrix(self, path: PathLike, read: int) -> Any:
        """Return the matrix; raise a ValueError that names the line of an entry that is wrong.

        ``read`` samples came before.
        """
        none = np.zeros(0)
        columns = np.concatenate([none, *self.columns]).astype(np.int64)
        values = np.concatenate([none, *self.values])
        rows = np.repeat(np.arange(len(self.counts)), self.counts)
        outside = np.flatnonzero(columns >= self.width)
        if len(outside):
            line, column = read + rows[outside[0]] + 2, columns[outside[0]]
            raise ValueError(
                f"{path}, line {line}: {self.name} {column} is not below the number of "
                f"{self.name}s in the first line, {self.width}."
            )
        order = np.lexsort((columns, rows))
        columns = columns[order]
        repeated = np.flatnonzero((np.diff(columns) == 0) & (np.diff(rows) == 0))
        if len(repeated):
            line, column = read + rows[repeated[0]] + 2, columns[repeated[0]]
            raise ValueError(f"{path}, line {line}: {self.name} {column} is repeated.")
        indptr = np.cumsum([0, *self.counts])
        shape = (len(self.counts), self.width)
        return sp.csr_array((values[order], columns, indptr), shape=shape)


def _parse(
    lines: list[str], read: int, path: PathLike, features: _Entries, labels: _Entries
) -> None:
    """Add samples, of which ``read`` came before."""
    names, values = [], []
    for number, line in enumerate(lines, start=read + 2):
        match = _SAMPLE.fullmatch(line)
        if match is None or not line.strip("\n"):
            raise ValueError(
                f"{path}, line {number}: {line[:60].rstrip()!r} is not a sample. Its labels are "
                "needed, separated by commas, then features such as 12:0.5, separated by spaces."
            )
        names.append(match[1] or "")
        values.append(match[2])
        labels.counts.append(names[-1].count(",") + 1 if names[-1] else 0)
        features.counts.append(values[-1].count(":"))
    pairs = np.array(" ".join(values).replace(":", " ").split(), dtype=np.float64).reshape(-1, 2)
    if not np.isfinite(pairs).all():
        line = (
            read
            + 2
            + np.searchsorted(
                np.cumsum(features.counts[read:]),
                np.flatnonzero(~np.isfinite(pairs[:, 1]))[0],
                "right",
            )
        )
        raise ValueError(f"{path}, line {line}: a value is too large for float64.")
    features.columns.append(pairs[:, 0])
    features.values.append(pairs[:, 1])
    numbers = np.array(",".join(filter(None, names)).split(",") if any(names) else [], np.float64)
    labels.columns.append(numbers)
    labels.values.append(np.ones(len(numbers), np.float32))
