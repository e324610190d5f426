"""Conditional random fields on graphs: chains, graphs, graphs with edge features."""

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.docs import shared_docs
from widemargin.structured.inference.dispatch import check_edges, check_method
from widemargin.structured.inference.sequences import best_sequences
from widemargin.structured.models.crf import CRF
from widemargin.structured.models.inputs import (
    InputGraph,
    ParsedSamples,
    check_features,
    check_real,
)
from widemargin.structured.models.joint_feature import full_matrices, symmetric_matrix


@shared_docs
class GraphCRF(CRF):
    r"""Conditional random field on graphs, with one pairwise matrix for all edges.

    .. math::

        w \cdot \phi(x, y) = \sum_v w_{y_v} \cdot x_v + \sum_{(u, v)} P[y_u, y_v]

    An input is a pair (node features, edges), an output is the array of the labels of the nodes.

    Parameters
    ----------
    <<n_states>>
    <<n_node_features>>
    <<inference_method>>
    <<node_class_weight>>
    directed : bool, default=False
        Whether the direction of an edge matters. If not, the matrix P is symmetric.

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once the sizes are known: `n_states` times `n_features` of the nodes,
        followed by those of P, its lower triangle by rows if it is symmetric.
    <<state_classes>>
    <<last_inference_>>

    See Also
    --------
    EdgeFeatureGraphCRF : Pairwise weights that depend on edge features.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import GraphCRF
    >>> model = GraphCRF(n_states=2, n_features=2)
    >>> x = np.eye(2)[[0, 1, 0]], np.array([[0, 1], [1, 2], [2, 0]])
    >>> w = np.array([1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 2.0])
    >>> model.inference(x, w)
    array([0, 0, 0])
    >>> model.last_inference_.method, model.last_inference_.exact
    ('graph-cut', True)
    """

    def __init__(
        self,
        n_states: int | None = None,
        n_features: int | None = None,
        inference_method: Any = None,
        class_weight: Any = None,
        directed: bool = False,
    ) -> None:
        super().__init__(n_states, n_features, inference_method, class_weight)
        self.directed = directed

    def parse_input(self, x: Any) -> InputGraph:
        features, edges = unpack(x, ("features", "edges"))
        features = check_features(features)
        return InputGraph(features, check_edges(edges, features.shape[0]))

    def pairwise_weights(self) -> tuple[np.ndarray, np.ndarray]:
        return super().pairwise_weights() if self.directed else symmetric_matrix(self.n_states)


@shared_docs
class ChainCRF(GraphCRF):
    r"""Conditional random field on sequences: every node is joined to the next.

    .. math::

        w \cdot \phi(x, y) = \sum_v w_{y_v} \cdot x_v + \sum_v P[y_v, y_{v + 1}]

    An input is an array of shape (length, n_features), dense or sparse, an output is the array of
    its labels. Inference is exact.

    Parameters
    ----------
    <<n_states>>
    <<n_node_features>>
    <<inference_method>>
    <<node_class_weight>>
    directed : bool, default=True
        Whether the order matters. If not, the matrix P is symmetric.
    transitions : 'bio' or array-like of bool of shape (n_states, n_states), default=None
        Pairs of labels that may follow each other, all by default. Other pairs are excluded from
        inference, training and marginals. 'bio' is the rule of BIO labels, for strings: a label
        "I-X" follows "B-X" or "I-X".
    start_states : array-like of bool of shape (n_states,), default=None
        Labels of the first node that are allowed, all by default. With 'bio', no label "I-X" is.

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once the sizes are known.
    <<state_classes>>
    <<last_inference_>>

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.structured import ChainCRF, FrankWolfeSSVM
    >>> letters = load_letters()
    >>> X, Y = letters.data[:100], letters.target[:100]
    >>> learner = FrankWolfeSSVM(ChainCRF(), C=0.1, tol=0.1).fit(X, Y)
    >>> bool(learner.score(X, Y) > 0.9)
    True
    """

    def __init__(
        self,
        n_states: int | None = None,
        n_features: int | None = None,
        inference_method: Any = None,
        class_weight: Any = None,
        directed: bool = True,
        transitions: Any = None,
        start_states: Any = None,
    ) -> None:
        super().__init__(n_states, n_features, inference_method, class_weight, directed)
        self.transitions = transitions
        self.start_states = start_states

    def parse_input(self, x: Any) -> InputGraph:
        features = check_features(x)
        count = np.arange(features.shape[0])
        return InputGraph(features, np.stack([count[:-1], count[1:]], axis=1))

    def barrier(self) -> np.ndarray | None:
        if self.transitions is None and self.start_states is None:
            return None
        if check_method(self.inference_method) not in ("auto", "max-product"):
            raise ValueError(
                "inference_method must be 'auto' or 'max-product' with transitions or "
                f"start_states, got {self.inference_method!r}."
            )
        allowed = np.ones((self.n_states + 1, self.n_states), dtype=bool)
        if isinstance(self.transitions, str):
            allowed = self._bio_rules()
        elif self.transitions is not None:
            allowed[:-1] = _check_mask(self.transitions, allowed[:-1].shape, "transitions")
        if self.start_states is not None:
            allowed[-1] = _check_mask(self.start_states, (self.n_states,), "start_states")
        reached = allowed[-1]
        for _ in range(self.n_states):
            reached = allowed[:-1][reached].any(axis=0)
        if not reached.any():
            raise ValueError("transitions and start_states must allow sequences of any length.")
        return np.where(allowed, 0.0, -np.inf)

    def n_best(self, x: Any, w: Any, n_best: int = 5) -> tuple[list[np.ndarray], np.ndarray]:
        """Find the outputs with the highest scores, exactly.

        Parameters
        ----------
        <<input>>
        <<weights>>
        n_best : int, default=5
            Number of outputs.

        Returns
        -------
        outputs : list of ndarray
            Outputs, best first; fewer if there are not as many.
        scores : ndarray of shape (n_outputs,)
            Their scores.
        """
        if not isinstance(n_best, Integral) or n_best < 1:
            raise ValueError(f"n_best must be at least 1 and an integer, got {n_best!r}.")
        joint, graph = self.make_joint_feature(), self.check_input(self.parse_input(x))
        if graph.n_nodes == 0:
            return [self.make_output(np.empty(0, dtype=np.int64), (0,))], np.zeros(1)
        unary, _, pairwise = joint.potentials(graph, w)
        matrix = pairwise[0] if len(pairwise) else np.zeros((self.n_states, self.n_states))
        n_best = min(int(n_best), self.n_states**graph.n_nodes)
        labels, scores = best_sequences(unary, np.ascontiguousarray(matrix), n_best)
        return [self.make_output(sequence, sequence.shape) for sequence in labels], scores

    def _bio_rules(self) -> np.ndarray:
        """Return which BIO labels may follow each other and, in the last row, begin."""
        labels = self.state_labels().tolist()
        if self.transitions != "bio" or not hasattr(self, "classes_"):
            raise ValueError(
                "transitions must be an array of bool, or 'bio' for outputs of strings such as "
                f"'B-NP', 'I-NP' and 'O', got {self.transitions!r} and labels {labels[:3]}."
            )
        before = [*labels, ""]
        return np.array(
            [
                [
                    not str(label).startswith("I-") or str(last)[2:] == label[2:] != ""
                    for label in labels
                ]
                for last in before
            ]
        )


@shared_docs
class EdgeFeatureGraphCRF(CRF):
    r"""Conditional random field on graphs whose edges have features.

    .. math::

        w \cdot \phi(x, y) = \sum_v w_{y_v} \cdot x_v
        + \sum_{e = (u, v)} \sum_k z_{ek} P_k[y_u, y_v]

    An input is a triple (node features, edges, edge features), an output is the array of the labels
    of the nodes. Features of nodes and of edges may be sparse.

    Parameters
    ----------
    <<n_states>>
    <<n_node_features>>
    n_edge_features : int, default=None
        Number of features of an edge; inferred from the data by default.
    <<inference_method>>
    <<node_class_weight>>
    symmetric_edge_features : sequence of int, default=None
        Edge features k for which P_k is symmetric: the direction of the edge does not matter. The
        weights contain a whole matrix W_k, and P_k is (W_k + W_k^T) / 2.
    antisymmetric_edge_features : sequence of int, default=None
        Edge features k for which P_k is antisymmetric: reversing the edge changes the sign. P_k is
        (W_k - W_k^T) / 2.

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once the sizes are known: `n_states` times `n_features` of the nodes,
        followed by the `n_edge_features` matrices P_k.
    <<state_classes>>
    <<last_inference_>>

    See Also
    --------
    GraphCRF : One pairwise matrix for all edges.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import EdgeFeatureGraphCRF
    >>> x = np.eye(2)[[0, 1]], np.array([[0, 1]]), np.array([[1.0, 0.5]])
    >>> model = EdgeFeatureGraphCRF(n_states=2, n_features=2, n_edge_features=2)
    >>> model.joint_feature(x, np.array([0, 1]))
    array([1. , 0. , 0. , 1. , 0. , 1. , 0. , 0. , 0. , 0.5, 0. , 0. ])
    """

    _sizes = ("n_states", "n_features", "n_edge_features")
    n_edge_features: Any

    def __init__(
        self,
        n_states: int | None = None,
        n_features: int | None = None,
        n_edge_features: int | None = None,
        inference_method: Any = None,
        class_weight: Any = None,
        symmetric_edge_features: Any = None,
        antisymmetric_edge_features: Any = None,
    ) -> None:
        super().__init__(n_states, n_features, inference_method, class_weight)
        self.n_edge_features = n_edge_features
        self.symmetric_edge_features = symmetric_edge_features
        self.antisymmetric_edge_features = antisymmetric_edge_features

    def parse_input(self, x: Any) -> InputGraph:
        features, edges, edge_features = unpack(x, ("features", "edges", "edge_features"))
        features = check_features(features)
        edges = check_edges(edges, features.shape[0])
        if sp.issparse(edge_features):
            edge_features = sp.csr_array(check_real(edge_features, "edge_features"), dtype=float)
        else:
            edge_features = check_real(np.asarray(edge_features), "edge_features").astype(float)
        if len(edges) == edge_features.size == 0:
            edge_features = np.empty((0, self.n_edge_features or 0))
        if edge_features.ndim != 2 or edge_features.shape[0] != len(edges):
            raise ValueError(
                f"edge_features must have one row for each of {len(edges)} edges, got shape "
                f"{edge_features.shape}."
            )
        return InputGraph(features, edges, edge_features)

    def infer_sizes(self, samples: ParsedSamples) -> None:
        super().infer_sizes(samples)
        inputs = samples.inputs
        first = next((graph for graph in inputs if len(graph.edges)), inputs[0])
        self.infer_size("n_edge_features", first.edge_matrix(1).shape[1])

    def check_input(self, graph: InputGraph) -> InputGraph:
        graph, features = super().check_input(graph), graph.edge_matrix(self.n_edge_features)
        if len(graph.edges) == 0:
            features = np.empty((0, self.n_edge_features))
        if features.shape[1] != self.n_edge_features:
            raise ValueError(
                f"edge_features must have {self.n_edge_features} columns, got {features.shape[1]}."
            )
        # Tied features are there twice: the second time they read their matrix transposed.
        tied = features[:, self._tied()[0]]
        if sp.issparse(features):
            return graph._replace(edge_features=sp.hstack([features, tied], format="csr"))
        both = np.concatenate([features, tied], axis=1)
        return graph._replace(edge_features=both)

    def pairwise_weights(self) -> tuple[np.ndarray, np.ndarray]:
        position, factor = full_matrices(self.n_edge_features, self.n_states)
        tied, signs = self._tied()
        halves = np.full((len(tied), self.n_states, self.n_states), 0.5)
        factor[tied] = halves
        return (
            np.concatenate([position, position[tied].transpose(0, 2, 1)]),
            np.concatenate([factor, signs[:, np.newaxis, np.newaxis] * halves]),
        )

    def _tied(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the features with a symmetric or antisymmetric matrix, and 1 or -1 for each."""
        even, odd = (
            np.unique(np.asarray(() if features is None else features, dtype=np.int64))
            for features in (self.symmetric_edge_features, self.antisymmetric_edge_features)
        )
        tied = np.concatenate([even, odd])
        if len(tied) and not 0 <= tied.min() <= tied.max() < self.n_edge_features:
            raise ValueError(
                "symmetric_edge_features and antisymmetric_edge_features must name features 0 to "
                f"{self.n_edge_features - 1}, got {tied.tolist()}."
            )
        if len(np.unique(tied)) < len(tied):
            raise ValueError(
                "symmetric_edge_features and antisymmetric_edge_features must not share features, "
                f"got {np.intersect1d(even, odd).tolist()} in both."
            )
        return tied, np.repeat([1.0, -1.0], [len(even), len(odd)])


def _check_mask(mask: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    mask = np.asarray(mask)
    if mask.dtype.kind not in "bi" or mask.shape != shape or not np.isin(mask, (0, 1)).all():
        raise ValueError(
            f"{name} must be an array of bool of shape {shape}, got shape {mask.shape} and dtype "
            f"{mask.dtype}."
        )
    return mask.astype(bool)


def unpack(x: Any, names: tuple[str, ...]) -> Any:
    """Return the parts of an input, or raise a ValueError that lists their names."""
    if not isinstance(x, tuple | list) or len(x) != len(names):
        raise ValueError(f"x must be a tuple ({', '.join(names)}), got {type(x).__name__}.")
    return x
