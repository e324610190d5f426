"""The interior-point method for two kernels, held to exact optima."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel
from tests.oracles import privileged as oracle

from widemargin._base import threads
from widemargin.solvers.coupled import interior_point as two_kernels_interior
from widemargin.solvers.coupled import svm1plus, two_kernels
from widemargin.solvers.coupled import svm2k as two_view


def grams(kernel, n=60, columns=3, privileged=2, seed=0):
    """Two Gram matrices and signs that both explain in part."""
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((n, columns)), rng.standard_normal((n, privileged))
    sign = np.where(X[:, 0] + Z[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return *(A @ A.T if kernel == "linear" else rbf_kernel(A, gamma=0.5) for A in (X, Z)), sign


def follow(problem):
    """Where the path of a problem leads."""
    path = two_kernels_interior.start(problem)
    while not path.advance():
        pass
    return path, path.finish()


EQUATIONS = {
    "linear": two_kernels_interior.OverColumns,
    "rbf": two_kernels_interior.OverRows,
}


@pytest.mark.parametrize("kernel", EQUATIONS)
@pytest.mark.parametrize("cost", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize("penalty", [1e-8, 1e-3, 1.0, 1e2])
def test_slack_of_privileged_columns_is_that_of_the_exact_optimum(kernel, cost, penalty):
    K, M, sign = grams(kernel)
    costs = cost * np.linspace(0.5, 2.0, len(sign))
    exact = oracle.svm1plus(K, M, sign, costs, penalty)
    problem = svm1plus._problem(K, M, sign, costs, penalty, oracle.factor(M))
    path, found = follow(problem)
    assert type(path.equations) is EQUATIONS[kernel]
    assert found.optimal
    np.testing.assert_allclose(found.first, exact.f, atol=1e-5)
    assert np.ptp(found.second - exact.slack) < 1e-5 * max(1.0, np.abs(exact.slack).max())


@pytest.mark.parametrize("kernel", EQUATIONS)
@pytest.mark.parametrize("agreement", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_two_views_are_those_of_the_exact_optimum(kernel, agreement, epsilon):
    K, M, sign = grams(kernel)
    costs = np.vstack([np.linspace(0.5, 2.0, len(sign)), np.full(len(sign), 0.3)])
    agreements = np.full(len(sign), agreement)
    exact = oracle.two_view(K, M, sign, costs, agreements, epsilon)
    path, found = follow(two_view._problem(K, M, sign, costs, agreements, epsilon))
    assert type(path.equations) is EQUATIONS[kernel]
    assert found.optimal
    # The constants need not be unique; the functions are.
    assert np.ptp(found.first - exact.f) < 1e-6
    assert np.ptp(found.second - exact.slack) < 1e-6


@pytest.mark.parametrize("kernel", EQUATIONS)
def test_the_point_is_feasible_and_makes_the_functions(kernel):
    K, M, sign = grams(kernel)
    costs = np.ones((2, len(sign)))
    problem = two_view._problem(K, M, sign, costs, np.ones(len(sign)), 0.1)
    _, found = follow(problem)
    g, h = problem.sides(found.point)
    assert (problem.lower <= found.point).all()
    assert (found.point <= problem.upper).all()
    np.testing.assert_allclose([g.sum(), h.sum()], 0.0, atol=1e-12)
    np.testing.assert_allclose(K @ g, found.first, atol=1e-7)
    np.testing.assert_allclose(M @ h, found.second, atol=1e-7)
    at_an_end = (found.point == problem.lower) | (found.point == problem.upper)
    assert np.count_nonzero(~at_an_end) <= np.linalg.matrix_rank(K) + np.linalg.matrix_rank(M) + 2


@pytest.mark.parametrize("scale", [1e-3, 1e2])
def test_units_of_columns_can_be_made_up_for(scale):
    K, M, sign = grams("linear")
    costs = np.full(len(sign), 10.0)
    exact = oracle.svm1plus(K, M, sign, costs, 1.0)
    scaled = svm1plus._problem(scale**2 * K, M, sign, costs / scale**2, scale**-2, oracle.factor(M))
    path, found = follow(scaled)
    assert found.optimal
    assert path.iterations < 50
    np.testing.assert_allclose(found.first, exact.f, atol=1e-6)


def test_kernels_that_are_none_have_no_path():
    K, M, sign = grams("rbf")
    indefinite = K - 0.5 * np.eye(len(K))
    for first, second in ((indefinite, M), (K, indefinite)):
        problem = two_view._problem(first, second, sign, np.ones((2, 60)), np.ones(60), 0.1)
        assert two_kernels_interior.start(problem) is None


def test_pairs_that_crawl_give_way_to_the_path(monkeypatch):
    K, M, sign = grams("linear", n=120)
    costs = np.full(len(sign), 1e3)
    monkeypatch.setattr(two_kernels, "settle", lambda problem, point: None)
    found = svm1plus.solve_svm1plus(1e4 * K, M, sign, costs, 1e-3)
    exact = oracle.svm1plus(1e4 * K, M, sign, costs, 1e-3)
    assert found.converged
    assert found.objective == pytest.approx(exact.objective, rel=1e-6)
    monkeypatch.setattr(two_kernels_interior, "start", lambda problem: None)
    pairs = svm1plus.solve_svm1plus(1e4 * K, M, sign, costs, 1e-3, max_iter=found.iterations)
    assert not pairs.converged


def test_the_number_of_threads_does_not_change_a_bit(monkeypatch):
    K, M, sign = grams("linear", n=150)
    problem = svm1plus._problem(K, M, sign, np.ones(len(sign)), 1.0, oracle.factor(M))
    monkeypatch.setattr(two_kernels_interior, "_CHUNK", 16)
    points = []
    for number in (1, 4):
        monkeypatch.setattr(threads, "effective_threads", lambda number=number: number)
        points.append(follow(problem)[1].point)
    np.testing.assert_array_equal(points[0], points[1])
