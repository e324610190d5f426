"""SVM1+ and SVM-2K compared with exact optima."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from tests.oracles import privileged as oracle

from widemargin._base.options import active_set_options, coupled_options
from widemargin.solvers import HingeProblem, solve_hinge
from widemargin.solvers.coupled import solver
from widemargin.solvers.coupled.problem import svm1plus_problem, svm2k_problem
from widemargin.solvers.coupled.solver import State, solve_coupled

PENALTIES = [1e2, 1.0, 1e-2, 1e-5, 1e-8]


def problem(seed, n=40, kernel="linear", columns=3, privileged=2):
    """Two Gram matrices, and signs that depend on both."""
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((n, columns)), rng.standard_normal((n, privileged))
    sign = np.where(X[:, 0] + Z[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    grams = [rows @ rows.T if kernel == "linear" else rbf_kernel(rows) for rows in (X, Z)]
    return *grams, sign


def solve_svm1plus(*arguments, factor=None, low_rank=False, start=None, **options):
    problem = svm1plus_problem(*arguments, factor=factor, low_rank=low_rank, start=start)
    return solve_coupled(problem, **options)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("columns", [3, 60])
@pytest.mark.parametrize("low_rank", [False, True])
def test_svm1plus_reaches_the_exact_optimum(kernel, penalty, columns, low_rank):
    K, M, sign = problem(0, kernel=kernel, columns=columns)
    cost = np.linspace(0.5, 2.0, len(sign))
    exact = oracle.svm1plus(K, M, sign, cost, penalty)
    factor = oracle.factor(M)
    found = solve_svm1plus(K, M, sign, cost, penalty, factor=factor, low_rank=low_rank)
    assert found.objective == pytest.approx(exact.objective, rel=1e-6)
    np.testing.assert_allclose(K @ found.dual, exact.f, atol=1e-6)
    np.testing.assert_allclose(found.second_values, exact.slack, atol=1e-6)
    assert found.converged
    assert found.gap < 1e-8


@pytest.mark.parametrize("agreement", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("low_rank", [False, True])
def test_two_views_reach_the_exact_optimum(kernel, epsilon, agreement, low_rank):
    K, M, sign = problem(1, kernel=kernel)
    costs = np.vstack([np.linspace(0.5, 2.0, len(sign)), np.full(len(sign), 0.3)])
    cost = np.full(len(sign), agreement)
    exact = oracle.two_view(K, M, sign, costs, cost, epsilon)
    found = solve_coupled(svm2k_problem(K, M, sign, costs, cost, epsilon, low_rank=low_rank))
    assert found.objective == pytest.approx(exact.objective, rel=1e-6)
    # The constants need not be unique; the functions are.
    assert np.ptp(K @ found.dual - exact.f) < 1e-6
    assert np.ptp(M @ found.second_dual - exact.slack) < 1e-6
    assert found.gap < 1e-8


def test_two_views_without_agreement_are_two_classifiers():
    K, M, sign = problem(2)
    costs = np.vstack([np.ones(len(sign)), np.full(len(sign), 0.5)])
    found = solve_coupled(svm2k_problem(K, M, sign, costs, np.zeros(len(sign)), 0.1))
    alone = [solve_hinge(HingeProblem(G, sign, 1.0, c)) for G, c in zip((K, M), costs, strict=True)]
    assert found.objective == pytest.approx(sum(s.objective for s in alone), rel=1e-9)


@given(seed=st.integers(0, 10_000), kernel=st.sampled_from(["linear", "rbf"]))
@settings(max_examples=15)
def test_pair_updates_alone_are_within_the_gap(seed, kernel):
    K, M, sign = problem(seed, n=30, kernel=kernel)
    if abs(sign.sum()) == len(sign):
        return
    cost = np.ones(len(sign))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(active_set_options, "most_unknowns", 0)
        found = solve_svm1plus(K, M, sign, cost, 0.5, tol=1e-4)
    exact = solve_svm1plus(K, M, sign, cost, 0.5, factor=oracle.factor(M))
    assert found.converged
    assert found.second_weights is None
    best = exact.objective
    assert found.dual_objective <= best * (1 + 1e-9)
    assert best <= found.objective * (1 + 1e-9)
    assert found.gap < 1e-2


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_gap_is_small_at_the_default_tol_without_the_active_set(kernel, C, monkeypatch):
    monkeypatch.setattr(active_set_options, "most_unknowns", 0)
    K, M, sign = problem(7, n=60, kernel=kernel)
    cost = np.full(len(sign), C)
    found = solve_svm1plus(K, M, sign, cost, 0.5)
    exact = oracle.svm1plus(K, M, sign, cost, 0.5)
    assert found.converged
    assert found.gap <= coupled_options.gap_tol
    assert found.objective == pytest.approx(exact.objective, rel=2e-6)


def test_pair_updates_stop_at_tol_where_the_gap_has_no_meaning(monkeypatch):
    K, M, sign = problem(8, n=30, kernel="rbf")
    indefinite = K - 0.5 * np.eye(len(sign))
    iterations = []
    for gap_tol in (coupled_options.gap_tol, np.inf):
        monkeypatch.setattr(coupled_options, "gap_tol", gap_tol)
        state = State(svm1plus_problem(indefinite, M, sign, np.ones(len(sign)), 1.0))
        while not solver.advance(state):
            pass
        iterations.append(state.iterations)
    assert iterations[0] <= max(iterations[1], state.point.size)


def test_a_state_that_meets_tol_is_resumed_as_converged():
    K, M, sign = problem(7, n=60, kernel="rbf")
    whole = svm1plus_problem(K, M, sign, np.ones(len(sign)), 0.5)
    state = State(whole, tol=10.0)
    assert not State(whole, tol=10.0).resume(state.numbers()).converged
    assert not solver.advance(state)  # the gap is large
    assert state.converged
    assert State(whole, tol=10.0).resume(state.numbers()).converged


def test_both_sums_and_the_box_are_kept():
    K, M, sign = problem(3)
    found = solve_svm1plus(K, M, sign, np.ones(len(sign)), 0.1, max_iter=50)
    alpha, beta = found.point
    assert (found.point >= 0).all()
    assert abs(found.dual.sum()) < 1e-9
    assert abs((alpha + beta - 1.0).sum()) < 1e-9
    np.testing.assert_array_equal(found.dual, sign * alpha)
    assert not found.converged
    assert found.iterations == 50


def test_any_feasible_start_leads_to_the_same_optimum():
    K, M, sign = problem(4, kernel="rbf")
    cost = np.ones(len(sign))
    factor = oracle.factor(M)
    fresh = solve_svm1plus(K, M, sign, cost, 0.1, factor=factor)
    start_from = 0.5 * solve_svm1plus(K, M, sign, 2.0 * cost, 10.0, factor=factor).point
    warm = solve_svm1plus(K, M, sign, cost, 0.1, factor=factor, start=start_from)
    assert warm.objective == pytest.approx(fresh.objective, rel=1e-9)


def test_work_comes_in_slices(monkeypatch):
    monkeypatch.setattr(coupled_options, "slice_visits", 500)
    K, M, sign = problem(5, kernel="rbf")
    slices = []
    cost = np.ones(len(sign))
    solve_svm1plus(K, M, sign, cost, 0.1, report=lambda state: slices.append(state.iterations))
    assert len(slices) > 3
    stopped = solve_svm1plus(K, M, sign, cost, 0.1, report=lambda _: True)
    assert not stopped.converged


def test_functions_are_those_of_the_point():
    K, M, sign = problem(6)
    costs = np.ones((2, len(sign)))
    state = State(svm2k_problem(K, M, sign, costs, np.ones(len(sign)), 0.1))
    while not solver.advance(state):
        pass
    g, h = state.problem.expansions(state.point)
    np.testing.assert_allclose(state.functions[0], K @ g, atol=1e-9)
    np.testing.assert_allclose(state.functions[1], M @ h, atol=1e-9)
