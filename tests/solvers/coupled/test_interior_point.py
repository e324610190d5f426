"""The interior-point method for coupled kernel expansions compared with exact optima."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from tests.oracles import privileged as oracle

from widemargin._base import threads
from widemargin._base.options import interior_point_options
from widemargin.solvers.coupled import interior_point, solver
from widemargin.solvers.coupled.problem import svm1plus_problem, svm2k_problem
from widemargin.solvers.coupled.solver import solve_coupled


def grams(kernel, n=60, columns=3, privileged=2, seed=0):
    """Two Gram matrices, and signs that depend on both."""
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((n, columns)), rng.standard_normal((n, privileged))
    sign = np.where(X[:, 0] + Z[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return *(A @ A.T if kernel == "linear" else rbf_kernel(A, gamma=0.5) for A in (X, Z)), sign


def solved(problem):
    """The method after its last step, and its result."""
    method = interior_point.start_interior_point(problem)
    while not method.advance():
        pass
    return method, method.finish()


EQUATIONS = {
    "linear": interior_point.FeatureEquations,
    "rbf": interior_point.SampleEquations,
}


@pytest.mark.parametrize("kernel", EQUATIONS)
@pytest.mark.parametrize("cost", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize("penalty", [1e-8, 1e-3, 1.0, 1e2])
def test_svm1plus_reaches_the_exact_optimum(kernel, cost, penalty):
    K, M, sign = grams(kernel)
    costs = cost * np.linspace(0.5, 2.0, len(sign))
    exact = oracle.svm1plus(K, M, sign, costs, penalty)
    problem = svm1plus_problem(K, M, sign, costs, penalty, factor=oracle.factor(M))
    method, found = solved(problem)
    assert type(method.equations) is EQUATIONS[kernel]
    assert found.optimal
    np.testing.assert_allclose(found.first, exact.f, atol=1e-5)
    assert np.ptp(found.second - exact.slack) < 1e-5 * max(1.0, np.abs(exact.slack).max())


@pytest.mark.parametrize("kernel", EQUATIONS)
@pytest.mark.parametrize("agreement", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_two_views_reach_the_exact_optimum(kernel, agreement, epsilon):
    K, M, sign = grams(kernel)
    costs = np.vstack([np.linspace(0.5, 2.0, len(sign)), np.full(len(sign), 0.3)])
    agreements = np.full(len(sign), agreement)
    exact = oracle.two_view(K, M, sign, costs, agreements, epsilon)
    method, found = solved(svm2k_problem(K, M, sign, costs, agreements, epsilon))
    assert type(method.equations) is EQUATIONS[kernel]
    assert found.optimal
    # The constants need not be unique; the functions are.
    assert np.ptp(found.first - exact.f) < 1e-6
    assert np.ptp(found.second - exact.slack) < 1e-6


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("agreement", [10.0, 1e3])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_only_accurate_functions_are_reported_as_optimal(seed, agreement, epsilon):
    K, M, sign = grams("rbf", seed=seed)
    costs = np.vstack([np.linspace(0.5, 2.0, len(sign)), np.full(len(sign), 0.3)])
    agreements = np.full(len(sign), agreement)
    exact = oracle.two_view(K, M, sign, costs, agreements, epsilon)
    problem = svm2k_problem(K, M, sign, costs, agreements, epsilon)
    _, found = solved(problem)
    error = max(np.ptp(found.first - exact.f), np.ptp(found.second - exact.slack))
    assert error < 1e-6 or not found.optimal
    assert solve_coupled(problem).converged


@pytest.mark.parametrize("kernel", EQUATIONS)
def test_the_point_is_feasible_and_makes_the_functions(kernel):
    K, M, sign = grams(kernel)
    costs = np.ones((2, len(sign)))
    problem = svm2k_problem(K, M, sign, costs, np.ones(len(sign)), 0.1)
    _, found = solved(problem)
    g, h = problem.expansions(found.point)
    assert (problem.lower <= found.point).all()
    assert (found.point <= problem.upper).all()
    np.testing.assert_allclose([g.sum(), h.sum()], 0.0, atol=1e-12)
    np.testing.assert_allclose(K @ g, found.first, atol=1e-7)
    np.testing.assert_allclose(M @ h, found.second, atol=1e-7)
    at_an_end = (found.point == problem.lower) | (found.point == problem.upper)
    assert np.count_nonzero(~at_an_end) <= np.linalg.matrix_rank(K) + np.linalg.matrix_rank(M) + 2


@pytest.mark.parametrize("scale", [1e-3, 1e2])
def test_units_of_features_do_not_matter(scale):
    K, M, sign = grams("linear")
    costs = np.full(len(sign), 10.0)
    exact = oracle.svm1plus(K, M, sign, costs, 1.0)
    factor = oracle.factor(M)
    scaled = svm1plus_problem(scale**2 * K, M, sign, costs / scale**2, scale**-2, factor=factor)
    method, found = solved(scaled)
    assert found.optimal
    assert method.iterations < 50
    np.testing.assert_allclose(found.first, exact.f, atol=1e-6)


def test_indefinite_kernels_are_left_to_pair_updates():
    K, M, sign = grams("rbf")
    indefinite = K - 0.5 * np.eye(len(K))
    for first, second in ((indefinite, M), (K, indefinite)):
        problem = svm2k_problem(first, second, sign, np.ones((2, 60)), np.ones(60), 0.1)
        assert interior_point.start_interior_point(problem) is None


def test_slow_pair_updates_give_way_to_the_interior_point_method(monkeypatch):
    K, M, sign = grams("linear", n=120)
    costs = np.full(len(sign), 1e3)
    monkeypatch.setattr(solver, "refine_by_active_set", lambda problem, point: None)
    problem = svm1plus_problem(1e4 * K, M, sign, costs, 1e-3)
    found = solve_coupled(problem)
    exact = oracle.svm1plus(1e4 * K, M, sign, costs, 1e-3)
    assert found.converged
    assert found.objective == pytest.approx(exact.objective, rel=1e-6)
    monkeypatch.setattr(solver, "start_interior_point", lambda problem: None)
    pairs = solve_coupled(problem, max_iter=found.iterations)
    assert not pairs.converged


def test_the_number_of_threads_does_not_change_a_bit(monkeypatch):
    K, M, sign = grams("linear", n=150)
    problem = svm1plus_problem(K, M, sign, np.ones(len(sign)), 1.0, factor=oracle.factor(M))
    monkeypatch.setattr(interior_point_options, "chunk", 16)
    points = []
    for number in (1, 4):
        monkeypatch.setattr(threads, "effective_threads", lambda number=number: number)
        points.append(solved(problem)[1].point)
    np.testing.assert_array_equal(points[0], points[1])
