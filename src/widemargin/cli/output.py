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
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that work is going on, and for how long.

    Parameters
    ----------
    text : str
        What is going on.

    Yields
    ------
    show : callable
        Takes another text to show.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=None)
        yield lambda text: bar.update(task, description=text)


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
