"""Inference of merged students: one product, invalid values refused, no teacher in the pickle."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.naive_bayes import GaussianNB

from widemargin import CrammerSingerSVC, GatedStudents, GatedSVC
from widemargin.gated import base
from widemargin.svm.scores import finite_scores


def test_a_merged_student_reads_its_samples_once(three, teacher, monkeypatch):
    X, y = three
    student = GatedSVC("bee", teacher).fit(X, y)
    seen = []

    def watch(estimator, X, *coefficients):
        seen.append(len(X))
        return finite_scores(estimator, X, *coefficients)

    monkeypatch.setattr(base, "finite_scores", watch)
    assert_allclose(student.decision_function(X), X @ student.coef_ + student.intercept_)
    assert seen == [len(X)]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_values_that_are_not_finite_are_refused_whatever_their_weight(three, value, layout):
    X, y = three
    X = np.hstack([X, np.zeros((len(X), 1))])
    student = GatedSVC("bee").fit(X, y)
    assert student.coef_[-1] == 0.0
    for column in (0, X.shape[1] - 1):
        broken = X.copy()
        broken[3, column] = value
        with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
            student.predict(layout(broken))


def test_scores_that_overflow_are_returned(three, teacher):
    X, y = three
    student = GatedSVC("bee", teacher).fit(X, y)
    huge = np.full((1, X.shape[1]), 1e308) * np.sign(student.coef_)
    student.coef_ = 1e10 * student.coef_
    assert student.decision_function(huge) == np.inf


def test_an_export_predicts_samples_without_validation(three, teacher):
    X, y = three
    student = GatedSVC("bee", teacher).fit(X, y)
    export = student.export()
    assert_array_equal(export.predict(X), student.predict(X))
    assert [export.predict(x) for x in X[:9]] == student.predict(X[:9]).tolist()
    scores = teacher.decision_function(X)
    gated = GatedSVC("bee", classes=teacher.classes_).fit(X, y, teacher_scores=scores)
    gated_export = gated.export()
    assert gated_export.needs_teacher
    own = gated.decision_function(X, scores)
    assert_allclose(gated_export.decision_function(X, scores[:, 1]), own)
    assert_array_equal(gated_export.predict(X, scores[:, 1]), own >= 0.0)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_pickled_student_holds_no_teacher(three, kernel):
    X, y = three
    teacher = CrammerSingerSVC(kernel=kernel).fit(X, y)
    teacher.ballast = np.zeros(100_000)
    for student in (GatedSVC("bee", teacher), GatedStudents(teacher, targets=["ant", "bee"])):
        content = pickle.dumps(student.fit(X, y))
        assert len(content) < 50_000
        restored = pickle.loads(content)
        assert_array_equal(restored.decision_function(X), student.decision_function(X))
        with pytest.raises(ValueError, match="teacher was not pickled"):
            restored.fit(X, y)
        assert student.teacher is teacher
        restored.set_params(teacher=teacher).fit(X, y)
        assert_array_equal(restored.decision_function(X), student.decision_function(X))


def test_a_teacher_that_predictions_need_is_pickled(three):
    X, y = three
    student = GatedSVC("bee", GaussianNB().fit(X, y)).fit(X, y)
    restored = pickle.loads(pickle.dumps(student))
    assert_array_equal(restored.decision_function(X), student.decision_function(X))
    unfitted = GatedSVC("bee", CrammerSingerSVC(C=3.0)).fit(X, y)
    assert pickle.loads(pickle.dumps(unfitted)).teacher.C == 3.0
