"""Joint features and potentials: how the weights of a model make the scores of labeled graphs.

The weights of the nodes come first, those of the edges follow. `StateWeights` has one vector of
node weights for each state, `SignedWeights` one for each label, which both of its states share
with opposite signs. The pairwise matrix of an edge is a sum over the features of the edge. Two
tables of shape (n_edge_features, n_states, n_states) give for each of its entries the position of a
weight and a factor, so that matrices can be symmetric or tied.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widemargin.structured.inference import graphs as flat
from widemargin.structured.models.inputs import InputGraph, check_finite, stack_rows, to_dense


class StateWeights:
    """One vector of node weights for each state.

    Parameters
    ----------
    n_states : int
        Number of states.
    n_features : int
        Number of features of a node.
    """

    shared = False

    def __init__(self, n_states: int, n_features: int) -> None:
        self.signs, self.n_features = np.ones(n_states), n_features
        self.size, self.n_rows = n_states * n_features, n_features

    def compute(self, features: Any, beliefs: np.ndarray) -> np.ndarray:
        """Return the part of the joint feature that belongs to the nodes."""
        return np.asarray((features.T @ beliefs).T).ravel()

    def scores(self, features: Any, weights: np.ndarray) -> np.ndarray:
        """Return the score of each state of each node."""
        return np.asarray(features @ weights.reshape(len(self.signs), self.n_features).T)

    def to_flat_order(self, weights: np.ndarray) -> np.ndarray:
        """Return weights ordered by feature, from weights ordered by state."""
        return weights.reshape(len(self.signs), self.n_features).T.ravel()

    def from_flat_order(self, weights: np.ndarray) -> np.ndarray:
        """Return weights ordered by state, from weights ordered by feature."""
        return weights.reshape(self.n_features, len(self.signs)).T.ravel()

    def stack(self, inputs: Sequence[InputGraph]) -> flat.Graphs:
        """Return the inputs in flat arrays."""
        nodes = _ends([graph.n_nodes for graph in inputs])
        links = _ends([len(graph.edges) for graph in inputs])
        rows = stack_rows([graph.features for graph in inputs], "X")
        first = rows.indptr.astype(np.int64)
        features = first[:-1], first[1:], np.zeros(len(first) - 1, dtype=np.int64)
        edges = np.concatenate([graph.edges for graph in inputs])
        _check_ends(edges, np.repeat(np.diff(nodes), np.diff(links))[:, np.newaxis])
        entries = rows.indices.astype(np.int32, copy=False), rows.data
        edge_rows = _stack_edge_features(inputs, len(edges))
        return flat.make_graphs(nodes, links, (*features, *entries), edges, edge_rows)


class SignedWeights:
    """One vector of node weights for each label, whose two states have opposite signs.

    A sample is one row of features, which all of its labels share.

    Parameters
    ----------
    signs : array-like of shape (2,)
        Factors of the score in the two states.
    n_labels : int
        Number of labels.
    n_features : int
        Number of features of a sample.
    """

    shared = True

    def __init__(self, signs: Sequence[float], n_labels: int, n_features: int) -> None:
        self.signs = np.array(signs, dtype=float)
        self.n_labels, self.n_features = n_labels, n_features
        self.size = self.n_rows = n_labels * n_features

    def compute(self, features: Any, beliefs: np.ndarray) -> np.ndarray:
        """Return the part of the joint feature that belongs to the nodes."""
        return np.outer(beliefs @ self.signs, to_dense(features)).ravel()

    def scores(self, features: Any, weights: np.ndarray) -> np.ndarray:
        """Return the score of each state of each label."""
        scores = np.ravel(features @ weights.reshape(self.n_labels, self.n_features).T)
        return np.outer(scores, self.signs)

    def to_flat_order(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights, whose order is the same."""
        return weights

    from_flat_order = to_flat_order

    def stack(self, inputs: Sequence[InputGraph]) -> flat.Graphs:
        """Return the inputs in flat arrays; all labels of a sample read the same row."""
        n, n_labels, edges = len(inputs), self.n_labels, inputs[0].edges
        rows = stack_rows([graph.features for graph in inputs], "X")
        first = rows.indptr.astype(np.int64)
        features = (
            np.repeat(first[:-1], n_labels),
            np.repeat(first[1:], n_labels),
            np.tile(np.arange(n_labels) * self.n_features, n),
            rows.indices.astype(np.int32, copy=False),
            rows.data,
        )
        ends = _ends([n_labels] * n), _ends([len(edges)] * n)
        edge_rows = (
            np.arange(n * len(edges) + 1), np.tile(np.arange(len(edges)), n),
            np.ones(n * len(edges)),
        )  # fmt: skip
        return flat.make_graphs(*ends, features, np.tile(edges, (n, 1)), edge_rows)


class JointFeature:
    """The joint feature of a model and the potentials that follow from it.

    Parameters
    ----------
    nodes : StateWeights or SignedWeights
        Weights of the nodes.
    position : ndarray of shape (n_edge_features, n_states, n_states)
        Positions of the weights of the edges.
    factor : ndarray of shape (n_edge_features, n_states, n_states)
        Factors of these weights.

    Attributes
    ----------
    size : int
        Number of weights.
    layout : Layout
        The same for compiled code.
    """

    def __init__(
        self, nodes: StateWeights | SignedWeights, position: np.ndarray, factor: np.ndarray
    ) -> None:
        self.nodes = nodes
        self.layout = flat.Layout(nodes.signs, nodes.shared, nodes.n_rows, position, factor)
        self.size = self.layout.size

    def compute(self, graph: InputGraph, beliefs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the joint feature of an input with beliefs of its nodes and edges."""
        sums = np.zeros(self.size - self.nodes.size)
        if len(graph.edges):
            position, factor = self.layout.position, self.layout.factor
            across = graph.edge_matrix().T @ beliefs[1].reshape(len(graph.edges), -1)
            np.add.at(sums, position.ravel(), factor.ravel() * across.ravel())
        return np.concatenate([self.nodes.compute(graph.features, beliefs[0]), sums])

    def potentials(self, graph: InputGraph, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the unary and pairwise potentials of an input."""
        check_finite(graph.features, "x")
        w, position, factor = self.check_weights(w), self.layout.position, self.layout.factor
        unary = self.nodes.scores(graph.features, w[: self.nodes.size])
        pairwise = np.empty((0, *position.shape[1:]))
        if len(graph.edges):
            _check_ends(graph.edges, len(unary))
            edge_features = graph.edge_matrix()
            check_finite(edge_features, "edge_features")
            pairwise = np.tensordot(edge_features, factor * w[self.nodes.size + position], axes=1)
        return np.ascontiguousarray(unary), np.ascontiguousarray(pairwise)

    def check_weights(self, w: Any) -> np.ndarray:
        """Return the weights as float64, after a check of their shape and values."""
        w = np.asarray(w, dtype=float)
        if w.shape != (self.size,):
            raise ValueError(
                f"w must have shape {(self.size,)}, got {w.shape}. Use weights with the model that "
                "was trained with them, `model_` of the learner."
            )
        check_finite(w, "w")
        return w

    def to_flat_order(self, w: Any) -> np.ndarray:
        """Return weights in the order of compiled code, from the order of the model."""
        w, n = self.check_weights(w), self.nodes.size
        return np.concatenate([self.nodes.to_flat_order(w[:n]), w[n:]])

    def from_flat_order(self, w: np.ndarray) -> np.ndarray:
        """Return weights in the order of the model, from the order of compiled code."""
        n = self.nodes.size
        return np.concatenate([self.nodes.from_flat_order(w[:n]), w[n:]])


def full_matrices(n_edge_features: int, n_states: int) -> tuple[np.ndarray, np.ndarray]:
    """Return tables of one free pairwise matrix for each edge feature.

    Parameters
    ----------
    n_edge_features : int
        Number of features of an edge.
    n_states : int
        Number of states.

    Returns
    -------
    position : ndarray of shape (n_edge_features, n_states, n_states)
        Positions of the weights, counted from the first weight of the edges.
    factor : ndarray of shape (n_edge_features, n_states, n_states)
        Factors of the weights: 1.
    """
    shape = n_edge_features, n_states, n_states
    return np.arange(int(np.prod(shape))).reshape(shape), np.ones(shape)


def symmetric_matrix(n_states: int) -> tuple[np.ndarray, np.ndarray]:
    """Return tables of one symmetric pairwise matrix, stored as its lower triangle by rows.

    Parameters
    ----------
    n_states : int
        Number of states.

    Returns
    -------
    position : ndarray of shape (1, n_states, n_states)
        Positions of the weights, counted from the first weight of the edges.
    factor : ndarray of shape (1, n_states, n_states)
        Factors of the weights: 1.
    """
    rows, columns = np.indices((1, n_states, n_states))[1:]
    high, low = np.maximum(rows, columns), np.minimum(rows, columns)
    return high * (high + 1) // 2 + low, np.ones(high.shape)


def _check_ends(edges: np.ndarray, n_nodes: Any) -> None:
    """Raise a ValueError unless all edges end at nodes; compiled code does not check."""
    if len(edges) and not (edges.min() >= 0 and (edges < n_nodes).all()):
        raise ValueError("parse_input must return edges between nodes 0 to n_nodes - 1.")


def _ends(lengths: Sequence[int]) -> np.ndarray:
    """Return where blocks of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _stack_edge_features(inputs: Sequence[InputGraph], n_edges: int) -> tuple:
    if inputs[0].edge_features is None or n_edges == 0:
        count = np.arange(n_edges + 1)
        return count, np.zeros(n_edges, dtype=np.int64), np.ones(n_edges)
    rows = stack_rows([graph.edge_features for graph in inputs], "edge_features")
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data
