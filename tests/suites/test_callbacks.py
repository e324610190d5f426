"""Callbacks see the fits of estimators whose problems are no solver's of their own."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from tests.suites.callbacks import Recorder
from tests.suites.registry import classification

from widemargin import (
    SVC,
    CodeMatrixClassifier,
    GatedStudents,
    GatedSVC,
    KernelDiscriminantAnalysis,
    LinearDiscriminantAnalysis,
    LinearSVC,
    QuadraticDiscriminantAnalysis,
)

PROBLEMS = [
    (LinearDiscriminantAnalysis(), 1),
    (LinearDiscriminantAnalysis(solver="svd"), 1),
    (QuadraticDiscriminantAnalysis(), 1),
    (KernelDiscriminantAnalysis(), 1),
    (GatedSVC(1), 1),
    (GatedStudents(), 3),
    (GatedStudents(LogisticRegression(), kernel="rbf", n_jobs=2), 3),
    (GatedStudents(targets=[0, 2], solver="majorize-minimize"), 2),
    (CodeMatrixClassifier(SVC(), code="ovo", n_jobs=2), 3),
    (CodeMatrixClassifier(SVC(probability=True)), 3),
    (CodeMatrixClassifier(LinearSVC()), 3),
]
GATED = [
    GatedSVC(1, LogisticRegression(), kernel="rbf", tol=1e-9),
    GatedStudents(tol=1e-9),
    GatedStudents(solver="majorize-minimize", tol=1e-9),
]


@pytest.mark.parametrize(("estimator", "problems"), PROBLEMS, ids=str)
def test_callbacks_see_every_problem_and_change_nothing(estimator, problems):
    X, y = classification()
    plain, recorder = clone(estimator).fit(X, y), Recorder()
    model = clone(estimator).set_callbacks(recorder).fit(X, y)
    assert sorted(number for name, number in recorder.begun if name == "problem") == [
        *range(problems)
    ]
    assert sorted(recorder.begun, key=str) == sorted(recorder.ended, key=str)
    assert recorder.hooks == ["setup", "teardown"]
    assert recorder.begun[0][0] == "fit"
    if not isinstance(estimator, GatedSVC):  # a student is scored by the truth about its class
        assert recorder.fitted[-1] == plain.score(X, y)
    assert_array_equal(model.decision_function(X), plain.decision_function(X))
    # A second fit without callbacks, and a clone, which keeps them.
    assert model.set_callbacks().fit(X, y).score(X, y) == plain.score(X, y)


@pytest.mark.parametrize("estimator", GATED, ids=str)
def test_a_callback_stops_students(estimator):
    X, y = classification(300)
    stop = Recorder(lambda context: context.task_name == "slice")
    with pytest.warns(ConvergenceWarning, match="requested by a callback"):
        model = clone(estimator).set_callbacks(stop).fit(X, y)
    assert model.fit_status_ == 1
    assert np.isfinite(model.decision_function(X)).all()


def test_a_callback_stops_the_classifiers_of_a_code_matrix():
    X, y = classification(300)
    stop = Recorder(lambda context: context.task_name == "problem")
    model = CodeMatrixClassifier(SVC(C=1e4, tol=1e-9), code="ovo").set_callbacks(stop)
    with pytest.warns(ConvergenceWarning, match="requested by a callback"):
        model.fit(X, y)
    assert (model.dual_gap_ >= 0.0).all()
    assert stop.fitted
    assert all(0.0 <= score <= 1.0 for score in stop.fitted)


def test_a_code_matrix_with_the_probabilities_of_svc():
    X, y = classification()
    model = CodeMatrixClassifier(SVC(probability=True), code="ovr").fit(X, y)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    parts = np.column_stack([part.predict_proba(X)[:, 1] for part in model.estimators_])
    np.testing.assert_allclose(probabilities, parts / parts.sum(axis=1, keepdims=True))
    assert not hasattr(CodeMatrixClassifier(SVC()).fit(X, y), "predict_proba")
