"""What the conditional random fields share: from an input as a graph to all that learners ask."""

import warnings
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from widemargin.structured.inference import graphs as flat
from widemargin.structured.inference.dispatch import check_method, infer, one_hot
from widemargin.structured.models.base import StructuredModel
from widemargin.structured.oracle import GraphOracle, PlainOracle

_METHODS = "joint_feature", "inference", "loss", "loss_augmented_inference"


class Parts(NamedTuple):
    """An input as a graph."""

    features: np.ndarray
    edges: np.ndarray
    edge_features: np.ndarray | None
    shape: tuple


class Inference(NamedTuple):
    """What is known about the latest inference of a model.

    Attributes
    ----------
    method : str
        The method that was used; several are joined by commas.
    exact : bool
        Whether no output has a lower energy.
    energy : float
        Minus the score, summed over samples.
    bound : float
        No output has a lower energy than this; minus infinity if no bound is known.
    """

    method: str
    exact: bool
    energy: float
    bound: float


class CRF(StructuredModel):
    """What the models on graphs share; see `GraphCRF`."""

    _shared_weights = False

    def __init__(self, n_states=None, n_features=None, inference_method=None, class_weight=None):
        self.n_states = n_states
        self.n_features = n_features
        self.inference_method = inference_method
        self.class_weight = class_weight

    # What differs between models.

    def _parts(self, x):
        """The input as `Parts`."""
        raise NotImplementedError

    def _tables(self):
        """Positions and factors of the weights of edges; see `Layout`."""
        shape = self._n_edge_features(), self.n_states, self.n_states
        return np.arange(np.prod(shape)).reshape(shape), np.ones(shape)

    def _n_edge_features(self):
        return 1

    # What learners and users call.

    def initialize(self, X, Y=None):
        """Learn the numbers of states and features from training data.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence, default=None
            Outputs; needed unless `n_states` was given.
        """
        check_method(self.inference_method)
        parts = [self._parts(x) for x in X]
        self._infer("n_features", parts[0].features.shape[1])
        if Y is not None:
            largest = max(int(self.states(y).max(initial=-1)) for y in Y)
            self._infer("n_states", largest + 1, least=True)
        elif self.n_states is None:
            raise ValueError("n_states must be given where there are no outputs to learn it from.")
        self._initialize_edges(parts)
        self._check_class_weight()
        self.size_joint_feature = self._layout().size

    def joint_feature(self, x, y):
        """Features of an input together with an output.

        Parameters
        ----------
        x : object
            Input.
        y : ndarray, or tuple of beliefs
            Output, or the fractional beliefs of nodes and edges that relaxed inference returns.

        Returns
        -------
        joint_feature : ndarray of shape (size_joint_feature,)
            Sums over nodes and over edges, one after the other.
        """
        self._check_initialized()
        parts = self._checked(x)
        if not isinstance(y, tuple):
            y = one_hot(self._check_states(parts, y), parts.edges, self.n_states)
        place, factor = self._tables()
        sums = np.zeros(self.size_joint_feature - self._n_unary())
        if len(parts.edges):
            across = _edge_features(parts).T @ y[1].reshape(len(parts.edges), -1)
            np.add.at(sums, place.ravel(), factor.ravel() * across.ravel())
        return np.concatenate([self._unary_feature(parts.features, y[0]), sums])

    def inference(self, x, w, relaxed=False, return_energy=False, extra=None):
        """The output with the highest score.

        `last_inference_` then says by which method, and whether the answer is exact.

        Parameters
        ----------
        x : object
            Input.
        w : ndarray of shape (size_joint_feature,)
            Weights.
        relaxed : bool, default=False
            With ``inference_method="lp"``, return fractional beliefs.
        return_energy : bool, default=False
            Return the energy, minus the score, too.
        extra : ndarray of shape (n_nodes, n_states), default=None
            Added to the scores of the states of each node.

        Returns
        -------
        y : ndarray
            Output.
        energy : float
            Minus its score, if ``return_energy``.
        """
        parts, unary, pairwise = self._potentials(x, w)
        if extra is not None:
            unary = unary + np.asarray(extra).reshape(unary.shape)
        y, energy = self._solve(parts, unary, pairwise, relaxed)
        return (y, energy) if return_energy else y

    def loss_augmented_inference(self, x, y, w, relaxed=False, return_energy=False, extra=None):
        """The output with the highest sum of score and loss.

        Parameters
        ----------
        x : object
            Input.
        y : ndarray
            The truth.
        w : ndarray of shape (size_joint_feature,)
            Weights.
        relaxed : bool, default=False
            With ``inference_method="lp"``, return fractional beliefs.
        return_energy : bool, default=False
            Return minus the sum of score and loss, too.
        extra : ndarray of shape (n_nodes, n_states), default=None
            What else is added to the scores of the states of each node.

        Returns
        -------
        y_hat : ndarray
            Output.
        energy : float
            Minus the sum, if ``return_energy``.
        """
        parts, unary, pairwise = self._potentials(x, w)
        states = self._check_states(parts, y)
        cost = self._costs(states)
        unary = unary + cost[:, np.newaxis]
        unary[np.arange(len(states)), states] -= cost
        if extra is not None:
            unary += np.asarray(extra).reshape(unary.shape)
        y_hat, energy = self._solve(parts, unary, pairwise, relaxed)
        return (y_hat, energy) if return_energy else y_hat

    def loss(self, y, y_hat):
        """The sum over wrong nodes of the weight of the true class.

        Parameters
        ----------
        y : ndarray
            The truth.
        y_hat : ndarray, or tuple of beliefs
            Output.

        Returns
        -------
        loss : float
            With `class_weight` None, the number of wrong nodes.
        """
        truth = self.states(y)
        cost = self._costs(truth)
        if isinstance(y_hat, tuple):
            return float(cost @ (1.0 - y_hat[0][np.arange(len(truth)), truth]))
        return float(cost @ (truth != self.states(y_hat)))

    def max_loss(self, y):
        """The loss of an output that is wrong everywhere.

        Parameters
        ----------
        y : ndarray
            The truth.

        Returns
        -------
        loss : float
            With `class_weight` None, the number of nodes.
        """
        return float(self._costs(self.states(y)).sum())

    def batch_inference(self, X, w, relaxed=False, extra=None, threads=None):
        """The outputs with the highest scores, over threads.

        Parameters
        ----------
        X : sequence
            Inputs.
        w : ndarray of shape (size_joint_feature,)
            Weights.
        relaxed : bool, default=False
            With ``inference_method="lp"``, return fractional beliefs.
        extra : list of ndarray, default=None
            Added to the scores of the states of each node, for each input.
        threads : int, default=None
            How many threads to use.

        Returns
        -------
        Y : list or ndarray
            Outputs.
        """
        if not self._has_our_methods():
            return self._one_by_one(
                lambda x, **more: self.inference(x, w, **more), zip(X), relaxed, extra
            )
        return self._decoded(self.oracle(X, None, threads), w, relaxed, extra)

    def batch_loss_augmented_inference(self, X, Y, w, relaxed=False, extra=None, threads=None):
        """The outputs with the highest sums of score and loss, over threads.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence
            The truth.
        w : ndarray of shape (size_joint_feature,)
            Weights.
        relaxed : bool, default=False
            With ``inference_method="lp"``, return fractional beliefs.
        extra : list of ndarray, default=None
            What else is added to the scores of the states of each node, for each input.
        threads : int, default=None
            How many threads to use.

        Returns
        -------
        Y_hat : list or ndarray
            Outputs.
        """
        if not self._has_our_methods():
            return self._one_by_one(
                lambda x, y, **more: self.loss_augmented_inference(x, y, w, **more),
                zip(X, Y, strict=True),
                relaxed,
                extra,
            )
        oracle = self.oracle(X, Y, threads)
        losses = oracle.cost[:, np.newaxis] * (1.0 - np.eye(self.n_states)[oracle.truth])
        if extra is not None:
            losses += np.concatenate(oracle.checked_extra(extra))
        parts = [losses[oracle.nodes(i)] for i in range(oracle.n_samples)]
        return self._decoded(oracle, w, relaxed, parts)

    def oracle(self, X, Y, threads=None):
        """What learners work with: all samples in flat arrays, for compiled inference.

        Parameters
        ----------
        X : sequence
            Inputs.
        Y : sequence or None
            Outputs.
        threads : int, default=None
            How many threads to use.

        Returns
        -------
        oracle : GraphOracle
            Answers for many samples at once. A PlainOracle where a subclass has a `joint_feature`,
            `inference`, `loss` or `loss_augmented_inference` of its own.
        """
        self._check_initialized()
        if not self._has_our_methods():
            return PlainOracle(self, X, Y, threads)
        parts = [self._checked(x) for x in X]
        if not parts:
            raise ValueError("X must hold at least one input, got none.")
        truth = cost = None
        if Y is not None:
            if len(parts) != len(Y):
                raise ValueError(f"X and Y must have equal lengths, got {len(parts)} and {len(Y)}.")
            states = [self._check_states(part, y) for part, y in zip(parts, Y, strict=True)]
            truth = np.concatenate(states)
            cost = self._costs(truth)
        return GraphOracle(
            self._graphs(parts),
            self._layout(),
            check_method(self.inference_method),
            truth,
            cost,
            inward=lambda w: self._inward(self._check_weights(w)),
            outward=self._outward,
            output=lambda i, labels: self._output(labels, parts[i].shape),
            threads=threads,
        )

    def states(self, y):
        """The states of the nodes of an output, as whole numbers from 0.

        Parameters
        ----------
        y : ndarray
            Output.

        Returns
        -------
        states : ndarray of shape (n_nodes,)
            Flat, in the order of the nodes.
        """
        labels = np.ravel(y)
        kind = labels.dtype.kind
        if kind not in "iub" and not (kind == "f" and np.array_equal(labels, np.floor(labels))):
            raise ValueError(
                f"y must hold labels as whole numbers from 0, got {labels[:3]}. Encode classes "
                "with sklearn.preprocessing.LabelEncoder."
            )
        return labels.astype(np.int64)

    # Helpers.

    def _has_our_methods(self):
        """Whether compiled code may stand for the methods: no subclass has changed them."""
        ours = __name__.rpartition(".")[0]
        return all(getattr(self, name).__module__.startswith(ours) for name in _METHODS)

    def _one_by_one(self, method, samples, relaxed, extra):
        """Outputs by methods of a subclass, which need not know arguments that are not used."""
        outputs = []
        for i, sample in enumerate(samples):
            more = {"relaxed": True} if relaxed else {}
            if extra is not None:
                more["extra"] = extra[i]
            outputs.append(method(*sample, **more))
        return self._join(outputs)

    def _decoded(self, oracle, w, relaxed, extra):
        labels, energies, bounds, exact, methods = oracle.decode(oracle.inward(w), extra, relaxed)
        self.last_inference_ = Inference(
            ", ".join(sorted(methods)), exact, float(energies.sum()), float(bounds.sum())
        )
        return self._join(oracle.outputs(labels))

    def _infer(self, name, seen, least=False):
        given = getattr(self, name)
        if given is None or self._is_inferred(name):
            if least and seen == 1:
                warnings.warn(
                    f"The outputs show a single state, so that {name}=1 is learnt from them and "
                    f"nothing can be told apart. Give {name} if there are more.",
                    stacklevel=3,
                )
            setattr(self, name, seen)
            self._inferred = {**self._inferred, name: seen}
        elif given != seen and not (least and seen < given):
            raise ValueError(f"{name} must fit the data, got {name}={given}; the data have {seen}.")

    def _initialize_edges(self, parts):
        """Learn what is particular to the model's edges."""

    def _check_initialized(self):
        if self.n_states is None or self.n_features is None:
            raise ValueError(
                f"{type(self).__name__} does not know its n_states and n_features yet: give them, "
                "or call initialize(X, Y)."
            )
        self._check_class_weight()
        # Anew each time: parameters may have been set since.
        self.size_joint_feature = self._layout().size

    def _check_class_weight(self):
        if self.class_weight is None:
            return
        weight = np.asarray(self.class_weight, dtype=float)
        if weight.shape != (self.n_states,):
            raise ValueError(
                f"class_weight must have one entry for each of {self.n_states} states, got shape "
                f"{weight.shape}."
            )
        if not (np.isfinite(weight).all() and weight.min() >= 0.0):
            raise ValueError(f"class_weight must hold finite numbers of at least 0, got {weight}.")

    def _costs(self, states):
        if self.class_weight is None:
            return np.ones(len(states))
        return np.asarray(self.class_weight, dtype=float)[states]

    def _checked(self, x):
        parts = self._parts(x)
        if parts.features.shape[1] != self.n_features:
            raise ValueError(
                f"x must have {self.n_features} features for each node, got "
                f"{parts.features.shape[1]}."
            )
        return parts

    def _check_states(self, parts, y):
        states = self.states(y)
        if len(states) != parts.features.shape[0] and not self._shared_weights:
            raise ValueError(
                f"y must have a label for each of {parts.features.shape[0]} nodes, got "
                f"{len(states)}."
            )
        if len(states) and not 0 <= states.min() <= states.max() < self.n_states:
            raise ValueError(
                f"y must hold labels 0 to {self.n_states - 1}, got {states.min()} to "
                f"{states.max()}."
            )
        return states

    def _check_weights(self, w):
        w = np.asarray(w, dtype=float)
        if w.shape != (self.size_joint_feature,):
            raise ValueError(
                f"w must have shape {(self.size_joint_feature,)}, got {w.shape}. Use weights with "
                "the model that was trained with them, `model_` of the learner."
            )
        _check_finite(w, "w")
        return w

    def _n_unary(self):
        return self.n_states * self.n_features

    def _layout(self):
        place, factor = self._tables()
        return flat.Layout(np.ones(self.n_states), False, self.n_features, place, factor)

    def _unary_feature(self, features, beliefs):
        return np.asarray((features.T @ beliefs).T).ravel()

    def _unary_scores(self, features, weights):
        return np.asarray(features @ weights.reshape(self.n_states, self.n_features).T)

    def _potentials(self, x, w):
        self._check_initialized()
        w, parts = self._check_weights(w), self._checked(x)
        _check_finite(parts.features, "x")
        if parts.edge_features is not None:
            _check_finite(parts.edge_features, "edge_features")
        place, factor = self._tables()
        matrices = factor * w[self._n_unary() + place]
        pairwise = np.tensordot(_edge_features(parts), matrices, axes=1)
        unary = self._unary_scores(parts.features, w[: self._n_unary()])
        return parts, np.ascontiguousarray(unary), np.ascontiguousarray(pairwise)

    def _solve(self, parts, unary, pairwise, relaxed):
        found = infer(unary, parts.edges, pairwise, check_method(self.inference_method))
        self.last_inference_ = Inference(found.method, found.exact, -found.score, -found.bound)
        if relaxed and found.beliefs is not None:
            return found.beliefs, -found.bound
        return self._output(found.labels, parts.shape), -found.score

    def _output(self, labels, shape):
        return labels if isinstance(labels, tuple) else labels.reshape(shape)

    def _join(self, outputs):
        return outputs

    def _inward(self, w):
        unary = w[: self._n_unary()].reshape(self.n_states, self.n_features)
        return np.concatenate([unary.T.ravel(), w[self._n_unary() :]])

    def _outward(self, w):
        unary = w[: self._n_unary()].reshape(self.n_features, self.n_states)
        return np.concatenate([unary.T.ravel(), w[self._n_unary() :]])

    def _graphs(self, parts):
        nodes = ends_of([part.features.shape[0] for part in parts])
        links = ends_of([len(part.edges) for part in parts])
        rows = stacked_rows([part.features for part in parts], "X")
        first = rows.indptr.astype(np.int64)
        features = first[:-1], first[1:], np.zeros(len(first) - 1, dtype=np.int64)
        edges = np.concatenate([part.edges for part in parts])
        entries = rows.indices.astype(np.int32, copy=False), rows.data
        return flat.make_graphs(
            nodes, links, (*features, *entries), edges, _edge_rows(parts, edges)
        )


def check_features(features):
    """Return features of nodes as a matrix, or say what is wrong with them."""
    if sp.issparse(features):
        return sp.csr_array(features, dtype=np.float64)
    features = np.asarray(features)
    if features.ndim != 2:
        raise ValueError(f"x must have shape (n_nodes, n_features), got {features.shape}.")
    return features


def _edge_features(parts):
    if parts.edge_features is None:
        return np.ones((len(parts.edges), 1))
    return parts.edge_features


def ends_of(lengths):
    """Return where parts of these lengths begin, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def stacked_rows(blocks, name):
    """Blocks of rows below each other, as one CSR array of finite float64 numbers."""
    if any(sp.issparse(block) for block in blocks):
        rows = sp.vstack([sp.csr_array(block) for block in blocks], format="csr", dtype=np.float64)
        rows.sum_duplicates()
    else:
        rows = sp.csr_array(np.concatenate(blocks), dtype=np.float64)
    _check_finite(rows, name)
    return rows


def _check_finite(values, name):
    if not np.isfinite(values.data if sp.issparse(values) else values).all():
        raise ValueError(f"{name} must hold finite numbers; it contains NaN or infinity.")


def _edge_rows(parts, edges):
    if parts[0].edge_features is None or len(edges) == 0:
        count = np.arange(len(edges) + 1)
        return count, np.zeros(len(edges), dtype=np.int64), np.ones(len(edges))
    rows = stacked_rows([part.edge_features for part in parts], "edge_features")
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data
