"""Stopping rules: tolerances, rounding floors, gaps, and the work of two methods."""

import numpy as np
import pytest

from widemargin.solvers.solution import relative_gap
from widemargin.solvers.stopping import equivalent_updates, initial_tol, next_tol, rounding_floor


def test_without_a_gap_tolerance_the_tolerance_is_used_as_it_is():
    assert initial_tol(1e-5, None) == 1e-5


def test_with_a_gap_tolerance_the_first_tolerance_is_loose():
    assert initial_tol(1e-3, 1e-9) == 0.1
    assert initial_tol(2.0, 1e-9) == 2.0


def test_the_tolerance_is_tightened_until_the_gap_is_closed():
    tol, seen = initial_tol(1e-3, 1e-6), []
    while (tighter := next_tol(tol, closed=tol < 1e-4)) is not None:
        tol = tighter
        seen.append(tol)
    assert seen == pytest.approx([1e-2, 1e-3, 1e-4, 1e-5])


def test_a_violation_of_the_size_of_rounding_ends_it():
    assert next_tol(0.1, closed=False, rounded=True) is None


def test_a_gap_that_never_closes_ends_it():
    tol, rounds = initial_tol(1e-3, 0.0), 0
    while (tighter := next_tol(tol, closed=False)) is not None:
        tol, rounds = tighter, rounds + 1
    assert rounds < 20
    assert tol <= 1e-13


@pytest.mark.parametrize("closed", [True, False])
def test_a_tolerance_of_nan_ends_it(closed):
    assert next_tol(np.nan, closed=closed) is None


def test_the_rounding_floor_bounds_the_error_of_a_sum():
    generator = np.random.default_rng(0)
    values = generator.standard_normal(1000)
    exact = float(np.sum(values.astype(np.longdouble)))
    assert abs(float(np.sum(values)) - exact) <= rounding_floor(np.abs(values).sum())
    assert rounding_floor(1.0) == 4.0 * np.finfo(float).eps
    assert rounding_floor(3.0, factor=8.0) == 24.0 * np.finfo(float).eps


def test_more_work_is_worth_more_updates_and_larger_problems_fewer():
    few, many = equivalent_updates(1e6, 100), equivalent_updates(1e8, 100)
    assert isinstance(few, int)
    assert 0 < few < many
    assert equivalent_updates(1e8, 1000) < many


def test_the_relative_gap_is_not_negative_and_needs_a_definite_kernel():
    assert relative_gap(2.0, 1.5) == 0.25
    assert relative_gap(1.0, 1.0 + 1e-15) == 0.0
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(np.inf, 1.0) == np.inf
    assert np.isnan(relative_gap(1.0, 0.5, positive_semidefinite=False))


@pytest.mark.parametrize("bound", [np.nan, -np.inf, np.inf])
def test_a_bound_that_has_overflowed_certifies_nothing(bound):
    assert relative_gap(2.0, bound) == 1.0
    assert relative_gap(np.nan, 1.0) == np.inf
