"""Discriminant classifiers: statistics of the classes by partition, merged in a tree.

Merging is exact up to rounding. Every block is read once and need not stay in memory.
"""

import copy
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from widemargin._base.sklearn_compat import validate_parameters
from widemargin.distributed.partitions import (
    combine,
    each,
    fetch,
    split,
    validate_block,
    workers_of,
)


def fit(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Any:
    """Return a fitted clone of a linear or quadratic discriminant classifier."""
    validate_parameters(estimator)
    estimator._check_solver()
    if not hasattr(estimator, "partial_fit"):
        raise ValueError(
            f"{type(estimator).__name__} must be fitted from class statistics on Dask collections; "
            "solver='svd' and a covariance_estimator need all samples at once. Use solver='gram' "
            "and shrinkage."
        )
    columns = list(zip(*split(X, y, sample_weight), strict=True))
    statistics = each(partial(of_block, estimator), workers_of(columns[0]), *columns)
    (fitted,) = fetch(combine(merged, statistics))
    if fitted is None:
        raise ValueError("X must have at least one sample, got empty blocks only.")
    fitted._finish_fit()
    return fitted


def of_block(estimator: Any, X: Any, y: Any, weight: Any) -> Any:
    """Return an estimator with the statistics of a block; None for an empty one."""
    if not X.shape[0]:
        return None
    checked = validate_block(estimator, X, y, weight)
    if checked is None:
        return None
    estimator = clone(estimator)  # in threads, all blocks share it
    if weight is None:
        return estimator.partial_fit(X, np.asarray(y))
    # Samples of weight 0 are left out: their labels may be no classes.
    chosen = np.flatnonzero(np.asarray(weight) > 0)
    X = X.iloc[chosen] if hasattr(X, "iloc") else X[chosen]
    return estimator.partial_fit(X, np.asarray(y)[chosen], sample_weight=checked.weight)


def merged(first: Any, second: Any) -> Any:
    """Return an estimator with the samples of both."""
    if first is None or second is None:
        return second if first is None else first
    return copy.deepcopy(first).merge(second)
