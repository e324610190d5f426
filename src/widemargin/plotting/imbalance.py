"""Plot of the recall of each class by the number of its samples."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from widemargin.imbalance import ImbalanceReport, imbalance_report
from widemargin.plotting.display import BLUE, GREEN, VERMILION, Display

_COLORS = {"head": BLUE, "medium": GREEN, "tail": VERMILION}


class ClassRecallDisplay(Display):
    """Recall of each class by the number of its samples, from the head to the tail.

    Each point is a class. Lines show the mean recall of the head, the medium classes and the tail.

    Parameters
    ----------
    report : ImbalanceReport
        Result of `imbalance_report`.
    name : str, default=None
        Name of the classifier, for the title.

    Attributes
    ----------
    <<display_axes>>
    points_ : dict of matplotlib PathCollection
        Classes of each group.
    lines_ : dict of matplotlib LineCollection
        Mean recall of each group.

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

    def __init__(self, report: ImbalanceReport, *, name: str | None = None) -> None:
        self.report = report
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, counts: ArrayLike | dict | None = None,
        bounds: Sequence[float] = (20, 100), name: str | None = None, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Plot the recalls of a fitted classifier.

        Parameters
        ----------
        estimator : fitted classifier
            Its predictions are evaluated.
        <<X>>
        <<y>>
        <<class_count_groups>>
        name : str, default=None
            Name for the title. If None, the name of the estimator's class.
        <<ax>>

        Returns
        -------
        <<returns_display>>
        """
        check_is_fitted(estimator)
        name = type(estimator).__name__ if name is None else name
        groups = {"classes": estimator.classes_, "counts": counts, "bounds": bounds}
        return cls.from_predictions(y, estimator.predict(X), **groups, name=name, ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_pred: ArrayLike, *, classes: ArrayLike | None = None,
        counts: ArrayLike | dict | None = None, bounds: Sequence[float] = (20, 100),
        name: str | None = None, ax: Any = None,
    ) -> Self:  # fmt: skip
        """Plot the recalls of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        y_pred : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted labels or scores, as in `imbalance_report`.
        classes : array-like of shape (n_classes,), default=None
            Class labels. If None, the labels in `y_true`.
        <<class_count_groups>>
        name : str, default=None
            Name for the title.
        <<ax>>

        Returns
        -------
        <<returns_display>>
        """
        report = imbalance_report(y_true, y_pred, classes=classes, counts=counts, bounds=bounds)
        return cls(report, name=name).plot(ax=ax)

    def plot(self, *, ax: Any = None, colors: Mapping[str, str] | None = None) -> Self:
        """Plot the recalls.

        Parameters
        ----------
        <<ax>>
        colors : dict, default=None
            Colors of 'head', 'medium' and 'tail'. If None, a color-blind safe palette is used.

        Returns
        -------
        <<returns_display>>
        """
        ax = self._use_axes(ax, layout="constrained")
        colors = _COLORS if colors is None else colors
        self.points_: dict[str, Any] = {}
        self.lines_: dict[str, Any] = {}
        report = self.report
        for group, mean in report.recall_of_group.items():
            members = (report.group == group) & ~np.isnan(report.recall)
            counts, color = report.counts[members], colors[group]
            label = f"{group}: {mean:.2f}"
            self.points_[group] = ax.scatter(counts, report.recall[members], s=30, color=color)
            self.lines_[group] = ax.hlines(
                mean, counts.min() / 1.1, counts.max() * 1.1, color=color, label=label
            )
        ax.set(xscale="log", xlabel="samples of the class", ylabel="recall", ylim=(-0.03, 1.03))
        if not ax.xaxis_inverted():  # already inverted by a display that shares this axis
            ax.invert_xaxis()
        title = f"balanced accuracy {report.balanced_accuracy:.2f}"
        ax.set_title(title if self.name is None else f"{self.name}: {title}", fontsize="medium")
        ax.legend(title="mean recall", fontsize="small")
        return self
