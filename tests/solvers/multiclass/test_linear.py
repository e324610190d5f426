"""Linear functions of several classes reach the exact optimum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from tests.oracles.crammer_singer import solve_exactly, value_of
from tests.solvers.multiclass.cases import linear, problem, problems

from widemargin._base.options import crammer_singer_options as options


@settings(max_examples=40)
@given(problems, st.sampled_from([0.0, 1.0, 3.0]), st.booleans())
def test_linear_functions_reach_the_exact_optimum(numbers, bias, rising):
    X, label, cost, n_classes = numbers
    margin = 0.5 + label if rising else None
    solution = linear(X, label, cost, n_classes, margin=margin, bias=bias, max_iter=-1)
    height = 1.0 if margin is None else margin
    exact = solve_exactly(X @ X.T + bias**2, label, cost, n_classes, height)
    scale = cost.sum()
    assert_allclose(solution.objective, exact.objective, atol=1e-7 * scale)
    assert_allclose(solution.dual_objective, exact.objective, atol=1e-7 * scale)
    assert solution.converged


def test_the_gap_bounds_the_distance_to_the_optimum():
    X, label, cost, n_classes = problem(2, n=60)
    exact = solve_exactly(X @ X.T, label, cost, n_classes)
    for passes in (1, 4, 16):
        solution = linear(X, label, cost, n_classes, max_iter=passes)
        assert not solution.converged
        norm = np.sum(solution.weights**2)
        value = value_of(X @ solution.weights[:-1], norm, label, cost)
        assert_allclose(solution.objective, value, rtol=1e-9)
        distance = (solution.objective - exact.objective) / solution.objective
        assert -1e-9 <= distance <= solution.gap + 1e-9


@pytest.mark.parametrize("bias", [0.0, 1.0])
@pytest.mark.parametrize("seed", [2, 5])
def test_the_interior_point_method_reaches_the_exact_optimum(monkeypatch, seed, bias):
    monkeypatch.setattr(options, "handover_passes", 1)
    X, label, cost, n_classes = problem(seed)
    X = X * [1.0, 1e3, 1e-2, 1.0]
    solution = linear(X, label, cost, n_classes, bias=bias, tol=1e-9)
    exact = solve_exactly(X @ X.T + bias**2, label, cost, n_classes)
    assert_allclose(solution.objective, exact.objective, rtol=1e-6)
    assert solution.converged
    assert solution.gap < 1e-6


def test_costs_of_zero_are_left_to_passes(monkeypatch):
    X, label, cost, n_classes = problem(0)
    cost[label == 1] = 0.0
    expected = linear(X, label, cost, n_classes)
    monkeypatch.setattr(options, "handover_passes", 1)
    solution = linear(X, label, cost, n_classes)
    assert solution.converged
    assert_allclose(solution.objective, expected.objective, rtol=1e-9)
