"""Parts of the interior-point methods, on a quadratic program with a known solution."""

import numpy as np
import pytest
from scipy import linalg

from widemargin.solvers.interior_point import (
    Progress,
    cholesky,
    predictor_corrector,
    scaled_least_squares,
    step_to_boundary,
    sum_over_chunks,
)


def test_the_method_solves_a_projection_onto_the_nonnegative_orthant():
    # min 1/2 |x - a|^2 with x >= 0: x = max(a, 0), and the multipliers are max(-a, 0).
    a = np.array([1.5, -2.0, 0.3, -0.01, 4.0])
    x, multiplier = np.ones(5), np.ones(5)

    def direction(change):
        missing = a - x + multiplier
        dx = (missing + change / x) / (1.0 + multiplier / x)
        return dx, dx, (change - multiplier * dx) / x

    for _ in range(30):
        _, dx, dm, length = predictor_corrector(direction, x, multiplier, 5)
        x, multiplier = x + length * dx, multiplier + length * dm
        assert (x > 0.0).all()
        assert (multiplier > 0.0).all()
    np.testing.assert_allclose(x, np.maximum(a, 0.0), atol=1e-10)
    np.testing.assert_allclose(multiplier, np.maximum(-a, 0.0), atol=1e-10)


def test_a_step_ends_where_the_first_value_vanishes():
    assert step_to_boundary(np.array([1.0, 2.0]), np.array([-4.0, -4.0])) == 0.25
    assert step_to_boundary(np.array([1.0, 2.0]), np.array([-0.5, 3.0])) == 1.0
    assert step_to_boundary(np.array([1.0]), np.zeros(1)) == 1.0


def test_the_cholesky_factor_of_a_definite_matrix_is_exact():
    root = np.random.default_rng(0).standard_normal((4, 4))
    matrix = root @ root.T + np.eye(4)
    factor, lower = cholesky(matrix.copy())
    assert lower
    np.testing.assert_array_equal(np.tril(factor), linalg.cholesky(matrix, lower=True))


def test_a_singular_matrix_has_a_cholesky_factor_nearby():
    vector = np.arange(1.0, 5.0)
    matrix = np.outer(vector, vector)
    factor, _ = cholesky(matrix.copy())
    np.testing.assert_allclose(np.tril(factor) @ np.tril(factor).T, matrix, rtol=1e-7)


def test_an_indefinite_matrix_has_no_cholesky_factor():
    with pytest.raises(linalg.LinAlgError):
        cholesky(-np.eye(3))


def test_least_squares_ignore_what_the_matrix_does_not_determine():
    matrix = np.diag([1.0, 4.0, 0.0])
    np.testing.assert_allclose(scaled_least_squares(matrix, np.array([2.0, 4.0, 0.0])), [2, 1, 0])


def test_the_sum_over_chunks_has_every_row_once():
    values = np.arange(5000.0)
    assert sum_over_chunks(lambda rows: values[rows].sum(), len(values)) == values.sum()


def test_progress_keeps_the_best_point_and_ends_when_it_is_near():
    progress = Progress(precision=1e-9, near=1e-6)
    assert not progress.update(1.0, "first")
    assert not progress.update(1e-7, "second")
    stops = [progress.update(1e-3, "worse") for _ in range(6)]
    assert progress.point == "second"
    assert progress.best == 1e-7
    assert stops == [False] * 4 + [True] * 2


def test_far_from_the_optimum_progress_may_take_longer():
    progress = Progress(precision=1e-9, near=1e-6)
    stops = [progress.update(1.0, None) for _ in range(50)]
    assert stops.index(True) > 20


def test_progress_ends_at_the_precision():
    assert Progress(precision=1e-9, near=1e-6).update(1e-10, "point")
