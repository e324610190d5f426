"""What privileged columns say about how hard rows are, as a picture."""

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from widemargin.plotting.display import import_pyplot

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")


class SlackDisplay:
    """The learned slack of rows over one of their privileged columns.

    Rows at 0 were taken for easy; those above 1 may stand on the wrong side of the boundary at no
    further cost. A cloud without slope says that the column has nothing to tell.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
        The privileged column.
    slack : ndarray of shape (n_samples,)
        The slack of the rows.
    y : ndarray of shape (n_samples,)
        Their classes.
    name : str
        What the column is called.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of the axes.
    points_ : list of matplotlib PathCollection
        The rows of each class.

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

    def __init__(self, *, values, slack, y, name):
        self.values = values
        self.slack = slack
        self.y = y
        self.name = name

    @classmethod
    def from_estimator(cls, estimator, privileged, y, *, column=None, ax=None, legend=True):
        """Draw the slack that a fitted estimator gives rows.

        Parameters
        ----------
        estimator : fitted PrivilegedSVC
            It was fitted with privileged columns.
        privileged : array-like of shape (n_samples, n_privileged)
            Privileged columns of the rows.
        y : array-like of shape (n_samples,)
            Their classes. With more than two, each row's slack is that of the machine of its class.
        column : int or str, default=None
            Number or name of the column to draw over; by default the one that goes with the slack
            most.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        legend : bool, default=True
            Whether to draw the legend.

        Returns
        -------
        SlackDisplay
            The display, drawn.
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
        number = _telling_column(values, slack) if column is None else names.index(str(column))
        name = names[number] if hasattr(privileged, "columns") else f"privileged column {number}"
        display = cls(values=values[:, number], slack=slack, y=y, name=name)
        return display.plot(ax=ax, legend=legend)

    def plot(self, *, ax=None, legend=True):
        """Draw it.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        legend : bool, default=True
            Whether to draw the legend.

        Returns
        -------
        SlackDisplay
            The display, drawn.
        """
        if ax is None:
            _, ax = import_pyplot("SlackDisplay").subplots(layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        for level, text in ((0.0, "on its margin"), (1.0, "on the boundary")):
            ax.axhline(level, color="0.6", linewidth=0.8, zorder=1)
            ax.annotate(
                text, (1.0, level), xycoords=("axes fraction", "data"), xytext=(-4, 3),
                textcoords="offset points", ha="right", fontsize="x-small", color="0.4",
            )  # fmt: skip
        self.points_ = []
        for k, label in enumerate(np.unique(self.y)):
            own = self.y == label
            look = {"s": 18, "alpha": 0.8, "linewidths": 0, "color": _COLORS[k % len(_COLORS)]}
            points = ax.scatter(
                self.values[own], self.slack[own], label=f"class {label}", zorder=2, **look
            )
            self.points_.append(points)
        ax.set(xlabel=self.name, ylabel="slack")
        if legend:
            ax.legend(fontsize="small")
        return self


def _telling_column(values, slack):
    """The column that goes with the slack most."""
    distance = values - values.mean(axis=0)
    size = np.sqrt((distance**2).sum(axis=0))
    along = np.abs(distance.T @ (slack - slack.mean()))
    return int(np.argmax(np.where(size > 0, along / np.where(size > 0, size, 1.0), 0.0)))
