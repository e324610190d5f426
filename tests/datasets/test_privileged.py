"""The generator of privileged features."""

import numpy as np
import pytest

from widemargin.datasets import make_privileged


def test_without_noise_labels_are_true_and_the_feature_is_the_slack():
    X, y, privileged, truth = make_privileged(200, 3, noisy=0.0, measurement=0.0, random_state=0)
    score = X[:, 0] + X[:, 1]
    np.testing.assert_array_equal(y, truth)
    np.testing.assert_array_equal(truth, score > 0)
    np.testing.assert_array_equal(privileged[:, 0], np.maximum(0.0, 1.0 - np.abs(score)))


def test_wrong_labels_have_a_slack_above_1():
    _, y, privileged, truth = make_privileged(2000, measurement=0.0, random_state=0)
    wrong = y != truth
    assert 0.05 < wrong.mean() < 0.25
    np.testing.assert_array_equal(privileged[:, 0] > 1.0, wrong)


def test_the_seed_determines_all_arrays():
    for first, second in zip(
        make_privileged(random_state=3), make_privileged(random_state=3), strict=True
    ):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"n_features": 1}, "n_features must be at least 2"), ({"noisy": 1.5}, "noisy must be")],
)
def test_settings_without_a_meaning_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        make_privileged(**settings)
