"""What a fit tells scikit-learn's callbacks, and the loop in which it does.

A fit is a task whose subtasks are the problems it solves; those may run in several threads. The
subtasks of a problem are slices of its solver's work, a fraction of a second each: after every
slice callbacks see how far the fit is and may ask for its end.
"""

import contextlib

from widemargin._base.sklearn_compat import has_callbacks, init_callback_context
from widemargin._base.threads import stopping

__all__ = ["FitProgress", "drive"]


def drive(advance, report):
    """Work in slices until the work is done or nobody wants any more of it.

    Inside `for_each` it also ends when another call has failed or the caller was interrupted.

    Parameters
    ----------
    advance : callable
        ``advance()`` does a bounded slice of work and returns whether all of it is done.
    report : callable
        ``report()``, called after each slice but the last, returns whether to stop.

    Returns
    -------
    finished : bool
        Whether the work is done.
    """
    while not advance():
        if report() or stopping():
            return False
    return True


class FitProgress:
    """The tasks of one fit, as its estimator's callbacks see them.

    Get one from `open`. The estimator inherits `sklearn.callback.CallbackSupportMixin` and its
    ``fit`` is decorated with scikit-learn's ``_fit_context``, which calls the
    callbacks' teardown whatever happens. ``asked`` tells whether a callback ended a problem early.
    """

    listening = True

    def __init__(self, estimator, problems, data):
        self.estimator = estimator
        self.data = data
        self.stopped = self.asked = False
        self.context = init_callback_context(
            estimator, max_subtasks=problems, sequential_subtasks=False
        )
        self.context.call_on_fit_task_begin(estimator=estimator, **data)

    @staticmethod
    def open(estimator, problems, X=None, y=None, metadata=None):
        """Begin the fit of ``estimator``, which will solve ``problems`` problems.

        Parameters
        ----------
        estimator : estimator
            The one being fitted.
        problems : int
            How many tasks there will be.
        X, y : array-like, default=None
            What it is fitted on, for callbacks that want to see.
        metadata : dict, default=None
            Further arguments of fit, such as sample_weight; those that are None are left out.

        Returns
        -------
        progress : FitProgress
            Does nothing, at no cost, for an estimator without callbacks.
        """
        if not has_callbacks(estimator):
            return _SILENCE
        given = {name: value for name, value in (metadata or {}).items() if value is not None}
        return FitProgress(estimator, problems, {"X": X, "y": y, "metadata": given or None})

    @contextlib.contextmanager
    def task(self, number, attributes=None, name="problem"):
        """Solve problem ``number`` in a ``with`` block, in any thread.

        Parameters
        ----------
        number : int
            From 0 to ``problems - 1``, each once.
        attributes : callable, default=None
            Returns the fitted attributes that the estimator would have if the fit ended now, as a
            dict. It is called for callbacks that evaluate the estimator during the fit.
        name : str, default="problem"
            What the task is called.

        Yields
        ------
        report : callable
            To be called after each slice of work but the last; returns whether to stop.
        """
        context = self.context.subcontext(name, task_id=number, max_subtasks=None)
        hooks = {"estimator": self.estimator, "reconstruction_attributes": attributes, **self.data}
        context.call_on_fit_task_begin(**hooks)
        current = context.subcontext("slice").call_on_fit_task_begin(**hooks)

        def report():
            nonlocal current
            if current is None:  # stopped before: a path of problems asks again
                return True
            stop = current.call_on_fit_task_end(**hooks) or self.stopped
            self.asked |= stop
            current = None if stop else context.subcontext("slice")
            if current is not None:
                current.call_on_fit_task_begin(**hooks)
            return stop

        yield report
        if current is not None:
            current.call_on_fit_task_end(**hooks)
        # A callback that asks here for an end means the other problems.
        self.stopped |= context.call_on_fit_task_end(**hooks)

    def close(self):
        """End the fit; the estimator has its fitted attributes now."""
        self.context.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes={}, **self.data
        )


class _Silence:
    """The progress of an estimator without callbacks."""

    listening = asked = False

    def task(self, number, attributes=None, name="problem"):
        return contextlib.nullcontext(_never)

    def close(self):
        pass


def _never():
    return False


_SILENCE = _Silence()
