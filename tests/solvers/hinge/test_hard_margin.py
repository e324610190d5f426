"""The interior-point method for infinite costs, beside an exact QP and the solver by pairs."""

import numpy as np
import pytest
from tests.oracles import privileged as oracle

from widemargin._base import threads
from widemargin.privileged.slack_space import SlackSpace
from widemargin.solvers import HingeProblem, NotSeparableError, interior_point, solve_hinge
from widemargin.solvers.hinge.hard_margin import solve_hard_margin


def told(n=60, seed=0, noise=0.3):
    """Classes that overlap, columns that tell how hard rows are, and their signs."""
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
    sign = np.where(X[:, 0] + rng.standard_normal(n) > 0, 1.0, -1.0)
    Z[:, 0] = np.maximum(0.0, 1.0 - sign * X[:, 0]) + noise * Z[:, 0]
    return X, Z, sign


def rows_of(X, Z, sign, C=1.0, penalty=1.0):
    factor = SlackSpace.of_features(Z, np.ones(len(Z)), True).factor(C, penalty)
    return np.hstack([X, sign[:, np.newaxis] * factor])


@pytest.mark.parametrize("by_columns", [True, False])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("penalty", [1e-8, 1.0])
def test_it_reaches_the_exact_optimum(by_columns, C, penalty):
    X, Z, sign = told()
    exact = oracle.svm2plus(X @ X.T, Z @ Z.T, sign, np.full(len(X), C), penalty)
    rows = rows_of(X, Z, sign, C, penalty)
    problem = HingeProblem(rows @ rows.T, sign, 1.0, np.inf)
    found = solve_hard_margin(problem, features=rows if by_columns else None)
    assert found.converged
    assert found.gap < 1e-8
    assert found.objective == pytest.approx(exact.objective, rel=1e-6)
    np.testing.assert_allclose(X @ (X.T @ found.dual), exact.f, atol=1e-6)


@pytest.mark.parametrize("by_columns", [True, False])
def test_it_agrees_with_the_solver_by_pairs(by_columns):
    X, Z, sign = told(n=40, noise=0.05)
    rows = rows_of(X, Z, sign)
    problem = HingeProblem(rows @ rows.T, sign, 1.0, np.inf)
    found = solve_hard_margin(problem, features=rows if by_columns else None)
    other = solve_hinge(problem, tol=1e-8)
    assert found.objective == pytest.approx(other.objective, rel=1e-9)
    assert found.intercept == pytest.approx(other.intercept, abs=1e-7)
    np.testing.assert_allclose(found.dual, other.dual, atol=1e-6)
    np.testing.assert_array_equal(found.dual != 0.0, other.dual != 0.0)


@pytest.mark.parametrize("by_columns", [True, False])
def test_rows_that_stand_there_twice_do_not_matter(by_columns):
    X, Z, sign = told(n=30)
    once = rows_of(X, Z, sign)
    twice, signs = np.vstack([once, once]), np.append(sign, sign)
    alone = solve_hard_margin(HingeProblem(once @ once.T, sign, 1.0, np.inf), features=once)
    problem = HingeProblem(twice @ twice.T, signs, 1.0, np.inf)
    found = solve_hard_margin(problem, features=twice if by_columns else None)
    assert found.converged
    assert found.objective == pytest.approx(alone.objective, rel=1e-8)
    np.testing.assert_allclose(twice.T @ found.dual, once.T @ alone.dual, atol=1e-6)


@pytest.mark.parametrize("by_columns", [True, False])
def test_a_function_that_vanishes_leaves_every_row_on_its_margin(by_columns):
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((200, 2)), rng.standard_normal((200, 1))
    sign = rng.choice([-1.0, 1.0], 200)
    rows = rows_of(X, Z, sign)
    problem = HingeProblem(rows @ rows.T, sign, 1.0, np.inf)
    found = solve_hard_margin(problem, features=rows if by_columns else None)
    assert found.converged
    assert found.objective == pytest.approx(0.5 * (200 + 1), rel=1e-8)
    np.testing.assert_allclose(X.T @ found.dual, 0.0, atol=1e-6)


def test_a_limit_on_steps_is_kept_and_told():
    X, Z, sign = told()
    rows = rows_of(X, Z, sign)
    problem = HingeProblem(rows @ rows.T, sign, 1.0, np.inf)
    found = solve_hard_margin(problem, features=rows, max_iter=2)
    assert (found.iterations, found.converged) == (2, False)


def test_a_report_can_stop_it():
    X, Z, sign = told()
    rows = rows_of(X, Z, sign)
    problem = HingeProblem(rows @ rows.T, sign, 1.0, np.inf)
    seen = []

    def report(state):
        seen.append(state.iterations)
        return len(seen) == 3

    found = solve_hard_margin(problem, features=rows, report=report)
    assert seen == [1, 2, 3]
    assert not found.converged


def test_the_number_of_threads_does_not_change_a_bit(monkeypatch):
    X, Z, sign = told(n=150)
    rows = rows_of(X, Z, sign)
    problem = HingeProblem(rows @ rows.T, sign, 1.0, np.inf)
    monkeypatch.setattr(interior_point.options, "chunk", 16)
    found = []
    for number in (1, 4):
        monkeypatch.setattr(threads, "effective_threads", lambda number=number: number)
        found.append(solve_hard_margin(problem, features=rows))
    np.testing.assert_array_equal(found[0].dual, found[1].dual)


def test_pairs_do_not_give_up_what_is_known_to_be_separable():
    rows = np.array([[1.0, 1e-7], [1.0, -1e-7]])
    sign = np.array([1.0, -1.0])
    with pytest.raises(NotSeparableError):
        solve_hinge(HingeProblem(rows @ rows.T, sign, 1.0, np.inf))
    known = HingeProblem(rows @ rows.T, sign, 1.0, np.inf, separable=True)
    assert solve_hinge(known, exact=False).objective == pytest.approx(0.5e14, rel=1e-2)


def test_pairs_leave_a_solution_to_tol_as_it_is_if_asked():
    X, Z, sign = told(n=40, noise=0.05)
    rows = rows_of(X, Z, sign)
    problem = HingeProblem(rows @ rows.T, sign, 1.0, np.inf)
    rough, exact = (solve_hinge(problem, exact=wanted) for wanted in (False, True))
    assert rough.converged
    assert exact.gap < 1e-10 < rough.gap < 1e-2
