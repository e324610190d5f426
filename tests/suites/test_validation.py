"""Samples are validated once: where they enter, and not again inside."""

import sys
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.utils import validation
from tests.suites.registry import CASES, each_case

from widemargin import CodeMatrixClassifier, PreferenceClassifier, RescaledClassifier

# Meta-estimators check the shape; the wrapped estimators validate what they are given.
WRAPPERS = (CodeMatrixClassifier, PreferenceClassifier, RescaledClassifier)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@contextmanager
def counted(monkeypatch, X):
    """Count the calls of scikit-learn's check_array on X or on memory of X."""
    calls = []
    original = validation.check_array

    def check_array(array, *arguments, **options):
        if array is X or (isinstance(array, np.ndarray) and np.shares_memory(array, X)):
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
