"""Privileged columns on their way in: checked, tamed where numbers are absurd, transformed."""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import _get_feature_names, check_array

# An entry so many spreads away from the median drowns all other columns in rounding errors.
_ABSURD = 1e8
_FARTHEST = 10.0


@dataclass(frozen=True)
class PrivilegedColumns:
    """What was learned of the privileged columns, to treat those of other rows alike.

    ``absurd`` are columns with entries that no scaling survives: they are moved to their median,
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
                f"privileged has entries that are absurdly large beside the others of their "
                f"column: column {shown}. It is moved to its median, divided by its spread "
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
            column[:] = np.clip((column - center) / spread, -_FARTHEST, _FARTHEST)
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
    distance = np.abs(Z - center)
    spread = np.where(high > low, high - low, distance.mean(axis=0))
    absurd = np.flatnonzero((spread > 0.0) & (distance.max(axis=0) / _ABSURD > spread))
    return absurd, center[absurd], spread[absurd]


def _absurd_sparse_columns(Z) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of a CSC matrix, for entries that are stored: zeros stay zeros."""
    sizes = np.abs(Z.data)
    filled = np.flatnonzero(np.diff(Z.indptr))
    if not len(filled):
        return filled, np.zeros(0), np.zeros(0)
    starts = Z.indptr[filled]
    largest = np.maximum.reduceat(sizes, starts)
    suspect = filled[largest / _ABSURD > np.minimum.reduceat(sizes, starts)]
    parts = [sizes[Z.indptr[j] : Z.indptr[j + 1]] for j in suspect]
    spread = np.array([np.median(part[part > 0.0]) for part in parts])
    absurd = np.array([part.max() for part in parts]) / _ABSURD > spread
    return suspect[absurd], np.zeros(np.count_nonzero(absurd)), spread[absurd]
