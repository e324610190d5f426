"""The problem of linear classifiers.

    min over w   1/2 ||w||^2  +  sum_i cost_i * loss(margin_i - sign_i <w, z_i>)

over z_i = (x_i, bias): the intercept is the weight of one more feature with the constant value
``bias``, and is regularized like the others. `losses` has the losses.

The dual, with w = sum_i sign_i alpha_i z_i:

    max over alpha   sum_i margin_i alpha_i - 1/2 ||w||^2 - 1/2 sum_i softness_i alpha_i^2
    subject to       0 <= alpha_i <= ceiling_i

where softness and ceiling depend on the loss: 0 and cost for the hinge, 1 / (2 cost) and infinity
for the squared hinge.

`dual_coordinate_descent` solves the dual, `newton` the primal of a differentiable loss.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from widemargin._base.threads import single_threaded_blas
from widemargin.solvers.hinge.losses import Loss
from widemargin.solvers.solution import Solution, relative_gap


@dataclass(frozen=True)
class LinearProblem:
    """Arrays and numbers that define the problem of a linear classifier.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        Float64; C-contiguous, or CSR with 32-bit indices and without duplicate entries.
    sign : ndarray of shape (n,)
        +1 or -1.
    cost : ndarray of shape (n,)
        Positive and finite.
    loss : Loss
    bias : float, default=0.0
        Value of the constant feature; 0 for no intercept.
    margin : ndarray of shape (n,) or float, default=1.0
        Of any sign.
    norms : ndarray of shape (n,), optional
        Squared norms of the rows of X, if they are known already.
    """

    X: Any
    sign: np.ndarray
    cost: np.ndarray
    loss: Loss
    bias: float = 0.0
    margin: np.ndarray | float = 1.0
    norms: np.ndarray | None = None

    @property
    def size(self) -> int:
        return len(self.sign)

    def softness(self) -> np.ndarray:
        return self.loss.softness(self.cost)

    def ceiling(self) -> np.ndarray:
        return self.loss.ceiling(self.cost)

    def subset(self, index: np.ndarray) -> Self:
        """Return the problem of some of the samples."""
        margin = np.broadcast_to(self.margin, self.sign.shape)[index]
        return type(self)(
            self.X[index], self.sign[index], self.cost[index], self.loss, self.bias, margin
        )

    def slack(self, scores: np.ndarray) -> np.ndarray:
        """Return margin - sign * score of all samples; positive where there is a loss."""
        return self.margin - self.sign * scores

    def scores(self, weights: np.ndarray) -> np.ndarray:
        """Compute <w, z_i> of all samples."""
        with single_threaded_blas():
            return self.X @ weights[:-1] + self.bias * weights[-1]

    def combine(self, coefficients: np.ndarray) -> np.ndarray:
        """Compute sum_i coefficients_i z_i."""
        with single_threaded_blas():
            features = self.X.T @ coefficients
        return np.append(features, self.bias * coefficients.sum())


def certify(state: Any, weights: np.ndarray, dual: np.ndarray, combined: np.ndarray) -> Solution:
    """Return the solution at ``weights``, with the bound given by the signed ``dual``.

    ``combined`` is ``problem.combine(dual)``. The state has the problem, and how far its solver is.
    """
    problem = state.problem
    loss = problem.loss.value(problem.slack(problem.scores(weights)))
    objective = float(0.5 * np.sum(weights * weights) + np.sum(problem.cost * loss))
    linear = np.sum(problem.sign * problem.margin * dual)
    bound = float(linear - 0.5 * np.sum(combined * combined))
    if problem.loss.differentiable:
        bound -= float(0.5 * np.sum(problem.softness() * dual * dual))
    gap = relative_gap(objective, max(bound, 0.0))  # no objective is negative
    intercept, status = problem.bias * float(weights[-1]), (state.iterations, state.converged)
    return Solution(dual, intercept, objective, bound, gap, *status, weights)
