"""Threads: how many to use, a pool to run on, and a switch that keeps BLAS to one of them.

The library runs its inner work in parallel itself, over pieces that do not depend on the number of
threads, so that results have the same bits for any number. BLAS must not start threads underneath.
"""

import contextlib
import contextvars
import functools
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from widemargin._base.transactions import interrupts, uninterrupted

_here = threading.local()


def effective_threads() -> int:
    """Return how many threads inner work should use, as scikit-learn's OpenMP code takes it.

    ``OMP_NUM_THREADS``, limits that threadpoolctl sets on OpenMP and the CPU quota of a container
    are respected.
    """
    # Where BLAS runs on OpenMP, its limit to one thread would be seen here as a limit on us.
    remembered = getattr(_here, "threads_outside_limiter", None)
    if remembered is not None:
        return remembered
    from widemargin._base.sklearn_compat import openmp_effective_n_threads

    return openmp_effective_n_threads()


def for_each(
    function: Callable[[Any], Any], items: Iterable[Any], threads: int | None = None
) -> list[Any]:
    """Call ``function`` on every item, on several threads, and return the results in order.

    Parameters
    ----------
    function : callable
        Called as ``function(item)``. It should release the interpreter lock most of its time.
    items : iterable
        What to call it on. Items are handed out in order, one by one.
    threads : int, default=None
        How many threads work at once, the calling one included; ``None`` means
        `effective_threads()`. A call made from within ``function`` stays on its thread.

    Returns
    -------
    results : list
        ``[function(item) for item in items]``. When a call fails, no more items are handed out and
        the exception of the first failing item is raised once no call is running any more.
    """
    items = list(items)
    if len(items) <= 1 or getattr(_here, "job", None):
        return [function(item) for item in items]
    threads = min(effective_threads() if threads is None else threads, len(items))
    if threads <= 1:
        return [function(item) for item in items]
    job = _Job(function, items)
    try:
        _pool.offer(job, threads - 1)
        job.work()
        job.close()
    except BaseException:
        job.abandoned = True
        job.close()
        raise
    if job.failures:
        raise job.failures[min(job.failures)]
    return job.results


def stopping() -> bool:
    """Return whether the results of the `for_each` that runs this call will not be used.

    Another of its calls has failed or its caller was interrupted. Long calls check this now and
    then.
    In the main thread an interrupt that has waited is raised.
    """
    interrupts.check()
    job = getattr(_here, "job", None)
    return job is not None and job.abandoned


def single_threaded_blas() -> "_Limiter":
    """Return a context manager in which BLAS uses one thread.

    The setting belongs to the whole process: the first thread to enter makes it and the last one to
    leave restores what there was. Entering again inside costs next to nothing.
    """
    return _limiter


class _Job:
    """Items and their results, shared by the calling thread and its helpers."""

    def __init__(self, function, items):
        self.function = function
        self.items = items
        self.results = [None] * len(items)
        self.failures = {}
        self.abandoned = False
        self.taken = 0
        self.helpers = 0
        self.closed = False
        self.changed = threading.Condition()

    def work(self):
        _here.job = self
        try:
            while (position := self._take()) is not None:
                try:
                    self.results[position] = self.function(self.items[position])
                except BaseException as error:
                    self.failures[position] = error
                    self.abandoned = True
        finally:
            _here.job = None

    def help(self):
        with self.changed:
            if self.closed:
                return
            self.helpers += 1
        self.work()
        with self.changed:
            self.helpers -= 1
            # All: one that was interrupted just before it waited may still be listed.
            self.changed.notify_all()

    def close(self):
        """Take no new helpers and return when the last one has left, interrupted or not."""
        interruption = None
        while not (self.closed and self.helpers == 0):
            try:
                with self.changed:
                    self.closed = True
                    self.changed.wait_for(lambda: self.helpers == 0)
            except KeyboardInterrupt as error:
                interruption = error
                self.abandoned = True
        if interruption is not None:
            raise interruption

    def _take(self):
        with self.changed:
            if self.abandoned or self.taken == len(self.items):
                return None
            self.taken += 1
            return self.taken - 1


class _Pool:
    """Daemon threads waiting for jobs, as many as the largest request needed."""

    def __init__(self):
        self.reset()

    def reset(self):
        self.lock = threading.Lock()
        self.tickets: queue.SimpleQueue = queue.SimpleQueue()
        self.size = 0

    def offer(self, job, helpers):
        with self.lock, contextlib.suppress(RuntimeError):  # no more threads: the caller works on
            while self.size < helpers:
                threading.Thread(target=_serve, args=[self.tickets], daemon=True).start()
                self.size += 1
        for _ in range(helpers):
            # Helpers see the caller's context variables, numpy.errstate among them.
            self.tickets.put(functools.partial(contextvars.copy_context().run, job.help))


def _serve(tickets):
    while True:
        tickets.get()()


class _Limiter:
    """The context manager behind `single_threaded_blas`, counted over threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.holders = 0
        self.modules_at_scan = 0
        self.shared_libraries = []
        self.per_thread_libraries = []
        self.undo = []

    @uninterrupted
    def __enter__(self):
        depth = getattr(_here, "limiter_depth", 0)
        if depth == 0:
            interrupts.__enter__()
            self._hold()
        _here.limiter_depth = depth + 1

    @uninterrupted
    def __exit__(self, *exception):
        _here.limiter_depth -= 1
        if _here.limiter_depth == 0:
            self._release()
            interrupts.__exit__(*exception)

    def after_fork_in_child(self):
        # Only the thread that forked exists in the child, so that only its own hold counts.
        self.lock = threading.Lock()
        was_held = self.holders > 0
        self.holders = int(getattr(_here, "limiter_depth", 0) > 0)
        if was_held and not self.holders:
            _restore(self.undo)

    def _hold(self):
        with self.lock:
            if self.holders == 0:
                self._scan()
                self.undo = _limit(self.shared_libraries)
            self.holders += 1
        if self.per_thread_libraries:
            _here.threads_outside_limiter = effective_threads()
            _here.undo = _limit(self.per_thread_libraries)

    def _release(self):
        if self.per_thread_libraries:
            _restore(_here.undo)
            _here.threads_outside_limiter = None
        with self.lock:
            self.holders -= 1
            if self.holders == 0:
                _restore(self.undo)

    def _scan(self):
        """Look for BLAS libraries again if an import may have loaded one since the last time."""
        if self.modules_at_scan == len(sys.modules):
            return
        self.shared_libraries, self.per_thread_libraries = [], []
        for library in _blas_libraries():
            # Over OpenMP the number of threads is a setting of each thread.
            per_thread = getattr(library, "threading_layer", "") == "openmp"
            (self.per_thread_libraries if per_thread else self.shared_libraries).append(library)
        self.modules_at_scan = len(sys.modules)


def _blas_libraries():
    import scipy.linalg  # noqa: F401 - loads SciPy's own BLAS, which must not escape the scan
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().lib_controllers
    return [library for library in libraries if library.user_api == "blas"]


def _limit(libraries):
    """Set the libraries to one thread and return what `_restore` needs to undo it."""
    undo = []
    for library in libraries:
        # Recent threadpoolctl ignores calls from all threads but one; ours come from any, counted.
        set_threads = getattr(library, "_real_set_num_threads", library.set_num_threads)
        undo.append((set_threads, library.num_threads))
        set_threads(1)
    return undo


def _restore(undo):
    for set_threads, threads in undo:
        set_threads(threads)


_pool = _Pool()
_limiter = _Limiter()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.reset)
    os.register_at_fork(after_in_child=_limiter.after_fork_in_child)
