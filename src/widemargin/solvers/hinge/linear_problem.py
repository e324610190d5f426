"""The problem of linear machines, and what solving it gives.

    min over w   1/2 ||w||^2  +  sum_i cost_i * loss(margin_i - sign_i <w, z_i>)

with loss(s) = max(0, s), the hinge, or its square, over rows z_i = (x_i, bias): the intercept is
the weight of one more feature with the constant value ``bias``, and is regularised like the others.

The dual, with w = sum_i sign_i alpha_i z_i:

    max over alpha   sum_i margin_i alpha_i - 1/2 ||w||^2 - 1/2 sum_i softness_i alpha_i^2
    subject to       0 <= alpha_i <= ceiling_i

where softness is 0 and ceiling is cost for the hinge, and softness is 1 / (2 cost) and ceiling is
infinite for its square.

`linear_descent` solves the dual, `linear_newton` the primal of the squared hinge.
"""

from dataclasses import dataclass

import numpy as np

from widemargin._base.threads import single_threaded_blas
from widemargin.solvers import states as coordinate


@dataclass(frozen=True)
class LinearProblem:
    """Numbers that make a linear problem.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Float64; C-contiguous, or CSR without duplicate entries.
    sign : ndarray of shape (n,)
        +1 or -1.
    cost : ndarray of shape (n,)
        Positive and finite.
    squared : bool
        Whether the loss is the squared hinge.
    bias : float, default=0.0
        The constant feature; 0 for no intercept.
    margin : ndarray of shape (n,) or float, default=1.0
        Positive.
    norms : ndarray of shape (n,), optional
        Squared lengths of the rows of X, where they are known already.
    """

    X: np.ndarray
    sign: np.ndarray
    cost: np.ndarray
    squared: bool
    bias: float = 0.0
    margin: np.ndarray | float = 1.0
    norms: np.ndarray | None = None

    @property
    def size(self) -> int:
        return len(self.sign)

    @property
    def entries(self) -> int:
        """How many numbers a pass over the rows reads."""
        return coordinate.entries(self.X)

    def margins(self) -> np.ndarray:
        return np.broadcast_to(self.margin, self.sign.shape)

    def softness(self) -> np.ndarray:
        if not self.squared:
            return np.zeros(self.size)
        return 0.5 / np.maximum(self.cost, np.finfo(float).tiny)

    def ceiling(self) -> np.ndarray:
        return np.full(self.size, np.inf) if self.squared else self.cost

    def part(self, rows: np.ndarray) -> "LinearProblem":
        """The problem of some of the rows."""
        numbers = self.sign[rows], self.cost[rows], self.squared, self.bias, self.margins()[rows]
        return LinearProblem(self.X[rows], *numbers)

    def slack(self, scores: np.ndarray) -> np.ndarray:
        """What every row lacks for its margin; negative if nothing."""
        return self.margin - self.sign * scores

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """<w, z_i> of all rows."""
        with single_threaded_blas():
            return self.X @ weights[:-1] + self.bias * weights[-1]

    def combine(self, coefficients: np.ndarray) -> np.ndarray:
        """sum_i coefficients_i z_i."""
        with single_threaded_blas():
            features = self.X.T @ coefficients
        return np.append(features, self.bias * coefficients.sum())


@dataclass(frozen=True)
class LinearSolution:
    """What a solver found.

    Attributes
    ----------
    weights : ndarray of shape (d + 1,)
        Of the features and of the constant one.
    dual : ndarray of shape (n,)
        A feasible alpha.
    objective : float
    dual_objective : float
        Value of the dual at ``dual``, a lower bound of the objective.
    gap : float
        (objective - dual_objective) / objective; at most 1, since no objective is negative.
    iterations : int
    converged : bool
    """

    weights: np.ndarray
    dual: np.ndarray
    objective: float
    dual_objective: float
    gap: float
    iterations: int
    converged: bool


def certify(problem, weights, dual, combined, iterations, converged) -> LinearSolution:
    """The solution at ``weights``, with the bound that ``dual`` proves.

    ``combined`` is ``problem.combine(problem.sign * dual)``.
    """
    slack = np.maximum(0.0, problem.slack(problem.scores(weights)))
    loss = np.sum(problem.cost * (slack * slack if problem.squared else slack))
    objective = float(0.5 * np.sum(weights * weights) + loss)
    softened = 0.5 * np.sum(problem.softness() * dual * dual)
    dual_objective = float(
        np.sum(problem.margin * dual) - 0.5 * np.sum(combined * combined) - softened
    )
    gap = max(0.0, objective - max(dual_objective, 0.0)) / max(objective, np.finfo(float).tiny)
    return LinearSolution(weights, dual, objective, dual_objective, gap, iterations, converged)


def check_dual(problem, dual) -> np.ndarray:
    """A copy of ``dual`` put into the box of the problem, to start from."""
    dual = np.array(dual, dtype=np.float64)
    if dual.shape != problem.sign.shape:
        raise ValueError(f"dual must have shape {problem.sign.shape}, got {dual.shape}.")
    return np.clip(dual, 0.0, problem.ceiling())
