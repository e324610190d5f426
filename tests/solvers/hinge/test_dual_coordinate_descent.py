"""Dual coordinate descent finds the exact optimum of linear problems, from anywhere."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.svm import LinearSVC
from tests.oracles.hinge import Hinge, solve_exactly
from tests.oracles.strategies import hinge_problems
from tests.solvers.hinge.linear_cases import as_csr, linear_problem, optimum

from widemargin.solvers.hinge import dual_coordinate_descent
from widemargin.solvers.hinge.dual_coordinate_descent import solve_dual
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.losses import Hinge as HingeLoss

LOSS_NAMES = ["hinge", "squared_hinge"]


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from(LOSS_NAMES),
    bias=st.sampled_from([0.0, 1.0, 10.0]),
    scale=st.sampled_from([1e-2, 1.0, 1e2]),
)
def test_coordinate_descent_reaches_the_exact_optimum(seed, loss, bias, scale):
    problem = linear_problem(seed, loss=loss, bias=bias, scale=scale)
    solution = solve_dual(problem, max_iter=100_000)
    assert solution.converged
    assert_allclose([solution.objective, solution.dual_objective], optimum(problem), rtol=1e-6)
    assert solution.gap < 1e-6


@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_dense_and_sparse_samples_give_the_same(loss):
    problem = linear_problem(0, loss=loss)
    dense, other = (solve_dual(p, tol=1e-8) for p in (problem, as_csr(problem)))
    assert_allclose(other.weights, dense.weights, rtol=1e-7, atol=1e-9)


@pytest.mark.large
@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_the_objective_is_that_of_liblinear(loss):
    problem = linear_problem(3, n=400, d=10, loss=loss)
    peer = LinearSVC(loss=loss, dual=True, tol=1e-9, max_iter=1_000_000, random_state=0)
    peer.fit(problem.X, problem.sign, sample_weight=problem.cost)
    weights = np.append(peer.coef_, peer.intercept_)
    slack = np.maximum(0.0, 1.0 - problem.sign * problem.scores(weights))
    objective = 0.5 * weights @ weights + problem.cost @ (
        slack**2 if loss == "squared_hinge" else slack
    )
    solution = solve_dual(problem, tol=1e-8, max_iter=100_000)
    assert_allclose(solution.objective, objective, rtol=1e-6)


def test_the_gap_bounds_the_distance_to_the_optimum():
    problem = linear_problem(1, n=200, d=10)
    best = optimum(problem)
    for passes in (1, 3, 10):
        solution = solve_dual(problem, max_iter=passes)
        assert not solution.converged
        assert solution.iterations == passes
        assert solution.dual_objective <= best * (1 + 1e-9)
        assert solution.objective - best <= solution.gap * solution.objective * (1 + 1e-9)


@pytest.mark.large
def test_shrinking_does_not_change_the_answer():
    problem = linear_problem(2, n=300, d=8)
    with_it, without = (
        solve_dual(problem, tol=1e-7, shrinking=s, max_iter=100_000) for s in (True, False)
    )
    assert_allclose(with_it.objective, without.objective, rtol=1e-9)


def test_samples_of_zeros_have_a_constant_loss():
    problem = linear_problem(4, bias=0.0)
    problem.X[:5] = 0.0
    solution = solve_dual(problem, max_iter=100_000)
    assert_allclose(solution.objective, optimum(problem), rtol=1e-6)


def test_seeds_change_the_path_but_not_the_solution():
    problem = linear_problem(5, n=200)
    first, second = (solve_dual(problem, seed=seed, max_iter=2) for seed in (0, 1))
    assert np.abs(first.weights - second.weights).max() > 1e-6
    first, second = (solve_dual(problem, seed=seed) for seed in (0, 1))
    assert_allclose(first.weights, second.weights, rtol=1e-6, atol=1e-8)


@pytest.mark.large
def test_a_warm_start_at_the_optimum_ends_at_once():
    problem = linear_problem(6, n=300, d=6, loss="squared_hinge")
    solution = solve_dual(problem, tol=1e-6, max_iter=100_000)
    again = solve_dual(problem, tol=1e-5, dual=solution.dual)
    assert again.iterations <= 2 < solution.iterations


def test_a_start_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"dual must have shape \(60,\), got \(3,\)"):
        solve_dual(linear_problem(0), dual=np.zeros(3))


def set_options(monkeypatch, **changes):
    for name, value in changes.items():
        monkeypatch.setattr(dual_coordinate_descent.options, name, value)


def test_the_solver_resumes_to_the_same_bits(monkeypatch):
    set_options(monkeypatch, slice_passes=1)
    solver = dual_coordinate_descent
    problem = linear_problem(7, n=150, d=20, loss="squared_hinge")
    straight, stopped = solver.State(problem), solver.State(problem)
    for _ in range(2):
        solver.advance(straight)
        solver.advance(stopped)
    resumed = solver.State(problem).resume(stopped.numbers())
    assert not resumed.finished
    for state in (straight, resumed):
        while not solver.advance(state):
            pass
    assert straight.iterations == resumed.iterations > 2
    assert_array_equal(resumed.weights, straight.weights)


def ill_conditioned(loss):
    """Return a problem most of whose dual variables are free, with an offset of the features."""
    problem = linear_problem(11, n=120, d=150, loss=loss, scale=0.3)
    return replace(problem, X=problem.X * np.geomspace(1.0, 0.1, 150) + 1.0)


@pytest.mark.large
@pytest.mark.parametrize("loss", LOSS_NAMES)
def test_conjugate_gradients_on_the_free_variables_save_passes(loss, monkeypatch):
    # No direct Newton steps, interior-point method or refinement.
    monkeypatch.setattr(dual_coordinate_descent.newton_options, "most_free", 0)
    set_options(monkeypatch, latest_handover=10**9, refined_entries=0, interior_work=10**12)
    problem = ill_conditioned(loss)
    parameters = {"tol": 1e-6, "max_iter": 100_000}
    solution = solve_dual(problem, **parameters)
    set_options(monkeypatch, changed_share=-1.0)
    without = solve_dual(problem, **parameters)
    assert solution.converged
    assert without.converged
    assert solution.iterations < 0.2 * without.iterations
    assert_allclose([solution.objective, solution.dual_objective], optimum(problem), rtol=1e-6)


def test_the_solver_resumes_to_the_same_bits_after_conjugate_gradients(monkeypatch):
    monkeypatch.setattr(dual_coordinate_descent.newton_options, "most_free", 0)
    set_options(monkeypatch, slice_passes=3, latest_handover=10**9)
    solver, problem = dual_coordinate_descent, ill_conditioned("squared_hinge")
    state = solver.State(problem, tol=1e-5)
    while state.gradient_steps == solver.options.first_gradient_steps:
        assert not solver.advance(state)
    resumed = solver.State(problem, tol=1e-5).resume(state.numbers())
    for each in (state, resumed):
        while not solver.advance(each):
            pass
    assert_array_equal(resumed.weights, state.weights)


def test_passes_count_by_the_share_of_the_samples_that_they_visit():
    state = dual_coordinate_descent.State(linear_problem(2, n=300, d=8), max_iter=100)
    while not dual_coordinate_descent.advance(state):
        pass
    visited = state.counts[dual_coordinate_descent._VISITED]
    assert state.iterations == np.ceil(visited / 300)


@pytest.mark.parametrize("gap_tol", [None, 1e-6])
def test_a_stopped_state_is_resumed_with_other_parameters(gap_tol):
    solver = dual_coordinate_descent
    problem = linear_problem(7, n=150, d=20, loss="squared_hinge")
    stopped = solver.State(problem, max_iter=2, tol=0.1)
    while not solver.advance(stopped):
        pass
    resumed = solver.State(problem, tol=1e-6, gap_tol=gap_tol).resume(stopped.numbers())
    while not solver.advance(resumed):
        pass
    assert resumed.converged
    assert resumed.iterations > 2
    assert solver.solution_at(resumed).gap <= 1e-6
    assert not {"constants", "ceiling", "max_iter", "shrinking"} & stopped.numbers().keys()


def test_a_report_may_stop_the_solver(monkeypatch):
    set_options(monkeypatch, slice_passes=1)
    problem = linear_problem(8, n=500, d=30, loss="squared_hinge")
    solution = solve_dual(problem, report=lambda state: True)
    assert not solution.converged
    assert solution.gap > 1e-6


@pytest.mark.large
def test_newton_steps_do_not_keep_short_slices_from_the_end_of_a_pass(monkeypatch):
    problem = linear_problem(9, n=300, d=10)
    expected = solve_dual(problem, max_iter=100_000).objective
    set_options(monkeypatch, slice_work=500)
    state = dual_coordinate_descent.State(problem, max_iter=100_000)
    slices = 0
    while not dual_coordinate_descent.advance(state):
        slices += 1
        assert slices < 100_000
    assert_allclose(dual_coordinate_descent.finish(state).objective, expected, rtol=1e-6)


def test_a_pass_may_leave_out_all_samples():
    problem = replace(linear_problem(10, n=40, d=2), cost=np.full(40, 1e-4))
    # With so small costs all samples are at their bounds; between equal extremes lies no gradient.
    state = dual_coordinate_descent.State(problem, dual=problem.sign * problem.cost)
    state.extremes[2:] = 0.0
    assert dual_coordinate_descent.advance(state)
    assert state.converged
    assert state.iterations == 2
    assert_array_equal(state.dual, problem.cost)


class TestMarginsBySample:
    """Margins of any sign and a duality gap to stop on, as gated students have them."""

    @settings(max_examples=60)
    @given(problem=hinge_problems(decades=1, intercept=False))
    def test_the_exact_objective_is_reached(self, problem):
        assume(np.isfinite(problem.cost).all())
        exact = solve_exactly(problem)
        found = solve_dual(explicit(problem, rows_of(problem.gram)), gap_tol=1e-9, max_iter=-1)
        assert abs(found.objective - exact.objective) <= 1e-6 * exact.scale

    @pytest.mark.large
    @pytest.mark.parametrize("cost", [1e-3, 1.0, 30.0])
    def test_a_constant_feature_is_the_intercept(self, cost):
        X, hinge = random_hinge(cost=cost)
        exact = solve_exactly(hinge)
        for data in (X, sparse.csr_array(X)):
            found = solve_dual(explicit(hinge, data, 1.0), gap_tol=1e-7, max_iter=-1)
            assert found.converged
            assert found.gap <= 1e-7
            assert_allclose(found.objective, exact.objective, rtol=1e-7)
            assert_allclose(data.T @ found.dual, found.weights[:-1], atol=1e-9)
            assert_allclose(found.dual.sum(), found.intercept, atol=1e-9)

    def test_negative_margins_cost_nothing(self):
        X, hinge = random_hinge()
        problem = explicit(hinge._replace(margin=-np.ones(len(X))), X, 1.0)
        found = solve_dual(problem, gap_tol=1e-6, max_iter=-1)
        assert found.converged
        assert found.objective <= 1e-6

    def test_a_limit_on_passes_is_kept_and_reported(self):
        X, hinge = random_hinge(cost=100.0)
        found = solve_dual(explicit(hinge, X, 1.0), gap_tol=1e-12, max_iter=2)
        assert found.iterations == 2
        assert not found.converged

    @pytest.mark.large
    def test_a_gap_that_rounding_hides_ends_the_solver(self):
        X, hinge = random_hinge(cost=1e4)
        found = solve_dual(explicit(hinge, X, 1.0), gap_tol=1e-16, max_iter=-1)
        assert found.gap < 1e-9

    def test_a_report_stops_the_solver(self):
        X, hinge = random_hinge(cost=100.0)
        seen = []

        def stop(state):
            seen.append(state)
            return True

        found = solve_dual(explicit(hinge, X, 1.0), gap_tol=1e-12, report=stop)
        assert len(seen) == 1
        assert not found.converged


def explicit(hinge, X, bias=0.0):
    return LinearProblem(X, hinge.sign, hinge.cost, HingeLoss(), bias, hinge.margin)


def rows_of(gram):
    """Rows whose inner products are the Gram matrix."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > values[-1] * len(gram) * np.finfo(float).eps
    return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))


def random_hinge(n=300, d=8, seed=0, cost=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    sign = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    margin = rng.uniform(-1.0, 2.0, n)
    return X, Hinge(X @ X.T + 1.0, sign, margin, cost * rng.uniform(0.5, 2.0, n), False)
