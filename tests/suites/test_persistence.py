"""Estimators survive pickling, copying and cloning."""

import copy
import io
import pickle

import cloudpickle
import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from tests.suites.registry import answers, each_case


def through_joblib(estimator):
    buffer = io.BytesIO()
    joblib.dump(estimator, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


WAYS = {
    "pickle": lambda estimator: pickle.loads(pickle.dumps(estimator)),
    "cloudpickle": lambda estimator: cloudpickle.loads(cloudpickle.dumps(estimator)),
    "joblib": through_joblib,
    "deepcopy": copy.deepcopy,
}


@each_case(lambda case: True)
@pytest.mark.parametrize("way", WAYS)
def test_a_copy_answers_the_same(case, way):
    X, y = case.data()
    X = X @ X.T if case.pairwise else X
    estimator = case.new().fit(X, y)
    again = WAYS[way](estimator)
    assert repr(again.get_params()) == repr(estimator.get_params())
    assert_array_equal(answers(again, X), answers(estimator, X))
    assert vars(again).keys() == vars(estimator).keys()


@each_case(lambda case: True)
def test_a_clone_forgets_the_fit_and_keeps_the_parameters(case):
    X, y = case.data()
    X = X @ X.T if case.pairwise else X
    estimator = case.new().fit(X, y)
    fresh = clone(estimator)
    assert repr(fresh.get_params()) == repr(estimator.get_params())
    with pytest.raises(NotFittedError):
        answers(fresh, X)
    assert_array_equal(answers(fresh.fit(X, y), X), answers(estimator, X))


@each_case()
def test_a_fitted_estimator_does_not_carry_the_gram_matrix(case):
    X, y = case.data(n_samples=600)
    estimator = case.new().fit(X, y)
    assert len(pickle.dumps(estimator)) < 600 * 600 * np.dtype(float).itemsize / 4
