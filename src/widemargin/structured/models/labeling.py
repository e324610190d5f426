"""The parts of a conditional random field at work: joint feature, loss, inference and oracle."""

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from widemargin.structured.inference.dispatch import check_method, infer, one_hot
from widemargin.structured.models.inputs import InputGraph, ParsedSamples
from widemargin.structured.models.joint_feature import JointFeature
from widemargin.structured.models.losses import NodeLoss
from widemargin.structured.oracles import GraphOracle

if TYPE_CHECKING:
    from widemargin.structured.models.crf import CRF


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


class GraphLabeling:
    """The joint feature, the loss and the inference method of a model for its current parameters.

    Parameters
    ----------
    model : CRF
        A model whose sizes are known.
    """

    def __init__(self, model: "CRF") -> None:
        model.check_sizes()
        self.model = model
        self.joint = JointFeature(model.node_weights(), *model.pairwise_weights())
        self.loss = NodeLoss(model.class_weight, model.n_states)
        self.method = check_method(model.inference_method)

    def joint_feature(self, x: Any, y: Any) -> np.ndarray:
        """Return the joint feature of an input with an output or with beliefs."""
        graph = self._parse(x)
        if not isinstance(y, tuple):
            states = self._check_states(graph, self.model.states(y))
            y = one_hot(states, graph.edges, self.model.n_states)
        return self.joint.compute(graph, y)

    def infer(
        self, x: Any, w: Any, *, y: Any = None, extra: Any = None, relaxed: bool = False
    ) -> tuple[Any, float, Inference]:
        """Return the best output for an input, its energy and how it was found.

        Inference is augmented by the loss if ``y`` is given. The energy of fractional beliefs is
        that of the relaxation.
        """
        graph = self._parse(x)
        unary, pairwise = self.joint.potentials(graph, w)
        if y is not None:
            states = self._check_states(graph, self.model.states(y))
            unary = self.loss.augment(unary, states)
        if extra is not None:
            unary = unary + np.asarray(extra).reshape(unary.shape)
        found = infer(unary, graph.edges, pairwise, self.method)
        known = Inference(found.method, found.exact, -found.score, -found.bound)
        if relaxed and found.beliefs is not None:
            return found.beliefs, known.bound, known
        return self.model.make_output(found.labels, graph.output_shape), known.energy, known

    def oracle(self, samples: ParsedSamples, threads: int | None) -> GraphOracle:
        """Return the oracle of parsed samples."""
        model, truth, cost = self.model, None, None
        inputs = [model.check_input(graph) for graph in samples.inputs]
        if samples.states is not None:
            pairs = zip(inputs, samples.states, strict=True)
            truth = np.concatenate([self._check_states(*pair) for pair in pairs])
            cost = self.loss.costs(truth)
        return GraphOracle(
            self.joint.nodes.stack(inputs),
            self.joint,
            self.method,
            truth,
            cost,
            make_output=lambda i, states: model.make_output(states, inputs[i].output_shape),
            threads=threads,
        )

    def _parse(self, x: Any) -> InputGraph:
        return self.model.check_input(self.model.parse_input(x))

    def _check_states(self, graph: InputGraph, states: np.ndarray) -> np.ndarray:
        expected, n_states = prod(graph.output_shape), self.model.n_states
        if len(states) != expected:
            raise ValueError(f"y must have {expected} labels, got {len(states)}.")
        if len(states) and not 0 <= states.min() <= states.max() < n_states:
            labels = f"labels 0 to {n_states - 1}" if n_states > 0 else "labels from 0"
            raise ValueError(f"y must contain {labels}, got {states.min()} to {states.max()}.")
        return states
