"""Small problems are solved as `smo` solves them, or left to it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from widemargin.kernels import KernelGram, MatrixGram, kernel_function
from widemargin.kernels.cache import GramCache
from widemargin.solvers.hinge.problem import HingeProblem, NotSeparableError
from widemargin.solvers.hinge.small import SmallSolver, scale_up, solve_path
from widemargin.solvers.hinge.smo import solve_hinge

TOL = 1e-3


def samples(n, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0)


def gram_of(X, gamma=0.5):
    return MatrixGram(KernelGram(kernel_function("rbf", gamma=gamma), X).block(slice(None)))


def in_slices(problem, **parameters):
    """The solution of `smo` with reports, which the small solver does not have."""
    return solve_hinge(problem, report=lambda _: False, **parameters)


@pytest.mark.parametrize("cost", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_solution_is_that_of_smo(cost, seed):
    X, sign = samples(80, seed=seed)
    margin = 1.0 + 0.1 * np.arange(80) / 80
    problem = HingeProblem(gram_of(X), sign, margin, cost * (1.0 + (X[:, 1] > 0.0)))
    found, expected = SmallSolver(problem.gram).solve(problem, TOL), in_slices(problem)
    assert_allclose(found.dual, expected.dual, rtol=0.0, atol=1e-10 * cost)
    assert found.objective == pytest.approx(expected.objective, rel=1e-12)
    assert found.intercept == pytest.approx(expected.intercept, abs=1e-9)
    assert found.iterations == expected.iterations
    assert found.gap < 1e-10


def test_a_path_of_costs_ends_where_separate_fits_end():
    X, sign = samples(80)
    solver = SmallSolver(gram_of(X))
    for cost in (0.1, 1.0, 10.0):
        problem = HingeProblem(gram_of(X), sign, 1.0, cost)
        found, expected = solver.solve(problem, TOL), in_slices(problem)
        assert_allclose(found.dual, expected.dual, rtol=0.0, atol=1e-10 * cost)
        assert_array_equal(solver.dual, found.dual)


def test_a_problem_that_takes_long_is_left_to_smo_and_continued_there(monkeypatch):
    monkeypatch.setattr("widemargin.solvers.hinge.small.options.newton_period", 1)
    X, sign = samples(60, seed=1)
    problem = HingeProblem(gram_of(X), sign, 1.0, 1e3)
    solver = SmallSolver(problem.gram)
    assert solver.solve(problem, 1e-8) is None
    assert solver.updates == 60
    found = solve_hinge(problem, tol=1e-8)
    assert found.iterations > 60
    assert found.gap < 1e-6


def test_costs_that_rounding_errors_grow_with_are_left_to_smo():
    X, sign = samples(40)
    for cost in (1e13, np.inf):
        problem = HingeProblem(gram_of(X), sign, 1.0, cost)
        assert SmallSolver(problem.gram).solve(problem, TOL) is None


def test_rows_computed_on_demand_give_the_solution_of_the_whole_matrix():
    X, sign = samples(90, d=6)
    gram = KernelGram(kernel_function("rbf", gamma=0.2), X)
    cached = GramCache(gram, 2**20).of()
    found = solve_hinge(HingeProblem(cached, sign, 1.0, 2.0))
    expected = solve_hinge(HingeProblem(gram_of(X, 0.2), sign, 1.0, 2.0))
    assert_allclose(found.dual, expected.dual, rtol=0.0, atol=1e-10)
    assert 0 < np.count_nonzero(cached.dense.filled) < 90


def test_a_hard_margin_of_samples_that_are_all_equal_is_an_error():
    _, sign = samples(20)
    for intercept in (True, False):
        problem = HingeProblem(np.zeros((20, 20)), sign, 1.0, np.inf, intercept)
        with pytest.raises(NotSeparableError):
            solve_hinge(problem)


@pytest.mark.parametrize("seed", range(3))
def test_a_compiled_path_ends_where_separate_fits_end(seed):
    X, sign = samples(80, seed=seed)
    margin, weight = 1.0 + 0.1 * np.arange(80) / 80, 1.0 + (X[:, 1] > 0.0)
    costs = np.multiply.outer([0.1, 1.0, 10.0], weight)
    found = solve_path(gram_of(X), sign, margin, costs, TOL)
    assert len(found) == 3
    for solution, cost in zip(found, costs, strict=True):
        expected = in_slices(HingeProblem(gram_of(X), sign, margin, cost))
        assert_allclose(solution.dual, expected.dual, rtol=0.0, atol=1e-10 * cost.max())
        assert solution.objective == pytest.approx(expected.objective, rel=1e-12)
        assert solution.intercept == pytest.approx(expected.intercept, abs=1e-9)
        assert solution.converged
        assert solution.gap < 1e-10


def test_a_compiled_path_ends_before_a_step_that_takes_long(monkeypatch):
    X, sign = samples(60, seed=1)
    costs = np.multiply.outer([1e-3, 1e3], np.ones(60))
    monkeypatch.setattr("widemargin.solvers.hinge.small.options.newton_period", 1)
    assert len(solve_path(gram_of(X), sign, np.ones(60), costs, 1e-8)) == 1


def test_a_compiled_path_ends_before_costs_that_rounding_errors_grow_with():
    X, sign = samples(40)
    costs = np.multiply.outer([1.0, 1e13, np.inf], np.ones(40))
    assert len(solve_path(gram_of(X), sign, np.ones(40), costs, TOL)) == 1


def test_a_solution_that_no_cost_bounds_is_that_of_larger_costs():
    X, sign = samples(30)
    costs = np.multiply.outer([1e3, 1e4], np.ones(30))
    first, second = solve_path(gram_of(X, gamma=50.0), sign, np.ones(30), costs, TOL)
    assert (np.abs(first.dual) < 1e3).all()
    assert_array_equal(first.dual, second.dual)
    assert (second.intercept, second.iterations) == (first.intercept, 0)


@pytest.mark.parametrize("ratio", [1.5, 1e3])
def test_scaling_up_improves_the_dual_and_keeps_within_the_bounds(ratio):
    X, sign = samples(70, seed=2)
    gram, before = gram_of(X), np.full(70, 1e-2)
    dual = solve_hinge(HingeProblem(gram, sign, 1.0, before)).dual
    problem, scaled = HingeProblem(gram, sign, 1.0, ratio * before), dual.copy()
    linear, matrix = problem.linear(), gram.block(slice(None), slice(None))
    residual = linear - matrix @ dual
    scale_up(linear, before, problem.cost, scaled, residual)
    assert_array_equal(problem.check_feasible(scaled), scaled)
    assert_allclose(residual, linear - matrix @ scaled, atol=1e-12)
    values = [d @ linear - 0.5 * d @ matrix @ d for d in (dual, scaled)]
    assert values[1] > values[0]
    if ratio < 2.0:  # the bound decides: what was at it stays there
        assert_array_equal(np.abs(scaled) == problem.cost, np.abs(dual) == before)
