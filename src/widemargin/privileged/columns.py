"""Privileged columns on their way in: checked, tamed where numbers are absurd, transformed."""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import _get_feature_names, check_array

# An entry so many spreads away from the median drowns the other entries of its column in rounding
# errors, and one of such a size all other columns.
_ABSURD = 1e8
_HUGE = 1e12
_FARTHEST = 10.0
_LARGEST = float(np.finfo(float).max)


@dataclass(frozen=True)
class PrivilegedColumns:
    """What was learned of the privileged columns, to treat those of other rows alike.

    ``absurd`` are columns with entries that no arithmetic survives: they are moved to their median,
    divided by their spread between quartiles and cut at 10.
    """

    n_columns: int
    absurd: np.ndarray
    center: np.ndarray
    spread: np.ndarray
    transformer: object | None

    @staticmethod
    def learn(Z, transformer, rows, tell=True) -> tuple["PrivilegedColumns", object]:
        """Learn from the rows that count; returns also what becomes of all of Z."""
        values = check(Z)
        absurd, center, spread = _absurd_columns(values[rows])
        if len(absurd) and tell:
            names = _get_feature_names(Z)
            shown = ", ".join(repr(str(names[j])) if names is not None else str(j) for j in absurd)
            warnings.warn(
                f"privileged has entries that are absurdly large, or so beside the others of "
                f"their column: column {shown}. It is moved to its median, divided by its spread "
                f"between quartiles and cut at {_FARTHEST:g}. Transform it (by its logarithm, "
                "say), or leave it out.",
                UserWarning,
                stacklevel=4,
            )
        learned = PrivilegedColumns(values.shape[1], absurd, center, spread, None)
        values = learned._tame(values)
        if transformer is not None:
            transformer = clone(transformer).fit(values[rows])
            learned = PrivilegedColumns(values.shape[1], absurd, center, spread, transformer)
        return learned, learned._transform(values)

    def apply(self, Z):
        """Treat the columns of other rows as those of the training rows."""
        Z = check(Z)
        if Z.shape[1] != self.n_columns:
            raise ValueError(
                f"privileged has {Z.shape[1]} columns, but {self.n_columns} were seen during fit."
            )
        return self._transform(self._tame(Z))

    def _tame(self, Z):
        if not len(self.absurd):
            return Z
        Z = Z.tocsc(copy=True) if sp.issparse(Z) else Z.copy()
        for j, center, spread in zip(self.absurd, self.center, self.spread, strict=True):
            column = Z.data[Z.indptr[j] : Z.indptr[j + 1]] if sp.issparse(Z) else Z[:, j]
            # Not the difference first, which may be too large a number.
            column[:] = np.clip(column / spread - center / spread, -_FARTHEST, _FARTHEST)
        return Z.tocsr() if sp.issparse(Z) else Z

    def _transform(self, Z):
        return Z if self.transformer is None else check(self.transformer.transform(Z))


def check(Z):
    """Z as numbers, dense or CSR."""
    Z = check_array(Z, accept_sparse="csr", dtype=np.float64, order="C", input_name="privileged")
    if sp.issparse(Z) and not Z.has_canonical_format:
        Z = Z.copy()
        Z.sum_duplicates()
    return Z


def _absurd_columns(Z) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns with absurd entries, their medians and their spreads."""
    if sp.issparse(Z):
        return _absurd_sparse_columns(Z.tocsc())
    low, center, high = np.quantile(Z, [0.25, 0.5, 0.75], axis=0)
    with np.errstate(over="ignore"):
        distance = np.abs(Z - center)
        farthest, spread = distance.max(axis=0), high - low
        spread = np.where(spread > 0.0, spread, (distance / len(Z)).sum(axis=0))
    spread = np.minimum(spread, _LARGEST)
    absurd = (farthest / _ABSURD > spread) | (np.abs(Z).max(axis=0) > _HUGE)
    absurd = np.flatnonzero(absurd & (spread > 0.0))
    return absurd, center[absurd], spread[absurd]


def _absurd_sparse_columns(Z) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of a CSC matrix, for entries that are stored: zeros stay zeros."""
    sizes = np.abs(Z.data)
    filled = np.flatnonzero(np.diff(Z.indptr))
    if not len(filled):
        return filled, np.zeros(0), np.zeros(0)
    starts = Z.indptr[filled]
    largest = np.maximum.reduceat(sizes, starts)
    least = np.minimum.reduceat(sizes, starts)
    suspect = filled[(largest / _ABSURD > least) | (largest > _HUGE)]
    parts = [sizes[Z.indptr[j] : Z.indptr[j + 1]] for j in suspect]
    spread = np.array([np.quantile(part[part > 0.0], 0.5, method="lower") for part in parts])
    largest = np.array([part.max() for part in parts])
    absurd = (largest / _ABSURD > spread) | (largest > _HUGE)
    return suspect[absurd], np.zeros(np.count_nonzero(absurd)), spread[absurd]
