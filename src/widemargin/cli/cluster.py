"""Fits on the workers of a Dask cluster, for ``--cluster``."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from joblib import parallel_config
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from widemargin._base.options import cli_options as options
from widemargin.cli.main import CommandError

LOCAL = "local"


@contextmanager
def use_cluster(address: str | None) -> Iterator[None]:
    """Use the cluster of a scheduler for fits, or with ``"local"`` worker processes of their own.

    Without an address, fits stay in this process.
    """
    if address is None:
        yield
        return
    try:
        import distributed
    except ImportError as error:
        raise CommandError(
            "--cluster requires Dask.", "Install it with: pip install 'widemargin[dask]'"
        ) from error
    with _client(distributed, address), parallel_config("dask"):
        yield


@contextmanager
def _client(distributed: Any, address: str) -> Iterator[None]:
    if address == LOCAL:
        workers = {"n_workers": os.cpu_count(), "threads_per_worker": 1}
        with (
            distributed.LocalCluster(dashboard_address=":0", **workers) as started,
            distributed.Client(started),
        ):
            yield
        return
    try:
        client = distributed.Client(address, timeout=options.cluster_timeout)
    except (OSError, ValueError) as error:
        raise CommandError(
            f"--cluster {address}: there is no scheduler.",
            "Start one with 'dask scheduler', or use --cluster local.",
        ) from error
    with client:
        if not client.nthreads():
            raise CommandError(
                f"--cluster {address}: the scheduler has no workers.",
                f"Start some with 'dask worker {address}'.",
            )
        yield


def fit_partitions(model: Any, X: Any, y: np.ndarray, seed: int | None) -> Any:
    """Return the model, fitted to partitions of the samples, in random order, on the workers."""
    import dask.array as da
    from distributed import get_client

    from widemargin.distributed import DaskEstimator

    size = X.data.nbytes if issparse(X) else X.nbytes
    wanted = max(sum(get_client().nthreads().values()), size // options.partition_bytes)
    order = check_random_state(seed).permutation(len(y))
    groups = np.array_split(order, min(len(y), wanted))
    rows = X.tocsr() if issparse(X) else X
    blocks = [da.from_array(rows[group], chunks=-1, asarray=False) for group in groups]
    labels = [da.from_array(y[group], chunks=-1) for group in groups]
    return DaskEstimator(model).fit(da.concatenate(blocks), da.concatenate(labels)).estimator_
