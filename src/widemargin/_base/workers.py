"""Calls in the processes of joblib's active backend, where that runs them on a cluster.

Local parallel work uses the threads of `for_each`, which share memory. A backend of Dask or Ray has
processes on other computers, to which work of some size is worth sending.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import (
    LokyBackend,
    MultiprocessingBackend,
    SequentialBackend,
    ThreadingBackend,
    get_active_backend,
)

_LOCAL = LokyBackend, MultiprocessingBackend, SequentialBackend, ThreadingBackend


def has_cluster(n_jobs: int | None) -> bool:
    """Return whether joblib's active backend runs ``n_jobs`` jobs on a cluster."""
    return n_jobs != 1 and not isinstance(get_active_backend()[0], _LOCAL)


def local_jobs(n_jobs: int | None) -> int:
    """Return the number of jobs in this process, whatever the size of the cluster is."""
    if not has_cluster(n_jobs):
        return effective_n_jobs(n_jobs)
    with parallel_config("threading"):
        return effective_n_jobs(n_jobs)


def call_on_cluster(
    function: Callable, arguments: Iterable[tuple], shown: Sequence[type[Warning]], n_jobs: Any
) -> list:
    """Return the results of calls on the cluster, and repeat their warnings of some categories.

    The backend sends arguments of some size to the workers once, not with each call, provided that
    they are the same object.
    """
    calls = [delayed(_call)(function, *each) for each in arguments]
    done = Parallel(n_jobs=n_jobs, batch_size=1)(calls)
    for category, text in dict.fromkeys(each for _, caught in done for each in caught):
        if issubclass(category, tuple(shown)):
            warnings.warn(text, category, stacklevel=5)
    return [result for result, _ in done]


def _call(function: Callable, *arguments: Any) -> tuple[Any, list]:
    """Return the result of a call, whose parallel work stays in this process, and its warnings."""
    with parallel_config("threading"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*arguments)
    return result, [(warning.category, str(warning.message)) for warning in caught]
