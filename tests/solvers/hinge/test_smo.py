"""SMO against the exact QP, and on every path through the solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.oracles.hinge import solve_exactly
from tests.oracles.strategies import hinge_problems, inseparable_hinge_problems
from tests.solvers.cases import (
    assert_feasible,
    each_path,
    exact_violation,
    on_path,
    random_feasible,
    solve,
    two_blobs,
)

from widemargin.kernels import GramCache, KernelGram, MatrixGram, kernel_function
from widemargin.solvers import HingeProblem, NotSeparableError, solution_at, solve_hinge
from widemargin.solvers.hinge import smo


def rbf_problem(size=60, cost=1.0, gamma=0.5, **options):
    X, sign = two_blobs(size)
    return HingeProblem(KernelGram(kernel_function("rbf", gamma), X), sign, cost=cost, **options)


@settings(max_examples=150)
@given(hinge_problems())
def test_objective_is_that_of_the_exact_qp(hinge):
    exact = solve_exactly(hinge)
    solution = solve(HingeProblem(*hinge), tol=1e-9)
    assert solution.converged
    assert abs(solution.dual_objective - exact.dual_objective) <= 1e-6 * exact.scale


@each_path
@settings(max_examples=60)
@given(hinge=hinge_problems(decades=0))
def test_every_path_leads_to_the_exact_objective(path, hinge):
    exact = solve_exactly(hinge)
    solution = solve(HingeProblem(*hinge), path, tol=1e-6)
    assert solution.converged
    assert abs(solution.dual_objective - exact.dual_objective) <= 1e-6 * exact.scale


@each_path
@settings(max_examples=40)
@given(hinge=hinge_problems(decades=0))
def test_dual_is_feasible_and_below_the_primal(path, hinge):
    problem = HingeProblem(*hinge)
    solution = solve(problem, path)
    assert_feasible(problem, solution.dual)
    scale = solve_exactly(hinge).scale
    assert solution.dual_objective <= solution.objective + 1e-9 * scale


@each_path
@settings(max_examples=40)
@given(hinge=inseparable_hinge_problems())
def test_rows_that_cannot_be_separated_are_an_error(path, hinge):
    with pytest.raises(NotSeparableError, match="finite cost"):
        solve(HingeProblem(*hinge), path)


@each_path
@settings(max_examples=40)
@given(hinge=hinge_problems(decades=0), seed=st.integers(0, 99))
def test_any_feasible_point_will_do_to_start_from(path, hinge, seed):
    problem = HingeProblem(*hinge)
    start = random_feasible(problem, seed)
    before = start.copy()
    solution = solve(problem, path, tol=1e-6, dual=start)
    exact = solve_exactly(hinge)
    assert solution.converged
    assert abs(solution.dual_objective - exact.dual_objective) <= 1e-6 * exact.scale
    np.testing.assert_array_equal(start, before)


@each_path
@settings(max_examples=30)
@given(hinge=hinge_problems(decades=0))
def test_from_a_solution_there_is_next_to_nothing_to_do(path, hinge):
    problem = HingeProblem(*hinge)
    solution = solve(problem, path, tol=1e-6)
    again = solve(problem, path, tol=1e-3, dual=solution.dual)
    assert again.converged
    assert again.iterations <= 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda dual: dual[:-1], r"dual must have shape \(60,\), got \(59,\)"),
        (lambda dual: -dual, "dual must lie between 0 and sign . cost"),
        (lambda dual: 3.0 * dual, "dual must lie between 0 and sign . cost"),
        (lambda dual: np.where(dual > 0, dual, 0.0), "dual must sum to 0"),
        (lambda dual: np.where(dual > 0, np.nan, dual), "dual must"),
    ],
    ids=["shape", "sign", "size", "sum", "nan"],
)
def test_a_start_that_is_not_feasible_is_an_error(change, message):
    problem = rbf_problem()
    dual = solve(problem).dual
    with pytest.raises(ValueError, match=message):
        solve(problem, dual=change(dual))


def test_without_an_intercept_a_start_may_have_any_sum():
    problem = rbf_problem(intercept=False)
    dual = np.where(problem.sign > 0, 0.5, 0.0)
    expected = solve(problem, tol=1e-8).dual_objective
    assert solve(problem, tol=1e-8, dual=dual).dual_objective == pytest.approx(expected, rel=1e-9)


@each_path
@pytest.mark.parametrize("max_iter", [0, 1, 5, 30])
def test_no_more_iterations_than_allowed(path, max_iter):
    problem = rbf_problem(cost=100.0)
    solution = solve(problem, path, tol=1e-9, max_iter=max_iter)
    assert solution.iterations == max_iter
    assert not solution.converged
    assert_feasible(problem, solution.dual)
    assert solution.gap > 0
    best = solve(problem, tol=1e-9).objective
    assert solution.dual_objective < best < solution.objective


@each_path
def test_a_limit_just_reached_is_kept(path):
    problem = rbf_problem(cost=10.0)
    needed = solve(problem, path, tol=0.1).iterations
    for max_iter in (needed // 2, needed, needed + 1):
        assert solve(problem, path, tol=0.1, max_iter=max_iter).iterations <= max_iter


@each_path
@pytest.mark.parametrize("gap_tol", [1e-2, 1e-5])
@pytest.mark.parametrize("cost", [0.1, 100.0, np.inf])
def test_the_gap_asked_for_is_reached(path, gap_tol, cost):
    problem = rbf_problem(cost=cost, gamma=3.0)
    solution = solve(problem, path, gap_tol=gap_tol)
    assert solution.converged
    assert 0.0 <= solution.gap <= gap_tol
    best = solve(problem, tol=1e-10).objective
    assert solution.objective <= best * (1 + 1.1 * gap_tol)


@each_path
def test_the_gap_bounds_the_distance_to_the_optimum(path):
    problem = rbf_problem(cost=10.0)
    best = solve(problem, tol=1e-10).objective
    for tol in (1.0, 0.1, 1e-3):
        solution = solve(problem, path, tol=tol)
        assert solution.dual_objective <= best * (1 + 1e-9)
        assert solution.objective * (1 - solution.gap) <= best * (1 + 1e-9)
        assert best <= solution.objective * (1 + 1e-9)


@each_path
def test_tol_bounds_the_violation(path):
    for intercept in (True, False):
        problem = rbf_problem(cost=10.0, intercept=intercept)
        for tol in (0.1, 1e-3, 1e-6):
            solution = solve(problem, path, tol=tol)
            assert exact_violation(problem, solution.dual) <= tol * (1 + 1e-6)


@each_path
def test_the_report_sees_the_state_and_may_stop(path):
    problem = rbf_problem(cost=1e4)
    seen = []

    def report(state):
        seen.append(state.iterations)
        assert solution_at(state).dual_objective <= best
        return len(seen) == 2

    best = solve(problem, tol=1e-8).objective * (1 + 1e-9)
    with on_path(path, slice_work=20 * problem.size):
        solution = solve_hinge(problem, tol=1e-8, report=report)
    assert len(seen) == 2
    assert seen == sorted(seen)
    assert not solution.converged
    assert_feasible(problem, solution.dual)
    assert solution.iterations == seen[-1]


@each_path
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_indefinite_kernels_come_to_an_end_without_a_gap(path, intercept, seed):
    generator = np.random.default_rng(seed)
    matrix = generator.standard_normal((30, 30))
    sign = np.where(generator.random(30) < 0.5, 1.0, -1.0)
    gram = MatrixGram(matrix + matrix.T, positive_semidefinite=False)
    problem = HingeProblem(gram, sign, cost=2.0, intercept=intercept)
    solution = solve(problem, path)
    assert solution.converged
    assert np.isnan(solution.gap)
    assert_feasible(problem, solution.dual)
    assert exact_violation(problem, solution.dual) <= 1e-3 * (1 + 1e-6)


@each_path
def test_the_sigmoid_kernel_comes_to_an_end(path):
    X, sign = two_blobs(40)
    gram = KernelGram(kernel_function("sigmoid", gamma=2.0, coef0=-1.0), X)
    solution = solve(HingeProblem(gram, sign, cost=10.0), path)
    assert solution.converged
    assert np.isnan(solution.gap)


@each_path
@pytest.mark.parametrize("intercept", [True, False])
def test_one_row_is_put_at_its_margin(path, intercept):
    problem = HingeProblem(np.array([[4.0]]), np.array([1.0]), 2.0, 10.0, intercept)
    solution = solve(problem, path)
    assert solution.converged
    if intercept:
        assert solution.dual.tolist() == [0.0]
        assert solution.intercept == 2.0
        assert solution.objective == 0.0
    else:
        assert solution.dual == pytest.approx([0.5], rel=1e-9)
        assert solution.objective == pytest.approx(0.5, rel=1e-9)


@each_path
def test_two_rows_have_the_answer_of_the_textbook(path):
    rows = np.array([[1.0, 0.0], [-1.0, 2.0]])
    solution = solve(HingeProblem(rows @ rows.T, np.array([1.0, -1.0]), cost=np.inf), path)
    assert solution.dual == pytest.approx([0.25, -0.25], rel=1e-9)
    assert solution.intercept == pytest.approx(0.5, rel=1e-9)
    assert solution.objective == pytest.approx(0.25, rel=1e-9)
    capped = solve(HingeProblem(rows @ rows.T, np.array([1.0, -1.0]), cost=0.1), path)
    assert capped.dual == pytest.approx([0.1, -0.1], rel=1e-12)


@each_path
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("cost", [1.0, np.inf])
def test_rows_of_one_side_need_the_intercept_only(path, side, cost):
    X, _ = two_blobs(20)
    margin = np.linspace(0.5, 2.0, 20)
    problem = HingeProblem(X @ X.T, np.full(20, side), margin, cost)
    solution = solve(problem, path)
    assert solution.converged
    assert not solution.dual.any()
    assert solution.intercept == 2.0 * side
    assert solution.objective == solution.gap == 0.0


@each_path
@pytest.mark.parametrize("intercept", [True, False])
def test_rows_that_cost_nothing_count_for_nothing(path, intercept):
    X, sign = two_blobs(30)
    cost = np.where(np.arange(30) % 3 == 0, 0.0, 2.0)
    kept = cost > 0
    matrix = X @ X.T
    solution = solve(HingeProblem(matrix, sign, 1.0, cost, intercept), path, tol=1e-8)
    without = HingeProblem(matrix[np.ix_(kept, kept)], sign[kept], 1.0, 2.0, intercept)
    expected = solve(without, tol=1e-8)
    assert not solution.dual[~kept].any()
    assert solution.objective == pytest.approx(expected.objective, rel=1e-7)
    nothing = solve(HingeProblem(matrix, sign, 1.0, 0.0, intercept), path)
    assert nothing.converged
    assert not nothing.dual.any()
    assert nothing.objective == 0.0


@each_path
def test_margins_met_from_the_start_ask_for_nothing(path):
    X, sign = two_blobs(20)
    solution = solve(HingeProblem(X @ X.T, sign, -1.0, intercept=False), path)
    assert solution.converged
    assert not solution.dual.any()
    assert solution.objective == solution.gap == 0.0


@each_path
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_units_do_not_matter(path, scale):
    X, sign = two_blobs(40)
    expected = solve(HingeProblem(X @ X.T, sign, cost=2.0), tol=1e-8)
    matrix = (scale * X) @ (scale * X).T
    solution = solve(HingeProblem(matrix, sign, cost=2.0 / scale**2), path, tol=1e-8)
    assert solution.objective * scale**2 == pytest.approx(expected.objective, rel=1e-7)


@each_path
def test_shrinking_changes_the_answer_by_no_more_than_tol(path):
    problem = rbf_problem(cost=10.0)
    with_shrinking = solve(problem, path, tol=1e-4, shrinking=True)
    without = solve(problem, path, tol=1e-4, shrinking=False)
    matrix = problem.gram.block(slice(None), slice(None))
    difference = matrix @ (with_shrinking.dual - without.dual)
    assert np.abs(difference).max() <= 1e-3
    assert with_shrinking.dual_objective == pytest.approx(without.dual_objective, rel=1e-6)


@pytest.mark.large
@pytest.mark.parametrize("cost", [1.0, 1000.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_shrinking_finds_the_same_optimum_on_problems_of_its_size(cost, intercept):
    X, sign = two_blobs(900, columns=6)
    gram = KernelGram(kernel_function("rbf", 0.3), X)
    problem = HingeProblem(gram, sign, 1.0, cost, intercept)
    solutions = [solve(problem, tol=1e-4, shrinking=shrinking) for shrinking in (True, False)]
    assert all(solution.converged for solution in solutions)
    first, second = (solution.dual_objective for solution in solutions)
    assert first == pytest.approx(second, rel=1e-6)
    assert exact_violation(problem, solutions[0].dual) <= 1e-4 * (1 + 1e-6)


@pytest.mark.large
@pytest.mark.parametrize("path", ["whole", "whole and shrinking"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", [5, 7, 39])
def test_tolerances_below_rounding_come_to_an_end(path, intercept, seed):
    generator = np.random.default_rng(seed)
    X = 5.0 * np.round(2.0 * generator.standard_normal((27, 3)))
    copies = generator.integers(0, 27, (2, 9))
    X[copies[0]] = X[copies[1]]
    sign = np.where(generator.random(27) < 0.5, 1.0, -1.0)
    problem = HingeProblem(X @ X.T, sign, 1.0, 100.0, intercept)
    expected = solve(problem, tol=1e-6).dual_objective
    solution = solve(problem, path, tol=1e-12)
    assert solution.dual_objective == pytest.approx(expected, rel=1e-6)


@pytest.mark.large
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("size", "shrinking"), [(600, True), (800, False)])
def test_ill_conditioned_problems_converge_by_newton_steps(intercept, size, shrinking):
    X, sign = two_blobs(size, columns=4)
    gram = KernelGram(kernel_function("linear"), 100.0 * X)
    problem = HingeProblem(gram, sign, 1.0, 1.0, intercept)
    solution = solve(problem, max_iter=2_000_000, shrinking=shrinking)
    assert solution.converged
    assert solution.gap <= 1e-9


@pytest.mark.large
@each_path
@pytest.mark.parametrize("intercept", [True, False])
def test_singular_kernels_do_not_slow_down_working_sets(path, intercept):
    generator = np.random.default_rng(3)
    X = generator.standard_normal((30, 3))
    sign = np.where(generator.random(30) < 0.5, 1.0, -1.0)
    problem = HingeProblem((X @ X.T + 1.0) ** 2, sign, 1.0, 100.0, intercept)
    solution = solve(problem, path, tol=1e-6)
    assert solution.converged
    assert solution.iterations < 30_000
    assert solution.gap < 1e-6


@each_path
def test_input_is_left_as_it_is(path):
    X, sign = two_blobs(30)
    matrix, margin, cost = X @ X.T, np.ones(30), np.full(30, 3.0)
    parts = (matrix, sign, margin, cost)
    before = [part.copy() for part in parts]
    solve(HingeProblem(*parts), path)
    for part, original in zip(parts, before, strict=True):
        np.testing.assert_array_equal(part, original)


def test_a_state_can_be_looked_at_on_the_way():
    problem = rbf_problem(cost=1e4)
    with on_path("batched"):
        state = smo.State(problem, tol=1e-6)
        solutions = []
        while not smo.advance(state):
            solutions.append(solution_at(state))
            assert not solutions[-1].converged
        final = smo.finish(state)
    matrix = problem.gram.block(slice(None)).astype(np.longdouble)
    duals = [solution.dual.astype(np.longdouble) for solution in [*solutions, final]]
    values = [problem.linear() @ dual - dual @ matrix @ dual / 2 for dual in duals]
    assert (np.diff(values) >= 0).all()
    assert_allclose([s.dual_objective for s in [*solutions, final]], values, rtol=1e-12)
    assert final.converged


def test_a_resumed_state_does_not_try_the_interior_point_method_again(monkeypatch):
    monkeypatch.setattr(smo.soft_margin, "start", lambda *arguments: None)  # too large
    monkeypatch.setattr(smo.options, "handover_work", 0.0)
    monkeypatch.setattr(smo.options, "handover_updates", 0.0)
    problem = rbf_problem(cost=1e4)
    state = smo.State(problem)
    assert not smo.advance(state)
    assert state.limit == np.inf
    # Else it would unshrink, which a state without an interruption does not.
    assert smo.State(problem).resume(state.numbers()).limit == np.inf


def test_a_small_problem_starts_from_exact_numbers_whatever_its_cache_holds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)) + 30.0
    sign = np.where(rng.random(300) < 0.5, 1.0, -1.0)
    gram = GramCache(KernelGram(kernel_function("poly", 1.0, degree=2), X), 1 << 20).of()
    problem = HingeProblem(gram, sign)
    dual = solve_hinge(problem, max_iter=200).dual
    state = smo.State(problem, dual=dual)
    matrix = gram.block(slice(None))
    exact, size = problem.linear() - matrix @ dual, (np.abs(matrix) @ np.abs(dual)).max()
    assert_allclose(state.active.residual, exact, rtol=0, atol=1e-12 * size)


@pytest.mark.large
def test_only_rounding_may_keep_a_gap_open_in_a_solution():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    sign = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    found = solve_hinge(HingeProblem(X @ X.T, sign, 1.0, 10.0), gap_tol=1e-18)
    assert found.gap < 1e-12
