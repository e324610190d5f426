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
import scipy.sparse as sp

from widemargin._base import extended
from widemargin._base.numeric import EPSILON
from widemargin._base.options import kernel_options
from widemargin._base.options import smo_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.kernels.functions import squared_norms
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
    Where rounding errors may matter, both are computed with twice the digits of float64, as far as
    that does not take too long; otherwise a bound of the errors is added to the gap.
    """
    problem = state.problem
    slack = problem.slack(problem.scores(weights))
    objective, bound = _objectives(problem, weights, slack, dual, np.sum(combined * combined))
    error = _rounding_error(problem, weights, slack, dual, combined)
    rounded = error > options.negligible_rounding * objective
    if rounded and problem.size * len(weights) <= kernel_options.exact_sum_work:
        exact = _exact_objectives(problem, weights, dual)
        if np.isfinite(exact).all():
            (objective, bound), error = exact, 0.0
    gap = relative_gap(objective, bound - error if rounded else bound)
    intercept, status = problem.bias * float(weights[-1]), (state.iterations, state.converged)
    return Solution(dual, intercept, objective, bound, gap, *status, weights, rounded)


def is_rounded(
    problem: LinearProblem, weights: np.ndarray, dual: np.ndarray, combined: np.ndarray
) -> bool:
    """Return whether rounding errors of the objectives matter; see `certify`."""
    slack = problem.slack(problem.scores(weights))
    loss = 0.5 * np.sum(weights * weights) + np.sum(problem.cost * problem.loss.value(slack))
    error = _rounding_error(problem, weights, slack, dual, combined)
    return bool(error > options.negligible_rounding * loss)


def _objectives(
    problem: LinearProblem, weights: np.ndarray, slack: np.ndarray, dual: np.ndarray, norm: float
) -> tuple[float, float]:
    """Return the primal and the dual objective; ``norm`` is ||sum_i dual_i z_i||^2."""
    loss = problem.loss.value(slack)
    objective = float(0.5 * np.sum(weights * weights) + np.sum(problem.cost * loss))
    bound = float(np.sum(problem.sign * problem.margin * dual) - 0.5 * norm)
    if problem.loss.differentiable:
        bound -= float(0.5 * np.sum(problem.softness() * dual * dual))
    return objective, bound


def _exact_objectives(
    problem: LinearProblem, weights: np.ndarray, dual: np.ndarray
) -> tuple[float, float]:
    """Return both objectives from sums with twice the digits of float64."""
    dense = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    samples = np.hstack([dense, np.full((problem.size, 1), problem.bias)])
    scores = extended.matrix_product(extended.exact(samples), extended.exact(weights))
    slack = problem.slack(scores[0]) - problem.sign * scores[1]
    combined, rest = extended.matrix_product(extended.exact(samples.T), extended.exact(dual))
    norm = float(np.sum(combined * combined) + 2.0 * np.sum(combined * rest))
    return _objectives(problem, weights, slack, dual, norm)


def _rounding_error(
    problem: LinearProblem,
    weights: np.ndarray,
    slack: np.ndarray,
    dual: np.ndarray,
    combined: np.ndarray,
) -> float:
    """Return a bound of the rounding errors of both objectives."""
    norms = squared_norms(problem.X) if problem.norms is None else problem.norms
    roots = np.sqrt(norms + problem.bias**2)
    errors = EPSILON * (np.sqrt(np.sum(weights * weights)) * roots + np.abs(slack))
    loss = problem.loss.value(slack + errors) - problem.loss.value(slack)
    moved = EPSILON * float(np.sum(np.abs(dual) * roots))
    norm = moved * (float(np.sqrt(np.sum(combined * combined))) + moved)
    return float(np.sum(problem.cost * loss)) + norm
