"""Predictions on Dask collections: lazy, block by block, by any fitted estimator."""

from typing import Any

import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask import delayed

from widemargin.distributed.partitions import task


def apply(model: Any, method: str, X: Any) -> Any:
    """Call a method of a fitted estimator on every block of a Dask collection.

    Parameters
    ----------
    model : estimator
    method : str
        Such as "predict".
    X : dask array, DataFrame or Bag

    Returns
    -------
    dask array, or Bag for a Bag
        Nothing is computed yet.
    """
    shared = delayed(model, pure=False, traverse=False)
    if not hasattr(X, "shape"):
        return X.map_partitions(_call_on_items, shared, method)
    example = _example(model, method, X)
    if hasattr(X, "chunks"):
        blocks = np.asarray(_whole_rows(X).to_delayed()).ravel().tolist()
        sizes = X.chunks[0]
    else:
        blocks = X.to_delayed()
        sizes = (np.nan,) * len(blocks)
    empty = example[:0]
    outputs = [
        da.from_delayed(
            task(_call, shared, method, block, empty), (size, *example.shape[1:]), meta=empty
        )
        for size, block in zip(sizes, blocks, strict=True)
    ]
    return da.concatenate(outputs, allow_unknown_chunksizes=True)


def _whole_rows(X: Any) -> Any:
    whole = all(len(lengths) == 1 for lengths in X.chunks[1:])
    return X if whole else X.rechunk({0: X.chunks[0], **dict.fromkeys(range(1, X.ndim), -1)})


def _example(model: Any, method: str, X: Any) -> Any:
    """Return the result of the method for one invented sample: its type and its shape."""
    sample: Any
    if hasattr(X, "_meta_nonempty"):
        sample = X._meta_nonempty.iloc[:1]
    else:
        kind = X.dtype if X.dtype.kind in "fiub" else np.float64
        sample = np.zeros((1, *(int(size) for size in X.shape[1:])), dtype=kind)
        if sp.issparse(X._meta):
            sample = sp.csr_array(sample)
    return getattr(model, method)(sample)


def _call(model: Any, method: str, X: Any, empty: Any) -> Any:
    return getattr(model, method)(X) if X.shape[0] else empty


def _call_on_items(items: Any, model: Any, method: str) -> list:
    items = list(items)
    return list(getattr(model, method)(items)) if items else []
