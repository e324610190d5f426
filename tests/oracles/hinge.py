"""The exact answer to the hinge problem, by an interior-point solver, with its certificate.

The problem, for a Gram matrix K = L L', signs s, margins m and costs c (which may be infinite):

    min over w, b   1/2 ||w||^2  +  sum_i  c_i * max(0, m_i - s_i * ((L w)_i + b))

and its dual, in beta_i = s_i * alpha_i:

    max over alpha   m' alpha - 1/2 beta' K beta
    subject to       0 <= alpha_i <= c_i,  sum(beta) = 0 when there is an intercept

Clarabel solves the primal over the factor L, so that a singular K costs no accuracy.
"""

from typing import NamedTuple

import clarabel
import numpy as np
from scipy import sparse


class Hinge(NamedTuple):
    """One problem, in the order of the arguments of ``widemargin.solvers.HingeProblem``."""

    gram: np.ndarray
    sign: np.ndarray
    margin: np.ndarray
    cost: np.ndarray
    intercept: bool = True


class Exact(NamedTuple):
    """The optimum, which lies between ``dual_objective`` and ``objective``.

    ``f`` holds the values of the function at the rows, without the intercept. ``scale`` is what
    an error of the objective is relative to: the sum of the sizes of the dual objective's terms,
    which may cancel.
    """

    dual_objective: float
    alpha: np.ndarray
    intercept: float
    objective: float
    f: np.ndarray
    scale: float

    @property
    def gap(self):
        return (self.objective - self.dual_objective) / self.scale


class InfeasibleError(ValueError):
    """No function satisfies the margins of all samples of infinite cost."""


def solve_exactly(problem):
    """Solve a `Hinge` problem, certified to a gap of 2e-7 and mostly far below it."""
    _check_that_hard_margins_can_be_kept(problem)
    answers = []
    # The tightest tolerance now and then ends without progress where a looser one succeeds.
    for tolerance in (1e-12, 1e-11, 1e-10):
        answers.append(_attempt(problem, tolerance))
        if answers[-1].gap < 1e-9:
            break
    best = min(answers, key=lambda answer: answer.gap)
    if not best.gap < 2e-7:
        raise ArithmeticError(f"the oracle's own gap is {best.gap}")
    return best


def value_of(problem, alpha):
    """Dual objective of `alpha`."""
    beta = problem.sign * alpha
    return problem.margin @ alpha - 0.5 * beta @ problem.gram @ beta


def best_intercept(problem, f, cost):
    """Intercept that minimises the loss of the function values `f` under finite costs."""
    if not problem.intercept:
        return 0.0
    # The loss is piecewise linear: one of the kinks is a minimum.
    kinks = problem.sign * problem.margin - f
    losses = [_loss(problem, f + kink, cost) for kink in kinks]
    return float(kinks[np.argmin(losses)])


def _attempt(problem, tolerance):
    sign, margin = problem.sign, problem.margin
    # In units in which the kernel is about 1, one tolerance suits problems of all scales.
    unit = np.diag(problem.gram).max() or 1.0
    factor = _factor(problem.gram / unit)
    scaled = problem._replace(cost=problem.cost * unit)
    natural = min(1.0, scaled.cost.sum()) * (np.abs(margin).max() or 1.0)

    alpha, weights = _interior_point(factor, scaled, tolerance)
    alpha = _feasible(np.where(alpha < 1e-10 * natural, 0.0, alpha), scaled)
    from_dual = factor.T @ (sign * alpha)
    dual_objective = margin @ alpha - 0.5 * from_dual @ from_dual
    scale = np.abs(margin) @ alpha + 0.5 * from_dual @ from_dual
    # A cost above the dual variable is an exact penalty: it may stand for an infinite one.
    cost = np.minimum(scaled.cost, alpha + alpha.max())

    primal = []
    for candidate in (from_dual, weights):
        f = factor @ candidate
        intercept = best_intercept(problem, f, cost)
        objective = 0.5 * candidate @ candidate + _loss(problem, f + intercept, cost)
        primal.append((objective, intercept, f))
    objective, intercept, f = min(primal, key=lambda answer: answer[0])
    return Exact(
        dual_objective=dual_objective / unit,
        alpha=alpha / unit,
        intercept=intercept,
        objective=objective / unit,
        f=f,
        scale=max(scale, 1e-2 * natural) / unit,
    )


def _check_that_hard_margins_can_be_kept(problem):
    hard = np.isinf(problem.cost)
    if hard.any():
        gram = problem.gram[np.ix_(hard, hard)]
        rows = Hinge(gram, *(part[hard] for part in problem[1:4]), problem.intercept)
        factor = _factor(gram / (np.diag(gram).max() or 1.0))
        status = _run(factor, rows, clarabel.DefaultSettings()).status
        if status != clarabel.SolverStatus.Solved:
            raise InfeasibleError(
                "no function satisfies the margins of all samples of infinite cost"
            )


def _loss(problem, values, cost):
    return cost @ np.maximum(0.0, problem.margin - problem.sign * values)


def _factor(gram):
    values, vectors = np.linalg.eigh(gram)
    kept = values > values[-1] * len(gram) * np.finfo(float).eps
    return vectors[:, kept] * np.sqrt(values[kept])


def _interior_point(factor, problem, tolerance):
    """Dual variables and weights."""
    solution = _run(factor, problem, _tight(tolerance))
    n_rows, rank = factor.shape
    return np.array(solution.z)[:n_rows], np.array(solution.x)[:rank]


def _tight(tolerance):
    settings = clarabel.DefaultSettings()
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    # With the defaults large costs are taken for an unbounded problem.
    settings.tol_infeas_abs = settings.tol_infeas_rel = 1e-13
    settings.tol_ktratio = 1e-12
    return settings


def _run(factor, problem, settings):
    """Run Clarabel on the primal; its variables are (weights, intercept, slacks)."""
    settings.verbose = False
    settings.max_threads = 1
    n_rows, rank = factor.shape
    soft = np.flatnonzero(np.isfinite(problem.cost))
    functions = np.hstack([factor, np.ones((n_rows, int(problem.intercept)))])
    slacks = np.eye(n_rows)[:, soft]
    constraints = -np.block(
        [
            [problem.sign[:, None] * functions, slacks],
            [np.zeros((len(soft), functions.shape[1])), np.eye(len(soft))],
        ]
    )
    bounds = np.concatenate([-problem.margin, np.zeros(len(soft))])
    linear = np.concatenate([np.zeros(functions.shape[1]), problem.cost[soft]])
    quadratic = sparse.diags_array((np.arange(len(linear)) < rank).astype(float)).tocsc()
    return clarabel.DefaultSolver(
        quadratic,
        linear,
        sparse.csc_array(constraints),
        bounds,
        [clarabel.NonnegativeConeT(len(bounds))],
        settings,
    ).solve()


def _feasible(alpha, problem):
    """Clip to the box and scale the heavier class down until the signed sum is zero."""
    alpha = np.clip(alpha, 0.0, problem.cost)
    if problem.intercept:
        positive = problem.sign > 0
        sums = alpha[positive].sum(), alpha[~positive].sum()
        lighter = min(sums)
        for rows, total in zip((positive, ~positive), sums, strict=True):
            if total > lighter:
                alpha[rows] *= lighter / total
    return alpha
