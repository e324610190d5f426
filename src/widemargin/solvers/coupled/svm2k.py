"""SVM-2K: two classifiers on two views of the same samples, with a penalty on disagreement.

    min over f, b, e, c   1/2 ||f||^2 + 1/2 ||e||^2
                          + sum_i  first_cost_i max(0, 1 - y_i F_i)
                          + sum_i  second_cost_i max(0, 1 - y_i E_i)
                          + sum_i  agreement_i max(0, |F_i - E_i| - epsilon)

where F_i = f(x_i) + b and E_i = e(z_i) + c. The dual is the coupled problem (`problem`): every
sample has a variable for its margin in the first view with the direction (1, 0), one for its margin
in the second with (0, 1), and two for the two sides of the disagreement with (-1, 1), related by
(1, 0) - (0, 1) + (-1, 1) = 0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from widemargin.solvers.coupled.problem import CoupledProblem
from widemargin.solvers.coupled.solver import State, solve_coupled
from widemargin.solvers.solution import relative_gap

_DIRECTIONS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])
_RELATION = np.array([1.0, -1.0, 1.0])


@dataclass(frozen=True)
class TwoViewSolution:
    """Solution for both views.

    Attributes
    ----------
    duals : ndarray of shape (2, n)
        f(x) = sum_i duals[0, i] k(x_i, x), and e likewise.
    intercepts : ndarray of shape (2,)
        b and c.
    objective, dual_objective, gap : float
        As in `Solution`.
    iterations : int
    converged : bool
    """

    duals: np.ndarray
    intercepts: np.ndarray
    objective: float
    dual_objective: float
    gap: float
    iterations: int
    converged: bool


def solve_svm2k(
    first: np.ndarray,
    second: np.ndarray,
    sign: np.ndarray,
    costs: np.ndarray,
    agreement: np.ndarray,
    epsilon: float,
    *,
    low_rank: bool = False,
    tol: float = 1e-3,
    max_iter: int = -1,
    report: Callable[[State], bool] | None = None,
) -> TwoViewSolution:
    """Solve the problem.

    Parameters
    ----------
    first, second : ndarray of shape (n, n)
        Gram matrices of the views, positive semidefinite.
    sign : ndarray of shape (n,)
        y.
    costs : ndarray of shape (2, n)
        Costs of the slack in each view.
    agreement : ndarray of shape (n,)
        Costs of disagreement, non-negative.
    epsilon : float
        Disagreement without cost.
    low_rank : bool, default=False
        Whether the second matrix is that of a linear kernel of fewer features than samples. It
        selects the method.
    tol : float, default=1e-3
        Tolerance on the violation of the optimality conditions.
    max_iter : int, default=-1
        Limit on the number of iterations, as in `solve_coupled`.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.

    Returns
    -------
    TwoViewSolution
    """
    problem = _problem(first, second, sign, costs, agreement, epsilon, low_rank)
    zeros = np.zeros(problem.kind.shape)
    found = solve_coupled(problem, zeros, tol=tol, max_iter=max_iter, report=report)
    b, c = found.constants
    norms = 0.5 * float(found.g @ found.first + found.h @ found.second)
    slack = np.maximum(0.0, 1.0 - sign * np.vstack([found.first + b, found.second + c]))
    disagreement = np.maximum(0.0, np.abs(found.first + b - found.second - c) - epsilon)
    objective = norms + float((costs * slack).sum() + agreement @ disagreement)
    dual_objective = float((problem.linear * found.point).sum()) - norms
    return TwoViewSolution(
        np.vstack([found.g, found.h]),
        found.constants,
        objective,
        dual_objective,
        relative_gap(objective, dual_objective),
        found.iterations,
        found.converged,
    )


def _problem(first, second, sign, costs, agreement, epsilon, low_rank=False) -> CoupledProblem:
    """Return the dual problem; with epsilon 0 one variable serves both sides of a disagreement."""
    n = len(sign)
    zeros = np.zeros(n)
    ends = sign * costs
    lower, upper = [np.minimum(ends, 0.0)], [np.maximum(ends, 0.0)]
    if epsilon > 0.0:
        kind, linear = [0, 1, 2, 2], [sign, sign, zeros - epsilon, zeros + epsilon]
        lower += [zeros, -agreement]
        upper += [agreement, zeros]
    else:
        kind, linear = [0, 1, 2], [sign, sign, zeros]
        lower += [-agreement]
        upper += [agreement]
    return CoupledProblem(
        first,
        second,
        kind=np.repeat(np.array(kind)[:, np.newaxis], n, axis=1),
        lower=np.vstack(lower),
        upper=np.vstack(upper),
        linear=np.vstack(linear),
        directions=_DIRECTIONS,
        relation=_RELATION,
        offset=zeros,
        low_rank=low_rank,
    )
