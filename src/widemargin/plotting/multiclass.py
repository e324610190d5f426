"""The picture of a code matrix."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from widemargin.plotting.display import import_pyplot

_MOST_NAMED = 40


class CodeMatrixDisplay:
    """A code matrix as a picture: a row for every class, a column for every machine.

    Blue squares are classes that a machine is positive for, orange ones negative, white ones it
    does not see.

    Parameters
    ----------
    matrix : array-like of shape (n_classes, n_machines)
        Of +1, -1 and 0.
    classes : array-like of shape (n_classes,), default=None
        Names of the classes; their numbers by default.
    minimum_distance : float, default=None
        For the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of the axes.
    image_ : matplotlib AxesImage
        The picture.

    Examples
    --------
    >>> from widemargin import code_matrix
    >>> from widemargin.plotting import CodeMatrixDisplay
    >>> matrix, minimum_distance = code_matrix("dense", 8)
    >>> display = CodeMatrixDisplay(matrix, minimum_distance=minimum_distance).plot()
    >>> display.figure_.savefig("code.png")  # doctest: +SKIP
    """

    def __init__(self, matrix, *, classes=None, minimum_distance=None):
        self.matrix = np.asarray(matrix)
        self.classes = np.arange(len(self.matrix)) if classes is None else classes
        self.minimum_distance = minimum_distance

    @classmethod
    def from_estimator(cls, estimator, *, ax=None):
        """Draw the code matrix of a fitted `CodeMatrixClassifier`.

        Parameters
        ----------
        estimator : CodeMatrixClassifier
            Fitted.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        CodeMatrixDisplay
            The display, drawn.
        """
        check_is_fitted(estimator)
        return cls(
            estimator.code_matrix_,
            classes=estimator.classes_,
            minimum_distance=estimator.minimum_distance_,
        ).plot(ax=ax)

    def plot(self, *, ax=None):
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        CodeMatrixDisplay
            The display itself.
        """
        pyplot = import_pyplot("CodeMatrixDisplay")
        from matplotlib.colors import ListedColormap

        n_classes, n_machines = self.matrix.shape
        if ax is None:
            size = np.clip(0.22 * np.array([n_machines, n_classes]), 2.0, 14.0) + 1.0
            _, ax = pyplot.subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        colors = ListedColormap(["#d55e00", "#ffffff", "#0072b2"])
        self.image_ = ax.imshow(self.matrix, cmap=colors, vmin=-1, vmax=1, aspect="auto")
        ax.set(xlabel="machine", ylabel="class")
        if n_classes <= _MOST_NAMED:
            ax.set_yticks(np.arange(n_classes), labels=[str(name) for name in self.classes])
        ax.set_xticks(np.arange(n_machines + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n_classes + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="0.85", linewidth=0.5)
        ax.tick_params(which="minor", length=0)
        if self.minimum_distance is not None:
            ax.set_title(f"{n_machines} machines, minimum distance {self.minimum_distance:g}")
        return self
