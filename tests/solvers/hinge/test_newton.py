"""Newton's method for linear classifiers finds the exact optimum of differentiable losses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from tests.solvers.hinge.linear_cases import as_csr, linear_problem, optimum

from widemargin.solvers.hinge import newton
from widemargin.solvers.hinge.dual_coordinate_descent import solve_dual
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.losses import SquaredHinge
from widemargin.solvers.hinge.newton import solve_primal


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    bias=st.sampled_from([0.0, 1.0, 10.0]),
    scale=st.sampled_from([1e-2, 1.0, 1e2]),
)
def test_newton_reaches_the_exact_optimum(seed, bias, scale):
    problem = linear_problem(seed, loss="squared_hinge", bias=bias, scale=scale)
    solution = solve_primal(problem)
    assert solution.converged
    assert_allclose([solution.objective, solution.dual_objective], optimum(problem), rtol=1e-7)


def test_dense_and_sparse_samples_give_the_solution_of_the_dual():
    problem = linear_problem(0, loss="squared_hinge")
    dual = solve_dual(problem, tol=1e-8)
    dense, other = (solve_primal(p).weights for p in (problem, as_csr(problem)))
    assert_allclose(dense, dual.weights, rtol=1e-6, atol=1e-8)
    assert_allclose(other, dense, rtol=1e-9, atol=1e-12)


@pytest.mark.large
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_conjugate_gradients_agree_with_the_dual(container):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, newton.options.direct_features + 10))
    X[rng.random(X.shape) < 0.9] = 0.0
    sign = np.where(rng.random(150) < 0.4, 1.0, -1.0)
    problem = LinearProblem(container(X), sign, np.full(150, 0.1), SquaredHinge(), 1.0)
    primal, dual = solve_primal(problem, tol=1e-9), solve_dual(problem, tol=1e-9)
    assert_allclose(primal.objective, dual.objective, rtol=1e-9)
    assert primal.gap < 1e-9


def test_a_warm_start_at_the_optimum_ends_at_once():
    problem = linear_problem(6, n=300, d=6, loss="squared_hinge")
    assert solve_primal(problem, weights=solve_primal(problem).weights).iterations <= 1


def test_the_solver_resumes_to_the_same_bits():
    problem = linear_problem(7, n=150, d=20, loss="squared_hinge")
    straight, stopped = newton.State(problem), newton.State(problem)
    for _ in range(2):
        newton.advance(straight)
        newton.advance(stopped)
    resumed = newton.State(problem).resume(stopped.numbers())
    assert not resumed.finished
    for state in (straight, resumed):
        while not newton.advance(state):
            pass
    assert straight.iterations == resumed.iterations > 2
    assert_array_equal(resumed.weights, straight.weights)


def test_a_stopped_state_is_resumed_with_another_limit():
    problem = linear_problem(7, n=150, d=20, loss="squared_hinge")
    stopped = newton.State(problem, max_iter=2)
    while not newton.advance(stopped):
        pass
    resumed = newton.State(problem).resume(stopped.numbers())
    while not newton.advance(resumed):
        pass
    assert resumed.converged
    assert resumed.iterations > 2


def test_a_report_may_stop_the_solver():
    problem = linear_problem(8, n=500, d=30, loss="squared_hinge")
    solution = solve_primal(problem, report=lambda state: True)
    assert not solution.converged
    assert solution.gap > 1e-6


def test_a_loss_with_a_kink_is_refused():
    with pytest.raises(ValueError, match=r"loss must be differentiable.*got Hinge.*Use dual"):
        solve_primal(linear_problem(0))


def test_margins_of_any_sign_are_solved():
    problem = linear_problem(9, loss="squared_hinge")
    problem = replace(problem, margin=np.random.default_rng(0).uniform(-1.0, 2.0, problem.size))
    assert_allclose(solve_primal(problem).objective, optimum(problem), rtol=1e-7)
