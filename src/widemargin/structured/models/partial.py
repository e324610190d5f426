"""Outputs some of whose labels are not known: -1, or None, in place of a label.

A latent output has all labels: the known ones, and states of the other nodes, which count neither
as right nor as wrong. `widemargin.structured.LatentSSVM` trains models on such outputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from widemargin.structured.inference.dispatch import check_method, infer
from widemargin.structured.models.crf import CRF


@dataclass(eq=False)
class CompletedOutput:
    """An output of which some labels were not known.

    Attributes
    ----------
    labels : ndarray
        All labels, in the shape of the output. NumPy reads them as the array of this object.
    known : ndarray of bool of shape (n_nodes,)
        Nodes whose labels were known: the others have no loss.
    """

    labels: np.ndarray
    known: np.ndarray

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.labels, dtype=dtype, copy=True if copy is None else copy)


def known_labels(y: Any) -> np.ndarray:
    """Return which labels of an output are known: neither -1, None nor NaN.

    Parameters
    ----------
    y : array-like
        Output.

    Returns
    -------
    known : ndarray of bool of shape (n_nodes,)
        In the order of the nodes.
    """
    labels = np.ravel(np.asarray(y, dtype=object)).tolist()
    return np.array(
        [label is not None and label == label and label != -1 for label in labels], dtype=bool
    )


def fill_labels(Y: Sequence) -> list[np.ndarray]:
    """Return outputs with a label of the data in place of unknown ones, to infer sizes from.

    Parameters
    ----------
    Y : sequence
        Outputs.

    Returns
    -------
    filled : list of ndarray
        Outputs.
    """
    known = [known_labels(y) for y in Y]
    flat = [np.ravel(np.asarray(y, dtype=object)) for y in Y]
    labels = np.array(
        np.concatenate([values[k] for values, k in zip(flat, known, strict=True)]).tolist()
    )
    if len(labels) == 0:
        raise ValueError("Y must contain known labels; all are -1 or None.")
    filled = []
    for y, k in zip(Y, known, strict=True):
        output = np.full(len(k), labels[0], dtype=labels.dtype)
        output[k] = np.ravel(np.asarray(y, dtype=object))[k]
        filled.append(output.reshape(np.shape(y)))
    return filled


def complete_output(model: CRF, x: Any, y: Any, w: np.ndarray) -> CompletedOutput:
    """Find the output with the highest score among those with the known labels.

    Parameters
    ----------
    model : CRF
        Model whose sizes are known.
    x : object
        Input.
    y : array-like
        Output, with -1 or None for unknown labels.
    w : ndarray of shape (size_joint_feature,)
        Weights.

    Returns
    -------
    completed : CompletedOutput
        The output.
    """
    joint, graph = model.make_joint_feature(), model.check_input(model.parse_input(x))
    allowed = _allowed_states(model, graph, y)
    labeling = infer(joint.potentials(graph, w), check_method(model.inference_method), allowed)
    return CompletedOutput(model.make_output(labeling.labels, graph.output_shape), known_labels(y))


def start_outputs(model: CRF, X: Sequence, Y: Sequence) -> list[CompletedOutput]:
    """Complete outputs by the label with the nearest mean of node features.

    Parameters
    ----------
    model : CRF
        Model whose sizes are known.
    X, Y : sequence
        Inputs and outputs.

    Returns
    -------
    completed : list of CompletedOutput
        Outputs to start training from.
    """
    graphs = [model.check_input(model.parse_input(x)) for x in X]
    allowed = [_allowed_states(model, *pair) for pair in zip(graphs, Y, strict=True)]
    n_nodes = [len(mask) for mask in allowed]
    means, counts = (
        np.zeros((model.n_states, graphs[0].features.shape[1])),
        np.zeros(model.n_states),
    )
    each = [graph.features for graph in graphs]
    if model.node_weights().shared:  # all labels of a sample read the same features
        means, each = means[:, :0], [np.empty((n, 0)) for n in n_nodes]
    for features, mask, y in zip(each, allowed, Y, strict=True):
        certain = mask * known_labels(y)[:, np.newaxis]
        means += np.asarray((features.T @ certain).T)
        counts += certain.sum(axis=0)
    means /= np.maximum(counts, 1.0)[:, np.newaxis]
    # Where the means are equally near, the most frequent label is taken.
    bias = np.where(counts > 0, 1e-9 * counts / counts.max(), -np.inf)
    bias = bias - 0.5 * np.einsum("sf,sf->s", means, means)
    completed = []
    for graph, features, mask, y in zip(graphs, each, allowed, Y, strict=True):
        scores = np.where(mask, np.asarray(features @ means.T) + bias, -np.inf)
        output = model.make_output(scores.argmax(axis=1), graph.output_shape)
        completed.append(CompletedOutput(output, known_labels(y)))
    return completed


def _allowed_states(model: CRF, graph: Any, y: Any) -> np.ndarray:
    """Return the states that the nodes may have: the known label, or all."""
    known, n_nodes = known_labels(y), prod(graph.output_shape)
    if len(known) != n_nodes:
        raise ValueError(f"y must have {n_nodes} labels, got {len(known)}.")
    allowed = np.ones((n_nodes, model.n_states), dtype=bool)
    if graph.allowed is not None:
        allowed &= graph.allowed
    labels = np.array(np.ravel(np.asarray(y, dtype=object))[known].tolist())
    states = model.states(labels)
    if len(states) and not 0 <= states.min() <= states.max() < model.n_states:
        raise ValueError(
            f"Y must contain labels 0 to {model.n_states - 1}, and -1 or None for unknown ones, "
            f"got {states.min()} to {states.max()}."
        )
    allowed[known] = np.arange(model.n_states) == states[:, np.newaxis]
    return allowed
