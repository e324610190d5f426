"""Joint features and potentials: how the weights of a model make the scores of labeled graphs.

The weights of the nodes come first, those of the edges follow. `StateWeights` has one vector of
node weights for each state, `SignedWeights` one for each label, which both of its states share
with opposite signs. The pairwise matrix of an edge is a sum over the features of the edge. Two
tables of shape (n_edge_features, n_states, n_states) give for each of its entries the position of a
weight and a factor, so that matrices can be symmetric or tied.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from widemargin.structured.inference import graphs as flat
from widemargin.structured.inference.potentials import Potentials
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

    shared, n_labels = False, 1

    def __init__(self, n_states: int, n_features: int) -> None:
        self.signs, self.n_features = np.ones(n_states), n_features
        self.size = n_states * n_features

    def compute(self, features: Any, beliefs: np.ndarray) -> np.ndarray:
        """Return the part of the joint feature that belongs to the nodes."""
        return np.asarray((features.T @ beliefs).T).ravel()

    def scores(self, features: Any, weights: np.ndarray) -> np.ndarray:
        """Return the score of each state of each node."""
        return np.asarray(features @ weights.reshape(len(self.signs), self.n_features).T)


class SignedWeights(StateWeights):
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
        self.size = n_labels * n_features

    def compute(self, features: Any, beliefs: np.ndarray) -> np.ndarray:
        """Return the part of the joint feature that belongs to the nodes."""
        return np.outer(beliefs @ self.signs, to_dense(features)).ravel()

    def scores(self, features: Any, weights: np.ndarray) -> np.ndarray:
        """Return the score of each state of each label."""
        scores = np.ravel(features @ weights.reshape(self.n_labels, self.n_features).T)
        return np.outer(scores, self.signs)


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
    barrier : ndarray of shape (n_states + 1, n_states), default=None
        Terms that forbid pairs of states and states of the first node, see
        `widemargin.structured.inference.graphs.Layout`.
    absent : ndarray of int, default=None
        Positions of weights that the model does not have: they are 0 and left out.

    Attributes
    ----------
    size : int
        Number of weights.
    full_size : int
        Number of weights with absent ones.
    layout : Layout
        The same for compiled code.
    """

    def __init__(
        self, nodes: StateWeights, position: np.ndarray, factor: np.ndarray, barrier: Any = None,
        absent: Any = None,
    ) -> None:  # fmt: skip
        self.nodes = nodes
        barrier = np.empty((0, len(nodes.signs))) if barrier is None else barrier
        self.layout = flat.Layout(nodes.signs, nodes.shared, nodes.size, position, factor, barrier)
        self.full_size = nodes.size + (int(position.max()) + 1 if position.size else 0)
        self.present = np.delete(np.arange(self.full_size), [] if absent is None else absent)
        self.size = len(self.present)

    @cached_property
    def order(self) -> np.ndarray:
        """Positions in the vector of the model of the weights in the order of compiled code.

        The position of absent weights is `size`.
        """
        position = np.full(self.full_size, self.size)
        position[self.present] = np.arange(self.size)
        if not self.nodes.shared:  # compiled code reads the weights of all states of a feature
            unary = position[: self.nodes.size]
            unary[:] = unary.reshape(len(self.nodes.signs), -1).T.ravel()
        return position

    def compute(self, graph: InputGraph, beliefs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Return the joint feature of an input with beliefs of its nodes and edges."""
        sums = np.zeros(self.full_size - self.nodes.size)
        if len(graph.edges):
            position, factor = self.layout.position, self.layout.factor
            across = beliefs[1].reshape(-1, position[0].size)
            if graph.edge_features is None:  # all edges count together; beliefs may be a sum
                across = across.sum(axis=0, keepdims=True)
            else:
                across = graph.edge_matrix(len(position)).T @ across
            np.add.at(sums, position.ravel(), factor.ravel() * across.ravel())
        full = np.concatenate([self.nodes.compute(graph.features, beliefs[0]), sums])
        return full[self.present]

    def potentials(self, graph: InputGraph, w: np.ndarray) -> Potentials:
        """Return the potentials of an input."""
        check_finite(graph.features, "x")
        weights, position, factor = self.check_weights(w), self.layout.position, self.layout.factor
        w = np.zeros(self.full_size)
        w[self.present] = weights
        unary = self.nodes.scores(graph.features, w[: self.nodes.size])
        pairwise = np.empty((0, *position.shape[1:]))
        if len(graph.edges):
            _check_ends(graph.edges, len(unary))
            _check_edge_features(graph, len(position), "x")
            edge_features = graph.edge_matrix(len(position))
            check_finite(edge_features, "edge_features")
            matrices = factor * w[self.nodes.size + position]
            pairwise = edge_features @ matrices.reshape(len(position), -1)
            pairwise = np.asarray(pairwise).reshape(-1, *position.shape[1:])
        unary, pairwise = np.ascontiguousarray(unary), np.ascontiguousarray(pairwise)
        if len(self.layout.barrier):
            unary[:1] += self.layout.barrier[-1]
            pairwise += self.layout.barrier[:-1]
        return Potentials(unary, graph.edges, pairwise)

    def stack(self, inputs: Sequence[InputGraph]) -> flat.Graphs:
        """Return the inputs in flat arrays; labels with shared weights read the same features."""
        rows, n_labels = stack_rows([graph.features for graph in inputs], "X"), self.nodes.n_labels
        nodes = _ends([n_labels * graph.n_nodes for graph in inputs])
        links = _ends([len(graph.edges) for graph in inputs])
        first = np.repeat(rows.indptr[:-1].astype(np.int64), n_labels)
        last = np.repeat(rows.indptr[1:].astype(np.int64), n_labels)
        shift = np.tile(np.arange(n_labels) * self.nodes.n_features, rows.shape[0])
        features = first, last, shift, rows.indices.astype(np.int32, copy=False), rows.data
        edges = np.concatenate([graph.edges for graph in inputs])
        _check_ends(edges, np.repeat(np.diff(nodes), np.diff(links))[:, np.newaxis])
        edge_features = _stack_edge_features(inputs, len(self.layout.position))
        return flat.make_graphs(self.layout, nodes, links, features, edges, edge_features)

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


def _check_edge_features(graph: InputGraph, n_features: int, name: str) -> Any:
    """Return features of edges, or raise a ValueError; compiled code does not check them."""
    features, n_edges = graph.edge_features, len(graph.edges)
    if features is None:
        return np.zeros(n_edges, dtype=np.int64)
    shape, kind = (
        getattr(features, "shape", None),
        getattr(features, "dtype", np.dtype(object)).kind,
    )
    is_index = shape == (n_edges,) and kind in "iu"
    if shape != (n_edges, n_features) and not (
        is_index and features.min() >= 0 and features.max() < n_features
    ):
        raise ValueError(
            f"edge_features of {name} must be an array of shape {(n_edges, n_features)}, or of "
            f"{n_edges} integers from 0 to {n_features - 1}, got {features!r}."
        )
    return features


def _stack_edge_features(inputs: Sequence[InputGraph], n_features: int) -> tuple:
    blocks = [
        _check_edge_features(graph, n_features, f"X[{sample}]")
        for sample, graph in enumerate(inputs)
        if len(graph.edges)
    ]
    if blocks and blocks[0].ndim == 2:
        rows = stack_rows(blocks, "edge_features")
        return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data
    kind = np.concatenate([np.empty(0, dtype=np.int64), *blocks]).astype(np.int64, copy=False)
    return np.arange(len(kind) + 1), kind, np.ones(len(kind))
