"""Display of discriminant analysis on one feature: densities and boundaries."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from widemargin.plotting.discriminant import shared_covariance
from widemargin.plotting.display import ClassDisplay


class DiscriminantDensityDisplay(ClassDisplay):
    """Gaussian densities of one feature times their priors, and the boundaries between classes.

    Bayes' rule predicts the class with the highest curve; the boundaries are where it changes. With
    equal variances and priors a boundary is midway between two means, and it moves away from the
    class with the larger prior.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    grid : ndarray of shape (n_points,)
        Values of the feature.
    densities : ndarray of shape (n_classes, n_points)
        Prior times density of each class.
    boundaries : ndarray of shape (n_boundaries,)
        Values at which the most probable class changes.
    classes : ndarray of shape (n_classes,)
        Class labels.
    priors : ndarray of shape (n_classes,)
        Priors, for the legend.
    x : ndarray of shape (n_samples,), default=None
        Samples, plotted as a histogram.
    y : ndarray of shape (n_samples,), default=None
        Labels of the samples.
    feature_name : str, default='feature'
        Name of the feature, for the axis.

    Attributes
    ----------
    <<display_axes>>
    curves_ : list of matplotlib Line2D
        Density of each class.
    lines_ : list of matplotlib Line2D
        Boundaries.

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

    grid: np.ndarray
    densities: np.ndarray
    boundaries: np.ndarray
    priors: np.ndarray
    x: np.ndarray | None = None
    y: np.ndarray | None = None
    feature_name: str = "feature"

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, grid_resolution: int = 1000, ax: Any = None,
        colors: Sequence | None = None, legend: bool = True,
    ) -> Self:  # fmt: skip
        """Plot a discriminant analysis that was fitted on one feature.

        Parameters
        ----------
        estimator : fitted LinearDiscriminantAnalysis or QuadraticDiscriminantAnalysis
            Estimator fitted on one feature.
        X : array-like of shape (n_samples, 1)
            Samples. They determine the range, and the histogram if their labels are given.
        y : array-like of shape (n_samples,), default=None
            Labels of the samples.
        grid_resolution : int, default=1000
            Number of points of the curves.
        <<display_options>>

        Returns
        -------
        <<returns_display>>
        """
        check_is_fitted(estimator)
        samples = check_array(X)
        if samples.shape[1] != 1 or estimator.n_features_in_ != 1:
            raise ValueError(
                f"X must have 1 feature to be plotted as densities, got {samples.shape[1]}. Fit "
                "the estimator on one feature, or on one direction of transform."
            )
        means, variances = estimator.means_[:, 0], _variances(estimator)
        reach = 3.5 * np.sqrt(variances)
        grid = np.linspace(
            min((means - reach).min(), samples.min()),
            max((means + reach).max(), samples.max()),
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
            x=None if y is None else samples[:, 0],
            y=None if y is None else np.asarray(y),
            feature_name=str(getattr(X, "columns", ["feature"])[0]),
        )
        return display.plot(ax=ax, colors=colors, legend=legend)

    def _draw(self, colors: Sequence) -> None:
        self.curves_: list = []
        for k, (name, color) in enumerate(zip(self.classes, colors, strict=True)):
            density, label = self.densities[k], f"{name}, prior {self.priors[k]:.2g}"
            self.curves_ += self.ax_.plot(self.grid, density, color=color, label=label)
            leads = density >= self.densities.max(axis=0)
            look = {"color": color, "alpha": 0.15, "linewidth": 0}
            self.ax_.fill_between(self.grid, 0, density, where=leads, **look)
            if self.x is not None:
                self._draw_histogram(self.x[self.y == name], self.priors[k], color)
        self.lines_ = [
            self.ax_.axvline(boundary, color="0.15", linestyle="--", linewidth=1.2)
            for boundary in self.boundaries
        ]
        # Several displays may share the axes.
        top = max(self.ax_.get_ylim()[1], 1.05 * self.densities.max())
        self.ax_.set(xlabel=self.feature_name, ylabel="prior × density", ylim=(0, top))

    def _draw_histogram(self, x: np.ndarray, prior: float, color: Any) -> None:
        """Plot the histogram of a class, scaled by its prior."""
        edges = np.linspace(self.grid[0], self.grid[-1], 61)
        counts, _ = np.histogram(x, bins=edges)
        heights = prior * counts / max(1, counts.sum()) / (edges[1] - edges[0])
        self.ax_.stairs(heights, edges, color=color, alpha=0.35, linewidth=0.8)


def _variances(estimator: Any) -> np.ndarray:
    """Return the variance of every class for one feature."""
    if hasattr(estimator, "rotations_"):
        return np.array([spread[0] for spread in estimator.scalings_])
    variance = shared_covariance(estimator)
    if variance is None:
        raise ValueError(
            "estimator must have a covariance to be plotted, but stores none. Fit it with "
            "store_covariance=True."
        )
    return np.full(len(estimator.means_), variance[0, 0])


def _crossings(
    means: np.ndarray, variances: np.ndarray, priors: np.ndarray, grid: np.ndarray
) -> np.ndarray:
    """Return where the highest curve changes: the roots of differences of parabolas."""
    with np.errstate(divide="ignore"):
        constants = np.log(priors) - 0.5 * np.log(variances)

    leaders = (constants - 0.5 * (grid[:, np.newaxis] - means) ** 2 / variances).argmax(axis=1)
    heights = constants - 0.5 * means**2 / variances
    parabolas = np.column_stack([-0.5 / variances, means / variances, heights])
    found = []
    for k in np.flatnonzero(np.diff(leaders)):
        difference = parabolas[leaders[k]] - parabolas[leaders[k + 1]]
        roots = np.roots(np.trim_zeros(difference, "f")).real
        found.append(roots[np.abs(roots - (grid[k] + grid[k + 1]) / 2).argmin()])
    return np.array(found)
