"""A new loss is one class: both linear solvers and `LinearSVC` take it from the registry."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import check_grad, minimize
from sklearn.datasets import load_iris
from tests.solvers.hinge.linear_cases import as_csr, linear_problem, optimum

from widemargin import LinearSVC
from widemargin.solvers.hinge.dual_coordinate_descent import solve_dual
from widemargin.solvers.hinge.losses import LOSSES, Loss, register_loss
from widemargin.solvers.hinge.newton import solve_primal

DELTA = 0.5


class HuberizedHinge(Loss):
    """s^2 / (2 delta) up to a slack of delta, s - delta / 2 beyond it."""

    name = "huberized_hinge"
    curvature = 1.0 / DELTA
    slope = 1.0


class SteepHinge(Loss):
    """3 max(0, s)."""

    name = "steep_hinge"
    curvature = np.inf
    slope = 3.0


@pytest.fixture(scope="module", autouse=True)
def new_losses():
    for loss in (HuberizedHinge, SteepHinge):
        register_loss(loss)
    yield
    for loss in (HuberizedHinge, SteepHinge):
        del LOSSES[loss.name]


def huberized_hinge(slack):
    """The loss and its derivative, written independently of the class."""
    values = np.where(slack < DELTA, slack**2 / (2 * DELTA), slack - DELTA / 2)
    slopes = np.where(slack < DELTA, slack / DELTA, 1.0)
    return np.where(slack > 0, values, 0.0), np.where(slack > 0, slopes, 0.0)


def minimized(problem):
    """The optimum of the primal, by a method that knows nothing of duals."""

    def objective(weights):
        slack = problem.margin - problem.sign * problem.scores(weights)
        values, slopes = huberized_hinge(slack)
        gradient = weights - problem.combine(problem.cost * slopes * problem.sign)
        return 0.5 * weights @ weights + problem.cost @ values, gradient

    start = np.zeros(problem.X.shape[1] + 1)
    return minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-6}).fun


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), bias=st.sampled_from([0.0, 1.0]))
def test_a_smooth_loss_with_a_linear_part_is_solved_by_both_methods(seed, bias):
    problem = linear_problem(seed, loss="huberized_hinge", bias=bias)
    expected = minimized(problem)
    assert_allclose(optimum(problem), expected, rtol=1e-7)
    for solution in (
        solve_dual(problem, max_iter=100_000),
        solve_dual(as_csr(problem), gap_tol=1e-8, max_iter=-1),
        solve_primal(problem),
        solve_primal(as_csr(problem)),
    ):
        assert solution.converged
        assert_allclose(solution.objective, expected, rtol=1e-7)
        assert solution.dual_objective <= expected * (1 + 1e-9)
        assert solution.gap < 1e-6
        assert (np.abs(solution.dual) <= problem.cost * (1 + 1e-12)).all()


def test_a_loss_with_a_kink_is_solved_in_the_dual():
    problem = linear_problem(0, loss="steep_hinge")
    solution = solve_dual(problem, max_iter=100_000)
    assert_allclose(solution.objective, optimum(problem), rtol=1e-7)
    slack = np.maximum(0.0, 1.0 - problem.sign * problem.scores(solution.weights))
    weights = solution.weights
    assert_allclose(solution.objective, 0.5 * weights @ weights + 3.0 * problem.cost @ slack)


@pytest.mark.large
def test_linear_svc_takes_the_new_loss_by_its_name():
    X, y = load_iris(return_X_y=True)
    primal, dual = (
        LinearSVC(loss="huberized_hinge", dual=way, max_iter=100_000).fit(X, y)
        for way in ("auto", True)
    )
    assert (primal.dual_gap_ < 1e-9).all()
    assert_allclose(primal.objective_, dual.objective_, rtol=1e-8)
    with pytest.raises(ValueError, match="dual=False is not supported with loss='steep_hinge'"):
        LinearSVC(loss="steep_hinge", dual=False).fit(X, y)
    assert (LinearSVC(loss="steep_hinge", max_iter=100_000).fit(X, y).dual_gap_ < 1e-6).all()


@pytest.mark.parametrize("name", ["squared_hinge", "huberized_hinge"])
def test_derivatives_are_those_of_the_value(name):
    loss = LOSSES[name]
    for slack in (-1.0, 0.2, 0.7, 3.0):
        point = np.array([slack])
        error = check_grad(lambda s: loss.value(s)[0], loss.derivative, point)
        assert error < 1e-6
        assert loss.is_curved(point)[0] == (0.0 < slack < loss.width)


@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "huberized_hinge", "steep_hinge"])
def test_the_declared_dual_is_the_conjugate(name):
    loss, cost, grid = LOSSES[name], np.array([0.7]), np.linspace(0.0, 50.0, 200_001)
    ceiling, softness = loss.ceiling(cost)[0], loss.softness(cost)[0]
    for alpha in (0.0, 0.3 * min(ceiling, 5.0), min(ceiling, 5.0)):
        conjugate = np.max(alpha * grid - cost[0] * loss.value(grid))
        assert_allclose(conjugate, 0.5 * softness * alpha**2, atol=1e-6)
