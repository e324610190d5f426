"""Majorize-minimize reaches the exact optimum, over features and over Gram matrices."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from numpy.testing import assert_allclose
from scipy import sparse
from tests.oracles.hinge import Hinge, solve_exactly
from tests.oracles.strategies import hinge_problems

from widemargin.kernels import MatrixGram
from widemargin.solvers import HingeProblem, solve_hinge
from widemargin.solvers.hinge.majorize_minimize import majorize_minimize


def rows_of(gram):
    """Rows whose inner products are the Gram matrix."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > values[-1] * len(gram) * np.finfo(float).eps
    return np.ascontiguousarray(vectors[:, kept] * np.sqrt(values[kept]))


def as_problem(hinge):
    return HingeProblem(MatrixGram(hinge.gram), *hinge[1:])


def random_rows(n=300, d=8, seed=0, cost=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    sign = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    margin = rng.uniform(-1.0, 2.0, n)
    return X, Hinge(X @ X.T + 1.0, sign, margin, cost * rng.uniform(0.5, 2.0, n), False)


@settings(max_examples=15)
@given(problem=hinge_problems(decades=0, intercept=False))
def test_majorisation_ends_as_near_to_the_exact_objective_as_it_says(problem):
    assume(np.isfinite(problem.cost).all())
    # A dual variable that is a small part of its cost takes as many iterations as it is smaller.
    problem = problem._replace(cost=np.minimum(problem.cost, 1.0 / np.diag(problem.gram).max()))
    exact = solve_exactly(problem)
    for rows in (None, rows_of(problem.gram)):
        found = majorize_minimize(as_problem(problem), features=rows, gap_tol=1e-7, max_iter=2000)
        assert abs(found.objective - exact.objective) <= max(1e-6, found.gap) * exact.scale


@pytest.mark.large
@pytest.mark.parametrize("cost", [1e-3, 1.0, 30.0])
def test_the_exact_objective_is_reached_with_a_constant_feature(cost):
    X, hinge = random_rows(cost=cost)
    exact = solve_exactly(hinge)
    for rows in (X, sparse.csr_array(X)):
        found = majorize_minimize(as_problem(hinge), features=rows, bias=1.0, gap_tol=1e-7)
        assert found.converged
        assert found.gap <= 1e-7
        assert_allclose(found.objective, exact.objective, rtol=1e-7)


def test_margins_that_are_met_by_nothing_cost_nothing():
    X, hinge = random_rows()
    hinge = hinge._replace(margin=-np.ones(len(X)))
    found = majorize_minimize(as_problem(hinge), features=X, bias=1.0)
    assert found.converged
    assert found.objective <= 1e-6


def test_a_limit_on_passes_is_kept_and_told():
    X, hinge = random_rows(cost=100.0)
    found = majorize_minimize(as_problem(hinge), features=X, bias=1.0, gap_tol=1e-12, max_iter=2)
    assert found.iterations == 2
    assert not found.converged


def test_a_report_stops_the_solver():
    X, hinge = random_rows(cost=100.0)
    seen = []

    def stop(state):
        seen.append(state)
        return True

    found = majorize_minimize(as_problem(hinge), features=X, bias=1.0, gap_tol=1e-12, report=stop)
    assert len(seen) == 1
    assert not found.converged


@pytest.mark.parametrize(
    "cost", [30.0, *(pytest.param(cost, marks=pytest.mark.large) for cost in (1e3, 1e5))]
)
@pytest.mark.parametrize("n_features", [5, 80])
def test_majorisation_ends_where_rounding_or_separable_rows_would_keep_it_from_the_gap(
    cost, n_features
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, n_features))
    sign = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0.0, 1.0, -1.0)
    problem = HingeProblem(X @ X.T, sign, 1.0 + rng.normal(size=60), cost, intercept=False)
    best = solve_hinge(problem, gap_tol=1e-10)
    found = majorize_minimize(problem, features=X, gap_tol=1e-7)
    assert found.converged
    assert_allclose(found.objective, best.objective, rtol=1e-6)
