"""Pictures of preference machines: what their rounds did, and what thresholds give."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from widemargin.plotting.margin import _pyplot
from widemargin.semisupervised.constraints import Curve

_COLORS = {
    "precision": "#0072b2", "recall": "#d55e00", "f1": "#009e73", "false_positive_rate": "#cc79a7",
}  # fmt: skip
_NAMES = {"f1": "F1", "false_positive_rate": "false positive rate"}


class PreferenceDisplay:
    """The rounds of a preference machine, or precision and recall over its thresholds.

    Create it with :meth:`from_estimator`. Of the rounds: rows that got a label in each; precision,
    recall and F1 on the rows that judge, at threshold 0; the thresholds above and below which rows
    get a label. A grey line marks the round whose machine was kept. Given rows with labels, it is
    their precision, recall and F1 over thresholds, and the grey line is the threshold of the
    machine. Dashed lines are the demand.

    Parameters
    ----------
    history : dict of array-like
        What a fitted machine has as `history_`.
    demand : dict of float
        Limits by 'precision', 'recall' or 'false_positive_rate'.
    curve : dict of ndarray, default=None
        'thresholds' and the measures there.
    threshold : float, default=None
        The one that was chosen.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Where it was drawn: three for the rounds, one for thresholds.
    figure_ : matplotlib Figure
        Their figure.
    bars_ : matplotlib BarContainer
        The rows of every round.
    lines_ : dict of matplotlib Line2D
        The measures, and the thresholds 'upper' and 'lower' of the rounds.
    demands_ : dict of matplotlib Line2D
        What is asked for.
    marks_ : list of matplotlib Line2D
        The kept round on each of the axes, or the chosen threshold.

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

    def __init__(self, *, history, demand, curve=None, threshold=None):
        self.history = history
        self.demand = demand
        self.curve = curve
        self.threshold = threshold

    @classmethod
    def from_estimator(cls, estimator, X=None, y=None, *, ax=None):
        """Draw a fitted preference machine.

        Parameters
        ----------
        estimator : fitted PreferenceSVC or PreferenceClassifier
            Its rounds are drawn, unless rows are given.
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Rows whose precision and recall are drawn over thresholds.
        y : array-like of shape (n_samples,), default=None
            Their labels, of both classes.
        ax : matplotlib Axes or array of three of them, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        PreferenceDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        if (X is None) != (y is None):
            raise ValueError("X and y belong together: give both, or none for the rounds.")
        curve = None if X is None else _measures(estimator, X, np.asarray(y))
        display = cls(
            history=estimator.history_,
            demand=estimator._demand().limits,
            curve=curve,
            threshold=estimator.threshold_,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw the rounds, or the thresholds where there is a curve.

        Parameters
        ----------
        ax : matplotlib Axes or array of three of them, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        PreferenceDisplay
            The display itself.
        """
        self.lines_, self.demands_, self.marks_ = {}, {}, []
        return self._plot_rounds(ax) if self.curve is None else self._plot_thresholds(ax)

    def _plot_rounds(self, ax):
        if ax is None:
            size = {"figsize": (6.4, 6.4), "layout": "constrained", "height_ratios": (2, 3, 2)}
            _, ax = _pyplot("PreferenceDisplay").subplots(3, 1, sharex=True, **size)
        self.axes_ = np.ravel(ax)
        self.figure_ = self.axes_[0].figure
        counts, measures, thresholds = self.axes_
        history = {name: np.asarray(values) for name, values in self.history.items()}
        rounds = np.arange(1, len(history["added"]) + 1)
        self.bars_ = counts.bar(rounds, history["added"], 0.6, color="#56b4e9")
        counts.bar_label(self.bars_, fontsize="small")
        counts.margins(y=0.2)
        counts.set_ylabel("rows labelled")
        for name in ("precision", "recall", "f1"):
            self._line(measures, name, rounds, history[name], marker="o")
        for name, color in (("upper", "0.2"), ("lower", "0.6")):
            (self.lines_[name],) = thresholds.plot(
                rounds, history[name], "o-", markersize=4, color=color, label=name
            )
        self._ask(measures)
        measures.set_ylabel("at threshold 0")
        thresholds.set(xlabel="round", ylabel="threshold")
        thresholds.xaxis.get_major_locator().set_params(integer=True)
        kept = rounds[np.flatnonzero(history["kept"])[-1]]
        for axes in self.axes_:
            self._mark(axes, kept)
        counts.set_title(f"kept: round {kept}", fontsize="medium")
        for axes in (measures, thresholds):
            axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
        return self

    def _plot_thresholds(self, ax):
        if ax is None:
            _, ax = _pyplot("PreferenceDisplay").subplots(figsize=(6.4, 4), layout="constrained")
        self.axes_, self.figure_ = np.atleast_1d(ax), ax.figure
        shown = ["precision", "recall", "f1"]
        shown += ["false_positive_rate"] if "false_positive_rate" in self.demand else []
        for name in shown:
            self._line(ax, name, self.curve["thresholds"], self.curve[name])
        self._ask(ax)
        self._mark(ax, self.threshold)
        ax.set(xlabel="threshold", ylim=(-0.02, 1.05))
        ax.legend(fontsize="small")
        return self

    def _line(self, ax, name, x, values, **look):
        label, color = _NAMES.get(name, name), _COLORS[name]
        (self.lines_[name],) = ax.plot(x, values, color=color, label=label, markersize=4, **look)

    def _ask(self, ax):
        for name, limit in self.demand.items():
            label = f"{_NAMES.get(name, name)} asked for"
            self.demands_[name] = ax.axhline(
                limit, linestyle="--", linewidth=1, color=_COLORS[name], label=label
            )

    def _mark(self, ax, place):
        self.marks_.append(ax.axvline(place, color="0.75", linewidth=5, zorder=0))


def _measures(estimator, X, y):
    """What every threshold that makes a difference gives on rows."""
    truth = y == estimator.pos_label_
    if truth.all() or not truth.any():
        raise ValueError(
            f"y must hold rows of both classes {estimator.classes_.tolist()}, got "
            f"{np.unique(y).tolist()}."
        )
    found = Curve(estimator._raw_scores(X), truth)
    # Beyond the greatest score nothing is accepted, which has no precision.
    return {
        "thresholds": found.thresholds[:-1],
        "precision": found.precision[:-1],
        "recall": found.recall[:-1],
        "f1": found.f_score()[:-1],
        "false_positive_rate": found.false_positive_rate[:-1],
    }
