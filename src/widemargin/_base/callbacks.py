"""Report the progress of a fit to scikit-learn's callbacks.

A fit is a task. Its subtasks are the optimization problems it solves, possibly in several threads.
The subtasks of a problem are slices of the solver's work, each a fraction of a second long. After
every slice, callbacks see the progress of the fit and can stop it. Where code has to be compiled
and that takes more than two seconds, they see a subtask "compilation" of the problem.
"""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

from widemargin._base.checkpoint import FitCheckpoint, PathLike, TaskCheckpoint
from widemargin._base.jit import clock
from widemargin._base.sklearn_compat import has_callbacks, init_callback_context
from widemargin._base.threads import stopping

State = TypeVar("State")


def run_in_slices(
    advance: Callable[[State], bool],
    state: State,
    report: Callable[[State], bool] | None = None,
    checkpoint: TaskCheckpoint | None = None,
) -> bool:
    """Advance a computation in slices until it finishes or is stopped.

    Inside `for_each`, it also stops when another call has failed or the caller was interrupted.

    Parameters
    ----------
    advance : callable
        ``advance(state)`` does a bounded slice of work and returns whether all work is done.
    state : object
        State of the computation.
    report : callable, default=None
        ``report(state)`` is called after every slice except the last and returns whether to stop.
    checkpoint : TaskCheckpoint, default=None
        Resumes the state before the first slice, and saves it after others.

    Returns
    -------
    finished : bool
        Whether all work is done.
    """
    if checkpoint is not None:
        checkpoint.resume(state)
    while not advance(state):
        if (report is not None and report(state)) or stopping():
            if checkpoint is not None:
                checkpoint.save(state)
            return False
        if checkpoint is not None:
            checkpoint.save_if_due(state)
    return True


class FitProgress:
    """Report the progress of one fit to the callbacks of its estimator, if it has any.

    The estimator must inherit `sklearn.callback.CallbackSupportMixin`, and its ``fit`` must be
    decorated with scikit-learn's ``_fit_context``, which calls the teardown of the callbacks even
    if the fit fails.

    Parameters
    ----------
    estimator : estimator
        The estimator being fitted.
    problems : int
        Number of problems that the fit solves.
    X, y : array-like, default=None
        Training data, passed on to the callbacks.
    metadata : dict, default=None
        Further arguments of fit, such as sample_weight. Values of None are left out.
    checkpoint : str or path-like, default=None
        File of the checkpoint of the fit.
    depends_on : object, default=None
        What else the checkpoint depends on, such as the indices of the folds of a search.

    Attributes
    ----------
    active : bool
        Whether the estimator has callbacks. If not, the methods do nothing.
    stop_requested : bool
        Whether a callback stopped a problem before it was solved.
    checkpoint : FitCheckpoint
        Saves the problems that are solved, and the states of their solvers.
    translate : callable or None
        Returns the fitted attributes of the estimator from those that a task passes, where these
        are the attributes of a part of it. None at first.
    """

    def __init__(
        self,
        estimator: Any,
        problems: int,
        X: Any = None,
        y: Any = None,
        metadata: Any = None,
        checkpoint: PathLike | None = None,
        depends_on: Any = None,
    ) -> None:
        self.active = has_callbacks(estimator)
        self.stop_requested = self._stop_all = False
        self.translate: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.checkpoint = FitCheckpoint(None, "")
        if checkpoint is not None:
            identity = fit_identity(estimator), X, y, metadata, depends_on
            self.checkpoint = FitCheckpoint(
                checkpoint, type(estimator).__name__, *identity,
                is_stopped=lambda: self.stop_requested,
            )  # fmt: skip
        passed = {name: value for name, value in (metadata or {}).items() if value is not None}
        self._hooks = {"estimator": estimator, "X": X, "y": y, "metadata": passed or None}
        if self.active:
            several = {"max_subtasks": problems, "sequential_subtasks": False}
            self._context = init_callback_context(estimator, **several)
            self._context.call_on_fit_task_begin(**self._hooks)

    @contextlib.contextmanager
    def task(
        self,
        number: int,
        attributes: Callable[[], dict[str, Any]] | None = None,
        name: str = "problem",
    ) -> Iterator[Callable[[], bool]]:
        """Return a context in which problem ``number`` is solved, in any thread.

        Parameters
        ----------
        number : int
            From 0 to ``problems - 1``. Use every number once.
        attributes : callable, default=None
            Returns a dict of the fitted attributes that the estimator would have if the fit
            stopped now. It is called for callbacks that evaluate the estimator during the fit.
        name : str, default="problem"
            Name of the task.

        Returns
        -------
        context : context manager
            Yields a function to call after every slice of work except the last. It returns
            whether to stop.
        """
        if not self.active:
            yield lambda: False
            return
        if attributes is not None and self.translate is not None:
            attributes = partial(_translated, self.translate, attributes)
        context = self._context.subcontext(name, task_id=number, max_subtasks=None)
        hooks = {"reconstruction_attributes": attributes, **self._hooks}
        context.call_on_fit_task_begin(**hooks)
        current = context.subcontext("slice").call_on_fit_task_begin(**hooks)

        def report() -> bool:
            nonlocal current
            if current is None:  # stopped earlier; a path of problems calls again
                return True
            stop = bool(current.call_on_fit_task_end(**hooks)) or self._stop_all
            self.stop_requested |= stop
            current = None if stop else context.subcontext("slice")
            if current is not None:
                current.call_on_fit_task_begin(**hooks)
            return stop

        def announce() -> None:
            compilation = context.subcontext("compilation")
            compilation.call_on_fit_task_begin(**hooks)
            compilation.call_on_fit_task_end(**hooks)

        clock.listeners.append(announce)
        try:
            yield report
        finally:
            clock.listeners.remove(announce)
        if current is not None:
            current.call_on_fit_task_end(**hooks)
        # A stop requested at the end of a problem applies to the remaining problems.
        self._stop_all |= bool(context.call_on_fit_task_end(**hooks))

    def close(self) -> None:
        """End the fit. The estimator must have its fitted attributes by now."""
        self.checkpoint.save()
        if self.active:
            self._context.call_on_fit_task_end(reconstruction_attributes={}, **self._hooks)


def _translated(translate: Callable, attributes: Callable) -> dict[str, Any]:
    return translate(attributes())


def fit_identity(estimator: Any) -> dict[str, Any]:
    """Return the parameters that the result of a fit depends on; of ``cv``, its folds do."""
    parameters = estimator.get_params(deep=False)
    if parameters.pop("warm_start", False):
        raise ValueError(
            "checkpoint cannot be used with warm_start=True: a fit in a new process does not know "
            "the solution that the interrupted one started from. Use one of them."
        )
    others = ("checkpoint", "n_jobs", "verbose", "cv")
    return {name: value for name, value in parameters.items() if name not in others}
