"""Plots of classifiers with constraints: rounds of self-training, and metrics by threshold."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from widemargin.plotting.display import BLUE, GREEN, VERMILION, Display
from widemargin.semisupervised.constraints import ScoredSamples, ThresholdCurve

_COLORS = {"precision": BLUE, "recall": VERMILION, "f1": GREEN, "false_positive_rate": "#cc79a7"}
_NAMES = {"f1": "F1", "false_positive_rate": "false positive rate"}


class PreferenceDisplay(Display):
    """Rounds of a classifier with constraints, or its precision and recall by threshold.

    Create it with :meth:`from_estimator`. Without samples, it shows three plots over the rounds:
    the number of new pseudo-labels; precision, recall and F1 on the validation samples at
    threshold 0; and the thresholds for pseudo-labels. A gray line marks the best round. With
    labeled samples, it shows their precision, recall and F1 as functions of the threshold, and a
    gray line marks the threshold of the classifier. Dashed lines are the constraints.

    Parameters
    ----------
    history : dict of array-like
        Attribute `history_` of the classifier.
    bounds : dict of float
        Bounds on 'precision', 'recall' or 'false_positive_rate'.
    curve : dict of ndarray, default=None
        'thresholds' and the metrics there.
    threshold : float, default=None
        Threshold of the classifier.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Three axes for the rounds, one for thresholds.
    figure_ : matplotlib Figure
        The figure of the axes.
    bars_ : matplotlib BarContainer
        Numbers of new pseudo-labels.
    lines_ : dict of matplotlib Line2D
        Metrics, and the thresholds 'upper' and 'lower' of the rounds.
    bounds_ : dict of matplotlib Line2D
        Constraints.
    marks_ : list of matplotlib Line2D
        The best round in each of the axes, or the threshold of the classifier.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from widemargin import PreferenceSVC
    >>> from widemargin.plotting import PreferenceDisplay
    >>> X, y = make_classification(600, weights=[0.8], flip_y=0.1, random_state=0)
    >>> model = PreferenceSVC(precision=0.8, random_state=0)
    >>> display = PreferenceDisplay.from_estimator(
    ...     model.fit(X[:200], y[:200], X_unlabeled=X[200:400])
    ... )
    >>> display.figure_.savefig("rounds.png")  # doctest: +SKIP
    """

    history: Mapping[str, ArrayLike]
    bounds: Mapping[str, float]
    curve: Mapping[str, np.ndarray] | None = None
    threshold: float | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: ArrayLike | None = None, *, ax: Any = None
    ) -> Self:
        """Plot a fitted classifier.

        Parameters
        ----------
        estimator : fitted PreferenceSVC or PreferenceClassifier
            Its rounds are plotted unless samples are passed.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Samples whose precision and recall are plotted.
        y : array-like of shape (n_samples,), default=None
            Their labels, of both classes.
        ax : matplotlib Axes or array of three of them, default=None
            Axes to plot on. If None, a new figure is created.

        Returns
        -------
        PreferenceDisplay
            Display with the plot.
        """
        check_is_fitted(estimator)
        if (X is None) != (y is None):
            raise ValueError("X and y must be passed together, or neither to plot the rounds.")
        curve = None if X is None else _metrics(estimator, X, np.asarray(y))
        fitted = {"history": estimator.history_, "bounds": estimator.constraints_.bounds}
        return cls(**fitted, curve=curve, threshold=estimator.threshold_).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Plot the rounds or, if there is a curve, metrics by threshold.

        Parameters
        ----------
        ax : matplotlib Axes or array of three of them, default=None
            Axes to plot on. If None, a new figure is created.

        Returns
        -------
        PreferenceDisplay
            The display itself.
        """
        self.lines_: dict[str, Any] = {}
        self.bounds_: dict[str, Any] = {}
        self.marks_: list[Any] = []
        if self.curve is None:
            return self._plot_rounds(ax)
        return self._plot_thresholds(self.curve, ax)

    def _plot_rounds(self, ax: Any) -> Self:
        size: dict[str, Any] = {"figsize": (6.4, 6.4), "height_ratios": (2, 3, 2)}
        self.axes_ = self._use_axes_array(ax, (3, 1), sharex=True, **size).ravel()
        counts, metrics, thresholds = self.axes_
        history = {name: np.asarray(values) for name, values in self.history.items()}
        rounds = np.arange(1, len(history["added"]) + 1)
        self.bars_ = counts.bar(rounds, history["added"], 0.6, color="#56b4e9")
        counts.bar_label(self.bars_, fontsize="small")
        counts.margins(y=0.2)
        counts.set_ylabel("new pseudo-labels")
        for name in ("precision", "recall", "f1"):
            self._line(metrics, name, rounds, history[name], marker="o")
        for name, color in (("upper", "0.2"), ("lower", "0.6")):
            (self.lines_[name],) = thresholds.plot(
                rounds, history[name], "o-", markersize=4, color=color, label=name
            )
        self._plot_bounds(metrics)
        metrics.set_ylabel("at threshold 0")
        thresholds.set(xlabel="round", ylabel="threshold")
        thresholds.xaxis.get_major_locator().set_params(integer=True)
        best = rounds[np.flatnonzero(history["best"])[-1]]
        for axes in self.axes_:
            self._mark(axes, best)
        counts.set_title(f"best: round {best}", fontsize="medium")
        for axes in (metrics, thresholds):
            axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
        return self

    def _plot_thresholds(self, curve: Mapping[str, np.ndarray], ax: Any) -> Self:
        ax = self._use_axes(ax, figsize=(6.4, 4), layout="constrained")
        self.axes_ = np.atleast_1d(ax)
        shown = ["precision", "recall", "f1"]
        shown += ["false_positive_rate"] if "false_positive_rate" in self.bounds else []
        for name in shown:
            self._line(ax, name, curve["thresholds"], curve[name])
        self._plot_bounds(ax)
        self._mark(ax, self.threshold)
        ax.set(xlabel="threshold", ylim=(-0.02, 1.05))
        ax.legend(fontsize="small")
        return self

    def _line(self, ax: Any, name: str, x: np.ndarray, values: np.ndarray, **style: Any) -> None:
        label, color = _NAMES.get(name, name), _COLORS[name]
        (self.lines_[name],) = ax.plot(x, values, color=color, label=label, markersize=4, **style)

    def _plot_bounds(self, ax: Any) -> None:
        for name, bound in self.bounds.items():
            label = f"constraint on {_NAMES.get(name, name)}"
            self.bounds_[name] = ax.axhline(
                bound, linestyle="--", linewidth=1, color=_COLORS[name], label=label
            )

    def _mark(self, ax: Any, x: Any) -> None:
        self.marks_.append(ax.axvline(x, color="0.75", linewidth=5, zorder=0))


def _metrics(estimator: Any, X: Any, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return the metrics of samples at all thresholds between their scores."""
    positive = y == estimator.pos_label_
    if positive.all() or not positive.any():
        raise ValueError(
            f"y must contain both classes {estimator.classes_.tolist()}, got "
            f"{np.unique(y).tolist()}."
        )
    curve = ThresholdCurve(ScoredSamples(estimator.score_samples(X), positive))
    # Beyond the greatest score nothing is accepted, and precision is undefined.
    return {
        "thresholds": curve.thresholds[:-1],
        "precision": curve.precision[:-1],
        "recall": curve.recall[:-1],
        "f1": curve.f_score()[:-1],
        "false_positive_rate": curve.false_positive_rate[:-1],
    }
