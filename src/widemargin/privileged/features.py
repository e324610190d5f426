"""Privileged columns on their way in: checked, tamed where numbers are absurd, transformed."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_array

from widemargin._base.sklearn_compat import (
    get_adapter_from_container,
    get_feature_names,
    safe_indexing,
)

# An entry so many spreads away from the median drowns the other entries of its column in rounding
# errors, and one of such a size all other columns.
_ABSURD = 1e8
_HUGE = 1e12
_FARTHEST = 10.0
_LARGEST = float(np.finfo(float).max)


@dataclass(frozen=True)
class PrivilegedColumns:
    """What was learned of the privileged columns, to treat those of other rows alike.

    ``absurd`` are columns with entries that no arithmetic survives: they are moved and scaled
    robustly, and cut at 10. Then comes the transformer. Where Z is not all of numbers, it comes
    ``first``, and the columns are those that it has made.
    """

    n_columns: int
    absurd: np.ndarray
    center: np.ndarray
    spread: np.ndarray
    transformer: Any
    first: bool

    @staticmethod
    def learn(Z, transformer, rows, tell=True) -> tuple["PrivilegedColumns", object]:
        """Learn from the rows that count; returns also what becomes of all of Z."""
        first = transformer is not None and not _holds_numbers(Z)
        if first:
            transformer = clone(transformer).fit(safe_indexing(Z, rows))
        values = check(transformer.transform(Z) if first else Z)
        absurd, center, spread = _absurd_columns(values[rows])
        if len(absurd) and tell:
            names = None if first else get_feature_names(Z)
            shown = ", ".join(repr(str(names[j])) if names is not None else str(j) for j in absurd)
            warnings.warn(
                f"privileged has entries that are absurdly large, or so beside the others of "
                f"their column: column {shown}. It is moved and scaled robustly, and cut at "
                f"{_FARTHEST:g}. Transform it (by its logarithm, say), or leave it out.",
                UserWarning,
                stacklevel=5,
            )
        learned = PrivilegedColumns(values.shape[1], absurd, center, spread, transformer, first)
        tamed = learned._tame(values)
        if transformer is not None and not first:
            own = clone(transformer).fit(safe_indexing(learned._named(tamed, Z), rows))
            learned = replace(learned, transformer=own)
        return learned, learned._finish(tamed, Z)

    def apply(self, Z):
        """Treat the columns of other rows as those of the training rows."""
        values = check(self.transformer.transform(Z) if self.first else Z)
        if values.shape[1] != self.n_columns:
            raise ValueError(
                f"privileged has {values.shape[1]} columns, but {self.n_columns} were seen during "
                "fit."
            )
        return self._finish(self._tame(values), Z)

    def _tame(self, Z):
        if not len(self.absurd):
            return Z
        Z = Z.tocsc(copy=True) if sp.issparse(Z) else Z.copy()
        for j, center, spread in zip(self.absurd, self.center, self.spread, strict=True):
            column = Z.data[Z.indptr[j] : Z.indptr[j + 1]] if sp.issparse(Z) else Z[:, j]
            # Not the difference first, which may be too large a number.
            column[:] = np.clip(column / spread - center / spread, -_FARTHEST, _FARTHEST)
        return Z.tocsr() if sp.issparse(Z) else Z

    def _finish(self, tamed, Z):
        if self.transformer is None or self.first:
            return tamed
        return check(self.transformer.transform(self._named(tamed, Z)))

    def _named(self, tamed, Z):
        """The tamed numbers of Z, with the names of their columns where it is a frame."""
        if not hasattr(Z, "columns") or sp.issparse(tamed):
            return tamed
        if not len(self.absurd):
            return Z
        frames = get_adapter_from_container(Z)
        return frames.create_container(tamed, Z, columns=list(Z.columns))


def check(Z):
    """Z as numbers, dense or CSR."""
    try:
        Z = check_array(
            Z, accept_sparse="csr", dtype=np.float64, order="C", input_name="privileged"
        )
    except ValueError as error:
        if not str(error).startswith("could not convert"):
            raise
        raise ValueError(
            f"privileged must hold numbers: {error}. Choose a privileged_transformer that makes "
            "numbers of it, such as OneHotEncoder()."
        ) from error
    if sp.issparse(Z) and not Z.has_canonical_format:
        Z = Z.copy()
        Z.sum_duplicates()
    return Z


def _holds_numbers(Z):
    """Whether Z can go without a transformer that makes numbers of it."""
    try:
        check(Z)
    except (ValueError, TypeError):
        return False
    return True


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
    absurd = np.flatnonzero((farthest / _ABSURD > spread) | (np.abs(Z).max(axis=0) > _HUGE))
    spread = np.where(spread > 0.0, spread, 1.0)
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
