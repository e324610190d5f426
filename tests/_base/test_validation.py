"""Samples that a meta-estimator has validated are not validated again."""

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import validation

from widemargin import SVC, CrammerSingerSVC, KernelDiscriminantAnalysis, LinearSVC
from widemargin._base.validation import ValidatedSamples

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.argmax(X, axis=1)


@pytest.mark.parametrize("kind", [CrammerSingerSVC, LinearSVC, SVC])
def test_validated_samples_are_taken_without_checks(kind, monkeypatch):
    expected = kind().fit(X, Y).decision_function(X)
    for name in ("check_array", "check_X_y"):
        monkeypatch.setattr(validation, name, None)
    estimator = kind().fit(ValidatedSamples(X, X), Y)
    found = estimator.decision_function(ValidatedSamples(X, X))
    np.testing.assert_array_equal(found, expected)


def test_names_and_number_of_features_are_still_compared():
    frame = pd.DataFrame(X, columns=list("abc"))
    estimator = LinearSVC().fit(ValidatedSamples(X, frame), Y)
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        estimator.predict(ValidatedSamples(X[:, ::-1].copy(), frame[list("cba")]))
    estimator.fit(X, Y)
    with pytest.raises(ValueError, match="expecting 3 features"):
        estimator.predict(ValidatedSamples(X[:, :2].copy(), X[:, :2]))


@pytest.mark.parametrize("kind", [KernelDiscriminantAnalysis, SVC])
def test_text_in_place_of_numbers_is_refused_by_name(kind):
    with pytest.raises(ValueError, match="X must contain numbers, but could not convert"):
        kind().fit([["a"], ["b"]], [0, 1])
    with pytest.raises(ValueError, match="sample_weight must contain numbers, but could not"):
        kind().fit(X, Y, sample_weight="a")


def test_a_subclass_may_have_attributes_of_any_name():
    class Subclass(SVC):
        _names = ("first", "second")

    assert Subclass(C=3.0).get_params() == SVC(C=3.0).get_params()
