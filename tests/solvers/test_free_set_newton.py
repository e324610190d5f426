"""Newton steps on the free variables: ten digits, whatever the tolerance of the solver was."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.strategies import hinge_problems
from tests.solvers.cases import exact_dual_objective, exact_violation, solve, two_blobs

from widemargin._base.options import newton_options
from widemargin.kernels import KernelGram, kernel_function
from widemargin.solvers import HingeProblem, NotSeparableError
from widemargin.solvers.free_set_newton import free_set_newton, longest_step
from widemargin.solvers.hinge import smo


def rbf_matrix(X, gamma=0.5):
    return KernelGram(kernel_function("rbf", gamma), X).block(slice(None))


def arguments(problem, dual):
    """Return the arguments of the functions of the module."""
    matrix = problem.gram.block(slice(None), slice(None))
    dual = np.array(dual, dtype=float)
    residual = problem.linear() - matrix @ dual
    return matrix, problem.linear(), *problem.bounds(), dual, residual, problem.intercept


@pytest.mark.large
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("cost", [0.5, 10.0, 1e4])
def test_answers_to_ten_digits_do_not_depend_on_tol(intercept, cost):
    X, sign = two_blobs(60)
    matrix = rbf_matrix(X)
    problem = HingeProblem(matrix, sign, 1.0, cost, intercept)
    tight = solve(problem, tol=1e-12)
    for tol in (1e-3, 1e-6):
        solution = solve(problem, tol=tol)
        assert exact_violation(problem, solution.dual) <= 1e-10
        difference = matrix @ (solution.dual - tight.dual) + solution.intercept - tight.intercept
        assert np.abs(difference).max() <= 1e-9
        assert solution.objective == pytest.approx(tight.objective, rel=1e-10)


@settings(max_examples=60)
@given(hinge=hinge_problems(decades=1))
def test_refined_solutions_have_no_gap(hinge):
    problem = HingeProblem(*hinge)
    solution = solve(problem)
    assert solution.converged
    scale = np.abs(hinge.margin) @ np.abs(solution.dual) + 1e-3
    assert solution.objective - solution.dual_objective <= 1e-7 * scale


@settings(max_examples=25)
@given(seed=st.integers(0, 99), intercept=st.booleans())
def test_a_sample_of_double_cost_is_two_samples(seed, intercept):
    X, sign = two_blobs(25, seed)
    copies = np.random.default_rng(seed).integers(1, 4, 25)
    weighted = solve(HingeProblem(rbf_matrix(X), sign, 1.0, 2.0 * copies, intercept))
    repeated_X, repeated_sign = np.repeat(X, copies, axis=0), np.repeat(sign, copies)
    repeated = solve(HingeProblem(rbf_matrix(repeated_X), repeated_sign, 1.0, 2.0, intercept))
    values = rbf_matrix(X) @ weighted.dual + weighted.intercept
    starts = np.cumsum([0, *copies[:-1]])
    again = rbf_matrix(repeated_X) @ repeated.dual + repeated.intercept
    np.testing.assert_allclose(again[starts], values, rtol=0, atol=1e-8)
    assert repeated.objective == pytest.approx(weighted.objective, rel=1e-9)


def test_free_variables_solve_the_equations_of_the_optimum():
    X, sign = two_blobs(40)
    matrix = rbf_matrix(X)
    solution = solve(HingeProblem(matrix, sign, cost=1.0))
    free = (np.abs(solution.dual) > 0) & (np.abs(solution.dual) < 1.0)
    assert free.any()
    scores = matrix @ solution.dual + solution.intercept
    np.testing.assert_allclose(scores[free], sign[free], rtol=0, atol=1e-11)


def test_one_step_reaches_the_optimum_of_the_free_variables():
    X, sign = two_blobs(20)
    problem = HingeProblem(rbf_matrix(X, 5.0), sign, cost=np.inf)
    start = 0.5 * sign
    parts = arguments(problem, start)
    left = free_set_newton(*parts)
    dual, residual = parts[4:6]
    assert left == pytest.approx(exact_violation(problem, dual), abs=1e-12)
    assert exact_dual_objective(problem, dual) > exact_dual_objective(problem, start)
    np.testing.assert_allclose(residual, sign - parts[0] @ dual, rtol=0, atol=1e-12)
    assert abs(dual.sum()) <= 1e-12


def test_steps_stay_within_the_bounds():
    X, sign = two_blobs(30)
    problem = HingeProblem(rbf_matrix(X), sign, cost=1.0)
    parts = arguments(problem, 0.3 * sign)
    free_set_newton(*parts)
    alpha = sign * parts[4]
    assert (alpha >= 0.0).all()
    assert (alpha <= 1.0).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_a_step_from_an_optimum_stays_there(intercept):
    X, sign = two_blobs(30)
    problem = HingeProblem(rbf_matrix(X), sign, 1.0, 2.0, intercept)
    solution = solve(problem)
    parts = arguments(problem, solution.dual)
    assert free_set_newton(*parts) <= 1e-10
    np.testing.assert_allclose(parts[4], solution.dual, rtol=0, atol=1e-9)


def test_contradicting_equations_without_bounds_are_not_separable():
    matrix, sign = np.ones((2, 2)), np.array([1.0, -1.0])
    problem = HingeProblem(matrix, sign, cost=np.inf)
    with pytest.raises(NotSeparableError):
        free_set_newton(*arguments(problem, [1.0, -1.0]))


def test_contradicting_equations_are_followed_to_the_bounds():
    matrix, sign = np.ones((2, 2)), np.array([1.0, -1.0])
    parts = arguments(HingeProblem(matrix, sign, cost=3.0), [1.0, -1.0])
    free_set_newton(*parts)
    assert parts[4].tolist() == [3.0, -3.0]


@pytest.mark.large
def test_too_many_free_variables_are_left_unchanged():
    size = 2 * (newton_options.most_free // 2) + 2
    sign = np.where(np.arange(size) % 2, 1.0, -1.0)
    parts = arguments(HingeProblem(np.eye(size), sign, cost=3.0), 0.5 * sign)
    before = parts[4].copy()
    assert free_set_newton(*parts) == np.inf
    np.testing.assert_array_equal(parts[4], before)


@pytest.mark.parametrize(("shift", "continues"), [(0.0, False), (1.0, True)])
def test_the_solver_continues_only_while_samples_violate(monkeypatch, shift, continues):
    X, sign = two_blobs(30)
    problem = HingeProblem(rbf_matrix(X), sign, cost=2.0)
    state = smo.State(problem, dual=(1.0 - shift) * solve(problem).dual)
    tolerances = []

    def descend(state, tol, steps):
        tolerances.append(tol)
        return steps

    monkeypatch.setattr(smo, "_descend_over_all", descend)
    state.converged = True
    smo.finish(state)
    assert tolerances == ([pytest.approx(0.1 * state.tol)] if continues else [])


def test_samples_at_their_bounds_need_no_equations():
    X, sign = two_blobs(20)
    problem = HingeProblem(rbf_matrix(X, 1e-6), sign, cost=1e-3)
    solution = solve(problem)
    np.testing.assert_array_equal(solution.dual, 1e-3 * sign)
    assert solution.gap <= 1e-9


def test_a_step_is_cut_by_the_first_bound_that_it_meets():
    values, lower, upper = np.zeros(3), np.array([-1.0, -1.0, -4.0]), np.array([1.0, 2.0, 1.0])
    assert longest_step(values, np.array([2.0, 1.0, 0.0]), lower, upper, False) == (0.5, 0)
    assert longest_step(values, np.array([0.1, 0.1, -1.0]), lower, upper, False) == (1.0, -1)
    assert longest_step(values, np.array([0.0, 0.1, -1.0]), lower, upper, True) == (4.0, 2)
    assert longest_step(values, np.zeros(3), lower, upper, True) == (np.inf, -1)
