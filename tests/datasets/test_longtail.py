"""The long-tail generator."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from widemargin.datasets import make_long_tail


@given(
    n_classes=st.integers(2, 12),
    extra=st.integers(0, 500),
    imbalance=st.floats(1.0, 1e4),
    profile=st.sampled_from(["exponential", "step"]),
)
def test_every_class_has_rows_and_they_add_up(n_classes, extra, imbalance, profile):
    n = n_classes + extra
    X, y = make_long_tail(n, n_classes, imbalance=imbalance, profile=profile, random_state=0)
    counts = np.bincount(y, minlength=n_classes)
    assert X.shape == (n, 10)
    assert counts.sum() == n
    assert counts.min() >= 1
    assert (np.diff(counts) <= 1).all()


def test_class_sizes_fall_as_told():
    _, y = make_long_tail(11_111, 5, imbalance=1e4, random_state=0)
    assert np.bincount(y).tolist() == [10_000, 1_000, 100, 10, 1]
    _, y = make_long_tail(220, 4, imbalance=10, profile="step", random_state=0)
    assert np.bincount(y).tolist() == [100, 100, 10, 10]


def test_means_are_as_far_apart_as_told():
    X, y = make_long_tail(20_000, 40, imbalance=1, n_features=30, separation=5.0, random_state=0)
    means = np.array([X[y == k].mean(axis=0) for k in range(40)])
    distance = np.sqrt(((means[:, np.newaxis] - means) ** 2).sum(axis=2))
    assert np.mean(distance[np.triu_indices(40, 1)]) == pytest.approx(5.0, rel=0.05)
    assert np.std(X - means[y]) == pytest.approx(1.0, rel=0.02)


def test_a_seed_repeats_the_data():
    first, again, other = (make_long_tail(50, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert (first[0] != other[0]).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_classes": 1}, "n_classes must be at least 2"),
        ({"n_samples": 5}, "n_samples at least n_classes"),
        ({"imbalance": 0.5}, "imbalance must be a number of at least 1, got 0.5"),
        ({"profile": "linear"}, "profile must be 'exponential', 'zipf' or 'step', got 'linear'"),
    ],
)
def test_impossible_wishes_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_long_tail(**options)
