"""Linear problems, and their exact optimum."""

import numpy as np
from scipy import sparse
from tests.oracles.hinge import Hinge, solve_exactly

from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.losses import LOSSES


def linear_problem(seed, n=60, d=4, loss="hinge", bias=1.0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_normal((n, d))
    sign = np.where(X[:, 0] + 0.7 * scale * rng.standard_normal(n) > 0, 1.0, -1.0)
    return LinearProblem(X, sign, rng.uniform(0.1, 5.0, n), LOSSES[loss], bias)


def optimum(problem):
    """The optimal objective: softness is an addition to the diagonal of the Gram matrix."""
    gram = problem.X @ problem.X.T + problem.bias**2 + np.diag(problem.softness())
    margin = np.broadcast_to(problem.margin, problem.sign.shape)
    exact = solve_exactly(Hinge(gram, problem.sign, margin, problem.ceiling(), intercept=False))
    return exact.dual_objective


def as_csr(problem):
    X = sparse.csr_array(problem.X)
    return LinearProblem(
        X, problem.sign, problem.cost, problem.loss, problem.bias, margin=problem.margin
    )
