"""Conditional random fields with latent states: labels of several states, and hidden nodes.

An output y has labels. A latent output h has states, each of which belongs to a label. The loss of
h is that of its labels. `LatentSSVM` trains these models.
"""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.docs import shared_docs
from widemargin.structured.inference.dispatch import check_method, infer
from widemargin.structured.models.crf import CRF
from widemargin.structured.models.graph import EdgeFeatureGraphCRF, GraphCRF, unpack
from widemargin.structured.models.grid import DirectionalGridCRF, GridCRF
from widemargin.structured.models.inputs import (
    InputGraph,
    check_equal_sizes,
    check_features,
    to_dense,
)


class LatentModel(CRF):
    """Base class of models with latent states: what `LatentSSVM` calls."""

    n_labels: Any

    def label_from_latent(self, h: Any) -> np.ndarray:
        """Return the labels of a latent output.

        Parameters
        ----------
        h : ndarray
            States.

        Returns
        -------
        y : ndarray
            Labels.
        """
        raise NotImplementedError

    def init_latent(self, X: Sequence, Y: Sequence) -> Any:
        """Return latent outputs to start from, by k-means.

        Parameters
        ----------
        X, Y : sequence
            Inputs and outputs.

        Returns
        -------
        H : list of ndarray, or ndarray if Y is one
            Latent outputs whose labels are Y.
        """
        raise NotImplementedError

    def latent(self, x: Any, y: Any, w: np.ndarray) -> np.ndarray:
        """Find the latent output with the highest score among those with given labels.

        Parameters
        ----------
        x : object
            Input.
        y : ndarray
            Labels.
        w : ndarray of shape (size_joint_feature,)
            Weights.

        Returns
        -------
        h : ndarray
            States.
        """
        if self.unknown_sizes():
            return self.with_sizes(x, w).latent(x, y, w)
        joint, graph = self.make_joint_feature(), self.check_input(self.parse_input(x))
        allowed = self.allowed_states(graph, self.check_labels(graph, y))
        labeling = infer(joint.potentials(graph, w), check_method(self.inference_method), allowed)
        return self.make_output(labeling.labels, graph.output_shape)

    def check_labels(self, graph: InputGraph, y: Any, name: str = "y") -> np.ndarray:
        """Return the labels of an output after a check against the input and the sizes.

        Parameters
        ----------
        graph : InputGraph
            Input, checked.
        y : ndarray
            Labels.
        name : str, default="y"
            Name of the output in error messages.

        Returns
        -------
        labels : ndarray of shape (n_labeled,)
            Labels as integers.
        """
        labels, expected = _integer_labels(y, name), self.count_labeled(graph)
        if len(labels) != expected:
            raise ValueError(f"{name} must have {expected} labels, got {len(labels)}.")
        if not np.isin(labels, np.arange(self.n_labels)).all():
            raise ValueError(
                f"{name} must contain labels 0 to {self.n_labels - 1}, got {labels[:3]}."
            )
        return labels

    def count_labeled(self, graph: InputGraph) -> int:
        """Return the number of nodes that have labels.

        Parameters
        ----------
        graph : InputGraph
            Input, checked.

        Returns
        -------
        n_labeled : int
            All nodes, or the visible ones.
        """
        return graph.n_nodes

    def allowed_states(self, graph: InputGraph, y: np.ndarray) -> np.ndarray:
        """Return the states that the nodes may have if the labels are given.

        Parameters
        ----------
        graph : InputGraph
            Input.
        y : ndarray of shape (n_labeled,)
            Labels.

        Returns
        -------
        allowed : ndarray of bool of shape (n_nodes, n_states)
            States with these labels.
        """
        raise NotImplementedError

    def base_loss(self, y: Any, y_hat: Any) -> float:
        """Compute the sum over wrong labels of the weight of the true label.

        Parameters
        ----------
        y, y_hat : ndarray
            True and predicted labels.

        Returns
        -------
        loss : float
            The number of wrong labels without class weights.
        """
        check_equal_sizes(y, y_hat)
        return float(self.label_costs(y) @ (np.ravel(y) != np.ravel(y_hat)))

    def label_costs(self, y: Any) -> np.ndarray:
        """Return the losses of wrong labels.

        Parameters
        ----------
        y : ndarray
            True labels.

        Returns
        -------
        costs : ndarray of shape (n_labels,)
            1 without class weights.
        """
        return np.ones(np.size(y))

    def initialize(self, X: Sequence, Y: Any = None) -> None:
        """Infer the sizes of the model from inputs and labels.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence, default=None
            Labels, not latent outputs.
        """
        outputs = [] if Y is None else [_integer_labels(y, f"Y[{i}]") for i, y in enumerate(Y)]
        largest = max((int(np.max(y, initial=-1)) for y in outputs), default=-1)
        known = self.n_labels is not None and not self.is_inferred("n_labels")
        if known and largest >= self.n_labels:
            raise ValueError(f"Y must contain labels 0 to {self.n_labels - 1}, got {largest}.")
        super().initialize(X, Y)

    def infer_size(self, name: str, seen: int, at_least: bool = False) -> None:
        if name != "n_states":
            super().infer_size(name, seen, at_least)
        elif self.n_labels is None or self.is_inferred("n_labels"):
            super().infer_size("n_labels", seen, at_least)
        elif seen > self.n_states:
            raise ValueError(
                f"The outputs must contain states 0 to {self.n_states - 1}, got {seen - 1}: "
                f"{type(self).__name__} has n_labels={self.n_labels}."
            )


class StatesOfLabels(LatentModel):
    """Base class of models each of whose labels has several states."""

    n_states_per_label: Any
    _n_labels: Any = None
    _sizes = ("n_labels", "n_features")
    class_weight = None

    @property
    def n_labels(self) -> Any:
        """Number of labels; that of `n_states_per_label` unless it is given."""
        if self._n_labels is None and np.ndim(self.n_states_per_label) == 1:
            return len(self.n_states_per_label)
        return self._n_labels

    @n_labels.setter
    def n_labels(self, value: Any) -> None:
        self._n_labels = value

    @property
    def n_states(self) -> Any:
        """Number of states of all labels together."""
        return None if self.n_labels is None else len(self.state_groups())

    def state_groups(self) -> np.ndarray:
        counts = self.n_states_per_label
        if isinstance(counts, Integral):
            counts = np.full(self.n_labels, counts)
        counts = np.asarray(counts)
        if counts.shape != (self.n_labels,) or counts.dtype.kind not in "iu" or counts.min() < 1:
            raise ValueError(
                "n_states_per_label must be a positive integer, or one for each of "
                f"{self.n_labels} labels, got {self.n_states_per_label!r}."
            )
        return np.repeat(np.arange(self.n_labels), counts)

    def label_from_latent(self, h: Any) -> np.ndarray:
        return self.state_groups()[h]

    def allowed_states(self, graph: InputGraph, y: np.ndarray) -> np.ndarray:
        return self.state_groups() == y[:, np.newaxis]

    def init_latent(self, X: Sequence, Y: Sequence) -> Any:
        self.check_sizes()
        inputs = [self.check_input(self.parse_input(x)) for x in X]
        edges = [self._edges_by_kind(graph) for graph in inputs]
        features = [to_dense(graph.features) for graph in inputs]
        pairs = enumerate(zip(inputs, Y, strict=True))
        flat = [self.check_labels(*pair, f"Y[{i}]") for i, pair in pairs]
        counts = np.bincount(self.state_groups())
        states = kmeans_init(features, flat, edges, self.n_labels, counts, not self.directed)
        H = [h.reshape(np.shape(y)) for h, y in zip(states, Y, strict=True)]
        return np.array(H) if isinstance(Y, np.ndarray) else H

    def _edges_by_kind(self, graph: InputGraph) -> list[np.ndarray]:
        kind = graph.edge_features
        if kind is None:
            return [graph.edges]
        return [graph.edges[kind == k] for k in range(len(self.pairwise_weights()[0]))]


@shared_docs
class LatentGraphCRF(StatesOfLabels, GraphCRF):
    r"""Conditional random field on graphs whose labels have several latent states.

    .. math::

        w \cdot \phi(x, h) = \sum_v w_{h_v} \cdot x_v + \sum_{(u, v)} P[h_u, h_v]

    The states of a label share its loss, and have weights of their own. An input is a pair (node
    features, edges), an output is the array of the labels of the nodes.

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels; by default that of `n_states_per_label` or of the data.
    <<n_node_features>>
    n_states_per_label : int or array-like of shape (n_labels,), default=2
        Number of states of each label. The states of label 0 come first.
    <<inference_method>>

    Attributes
    ----------
    n_states : int
        Number of states of all labels together, once the sizes are known.
    size_joint_feature : int
        Number of weights: those of a `GraphCRF` with `n_states` states.
    <<last_inference_>>

    See Also
    --------
    LatentSSVM : Trains models with latent states.
    LatentNodeCRF : Hidden nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import LatentGraphCRF, LatentSSVM, NSlackSSVM
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=60)
    >>> signs = rng.choice([-1, 1], size=60)  # label 1 on both sides, label 0 between them
    >>> x = np.column_stack([2.0 * signs * y, np.ones(60)])
    >>> X = [(row[np.newaxis], np.empty((0, 2), dtype=int)) for row in x]
    >>> model = LatentGraphCRF(n_states_per_label=[1, 2])
    >>> learner = LatentSSVM(NSlackSSVM(model, C=10.0)).fit(X, y[:, np.newaxis])
    >>> learner.score(X, y[:, np.newaxis])
    1.0
    """

    def __init__(
        self,
        n_labels: int | None = None,
        n_features: int | None = None,
        n_states_per_label: Any = 2,
        inference_method: Any = None,
    ) -> None:
        self.n_labels = n_labels
        self.n_features = n_features
        self.n_states_per_label = n_states_per_label
        self.inference_method = inference_method
        self.directed = False


@shared_docs
class LatentGridCRF(StatesOfLabels, GridCRF):
    r"""Conditional random field on pixels whose labels have several latent states.

    .. math::

        w \cdot \phi(x, h) = \sum_v w_{h_v} \cdot x_v + \sum_{(u, v)} P[h_u, h_v]

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels; by default that of `n_states_per_label` or of the data.
    <<n_node_features>>
    n_states_per_label : int or array-like of shape (n_labels,), default=2
        Number of states of each label.
    <<inference_method>>
    <<neighborhood>>

    Attributes
    ----------
    n_states : int
        Number of states of all labels together, once the sizes are known.
    size_joint_feature : int
        Number of weights: those of a `GridCRF` with `n_states` states.
    <<last_inference_>>

    See Also
    --------
    LatentSSVM : Trains models with latent states.

    Examples
    --------
    >>> from widemargin.structured import LatentGridCRF, LatentSSVM, OneSlackSSVM
    >>> from widemargin.structured.datasets import generate_crosses
    >>> X, Y = generate_crosses(n_samples=6, noise=5, n_crosses=1, total_size=8)
    >>> model = LatentGridCRF(n_states_per_label=[1, 2])
    >>> learner = LatentSSVM(OneSlackSSVM(model, C=10.0, tol=0.05), latent_iter=2).fit(X, Y)
    >>> bool(learner.score(X, Y) > 0.98)
    True
    """

    def __init__(
        self,
        n_labels: int | None = None,
        n_features: int | None = None,
        n_states_per_label: Any = 2,
        inference_method: Any = None,
        neighborhood: int = 4,
    ) -> None:
        self.n_labels = n_labels
        self.n_features = n_features
        self.n_states_per_label = n_states_per_label
        self.inference_method = inference_method
        self.neighborhood = neighborhood
        self.directed = self._directed


@shared_docs
class LatentDirectionalGridCRF(LatentGridCRF, DirectionalGridCRF):
    r"""Conditional random field on pixels with latent states, and a matrix for each direction.

    .. math::

        w \cdot \phi(x, h) = \sum_v w_{h_v} \cdot x_v + \sum_d \sum_{(u, v) \in d} P_d[h_u, h_v]

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels; by default that of `n_states_per_label` or of the data.
    <<n_node_features>>
    n_states_per_label : int or array-like of shape (n_labels,), default=2
        Number of states of each label.
    <<inference_method>>
    <<neighborhood>>

    Attributes
    ----------
    n_states : int
        Number of states of all labels together, once the sizes are known.
    size_joint_feature : int
        Number of weights: those of a `DirectionalGridCRF` with `n_states` states.
    <<last_inference_>>

    See Also
    --------
    LatentGridCRF : One symmetric matrix for all neighbors.
    """


class HiddenNodes(LatentModel):
    """Base class of models some of whose nodes are hidden, with states of their own."""

    n_hidden_states: Any
    latent_node_features: Any
    class_weight: Any
    _sizes: tuple[str, ...] = ("n_labels", "n_features")

    @property
    def n_states(self) -> Any:
        """Number of labels and hidden states."""
        return None if self.n_labels is None else self.n_labels + self.n_hidden_states

    def state_groups(self) -> np.ndarray:
        # Hidden states have no loss: they are all equally right.
        return np.minimum(np.arange(self.n_states), self.n_labels)

    def absent_weights(self) -> np.ndarray | None:
        if self.latent_node_features:
            return None
        return np.arange(self.n_labels * self.n_features, self.n_states * self.n_features)

    def label_costs(self, y: Any) -> np.ndarray:
        if self.class_weight is None:
            return super().label_costs(y)
        return self._state_weights()[np.ravel(y)]

    def state_costs(self, states: np.ndarray) -> np.ndarray:
        return super().state_costs(states) * (states < self.n_labels)

    def count_labeled(self, graph: InputGraph) -> int:
        assert graph.allowed is not None  # of this class
        return int(graph.allowed[:, 0].sum())

    def loss(self, y: Any, y_hat: Any) -> float:
        # Labels of visible nodes may be compared with a latent output.
        if isinstance(y_hat, tuple) or np.size(y) == np.size(y_hat):
            return super().loss(y, y_hat)
        return self.base_loss(self.label_from_latent(y), self.label_from_latent(y_hat))

    def _scored_losses(self, Y: Any, Y_hat: Any) -> tuple[np.ndarray, list[float]]:
        return self.batch_loss(Y, Y_hat), [self.max_loss(y) for y in Y]

    def check_input(self, graph: InputGraph) -> InputGraph:
        graph = super().check_input(graph)
        hidden_states = np.arange(self.n_states) >= self.n_labels
        return graph._replace(allowed=hidden_states == graph.allowed)

    def label_from_latent(self, h: Any) -> np.ndarray:
        h = np.asarray(h)
        return h[h < self.n_labels]

    def allowed_states(self, graph: InputGraph, y: np.ndarray) -> np.ndarray:
        allowed = np.array(graph.allowed)
        allowed[: len(y)] = np.arange(self.n_states) == y[:, np.newaxis]
        return allowed

    def init_latent(self, X: Sequence, Y: Sequence) -> list[np.ndarray]:
        self.check_sizes()
        around, visible = [], []
        for i, (x, y) in enumerate(zip(X, Y, strict=True)):
            graph = self.check_input(self.parse_input(x))
            visible.append(self.check_labels(graph, y, f"Y[{i}]"))
            labels = _neighbor_labels([graph.edges], visible[i], graph.n_nodes, self.n_labels)
            around.append(labels[len(visible[i]) :])
        states = _cluster(np.concatenate(around), self.n_hidden_states) + self.n_labels
        hidden = np.split(states, np.cumsum([len(shares) for shares in around])[:-1])
        return [np.concatenate(pair) for pair in zip(visible, hidden, strict=True)]

    def _with_hidden(self, features: Any, n_hidden: Any) -> tuple[Any, np.ndarray]:
        """Return the features of all nodes, and which of them are hidden, in a column."""
        features = check_features(features)
        most = features.shape[0] if self.latent_node_features else np.inf
        if not (isinstance(n_hidden, Integral) and 0 <= int(n_hidden) <= most):
            rows = "" if most == np.inf else f" up to {most}, the number of rows of the features"
            raise ValueError(
                f"The number of hidden nodes in x must be an integer from 0{rows}, got "
                f"{n_hidden!r}."
            )
        if not self.latent_node_features:
            empty = np.zeros((n_hidden, features.shape[1]))
            stack = sp.vstack if sp.issparse(features) else np.vstack
            features = check_features(stack([features, empty]))
        n_nodes = features.shape[0]
        return features, np.arange(n_nodes)[:, np.newaxis] >= n_nodes - n_hidden

    def _state_weights(self, states: np.ndarray | None = None) -> np.ndarray:
        weight = np.asarray(self.class_weight)
        numeric = weight.dtype.kind in "iuf" and weight.shape == (self.n_labels,)
        if not (numeric and (np.isfinite(weight) & (weight >= 0)).all()):
            raise ValueError(
                "class_weight must have a number of at least 0 for each of "
                f"{self.n_labels} labels, got {self.class_weight!r}."
            )
        return np.append(weight.astype(float), np.zeros(self.n_hidden_states))


@shared_docs
class LatentNodeCRF(HiddenNodes, GraphCRF):
    r"""Conditional random field on graphs with hidden nodes.

    .. math::

        w \cdot \phi(x, h) = \sum_{v \text{ visible}} w_{h_v} \cdot x_v
        + \sum_{(u, v)} P[h_u, h_v]

    An input is a triple (node features, edges, number of hidden nodes). The hidden nodes come after
    the visible ones, whose labels are the output. Their states follow the labels, are shared by all
    hidden nodes and have no loss.

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels of visible nodes; inferred from the data by default.
    <<n_node_features>>
    n_hidden_states : int, default=2
        Number of states of hidden nodes.
    <<inference_method>>
    class_weight : array-like of shape (n_labels,), default=None
        Loss of a visible node by its true label; 1 by default.
    latent_node_features : bool, default=False
        Whether hidden nodes have features: further rows of the node features.

    Attributes
    ----------
    n_states : int
        Number of labels and hidden states.
    size_joint_feature : int
        Number of weights: `n_labels` times `n_features` (`n_states` times, with
        `latent_node_features`), followed by the lower triangle of P by rows.
    <<last_inference_>>

    See Also
    --------
    LatentSSVM : Trains models with latent states.
    LatentGraphCRF : Several states of each label.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured import LatentNodeCRF
    >>> model = LatentNodeCRF(n_labels=2, n_features=1)
    >>> x = np.array([[-1.0], [1.0], [1.0]]), np.array([[0, 3], [1, 3], [2, 3]]), 1
    >>> w = np.array([-1.0, 1.0, 0, 0, 0, 3.0, 0, 0, 0, 3.0, 0, 0])
    >>> h = model.inference(x, w)
    >>> h, model.label_from_latent(h)
    (array([1, 1, 1, 3]), array([1, 1, 1]))
    """

    def __init__(
        self,
        n_labels: int | None = None,
        n_features: int | None = None,
        n_hidden_states: int = 2,
        inference_method: Any = None,
        class_weight: Any = None,
        latent_node_features: bool = False,
    ) -> None:
        self.n_labels = n_labels
        self.n_features = n_features
        self.n_hidden_states = n_hidden_states
        self.inference_method = inference_method
        self.class_weight = class_weight
        self.latent_node_features = latent_node_features
        self.directed = False

    def parse_input(self, x: Any) -> InputGraph:
        features, edges, n_hidden = unpack(x, ("features", "edges", "n_hidden"))
        features, hidden = self._with_hidden(features, n_hidden)
        return super().parse_input((features, edges))._replace(allowed=hidden)


@shared_docs
class EdgeFeatureLatentNodeCRF(HiddenNodes, EdgeFeatureGraphCRF):
    r"""Conditional random field on graphs with hidden nodes and edge features.

    .. math::

        w \cdot \phi(x, h) = \sum_{v \text{ visible}} w_{h_v} \cdot x_v
        + \sum_{e = (u, v)} \sum_k z_{ek} P_k[h_u, h_v]

    An input is a tuple (node features, edges, edge features, number of hidden nodes).

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels of visible nodes; inferred from the data by default.
    <<n_node_features>>
    n_edge_features : int, default=None
        Number of features of an edge; inferred from the data by default.
    n_hidden_states : int, default=2
        Number of states of hidden nodes.
    <<inference_method>>
    class_weight : array-like of shape (n_labels,), default=None
        Loss of a visible node by its true label; 1 by default.
    latent_node_features : bool, default=False
        Whether hidden nodes have features: further rows of the node features.
    symmetric_edge_features, antisymmetric_edge_features : sequence of int, default=None
        As in `EdgeFeatureGraphCRF`.

    Attributes
    ----------
    n_states : int
        Number of labels and hidden states.
    size_joint_feature : int
        Number of weights: those of the nodes, followed by the `n_edge_features` matrices P_k.
    <<last_inference_>>

    See Also
    --------
    LatentNodeCRF : One symmetric matrix for all edges.
    """

    _sizes = ("n_labels", "n_features", "n_edge_features")

    def __init__(
        self,
        n_labels: int | None = None,
        n_features: int | None = None,
        n_edge_features: int | None = None,
        n_hidden_states: int = 2,
        inference_method: Any = None,
        class_weight: Any = None,
        latent_node_features: bool = False,
        symmetric_edge_features: Any = None,
        antisymmetric_edge_features: Any = None,
    ) -> None:
        self.n_labels = n_labels
        self.n_features = n_features
        self.n_edge_features = n_edge_features
        self.n_hidden_states = n_hidden_states
        self.inference_method = inference_method
        self.class_weight = class_weight
        self.latent_node_features = latent_node_features
        self.symmetric_edge_features = symmetric_edge_features
        self.antisymmetric_edge_features = antisymmetric_edge_features

    def parse_input(self, x: Any) -> InputGraph:
        features, *edges, n_hidden = unpack(x, ("features", "edges", "edge_features", "n_hidden"))
        features, hidden = self._with_hidden(features, n_hidden)
        return super().parse_input((features, *edges))._replace(allowed=hidden)


def _integer_labels(y: Any, name: str) -> np.ndarray:
    """Return labels as a flat array of integers from 0, or raise a ValueError."""
    labels = np.ravel(y)
    if labels.size == 0:
        return np.empty(0, dtype=np.int64)
    whole = labels.dtype.kind == "f" and np.array_equal(labels, np.floor(labels))
    if not (labels.dtype.kind in "iub" or whole) or labels.min() < 0:
        raise ValueError(
            f"{name} must contain labels as integers from 0, got {labels[:3]}. Encode other labels "
            "with sklearn.preprocessing.LabelEncoder."
        )
    return labels.astype(np.int64)


def kmeans_init(
    X: Sequence, Y: Sequence, all_edges: Sequence, n_labels: int, n_states_per_label: Any,
    symmetric: bool = True,
) -> list[np.ndarray]:  # fmt: skip
    """Return latent states of nodes: clusters of their features and the labels of neighbors.

    Parameters
    ----------
    X : sequence of ndarray of shape (n_nodes, n_features)
        Features of the nodes of each graph.
    Y : sequence of ndarray of shape (n_nodes,)
        Labels of the nodes of each graph.
    all_edges : sequence of list of ndarray of shape (n_edges, 2)
        Edges of each kind of each graph.
    n_labels : int
        Number of labels.
    n_states_per_label : array-like of shape (n_labels,)
        Number of states of each label.
    symmetric : bool, default=True
        Whether neighbors in both directions of an edge count together.

    Returns
    -------
    H : list of ndarray of shape (n_nodes,)
        States.
    """
    pairs = zip(X, Y, all_edges, strict=True)
    features = np.concatenate(
        [
            np.hstack([x, _neighbor_labels(edges, y, len(x), n_labels, symmetric)])
            for x, y, edges in pairs
        ]
    )
    labels = np.concatenate(Y)
    states, first = np.empty(len(labels), dtype=np.int64), 0
    for label, n_states in enumerate(n_states_per_label):
        which = labels == label
        if which.any():
            states[which] = first + _cluster(features[which], n_states)
        first += n_states
    return np.split(states, np.cumsum([len(y) for y in Y])[:-1])


def _neighbor_labels(
    edges_by_kind: Sequence[np.ndarray], y: np.ndarray, n_nodes: int, n_labels: int,
    symmetric: bool = True,
) -> np.ndarray:  # fmt: skip
    """Return the shares of labels among the neighbors of each node; nodes after ``y`` have none."""
    counts = []
    for edges in edges_by_kind:
        both = np.zeros((2, n_nodes, n_labels))
        for end in range(2):
            node, other = edges[:, end], edges[:, 1 - end]
            seen = other < len(y)
            np.add.at(both[end], (node[seen], y[other[seen]]), 1.0)
        counts += [both.sum(axis=0)] if symmetric else list(both)
    shares = np.hstack(counts)
    return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1.0)


def _cluster(features: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the clusters of samples, at most as many as there are different ones."""
    if len(features) == 0:
        return np.empty(0, dtype=np.int64)
    from sklearn.cluster import KMeans  # its import takes longer than a small fit

    n_clusters = min(n_clusters, len(np.unique(features, axis=0)))
    return KMeans(n_clusters, n_init=10, random_state=0).fit_predict(features).astype(np.int64)
