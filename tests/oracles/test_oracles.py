"""The oracles agree with each other and with what can be worked out by hand."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from numpy.testing import assert_allclose
from sklearn import svm
from tests.oracles.hinge import Hinge, InfeasibleError, best_intercept, solve_exactly, value_of
from tests.oracles.smo import NotConvergedError, solve_by_smo
from tests.oracles.strategies import hinge_problems, inseparable_hinge_problems


def test_two_points_have_the_margin_between_them():
    X = np.array([[-1.0], [3.0]])
    answer = solve_exactly(Hinge(X @ X.T, np.array([-1.0, 1.0]), np.ones(2), np.full(2, np.inf)))
    assert_allclose(answer.alpha, [1 / 8, 1 / 8], rtol=1e-8)
    assert_allclose([answer.objective, answer.dual_objective], 1 / 8, rtol=1e-9)
    assert_allclose(answer.f + answer.intercept, [-1.0, 1.0], rtol=1e-8)


def test_one_point_without_intercept_has_a_closed_form():
    gram, one = np.array([[4.0]]), np.ones(1)
    for cost, alpha in [(np.inf, 1 / 4), (1 / 5, 1 / 5)]:
        answer = solve_exactly(Hinge(gram, one, one, cost * one, intercept=False))
        assert_allclose(answer.alpha, alpha, rtol=1e-8)
        assert_allclose(answer.dual_objective, alpha - 2 * alpha**2, rtol=1e-9)


def test_intercept_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 2))
    sign = np.where(X[:, 0] + 0.5 * rng.standard_normal(30) > 0.3, 1.0, -1.0)
    answer = solve_exactly(Hinge(X @ X.T, sign, np.ones(30), np.full(30, 2.0)))
    reference = svm.SVC(kernel="linear", C=2.0, tol=1e-10).fit(X, sign)
    assert_allclose(answer.f + answer.intercept, reference.decision_function(X), atol=1e-5)


@settings(max_examples=100)
@given(hinge_problems())
def test_exact_answer_is_feasible_and_certified(problem):
    answer = solve_exactly(problem)
    assert (answer.alpha >= 0).all()
    assert (answer.alpha <= problem.cost * (1 + 1e-15)).all()
    if problem.intercept:
        assert abs(problem.sign @ answer.alpha) <= 1e-12 * answer.alpha.sum()
    assert value_of(problem, answer.alpha) == pytest.approx(
        answer.dual_objective, abs=1e-7 * answer.scale
    )
    assert -1e-9 <= answer.gap < 2e-7


@settings(max_examples=60)
@given(hinge_problems(decades=1))
def test_smo_reaches_the_exact_optimum(problem):
    answer = solve_exactly(problem)
    try:
        reference = solve_by_smo(problem, max_iter=3_000)
    except NotConvergedError:
        assume(False)
    alpha = problem.sign * reference.dual
    assert (alpha >= 0).all()
    assert (alpha <= problem.cost).all()
    assert abs(value_of(problem, alpha) - answer.dual_objective) <= 1e-6 * answer.scale


@settings(max_examples=60)
@given(hinge_problems(decades=1))
def test_the_intercept_of_smo_is_a_minimiser(problem):
    try:
        reference = solve_by_smo(problem, max_iter=3_000)
    except NotConvergedError:
        assume(False)
    f, alpha = problem.gram @ reference.dual, problem.sign * reference.dual
    cost = np.minimum(problem.cost, alpha + alpha.max())

    def loss(intercept):
        return cost @ np.maximum(0.0, problem.margin - problem.sign * (f + intercept))

    exact = loss(best_intercept(problem, f, cost))
    assert loss(reference.intercept) <= exact + 1e-7 * max(cost.sum(), exact)


@settings(max_examples=50)
@given(inseparable_hinge_problems())
def test_infinite_costs_that_cannot_be_met_are_told(problem):
    with pytest.raises(InfeasibleError):
        solve_exactly(problem)
