"""Print results: tables on a terminal, plain lines in a pipe, JSON for programs."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from widemargin._base.options import report_options as options


def print_result(result: dict[str, Any], as_json: bool) -> None:
    """Print a result, a line for each entry; entries that are lists of dicts are tables.

    Parameters
    ----------
    result : dict
        Strings, numbers, and lists of dicts with the same keys, by name.
    as_json : bool
        Whether to print one JSON object instead.
    """
    if as_json:
        print(json.dumps(result, default=_plain))
        return
    for name, value in result.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            _print_table(name, value)
        elif value not in (None, [], {}):
            print(f"{name.replace('_', ' ')}: {_text(value)}")


@contextmanager
def progress(text: str) -> Iterator[Callable[..., None]]:
    """Show on a terminal that work is going on, how much of it is done, and for how long.

    Parameters
    ----------
    text : str
        What is going on.

    Yields
    ------
    show : callable
        Takes another text to show, and how many subproblems are ``completed`` of a ``total``.
    """
    if not sys.stderr.isatty():
        yield lambda text=None, **done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    texts = TextColumn("{task.description}", markup=False)
    columns = SpinnerColumn(), texts, BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda text=None, **done: bar.update(task, description=text, **done)


@contextmanager
def fit_progress(model: Any, show: Callable[..., None]) -> Iterator[None]:
    """Show on a terminal how many subproblems of a fit are solved.

    Parameters
    ----------
    model : estimator
        Shown if it supports callbacks.
    show : callable
        What `progress` yields.
    """
    shown = sys.stderr.isatty() and hasattr(model, "set_callbacks")
    if shown:
        model.set_callbacks(_SolvedProblems(show))
    yield
    if shown:
        model.set_callbacks()


class _SolvedProblems:
    """Callback of scikit-learn that counts the tasks of a fit, as far as there are several."""

    def __init__(self, show: Callable[..., None]) -> None:
        self._show, self._completed = show, 0

    def setup(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Show the number of tasks."""
        if context.parent is None and (context.max_subtasks or 0) > 1:
            self._show(completed=0, total=context.max_subtasks)

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Count tasks of the fit itself."""
        if context.parent is not None and context.parent.parent is None:
            self._completed += 1
            self._show(completed=self._completed)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Do nothing."""


def _print_table(name: str, rows: list[dict[str, Any]]) -> None:
    if not sys.stdout.isatty():
        print(f"{name.replace('_', ' ')}:")
        print("\t".join(rows[0]))
        for row in rows:
            print("\t".join(_text(value) for value in row.values()))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=name.replace("_", " "))
    for column in rows[0]:
        table.add_column(column)
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    Console().print(table)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        left = len(value) - options.most_listed_classes
        texts = [_text(item) for item in value[: options.most_listed_classes]]
        return ", ".join([*texts, f"and {left} more"] if left > 0 else texts)
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def _plain(value: Any) -> Any:
    """Return a NumPy value as JSON data."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)
