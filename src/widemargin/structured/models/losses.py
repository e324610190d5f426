"""The loss of conditional random fields: wrong nodes, weighted by their true state."""

from typing import Any

import numpy as np


class NodeLoss:
    """Hamming loss of the nodes, weighted by the true state.

    Parameters
    ----------
    class_weight : array-like of shape (n_states,), default=None
        Loss of a node by its true state; 1 by default.
    n_states : int, default=None
        Number of states, if `class_weight` is to be checked.
    """

    def __init__(self, class_weight: Any = None, n_states: int | None = None) -> None:
        self.weight = None if class_weight is None else np.asarray(class_weight, dtype=float)
        if self.weight is None or n_states is None:
            return
        if self.weight.shape != (n_states,):
            raise ValueError(
                f"class_weight must have one entry for each of {n_states} states, got shape "
                f"{self.weight.shape}."
            )
        if not (np.isfinite(self.weight).all() and self.weight.min() >= 0.0):
            raise ValueError(
                f"class_weight must contain finite numbers of at least 0, got {self.weight}."
            )

    def costs(self, states: np.ndarray) -> np.ndarray:
        """Return the loss of each node if its state is wrong, from the true states."""
        return np.ones(len(states)) if self.weight is None else self.weight[states]

    def compute(self, truth: np.ndarray, states: Any) -> float:
        """Return the loss of states, or of beliefs of nodes and edges."""
        cost = self.costs(truth)
        if isinstance(states, tuple):
            return float(cost @ (1.0 - states[0][np.arange(len(truth)), truth]))
        return float(cost @ (truth != states))

    def maximum(self, truth: np.ndarray) -> float:
        """Return the loss if every state is wrong."""
        return float(self.costs(truth).sum())

    def augment(self, unary: np.ndarray, truth: np.ndarray) -> np.ndarray:
        """Return unary potentials plus the loss of each state."""
        cost = self.costs(truth)
        unary = unary + cost[:, np.newaxis]
        unary[np.arange(len(truth)), truth] -= cost
        return unary
