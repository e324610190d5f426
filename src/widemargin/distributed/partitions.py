"""Partitions of Dask collections: blocks of samples, validated where they lie.

Everything is built from ``dask.delayed``, so that any scheduler of Dask runs it: that of a cluster
whose client is active, or threads of this process. Results of earlier rounds stay on the workers,
and the scheduler keeps the graph that made them: what a lost worker held is computed again.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from dask import annotate, compute, delayed, persist
from dask.base import is_dask_collection
from sklearn.base import clone
from sklearn.utils.validation import check_consistent_length

from widemargin._base.options import distributed_options as options
from widemargin._base.validation import (
    check_magnitude,
    check_non_negative,
    check_several_classes,
    validate_all_weights,
    validate_training,
)


class Block(NamedTuple):
    """Samples of positive weight of a partition, with labels and weights."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None
    names: np.ndarray | None


class Outline(NamedTuple):
    """Classes of partitions with the sum of their weights, and the features."""

    classes: np.ndarray
    counts: np.ndarray
    n_features: int
    names: Any
    n_samples: int


def task(
    function: Callable, *arguments: Any, n_results: int | None = None, worker: Any = None
) -> Any:
    """Return a delayed call, or its results. Arguments may be delayed, but not contain such.

    It runs on ``worker`` as long as there is one of this address. Without, Dask moves samples to a
    worker that is idle for a moment, which takes longer than a round.
    """
    with annotate(workers=[worker], allow_other_workers=True) if worker else nullcontext():
        call = delayed(function, pure=False, traverse=False, nout=n_results)
        return call(*arguments) if n_results is None else tuple(call(*arguments))


def each(
    function: Callable,
    workers: Sequence,
    *columns: Any,
    shared: Sequence = (),
    n_results: Any = None,
) -> list:
    """Return delayed calls with an element of each column and the shared arguments."""
    return [
        task(function, *row, *shared, n_results=n_results, worker=worker)
        for worker, *row in zip(workers, *columns, strict=True)
    ]


def workers_of(values: Sequence) -> list:
    """Return the address of a worker that holds each value; None for those that no worker holds."""
    if "distributed" not in sys.modules:
        return [None] * len(values)
    from distributed import default_client, futures_of, wait

    try:
        client = default_client()
    except ValueError:
        return [None] * len(values)
    wait(futures_of(list(values)))
    keys = [value.key for value in values]
    # Blocks of a persisted collection have keys, but no futures.
    holders = client.sync(client.scheduler.who_has, keys=keys)
    return [min(holders.get(key, ()), default=None) for key in keys]


def stay(values: Sequence) -> list:
    """Compute values and leave them on their workers."""
    return list(persist(*values, optimize_graph=False))


def fetch(*values: Any) -> tuple:
    """Compute values and return them to this process."""
    return compute(*values, optimize_graph=False)


def combine(function: Callable[[Any, Any], Any], values: list) -> Any:
    """Join values pairwise by an associative function, in a tree, on the workers."""
    while len(values) > 1:
        groups = [values[k : k + options.fan_in] for k in range(0, len(values), options.fan_in)]
        values = [task(_join, function, *group) for group in groups]
    return values[0]


def _join(function: Callable, *values: Any) -> Any:
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


def is_collection(X: Any) -> bool:
    """Return whether X is a collection of Dask."""
    return is_dask_collection(X)


def split(X: Any, y: Any, sample_weight: Any = None) -> list[tuple]:
    """Return delayed blocks of samples, labels and weights (None without weights).

    Raises
    ------
    TypeError
        If X is not a Dask array or DataFrame.
    ValueError
        If the blocks of the labels or weights are not those of X.
    """
    blocks = _blocks(X, "X", None)
    sizes = X.chunks[0] if hasattr(X, "chunks") else None
    columns = [blocks, _blocks(y, "y", sizes)]
    columns.append([None] * len(blocks) if sample_weight is None
                   else _blocks(sample_weight, "sample_weight", sizes))  # fmt: skip
    for name, column in zip(("y", "sample_weight"), columns[1:], strict=True):
        if len(column) != len(blocks):
            raise ValueError(
                f"{name} must have as many blocks as X, which has {len(blocks)}, got "
                f"{len(column)}. Use rechunk or repartition, or compute the chunk sizes."
            )
    return list(zip(*columns, strict=True))


def _blocks(collection: Any, name: str, sizes: Any) -> list:
    """Return the delayed blocks of rows, with the given numbers of rows if they are known."""
    if not hasattr(collection, "to_delayed") or not hasattr(collection, "shape"):
        raise TypeError(
            f"{name} must be a Dask array or DataFrame, got {type(collection).__name__}. Use "
            "dask.array.from_array or dask.dataframe.from_pandas, or fit the estimator itself."
        )
    if hasattr(collection, "chunks"):
        known = sizes is not None and not np.isnan([*sizes, *collection.chunks[0]]).any()
        rows = sizes if known and sum(sizes) == collection.shape[0] else collection.chunks[0]
        whole = dict.fromkeys(range(1, collection.ndim), -1)
        if rows != collection.chunks[0] or any(
            len(lengths) > 1 for lengths in collection.chunks[1:]
        ):
            collection = collection.rechunk({0: rows, **whole})
    return np.asarray(collection.to_delayed()).ravel().tolist()


def validated(
    estimator: Any, blocks: list[tuple], check: Any = None, describe: Any = None
) -> tuple[list, Outline]:
    """Validate blocks on the workers, leave them there, and return them with their outline.

    ``check`` and ``describe`` are `validate_block` and `outline`, or what other labels need.
    """
    check, describe = check or validate_block, describe or outline
    workers = workers_of([X for X, _, _ in blocks])
    valid = stay(each(partial(check, estimator), workers, *zip(*blocks, strict=True)))
    outlines = fetch(*each(describe, workers_of(valid), valid))
    present = [k for k, summary in enumerate(outlines) if summary is not None]
    if not present:
        raise ValueError("X must have at least one sample, got empty blocks only.")
    total = outlines[present[0]]
    for k in present[1:]:
        total = _merge(total, outlines[k])
    check_several_classes(len(total.classes))
    return [valid[k] for k in present], total


def validate_block(estimator: Any, X: Any, y: Any, weight: Any) -> Block | None:
    """Return validated samples of positive weight; None if there are none."""
    check_consistent_length(X, y)
    if not X.shape[0]:
        return None
    estimator = clone(estimator)  # in threads, all blocks share it
    X, y = validate_training(estimator, X, np.asarray(y))
    check_magnitude(X)
    names = getattr(estimator, "feature_names_in_", None)
    weight = validate_all_weights(None if weight is None else np.asarray(weight), y)
    if weight is None:
        return Block(X, y, None, names)
    check_non_negative(weight)
    chosen = weight > 0
    return Block(X[chosen], y[chosen], weight[chosen], names) if chosen.any() else None


def outline(block: Block | None) -> Outline | None:
    """Return the outline of one block."""
    if block is None:
        return None
    classes, codes = np.unique(block.y, return_inverse=True)
    counts = np.bincount(codes, weights=block.weight, minlength=len(classes)).astype(float)
    return Outline(classes, counts, block.X.shape[1], block.names, len(codes))


def _merge(first: Outline, second: Outline) -> Outline:
    if first.n_features != second.n_features:
        raise ValueError(
            f"All blocks of X must have {first.n_features} features as the first one, got "
            f"{second.n_features}."
        )
    if (first.names is None) != (second.names is None) or (
        first.names is not None and not np.array_equal(first.names, second.names)
    ):
        raise ValueError(
            f"All blocks of X must have the same features, got {first.names} and {second.names}."
        )
    classes = np.union1d(first.classes, second.classes)
    counts = np.zeros(len(classes))
    for each in (first, second):
        counts[np.searchsorted(classes, each.classes)] += each.counts
    size = first.n_samples + second.n_samples
    return Outline(classes, counts, first.n_features, first.names, size)


def set_features(estimator: Any, total: Outline) -> None:
    """Set the fitted attributes that describe the features."""
    estimator.n_features_in_ = total.n_features
    if total.names is not None:
        estimator.feature_names_in_ = total.names
