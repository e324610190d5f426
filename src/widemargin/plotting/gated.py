"""Visualization of gated students: quality of the predictions, and degrees of difficulty."""

from typing import Any, Self

import numpy as np
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score, roc_curve
from sklearn.utils.validation import check_consistent_length, column_or_1d

from widemargin.gated.difficulty import check_decay, largest_other_score, relative_margin_degrees
from widemargin.gated.labels import align_columns, check_scores, label_scores, target_column
from widemargin.plotting.display import Display

# The palette of Okabe and Ito, ordered so that students differ from the other methods.
_COLORS = ("#000000", "#999999", "#56b4e9", "#0072b2", "#e69f00", "#d55e00", "#009e73", "#cc79a7")
_METRICS = {"accuracy": accuracy_score, "F": f1_score, "AUC": roc_auc_score}


class StudentsDisplay(Display):
    """Accuracy, F and AUC of all classes as bars, or the ROC curves of one class.

    Create it with :meth:`from_scores`, from the results of `compare_students` or from other scores.
    A sample is predicted to belong to a class if its score is non-negative.

    Parameters
    ----------
    metrics : dict of dict of ndarray of shape (n_classes,)
        'accuracy', 'F' and 'AUC' of each class, by the name of the method.
    roc : dict of dict of tuple
        ROC curves (false and true positive rates), by method and class.
    classes : ndarray of shape (n_classes,)
        Class labels.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each metric, or one for the ROC curves.
    figure_ : matplotlib Figure
        Figure of the axes.
    bars_ : list of matplotlib BarContainer
        Bars of each metric and method.
    lines_ : list of matplotlib Line2D
        ROC curves.

    See Also
    --------
    DifficultyDisplay : Degrees of difficulty of samples.

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

    metrics: dict[str, dict]
    roc: dict[str, dict]
    classes: np.ndarray

    @classmethod
    def from_scores(
        cls, scores: dict, y: Any, classes: Any = None, *, roc_of: Any = None, ax: Any = None
    ) -> Self:
        """Plot methods by their scores of test samples.

        Parameters
        ----------
        scores : dict of array-like of shape (n_samples, n_classes)
            Scores by the name of the method.
        <<y>>
        classes : array-like of shape (n_classes,), default=None
            Class labels of the columns. If None, those of `compare_students`, or the sorted labels
            in `y`.
        <<students_plot>>

        Returns
        -------
        <<returns_display>>
        """
        y = column_or_1d(y)
        classes = _column_classes(scores, y, classes)
        metrics: dict = {}
        roc: dict = {}
        for name, values in scores.items():
            argument = f"scores[{name!r}]"
            values = align_columns(check_scores(values, argument), values, classes, argument)
            check_consistent_length(values, y)
            columns = [target_column(label, classes, values.shape[1]) for label in classes]
            metrics[name] = {metric: [] for metric in _METRICS}
            roc[name] = {}
            for label, column in zip(classes.tolist(), columns, strict=True):
                positive, score = y == label, values[:, column]
                if not positive.any() or positive.all():
                    raise ValueError(
                        f"y must contain samples of class {label!r} and of other classes."
                    )
                for metric, function in _METRICS.items():
                    predicted = score if metric == "AUC" else score >= 0.0
                    metrics[name][metric].append(function(positive, predicted))
                roc[name][label] = roc_curve(positive, score)[:2]
        display = cls(metrics=metrics, roc=roc, classes=classes)
        return display.plot(roc_of=roc_of, ax=ax)

    def plot(self, *, roc_of: Any = None, ax: Any = None) -> Self:
        """Plot the bars of all classes, or the ROC curves of one class.

        Parameters
        ----------
        <<students_plot>>

        Returns
        -------
        <<returns_display>>
        """
        self.bars_: list = []
        self.lines_: list = []
        if roc_of is not None:
            return self._plot_roc(roc_of, ax)
        self.axes_ = self._use_axes_array(ax, (3, 1), sharex=True, figsize=(9, 7))[:, 0]
        width = 0.85 / len(self.metrics)
        positions = np.arange(len(self.classes))
        for axes, metric in zip(self.axes_, _METRICS, strict=True):
            for k, (name, values) in enumerate(self.metrics.items()):
                offset = (k - (len(self.metrics) - 1) / 2) * width
                color = _COLORS[k % len(_COLORS)]
                heights = values[metric]
                self.bars_.append(
                    axes.bar(positions + offset, heights, width, label=name, color=color)
                )
            axes.set(ylabel=metric, ylim=(_lower_limit(self.metrics, metric), 1.0))
            axes.margins(x=0.01)
        self.axes_[-1].set_xticks(positions, [str(label) for label in self.classes])
        self.axes_[-1].set_xlabel("class")
        self.axes_[0].legend(ncols=6, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1))
        return self

    def _plot_roc(self, label: Any, ax: Any) -> Self:
        if label not in next(iter(self.roc.values())):
            raise ValueError(f"roc_of must be one of {self.classes.tolist()}, got {label!r}.")
        ax = self._use_axes(ax, figsize=(5.5, 5), layout="constrained")
        self.axes_ = np.atleast_1d(ax)
        for k, (name, curves) in enumerate(self.roc.items()):
            area = self.metrics[name]["AUC"][self.classes.tolist().index(label)]
            color = _COLORS[k % len(_COLORS)]
            self.lines_ += ax.plot(*curves[label], label=f"{name} ({area:.3f})", color=color)
        ax.set(xlabel="false positive rate", ylabel="true positive rate")
        ax.set_title(f"class {label}")
        ax.legend(fontsize="small", loc="lower right")
        return self


class DifficultyDisplay(Display):
    """Degrees of difficulty over the scores of the target class and of the best other class.

    On the diagonal, the teacher cannot decide. Samples of the target class are easy below it, those
    of other classes above it.

    Parameters
    ----------
    target_scores : ndarray of shape (n_samples,)
        Scores of the target class.
    other_scores : ndarray of shape (n_samples,)
        Largest scores of the other classes.
    positive : ndarray of bool of shape (n_samples,)
        Whether a sample belongs to the target class.
    degrees : ndarray of shape (n_samples,)
        Degrees of difficulty, see `difficulty_degrees`.
    target : label
        Target class.

    Attributes
    ----------
    <<display_axes>>
    points_ : list of matplotlib PathCollection
        Samples of other classes, then those of the target class.

    See Also
    --------
    StudentsDisplay : Quality of the predictions.

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

    target_scores: np.ndarray
    other_scores: np.ndarray
    positive: np.ndarray
    degrees: np.ndarray
    target: Any

    @classmethod
    def from_scores(
        cls, scores: Any, y: Any, target: Any, decay: float = 0.3, classes: Any = None, *,
        ax: Any = None,
    ) -> Self:  # fmt: skip
        """Plot the degrees of difficulty of samples.

        Parameters
        ----------
        scores : array-like of shape (n_samples, n_classes)
            Scores of the teacher.
        <<y_or_booleans>>
        target : label
            Target class.
        decay : float, default=0.3
            Degree of the easiest samples, in (0, 1).
        <<score_classes>>
        <<ax>>

        Returns
        -------
        <<returns_display>>
        """
        check_decay(decay)
        scores, sign, column = label_scores(scores, y, target, classes)
        display = cls(
            target_scores=scores[:, column],
            other_scores=largest_other_score(scores, column),
            positive=sign > 0,
            degrees=relative_margin_degrees(scores, sign, column, decay),
            target=target,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Plot the degrees of difficulty.

        Parameters
        ----------
        <<ax>>

        Returns
        -------
        <<returns_display>>
        """
        ax = self._use_axes(ax, figsize=(6.4, 5), layout="constrained")
        self.points_: list = []
        groups = ((~self.positive, "o", "other classes"), (self.positive, "^", f"{self.target}"))
        for samples, marker, label in groups:
            style = {"marker": marker, "s": 26, "edgecolors": "0.2", "linewidths": 0.4}
            points = ax.scatter(
                self.target_scores[samples], self.other_scores[samples], c=self.degrees[samples],
                cmap="cividis", vmin=0, vmax=1, label=label, **style,
            )  # fmt: skip
            self.points_.append(points)
        ax.axline((0, 0), slope=1, color="0.4", linewidth=0.8, linestyle="--")
        ax.set(xlabel=f"score of {self.target}", ylabel="largest score of another class")
        ax.legend(fontsize="small")
        self.figure_.colorbar(self.points_[0], ax=ax, label="degree of difficulty")
        return self


def _column_classes(scores: dict[str, Any], y: np.ndarray, classes: Any) -> np.ndarray:
    """Return the labels of the columns, by the argument or by the scores themselves."""
    column_labels = getattr(scores, "classes", None)
    if classes is None:
        return np.unique(y) if column_labels is None else column_labels
    if column_labels is not None and not np.array_equal(classes, column_labels):
        raise ValueError(
            f"classes must be those of the columns of scores, {column_labels.tolist()}, got "
            f"{list(classes)}. Use classes=None."
        )
    return np.asarray(classes)


def _lower_limit(metrics: dict[str, dict], metric: str) -> float:
    """Return a lower limit of the axis below the lowest bar."""
    lowest = min(min(values[metric]) for values in metrics.values())
    return max(0.0, np.floor(10 * lowest - 0.5) / 10)
