"""SVM1+: the hinge loss with slack that is a function of the privileged features.

    min over f, b, e, rho   1/2 ||f||^2 + penalty/2 ||e||^2 + sum_i cost_i xi_i
    subject to              xi_i = e(z_i) + rho >= 0,   y_i (f(x_i) + b) >= 1 - xi_i

Its dual, with g = y * alpha and h = alpha + beta - cost, over two Gram matrices K and M / penalty:

    max over alpha, beta   sum(alpha) - 1/2 g' K g - 1/(2 penalty) h' M h
    subject to             alpha, beta >= 0,   sum(g) = 0,   sum(h) = 0

It is the coupled problem (`problem`): alpha has the direction (y, 1) and beta (0, 1), related by
(1, 1) + (-1, 1) = 2 (0, 1). An exchange of alpha for beta in one sample keeps its h. Then
f = sum_i g_i k(x_i, .) and e = sum_i h_i m(z_i, .) / penalty.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from widemargin.solvers.coupled.problem import CoupledProblem
from widemargin.solvers.coupled.solver import State, solve_coupled
from widemargin.solvers.solution import Solution, relative_gap

_DIRECTIONS = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, 1.0]])
_RELATION = np.array([1.0, 1.0, -2.0])


@dataclass(frozen=True, kw_only=True)
class SlackSolution(Solution):
    """Solution with a function for the slack; rho is large enough to make the slack feasible.

    Attributes
    ----------
    slack : ndarray of shape (n,)
        xi.
    slack_dual : ndarray of shape (n,)
        e(z) = sum_i slack_dual_i m(z_i, z).
    slack_weights : ndarray of shape (r,) or None
        Weights of e in the columns of the factor of M, if the solution is exact.
    slack_intercept : float
        rho.
    point : ndarray of shape (2, n)
        alpha and beta.
    """

    slack: np.ndarray
    slack_dual: np.ndarray
    slack_weights: np.ndarray | None = None
    slack_intercept: float = 0.0
    point: np.ndarray


def solve_svm1plus(
    first: np.ndarray,
    second: np.ndarray,
    sign: np.ndarray,
    cost: np.ndarray,
    penalty: float,
    *,
    factor: np.ndarray | None = None,
    low_rank: bool = False,
    tol: float = 1e-3,
    max_iter: int = -1,
    point: np.ndarray | None = None,
    report: Callable[[State], bool] | None = None,
) -> SlackSolution:
    """Solve the problem.

    Parameters
    ----------
    first, second : ndarray of shape (n, n)
        Gram matrices K and M, positive semidefinite.
    sign : ndarray of shape (n,)
        y.
    cost : ndarray of shape (n,)
        Positive.
    penalty : float
        Positive.
    factor : ndarray of shape (n, r), optional
        R where M = R R'.
    low_rank : bool, default=False
        Whether M is the matrix of a linear kernel of fewer features than samples. It selects the
        method.
    tol : float, default=1e-3
        Tolerance on the violation of the optimality conditions.
    max_iter : int, default=-1
        Limit on the number of iterations, as in `solve_coupled`.
    point : ndarray of shape (2, n), optional
        Feasible alpha and beta to start from.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.

    Returns
    -------
    SlackSolution
    """
    problem = _problem(first, second, sign, cost, penalty, factor, low_rank)
    if point is None:
        point = np.vstack([np.zeros_like(cost), cost])
    found = solve_coupled(problem, point, tol=tol, max_iter=max_iter, report=report)
    intercept, rho = _smallest_feasible(found.first, found.second, sign)
    slack = found.second + rho
    second_norm = float(found.h @ found.second)
    if found.weights is not None:
        second_norm = penalty * float(found.weights @ found.weights)
    norms = 0.5 * (float(found.g @ found.first) + second_norm)
    objective = norms + float(cost @ slack)
    dual_objective = float(found.point[0].sum()) - norms
    return SlackSolution(
        found.g,
        intercept,
        objective,
        dual_objective,
        relative_gap(objective, dual_objective),
        found.iterations,
        found.converged,
        slack=slack,
        slack_dual=found.h / penalty,
        slack_weights=found.weights,
        slack_intercept=rho,
        point=found.point,
    )


def _problem(first, second, sign, cost, penalty, factor=None, low_rank=False) -> CoupledProblem:
    """Return the dual problem."""
    n = len(sign)
    ones = np.ones((2, n))
    return CoupledProblem(
        first,
        second / penalty,
        kind=np.vstack([np.where(sign > 0, 0, 1), np.full(n, 2)]),
        lower=np.zeros((2, n)),
        upper=np.inf * ones,
        linear=ones * [[1.0], [0.0]],
        directions=_DIRECTIONS,
        relation=_RELATION,
        offset=-cost,
        exchange=True,
        factor=factor,
        penalty=penalty,
        low_rank=low_rank,
    )


def _smallest_feasible(f: np.ndarray, e: np.ndarray, sign: np.ndarray) -> tuple[float, float]:
    """Return the intercept that permits the smallest rho, and that rho.

    Every sample requires rho >= -e_i and rho >= 1 - y_i (f_i + b) - e_i.
    """
    missing = 1.0 - sign * f - e
    positive, negative = missing[sign > 0].max(), missing[sign < 0].max()
    rho = max(float(-e.min()), 0.5 * float(positive + negative))
    return 0.5 * float(positive - negative), rho
