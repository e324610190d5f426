"""SVM-2K: two machines on two descriptions of the same rows that are to agree.

    min over f, b, e, c   1/2 ||f||^2 + 1/2 ||e||^2
                          + sum_i  first_cost_i max(0, 1 - y_i F_i)
                          + sum_i  second_cost_i max(0, 1 - y_i E_i)
                          + sum_i  agreement_i max(0, |F_i - E_i| - epsilon)

where F_i = f(x_i) + b and E_i = e(z_i) + c. In the dual every row has a variable for its margin in
the first view, one for that in the second, and two that hold the views together from both sides,
which move along (1, 0), (0, 1) and (-1, 1): the three lines of `two_kernels`, tied by
(1, 0) - (0, 1) + (-1, 1) = 0.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from widemargin.solvers.coupled.two_kernels import State, TwoKernelProblem, solve_two_kernels

_LINES = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])
_RELATION = np.array([1.0, -1.0, 1.0])
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class TwoViewSolution:
    """Both machines.

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


def solve_two_view(
    first: np.ndarray,
    second: np.ndarray,
    sign: np.ndarray,
    costs: np.ndarray,
    agreement: np.ndarray,
    epsilon: float,
    *,
    tol: float = 1e-3,
    max_iter: int = -1,
    report: Callable[[State], bool] | None = None,
) -> TwoViewSolution:
    """Solve the problem.

    Parameters
    ----------
    first, second : ndarray of shape (n, n)
        The Gram matrices of the views, positive semidefinite.
    sign : ndarray of shape (n,)
        y.
    costs : ndarray of shape (2, n)
        Of slack in each view.
    agreement : ndarray of shape (n,)
        Cost of disagreement; at least 0.
    epsilon : float
        Disagreement that costs nothing.
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
    max_iter : int, default=-1
        Most updates and steps, as in `solve_two_kernels`.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.

    Returns
    -------
    TwoViewSolution
    """
    problem = _problem(first, second, sign, costs, agreement, epsilon)
    nothing = np.zeros(problem.line.shape)
    found = solve_two_kernels(problem, nothing, tol=tol, max_iter=max_iter, report=report)
    b, c = found.constants
    norms = 0.5 * float(found.g @ found.first + found.h @ found.second)
    short = np.maximum(0.0, 1.0 - sign * np.vstack([found.first + b, found.second + c]))
    apart = np.maximum(0.0, np.abs(found.first + b - found.second - c) - epsilon)
    objective = norms + float((costs * short).sum() + agreement @ apart)
    dual_objective = float((problem.linear * found.point).sum()) - norms
    return TwoViewSolution(
        np.vstack([found.g, found.h]),
        found.constants,
        objective,
        dual_objective,
        max(0.0, objective - dual_objective) / max(abs(objective), _TINY),
        found.iterations,
        found.converged,
    )


def _problem(first, second, sign, costs, agreement, epsilon) -> TwoKernelProblem:
    """The dual; without epsilon both sides of the agreement are one variable."""
    n = len(sign)
    nothing = np.zeros(n)
    ends = sign * costs
    lower, upper = [np.minimum(ends, 0.0)], [np.maximum(ends, 0.0)]
    if epsilon > 0.0:
        line, linear = [0, 1, 2, 2], [sign, sign, nothing - epsilon, nothing + epsilon]
        lower += [nothing, -agreement]
        upper += [agreement, nothing]
    else:
        line, linear = [0, 1, 2], [sign, sign, nothing]
        lower += [-agreement]
        upper += [agreement]
    return TwoKernelProblem(
        first,
        second,
        line=np.repeat(np.array(line)[:, np.newaxis], n, axis=1),
        lower=np.vstack(lower),
        upper=np.vstack(upper),
        linear=np.vstack(linear),
        lines=_LINES,
        relation=_RELATION,
        offset=nothing,
    )
