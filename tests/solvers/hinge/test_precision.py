"""SMO with float32 kernel rows from a cache, of any size and with any number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from tests.oracles.hinge import Hinge, solve_exactly
from tests.solvers.cases import (
    assert_feasible,
    exact_dual_objective,
    exact_violation,
    on_path,
    random_feasible,
    solve,
    two_blobs,
)
from threadpoolctl import threadpool_limits

from widemargin.kernels import GramCache, KernelGram, kernel_function
from widemargin.solvers import HingeProblem, solve_hinge

RBF = kernel_function("rbf", 0.5)
LINEAR = kernel_function("linear")
BATCHED = ["batched", "batched and shrinking"]

each_batched_path = pytest.mark.parametrize("path", BATCHED)


def cached_problem(function, X, sign, budget=1 << 20, **options):
    return HingeProblem(GramCache(KernelGram(function, X), budget).of(), sign, **options)


def exact_objective(problem):
    matrix = problem.gram.block(slice(None), slice(None))
    parts = (problem.sign, problem.margin, problem.cost, problem.intercept)
    return solve_exactly(Hinge(matrix, *parts)).dual_objective


def assert_solved(problem, solution, tol):
    assert solution.converged
    assert_feasible(problem, solution.dual)
    assert exact_violation(problem, solution.dual) <= 2 * tol
    value = exact_dual_objective(problem, solution.dual)
    assert value == pytest.approx(exact_objective(problem), rel=1e-4)
    assert solution.dual_objective == pytest.approx(value, rel=1e-4)
    assert solution.intercept == 0.0 or problem.intercept


@each_batched_path
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("cost", [0.1, 1.0, 100.0])
def test_batches_of_float32_rows_find_the_optimum(path, intercept, container, cost):
    X, sign = two_blobs(60)
    problem = cached_problem(RBF, container(X), sign, cost=cost, intercept=intercept)
    assert_solved(problem, solve(problem, path), tol=1e-3)


@each_batched_path
@pytest.mark.parametrize("places", [0, 2, 3, 4, 5, 7, 8, 9, 17, 40])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_cache_of_any_size_will_do(path, places, intercept):
    X, sign = two_blobs(40)
    budget = 4 * 40 * places
    problem = cached_problem(RBF, X, sign, budget, cost=10.0, intercept=intercept)
    assert_solved(problem, solve(problem, path), tol=1e-3)


@each_batched_path
@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_few_rows_are_a_problem_too(path, size, intercept):
    X, sign = two_blobs(size)
    problem = cached_problem(RBF, X, sign, cost=10.0, intercept=intercept)
    solution = solve(problem, path, tol=1e-6)
    assert solution.converged
    assert exact_violation(problem, solution.dual) <= 2e-6
    assert solution.dual_objective == pytest.approx(solve(problem, tol=1e-9).dual_objective)


@each_batched_path
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_rows_of_one_side_need_no_kernel_row(path, side):
    X, _ = two_blobs(20)
    solution = solve(cached_problem(RBF, X, np.full(20, side)), path)
    assert solution.converged
    assert not solution.dual.any()
    assert solution.intercept == side


@pytest.mark.large
@each_batched_path
@pytest.mark.parametrize("offset", [10.0, 100.0, 1000.0])
@pytest.mark.parametrize("cost", [1.0, 1000.0])
def test_kernel_values_too_coarse_in_float32_are_computed_in_float64(path, offset, cost):
    X, sign = two_blobs(60)
    problem = cached_problem(LINEAR, X + offset, sign, cost=cost)
    solution = solve(problem, path)
    assert solution.converged
    assert exact_violation(problem, solution.dual) <= 2e-3
    value = exact_dual_objective(problem, solution.dual)
    assert solution.dual_objective == pytest.approx(value, rel=1e-5)
    # Without the offset, which the intercept makes up for, the oracle loses no digits.
    reference = exact_objective(cached_problem(LINEAR, X, sign, cost=cost))
    assert value == pytest.approx(reference, rel=1e-4)


@pytest.mark.large
@each_batched_path
def test_huge_costs_converge(path):
    X, sign = two_blobs(60)
    problem = cached_problem(RBF, X, sign, cost=1e6)
    solution = solve(problem, path)
    assert solution.converged
    assert exact_violation(problem, solution.dual) <= 2e-3
    expected = solve(HingeProblem(problem.gram.block(slice(None)), sign, cost=1e6))
    value = exact_dual_objective(problem, solution.dual)
    assert value == pytest.approx(expected.dual_objective, rel=1e-4)


@each_batched_path
def test_a_tolerance_below_that_of_float32_is_met(path):
    X, sign = two_blobs(60)
    problem = cached_problem(RBF, X, sign, cost=10.0)
    solution = solve(problem, path, tol=1e-8)
    assert solution.converged
    assert exact_violation(problem, solution.dual) <= 2e-8


@each_batched_path
def test_a_start_from_anywhere_leads_to_the_optimum(path):
    X, sign = two_blobs(60)
    problem = cached_problem(RBF, X, sign, cost=10.0)
    for seed in range(3):
        solution = solve(problem, path, dual=random_feasible(problem, seed))
        assert_solved(problem, solution, tol=1e-3)


@each_batched_path
def test_groups_of_a_shared_cache_are_problems_of_their_own(path):
    X, _ = two_blobs(60)
    sizes = [15, 25, 20]
    cache = GramCache(KernelGram(RBF, X), 4 * 60 * 20, sizes)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        sign = np.repeat([1.0, -1.0], [sizes[first], sizes[second]])
        problem = HingeProblem(cache.of(first, second), sign, cost=5.0)
        assert_solved(problem, solve(problem, path), tol=1e-3)


@each_batched_path
def test_cache_size_changes_the_answer_by_no_more_than_tol(path):
    X, sign = two_blobs(60)
    scores = []
    for places in (5, 60):
        problem = cached_problem(RBF, X, sign, 4 * 60 * places, cost=10.0)
        solution = solve(problem, path, tol=1e-4)
        matrix = problem.gram.block(slice(None), slice(None))
        scores.append(matrix @ solution.dual + solution.intercept)
    assert np.abs(scores[0] - scores[1]).max() <= 1e-3


@pytest.mark.large
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_the_number_of_threads_does_not_change_bits(container):
    X, sign = two_blobs(4500, columns=5)

    def solution():
        problem = cached_problem(RBF, container(X), sign, 4 * 4500 * 500, cost=1.0)
        with on_path("whole", dense_size=100, working_set_size=128):
            return solve_hinge(problem, tol=0.1)

    expected = solution()
    assert expected.converged
    for limit in (1, 2, 4):
        with threadpool_limits(limit):
            found = solution()
        np.testing.assert_array_equal(found.dual, expected.dual)
        assert found.intercept == expected.intercept
        assert found.iterations == expected.iterations
