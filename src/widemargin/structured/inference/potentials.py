"""What inference maximizes, and what it returns."""

from typing import NamedTuple

import numpy as np

from widemargin._base.options import inference_options as options


class Potentials(NamedTuple):
    """Potentials of a graph.

    The score of labels y is sum_v unary[v, y_v] + sum_e pairwise[e, y_u, y_v], where e = (u, v).

    Attributes
    ----------
    unary : ndarray of shape (n_nodes, n_states)
        Score of each label of each node.
    edges : ndarray of shape (n_edges, 2)
        Nodes that each edge connects.
    pairwise : ndarray of shape (n_edges, n_states, n_states)
        Score of each pair of labels for each edge.
    """

    unary: np.ndarray
    edges: np.ndarray
    pairwise: np.ndarray

    def score(self, labels: np.ndarray) -> float:
        """Return the score of labels."""
        across = self.pairwise[np.arange(len(self.edges)), *labels[self.edges.T]]
        return float(self.unary[np.arange(len(labels)), labels].sum() + across.sum())

    def labeling(
        self, method: str, labels: np.ndarray, bound: float = np.inf, exact: bool = False
    ) -> "Labeling":
        """Return the result of a method, exact if that is known or if its upper bound is tight."""
        score = self.score(labels)
        bound = score if exact else max(bound, score)
        tight = bound < np.inf and bound - score <= options.tightness * (1.0 + abs(bound))
        return Labeling(labels, score, bound, bool(tight), method)


class Labeling(NamedTuple):
    """Result of inference.

    Attributes
    ----------
    labels : ndarray of shape (n_nodes,)
        Labels of the nodes.
    score : float
        Score of the labels.
    bound : float
        Upper bound on the score of all labels; infinite if the method has none.
    exact : bool
        Whether no labels have a higher score.
    method : str
        The method that was used.
    beliefs : tuple of ndarray, or None
        For ``lp``: beliefs of nodes and edges, fractional if the relaxation is not tight.
    """

    labels: np.ndarray
    score: float
    bound: float
    exact: bool
    method: str
    beliefs: tuple | None = None


def one_hot(labels: np.ndarray, edges: np.ndarray, n_states: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels as beliefs of nodes and edges."""
    across = np.zeros((len(edges), n_states, n_states))
    across[np.arange(len(edges)), *labels[edges.T]] = 1.0
    return np.eye(n_states)[labels], across
