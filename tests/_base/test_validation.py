"""Input is validated once; what is refused is named."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import validation

from widemargin import (
    SVC,
    CodeMatrixClassifier,
    CrammerSingerSVC,
    KernelDiscriminantAnalysis,
    LabelTreeClassifier,
    LinearDiscriminantAnalysis,
    LinearSVC,
    RescaledClassifier,
)
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


ESTIMATORS = [
    KernelDiscriminantAnalysis(),
    LabelTreeClassifier(),
    LinearDiscriminantAnalysis(),
    LinearSVC(),
    SVC(),
]
each_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


@each_estimator
def test_entries_outside_of_a_sparse_matrix_are_refused(estimator):
    outside = sparse.csr_array(X)
    outside.indices[0] = 77
    with pytest.raises(ValueError, match="X must have column indices from 0 to 2, got 0 to 77"):
        clone(estimator).fit(outside, Y)


@each_estimator
def test_labels_that_are_objects_are_refused_by_name(estimator):
    with pytest.raises(ValueError, match="y must contain class labels of one type, got int in an"):
        clone(estimator).fit(X, Y.astype(object))


@pytest.mark.parametrize("argument", ["class_weight", "class_margin"])
def test_text_in_place_of_numbers_of_classes_is_refused_by_name(argument):
    with pytest.raises(ValueError, match=f"{argument} must contain numbers, but could not convert"):
        SVC(**{argument: {0: "a"}}).fit(X, Y)


def test_a_dict_of_priors_is_refused_by_name():
    with pytest.raises(TypeError, match="priors must contain numbers, but float"):
        LinearDiscriminantAnalysis(priors={0: 0.5, 1: 0.25, 2: 0.25}).fit(X, Y)


@pytest.mark.parametrize("kind", [CodeMatrixClassifier, RescaledClassifier])
def test_a_dict_of_samples_is_refused(kind):
    with pytest.raises(ValueError, match="Expected 2D array"):
        kind(LogisticRegression()).fit({"a": [1.0, 2.0]}, [0, 1])
