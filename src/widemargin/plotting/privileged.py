"""Display of the slack that privileged features explain."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from widemargin.plotting.display import Display, class_colors


class SlackDisplay(Display):
    """Slack of samples as a function of one of their privileged features.

    Samples at 0 are easy; those above 1 may be misclassified at no further cost. If the slack does
    not depend on the feature, the feature is not informative.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        Values of the privileged feature; strings for a categorical one.
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
            Privileged features of the samples, as in `fit`. A DataFrame may have categorical
            columns.
        y : array-like of shape (n_samples,)
            Class labels. With more than two classes, the slack of a sample is that of the binary
            subproblem of its class.
        feature : int or str, default=None
            Index or name of the feature to plot. If None, the one with the largest correlation
            with the slack (for categories, the largest correlation ratio).
        <<ax>>
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
        columns = _columns(privileged)
        if feature is None:
            feature = max(columns, key=lambda name: _dependence(columns[name], slack))
        elif str(feature) not in columns:
            raise ValueError(
                f"feature must be one of the privileged features {list(columns)}, got {feature!r}."
            )
        name = str(feature) if hasattr(privileged, "columns") else f"privileged feature {feature}"
        display = cls(values=columns[str(feature)], slack=slack, y=y, name=name)
        return display.plot(ax=ax, legend=legend)

    def plot(self, *, ax: Any = None, legend: bool = True) -> Self:
        """Plot the display.

        Parameters
        ----------
        <<ax>>
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


def _columns(privileged: Any) -> dict[str, np.ndarray]:
    """Return the features by name or number, those of a DataFrame as numbers or as strings."""
    if hasattr(privileged, "columns"):
        features = {str(name): np.asarray(privileged[name]) for name in privileged.columns}
    else:
        dense = privileged.toarray() if hasattr(privileged, "toarray") else np.asarray(privileged)
        columns = dense.reshape(len(dense), -1).T
        features = {str(k): np.asarray(column.tolist()) for k, column in enumerate(columns)}
    return {
        name: values.astype(np.float64) if values.dtype.kind in "biuf" else values.astype(str)
        for name, values in features.items()
    }


def _dependence(values: np.ndarray, slack: np.ndarray) -> float:
    """Return the correlation of a feature with the slack, for categories the correlation ratio."""
    if values.dtype.kind == "U":
        codes = np.unique(values, return_inverse=True)[1]
        values = (np.bincount(codes, slack) / np.bincount(codes))[codes]
    known = np.isfinite(values)
    values, slack = values[known], slack[known]
    if not len(values) or np.ptp(values) == 0.0 or np.ptp(slack) == 0.0:
        return 0.0
    return float(np.abs(np.corrcoef(values, slack)[0, 1]))
