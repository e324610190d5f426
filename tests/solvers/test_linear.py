"""Both solvers of linear machines find the exact optimum, by any way and from anywhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.svm import LinearSVC
from tests.oracles.hinge import Hinge, solve_exactly

from widemargin.solvers.hinge import dual_coordinate_descent as linear_descent
from widemargin.solvers.hinge import newton as linear_newton
from widemargin.solvers.hinge.dual_coordinate_descent import descend_linear
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.newton import newton_linear


def numbers(seed, n=60, d=4, squared=False, bias=1.0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.standard_normal((n, d))
    sign = np.where(X[:, 0] + 0.7 * scale * rng.standard_normal(n) > 0, 1.0, -1.0)
    return LinearProblem(X, sign, rng.uniform(0.1, 5.0, n), squared, bias)


def exact(problem):
    """The optimum: with softness added to the diagonal, the squared hinge is a hard margin."""
    gram = problem.X @ problem.X.T + problem.bias**2 + np.diag(problem.softness())
    ones = np.ones(problem.size)
    answer = solve_exactly(Hinge(gram, problem.sign, ones, problem.ceiling(), intercept=False))
    return answer.dual_objective


def as_csr(problem):
    return LinearProblem(
        sparse.csr_array(problem.X), problem.sign, problem.cost, problem.squared, problem.bias
    )


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    squared=st.booleans(),
    bias=st.sampled_from([0.0, 1.0, 10.0]),
    scale=st.sampled_from([1e-2, 1.0, 1e2]),
)
def test_coordinate_descent_reaches_the_exact_optimum(seed, squared, bias, scale):
    problem = numbers(seed, squared=squared, bias=bias, scale=scale)
    solution = descend_linear(problem, max_iter=100_000)
    optimum = exact(problem)
    assert solution.converged
    assert_allclose([solution.objective, solution.dual_objective], optimum, rtol=1e-6)
    assert solution.gap < 1e-6


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    bias=st.sampled_from([0.0, 1.0, 10.0]),
    scale=st.sampled_from([1e-2, 1.0, 1e2]),
)
def test_newton_reaches_the_exact_optimum(seed, bias, scale):
    problem = numbers(seed, squared=True, bias=bias, scale=scale)
    solution = newton_linear(problem)
    assert solution.converged
    assert_allclose([solution.objective, solution.dual_objective], exact(problem), rtol=1e-7)


@pytest.mark.parametrize("squared", [False, True])
def test_dense_and_sparse_rows_give_the_same(squared):
    problem = numbers(0, squared=squared)
    dense, other = (descend_linear(p, tol=1e-8) for p in (problem, as_csr(problem)))
    assert_allclose(other.weights, dense.weights, rtol=1e-7, atol=1e-9)
    if squared:
        newton = [newton_linear(p).weights for p in (problem, as_csr(problem))]
        assert_allclose(newton[0], dense.weights, rtol=1e-6, atol=1e-8)
        assert_allclose(newton[1], newton[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_newton_by_conjugate_gradients_agrees_with_descent(container):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, linear_newton.DIRECT_FEATURES + 10))
    X[rng.random(X.shape) < 0.9] = 0.0
    sign = np.where(rng.random(150) < 0.4, 1.0, -1.0)
    problem = LinearProblem(container(X), sign, np.full(150, 0.1), True, 1.0)
    newton, descent = newton_linear(problem, tol=1e-9), descend_linear(problem, tol=1e-9)
    assert_allclose(newton.objective, descent.objective, rtol=1e-9)
    assert newton.gap < 1e-9


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_objective_is_that_of_liblinear(loss):
    problem = numbers(3, n=400, d=10, squared=loss == "squared_hinge")
    peer = LinearSVC(loss=loss, dual=True, tol=1e-9, max_iter=1_000_000, random_state=0)
    peer.fit(problem.X, problem.sign, sample_weight=problem.cost)
    weights = np.append(peer.coef_, peer.intercept_)
    slack = np.maximum(0.0, 1.0 - problem.sign * problem.scores(weights))
    objective = 0.5 * weights @ weights + problem.cost @ (slack**2 if problem.squared else slack)
    solution = descend_linear(problem, tol=1e-8, max_iter=100_000)
    assert_allclose(solution.objective, objective, rtol=1e-6)


def test_the_gap_bounds_the_distance_to_the_optimum():
    problem = numbers(1, n=200, d=10)
    optimum = exact(problem)
    for passes in (1, 3, 10):
        solution = descend_linear(problem, max_iter=passes)
        assert not solution.converged
        assert solution.iterations == passes
        assert solution.dual_objective <= optimum * (1 + 1e-9)
        assert solution.objective - optimum <= solution.gap * solution.objective * (1 + 1e-9)


def test_shrinking_does_not_change_the_answer():
    problem = numbers(2, n=300, d=8)
    with_it, without = (
        descend_linear(problem, tol=1e-7, shrinking=s, max_iter=100_000) for s in (True, False)
    )
    assert_allclose(with_it.objective, without.objective, rtol=1e-9)


def test_rows_without_features_cost_what_they_cost():
    problem = numbers(4, bias=0.0)
    problem.X[:5] = 0.0
    solution = descend_linear(problem, max_iter=100_000)
    assert_allclose(solution.objective, exact(problem), rtol=1e-6)


def test_seeds_change_the_way_but_not_the_end():
    problem = numbers(5, n=200)
    first, second = (descend_linear(problem, seed=seed, max_iter=2) for seed in (0, 1))
    assert np.abs(first.weights - second.weights).max() > 1e-6
    first, second = (descend_linear(problem, seed=seed) for seed in (0, 1))
    assert_allclose(first.weights, second.weights, rtol=1e-6, atol=1e-8)


def test_a_warm_start_at_the_optimum_ends_at_once():
    problem = numbers(6, n=300, d=6, squared=True)
    solution = descend_linear(problem, tol=1e-6, max_iter=100_000)
    again = descend_linear(problem, tol=1e-5, dual=solution.dual)
    assert again.iterations <= 2 < solution.iterations
    assert newton_linear(problem, weights=newton_linear(problem).weights).iterations <= 1


def test_a_start_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"dual must have shape \(60,\), got \(3,\)"):
        descend_linear(numbers(0), dual=np.zeros(3))


@pytest.mark.parametrize("solver", [linear_descent, linear_newton])
def test_a_solver_goes_on_elsewhere_to_the_same_bits(solver, monkeypatch):
    monkeypatch.setattr(linear_descent, "_CHUNK_PASSES", 1)
    problem = numbers(7, n=150, d=20, squared=True)
    straight, stopped = solver.start(problem), solver.start(problem)
    for _ in range(2):
        solver.advance(straight)
        solver.advance(stopped)
    elsewhere = solver.start(problem).resume(stopped.numbers())
    assert not elsewhere.finished
    for state in (straight, elsewhere):
        while not solver.advance(state):
            pass
    assert straight.iterations == elsewhere.iterations > 2
    assert_array_equal(elsewhere.weights, straight.weights)


def test_a_report_may_stop_the_solvers(monkeypatch):
    monkeypatch.setattr(linear_descent, "_CHUNK_PASSES", 1)
    problem = numbers(8, n=500, d=30, squared=True)
    for solve in (descend_linear, newton_linear):
        solution = solve(problem, report=lambda state: True)
        assert not solution.converged
        assert solution.gap > 1e-6


def test_leaps_do_not_keep_short_slices_from_the_end_of_a_pass(monkeypatch):
    problem = numbers(9, n=300, d=10)
    expected = descend_linear(problem, max_iter=100_000).objective
    monkeypatch.setattr(linear_descent, "_SLICE_WORK", 500)
    state = linear_descent.start(problem, max_iter=100_000)
    slices = 0
    while not linear_descent.advance(state):
        slices += 1
        assert slices < 100_000
    assert_allclose(linear_descent.finish(state).objective, expected, rtol=1e-6)


def test_a_pass_may_leave_out_all_rows():
    rows = numbers(10, n=40, d=2)
    problem = LinearProblem(rows.X, rows.sign, np.full(40, 1e-4), False, 1.0)
    # With so small costs all rows are at their bounds; between equal extremes lies no gradient.
    state = linear_descent.start(problem, dual=problem.cost)
    state.extremes[2:] = 0.0
    assert linear_descent.advance(state)
    assert state.converged
    assert state.iterations == 2
    assert_array_equal(state.dual, problem.cost)
