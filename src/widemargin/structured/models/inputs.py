"""Inputs of conditional random fields as graphs, and the checks of their arrays."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from widemargin._base.options import model_options


class InputGraph(NamedTuple):
    """An input as a graph, parsed and checked once.

    Attributes
    ----------
    features : ndarray or CSR array of shape (n_nodes, n_features)
        Features of the nodes.
    edges : ndarray of shape (n_edges, 2)
        Nodes that an edge joins.
    edge_features : ndarray or CSR array of shape (n_edges, n_edge_features), ndarray of shape \
            (n_edges,), or None
        Features of the edges. An array of integers, one for each edge, is the index of the only
        feature of the edge, of value 1; None is index 0 for all edges.
    shape : tuple or None
        Shape of outputs; None for one label per node.
    allowed : ndarray of bool of shape (n_nodes, n_states), or None
        States that each node may have; None for all.
    """

    features: Any
    edges: np.ndarray = np.empty((0, 2), dtype=np.int64)
    edge_features: Any = None
    shape: tuple | None = None
    allowed: np.ndarray | None = None

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.features.shape[0]

    @property
    def output_shape(self) -> tuple:
        """Shape of outputs."""
        return (self.n_nodes,) if self.shape is None else self.shape

    def edge_matrix(self, n_features: int) -> Any:
        """Return the features of the edges, one row per edge."""
        kind = np.zeros(len(self.edges), int) if self.edge_features is None else self.edge_features
        return np.eye(n_features)[kind] if kind.ndim == 1 else kind


class ParsedSamples(NamedTuple):
    """Samples whose inputs and outputs have been parsed.

    Attributes
    ----------
    inputs : list of InputGraph
        Inputs.
    states : list of ndarray, or None
        States of the nodes of the outputs, if there are any.
    known : list of ndarray of bool, or None
        Nodes whose labels are known, if some are not: the others have no loss.
    """

    inputs: list[InputGraph]
    states: list[np.ndarray] | None
    known: list[np.ndarray] | None = None


def parse_samples(model: Any, X: Sequence, Y: Any) -> ParsedSamples:
    """Parse the inputs and outputs of a model, each once.

    Parameters
    ----------
    model : CRF
        Its methods `parse_input` and `states` parse an input and an output.
    X : sequence
        Inputs.
    Y : sequence or None
        Outputs.

    Returns
    -------
    samples : ParsedSamples
        The samples.
    """
    if sp.issparse(Y):
        raise ValueError("Y must not be sparse. Pass Y.toarray().")
    inputs = [model.parse_input(x) for x in X]
    if not inputs:
        raise ValueError("X must contain at least one input, got none.")
    if Y is not None and len(inputs) != len(Y):
        raise ValueError(f"X and Y must have equal lengths, got {len(inputs)} and {len(Y)}.")
    if Y is None:
        return ParsedSamples(inputs, None)
    states = [model.states(y) for y in Y]
    partial = any(hasattr(y, "known") for y in Y)
    return ParsedSamples(inputs, states, [y.known for y in Y] if partial else None)


def check_features(features: Any) -> Any:
    """Return features of nodes as a two-dimensional array, or as a float64 CSR array.

    Parameters
    ----------
    features : array-like or sparse matrix of shape (n_nodes, n_features)
        Features of the nodes.

    Returns
    -------
    features : ndarray or CSR array of shape (n_nodes, n_features)
        The features.
    """
    if sp.issparse(features):
        check_real(features, "x")
        return sp.csr_array(features, dtype=np.float64)
    try:
        values = np.asarray(features)
    except ValueError as error:  # of unequal lengths
        raise ValueError(
            "x must be an array of features of shape (n_nodes, n_features), got a "
            f"{type(features).__name__} whose parts have other shapes."
        ) from error
    features = check_real(values, "x")
    if features.ndim != 2:
        raise ValueError(f"x must have shape (n_nodes, n_features), got {features.shape}.")
    return features


def check_single(x: Any) -> Any:
    """Return one sample as a matrix of one row."""
    if sp.issparse(x) and x.ndim == 2:
        return check_features(x)
    return check_features(np.atleast_2d(to_dense(x)))


def check_equal_sizes(y: Any, y_hat: Any) -> None:
    """Raise a ValueError unless two outputs have as many parts."""
    if np.size(y) != np.size(y_hat):
        raise ValueError(
            f"y and y_hat must have equal lengths, got {np.size(y)} and {np.size(y_hat)}."
        )


def encode_labels(labels: np.ndarray, classes: np.ndarray, unknown: Any = None) -> np.ndarray:
    """Return the states of labels that are strings: their positions in the sorted classes.

    Other labels have the state ``unknown``, or raise a ValueError if it is None.
    """
    states = np.searchsorted(classes, labels.astype(str))
    known = classes[np.minimum(states, len(classes) - 1)] == labels
    if unknown is not None:
        return np.where(known, states, unknown).astype(np.int64)
    if not np.all(known):
        unknown = sorted(set(labels[~known].tolist()))
        raise ValueError(f"y must contain labels of the training data, got {unknown[:3]}.")
    return states.astype(np.int64)


def check_integer_labels(y: Any) -> np.ndarray:
    """Return the labels of an output as int64; raise a ValueError unless they are integers."""
    labels = np.ravel(y)
    kind = labels.dtype.kind
    if kind in "iub" or (kind == "f" and np.array_equal(labels, np.floor(labels))):
        return labels.astype(np.int64)
    # NumPy makes strings of labels of several types.
    objects = np.ravel(np.asarray(y, dtype=object))
    if all(isinstance(label, Integral) for label in objects):
        return objects.astype(np.int64)
    if any(label is None for label in objects):
        raise ValueError("y must contain a label for each part, got None. LatentSSVM accepts it.")
    if all(isinstance(label, str) for label in objects):
        raise ValueError(
            f"Y must contain only strings or only integers, got the strings {labels[:3]} and "
            "others."
        )
    types = sorted({type(label).__name__ for label in objects})
    raise ValueError(
        f"y must contain labels as integers from 0 or strings, got {labels[:3]} ({', '.join(types)}"
        "). Encode other classes with sklearn.preprocessing.LabelEncoder."
    )


def check_label_range(largest: int, states: Sequence[np.ndarray]) -> None:
    """Raise a ValueError if there are no labels, or so few that the largest must be a mistake."""
    n_labels = sum(len(labels) for labels in states)
    if n_labels == 0:
        raise ValueError("Y must contain at least one label, got only outputs without parts.")
    if largest >= max(n_labels, model_options.largest_label):
        raise ValueError(
            f"Y must contain labels 0 to n_states - 1, got {largest} among {n_labels} labels. "
            "Encode them with sklearn.preprocessing.LabelEncoder, or set the number of states."
        )


def check_real(values: Any, name: str) -> Any:
    """Return the values, objects as float64; raise a ValueError unless they are real numbers."""
    if values.dtype.kind == "c":
        raise ValueError(
            f"{name} must contain real numbers, got complex numbers. Pass their real and imaginary "
            "parts as features."
        )
    if values.dtype.kind != "O":
        return values
    if any(value is None for value in values.flat):
        raise ValueError(f"{name} must contain numbers, got None. Impute missing values first.")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must contain numbers: {error}.") from error


def check_finite(values: Any, name: str) -> None:
    """Raise a ValueError unless all values are finite."""
    if not np.isfinite(values.data if sp.issparse(values) else values).all():
        raise ValueError(f"{name} must contain finite numbers, got NaN or infinity.")


def stack_rows(blocks: Sequence[Any], name: str) -> Any:
    """Return blocks of rows below each other, as one CSR array of finite float64 numbers."""
    if any(sp.issparse(block) for block in blocks):
        rows = sp.vstack([sp.csr_array(block) for block in blocks], format="csr", dtype=np.float64)
        rows.sum_duplicates()
    else:
        rows = sp.csr_array(np.concatenate(blocks), dtype=np.float64)
    check_finite(rows, name)
    return rows


def to_dense(x: Any) -> np.ndarray:
    """Return an array."""
    return x.toarray() if sp.issparse(x) else np.asarray(x)
