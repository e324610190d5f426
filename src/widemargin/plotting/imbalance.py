"""The picture of how rare classes fare."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from widemargin.imbalance import imbalance_report
from widemargin.plotting.margin import _pyplot

_COLORS = {"head": "#0072b2", "medium": "#009e73", "tail": "#d55e00"}


class ClassRecallDisplay:
    """Recall of every class over how many rows it has, from the head to the tail.

    A point is a class; a line at its group's mean goes through those of the head, of the medium
    classes and of the tail.

    Parameters
    ----------
    report : ImbalanceReport
        What `imbalance_report` returned.
    name : str, default=None
        Name of the classifier, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of the axes.
    points_ : dict of matplotlib PathCollection
        The classes of each group.
    lines_ : dict of matplotlib LineCollection
        The mean of each group.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import SVC
    >>> from widemargin.datasets import make_long_tail
    >>> from widemargin.plotting import ClassRecallDisplay
    >>> X, y = make_long_tail(1000, random_state=0)
    >>> display = ClassRecallDisplay.from_estimator(
    ...     SVC().fit(X[::2], y[::2]), X[1::2], y[1::2], counts=np.bincount(y[::2], minlength=10)
    ... )
    >>> display.figure_.savefig("recall.png")  # doctest: +SKIP
    """

    def __init__(self, report, *, name=None):
        self.report = report
        self.name = name

    @classmethod
    def from_estimator(cls, estimator, X, y, *, counts=None, bounds=(20, 100), name=None, ax=None):
        """Draw how a fitted classifier does on rows.

        Parameters
        ----------
        estimator : fitted classifier
            It is asked for the classes of the rows.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Their classes.
        counts : array-like of shape (n_classes,) or dict, default=None
            Rows of every class in training; by default those in `y`.
        bounds : tuple of two numbers, default=(20, 100)
            Classes with fewer rows are the tail, with more the head.
        name : str, default=None
            Name for the legend; that of the estimator's class by default.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ClassRecallDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        return cls.from_predictions(
            y,
            estimator.predict(X),
            classes=estimator.classes_,
            counts=counts,
            bounds=bounds,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls, y_true, y_pred, *, classes=None, counts=None, bounds=(20, 100), name=None, ax=None
    ):
        """Draw how predictions do.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        y_pred : array-like of shape (n_samples,) or (n_samples, n_classes)
            Decisions or scores, as in `imbalance_report`.
        classes : array-like of shape (n_classes,), default=None
            The labels; by default those of `y_true`.
        counts : array-like of shape (n_classes,) or dict, default=None
            Rows of every class in training; by default those in `y_true`.
        bounds : tuple of two numbers, default=(20, 100)
            Classes with fewer rows are the tail, with more the head.
        name : str, default=None
            Name for the legend.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ClassRecallDisplay
            The display, drawn.
        """
        report = imbalance_report(y_true, y_pred, classes=classes, counts=counts, bounds=bounds)
        return cls(report, name=name).plot(ax=ax)

    def plot(self, *, ax=None, colors=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.
        colors : dict, default=None
            Of 'head', 'medium' and 'tail'; a colour-blind safe palette by default.

        Returns
        -------
        ClassRecallDisplay
            The display itself.
        """
        pyplot = _pyplot("ClassRecallDisplay")
        if ax is None:
            _, ax = pyplot.subplots(layout="constrained")
        colors = _COLORS if colors is None else colors
        self.ax_, self.figure_ = ax, ax.figure
        self.points_, self.lines_ = {}, {}
        report = self.report
        for group, mean in report.recall_of_group.items():
            own = (report.group == group) & ~np.isnan(report.recall)
            counts, color = report.counts[own], colors[group]
            label = f"{group}: {mean:.2f}"
            self.points_[group] = ax.scatter(counts, report.recall[own], s=30, color=color)
            self.lines_[group] = ax.hlines(
                mean, counts.min() / 1.1, counts.max() * 1.1, color=color, label=label
            )
        ax.set(xscale="log", xlabel="rows of the class", ylabel="recall", ylim=(-0.03, 1.03))
        if not ax.xaxis_inverted():  # by a display that shares this axis
            ax.invert_xaxis()
        title = f"balanced accuracy {report.balanced_accuracy:.2f}"
        ax.set_title(title if self.name is None else f"{self.name}: {title}", fontsize="medium")
        ax.legend(title="mean recall", fontsize="small")
        return self
