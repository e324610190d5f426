"""Majorise and minimise: the hinge problem (see `problem`) by weighted least squares.

With r_i = margin_i - sign_i f(x_i) the hinge is (r_i + |r_i|) / 2, and |r| lies below the parabola
(r^2 / omega + omega) / 2 that touches it at |r| = omega. So the objective lies below

    1/2 ||f||^2  +  sum_i cost_i * (r_i / 2 + r_i^2 / (4 omega_i) + omega_i / 4)

which is least at the solution of linear equations: with W = diag(cost / (2 omega)) and
t_i = sign_i (margin_i + omega_i),

    (I + Z' W Z) w = Z' W t        over rows Z,         or
    (W^-1 + K) beta = t            over a Gram matrix,  f = K beta.

Taking omega = sqrt(r^2 + eta^2) at each answer lowers the objective again and again. There is no
free intercept. Stops on the duality gap, which beta = W (t - f), put into its box, proves.

Rows that end on their margin get weights without bound, so that rounding keeps beta from its last
digits, and while the answer moves little they are known long before their beta is. So from time to
time the rows near their margins are taken to be on them, the others to be at a bound, and
K_FF beta_F = p_F - K_FB beta_B is solved instead.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve

from widemargin._base.options import newton_options
from widemargin._base.threads import single_threaded_blas, stopping
from widemargin.solvers.hinge.problem import HingeProblem
from widemargin.solvers.solution import Solution, certify

_SMOOTHING = 1e-7
_LEAST_SMOOTHING = 1e-10
_STALLED = 1e-12
_ROUNDING = 4.0 * float(np.finfo(float).eps)
_NEAR = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
_FIRST_SNAP = 16
_CORRECTIONS = 10


def majorize(
    problem: HingeProblem,
    rows=None,
    bias: float = 0.0,
    *,
    gap_tol: float = 1e-6,
    max_iter: int = -1,
    report: Callable[[Solution], bool] | None = None,
) -> Solution:
    """Solve the problem from start to end.

    Parameters
    ----------
    problem : HingeProblem
        Without intercept, with finite costs.
    rows : ndarray or CSR matrix of shape (n, d), optional
        The rows behind a linear Gram matrix. Where there are no more features than rows the
        equations are solved over the features, and the Gram matrix is not looked at.
    bias : float, default=0.0
        The constant feature of these rows.
    gap_tol : float, default=1e-6
        Relative duality gap to stop at.
    max_iter : int, default=-1
        Most systems of equations solved; -1 for no limit.
    report : callable, optional
        Called with the solution so far after every one of them; True stops the solver.

    Returns
    -------
    Solution
    """
    sign, margin, cost = problem.sign, problem.margin, problem.cost
    with single_threaded_blas():
        step, between, evaluate = _equations(problem, rows, bias)
        scores = np.zeros(problem.size)
        unit = float(np.abs(margin).mean()) or 1.0
        least = _LEAST_SMOOTHING * unit
        eta, iterations, snap = _SMOOTHING * unit, 0, _FIRST_SNAP
        solution = _certified(problem, np.zeros(problem.size), problem.linear(), 0, gap_tol)
        while not (solution.converged or 0 <= max_iter <= iterations or eta < least):
            slack = margin - sign * scores
            omega = np.sqrt(slack * slack + eta * eta)
            weight = 0.5 * cost / omega
            target = sign * (margin + omega)
            before, scores = scores, step(weight, target)
            iterations += 1
            dual = np.clip(weight * (target - scores), *problem.bounds())
            residual = problem.linear() - evaluate(dual)
            found = _certified(problem, dual, residual, iterations, gap_tol)
            # Weights of rows that are nearly on the margin are so large that rounding may win.
            solution = replace(min(solution, found, key=_gap), iterations=iterations)
            stalled = np.abs(scores - before).max() <= _STALLED * max(unit, np.abs(scores).max())
            if not solution.converged and (stalled or iterations == snap):
                snap = 2 * iterations
                solution = _snapped(solution, problem, scores, unit, between, evaluate, gap_tol)
            if stalled:
                eta *= 0.1
            if stopping() or (report is not None and report(solution)):
                break
    return solution


def _snapped(solution, problem, scores, unit, between, evaluate, gap_tol) -> Solution:
    """The best of a solution and those that have the rows near their margins on them.

    Rows whose beta leaves its box come off the margin, at that bound; rows that then fall on the
    wrong side of theirs are put on it.
    """
    slack = problem.margin - problem.sign * scores
    cost, lower_upper = problem.cost, problem.bounds()
    for near in _NEAR:
        free, short = np.abs(slack) <= near * unit, slack > 0.0
        for _ in range(_CORRECTIONS):
            if np.count_nonzero(free) > newton_options.most_free:
                break
            weight = np.where(short & ~free, cost, 0.0)
            dual, on = problem.sign * weight, np.flatnonzero(free)
            rest = (problem.linear() - evaluate(dual))[on]
            dual[on] = np.linalg.lstsq(between(on), rest, rcond=None)[0]
            inside = np.clip(dual, *lower_upper)
            residual = problem.linear() - evaluate(inside)
            found = _certified(problem, inside, residual, solution.iterations, gap_tol)
            solution = min(solution, found, key=_gap)
            if solution.converged:
                return solution
            weight, left = problem.sign * dual, problem.sign * (problem.linear() - evaluate(dual))
            wrong = ~free & np.where(short, left < 0.0, left > 0.0)
            short = np.where(free, weight >= cost, short)
            free = wrong | (free & (weight > 0.0) & (weight < cost))
    return solution


def _gap(solution) -> float:
    return solution.gap


def _certified(problem, dual, residual, iterations, gap_tol) -> Solution:
    solution = certify(problem, dual, residual, iterations, False)
    # What rounding of the slacks may add to the objective does not count as a gap.
    noise = _ROUNDING * float(problem.cost @ np.abs(problem.margin))
    converged = solution.gap <= gap_tol or solution.gap * solution.objective <= noise
    return replace(solution, converged=bool(converged))


def _equations(problem, rows, bias):
    """What solves the least squares (f at the rows), K of some rows, and what K makes of a dual."""
    if rows is None or rows.shape[1] > rows.shape[0]:
        gram = problem.gram.block(slice(None), slice(None))

        def step_dual(weight, target):
            root = np.sqrt(weight)
            system = root[:, np.newaxis] * gram * root
            system[np.diag_indices_from(system)] += 1.0
            return gram @ (root * cho_solve(cho_factor(system), root * target))

        return step_dual, lambda free: gram[np.ix_(free, free)], lambda dual: gram @ dual
    if bias:
        column = np.full((rows.shape[0], 1), bias)
        stack = sp.hstack if sp.issparse(rows) else np.hstack
        rows = stack([rows, sp.csr_array(column) if sp.issparse(rows) else column])
    rows = rows.tocsr() if sp.issparse(rows) else rows

    def step_primal(weight, target):
        weighted = rows.multiply(weight[:, np.newaxis]) if sp.issparse(rows) else (
            weight[:, np.newaxis] * rows
        )  # fmt: skip
        system = rows.T @ weighted
        system = system.toarray() if sp.issparse(system) else system
        system[np.diag_indices_from(system)] += 1.0
        return rows @ cho_solve(cho_factor(system), rows.T @ (weight * target))

    def between(free):
        product = rows[free] @ rows[free].T
        return product.toarray() if sp.issparse(product) else product

    return step_primal, between, lambda dual: rows @ (rows.T @ dual)
