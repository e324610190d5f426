"""Pictures of discriminants: the projection, the regions of two features, the densities of one."""

import numpy as np
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from widemargin.plotting.margin import _class_colors, _grid, _pyplot

# Ellipses hold this many standard deviations.
_DEVIATIONS = (1.0, 2.0)


class DiscriminantProjectionDisplay:
    """Rows along the directions that separate the classes, with class means and ellipses.

    Along two directions every class has its rows, its mean and ellipses of one and two standard
    deviations; along one direction a histogram and its mean.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    projected : ndarray of shape (n_samples, n_directions)
        The rows along one or two directions.
    y : ndarray of shape (n_samples,)
        Their classes.
    classes : ndarray of shape (n_classes,)
        The names of the classes.
    ratios : ndarray of shape (n_directions,), default=None
        Share of each direction in the scatter between classes, for the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of the axes.
    points_ : list
        The rows of each class: a PathCollection, or the bars of a histogram.
    means_ : list of matplotlib Line2D
        The mean of each class.
    ellipses_ : list of matplotlib Ellipse
        The ellipses of all classes.

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

    def __init__(self, *, projected, y, classes, ratios=None):
        self.projected = projected
        self.y = y
        self.classes = classes
        self.ratios = ratios

    @classmethod
    def from_estimator(cls, estimator, X, y, *, ax=None, colors=None, legend=True):
        """Draw rows as a fitted discriminant projects them.

        Parameters
        ----------
        estimator : fitted LinearDiscriminantAnalysis or KernelDiscriminantAnalysis
            Anything with ``transform`` and ``classes_``; the first two columns are drawn.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        colors : sequence of colors, default=None
            One per class; a colour-blind safe palette by default.
        legend : bool, default=True
            Whether to draw the legend.

        Returns
        -------
        DiscriminantProjectionDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        projected = np.asarray(estimator.transform(X))[:, :2]
        check_consistent_length(projected, y)
        if not projected.shape[1]:
            raise ValueError(
                "estimator must have at least one direction, got none: the class means are equal."
            )
        ratios = getattr(estimator, "explained_variance_ratio_", None)
        display = cls(
            projected=projected, y=np.asarray(y), classes=estimator.classes_, ratios=ratios
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
        DiscriminantProjectionDisplay
            The display itself.
        """
        self.ax_, self.figure_ = _axes(ax, type(self).__name__)
        self.points_, self.means_, self.ellipses_ = [], [], []
        draw = self._plot_plane if self.projected.shape[1] == 2 else self._plot_line
        for name, color in zip(self.classes, _class_colors(colors, len(self.classes)), strict=True):
            rows = self.projected[self.y == name]
            if len(rows):
                draw(rows, name, color)
        self.ax_.set(xlabel=self._label(0), ylabel=self._label(1))
        if legend:
            self.ax_.legend(fontsize="small", framealpha=0.9)
        return self

    def _plot_plane(self, rows, name, color):
        look = {"s": 16, "color": color, "alpha": 0.55, "linewidths": 0}
        self.points_.append(self.ax_.scatter(*rows.T, label=name, **look))
        mean = rows.mean(axis=0)
        self.ellipses_ += _draw_ellipses(self.ax_, mean, _covariance(rows), color)
        self.means_ += _draw_mean(self.ax_, mean, color)

    def _plot_line(self, rows, name, color):
        low, high = self.projected.min(), self.projected.max()
        *_, bars = self.ax_.hist(
            rows[:, 0], bins=np.linspace(low, high, 41), color=color, alpha=0.5, label=name
        )
        self.points_.append(bars)
        self.means_.append(self.ax_.axvline(rows.mean(), color=color, linestyle="--"))

    def _label(self, axis):
        if axis >= self.projected.shape[1]:
            return "rows"
        share = ""
        if self.ratios is not None and len(self.ratios) > axis:
            share = f" ({100 * float(self.ratios[axis]):.0f} % between classes)"
        return f"direction {axis + 1}{share}"


class DiscriminantRegionDisplay:
    """Decision regions on two features, with class means and the ellipses of the Gaussians.

    The plane is coloured by the most probable class, the fainter the less sure. Ellipses hold one
    and two standard deviations of the covariance that the model assumes: the same for all classes
    in linear discriminant analysis, each class's own in the quadratic one; models that assume none
    get none.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    xx0 : ndarray of shape (grid_resolution, grid_resolution)
        First feature of the grid.
    xx1 : ndarray of shape (grid_resolution, grid_resolution)
        Second feature of the grid.
    probabilities : ndarray of shape (n_classes, grid_resolution, grid_resolution)
        Probabilities of the classes on the grid.
    classes : ndarray of shape (n_classes,)
        The names of the classes.
    X : ndarray of shape (n_samples, 2)
        Rows.
    y : ndarray of shape (n_samples,)
        Their classes.
    gaussians : list of (mean, covariance)
        What the model assumes of each class; may be empty.
    feature_names : sequence of two str
        The names of the features, for the axes.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of the axes.
    regions_ : matplotlib AxesImage
        The coloured plane.
    lines_ : list of matplotlib ContourSet
        The boundary of each class.
    points_ : list of matplotlib PathCollection
        The rows of each class.
    means_ : list of matplotlib Line2D
        The means of the classes.
    ellipses_ : list of matplotlib Ellipse
        The ellipses of all classes.

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

    def __init__(self, *, xx0, xx1, probabilities, classes, X, y, gaussians, feature_names):
        self.xx0 = xx0
        self.xx1 = xx1
        self.probabilities = probabilities
        self.classes = classes
        self.X = X
        self.y = y
        self.gaussians = gaussians
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
        """Draw a fitted classifier of two features and rows.

        Parameters
        ----------
        estimator : fitted classifier
            It has ``predict_proba``.
        X : array-like of shape (n_samples, 2)
            Rows.
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
        DiscriminantRegionDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        names = [str(name) for name in getattr(X, "columns", ["feature 0", "feature 1"])]
        points = check_array(X)
        if points.shape[1] != 2:
            raise ValueError(
                f"X must have 2 features to be drawn, got {points.shape[1]}: "
                "fit the estimator on two columns, or on two directions of transform."
            )
        check_consistent_length(points, y)
        xx0, xx1 = _grid(points, grid_resolution, padding)
        corners = np.column_stack([xx0.ravel(), xx1.ravel()])
        if hasattr(X, "columns"):
            corners = type(X)(dict(zip(X.columns, corners.T, strict=True)))
        display = cls(
            xx0=xx0,
            xx1=xx1,
            probabilities=estimator.predict_proba(corners).T.reshape(-1, *xx0.shape),
            classes=estimator.classes_,
            X=points,
            y=np.asarray(y),
            gaussians=_gaussians(estimator, points, np.asarray(y)),
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
        DiscriminantRegionDisplay
            The display itself.
        """
        self.ax_, self.figure_ = _axes(ax, type(self).__name__)
        colors = _class_colors(colors, len(self.classes))
        self._plot_regions(colors)
        self.points_, self.means_, self.ellipses_ = [], [], []
        for name, color in zip(self.classes, colors, strict=True):
            look = {"s": 18, "color": color, "edgecolors": "white", "linewidths": 0.4}
            rows = self.X[self.y == name]
            self.points_.append(self.ax_.scatter(*rows.T, label=name, zorder=3, **look))
        for (mean, covariance), color in zip(self.gaussians, colors, strict=False):
            self.ellipses_ += _draw_ellipses(self.ax_, mean, covariance, color)
            self.means_ += _draw_mean(self.ax_, mean, color)
        low, high = (self.xx0[0, 0], self.xx1[0, 0]), (self.xx0[-1, -1], self.xx1[-1, -1])
        self.ax_.set(
            xlim=(low[0], high[0]),
            ylim=(low[1], high[1]),
            xlabel=self.feature_names[0],
            ylabel=self.feature_names[1],
        )
        if legend:
            self.ax_.legend(fontsize="small", framealpha=0.9)
        return self

    def _plot_regions(self, colors):
        from matplotlib.colors import to_rgb

        best = self.probabilities.argmax(axis=0)
        shares = np.array([to_rgb(color) for color in colors])[best]
        certainty = self.probabilities.max(axis=0)[..., np.newaxis]
        faint = 1.0 - 0.45 * certainty**2 * (1.0 - shares)
        extent = (self.xx0[0, 0], self.xx0[-1, -1], self.xx1[0, 0], self.xx1[-1, -1])
        look = {"extent": extent, "origin": "lower", "aspect": "auto", "zorder": 0}
        self.regions_ = self.ax_.imshow(faint, interpolation="nearest", **look)
        self.lines_ = []
        for k in range(len(self.classes)):
            others = np.delete(self.probabilities, k, axis=0).max(axis=0)
            lead = self.probabilities[k] - others
            if lead.min() < 0 < lead.max():
                grid = self.xx0, self.xx1, lead
                look = {"colors": "0.15", "linewidths": 1.0, "zorder": 2}
                self.lines_.append(self.ax_.contour(*grid, levels=[0], **look))


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
        self.ax_, self.figure_ = _axes(ax, type(self).__name__)
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


def _gaussians(estimator, X, y):
    """Means and covariances of the classes, as the model has them; none where it has none."""
    means = getattr(estimator, "means_", None)
    if hasattr(estimator, "rotations_"):
        return [
            (mean, (axes * spread) @ axes.T)
            for mean, axes, spread in zip(
                means, estimator.rotations_, estimator.scalings_, strict=True
            )
        ]
    if not hasattr(estimator, "coef_") or means is None:
        return []
    covariance = getattr(estimator, "covariance_", None)
    if covariance is None:
        centred = X - means[np.searchsorted(estimator.classes_, y)]
        covariance = centred.T @ centred / len(X)
    return [(mean, covariance) for mean in means]


def _variances(estimator):
    """The variance of every class on one feature, as the model has it."""
    if hasattr(estimator, "rotations_"):
        return np.array([spread[0] for spread in estimator.scalings_])
    # The slopes of the scores are the means over the one variance.
    means = estimator.means_[:, 0]
    slopes = estimator.coef_[:, 0]
    if len(slopes) == 1:
        slopes = np.array([0.0, slopes[0]])
    low, high = means.argmin(), means.argmax()
    if means[low] == means[high]:
        raise ValueError("estimator must have different class means to be drawn, got equal ones.")
    return np.full(len(means), (means[high] - means[low]) / (slopes[high] - slopes[low]))


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


def _covariance(rows):
    centred = rows - rows.mean(axis=0)
    return centred.T @ centred / len(rows)


def _draw_ellipses(ax, mean, covariance, color):
    from matplotlib.patches import Ellipse

    values, vectors = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1]))
    height, width = 2.0 * np.sqrt(values.clip(min=0.0))
    ellipses = []
    for deviations in _DEVIATIONS:
        ellipse = Ellipse(
            mean,
            deviations * width,
            deviations * height,
            angle=angle,
            fill=False,
            edgecolor=color,
            linewidth=1.4 / deviations,
            zorder=4,
        )
        ellipses.append(ax.add_patch(ellipse))
    return ellipses


def _draw_mean(ax, mean, color):
    look = {"marker": "X", "markersize": 9, "markeredgecolor": "white", "linestyle": ""}
    return ax.plot(*mean, color=color, zorder=5, **look)


def _axes(ax, display):
    pyplot = _pyplot(display)
    if ax is None:
        _, ax = pyplot.subplots()
    return ax, ax.figure
