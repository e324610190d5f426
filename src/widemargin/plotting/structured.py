"""Displays of structured learning: objective curves, words, labeled images."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from widemargin.plotting.display import BLUE, GREEN, VERMILION, Display


class ObjectiveDisplay(Display):
    """Objective of a fit, its lower bound, and the gap between them.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    iteration : ndarray of shape (n_checks,)
        Number of passes or rounds at each check of the gap.
    objective : ndarray of shape (n_checks,)
        Objective.
    dual_objective : ndarray of shape (n_checks,)
        Lower bound on the objective.
    gap : ndarray of shape (n_checks,)
        Relative difference of the two.
    name : str
        Name of the estimator, for the title.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
        Axes of the objective and its bound, and of the gap.
    figure_ : matplotlib Figure
        Figure of the axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.plotting import ObjectiveDisplay
    >>> from widemargin.structured import FrankWolfeSSVM, MultiClassClf
    >>> learner = FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.01)
    >>> learner = learner.fit(*load_iris(return_X_y=True))
    >>> display = ObjectiveDisplay.from_estimator(learner)
    >>> display.figure_.savefig("gap.png")  # doctest: +SKIP
    """

    iteration: np.ndarray
    objective: np.ndarray
    dual_objective: np.ndarray
    gap: np.ndarray
    name: str

    @classmethod
    def from_estimator(cls, estimator: Any, *, axes: Any = None) -> Self:
        """Plot the curves of a fitted learner.

        Parameters
        ----------
        estimator : fitted structured learner
            Learner with a ``history_``.
        axes : sequence of two matplotlib Axes, default=None
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        <<returns_display>>
        """
        check_is_fitted(estimator, "history_")
        history = estimator.history_
        names = ("iteration", "objective", "dual_objective", "gap")
        curves = {name: np.asarray(history[name]) for name in names}
        return cls(**curves, name=type(estimator).__name__).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        <<returns_display>>
        """
        size = 6.4, 5.0
        self.axes_ = self._use_axes_array(axes, (2, 1), sharex=True, figsize=size).ravel()
        above, below = self.axes_
        look: dict[str, Any] = {"marker": ".", "linewidth": 1.4}
        above.plot(self.iteration, self.objective, color=BLUE, label="objective", **look)
        above.plot(
            self.iteration, self.dual_objective, color=VERMILION, label="lower bound", **look
        )
        between = self.iteration, self.dual_objective, self.objective
        above.fill_between(*between, color=BLUE, alpha=0.1)
        above.legend(fontsize="small")
        above.set(ylabel="objective", title=self.name)
        below.plot(self.iteration, self.gap, color=BLUE, **look)
        below.set(xlabel="iteration", ylabel="relative gap")
        if np.nanmax(self.gap, initial=0.0) > 0.0:
            below.set_yscale("log")
        return self


class WordDisplay(Display):
    """Images of letters with the predicted letters.

    Create it with :meth:`from_predictions`.

    Parameters
    ----------
    <<words>>

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Axes of each word.
    figure_ : matplotlib Figure
        Figure of the axes.
    texts_ : list of list of matplotlib Text
        Predicted letters of each word; errors in another color, with the true letter.

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.plotting import WordDisplay
    >>> letters = load_letters()
    >>> X, Y = letters.data[:3], letters.target[:3]
    >>> display = WordDisplay.from_predictions(X, Y, Y)
    >>> display.figure_.savefig("words.png")  # doctest: +SKIP
    """

    X: Sequence
    Y: Sequence
    Y_pred: Sequence
    alphabet: Sequence[str] = "abcdefghijklmnopqrstuvwxyz"
    shape: tuple[int, int] = (16, 8)

    @classmethod
    def from_predictions(
        cls, X: Sequence, Y: Sequence, Y_pred: Sequence, *,
        alphabet: Sequence[str] = "abcdefghijklmnopqrstuvwxyz", shape: tuple[int, int] = (16, 8),
        axes: Any = None,
    ) -> Self:  # fmt: skip
        """Plot words and the predicted letters.

        Parameters
        ----------
        <<words>>
        <<axes_of_each>>

        Returns
        -------
        <<returns_display>>
        """
        if not len(X) == len(Y) == len(Y_pred):
            raise ValueError(
                "X, Y and Y_pred must have equal lengths, got "
                f"{len(X)}, {len(Y)} and {len(Y_pred)}."
            )
        for word in X:
            if np.shape(word)[1] != shape[0] * shape[1]:
                raise ValueError(
                    f"shape must be that of the {np.shape(word)[1]} pixels of a letter, got "
                    f"{shape}."
                )
        display = cls(X=X, Y=Y, Y_pred=Y_pred, alphabet=alphabet, shape=shape)
        return display.plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        <<axes_of_each>>

        Returns
        -------
        <<returns_display>>
        """
        height, width = self.shape
        longest = max(len(letters) for letters in self.Y)
        size = 0.42 * longest * (width + 1) / 8, 1.15 * len(self.X)
        shape = len(self.X), 1
        self.axes_ = self._use_axes_array(axes, shape, sharex=True, figsize=size).ravel()
        self.texts_ = []
        words = zip(self.axes_, self.X, self.Y, self.Y_pred, strict=True)
        for ax, word, truth, predicted in words:
            ink = np.zeros((height, (width + 1) * len(truth)))
            for k, pixels in enumerate(np.asarray(word)):
                ink[:, k * (width + 1) : k * (width + 1) + width] = pixels.reshape(self.shape)
            ax.imshow(ink, cmap="gray_r", interpolation="nearest", aspect="equal")
            ax.set_xlim(-0.5, longest * (width + 1) - 0.5)
            ax.axis("off")
            pairs = zip(truth, predicted, strict=True)
            self.texts_.append([self._draw_letter(ax, k, *pair) for k, pair in enumerate(pairs)])
        return self

    def _draw_letter(self, ax: Any, k: int, truth: int, predicted: int) -> Any:
        correct, text = truth == predicted, self.alphabet[predicted]
        if not correct:
            text += f" ({self.alphabet[truth]})"
        position = k * (self.shape[1] + 1) + self.shape[1] / 2, self.shape[0] + 0.5
        look = {"color": GREEN if correct else VERMILION, "fontsize": 10 if correct else 9}
        weight = "normal" if correct else "bold"
        return ax.text(*position, text, ha="center", va="top", weight=weight, **look)


class GridLabelDisplay(Display):
    """Labeled images side by side: true labels, predictions, any labels of a grid.

    Create it with :meth:`from_labels`.

    Parameters
    ----------
    labels : dict of str to ndarray of shape (height, width)
        Labels of pixels by title.
    image : ndarray of shape (height, width) or (height, width, 3), default=None
        Image, plotted first.
    n_states : int, default=None
        Number of labels. All images share the same colors.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        Axes of each image.
    figure_ : matplotlib Figure
        Figure of the axes.
    images_ : list of matplotlib AxesImage
        The images.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.plotting import GridLabelDisplay
    >>> truth = np.eye(4, dtype=int)
    >>> display = GridLabelDisplay.from_labels({"truth": truth, "found": 1 - truth})
    >>> display.figure_.savefig("labels.png")  # doctest: +SKIP
    """

    labels: Mapping[str, np.ndarray]
    image: np.ndarray | None = None
    n_states: int | None = None

    @classmethod
    def from_labels(
        cls, labels: Mapping[str, Any], *, image: Any = None, n_states: int | None = None,
        axes: Any = None,
    ) -> Self:  # fmt: skip
        """Plot labeled images.

        Parameters
        ----------
        labels : dict of str to array-like of shape (height, width)
            Labels of pixels by title. If there is one with the title "truth", the others show their
            share of correct pixels.
        image : array-like of shape (height, width) or (height, width, 3), default=None
            Image, plotted first.
        n_states : int, default=None
            Number of labels; by default, the largest label plus 1.
        <<axes_of_each>>

        Returns
        -------
        <<returns_display>>
        """
        labels = {name: np.asarray(grid) for name, grid in labels.items()}
        for name, grid in labels.items():
            if grid.ndim != 2:
                raise ValueError(
                    f"labels[{name!r}] must have shape (height, width), got {grid.shape}."
                )
        if n_states is None:
            n_states = int(max(grid.max() for grid in labels.values())) + 1
        return cls(labels=labels, image=image, n_states=n_states).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Plot the display.

        Parameters
        ----------
        <<axes_of_each>>

        Returns
        -------
        <<returns_display>>
        """
        shown = len(self.labels) + (self.image is not None)
        self.axes_ = self._use_axes_array(axes, (1, shown), figsize=(2.4 * shown, 2.6)).ravel()
        self.images_, rest = [], iter(self.axes_)
        if self.image is not None:
            ax = next(rest)
            self.images_.append(ax.imshow(self.image, cmap="gray", interpolation="nearest"))
            ax.set_title("input", fontsize="medium")
        truth = self.labels.get("truth")
        look = {"cmap": "viridis", "vmin": 0, "vmax": max(1, (self.n_states or 2) - 1)}
        for ax, (name, grid) in zip(rest, self.labels.items(), strict=True):
            self.images_.append(ax.imshow(grid, interpolation="nearest", **look))
            measured = truth is not None and grid is not truth and grid.shape == truth.shape
            share = f", {np.mean(grid == truth):.1%}" if measured else ""
            ax.set_title(name + share, fontsize="medium")
        for ax in self.axes_:
            ax.axis("off")
        return self
