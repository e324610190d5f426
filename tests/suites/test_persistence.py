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

from widemargin import SVC
from widemargin._base import sklearn_compat
from widemargin.structured import ChainCRF, FrankWolfeSSVM


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


def saved_by(version, estimator):
    """Return a pickle of an estimator as another version of widemargin writes it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sklearn_compat, "__version__", version)
        return pickle.dumps(estimator)


@each_case()
def test_a_pickle_of_another_version_warns(case):
    content = saved_by("0.0.1", case.new())
    with pytest.warns(UserWarning, match=r"saved by widemargin 0\.0\.1 and loaded by widemargin"):
        pickle.loads(content)


def test_a_pickle_without_a_version_warns(monkeypatch):
    base = sklearn_compat.BaseEstimator
    with monkeypatch.context() as patch:
        patch.delattr(base, "__getstate__")
        content = pickle.dumps(SVC())
    with pytest.warns(UserWarning, match="This SVC was saved by widemargin without a version"):
        pickle.loads(content)


@pytest.mark.parametrize("estimator", [FrankWolfeSSVM(ChainCRF()), ChainCRF()], ids=str)
def test_structured_pickles_have_versions_too(estimator):
    content = saved_by("0.0.1", estimator)
    with pytest.warns(UserWarning, match=r"saved by widemargin 0\.0\.1"):
        pickle.loads(content)
