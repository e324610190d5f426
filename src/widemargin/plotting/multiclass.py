"""Display of a code matrix."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from widemargin.plotting.display import BLUE, VERMILION, Display

_MOST_NAMED = 40  # classes with names on the axis: more would overlap


class CodeMatrixDisplay(Display):
    """Code matrix visualization: a row for each class, a column for each binary subproblem.

    Blue cells are the positive classes of a subproblem, orange cells the negative ones. The classes
    of white cells are left out.

    Create it with :meth:`from_estimator`, or from a matrix.

    Parameters
    ----------
    matrix : array-like of shape (n_classes, n_columns)
        Code matrix, with entries +1, -1 and 0.
    classes : array-like of shape (n_classes,), default=None
        Names of the classes; their indices by default.
    minimum_distance : float, default=None
        Minimum distance of the code words, shown in the title.

    Attributes
    ----------
    <<display_axes>>
    image_ : matplotlib AxesImage
        The code matrix.

    Examples
    --------
    >>> from widemargin import code_matrix
    >>> from widemargin.plotting import CodeMatrixDisplay
    >>> matrix, minimum_distance = code_matrix("dense", 8)
    >>> display = CodeMatrixDisplay(matrix, minimum_distance=minimum_distance).plot()
    >>> display.figure_.savefig("code.png")  # doctest: +SKIP
    """

    def __init__(
        self, matrix: ArrayLike, *, classes: Any = None, minimum_distance: float | None = None
    ) -> None:
        self.matrix = np.asarray(matrix)
        self.classes = np.asarray(np.arange(len(self.matrix)) if classes is None else classes)
        self.minimum_distance = minimum_distance

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Plot the code matrix of a fitted `CodeMatrixClassifier`.

        Parameters
        ----------
        estimator : CodeMatrixClassifier
            Fitted estimator.
        <<ax>>

        Returns
        -------
        <<returns_display>>
        """
        check_is_fitted(estimator)
        names = {"classes": estimator.classes_, "minimum_distance": estimator.minimum_distance_}
        return cls(estimator.code_matrix_, **names).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Plot the code matrix.

        Parameters
        ----------
        <<ax>>

        Returns
        -------
        <<returns_display>>
        """
        n_classes, n_columns = self.matrix.shape
        size = np.clip(0.22 * np.array([n_columns, n_classes]), 2.0, 14.0) + 1.0
        ax = self._use_axes(ax, figsize=size, layout="constrained")
        from matplotlib.colors import ListedColormap

        colors = ListedColormap([VERMILION, "#ffffff", BLUE])
        self.image_ = ax.imshow(self.matrix, cmap=colors, vmin=-1, vmax=1, aspect="auto")
        ax.set(xlabel="binary subproblem", ylabel="class")
        if n_classes <= _MOST_NAMED:
            ax.set_yticks(np.arange(n_classes), labels=[str(name) for name in self.classes])
        ax.set_xticks(np.arange(n_columns + 1) - 0.5, minor=True)
        ax.set_yticks(np.arange(n_classes + 1) - 0.5, minor=True)
        ax.grid(which="minor", color="0.85", linewidth=0.5)
        ax.tick_params(which="minor", length=0)
        if self.minimum_distance is not None:
            ax.set_title(f"{n_columns} columns, minimum distance {self.minimum_distance:g}")
        return self
