"""The labels of the nodes of a conditional random field: states, losses and class weights."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.structured.models.base import StructuredModel
from widemargin.structured.models.inputs import (
    check_equal_sizes,
    check_integer_labels,
    encode_labels,
)
from widemargin.structured.oracles.graph import node_loss


class NodeLabels(StructuredModel):
    """Base class of models whose outputs are the labels of nodes.

    Labels are integers from 0, or strings, whose states are their positions in the sorted
    `classes_`. The loss is the sum over wrong nodes of the weight of the true label.
    """

    class_weight: Any
    classes_: np.ndarray
    class_weight_: np.ndarray

    def state_groups(self) -> np.ndarray | None:
        """Return the label of each state if states share labels: none do by default.

        Returns
        -------
        groups : ndarray of shape (n_states,), or None
            States with the same label are equally right.
        """
        return None

    def state_labels(self) -> np.ndarray:
        """Return the label of each state.

        Returns
        -------
        labels : ndarray of shape (n_states,)
            Strings if those of the training data are, otherwise integers from 0.
        """
        known = getattr(self, "classes_", np.empty(0, dtype=int))
        return np.concatenate([known, np.arange(len(known), self.n_states)])

    def states(self, y: Any) -> np.ndarray:
        """Return the states of the nodes of an output, as integers from 0.

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
        if labels.size == 0:
            return np.empty(0, dtype=np.int64)
        if hasattr(self, "classes_"):
            return encode_labels(labels, self.classes_)
        return check_integer_labels(y)

    def loss(self, y: Any, y_hat: Any) -> float:
        """Compute the sum over wrong nodes of the weight of the true state.

        Parameters
        ----------
        y : ndarray
            True output.
        y_hat : ndarray, or tuple of beliefs
            Output.

        Returns
        -------
        loss : float
            The number of wrong nodes if `class_weight` is None.
        """
        truth = self.states(y)
        if isinstance(y_hat, tuple):
            label: Any = (np.reshape(y_hat[0], (-1, self.n_states)), y_hat[1])
            check_equal_sizes(truth, label[0][:, 0])
        else:
            label = self.states(y_hat)
            check_equal_sizes(truth, label)
        return node_loss(label, truth, self.state_costs(truth), self.state_groups())

    def continuous_loss(self, y: Any, y_hat: Any) -> float:
        """Compute the loss of beliefs of nodes.

        Parameters
        ----------
        y : ndarray
            True output.
        y_hat : ndarray of shape (n_nodes, n_states) or (height, width, n_states)
            Beliefs of the nodes.

        Returns
        -------
        loss : float
            Sum over nodes of the belief in wrong states times the weight of the true state.
        """
        return self.loss(y, (y_hat, None))

    def max_loss(self, y: Any) -> float:
        """Compute the loss of an output whose nodes are all wrong.

        Parameters
        ----------
        y : ndarray
            True output.

        Returns
        -------
        loss : float
            The number of nodes if `class_weight` is None.
        """
        return float(self.state_costs(self.states(y)).sum())

    def state_costs(self, states: np.ndarray) -> np.ndarray:
        if self.class_weight is None:
            return super().state_costs(states)
        known = getattr(self, "class_weight_", None)
        return (self._state_weights() if known is None else known)[states]

    def _scored_losses(self, Y: Any, Y_hat: Any) -> tuple[np.ndarray, list[float]]:
        """Return the losses, where strings unseen in training are mistakes."""
        if not self._inherits("loss", "max_loss"):
            return super()._scored_losses(Y, Y_hat)
        truth = [self._true_states(y) for y in Y]
        costs = [self._true_costs(states) for states in truth]
        groups = self.state_groups()
        groups = np.append(np.arange(self.n_states) if groups is None else groups, self.n_states)
        samples = zip(map(self.states, Y_hat), truth, costs, strict=True)
        losses = [
            node_loss(label, np.minimum(true, self.n_states), cost, groups)
            for label, true, cost in samples
        ]
        return np.array(losses), [float(cost.sum()) for cost in costs]

    def _true_states(self, y: Any) -> np.ndarray:
        """Return the states of an output for scores: n_states for strings unseen in training."""
        labels = np.ravel(y)
        if hasattr(self, "classes_") and labels.dtype.kind in "UO":
            return encode_labels(labels, self.classes_, unknown=self.n_states)
        return self.states(y)

    def _true_costs(self, states: np.ndarray) -> np.ndarray:
        """Return the losses of wrong states for scores: 1 for those unseen in training."""
        known = states < self.n_states
        costs = np.ones(len(states))
        costs[known] = self.state_costs(states[known])
        return costs

    def _infer_classes(self, Y: Any) -> None:
        """Set `classes_` if the labels of the training data are strings."""
        if hasattr(self, "classes_"):
            del self.classes_
        if Y is None or sp.issparse(Y) or len(Y) == 0:
            return
        labels = [np.ravel(y) for y in Y]
        # NumPy makes strings of other labels in a list of strings, such as a missing value.
        labels = [
            np.ravel(np.asarray(y, dtype=object)) if values.dtype.kind == "U" else values
            for y, values in zip(Y, labels, strict=True)
            if values.size
        ]
        if all(values.dtype.kind in "USO" for values in labels):
            classes = set().union(*(values.tolist() for values in labels))
            if classes and all(isinstance(label, str) for label in classes):
                self.classes_ = np.array(sorted(classes))

    def _state_weights(self, states: np.ndarray | None = None) -> np.ndarray:
        """Return the weight of each state, for 'balanced' from the states of training data."""
        class_weight, n_states = self.class_weight, self.n_states
        if isinstance(class_weight, str):
            if class_weight != "balanced" or states is None:
                raise ValueError(
                    "class_weight must be an array, a dict or 'balanced', which needs the outputs "
                    f"of training data (fit or initialize), got {class_weight!r}."
                )
            counts = np.bincount(states, minlength=n_states)
            weight = np.ones(n_states)
            weight[counts > 0] = len(states) / (n_states * counts[counts > 0])
        elif isinstance(class_weight, Mapping):
            labels = self.state_labels().tolist()
            unknown = [label for label in class_weight if label not in labels]
            if unknown:
                raise ValueError(f"class_weight must have labels as keys, got {unknown}.")
            weight = np.array([class_weight.get(label, 1.0) for label in labels], dtype=float)
        else:
            weight = np.asarray(class_weight, dtype=float)
        if weight.shape != (n_states,):
            raise ValueError(
                f"class_weight must have one entry for each of {n_states} states, got shape "
                f"{weight.shape}."
            )
        if not (np.isfinite(weight).all() and weight.min() >= 0.0):
            raise ValueError(
                f"class_weight must contain finite numbers of at least 0, got {weight}."
            )
        return weight

    def _inherits(self, *names: str) -> bool:
        """Return whether methods are those of this library."""
        library = __name__.rpartition(".")[0]
        return all(getattr(self, name).__module__.startswith(library) for name in names)
