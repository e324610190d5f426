"""The multi-class machine of Crammer and Singer: one problem over the functions of all classes.

    min over f   1/2 sum_k ||f_k||^2
                 + sum_i cost_i * max_k (margin_i 1[k != y_i] + f_k(x_i) - f_y_i(x_i))

Its dual, with f_k = sum_i alpha_ik k(x_i, .):

    max over alpha   sum_i margin_i alpha_iy_i - 1/2 sum_k ||f_k||^2
    subject to       sum_k alpha_ik = 0,   alpha_iy_i <= cost_i,   alpha_ik <= 0 for k != y_i

One row at a time is moved to its best dual variables with those of all others fixed (Keerthi et
al., 2008). With g_k = f_k(x_i) + margin_i 1[k != y_i], curvature a = k(x_i, x_i), bounds u_k
and top_k = g_k + a (u_k - alpha_k), they are

    alpha_k = u_k - max(0, top_k - level) / a    where   sum_k max(0, top_k - level) = a cost_i

which is exact and needs no search. A row is optimal when no g_k exceeds the least one among the
classes that are not at their bound; the largest excess is what ``tol`` is about, as in liblinear.

That crawls where features are ill-conditioned. Where few variables are not at their bounds, Newton
steps on these (see `crammer_singer_leap`) come between the passes.

`crammer_singer_rows` keeps the weights of linear functions, `crammer_singer_gram` the scores of all
rows over a Gram matrix. The constant feature ``bias`` stands for an intercept: it adds bias^2 to
every kernel value.

References
----------
K. Crammer, Y. Singer: On the algorithmic implementation of multiclass kernel-based vector
machines. JMLR 2001.
S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin: A sequential dual method for
large scale multi-class linear SVMs. KDD 2008.
"""

from dataclasses import dataclass

import numpy as np

FIRST_GAP_TOL = 0.1
"""Where the tolerance starts from that is lowered until the gap is closed."""

SMALLEST_TOL = 1e-13


@dataclass(frozen=True)
class MultiClassSolution:
    """What a solver found.

    Attributes
    ----------
    dual : ndarray of shape (n, n_classes)
    weights : ndarray of shape (d + 1, n_classes) or None
        Of the features and of the constant one; None for a solution over a Gram matrix.
    objective : float
    dual_objective : float
        A lower bound of the objective where the kernel is positive semidefinite.
    gap : float
        (objective - dual_objective) / objective, at most 1; nan where the kernel is not known to be
        positive semidefinite.
    iterations : int
        Passes over rows, or batches of them.
    converged : bool
    """

    dual: np.ndarray
    weights: np.ndarray | None
    objective: float
    dual_objective: float
    gap: float
    iterations: int
    converged: bool


def certify(state, dual, weights, scores, norm, known=True) -> MultiClassSolution:
    """The solution of a state at ``dual``, with the bound that it proves.

    ``scores`` has a row for each class, ``norm`` is sum_k ||f_k||^2, and ``known`` says whether the
    kernel is known to be positive semidefinite.
    """
    rows = np.arange(len(dual))
    own = scores[state.label, rows]
    rivals = scores + state.margin
    rivals[state.label, rows] = own
    loss = np.sum(state.cost * (rivals.max(axis=0) - own))
    objective = 0.5 * norm + float(loss)
    dual_objective = float(np.sum(state.margin * dual[rows, state.label])) - 0.5 * norm
    gap = max(0.0, objective - max(dual_objective, 0.0)) / max(objective, np.finfo(float).tiny)
    return MultiClassSolution(
        dual,
        weights,
        objective,
        dual_objective,
        gap if known else np.nan,
        state.iterations,
        state.converged,
    )


def feasible(dual, label, cost, n_classes) -> np.ndarray:
    """A copy of ``dual`` made feasible, to start from: it may be that of other labels or costs."""
    rivals = np.array(dual, dtype=np.float64)
    if rivals.shape != (len(label), n_classes):
        raise ValueError(f"dual must have shape {(len(label), n_classes)}, got {rivals.shape}.")
    rows = np.arange(len(label))
    rivals = np.minimum(rivals, 0.0)
    rivals[rows, label] = 0.0
    own = -rivals.sum(axis=1)
    rivals *= np.divide(cost, own, out=np.ones_like(own), where=own > cost)[:, np.newaxis]
    rivals[rows, label] = np.minimum(-rivals.sum(axis=1), cost)
    return rivals
