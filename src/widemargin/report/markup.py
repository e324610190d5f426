"""Pieces of HTML: text, tables, tiles. Text is escaped here, and nowhere else."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


class Markup(str):
    """Text that is HTML already."""


def escape(value: Any) -> str:
    """Return a value as HTML: numbers are formatted, text is escaped, markup stays as it is."""
    return value if isinstance(value, Markup) else html.escape(format_value(value))


def format_value(value: Any) -> str:
    """Return a value as text, numbers with four significant digits.

    Parameters
    ----------
    value : object

    Returns
    -------
    text : str
    """
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        number = float(value)
        return f"{number:,.0f}" if 1e4 <= abs(number) < 1e15 else f"{number:.4g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {format_value(item)}" for key, item in value.items())
    if isinstance(value, list | tuple | np.ndarray):
        return ", ".join(map(format_value, value))
    return str(value)


def paragraph(text: Any) -> Markup:
    """Return a paragraph of text."""
    return Markup(f"<p>{escape(text)}</p>")


def note(text: Any) -> Markup:
    """Return a paragraph in small print."""
    return Markup(f'<p class="note">{escape(text)}</p>')


def preformatted(text: str) -> Markup:
    """Return code or commands."""
    return Markup(f"<pre>{escape(text)}</pre>")


def facts(items: dict[str, Any]) -> Markup:
    """Return a list of names and values; values that are None are left out."""
    rows = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
        for name, value in items.items()
        if value is not None
    )
    return Markup(f"<dl>{rows}</dl>")


def tiles(items: dict[str, Any]) -> Markup:
    """Return the most important numbers, large."""
    cells = "".join(
        f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>"
        for name, value in items.items()
        if value is not None
    )
    return Markup(f'<div class="tiles">{cells}</div>')


def table(header: Sequence[Any], rows: Iterable[Sequence[Any]], caption: str = "") -> Markup:
    """Return a table. The first column is text, the others are numbers.

    Parameters
    ----------
    header : sequence
        Names of the columns.
    rows : iterable of sequence
        Values.
    caption : str, default=""
        Description.

    Returns
    -------
    html : Markup
    """
    title = note(caption) if caption else ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        f"{''.join(f'<td>{escape(value)}</td>' for value in rest)}</tr>"
        for first, *rest in rows
    )
    return Markup(
        f'{title}<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def heat_table(header: Sequence[Any], labels: Sequence[Any], counts: np.ndarray) -> Markup:
    """Return a table of counts whose cells are shaded by their share of the row.

    Parameters
    ----------
    header : sequence
        Names of the columns, the one of the labels first.
    labels : sequence
        Names of the rows.
    counts : ndarray of shape (n_rows, n_columns)

    Returns
    -------
    html : Markup
    """
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        f'<tr><th scope="row">{escape(label)}</th>{_shaded(row, share)}</tr>'
        for label, row, share in zip(labels, counts, shares, strict=True)
    )
    return Markup(
        f'<div class="wide"><table class="heat"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _shaded(row: np.ndarray, shares: np.ndarray) -> str:
    return "".join(
        f'<td style="--share:{share:.3f}" title="{share:.1%} of the row">{escape(int(count))}</td>'
        for count, share in zip(row, shares, strict=True)
    )
