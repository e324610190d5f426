"""Linear programming relaxation of inference, and branch and bound, solved by HiGHS.

    max   sum_v unary[v] . b_v + sum_e pairwise[e] . b_e
    over  beliefs b_v >= 0 of nodes with sum_s b_v(s) = 1 and beliefs b_e >= 0 of edges e = (u, v)
          with  sum_t b_e(s, t) = b_u(s),  sum_s b_e(s, t) = b_v(t)

Its value is an upper bound on the score of all labels; if the beliefs are integers, they are the
best labels. Where tree-reweighted messages find labels and prove them to be the best ones, which is
many times as fast, they are a solution of both programs, and HiGHS is not called.
"""

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from widemargin._base.options import inference_options as options
from widemargin.structured.inference.logic import Logic
from widemargin.structured.inference.potentials import Labeling, Potentials, one_hot
from widemargin.structured.inference.reweighted import reweighted_messages
from widemargin.structured.inference.search import iterated_modes

INFEASIBLE = 2  # the status of scipy.optimize.milp


def relax(potentials: Potentials) -> Labeling:
    """Return labels rounded from the beliefs and improved by single changes, with the beliefs."""
    unary, edges, pairwise = potentials
    n_nodes, n_states = unary.shape
    quick = reweighted_messages(potentials)
    if quick.exact:
        return quick._replace(method="lp", beliefs=one_hot(quick.labels, edges, n_states))
    solution = linprog(
        -np.concatenate([unary.ravel(), pairwise.ravel()]),
        A_eq=_constraints(n_nodes, n_states, edges),
        b_eq=np.concatenate([np.ones(n_nodes), np.zeros(2 * len(edges) * n_states)]),
        method="highs",
    )
    if solution.x is None:
        raise RuntimeError(f"HiGHS did not solve the relaxation: {solution.message}")
    split = n_nodes * n_states
    beliefs, across = solution.x[:split].reshape(unary.shape), solution.x[split:]
    labels = iterated_modes(potentials, beliefs.argmax(axis=1)).labels
    both = beliefs, across.reshape(pairwise.shape)
    if np.abs(beliefs - np.round(beliefs)).max(initial=0.0) < options.integrality:
        both = one_hot(labels, edges, n_states)
    return potentials.labeling("lp", labels, float(-solution.fun))._replace(beliefs=both)


def branch_and_bound(potentials: Potentials, logic: Logic | None = None) -> Labeling:
    """Return the best labels: the program with integers in place of beliefs of nodes.

    With ``logic``, they are the best of those that satisfy it.
    """
    quick = reweighted_messages(potentials)
    if quick.exact and (logic is None or logic.accepts(quick.labels)):
        return quick._replace(method="branch-and-bound")
    unary, edges, pairwise = potentials
    n_nodes, n_states = unary.shape
    ones = np.concatenate([np.ones(n_nodes), np.zeros(2 * len(edges) * n_states)])
    constraints = [LinearConstraint(_constraints(n_nodes, n_states, edges), ones, ones)]
    if logic:
        rows = sp.hstack([logic.rows, sp.csr_array((len(logic.low), pairwise.size))], format="csr")
        constraints.append(LinearConstraint(rows, logic.low, logic.high))
    solution = milp(
        -np.concatenate([unary.ravel(), pairwise.ravel()]),
        integrality=np.repeat([1, 0], [unary.size, pairwise.size]),
        bounds=Bounds(0.0, 1.0),
        constraints=constraints,
        options={"mip_rel_gap": 0.0},
    )
    if solution.x is None and logic and solution.status == INFEASIBLE:
        raise ValueError("No labels satisfy the constraints of an input: they contradict.")
    if solution.x is None:
        raise RuntimeError(f"HiGHS did not solve the integer program: {solution.message}")
    labels = solution.x[: unary.size].reshape(unary.shape).argmax(axis=1)
    return potentials.labeling("branch-and-bound", labels, float(-solution.mip_dual_bound))


def _constraints(n_nodes: int, n_states: int, edges: np.ndarray) -> sp.csr_array:
    """Return a matrix with a row for each node, then for each edge, end and state."""
    n_edges, eye = len(edges), sp.eye_array(n_states)
    ones = np.ones((1, n_states))
    simplex = sp.hstack(
        [sp.kron(sp.eye_array(n_nodes), ones), sp.csr_array((n_nodes, n_edges * n_states**2))]
    )
    blocks = [simplex]
    for end, marginal in enumerate([sp.kron(eye, ones), sp.kron(ones, eye)]):
        pick = sp.csr_array(
            (np.ones(n_edges), (np.arange(n_edges), edges[:, end])), shape=(n_edges, n_nodes)
        )
        blocks.append(sp.hstack([-sp.kron(pick, eye), sp.kron(sp.eye_array(n_edges), marginal)]))
    return sp.vstack(blocks, format="csr")
