"""Conditional random fields on graphs: chains, graphs, graphs with features of edges."""

import numpy as np

from widemargin.structured.inference.dispatch import check_edges
from widemargin.structured.models.crf import CRF, Parts, check_features


class GraphCRF(CRF):
    r"""Labels of the nodes of graphs, with one matrix of pairwise weights for all edges.

    .. math::

        w \cdot \phi(x, y) = \sum_v w_{y_v} \cdot x_v + \sum_{(u, v)} P[y_u, y_v]

    An input is a pair (features of nodes, edges), an output the array of labels of the nodes.

    Parameters
    ----------
    n_states : int, default=None
        Number of labels; learnt from the data by default.
    n_features : int, default=None
        Features of a node; learnt from the data by default.
    inference_method : str, default=None
        See `inference_dispatch`; None means "auto".
    class_weight : array-like of shape (n_states,), default=None
        Loss of a node by its true label; 1 by default.
    directed : bool, default=False
        Whether an edge's first and second end differ. If not, the matrix P is symmetric.

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once sizes are known: `n_states` times `n_features` of nodes, then those
        of P, its lower triangle row by row where it is symmetric.
    last_inference_ : Inference
        Method, exactness, energy and bound of the latest inference.

    See Also
    --------
    EdgeFeatureGraphCRF : Pairwise weights that depend on features of the edges.

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
        n_states=None,
        n_features=None,
        inference_method=None,
        class_weight=None,
        directed=False,
    ):
        super().__init__(n_states, n_features, inference_method, class_weight)
        self.directed = directed

    def _parts(self, x):
        features, edges = _unpack(x, ("features", "edges"))
        features = check_features(features)
        n_nodes = features.shape[0]
        return Parts(features, check_edges(edges, n_nodes), None, (n_nodes,))

    def _tables(self):
        place, factor = super()._tables()
        return (place, factor) if self.directed else (_lower_triangle(self.n_states)[None], factor)


class ChainCRF(GraphCRF):
    r"""Labels of sequences: every node is joined to the next.

    .. math::

        w \cdot \phi(x, y) = \sum_v w_{y_v} \cdot x_v + \sum_v P[y_v, y_{v + 1}]

    An input is an array of shape (length, n_features), dense or sparse, an output the array of its
    labels. Inference is exact.

    Parameters
    ----------
    n_states : int, default=None
        Number of labels; learnt from the data by default.
    n_features : int, default=None
        Features of a node; learnt from the data by default.
    inference_method : str, default=None
        See `inference_dispatch`; None means "auto".
    class_weight : array-like of shape (n_states,), default=None
        Loss of a node by its true label; 1 by default.
    directed : bool, default=True
        Whether the order matters. If not, the matrix P is symmetric.

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once sizes are known.
    last_inference_ : Inference
        Method, exactness, energy and bound of the latest inference.

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
        n_states=None,
        n_features=None,
        inference_method=None,
        class_weight=None,
        directed=True,
    ):
        super().__init__(n_states, n_features, inference_method, class_weight, directed)

    def _parts(self, x):
        features = check_features(x)
        count = np.arange(features.shape[0])
        return Parts(features, np.stack([count[:-1], count[1:]], axis=1), None, (len(count),))


class EdgeFeatureGraphCRF(CRF):
    r"""Labels of the nodes of graphs whose edges have features.

    .. math::

        w \cdot \phi(x, y) = \sum_v w_{y_v} \cdot x_v
        + \sum_{e = (u, v)} \sum_k z_{ek} P_k[y_u, y_v]

    An input is a triple (features of nodes, edges, features of edges), an output the array of
    labels of the nodes.

    Parameters
    ----------
    n_states : int, default=None
        Number of labels; learnt from the data by default.
    n_features : int, default=None
        Features of a node; learnt from the data by default.
    n_edge_features : int, default=None
        Features of an edge; learnt from the data by default.
    inference_method : str, default=None
        See `inference_dispatch`; None means "auto".
    class_weight : array-like of shape (n_states,), default=None
        Loss of a node by its true label; 1 by default.
    symmetric_edge_features : sequence of int, default=None
        Features k of edges for which P_k is symmetric: the direction of the edge does not matter.
        The weights hold a whole matrix W_k, and P_k is (W_k + W_k^T) / 2.
    antisymmetric_edge_features : sequence of int, default=None
        Features k of edges for which P_k is antisymmetric: turning the edge changes the sign. P_k
        is (W_k - W_k^T) / 2.

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once sizes are known: `n_states` times `n_features` of nodes, then
        the `n_edge_features` matrices P_k.
    last_inference_ : Inference
        Method, exactness, energy and bound of the latest inference.

    See Also
    --------
    GraphCRF : One matrix of pairwise weights for all edges.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import EdgeFeatureGraphCRF
    >>> x = np.eye(2)[[0, 1]], np.array([[0, 1]]), np.array([[1.0, 0.5]])
    >>> model = EdgeFeatureGraphCRF(n_states=2, n_features=2, n_edge_features=2)
    >>> model.joint_feature(x, np.array([0, 1]))
    array([1. , 0. , 0. , 1. , 0. , 1. , 0. , 0. , 0. , 0.5, 0. , 0. ])
    """

    def __init__(
        self,
        n_states=None,
        n_features=None,
        n_edge_features=None,
        inference_method=None,
        class_weight=None,
        symmetric_edge_features=None,
        antisymmetric_edge_features=None,
    ):
        super().__init__(n_states, n_features, inference_method, class_weight)
        self.n_edge_features = n_edge_features
        self.symmetric_edge_features = symmetric_edge_features
        self.antisymmetric_edge_features = antisymmetric_edge_features

    def _parts(self, x):
        features, edges, edge_features = _unpack(x, ("features", "edges", "edge_features"))
        features = check_features(features)
        n_nodes = features.shape[0]
        edges, edge_features = check_edges(edges, n_nodes), np.asarray(edge_features, dtype=float)
        if len(edges) == edge_features.size == 0:
            edge_features = np.empty((0, self.n_edge_features or 0))
        if edge_features.ndim != 2 or len(edge_features) != len(edges):
            raise ValueError(
                f"edge_features must have one row for each of {len(edges)} edges, got shape "
                f"{edge_features.shape}."
            )
        known = edge_features.shape[1] if self.n_edge_features is None else self.n_edge_features
        if edge_features.shape[1] != known and not self._is_inferred("n_edge_features"):
            raise ValueError(
                f"edge_features must have {known} columns, got {edge_features.shape[1]}."
            )
        return Parts(features, edges, edge_features, (n_nodes,))

    def _initialize_edges(self, parts):
        first = next((part for part in parts if len(part.edges)), parts[0])
        self._infer("n_edge_features", first.edge_features.shape[1])

    def _check_initialized(self):
        if self.n_edge_features is None:
            raise ValueError(
                "EdgeFeatureGraphCRF does not know its n_edge_features yet: give it, or call "
                "initialize(X, Y)."
            )
        super()._check_initialized()

    def _checked(self, x):
        parts = super()._checked(x)
        if parts.edge_features.shape[1] != self.n_edge_features:
            raise ValueError(
                f"edge_features must have {self.n_edge_features} columns, got "
                f"{parts.edge_features.shape[1]}."
            )
        both = [parts.edge_features, parts.edge_features[:, self._tied()[0]]]
        return parts._replace(edge_features=np.concatenate(both, axis=1))

    def _n_edge_features(self):
        return self.n_edge_features

    def _tables(self):
        """Tied features are there twice: the second time they read their matrix transposed."""
        place, factor = super()._tables()
        tied, signs = self._tied()
        halves = np.full((len(tied), self.n_states, self.n_states), 0.5)
        factor[tied] = halves
        return (
            np.concatenate([place, place[tied].transpose(0, 2, 1)]),
            np.concatenate([factor, signs[:, np.newaxis, np.newaxis] * halves]),
        )

    def _tied(self):
        """Features with a symmetric or an antisymmetric matrix, and 1 or -1 for them."""
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


def _unpack(x, names):
    if not isinstance(x, tuple | list) or len(x) != len(names):
        raise ValueError(f"x must be a tuple ({', '.join(names)}), got {type(x).__name__}.")
    return x


def _lower_triangle(n_states):
    """Positions in the lower triangle of a symmetric matrix, row by row."""
    rows, columns = np.indices((n_states, n_states))
    high, low = np.maximum(rows, columns), np.minimum(rows, columns)
    return high * (high + 1) // 2 + low
