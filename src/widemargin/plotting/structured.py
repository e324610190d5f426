"""Pictures of structured learning: curves of a fit, words, labelled images."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

_OURS, _BOUND, _RIGHT, _WRONG = "#0072b2", "#d55e00", "#009e73", "#d55e00"


class ObjectiveDisplay:
    """The objective of a fit, its lower bound, and the gap between them.

    Create it with :meth:`from_estimator`.

    Parameters
    ----------
    iteration : ndarray of shape (n_looks,)
        Passes or rounds at each look.
    objective : ndarray of shape (n_looks,)
        The objective.
    dual_objective : ndarray of shape (n_looks,)
        Its lower bound.
    gap : ndarray of shape (n_looks,)
        Their relative difference.
    name : str
        What was fitted, for the title.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
        The objective and its bound above, the gap below.
    figure_ : matplotlib Figure
        The figure of the axes.

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

    def __init__(self, *, iteration, objective, dual_objective, gap, name):
        self.iteration = iteration
        self.objective = objective
        self.dual_objective = dual_objective
        self.gap = gap
        self.name = name

    @classmethod
    def from_estimator(cls, estimator, *, axes=None):
        """Draw the curves of a fitted learner.

        Parameters
        ----------
        estimator : fitted structured learner
            It has a ``history_``.
        axes : sequence of two matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ObjectiveDisplay
            The display, drawn.
        """
        check_is_fitted(estimator, "history_")
        history = estimator.history_
        names = ("iteration", "objective", "dual_objective", "gap")
        curves = {name: np.asarray(history[name]) for name in names}
        return cls(**curves, name=type(estimator).__name__).plot(axes=axes)

    def plot(self, *, axes=None):
        """Draw the display.

        Parameters
        ----------
        axes : sequence of two matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ObjectiveDisplay
            The display itself.
        """
        if axes is None:
            _, axes = _pyplot("ObjectiveDisplay").subplots(
                2, 1, sharex=True, figsize=(6.4, 5.0), layout="constrained"
            )
        above, below = axes
        self.axes_, self.figure_ = np.asarray(axes), above.figure
        look = {"marker": ".", "linewidth": 1.4}
        above.plot(self.iteration, self.objective, color=_OURS, label="objective", **look)
        above.plot(self.iteration, self.dual_objective, color=_BOUND, label="lower bound", **look)
        between = self.iteration, self.dual_objective, self.objective
        above.fill_between(*between, color=_OURS, alpha=0.1)
        above.legend(fontsize="small")
        above.set(ylabel="objective", title=self.name)
        below.plot(self.iteration, self.gap, color=_OURS, **look)
        below.set(xlabel="iteration", ylabel="relative gap")
        if np.nanmax(self.gap, initial=0.0) > 0.0:
            below.set_yscale("log")
        return self


class WordDisplay:
    """Images of letters with what was read in them.

    Create it with :meth:`from_predictions`.

    Parameters
    ----------
    X : list of ndarray of shape (length, n_pixels)
        The words.
    Y : list of ndarray of shape (length,)
        Their letters, as indices into `alphabet`.
    Y_pred : list of ndarray of shape (length,)
        What was read.
    alphabet : sequence of str
        The letters.
    shape : tuple of two int
        Height and width of an image of a letter.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each word.
    figure_ : matplotlib Figure
        The figure of the axes.
    texts_ : list of list of matplotlib Text
        What was read, letter by letter, for each word; mistakes in another colour, with the truth.

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.plotting import WordDisplay
    >>> letters = load_letters()
    >>> X, Y = letters.data[:3], letters.target[:3]
    >>> display = WordDisplay.from_predictions(X, Y, Y)
    >>> display.figure_.savefig("words.png")  # doctest: +SKIP
    """

    def __init__(self, *, X, Y, Y_pred, alphabet, shape):
        self.X = X
        self.Y = Y
        self.Y_pred = Y_pred
        self.alphabet = alphabet
        self.shape = shape

    @classmethod
    def from_predictions(
        cls, X, Y, Y_pred, *, alphabet="abcdefghijklmnopqrstuvwxyz", shape=(16, 8), axes=None
    ):
        """Draw words and what was read in them.

        Parameters
        ----------
        X : list of array-like of shape (length, n_pixels)
            The words, one row of pixels for each letter.
        Y : list of array-like of shape (length,)
            Their letters, as indices into `alphabet`.
        Y_pred : list of array-like of shape (length,)
            What was read.
        alphabet : sequence of str, default="abcdefghijklmnopqrstuvwxyz"
            The letters.
        shape : tuple of two int, default=(16, 8)
            Height and width of an image of a letter.
        axes : sequence of matplotlib Axes, default=None
            Where to draw, one for each word; a new figure by default.

        Returns
        -------
        WordDisplay
            The display, drawn.
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

    def plot(self, *, axes=None):
        """Draw the display.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            Where to draw, one for each word; a new figure by default.

        Returns
        -------
        WordDisplay
            The display itself.
        """
        height, width = self.shape
        longest = max(len(letters) for letters in self.Y)
        if axes is None:
            size = 0.42 * longest * (width + 1) / 8, 1.15 * len(self.X)
            _, axes = _pyplot("WordDisplay").subplots(
                len(self.X), 1, squeeze=False, sharex=True, figsize=size, layout="constrained"
            )
        self.axes_ = np.ravel(axes)
        self.figure_ = self.axes_[0].figure
        self.texts_ = []
        for ax, word, truth, found in zip(self.axes_, self.X, self.Y, self.Y_pred, strict=True):
            ink = np.zeros((height, (width + 1) * len(truth)))
            for k, pixels in enumerate(np.asarray(word)):
                ink[:, k * (width + 1) : k * (width + 1) + width] = pixels.reshape(self.shape)
            ax.imshow(ink, cmap="gray_r", interpolation="nearest", aspect="equal")
            ax.set_xlim(-0.5, longest * (width + 1) - 0.5)
            ax.axis("off")
            pairs = zip(truth, found, strict=True)
            self.texts_.append([self._write(ax, k, *pair) for k, pair in enumerate(pairs)])
        return self

    def _write(self, ax, k, truth, found):
        right = truth == found
        text = self.alphabet[found] if right else f"{self.alphabet[found]} ({self.alphabet[truth]})"
        place = k * (self.shape[1] + 1) + self.shape[1] / 2, self.shape[0] + 0.5
        look = {"color": _RIGHT if right else _WRONG, "fontsize": 10 if right else 9}
        weight = "normal" if right else "bold"
        return ax.text(*place, text, ha="center", va="top", weight=weight, **look)


class GridLabelDisplay:
    """Labelled images side by side: truth, predictions, any labels of a grid.

    Create it with :meth:`from_labels`.

    Parameters
    ----------
    labels : dict of str to ndarray of shape (height, width)
        Labels of pixels under the names they are shown with.
    image : ndarray of shape (height, width) or (height, width, 3), default=None
        What the labels are of, shown first.
    n_states : int, default=None
        Number of labels, which all images share the colours of.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        One for each image.
    figure_ : matplotlib Figure
        The figure of the axes.
    images_ : list of matplotlib AxesImage
        What was drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.plotting import GridLabelDisplay
    >>> truth = np.eye(4, dtype=int)
    >>> display = GridLabelDisplay.from_labels({"truth": truth, "found": 1 - truth})
    >>> display.figure_.savefig("labels.png")  # doctest: +SKIP
    """

    def __init__(self, *, labels, image=None, n_states=None):
        self.labels = labels
        self.image = image
        self.n_states = n_states

    @classmethod
    def from_labels(cls, labels, *, image=None, n_states=None, axes=None):
        """Draw labelled images.

        Parameters
        ----------
        labels : dict of str to array-like of shape (height, width)
            Labels of pixels under the names they are shown with; the one called "truth", if there
            is one, is what the share of right pixels of the others is measured by.
        image : array-like of shape (height, width) or (height, width, 3), default=None
            What the labels are of, shown first.
        n_states : int, default=None
            Number of labels; the largest one there is, plus 1, by default.
        axes : sequence of matplotlib Axes, default=None
            Where to draw, one for each image; a new figure by default.

        Returns
        -------
        GridLabelDisplay
            The display, drawn.
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

    def plot(self, *, axes=None):
        """Draw the display.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, default=None
            Where to draw, one for each image; a new figure by default.

        Returns
        -------
        GridLabelDisplay
            The display itself.
        """
        shown = len(self.labels) + (self.image is not None)
        if axes is None:
            _, axes = _pyplot("GridLabelDisplay").subplots(
                1, shown, squeeze=False, figsize=(2.4 * shown, 2.6), layout="constrained"
            )
        self.axes_ = np.ravel(axes)
        self.figure_, self.images_ = self.axes_[0].figure, []
        rest = iter(self.axes_)
        if self.image is not None:
            ax = next(rest)
            self.images_.append(ax.imshow(self.image, cmap="gray", interpolation="nearest"))
            ax.set_title("input", fontsize="medium")
        truth = self.labels.get("truth")
        for name, grid in self.labels.items():
            ax = next(rest)
            look = {"cmap": "viridis", "vmin": 0, "vmax": max(1, self.n_states - 1)}
            self.images_.append(ax.imshow(grid, interpolation="nearest", **look))
            measured = truth is not None and grid is not truth and grid.shape == truth.shape
            share = f", {np.mean(grid == truth):.1%}" if measured else ""
            ax.set_title(name + share, fontsize="medium")
        for ax in self.axes_:
            ax.axis("off")
        return self


def _pyplot(name):
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            f"{name} draws with matplotlib: install it with pip install 'widemargin[plot]'."
        ) from error
    return pyplot
