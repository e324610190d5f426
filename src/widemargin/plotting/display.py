"""Base classes of the displays: axes, class colors and the plane of two features.

matplotlib is imported when a display is first plotted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import get_annotations
from typing import Any, Self, dataclass_transform

import numpy as np
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from widemargin._base.docs import shared_docs

# Palette of Okabe and Ito, which is safe for color-blind readers, with the most different first.
BLUE, VERMILION, GREEN, ORANGE, GRAY = "#0072b2", "#d55e00", "#009e73", "#e69f00", "#999999"
_CLASS_COLORS = (BLUE, VERMILION, GREEN, "#cc79a7", ORANGE, "#56b4e9", "#f0e442", "#000000")


def import_pyplot(display: str = "This display") -> Any:
    """Return matplotlib.pyplot, or raise an ImportError with the name of the display."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{display} requires matplotlib. Install it with pip install 'widemargin[plot]'."
        ) from error
    return pyplot


def class_colors(colors: Sequence | None, n_classes: int) -> Sequence:
    """Return one color for each class."""
    if colors is None:
        return [_CLASS_COLORS[i % len(_CLASS_COLORS)] for i in range(n_classes)]
    if len(colors) != n_classes:
        raise ValueError(f"colors must contain one per class ({n_classes}), got {len(colors)}.")
    return colors


def make_plane(X: Any, y: Any, resolution: int, padding: float) -> tuple[dict[str, Any], Any]:
    """Return samples of two features and a grid around them.

    Returns
    -------
    plane : dict
        Arguments of `PlaneDisplay`.
    grid : ndarray or DataFrame of shape (resolution ** 2, 2)
        The points of the grid, in the container of the samples.
    """
    names = [str(name) for name in getattr(X, "columns", ["feature 0", "feature 1"])]
    points = check_array(X)
    if points.shape[1] != 2:
        raise ValueError(
            f"X must have 2 features to be plotted, got {points.shape[1]}. Fit the estimator on "
            "two features, or on two directions of a transform."
        )
    check_consistent_length(points, y)
    low, high = points.min(axis=0), points.max(axis=0)
    margin = padding * np.where(high > low, high - low, 1)
    xx0, xx1 = np.meshgrid(*np.linspace(low - margin, high + margin, resolution).T)
    grid: Any = np.column_stack([xx0.ravel(), xx1.ravel()])
    if hasattr(X, "columns"):
        grid = type(X)(dict(zip(X.columns, grid.T, strict=True)))
    plane = {"xx0": xx0, "xx1": xx1, "X": points, "y": np.asarray(y), "feature_names": names}
    return plane, grid


@dataclass_transform(kw_only_default=True)
class Display:
    """Base class of the displays, which are dataclasses with keyword arguments.

    Shared descriptions are inserted into their docstrings, see `shared_docs`.
    """

    ax_: Any
    axes_: Any
    figure_: Any

    def __init_subclass__(cls) -> None:
        if get_annotations(cls):
            dataclass(kw_only=True, eq=False, repr=False)(cls)
        shared_docs(cls)

    def _use_axes(self, ax: Any, **options: Any) -> Any:
        """Set and return `ax_`, in a new figure with ``options`` if ``ax`` is None."""
        if ax is None:
            _, ax = import_pyplot(type(self).__name__).subplots(**options)
        if np.ndim(ax):
            raise ValueError(f"{type(self).__name__} needs one matplotlib Axes, got {np.size(ax)}.")
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _use_axes_array(self, axes: Any, shape: tuple[int, int], **options: Any) -> np.ndarray:
        """Set and return `axes_` of this shape, in a new figure if ``axes`` is None."""
        if axes is None:
            pyplot = import_pyplot(type(self).__name__)
            _, axes = pyplot.subplots(*shape, squeeze=False, layout="constrained", **options)
        if np.size(axes) != shape[0] * shape[1]:
            raise ValueError(
                f"{type(self).__name__} needs {shape[0] * shape[1]} matplotlib Axes, got "
                f"{np.size(axes)}."
            )
        self.axes_ = np.asarray(axes).reshape(shape)
        self.figure_ = self.axes_[0, 0].figure
        return self.axes_


class ClassDisplay(Display):
    """Base class of displays with a color for each class; a display defines `_draw`."""

    classes: Any

    def plot(self, *, ax: Any = None, colors: Sequence | None = None, legend: bool = True) -> Self:
        """Plot the display.

        Parameters
        ----------
        <<display_options>>

        Returns
        -------
        <<returns_display>>
        """
        self._use_axes(ax)
        self._draw(class_colors(colors, len(self.classes)))
        if legend:
            self._draw_legend()
        return self

    def _draw(self, colors: Sequence) -> None:
        raise NotImplementedError

    def _draw_legend(self) -> None:
        self.ax_.legend(fontsize="small", framealpha=0.9)


class PlaneDisplay(ClassDisplay):
    """Base class of displays of a classifier on two features; a display defines `_evaluate`."""

    xx0: np.ndarray
    xx1: np.ndarray
    X: np.ndarray
    y: np.ndarray
    feature_names: Sequence[str]

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, grid_resolution: int = 200, padding: float = 0.05,
        ax: Any = None, colors: Sequence | None = None, legend: bool = True,
    ) -> Self:  # fmt: skip
        """Plot a fitted classifier on two features, and samples.

        Parameters
        ----------
        estimator : fitted classifier
            Classifier fitted on two features.
        X : array-like of shape (n_samples, 2)
            Samples.
        <<y>>
        grid_resolution : int, default=200
            Number of grid points along each feature.
        padding : float, default=0.05
            Margin around the samples, relative to their range.
        <<display_options>>

        Returns
        -------
        <<returns_display>>
        """
        check_is_fitted(estimator)
        plane, grid = make_plane(X, y, grid_resolution, padding)
        values = cls._evaluate(estimator, plane, grid)
        display = cls(classes=estimator.classes_, **plane, **values)
        return display.plot(ax=ax, colors=colors, legend=legend)

    @classmethod
    def _evaluate(cls, estimator: Any, plane: dict[str, Any], grid: Any) -> dict[str, Any]:
        """Return further arguments of the constructor."""
        raise NotImplementedError

    def _draw_points(self, name: Any, color: Any, size: float) -> Any:
        """Plot the samples of a class."""
        look = {"s": size, "color": color, "edgecolors": "white", "linewidths": 0.5}
        return self.ax_.scatter(*self.X[self.y == name].T, label=name, zorder=3, **look)
