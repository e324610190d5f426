"""Samples are validated once in fit and once in each method for prediction."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.utils import validation

from widemargin import PreferenceSVC, TransductiveSVC

X, Y = make_classification(120, flip_y=0.1, random_state=0)


@pytest.fixture
def calls(monkeypatch):
    counted, check_array = [], validation.check_array

    def count(array, *arguments, **options):
        if np.ndim(array) == 2:  # not the labels
            counted.append(array)
        return check_array(array, *arguments, **options)

    monkeypatch.setattr(validation, "check_array", count)
    return counted


@pytest.mark.parametrize(
    ("estimator", "methods"),
    [
        (
            PreferenceSVC(random_state=0),
            ("predict", "decision_function", "score_samples"),
        ),
        (TransductiveSVC(), ("predict", "decision_function")),
    ],
    ids=["PreferenceSVC", "TransductiveSVC"],
)
def test_each_input_is_validated_once(calls, estimator, methods):
    estimator.fit(X[:60], Y[:60], X_unlabeled=X[60:])
    assert len(calls) == 2  # the labeled and the unlabeled samples
    for method in methods:
        calls.clear()
        getattr(estimator, method)(X)
        assert len(calls) == 1


def test_new_samples_are_validated_once_for_a_new_threshold(calls):
    model = PreferenceSVC(random_state=0).fit(X[:60], Y[:60])
    calls.clear()
    model.recalibrate(X[60:], Y[60:])
    assert len(calls) == 1
    model.set_constraints(recall=0.7)
    assert len(calls) == 1
