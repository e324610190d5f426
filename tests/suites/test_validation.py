"""Samples are validated once: where they enter, and not again inside."""

import sys
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.utils import validation
from tests.suites.registry import CASES, each_case

from widemargin import (
    SVCCV,
    CodeMatrixClassifier,
    LinearDiscriminantAnalysis,
    PreferenceClassifier,
    QuadraticDiscriminantAnalysis,
    RescaledClassifier,
)
from widemargin._base.sklearn_compat import safe_split

# Meta-estimators check the shape; the wrapped estimators validate what they are given.
WRAPPERS = (CodeMatrixClassifier, PreferenceClassifier, RescaledClassifier)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@contextmanager
def counted(monkeypatch, X, parts=()):
    """Count the calls of scikit-learn's check_array on X, on memory of X or on one of parts."""
    calls = []
    original = validation.check_array

    def check_array(array, *arguments, **options):
        part = any(array is other for other in parts)
        if array is X or part or (isinstance(array, np.ndarray) and np.shares_memory(array, X)):
            calls.append(sys._getframe(1).f_code.co_qualname)
        return original(array, *arguments, **options)

    with monkeypatch.context() as patch:
        for name, module in list(sys.modules.items()):
            uses = getattr(module, "check_array", None) is original
            if uses and name.split(".")[0] in ("sklearn", "widemargin"):
                patch.setattr(module, "check_array", check_array)
        yield calls


@each_case(lambda case: not isinstance(case.estimator, WRAPPERS))
def test_fit_and_predict_validate_samples_once(case, monkeypatch):
    X, y = case.data()
    X = X @ X.T if case.pairwise else X
    X = np.ascontiguousarray(X, dtype=np.float64)
    model = case.new()
    with counted(monkeypatch, X) as calls:
        model.fit(X, y)
    assert len(calls) == 1, calls
    with counted(monkeypatch, X) as calls:
        model.predict(X)
    assert len(calls) == 1, calls


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy", "roc_auc"])
def test_scores_of_folds_validate_no_samples(scoring, monkeypatch):
    X, y = make_classification(random_state=0)
    X_test = []

    def split(search, X, y, indices, train=None):
        X, y = safe_split(search, X, y, indices, train)
        X_test.append(X)
        return X, y

    monkeypatch.setattr("widemargin.svm.search.safe_split", split)
    with counted(monkeypatch, X, X_test) as calls:
        SVCCV(Cs=[0.1, 1.0], gammas=[0.1, 1.0], scoring=scoring).fit(X, y)
    assert len(calls) == 1, calls


@pytest.mark.parametrize("model", [LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis()])
def test_fit_validates_sample_weights_once(model, monkeypatch):
    X, y = make_classification(random_state=0, n_redundant=0)
    weights = np.arange(len(y), dtype=np.float64)
    with counted(monkeypatch, weights) as calls:
        model.fit(X, y, sample_weight=weights)
    assert len(calls) == 1, calls


@each_case(lambda case: isinstance(case.estimator, WRAPPERS))
def test_a_wrapped_estimator_and_its_wrapper_look_at_samples_once_each(case, monkeypatch):
    X, y = case.data()
    X = np.ascontiguousarray(X, dtype=np.float64)
    model = case.new().fit(X, y)
    with counted(monkeypatch, X) as calls:
        model.predict(X)
    assert 1 <= len(calls) <= 1 + len(getattr(model, "estimators_", [model])), calls


def test_there_are_estimators_of_both_kinds():
    assert {isinstance(case.estimator, WRAPPERS) for case in CASES} == {True, False}
