"""Pictures of gated students: who answers how well, and which rows count as hard."""

import numpy as np
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score, roc_curve
from sklearn.utils.validation import check_consistent_length, column_or_1d

from widemargin.gated.difficulty import (
    best_rival,
    check_scores,
    column_names,
    column_of,
    difficulty_degrees,
    in_order,
    scored_rows,
)
from widemargin.plotting.display import import_pyplot

# Okabe and Ito's palette, in an order that sets rivals apart from students.
_COLORS = ("#000000", "#999999", "#56b4e9", "#0072b2", "#e69f00", "#d55e00", "#009e73", "#cc79a7")
_MEASURES = {"accuracy": accuracy_score, "F": f1_score, "AUC": roc_auc_score}


class StudentsDisplay:
    """Accuracy, F and AUC of every class as bars, or the ROC of one class, for several rivals.

    Create it with :meth:`from_scores`, from what `compare_students` returns or from scores of your
    own: a row is taken for a class where the score of that class is at least 0.

    Parameters
    ----------
    measures : dict of dict of ndarray of shape (n_classes,)
        'accuracy', 'F' and 'AUC' of every class, by the name of the rival.
    roc : dict of dict of tuple
        The ROC, as false and true positive rates, by rival and class.
    classes : ndarray of shape (n_classes,)
        The labels.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Where it was drawn: one for each measure, or one for the ROC.
    figure_ : matplotlib Figure
        Their figure.
    bars_ : list of matplotlib BarContainer
        The bars, rival by rival, measure by measure.
    lines_ : list of matplotlib Line2D
        The lines of the ROC.

    See Also
    --------
    DifficultyDisplay : Which rows count as hard.

    Examples
    --------
    >>> from widemargin import GatedStudents, compare_students
    >>> from widemargin.datasets import load_vowel
    >>> from widemargin.plotting import StudentsDisplay
    >>> X, y = load_vowel(subset="train", return_X_y=True)
    >>> X_test, y_test = load_vowel(subset="test", return_X_y=True)
    >>> scores = compare_students(GatedStudents(C=0.1), X, y, X_test)
    >>> display = StudentsDisplay.from_scores(scores, y_test)
    >>> display.figure_.savefig("vowel.png")  # doctest: +SKIP
    """

    def __init__(self, *, measures, roc, classes):
        self.measures = measures
        self.roc = roc
        self.classes = classes

    @classmethod
    def from_scores(cls, scores, y, classes=None, *, roc_of=None, ax=None):
        """Draw rivals by their scores of test rows.

        Parameters
        ----------
        scores : dict of array-like of shape (n_samples, n_classes)
            Scores by the name of the rival.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            Labels of the columns; when None those that `compare_students` says, or the sorted
            labels in `y`.
        roc_of : label, default=None
            The class whose ROC is drawn; None draws the bars of all classes.
        ax : matplotlib Axes or array of three of them, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        StudentsDisplay
            The display, drawn.
        """
        y = column_or_1d(y)
        classes = _classes_of(scores, y, classes)
        measures: dict = {}
        roc: dict = {}
        for name, values in scores.items():
            names, what = column_names(values), f"scores[{name!r}]"
            values = in_order(check_scores(values, what), names, classes, what)
            check_consistent_length(values, y)
            columns = [column_of(label, classes, values.shape[1]) for label in classes]
            measures[name] = {measure: [] for measure in _MEASURES}
            roc[name] = {}
            for label, column in zip(classes.tolist(), columns, strict=True):
                truth, score = y == label, values[:, column]
                if not truth.any() or truth.all():
                    raise ValueError(f"y must hold rows of class {label!r} and of others.")
                for measure, function in _MEASURES.items():
                    judged = score if measure == "AUC" else score >= 0.0
                    measures[name][measure].append(function(truth, judged))
                roc[name][label] = roc_curve(truth, score)[:2]
        display = cls(measures=measures, roc=roc, classes=classes)
        return display.plot(roc_of=roc_of, ax=ax)

    def plot(self, *, roc_of=None, ax=None):
        """Draw the bars of all classes, or the ROC of one.

        Parameters
        ----------
        roc_of : label, default=None
            The class whose ROC is drawn; None draws the bars of all classes.
        ax : matplotlib Axes or array of three of them, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        StudentsDisplay
            The display itself.
        """
        self.bars_, self.lines_ = [], []
        if roc_of is not None:
            return self._plot_roc(roc_of, ax)
        if ax is None:
            size = {"figsize": (9, 7), "layout": "constrained"}
            _, ax = import_pyplot().subplots(3, 1, sharex=True, **size)
        self.axes_ = np.atleast_1d(ax)
        self.figure_ = self.axes_[0].figure
        width = 0.85 / len(self.measures)
        places = np.arange(len(self.classes))
        for axes, measure in zip(self.axes_, _MEASURES, strict=True):
            for k, (name, values) in enumerate(self.measures.items()):
                offset = (k - (len(self.measures) - 1) / 2) * width
                color = _COLORS[k % len(_COLORS)]
                heights = values[measure]
                self.bars_.append(
                    axes.bar(places + offset, heights, width, label=name, color=color)
                )
            axes.set(ylabel=measure, ylim=(_floor(self.measures, measure), 1.0))
            axes.margins(x=0.01)
        self.axes_[-1].set_xticks(places, [str(label) for label in self.classes])
        self.axes_[-1].set_xlabel("class")
        self.axes_[0].legend(ncols=6, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1))
        return self

    def _plot_roc(self, label, ax):
        if label not in next(iter(self.roc.values())):
            raise ValueError(f"roc_of {label!r} is none of the classes {list(self.classes)}.")
        if ax is None:
            _, ax = import_pyplot().subplots(figsize=(5.5, 5), layout="constrained")
        self.axes_, self.figure_ = np.atleast_1d(ax), ax.figure
        for k, (name, curves) in enumerate(self.roc.items()):
            area = self.measures[name]["AUC"][self.classes.tolist().index(label)]
            color = _COLORS[k % len(_COLORS)]
            self.lines_ += ax.plot(*curves[label], label=f"{name} ({area:.3f})", color=color)
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
        ax.set_title(f"is it {label}?")
        ax.legend(fontsize="small", loc="lower right")
        return self


class DifficultyDisplay:
    """Degrees of difficulty over the target's score and that of its best rival.

    On the diagonal the teacher cannot decide. A row of the target is easy below it and a row of
    another class above it.

    Parameters
    ----------
    own : ndarray of shape (n_samples,)
        The teacher's score of the target.
    rival : ndarray of shape (n_samples,)
        Its best score of another class.
    truth : ndarray of shape (n_samples,)
        Whether a row is of the target.
    degrees : ndarray of shape (n_samples,)
        What `difficulty_degrees` says.
    target : label
        The class.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        Its figure.
    points_ : list of matplotlib PathCollection
        Rows of other classes, then those of the target.

    See Also
    --------
    StudentsDisplay : Who answers how well.

    Examples
    --------
    >>> from widemargin import CrammerSingerSVC
    >>> from widemargin.datasets import load_vowel
    >>> from widemargin.plotting import DifficultyDisplay
    >>> X, y = load_vowel(subset="train", return_X_y=True)
    >>> scores = CrammerSingerSVC().fit(X, y).decision_function(X)
    >>> display = DifficultyDisplay.from_scores(scores, y, target=0)
    >>> display.figure_.savefig("difficulty.png")  # doctest: +SKIP
    """

    def __init__(self, *, own, rival, truth, degrees, target):
        self.own = own
        self.rival = rival
        self.truth = truth
        self.degrees = degrees
        self.target = target

    @classmethod
    def from_scores(cls, scores, y, target, decay=0.3, classes=None, *, ax=None):
        """Draw the degrees of rows.

        Parameters
        ----------
        scores : array-like of shape (n_samples, n_classes)
            The teacher's scores.
        y : array-like of shape (n_samples,)
            Labels, or with `classes` truth values: whether a row is of the target.
        target : label
            The class that is asked for.
        decay : float, default=0.3
            Degree of the easiest rows.
        classes : array-like of shape (n_classes,), default=None
            Labels of the columns of `scores`; the sorted labels in `y` when None.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        DifficultyDisplay
            The display, drawn.
        """
        degrees = difficulty_degrees(scores, y, target, decay, classes)
        scores, column, truth = scored_rows(scores, y, target, classes)
        display = cls(
            own=scores[:, column],
            rival=best_rival(scores, column),
            truth=truth,
            degrees=degrees,
            target=target,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        DifficultyDisplay
            The display itself.
        """
        if ax is None:
            _, ax = import_pyplot().subplots(figsize=(6.4, 5), layout="constrained")
        self.ax_, self.figure_, self.points_ = ax, ax.figure, []
        kinds = ((~self.truth, "o", "of another class"), (self.truth, "^", f"of {self.target}"))
        for rows, marker, label in kinds:
            look = {"marker": marker, "s": 26, "edgecolors": "0.2", "linewidths": 0.4}
            points = ax.scatter(
                self.own[rows], self.rival[rows], c=self.degrees[rows], cmap="cividis", vmin=0,
                vmax=1, label=label, **look,
            )  # fmt: skip
            self.points_.append(points)
        ax.axline((0, 0), slope=1, color="0.4", linewidth=0.8, linestyle="--")
        ax.set(xlabel=f"score of {self.target}", ylabel="best score of another class")
        ax.legend(fontsize="small")
        self.figure_.colorbar(self.points_[0], ax=ax, label="degree of difficulty")
        return self


def _classes_of(scores, y, classes):
    """The labels of the columns, as given or as the scores themselves say."""
    said = getattr(scores, "classes", None)
    if classes is None:
        return np.unique(y) if said is None else said
    if said is not None and not np.array_equal(classes, said):
        raise ValueError(
            f"classes must be those of the columns of scores, {said.tolist()}, got "
            f"{list(classes)}: leave them out."
        )
    return np.asarray(classes)


def _floor(measures, measure):
    """Where bars start: below the lowest, so that differences can be seen."""
    lowest = min(min(values[measure]) for values in measures.values())
    return max(0.0, np.floor(10 * lowest - 0.5) / 10)
