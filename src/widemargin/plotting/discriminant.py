"""Pictures of discriminants: the projection of rows, and the regions of two features."""

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from widemargin.plotting.margin import _class_colors, _plane, _pyplot

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
        self.ax_, self.figure_ = axes_for(ax, type(self).__name__)
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
    and two standard deviations of the covariance that the model decides by: the same for all
    classes in linear discriminant analysis, each class's own in the quadratic one; models that
    have or keep none (two classes, 'svd' and no ``store_covariance``) get none.

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
        points, names, (xx0, xx1), corners = _plane(X, y, grid_resolution, padding)
        display = cls(
            xx0=xx0,
            xx1=xx1,
            probabilities=estimator.predict_proba(corners).T.reshape(-1, *xx0.shape),
            classes=estimator.classes_,
            X=points,
            y=np.asarray(y),
            gaussians=_gaussians(estimator),
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
        self.ax_, self.figure_ = axes_for(ax, type(self).__name__)
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


def _gaussians(estimator):
    """Means and covariances of the classes, as the model has them; none where it has none."""
    if hasattr(estimator, "rotations_"):
        parts = estimator.means_, estimator.rotations_, estimator.scalings_
        return [(mean, (axes * spread) @ axes.T) for mean, axes, spread in zip(*parts, strict=True)]
    covariance = common_covariance(estimator)
    return [] if covariance is None else [(mean, covariance) for mean in estimator.means_]


def common_covariance(estimator):
    """The covariance by which a linear discriminant decides; None where it cannot be told."""
    if not (hasattr(estimator, "coef_") and hasattr(estimator, "means_")):
        return None
    statistics = getattr(estimator, "statistics_", None)
    if statistics is not None and estimator.solver_ == "gram":
        return estimator._pooled(statistics)[0]
    # Directions of the eigenproblem are such that the covariance is the identity along them.
    if hasattr(estimator, "scalings_") and getattr(estimator, "objective", "") != "trace_ratio":
        directions = estimator.scalings_
        if np.linalg.matrix_rank(directions) == len(directions):
            return np.linalg.inv(directions @ directions.T)
    return getattr(estimator, "covariance_", None)


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


def axes_for(ax, display):
    """The axes to draw on, new ones for None, and their figure."""
    pyplot = _pyplot(display)
    if ax is None:
        _, ax = pyplot.subplots()
    return ax, ax.figure
