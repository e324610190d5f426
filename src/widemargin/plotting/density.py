"""The picture of a discriminant on one feature: densities and boundaries."""

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from widemargin.plotting.discriminant import axes_for, common_covariance
from widemargin.plotting.margin import _class_colors


class DiscriminantDensityDisplay:
    """The Gaussian densities of one feature, times their priors, and the boundaries between them.

    Bayes' rule decides for the class whose curve is highest; a boundary is where that changes. It
    lies midway between two means if the variances and the priors are equal, and moves away from
    the class that is the more probable beforehand.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    grid : ndarray of shape (n_points,)
        Values of the feature.
    densities : ndarray of shape (n_classes, n_points)
        Prior times density of each class.
    boundaries : ndarray of shape (n_boundaries,)
        Where the most probable class changes.
    classes : ndarray of shape (n_classes,)
        The names of the classes.
    priors : ndarray of shape (n_classes,)
        The priors, for the legend.
    x : ndarray of shape (n_samples,), default=None
        Rows, drawn as a histogram.
    y : ndarray of shape (n_samples,), default=None
        Their classes.
    feature_name : str, default='feature'
        The name of the feature, for the axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of the axes.
    curves_ : list of matplotlib Line2D
        The density of each class.
    lines_ : list of matplotlib Line2D
        The boundaries.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearDiscriminantAnalysis
    >>> from widemargin.plotting import DiscriminantDensityDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearDiscriminantAnalysis().fit(X[:, [2]], y)
    >>> display = DiscriminantDensityDisplay.from_estimator(model, X[:, [2]], y)
    >>> display.boundaries.round(1)
    array([2.9, 4.9])
    """

    def __init__(
        self,
        *,
        grid,
        densities,
        boundaries,
        classes,
        priors,
        x=None,
        y=None,
        feature_name="feature",
    ):
        self.grid = grid
        self.densities = densities
        self.boundaries = boundaries
        self.classes = classes
        self.priors = priors
        self.x = x
        self.y = y
        self.feature_name = feature_name

    @classmethod
    def from_estimator(
        cls, estimator, X, y=None, *, grid_resolution=1000, ax=None, colors=None, legend=True
    ):
        """Draw a discriminant that was fitted on one feature.

        Parameters
        ----------
        estimator : fitted LinearDiscriminantAnalysis or QuadraticDiscriminantAnalysis
            On one feature.
        X : array-like of shape (n_samples, 1)
            Rows: they give the range, and a histogram where their classes are given.
        y : array-like of shape (n_samples,), default=None
            Their classes.
        grid_resolution : int, default=1000
            Points of the curves.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        colors : sequence of colors, default=None
            One per class; a colour-blind safe palette by default.
        legend : bool, default=True
            Whether to draw the legend.

        Returns
        -------
        DiscriminantDensityDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        rows = check_array(X)
        if rows.shape[1] != 1 or estimator.n_features_in_ != 1:
            raise ValueError(
                f"X must have 1 feature to be drawn as densities, got {rows.shape[1]}: fit the "
                "estimator on one column, or on one direction of transform."
            )
        means, variances = estimator.means_[:, 0], _variances(estimator)
        reach = 3.5 * np.sqrt(variances)
        grid = np.linspace(
            min((means - reach).min(), rows.min()),
            max((means + reach).max(), rows.max()),
            grid_resolution,
        )
        exponent = -0.5 * (grid - means[:, np.newaxis]) ** 2 / variances[:, np.newaxis]
        heights = estimator.priors_ / np.sqrt(2.0 * np.pi * variances)
        display = cls(
            grid=grid,
            densities=heights[:, np.newaxis] * np.exp(exponent),
            boundaries=_crossings(means, variances, estimator.priors_, grid),
            classes=estimator.classes_,
            priors=estimator.priors_,
            x=None if y is None else rows[:, 0],
            y=None if y is None else np.asarray(y),
            feature_name=str(getattr(X, "columns", ["feature"])[0]),
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
        DiscriminantDensityDisplay
            The display itself.
        """
        self.ax_, self.figure_ = axes_for(ax, type(self).__name__)
        colors = _class_colors(colors, len(self.classes))
        self.curves_ = []
        for k, (name, color) in enumerate(zip(self.classes, colors, strict=True)):
            label = f"{name}, prior {self.priors[k]:.2g}"
            self.curves_ += self.ax_.plot(self.grid, self.densities[k], color=color, label=label)
            leads = self.densities[k] >= self.densities.max(axis=0)
            self.ax_.fill_between(
                self.grid, 0, self.densities[k], where=leads, color=color, alpha=0.15, linewidth=0
            )
            if self.x is not None:
                self._plot_histogram(self.x[self.y == name], self.priors[k], color)
        self.lines_ = [
            self.ax_.axvline(place, color="0.15", linestyle="--", linewidth=1.2)
            for place in self.boundaries
        ]
        top = max(self.ax_.get_ylim()[1], 1.05 * self.densities.max())  # of axes that are shared
        self.ax_.set(xlabel=self.feature_name, ylabel="prior × density", ylim=(0, top))
        if legend:
            self.ax_.legend(fontsize="small", framealpha=0.9)
        return self

    def _plot_histogram(self, x, prior, color):
        """Rows of a class, as many as its prior has it."""
        edges = np.linspace(self.grid[0], self.grid[-1], 61)
        counts, _ = np.histogram(x, bins=edges)
        heights = prior * counts / max(1, counts.sum()) / (edges[1] - edges[0])
        self.ax_.stairs(heights, edges, color=color, alpha=0.35, linewidth=0.8)


def _variances(estimator):
    """The variance of every class on one feature, as the model has it."""
    if hasattr(estimator, "rotations_"):
        return np.array([spread[0] for spread in estimator.scalings_])
    variance = common_covariance(estimator)
    if variance is None:
        raise ValueError(
            "estimator must have kept its covariance to be drawn, got none: fit it with "
            "store_covariance=True."
        )
    return np.full(len(estimator.means_), variance[0, 0])


def _crossings(means, variances, priors, grid):
    """Where the highest of the curves changes: roots of differences of parabolas."""
    with np.errstate(divide="ignore"):
        constants = np.log(priors) - 0.5 * np.log(variances)

    def scores(x):
        return constants - 0.5 * (x - means) ** 2 / variances

    leaders = [scores(x).argmax() for x in grid]
    found = []
    for left, right, i, j in zip(grid[:-1], grid[1:], leaders[:-1], leaders[1:], strict=True):
        if i != j:
            difference = [
                0.5 / variances[j] - 0.5 / variances[i],
                means[i] / variances[i] - means[j] / variances[j],
                constants[i]
                - constants[j]
                - 0.5 * means[i] ** 2 / variances[i]
                + 0.5 * means[j] ** 2 / variances[j],
            ]
            roots = np.roots(np.trim_zeros(difference, "f")).real
            found.append(roots[np.abs(roots - (left + right) / 2).argmin()])
    return np.array(found)
