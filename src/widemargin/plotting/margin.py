"""The picture of a machine on two features: regions, margins, support vectors."""

from copy import deepcopy
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted

# Okabe and Ito's palette: told apart by colour-blind eyes, in an order that starts far apart.
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#f0e442", "#000000")
_LINES: dict[int, dict[str, Any]] = {
    0: {"colors": "0.15", "linewidths": 1.2, "linestyles": "-"},
    1: {"colors": "0.15", "linewidths": 1.0, "linestyles": "--"},
}


class MarginDisplay:
    """Regions, margins and support vectors of a classifier on two features.

    A class owns the points where it leads: where every binary machine that judges it decides for
    it. Its region is filled, darker where the lead is at least one, so that the boundary (lead 0)
    runs in the middle of the margin (lead 1 on either side). With two classes these are the lines
    at 0, -1 and 1 of the decision function. Where no class leads, as in the ties of one-vs-one
    voting, the picture stays white.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    xx0 : ndarray of shape (grid_resolution, grid_resolution)
        First feature of the grid.
    xx1 : ndarray of shape (grid_resolution, grid_resolution)
        Second feature of the grid.
    lead : ndarray of shape (n_classes, grid_resolution, grid_resolution)
        By how much each class leads its closest rival.
    classes : ndarray of shape (n_classes,)
        The names of the classes.
    X : ndarray of shape (n_samples, 2)
        The training rows.
    y : ndarray of shape (n_samples,)
        Their classes.
    support : ndarray of shape (n_support,)
        Which training rows are support vectors.
    feature_names : sequence of two str
        The names of the features, for the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of the axes.
    regions_ : list of matplotlib ContourSet
        The filled region of each class.
    lines_ : list of matplotlib ContourSet
        The boundary (lead 0) and margin (lead 1) of each class.
    points_ : list of matplotlib PathCollection
        The training rows of each class.
    rings_ : matplotlib PathCollection
        The rings around the support vectors.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC
    >>> from widemargin.plotting import MarginDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = MarginDisplay.from_estimator(SVC().fit(X[:, :2], y), X[:, :2], y)
    >>> display.figure_.savefig("iris.png")  # doctest: +SKIP
    """

    def __init__(self, *, xx0, xx1, lead, classes, X, y, support, feature_names):
        self.xx0 = xx0
        self.xx1 = xx1
        self.lead = lead
        self.classes = classes
        self.X = X
        self.y = y
        self.support = support
        self.feature_names = feature_names

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y,
        *,
        grid_resolution=200,
        padding=0.05,
        ax=None,
        colors=None,
        legend=True,
    ):
        """Draw a fitted classifier and the rows it was trained on.

        Parameters
        ----------
        estimator : fitted classifier, or Pipeline that ends in one
            It has a ``decision_function``; where it has ``support_``, support vectors are ringed.
        X : array-like of shape (n_samples, 2)
            The training rows.
        y : array-like of shape (n_samples,)
            Their classes.
        grid_resolution : int, default=200
            Points of the grid along each feature.
        padding : float, default=0.05
            Room around the data, as a part of its range.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        colors : sequence of colors, default=None
            One per class; a colour-blind safe palette by default.
        legend : bool, default=True
            Whether to draw the legend.

        Returns
        -------
        MarginDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        points, names, (xx0, xx1), corners = _plane(X, y, grid_resolution, padding)
        display = cls(
            xx0=xx0,
            xx1=xx1,
            lead=_lead(estimator, corners).T.reshape(-1, *xx0.shape),
            classes=estimator.classes_,
            X=points,
            y=np.asarray(y),
            support=_support(estimator, points),
            feature_names=names,
        )
        return display.plot(ax=ax, colors=colors, legend=legend)

    def plot(self, *, ax=None, colors=None, legend=True):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        colors : sequence of colors, default=None
            One per class; a colour-blind safe palette by default.
        legend : bool, default=True
            Whether to draw the legend.

        Returns
        -------
        MarginDisplay
            The display itself.
        """
        pyplot = _pyplot()
        if ax is None:
            _, ax = pyplot.subplots()
        colors = _class_colors(colors, len(self.classes))
        self.ax_, self.figure_ = ax, ax.figure
        self.regions_, self.lines_, self.points_ = [], [], []
        for name, color, lead in zip(self.classes, colors, self.lead, strict=True):
            self._plot_region(lead, color)
            self._plot_points(name, color)
        self._plot_rings()
        ax.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])
        if legend:
            self._plot_legend()
        return self

    def _plot_region(self, lead, color):
        levels = [0, 1, max(2, lead.max() + 1)]
        fills = [(color, 0.18), (color, 0.38)]
        grid = self.xx0, self.xx1, lead
        self.regions_.append(self.ax_.contourf(*grid, levels=levels, colors=fills, zorder=1))
        for level, line in _LINES.items():
            if lead.min() < level < lead.max():
                self.lines_.append(self.ax_.contour(*grid, levels=[level], zorder=2, **line))

    def _plot_points(self, name, color):
        rows = self.X[self.y == name]
        look = {"s": 26, "color": color, "edgecolors": "white", "linewidths": 0.6}
        self.points_.append(self.ax_.scatter(*rows.T, label=name, zorder=3, **look))

    def _plot_rings(self):
        rows = self.X[self.support]
        look = {"s": 75, "facecolors": "none", "edgecolors": "black", "linewidths": 0.9}
        self.rings_ = self.ax_.scatter(*rows.T, label="support vector", zorder=4, **look)

    def _plot_legend(self):
        from matplotlib.lines import Line2D

        handles, _ = self.ax_.get_legend_handles_labels()
        for level, name in {0: "boundary", 1: "margin"}.items():
            look = {key.rstrip("s"): value for key, value in _LINES[level].items()}
            handles.append(Line2D([], [], label=name, **look))
        self.ax_.legend(handles=handles, fontsize="small", framealpha=0.9)


def _plane(X, y, resolution, padding):
    """Rows of two features, their names, and a grid around them: two arrays, and as rows like X."""
    names = [str(name) for name in getattr(X, "columns", ["feature 0", "feature 1"])]
    points = check_array(X)
    if points.shape[1] != 2:
        raise ValueError(
            f"X must have 2 features to be drawn, got {points.shape[1]}: fit the estimator on two "
            "columns, or on two directions of a transform."
        )
    check_consistent_length(points, y)
    grid = _grid(points, resolution, padding)
    corners = np.column_stack([part.ravel() for part in grid])
    if hasattr(X, "columns"):
        corners = type(X)(dict(zip(X.columns, corners.T, strict=True)))
    return points, names, grid, corners


def _grid(points, resolution, padding):
    low, high = points.min(axis=0), points.max(axis=0)
    room = padding * np.where(high > low, high - low, 1)
    return np.meshgrid(*np.linspace(low - room, high + room, resolution).T)


def _lead(estimator, rows):
    """By how much each class leads its closest rival, of shape (n_rows, n_classes).

    Pairwise machines give it directly: the smallest of a class's own decision values. Scores per
    class are halved differences, so that +1 for a class and -1 for all others is a lead of one, as
    it is with two classes.
    """
    estimator = deepcopy(estimator)
    machine = _machine(estimator)
    pairwise = hasattr(machine, "decision_function_shape")
    pairwise = pairwise and getattr(machine, "multi_class", "ovo") == "ovo"
    if pairwise:
        machine.decision_function_shape = "ovo"
    scores = estimator.decision_function(rows)
    if scores.ndim == 1:
        return np.column_stack([-scores, scores])
    n_classes = len(estimator.classes_)
    lead = np.full((len(scores), n_classes), np.inf)
    for column, (i, j) in enumerate(combinations(range(n_classes), 2)):
        over = scores[:, column] if pairwise else (scores[:, i] - scores[:, j]) / 2
        lead[:, i] = np.minimum(lead[:, i], over)
        lead[:, j] = np.minimum(lead[:, j], -over)
    return lead


def _support(estimator, points):
    machine = _machine(estimator)
    if not hasattr(machine, "support_"):
        return np.empty(0, dtype=int)
    if machine.shape_fit_[0] != len(points):
        raise ValueError(
            f"X must be the {machine.shape_fit_[0]} rows the estimator was fitted on, "
            f"got {len(points)} rows: the support vectors are among those."
        )
    return machine.support_


def _machine(estimator):
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator


def _class_colors(colors, n_classes):
    if colors is None:
        return [_COLORS[i % len(_COLORS)] for i in range(n_classes)]
    if len(colors) != n_classes:
        raise ValueError(f"colors must hold one per class ({n_classes}), got {len(colors)}.")
    return colors


def _pyplot(display="MarginDisplay"):
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{display} draws with matplotlib: install it with pip install 'widemargin[plot]'."
        ) from error
    return pyplot
