"""Code matrices: shapes, distances and what is refused."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from widemargin import code_matrix

RANDOM = ("dense", "sparse")
NAMES = ("ovr", "ovo", "exhaustive", *RANDOM)


def distance(first, second):
    """Allwein, Schapire and Singer's, place by place."""
    return sum(0.5 if u * v == 0 else float(u != v) for u, v in zip(first, second, strict=True))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_classes", [3, 4, 5, 9])
def test_the_minimum_distance_is_that_of_the_nearest_code_words(name, n_classes):
    matrix, minimum = code_matrix(name, n_classes, random_state=1)
    assert minimum == min(distance(u, v) for u, v in combinations(matrix, 2))


@pytest.mark.parametrize("n_classes", [3, 5, 8])
def test_distances_of_the_classical_codes_are_known(n_classes):
    pairs = n_classes * (n_classes - 1) // 2
    assert code_matrix("ovr", n_classes)[1] == 2
    assert code_matrix("ovo", n_classes)[1] == (pairs - 1) / 2 + 1
    assert code_matrix("exhaustive", n_classes)[1] == 2 ** (n_classes - 2)


@pytest.mark.parametrize(
    ("name", "n_classes", "n_columns"),
    [
        ("ovr", 26, 26),
        ("ovo", 26, 325),
        ("exhaustive", 12, 2047),
        ("dense", 26, 48),
        ("sparse", 26, 71),
        ("dense", 105, 68),
        ("sparse", 105, 101),
        ("dense", 4, 7),
        ("sparse", 3, 6),
    ],
)
def test_the_number_of_machines_is_as_promised(name, n_classes, n_columns):
    assert code_matrix(name, n_classes)[0].shape == (n_classes, n_columns)


@settings(max_examples=25)
@given(
    name=st.sampled_from(NAMES),
    n_classes=st.integers(3, 12),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_machine_has_two_sides_and_differs_from_the_others(name, n_classes, seed):
    matrix, _ = code_matrix(name, n_classes, random_state=seed)
    assert set(np.unique(matrix)) <= {-1, 0, 1}
    assert (matrix.max(axis=0) == 1).all()
    assert (matrix.min(axis=0) == -1).all()
    both = np.hstack([matrix, -matrix])
    assert np.unique(both, axis=1).shape[1] == 2 * matrix.shape[1]
    opposite = [(u * v == -1).any() for u, v in combinations(matrix, 2)]
    assert all(opposite)


def test_half_of_a_sparse_matrix_is_zero():
    matrix, _ = code_matrix("sparse", 40)
    assert 0.45 < (matrix == 0).mean() < 0.55


def test_the_best_of_many_random_matrices_is_taken():
    chosen = code_matrix("dense", 20, random_state=0)[1]
    rng = np.random.default_rng(0)
    drawn = [rng.choice([-1, 1], size=(20, 44)) for _ in range(50)]
    closest = [min(distance(u, v) for u, v in combinations(matrix, 2)) for matrix in drawn]
    assert chosen > np.median(closest)


@pytest.mark.parametrize("name", RANDOM)
def test_a_seed_repeats_a_matrix_and_none_is_a_seed(name):
    first, second, other = (code_matrix(name, 10, random_state=seed)[0] for seed in (3, 3, 4))
    assert_array_equal(first, second)
    assert (first != other).any()
    assert_array_equal(code_matrix(name, 10)[0], code_matrix(name, 10)[0])


@pytest.mark.parametrize("name", NAMES)
def test_two_classes_need_one_machine(name):
    assert_array_equal(code_matrix(name, 2)[0], [[-1], [1]])


def test_too_many_classes_for_all_splits_are_refused():
    with pytest.raises(ValueError, match="at most 12 classes, got 13, which would need 4,095"):
        code_matrix("exhaustive", 13)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("all", 3), "name must be one of 'ovr', .*, got 'all'"),
        (("ovr", 1), "n_classes must be an integer of at least 2, got 1"),
        (("ovr", 2.5), "n_classes must be an integer of at least 2, got 2.5"),
    ],
)
def test_unknown_codes_and_too_few_classes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        code_matrix(*arguments)
