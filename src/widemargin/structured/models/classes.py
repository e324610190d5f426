"""Outputs of one part: two classes, several classes. And of several: sets of labels."""

import numpy as np
import scipy.sparse as sp

from widemargin.structured.inference import graphs as flat
from widemargin.structured.inference.dispatch import check_edges
from widemargin.structured.models.crf import (
    CRF,
    Parts,
    check_features,
    ends_of,
    stacked_rows,
)

_NO_EDGES = np.empty((0, 2), dtype=np.int64)
_NO_FEATURES = np.empty((0, 0))


class MultiClassClf(CRF):
    r"""One of several classes: the machine of Crammer and Singer as a structured model.

    .. math:: w \cdot \phi(x, y) = w_y \cdot x

    Parameters
    ----------
    n_features : int, default=None
        Number of features; learnt from the data by default.
    n_classes : int, default=None
        Number of classes; learnt from the data by default.
    class_weight : array-like of shape (n_classes,), default=None
        Loss by true class; 1 by default.

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once sizes are known: `n_classes` times `n_features`.
    last_inference_ : Inference
        Method, exactness, energy and bound of the latest inference.

    See Also
    --------
    widemargin.CrammerSingerSVC : The same problem, with kernels and intercepts.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin.structured import FrankWolfeSSVM, MultiClassClf
    >>> X, y = load_iris(return_X_y=True)
    >>> learner = FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.01).fit(X, y)
    >>> bool(learner.score(X, y) > 0.9)
    True
    """

    def __init__(self, n_features=None, n_classes=None, class_weight=None):
        self.n_features = n_features
        self.n_classes = n_classes
        self.class_weight = class_weight
        self.inference_method = None

    @property
    def n_states(self):
        """Number of classes."""
        return self.n_classes

    @n_states.setter
    def n_states(self, value):
        self.n_classes = value

    def _infer(self, name, seen, least=False):
        super()._infer({"n_states": "n_classes"}.get(name, name), seen, least)

    def _parts(self, x):
        return Parts(_one_row(x), _NO_EDGES, _NO_FEATURES, ())

    def _tables(self):
        shape = 0, self.n_states, self.n_states
        return np.empty(shape, dtype=np.int64), np.empty(shape)

    def _join(self, outputs):
        return np.array(outputs)


class BinaryClf(CRF):
    r"""One of the classes -1 and 1: the linear support vector machine as a structured model.

    .. math:: w \cdot \phi(x, y) = \tfrac12 y \, w \cdot x

    Parameters
    ----------
    n_features : int, default=None
        Number of features; learnt from the data by default.
    class_weight : array-like of shape (2,), default=None
        Loss of true classes -1 and 1; 1 by default.

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once sizes are known: `n_features`.
    last_inference_ : Inference
        Method, exactness, energy and bound of the latest inference.

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

    _shared_weights = True

    def __init__(self, n_features=None, class_weight=None):
        super().__init__(2, n_features, None, class_weight)

    def initialize(self, X, Y=None):
        """Learn the number of features from training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        Y : array-like of shape (n_samples,), default=None
            Classes, -1 or 1.
        """
        self._infer("n_features", _one_row(X[0]).shape[1])
        self._check_class_weight()
        self.size_joint_feature = self.n_features

    def states(self, y):
        """0 for class -1 and 1 for class 1.

        Parameters
        ----------
        y : int
            Class.

        Returns
        -------
        states : ndarray of shape (1,)
            As an array of one part.
        """
        y = np.ravel(y)
        if not np.isin(y, (-1, 1)).all():
            raise ValueError(f"y must hold classes -1 and 1, got {np.unique(y)}.")
        return (y > 0).astype(np.int64)

    def _parts(self, x):
        return Parts(_one_row(x), _NO_EDGES, _NO_FEATURES, ())

    def _tables(self):
        return np.empty((0, 2, 2), dtype=np.int64), np.empty((0, 2, 2))

    def _layout(self):
        return flat.Layout(np.array([-0.5, 0.5]), True, self.n_features, *self._tables())

    def _n_unary(self):
        return self.n_features

    def _unary_feature(self, features, beliefs):
        return np.asarray(features.T @ (beliefs @ [-0.5, 0.5])).ravel()

    def _unary_scores(self, features, weights):
        return np.outer(features @ weights, [-0.5, 0.5])

    def _inward(self, w):
        return np.array(w, dtype=float)

    _outward = _inward

    def _output(self, labels, shape):
        return 2 * labels.reshape(shape) - 1

    def _join(self, outputs):
        return np.array(outputs)


class MultiLabelClf(CRF):
    r"""Sets of labels that depend on each other.

    .. math::

        w \cdot \phi(x, y) = \sum_l (2 y_l - 1) \, w_l \cdot x + \sum_{(k, l)} P_{kl}[y_k, y_l]

    An output is an array of zeros and ones, one for each label. Without edges the labels are
    independent; a tree of the strongest dependences (Chow and Liu, 1968) keeps inference fast and
    exact for any number of labels; all pairs are exact for up to 12 labels.

    Parameters
    ----------
    n_labels : int, default=None
        Number of labels; learnt from the data by default.
    n_features : int, default=None
        Number of features; learnt from the data by default.
    edges : {'chow_liu', 'full'} or array-like of shape (n_edges, 2), default=None
        Pairs of labels that are joined: those of a tree learnt from the data, all pairs, the given
        ones, or none.
    inference_method : str, default=None
        See `inference_dispatch`; None means "auto".

    Attributes
    ----------
    edges_ : ndarray of shape (n_edges, 2)
        Pairs of labels that are joined.
    size_joint_feature : int
        Number of weights, once sizes are known: `n_labels` times `n_features`, then 4 for each
        edge.
    last_inference_ : Inference
        Method, exactness, energy and bound of the latest inference.

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

    _shared_weights = True

    def __init__(self, n_labels=None, n_features=None, edges=None, inference_method=None):
        super().__init__(2, n_features, inference_method)
        self.n_labels = n_labels
        self.edges = edges

    def initialize(self, X, Y=None):
        """Learn the numbers of labels and features, and the tree, from training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        Y : array-like of shape (n_samples, n_labels), default=None
            Outputs.
        """
        self._infer("n_features", _one_row(X[0]).shape[1])
        if sp.issparse(Y):
            raise ValueError("Y must not be sparse: give Y.toarray().")
        if Y is not None:
            self._infer("n_labels", len(Y[0]))
        if self.n_labels is None:
            raise ValueError("n_labels must be given where there are no outputs to learn it from.")
        self.edges_ = self._edges(None if Y is None else np.asarray(Y))
        self.size_joint_feature = self._layout().size

    def max_loss(self, y):
        """The number of labels.

        Parameters
        ----------
        y : ndarray of shape (n_labels,)
            The truth.

        Returns
        -------
        loss : float
            The largest Hamming loss.
        """
        return float(len(y))

    def _edges(self, Y):
        if self.edges is None:
            return _NO_EDGES
        if isinstance(self.edges, str):
            if self.edges == "full":
                return np.stack(np.triu_indices(self.n_labels, 1), axis=1)
            if self.edges == "chow_liu":
                if Y is None:
                    raise ValueError("edges='chow_liu' needs outputs to learn the tree from.")
                return chow_liu_tree(Y)
            raise ValueError(
                f"edges must be 'chow_liu', 'full', pairs of labels or None, got {self.edges!r}."
            )
        return check_edges(self.edges, self.n_labels)

    def _check_initialized(self):
        if self.n_labels is None or self.n_features is None:
            raise ValueError(
                "MultiLabelClf does not know its n_labels and n_features yet: give them, or call "
                "initialize(X, Y)."
            )
        if not hasattr(self, "edges_"):
            self.edges_ = self._edges(None)
        check_edges(self.edges_, self.n_labels)
        self.size_joint_feature = self._layout().size

    def _parts(self, x):
        edges = getattr(self, "edges_", _NO_EDGES)
        return Parts(_one_row(x), edges, np.eye(len(edges)), (self.n_labels,))

    def _check_states(self, parts, y):
        if len(y) != self.n_labels:
            raise ValueError(f"y must have {self.n_labels} labels, got {len(y)}.")
        return super()._check_states(parts, y)

    def _tables(self):
        shape = len(self.edges_), 2, 2
        return np.arange(4 * len(self.edges_)).reshape(shape), np.ones(shape)

    def _layout(self):
        signs = np.array([-1.0, 1.0])
        return flat.Layout(signs, True, self.n_labels * self.n_features, *self._tables())

    def _n_unary(self):
        return self.n_labels * self.n_features

    def _unary_feature(self, features, beliefs):
        return np.outer(beliefs @ [-1.0, 1.0], np.asarray(_dense(features))).ravel()

    def _unary_scores(self, features, weights):
        scores = np.ravel(features @ weights.reshape(self.n_labels, self.n_features).T)
        return np.outer(scores, [-1.0, 1.0])

    def _inward(self, w):
        return np.array(w, dtype=float)

    _outward = _inward

    def _join(self, outputs):
        return np.array(outputs)

    def _graphs(self, parts):
        """Every label of a sample reads the same row, with weights of its own."""
        n, n_labels, n_edges = len(parts), self.n_labels, len(self.edges_)
        rows = stacked_rows([part.features for part in parts], "X")
        first = rows.indptr.astype(np.int64)
        features = (
            np.repeat(first[:-1], n_labels),
            np.repeat(first[1:], n_labels),
            np.tile(np.arange(n_labels) * self.n_features, n),
            rows.indices.astype(np.int32, copy=False),
            rows.data,
        )
        edge_features = (
            np.arange(n * n_edges + 1), np.tile(np.arange(n_edges), n), np.ones(n * n_edges),
        )  # fmt: skip
        ends = ends_of([n_labels] * n), ends_of([n_edges] * n)
        return flat.make_graphs(*ends, features, np.tile(self.edges_, (n, 1)), edge_features)


def chow_liu_tree(Y):
    """Return the edges of a spanning tree of labels with the greatest mutual information."""
    n = len(Y)
    both = np.stack([Y == 0, Y == 1]).astype(float)
    joint = np.einsum("anl,bnm->ablm", both, both) / n
    alone = both.mean(axis=1)
    expected = alone[:, None, :, None] * alone[None, :, None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.where(joint > 0, joint * np.log(joint / expected), 0.0).sum(axis=(0, 1))
    # The tree of least 1 + max - information, positive where SciPy would take 0 for no edge.
    tree = sp.csgraph.minimum_spanning_tree(1.0 + information.max() - information)
    return np.stack(tree.nonzero(), axis=1).astype(np.int64)


def _one_row(x):
    return check_features(x if sp.issparse(x) and x.ndim == 2 else np.atleast_2d(_dense(x)))


def _dense(x):
    return x.toarray() if sp.issparse(x) else np.asarray(x)
