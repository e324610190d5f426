"""Charts as inline SVG, in the colors of the page."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin.report.markup import Markup, escape, format_value


class Chart:
    """Lines, points and bars over two linear axes.

    Parameters
    ----------
    x_range, y_range : tuple of float
        Limits of the axes.
    x_label, y_label : str
        Names of the axes.
    description : str
        What the chart shows, for readers who do not see it.
    """

    width, height = 640, 300
    left, right, top, bottom = 56, 626, 12, 258

    def __init__(
        self,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        x_label: str,
        y_label: str,
        description: str,
    ) -> None:
        self.x_range, self.y_range = _wide(x_range), _wide(y_range)
        self.labels, self.description = (x_label, y_label), description
        self.marks: list[str] = []
        self.legend: list[tuple[str, int]] = []

    def x(self, values: ArrayLike) -> np.ndarray:
        """Return positions of values on the horizontal axis."""
        low, high = self.x_range
        share = (np.asarray(values, dtype=float) - low) / (high - low)
        return self.left + (self.right - self.left) * share

    def y(self, values: ArrayLike) -> np.ndarray:
        """Return positions of values on the vertical axis."""
        low, high = self.y_range
        share = (np.asarray(values, dtype=float) - low) / (high - low)
        return self.bottom - (self.bottom - self.top) * share

    def line(
        self, x: ArrayLike, y: ArrayLike, name: str = "", color: int = 0, dots: bool = False
    ) -> "Chart":
        """Add a line, with dots at its points."""
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in self._positions(x, y))
        self.marks.append(f'<polyline class="line c{color}" points="{points}"/>')
        if dots:
            self.points(x, y, color=color, radius=3.5)
        return self._named(name, color)

    def points(
        self, x: ArrayLike, y: ArrayLike, name: str = "", color: int = 0, radius: float = 2.5
    ) -> "Chart":
        """Add points."""
        circles = "".join(
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{radius}"/>' for a, b in self._positions(x, y)
        )
        self.marks.append(f'<g class="dots c{color}">{circles}</g>')
        return self._named(name, color)

    def rule(self, text: str, *, x: float | None = None, y: float | None = None) -> "Chart":
        """Add a dashed line across the chart at a value of one axis, with a text."""
        if x is not None:
            at = float(self.x(x))
            path, side = f"M{at:.1f},{self.top}V{self.bottom}", at > (self.left + self.right) / 2
            position = f'x="{at + (-5 if side else 5):.1f}" y="{self.bottom - 6}"'
            anchor = "end" if side else "start"
        else:
            at = float(self.y(y if y is not None else 0.0))
            path, anchor = f"M{self.left},{at:.1f}H{self.right}", "end"
            position = f'x="{self.right - 5}" y="{at + (14 if at < self.top + 20 else -5):.1f}"'
        self.marks.append(
            f'<path class="rule" d="{path}"/><text class="rule-text" {position} '
            f'text-anchor="{anchor}">{escape(text)}</text>'
        )
        return self

    def html(self, extra: str = "") -> Markup:
        """Return the chart.

        Parameters
        ----------
        extra : str, default=""
            Further SVG on top.

        Returns
        -------
        html : Markup
        """
        legend = "".join(
            f'<span class="key c{color}">{escape(name)}</span>' for name, color in self.legend
        )
        legend = f'<div class="legend">{legend}</div>' if len(self.legend) > 1 else ""
        return Markup(
            f"<figure>{legend}"
            f'<svg viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(self.description)}">{self._axes()}{"".join(self.marks)}{extra}'
            "</svg></figure>"
        )

    def _positions(self, x: ArrayLike, y: ArrayLike) -> list:
        """Return positions of points, without those that are not finite."""
        positions = np.column_stack([self.x(x), self.y(y)])
        return positions[np.isfinite(positions).all(axis=1)].tolist()

    def _named(self, name: str, color: int) -> "Chart":
        if name:
            self.legend.append((name, color))
        return self

    def _axes(self) -> str:
        elements = []
        for value in ticks(*self.y_range):
            at = float(self.y(value))
            elements.append(f'<path class="grid" d="M{self.left},{at:.1f}H{self.right}"/>')
            elements.append(_text(self.left - 7, at + 4, format_value(value), "end"))
        for value in ticks(*self.x_range):
            at = float(self.x(value))
            elements.append(f'<path class="grid" d="M{at:.1f},{self.bottom}v4"/>')
            elements.append(_text(at, self.bottom + 17, format_value(value), "middle"))
        center, middle = (self.left + self.right) / 2, (self.top + self.bottom) / 2
        elements.append(_text(center, self.height - 6, self.labels[0], "middle"))
        elements.append(
            f'<text transform="translate(13 {middle:.0f}) rotate(-90)" text-anchor="middle">'
            f"{escape(self.labels[1])}</text>"
        )
        return "".join(elements)


def bars(names: Sequence[Any], values: ArrayLike, description: str) -> Markup:
    """Return horizontal bars with their names and values.

    Parameters
    ----------
    names : sequence
    values : array-like of non-negative numbers
    description : str
        What the values are.

    Returns
    -------
    html : Markup
    """
    values = np.asarray(values)
    longest = max(float(values.max(initial=0)), 1e-300)
    rows = "".join(
        f"<span>{escape(name)}</span>"
        f'<i><b style="width:{100 * value / longest:.1f}%"></b></i><em>{escape(value)}</em>'
        for name, value in zip(names, values, strict=True)
    )
    return Markup(f'<div class="bars" role="img" aria-label="{escape(description)}">{rows}</div>')


def ticks(low: float, high: float) -> np.ndarray:
    """Return about five round numbers of an interval.

    Parameters
    ----------
    low, high : float

    Returns
    -------
    values : ndarray
    """
    rough = (high - low) / 6
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * next(k for k in (1, 2, 5, 10) if k * power >= rough * 0.999)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return np.round(np.arange(first, last + 1) * step, 12) + 0.0  # no negative zero


def _wide(limits: tuple[float, float]) -> tuple[float, float]:
    """Return limits that differ."""
    low, high = (float(value) for value in limits)
    if not np.isfinite([low, high]).all():
        return 0.0, 1.0
    return (
        (low, high) if high - low > 1e-9 * max(abs(low), abs(high), 1e-300) else (low - 1, low + 1)
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
