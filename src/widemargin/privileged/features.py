"""Privileged features: validation, robust scaling of extreme values, and the transformer."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import check_array

from widemargin._base.options import privileged_options as options
from widemargin._base.sklearn_compat import get_feature_names, num_samples, safe_indexing

_LARGEST = float(np.finfo(float).max)


@dataclass(frozen=True)
class PrivilegedInput:
    """Privileged features as passed to fit, and their validated values.

    ``values`` is None for a callable kernel, and with a transformer, which takes the features as
    they are.
    """

    original: Any
    values: Any

    @staticmethod
    def validate(Z: Any, kernel: Any, transformer: Any) -> "PrivilegedInput":
        """Validate privileged features, or the kernel matrix for ``kernel="precomputed"``."""
        values: Any = None
        if sp.issparse(Z):
            Z = Z.tocsr()  # samples are selected
        if not callable(kernel) and (transformer is None or kernel == "precomputed"):
            values = check_numeric(Z)
        if kernel == "precomputed" and (sp.issparse(values) or values.shape[0] != values.shape[1]):
            raise ValueError(
                "privileged must be a dense square matrix for privileged_kernel='precomputed', got "
                f"shape {values.shape}. To select parameters by cross-validation, use "
                "PrivilegedSVCCV, which splits both axes."
            )
        return PrivilegedInput(Z, values)

    def take(self, samples: np.ndarray, precomputed: bool) -> "PrivilegedInput":
        """Return the privileged features of some of the samples."""
        if precomputed:
            return PrivilegedInput(None, self.values[np.ix_(samples, samples)])
        values = None if self.values is None else self.values[samples]
        return PrivilegedInput(safe_indexing(self.original, samples), values)


def split_columns(X: Any, names: list, privileged: Any) -> tuple[Any, Any]:
    """Return a DataFrame without the columns of these names, and one of them alone."""
    if privileged is not None:
        raise ValueError(
            "privileged must be None if privileged_columns names columns of X, got both."
        )
    if not hasattr(X, "columns"):
        raise ValueError(
            f"X must be a DataFrame with the columns privileged_columns={names}, got "
            f"{type(X).__name__}. Pass privileged to fit instead."
        )
    columns = list(X.columns)
    unknown = [name for name in names if name not in columns]
    others = [name for name in columns if name not in names]
    if unknown or not names or not others or len(set(names)) < len(names):
        raise ValueError(
            "privileged_columns must name some of the columns of X and not all of them, each of "
            f"them once, got {names}; the columns of X are {columns}."
        )
    return X[others], X[names]


def without_columns(X: Any, names: list | tuple) -> Any:
    """Return a DataFrame without the columns of these names, anything else as it is."""
    if not names or not hasattr(X, "columns"):
        return X
    return X[[name for name in X.columns if name not in names]]


class PrivilegedFeatures:
    """Preprocessing of privileged features, fitted on the training samples.

    The transformer is applied first. Features in ``extreme``, of its output or without one of the
    input, have values that would dominate all arithmetic: they are centered and scaled robustly,
    and clipped. ``names`` are the names of these features, None if they have none.
    """

    def fit_transform(
        self, privileged: PrivilegedInput, transformer: Any, samples: np.ndarray, warn: bool = True
    ) -> Any:
        """Fit on some of the samples; return the transformed features of all."""
        original, values = privileged.original, privileged.values
        self.transformer = transformer
        if transformer is not None:
            self.transformer = clone(transformer).fit(safe_indexing(original, samples))
            values = check_numeric(self.transformer.transform(original))
            if len(samples) and values.shape[0] != num_samples(original):
                raise ValueError(
                    "privileged_transformer must return a row for each sample, got "
                    f"{values.shape[0]} rows for {num_samples(original)} samples."
                )
        self.n_given, self.n_features = _n_columns(original), values.shape[1]
        self.names = self._names(original)
        self.extreme, self.center, self.spread = _extreme_features(values[samples])
        if len(self.extreme) and warn:
            named = self.names
            listed = [str(j) if named is None else repr(named[j]) for j in self.extreme]
            output = "" if transformer is None else " after privileged_transformer"
            warnings.warn(
                f"privileged{output} has extreme values in the features {', '.join(listed)}. They "
                f"are centered and scaled robustly and clipped at {options.clip:g}. Transform them "
                "by privileged_transformer, for example QuantileTransformer(), or remove them.",
                UserWarning,
                stacklevel=7,
            )
        return self._clip(values)

    def transform(self, Z: Any) -> Any:
        """Validate and transform the features of other samples."""
        if self.transformer is None:
            self._check_names(Z)
        try:
            values = check_numeric(Z if self.transformer is None else self.transformer.transform(Z))
        except ValueError as error:
            self._check_number(_n_columns(Z), self.n_given, error)
            raise
        self._check_number(values.shape[1], self.n_features)
        return self._clip(values)

    def _check_names(self, Z: Any) -> None:
        """Raise a ValueError if the features have other names, or another order, than in fit."""
        names = get_feature_names(Z)
        if names is None or self.names is None or len(names) != len(self.names):
            return
        if [str(name) for name in names] != self.names:
            raise ValueError(
                f"privileged must have the features of fit in the same order, {self.names}, got "
                f"{[str(name) for name in names]}. Select them by name."
            )

    def _check_number(self, n_columns: Any, expected: Any, error: Any = None) -> None:
        """Raise a ValueError if the number of features is known and not that of the fit."""
        if n_columns != expected and n_columns is not None and expected is not None:
            raise ValueError(
                f"privileged has {n_columns} features, but {expected} were seen during fit."
            ) from error

    def _names(self, original: Any) -> list[str] | None:
        """Return the names of the features that the kernel is computed from."""
        try:
            transformer = self.transformer
            names = (
                transformer.get_feature_names_out()
                if transformer is not None
                else get_feature_names(original)
            )
        except (AttributeError, ValueError):  # a transformer, or a step of it, without names
            return None
        return None if names is None else [str(name) for name in names]

    def _clip(self, Z: Any) -> Any:
        if not len(self.extreme):
            return Z
        Z = Z.tocsc(copy=True) if sp.issparse(Z) else Z.copy()
        for j, center, spread in zip(self.extreme, self.center, self.spread, strict=True):
            column = Z.data[Z.indptr[j] : Z.indptr[j + 1]] if sp.issparse(Z) else Z[:, j]
            # The difference itself may overflow.
            column[:] = np.clip(column / spread - center / spread, -options.clip, options.clip)
        return Z.tocsr() if sp.issparse(Z) else Z


def _n_columns(Z: Any) -> int | None:
    """Return the number of columns of a table, None for anything else, such as texts."""
    shape: Any = getattr(Z, "shape", ())
    return shape[1] if len(shape) == 2 else None


def check_numeric(Z: Any) -> Any:
    """Return privileged features in float64, dense or CSR."""
    if len(getattr(Z, "shape", (0, 0))) == 1:
        raise ValueError(
            f"privileged must be 2-dimensional, got shape {Z.shape}. Reshape a single feature to "
            "one column, such as privileged.reshape(-1, 1) or privileged.to_frame()."
        )
    for kind in getattr(Z, "dtypes", [getattr(Z, "dtype", None)]):
        # check_array takes them for nanoseconds.
        if any(word in str(kind).lower() for word in ("date", "time", "duration")):
            raise ValueError(
                f"privileged must contain numbers, got {kind}. Set privileged_transformer to a "
                "transformer that makes numbers of times."
            )
    try:
        Z = check_array(
            Z, accept_sparse="csr", dtype=np.float64, order="C", input_name="privileged"
        )
    except ValueError as error:
        text = str(error).splitlines()[0]
        if "privileged" in text:
            raise
        if not text.startswith("could not convert"):
            raise ValueError(f"privileged is not valid: {text}") from error
        raise ValueError(
            f"privileged must contain numbers: {text}. Set privileged_transformer to a "
            "transformer that encodes it, such as OneHotEncoder()."
        ) from error
    if sp.issparse(Z) and not Z.has_canonical_format:
        Z = Z.copy()
        Z.sum_duplicates()
    return Z


def _extreme_features(Z: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the features with extreme values, their medians and their spreads."""
    if sp.issparse(Z):
        return _extreme_sparse_features(Z.tocsc())
    low, center, high = np.quantile(Z, [0.25, 0.5, 0.75], axis=0)
    with np.errstate(over="ignore"):
        distance = np.abs(Z - center)
        farthest, spread = distance.max(axis=0), high - low
        spread = np.where(spread > 0.0, spread, (distance / len(Z)).sum(axis=0))
    spread = np.minimum(spread, _LARGEST)
    largest = np.abs(Z).max(axis=0)
    extreme = np.flatnonzero(
        (farthest / options.most_spreads > spread) | (largest > options.largest_value)
    )
    spread = np.where(spread > 0.0, spread, 1.0)
    return extreme, center[extreme], spread[extreme]


def _extreme_sparse_features(Z: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same for the stored values of a CSC matrix: zeros stay zeros."""
    sizes = np.abs(Z.data)
    filled = np.flatnonzero(np.diff(Z.indptr))
    if not len(filled):
        return filled, np.zeros(0), np.zeros(0)

    def exceeds(largest: np.ndarray, typical: np.ndarray) -> np.ndarray:
        return (largest / options.most_spreads > typical) | (largest > options.largest_value)

    starts = Z.indptr[filled]
    suspect = filled[
        exceeds(np.maximum.reduceat(sizes, starts), np.minimum.reduceat(sizes, starts))
    ]
    columns = [sizes[Z.indptr[j] : Z.indptr[j + 1]] for j in suspect]
    spread = np.array(
        [np.quantile(column[column > 0.0], 0.5, method="lower") for column in columns]
    )
    extreme = exceeds(np.array([column.max() for column in columns]), spread)
    return suspect[extreme], np.zeros(np.count_nonzero(extreme)), spread[extreme]
