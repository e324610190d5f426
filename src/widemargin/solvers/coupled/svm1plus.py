"""SVM1+: the hinge loss with slack that is a function of privileged columns.

    min over f, b, e, rho   1/2 ||f||^2 + penalty/2 ||e||^2 + sum_i cost_i xi_i
    subject to              xi_i = e(z_i) + rho >= 0,   y_i (f(x_i) + b) >= 1 - xi_i

Its dual, with g = y * alpha and h = alpha + beta - cost, over two Gram matrices K and M / penalty:

    max over alpha, beta   sum(alpha) - 1/2 g' K g - 1/(2 penalty) h' M h
    subject to             alpha, beta >= 0,   sum(g) = 0,   sum(h) = 0

alpha moves along (y, 1) and beta along (0, 1): the three lines of `two_kernels`, tied by
(1, 1) + (-1, 1) = 2 (0, 1); where a row exchanges alpha for beta its h stays. Then
f = sum_i g_i k(x_i, .) and e = sum_i h_i m(z_i, .) / penalty.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from widemargin.solvers.coupled.two_kernels import State, TwoKernelProblem, solve_two_kernels

_LINES = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, 1.0]])
_RELATION = np.array([1.0, 1.0, -2.0])
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class SlackSolution:
    """A solution whose slack is a function of its own.

    Attributes
    ----------
    dual : ndarray of shape (n,)
        g: f(x) = sum_i dual_i k(x_i, x).
    intercept : float
        b.
    slack : ndarray of shape (n,)
        xi.
    slack_dual : ndarray of shape (n,)
        e(z) = sum_i slack_dual_i m(z_i, z).
    slack_weights : ndarray of shape (r,) or None
        e in the columns of M's factor, where the solution is exact.
    slack_intercept : float
        rho.
    point : ndarray of shape (2, n)
        alpha and beta.
    objective, dual_objective, gap : float
        As in `Solution`; the slack is raised until it is feasible.
    iterations : int
    converged : bool
    """

    dual: np.ndarray
    intercept: float
    slack: np.ndarray
    slack_dual: np.ndarray
    slack_weights: np.ndarray | None
    slack_intercept: float
    point: np.ndarray
    objective: float
    dual_objective: float
    gap: float
    iterations: int
    converged: bool


def solve_svm1plus(
    first: np.ndarray,
    second: np.ndarray,
    sign: np.ndarray,
    cost: np.ndarray,
    penalty: float,
    *,
    factor: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = -1,
    point: np.ndarray | None = None,
    report: Callable[[State], bool] | None = None,
) -> SlackSolution:
    """Solve the problem.

    Parameters
    ----------
    first, second : ndarray of shape (n, n)
        K and M, positive semidefinite.
    sign : ndarray of shape (n,)
        y.
    cost : ndarray of shape (n,)
        Greater than 0.
    penalty : float
        Greater than 0.
    factor : ndarray of shape (n, r), optional
        M = factor factor'.
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
    max_iter : int, default=-1
        Most updates and steps, as in `solve_two_kernels`.
    point : ndarray of shape (2, n), optional
        Feasible alpha and beta to start from.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.

    Returns
    -------
    SlackSolution
    """
    problem = _problem(first, second, sign, cost, penalty, factor)
    if point is None:
        point = np.vstack([np.zeros_like(cost), cost])
    found = solve_two_kernels(problem, point, tol=tol, max_iter=max_iter, report=report)
    intercept, rho = _least_feasible(found.first, found.second, sign)
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
        slack,
        found.h / penalty,
        found.weights,
        rho,
        found.point,
        objective,
        dual_objective,
        max(0.0, objective - dual_objective) / max(abs(objective), _TINY),
        found.iterations,
        found.converged,
    )


def _problem(first, second, sign, cost, penalty, factor) -> TwoKernelProblem:
    """The dual."""
    n = len(sign)
    everywhere = np.ones((2, n))
    return TwoKernelProblem(
        first,
        second / penalty,
        line=np.vstack([np.where(sign > 0, 0, 1), np.full(n, 2)]),
        lower=np.zeros((2, n)),
        upper=np.inf * everywhere,
        linear=everywhere * [[1.0], [0.0]],
        lines=_LINES,
        relation=_RELATION,
        offset=-cost,
        exchange=True,
        factor=factor,
        penalty=penalty,
    )


def _least_feasible(f, e, sign) -> tuple[float, float]:
    """The intercept that lets rho be least, and that rho.

    Every row asks for rho >= -e_i and rho >= 1 - y_i (f_i + b) - e_i.
    """
    short = 1.0 - sign * f - e
    positive, negative = short[sign > 0].max(), short[sign < 0].max()
    rho = max(float(-e.min()), 0.5 * float(positive + negative))
    return 0.5 * float(positive - negative), rho
