"""Display of the slack that privileged features explain."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from widemargin.plotting.display import Display, class_colors


class SlackDisplay(Display):
    """Slack of samples as a function of one of their privileged features.

    Samples at 0 are easy; those above 1 may be misclassified at no further cost. If the slack does
    not depend on the feature, the feature is not informative.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        Values of the privileged feature.
    slack : ndarray of shape (n_samples,)
        Slack of the samples.
    y : ndarray of shape (n_samples,)
        Their class labels.
    name : str
        Name of the feature.

    Attributes
    ----------
    <<display_axes>>
    points_ : list of matplotlib PathCollection
        Samples of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import PrivilegedSVC
    >>> from widemargin.plotting import SlackDisplay
    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.normal(size=(60, 2)), rng.normal(size=(60, 1))
    >>> y = X[:, 0] + noise[:, 0] > 0
    >>> model = PrivilegedSVC().fit(X, y, privileged=np.abs(noise))
    >>> display = SlackDisplay.from_estimator(model, np.abs(noise), y)
    >>> display.figure_.savefig("slack.png")  # doctest: +SKIP
    """

    values: np.ndarray
    slack: np.ndarray
    y: np.ndarray
    name: str

    @classmethod
    def from_estimator(
        cls, estimator: Any, privileged: Any, y: Any, *, feature: int | str | None = None,
        ax: Any = None, legend: bool = True,
    ) -> Self:  # fmt: skip
        """Plot the slack that a fitted estimator computes for samples.

        Parameters
        ----------
        estimator : fitted PrivilegedSVC
            Estimator fitted with privileged features.
        privileged : array-like of shape (n_samples, n_privileged)
            Privileged features of the samples.
        y : array-like of shape (n_samples,)
            Class labels. With more than two classes, the slack of a sample is that of the binary
            subproblem of its class.
        feature : int or str, default=None
            Index or name of the feature to plot. If None, the one with the largest correlation
            with the slack.
        ax : matplotlib Axes, default=None
            Axes to plot on. If None, a new figure is created.
        legend : bool, default=True
            Whether to add a legend.

        Returns
        -------
        <<returns_display>>
        """
        check_is_fitted(estimator)
        check_consistent_length(privileged, y)
        y = np.asarray(y)
        slack = estimator.slack(privileged)
        if slack.ndim == 2:
            slack = slack[np.arange(len(y)), np.searchsorted(estimator.classes_, y)]
        values = check_array(privileged, accept_sparse="csc")
        values = values.toarray() if hasattr(values, "toarray") else values
        names = [str(name) for name in getattr(privileged, "columns", range(values.shape[1]))]
        number = _most_correlated(values, slack) if feature is None else names.index(str(feature))
        name = names[number] if hasattr(privileged, "columns") else f"privileged feature {number}"
        display = cls(values=values[:, number], slack=slack, y=y, name=name)
        return display.plot(ax=ax, legend=legend)

    def plot(self, *, ax: Any = None, legend: bool = True) -> Self:
        """Plot the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on. If None, a new figure is created.
        legend : bool, default=True
            Whether to add a legend.

        Returns
        -------
        <<returns_display>>
        """
        ax = self._use_axes(ax, layout="constrained")
        for level, text in ((0.0, "on the margin"), (1.0, "on the boundary")):
            ax.axhline(level, color="0.6", linewidth=0.8, zorder=1)
            ax.annotate(
                text, (1.0, level), xycoords=("axes fraction", "data"), xytext=(-4, 3),
                textcoords="offset points", ha="right", fontsize="x-small", color="0.4",
            )  # fmt: skip
        classes = np.unique(self.y)
        self.points_: list = []
        for label, color in zip(classes, class_colors(None, len(classes)), strict=True):
            samples = self.values[self.y == label], self.slack[self.y == label]
            look = {"s": 18, "alpha": 0.8, "linewidths": 0, "zorder": 2, "color": color}
            self.points_.append(ax.scatter(*samples, label=f"class {label}", **look))
        ax.set(xlabel=self.name, ylabel="slack")
        if legend:
            ax.legend(fontsize="small")
        return self


def _most_correlated(values: np.ndarray, slack: np.ndarray) -> int:
    """Return the feature with the largest correlation with the slack."""
    centered = values - values.mean(axis=0)
    size = np.sqrt((centered**2).sum(axis=0))
    product = np.abs(centered.T @ (slack - slack.mean()))
    return int(np.argmax(np.where(size > 0, product / np.where(size > 0, size, 1.0), 0.0)))
