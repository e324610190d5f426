"""Displays of discriminant analysis: densities, projected samples, and regions of two features."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from widemargin.plotting.display import ClassDisplay, PlaneDisplay


class DiscriminantDensityDisplay(ClassDisplay):
    """Gaussian densities of one feature times their priors, and the boundaries between classes.

    Bayes' rule predicts the class with the highest curve; the boundaries are where it changes. With
    equal variances and priors a boundary is midway between two means, and it moves away from the
    class with the larger prior.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    grid : ndarray of shape (n_points,)
        Values of the feature.
    densities : ndarray of shape (n_classes, n_points)
        Prior times density of each class.
    boundaries : ndarray of shape (n_boundaries,)
        Values at which the most probable class changes.
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


class DiscriminantProjectionDisplay(ClassDisplay):
    """Samples projected onto the directions that separate the classes.

    Along two directions, the plot shows the samples, the mean and the ellipses of one and two
    standard deviations of each class; along one direction, a histogram and the mean.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    projected : ndarray of shape (n_samples, n_directions)
        Samples along one or two directions.
    y : ndarray of shape (n_samples,)
        Labels of the samples.
    ratios : ndarray of shape (n_directions,), default=None
        Share of each direction in the scatter between classes, for the axes.

    Attributes
    ----------
    <<display_axes>>
    points_ : list
        Samples of each class: a PathCollection, or the bars of a histogram.
    means_ : list of matplotlib Line2D
        Mean of each class.
    ellipses_ : list of matplotlib Ellipse
        Ellipses of all classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearDiscriminantAnalysis
    >>> from widemargin.plotting import DiscriminantProjectionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearDiscriminantAnalysis().fit(X, y)
    >>> display = DiscriminantProjectionDisplay.from_estimator(model, X, y)
    >>> display.figure_.savefig("iris.png")  # doctest: +SKIP
    """

    projected: np.ndarray
    y: np.ndarray
    ratios: Any = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, ax: Any = None, colors: Sequence | None = None,
        legend: bool = True,
    ) -> Self:  # fmt: skip
        """Plot samples projected by a fitted discriminant analysis.

        Parameters
        ----------
        estimator : fitted LinearDiscriminantAnalysis or KernelDiscriminantAnalysis
            Estimator with ``transform`` and ``classes_``. The first two directions are plotted.
        <<X>>
        <<y>>
        <<display_options>>

        Returns
        -------
        <<returns_display>>
        """
        check_is_fitted(estimator)
        projected = np.asarray(estimator.transform(X))[:, :2]
        check_consistent_length(projected, y)
        if not projected.shape[1]:
            raise ValueError(
                "estimator must have at least one direction, got none. The class means are equal."
            )
        ratios = getattr(estimator, "explained_variance_ratio_", None)
        samples: dict[str, Any] = {"projected": projected, "y": np.asarray(y), "ratios": ratios}
        display = cls(classes=estimator.classes_, **samples)
        return display.plot(ax=ax, colors=colors, legend=legend)

    def _draw(self, colors: Sequence) -> None:
        self.points_: list = []
        self.means_: list = []
        self.ellipses_: list = []
        draw = self._draw_plane if self.projected.shape[1] == 2 else self._draw_histogram
        for name, color in zip(self.classes, colors, strict=True):
            samples = self.projected[self.y == name]
            if len(samples):
                draw(samples, name, color)
        self.ax_.set(xlabel=self._label(0), ylabel=self._label(1))

    def _draw_plane(self, samples: np.ndarray, name: Any, color: Any) -> None:
        look = {"s": 16, "color": color, "alpha": 0.55, "linewidths": 0}
        self.points_.append(self.ax_.scatter(*samples.T, label=name, **look))
        mean = samples.mean(axis=0)
        covariance = np.cov(samples.T, bias=True)
        self.ellipses_ += _draw_ellipses(self.ax_, mean, covariance, color)
        self.means_ += _draw_mean(self.ax_, mean, color)

    def _draw_histogram(self, samples: np.ndarray, name: Any, color: Any) -> None:
        low, high = self.projected.min(), self.projected.max()
        *_, bars = self.ax_.hist(
            samples[:, 0], bins=np.linspace(low, high, 41), color=color, alpha=0.5, label=name
        )
        self.points_.append(bars)
        self.means_.append(self.ax_.axvline(samples.mean(), color=color, linestyle="--"))

    def _label(self, axis: int) -> str:
        if axis >= self.projected.shape[1]:
            return "samples"
        share = ""
        if self.ratios is not None and len(self.ratios) > axis:
            share = f" ({100 * float(self.ratios[axis]):.0f} % between classes)"
        return f"direction {axis + 1}{share}"


class DiscriminantRegionDisplay(PlaneDisplay):
    """Decision regions of two features, with class means and ellipses of the Gaussians.

    The plane has the color of the most probable class, lighter where its probability is smaller.
    The ellipses contain one and two standard deviations of the covariance that the model uses: the
    same for all classes in linear discriminant analysis, one for each class in quadratic
    discriminant analysis. There are no ellipses for models that do not store a covariance (two
    classes, 'svd' and no ``store_covariance``).

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    <<display_plane>>
    probabilities : ndarray of shape (n_classes, grid_resolution, grid_resolution)
        Probabilities of the classes on the grid.
    gaussians : list of (mean, covariance)
        Gaussians of the classes; may be empty.

    Attributes
    ----------
    <<display_axes>>
    regions_ : matplotlib AxesImage
        Colored plane.
    lines_ : list of matplotlib ContourSet
        Boundary of each class.
    points_ : list of matplotlib PathCollection
        Samples of each class.
    means_ : list of matplotlib Line2D
        Means of the classes.
    ellipses_ : list of matplotlib Ellipse
        Ellipses of all classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import QuadraticDiscriminantAnalysis
    >>> from widemargin.plotting import DiscriminantRegionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = QuadraticDiscriminantAnalysis().fit(X[:, :2], y)
    >>> display = DiscriminantRegionDisplay.from_estimator(model, X[:, :2], y)
    >>> display.figure_.savefig("iris.png")  # doctest: +SKIP
    """

    probabilities: np.ndarray
    gaussians: list[tuple]

    @classmethod
    def _evaluate(cls, estimator: Any, plane: dict[str, Any], grid: Any) -> dict[str, Any]:
        probabilities = estimator.predict_proba(grid).T.reshape(-1, *plane["xx0"].shape)
        return {"probabilities": probabilities, "gaussians": _gaussians(estimator)}

    def _draw(self, colors: Sequence) -> None:
        self._draw_regions(colors)
        named = zip(self.classes, colors, strict=True)
        self.points_ = [self._draw_points(name, color, size=18) for name, color in named]
        self.means_: list = []
        self.ellipses_: list = []
        for (mean, covariance), color in zip(self.gaussians, colors, strict=False):
            self.ellipses_ += _draw_ellipses(self.ax_, mean, covariance, color)
            self.means_ += _draw_mean(self.ax_, mean, color)
        self.ax_.set(
            xlim=(self.xx0[0, 0], self.xx0[-1, -1]),
            ylim=(self.xx1[0, 0], self.xx1[-1, -1]),
            xlabel=self.feature_names[0],
            ylabel=self.feature_names[1],
        )

    def _draw_regions(self, colors: Sequence) -> None:
        from matplotlib.colors import to_rgb

        best = self.probabilities.argmax(axis=0)
        shares = np.array([to_rgb(color) for color in colors])[best]
        certainty = self.probabilities.max(axis=0)[..., np.newaxis]
        faint = 1.0 - 0.45 * certainty**2 * (1.0 - shares)
        extent = (self.xx0[0, 0], self.xx0[-1, -1], self.xx1[0, 0], self.xx1[-1, -1])
        look: dict[str, Any] = {"extent": extent, "origin": "lower", "aspect": "auto", "zorder": 0}
        self.regions_ = self.ax_.imshow(faint, interpolation="nearest", **look)
        self.lines_ = []
        for k in range(len(self.classes)):
            others = np.delete(self.probabilities, k, axis=0).max(axis=0)
            lead = self.probabilities[k] - others
            if lead.min() < 0 < lead.max():
                grid = self.xx0, self.xx1, lead
                look = {"colors": "0.15", "linewidths": 1.0, "zorder": 2}
                self.lines_.append(self.ax_.contour(*grid, levels=[0], **look))


def shared_covariance(estimator: Any) -> np.ndarray | None:
    """Return the covariance that a linear discriminant analysis uses; None if it is not known."""
    if not (hasattr(estimator, "coef_") and hasattr(estimator, "means_")):
        return None
    covariance = getattr(estimator, "decision_covariance_", None)
    if covariance is None and hasattr(estimator, "scalings_"):
        # The directions of the eigenproblem whiten the covariance.
        directions = estimator.scalings_
        if np.linalg.matrix_rank(directions) == len(directions):
            return np.linalg.inv(directions @ directions.T)
    return getattr(estimator, "covariance_", None) if covariance is None else covariance


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
    crossings = []
    for k in np.flatnonzero(np.diff(leaders)):
        difference = parabolas[leaders[k]] - parabolas[leaders[k + 1]]
        roots = np.roots(np.trim_zeros(difference, "f")).real
        crossings.append(roots[np.abs(roots - (grid[k] + grid[k + 1]) / 2).argmin()])
    return np.array(crossings)


def _gaussians(estimator: Any) -> list[tuple]:
    """Return the means and covariances of the classes; empty if the model has none."""
    if hasattr(estimator, "rotations_"):
        arrays = estimator.means_, estimator.rotations_, estimator.scalings_
        return [
            (mean, (axes * spread) @ axes.T) for mean, axes, spread in zip(*arrays, strict=True)
        ]
    covariance = shared_covariance(estimator)
    return [] if covariance is None else [(mean, covariance) for mean in estimator.means_]


def _draw_ellipses(ax: Any, mean: Any, covariance: np.ndarray, color: Any) -> list:
    from matplotlib.patches import Ellipse

    values, vectors = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    height, width = 2.0 * np.sqrt(values.clip(min=0.0))
    look: dict[str, Any] = {"angle": angle, "fill": False, "edgecolor": color, "zorder": 4}
    return [
        ax.add_patch(Ellipse(mean, d * width, d * height, linewidth=1.4 / d, **look))
        for d in (1.0, 2.0)  # standard deviations
    ]


def _draw_mean(ax: Any, mean: np.ndarray, color: Any) -> list:
    look = {"marker": "X", "markersize": 9, "markeredgecolor": "white", "linestyle": ""}
    return ax.plot(*mean, color=color, zorder=5, **look)
