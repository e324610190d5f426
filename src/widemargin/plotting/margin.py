"""Display of a classifier on two features: regions, margins, support vectors."""

from collections.abc import Sequence
from copy import deepcopy
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from widemargin.plotting.display import PlaneDisplay

_LINES: dict[int, dict[str, Any]] = {
    0: {"colors": "0.15", "linewidths": 1.2, "linestyles": "-"},
    1: {"colors": "0.15", "linewidths": 1.0, "linestyles": "--"},
}


class MarginDisplay(PlaneDisplay):
    """Regions, margins and support vectors of a classifier on two features.

    The region of a class contains the points at which all its binary subproblems decide for it,
    that is, at which its lead is positive. It is filled, darker where the lead is at least one, so
    that the boundary (lead 0) is in the middle of the margin (lead 1 on either side). With two
    classes these are the lines at 0, -1 and 1 of the decision function. Points without such a
    class, as in the ties of one-vs-one voting, stay white.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    <<display_plane>>
    lead : ndarray of shape (n_classes, grid_resolution, grid_resolution)
        Distance of each class from its closest competitor, in units of the margin.
    support : ndarray of shape (n_support,)
        Indices of the support vectors among the samples.

    Attributes
    ----------
    <<display_axes>>
    regions_ : list of matplotlib ContourSet
        Filled region of each class.
    lines_ : list of matplotlib ContourSet
        Boundary (lead 0) and margin (lead 1) of each class.
    points_ : list of matplotlib PathCollection
        Samples of each class.
    rings_ : matplotlib PathCollection
        Circles around the support vectors.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC
    >>> from widemargin.plotting import MarginDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = MarginDisplay.from_estimator(SVC().fit(X[:, :2], y), X[:, :2], y)
    >>> display.figure_.savefig("iris.png")  # doctest: +SKIP
    """

    lead: np.ndarray
    support: np.ndarray

    @classmethod
    def _evaluate(cls, estimator: Any, plane: dict[str, Any], grid: Any) -> dict[str, Any]:
        lead = _lead(estimator, grid).T.reshape(-1, *plane["xx0"].shape)
        return {"lead": lead, "support": _support(estimator, plane["X"])}

    def _draw(self, colors: Sequence) -> None:
        self.regions_: list = []
        self.lines_: list = []
        self.points_: list = []
        for name, color, lead in zip(self.classes, colors, self.lead, strict=True):
            self._plot_region(lead, color)
            self.points_.append(self._draw_points(name, color, size=26))
        self._plot_rings()
        self.ax_.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])

    def _plot_region(self, lead: np.ndarray, color: Any) -> None:
        levels = [0, 1, max(2, lead.max() + 1)]
        fills = [(color, 0.18), (color, 0.38)]
        grid = self.xx0, self.xx1, lead
        self.regions_.append(self.ax_.contourf(*grid, levels=levels, colors=fills, zorder=1))
        for level, line in _LINES.items():
            if lead.min() < level < lead.max():
                self.lines_.append(self.ax_.contour(*grid, levels=[level], zorder=2, **line))

    def _plot_rings(self) -> None:
        vectors = self.X[self.support]
        look = {"s": 75, "facecolors": "none", "edgecolors": "black", "linewidths": 0.9}
        self.rings_ = self.ax_.scatter(*vectors.T, label="support vector", zorder=4, **look)

    def _draw_legend(self) -> None:
        from matplotlib.lines import Line2D

        handles, _ = self.ax_.get_legend_handles_labels()
        for level, name in {0: "boundary", 1: "margin"}.items():
            look = {key.rstrip("s"): value for key, value in _LINES[level].items()}
            handles.append(Line2D([], [], label=name, **look))
        self.ax_.legend(handles=handles, fontsize="small", framealpha=0.9)


def _lead(estimator: Any, samples: Any) -> np.ndarray:
    """Return the lead of each class over its closest competitor.

    In one-vs-one it is the smallest of the decision values of a class. Scores of classes are
    compared by halved differences, so that +1 for a class and -1 for all others is a lead of one,
    as it is with two classes.
    """
    estimator = deepcopy(estimator)
    classifier = _classifier(estimator)
    pairwise = hasattr(classifier, "decision_function_shape")
    pairwise = pairwise and getattr(classifier, "multi_class", "ovo") == "ovo"
    if pairwise:
        classifier.decision_function_shape = "ovo"
    scores = estimator.decision_function(samples)
    if scores.ndim == 1:
        return np.column_stack([-scores, scores])
    n_classes = len(estimator.classes_)
    lead = np.full((len(scores), n_classes), np.inf)
    for column, (i, j) in enumerate(combinations(range(n_classes), 2)):
        over = scores[:, column] if pairwise else (scores[:, i] - scores[:, j]) / 2
        lead[:, i] = np.minimum(lead[:, i], over)
        lead[:, j] = np.minimum(lead[:, j], -over)
    return lead


def _support(estimator: Any, points: np.ndarray) -> np.ndarray:
    classifier = _classifier(estimator)
    if not hasattr(classifier, "support_"):
        return np.empty(0, dtype=int)
    if classifier.shape_fit_[0] != len(points):
        raise ValueError(
            f"X must contain the {classifier.shape_fit_[0]} samples that the estimator was fitted "
            f"to, which the support vectors are part of, got {len(points)} samples."
        )
    return classifier.support_


def _classifier(estimator: Any) -> Any:
    return estimator[-1] if isinstance(estimator, Pipeline) else estimator
