"""Distilled gates: exact for linear teachers, merged, unlabeled samples, teachers of any kind."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge

from widemargin import GatedStudents, GatedSVC
from widemargin._base.options import gated_options as options


@pytest.fixture
def forest(three):
    return RandomForestClassifier(20, min_samples_leaf=5, random_state=0).fit(*three)


def clipped_log_odds(teacher, X):
    p = np.clip(teacher.predict_proba(X), 1e-12, 1 - 1e-12)
    return np.clip(np.log(p / (1 - p)), -options.distilled_score, options.distilled_score)


def expected_gate(phi, scores, weight=None):
    weight = np.ones(len(phi)) if weight is None else weight
    total = (weight[:, None] * phi**2).sum()
    ridge = Ridge(alpha=options.distilled_ridge * total / phi.shape[1])
    return ridge.fit(phi, scores, sample_weight=weight)


def test_a_student_without_cost_is_the_ridge_regression_of_the_clipped_scores(three, forest):
    X, y = three
    with pytest.warns(UserWarning, match="close to zero"):
        students = GatedStudents(forest, gate="distilled", C=1e-12).fit(X, y)
    gate = expected_gate(X, clipped_log_odds(forest, X))
    assert_allclose(students.decision_function(X), gate.predict(X), atol=1e-8)


def test_a_distilled_student_solves_the_gated_problem_with_its_gate_as_scores(three, forest):
    X, y = three
    distilled = GatedSVC("bee", forest, gate="distilled").fit(X, y)
    gate = expected_gate(X, clipped_log_odds(forest, X))
    scores = gate.predict(X)
    exact = GatedSVC("bee", classes=forest.classes_).fit(X, y, teacher_scores=scores)
    assert distilled.merged_
    assert_allclose(distilled.theta_, exact.theta_, atol=1e-6)
    assert_allclose(distilled.objective_, exact.objective_, rtol=1e-6)
    assert_allclose(distilled.coef_, gate.coef_[1] - exact.theta_, atol=1e-6)


def test_a_distilled_student_predicts_without_its_teacher(three, forest, monkeypatch):
    X, y = three
    for features in (None, 7, Nystroem(n_components=5, random_state=1)):
        students = GatedStudents(forest, gate="distilled", features=features).fit(X, y)
        expected = students.decision_function(X)
        restored = pickle.loads(pickle.dumps(students))
        with monkeypatch.context() as patch:
            patch.setattr(RandomForestClassifier, "predict_proba", None, raising=False)
            assert_array_equal(students.decision_function(X), expected)
            assert_array_equal(restored.decision_function(X), expected)
        assert students.students_["bee"].export().needs_teacher is False


def test_a_number_of_landmarks_is_a_budget_of_features(three, forest):
    X, y = three
    student = GatedSVC("bee", forest, gate="distilled", features=9).fit(X, y)
    assert student.coef_.shape == (9,)
    assert GatedSVC("bee", forest, gate="distilled", features=10**6).fit(X, y).coef_.size <= len(X)
    with pytest.raises(ValueError, match="features"):
        GatedSVC("bee", forest, features=0).fit(X, y)


def test_unlabeled_samples_count_as_labeled_ones_for_the_gate(three, forest):
    X, y = three
    extra = X[::2] + 0.1
    with pytest.warns(UserWarning, match="close to zero"):
        students = GatedStudents(forest, gate="distilled", C=1e-12).fit(X, y, unlabeled=extra)
    both = np.vstack([X, extra])
    gate = expected_gate(both, clipped_log_odds(forest, both))
    assert_allclose(students.decision_function(X), gate.predict(X), atol=1e-8)


def test_a_weight_is_a_number_of_copies(three, forest):
    X, y = three
    weight = np.arange(len(X)) % 3
    copies = np.repeat(np.arange(len(X)), weight)
    extra = X[::2] + 0.1
    student = GatedSVC("bee", forest, gate="distilled", tol=1e-9)
    weighted = student.fit(X, y, sample_weight=weight, unlabeled=extra).decision_function(X)
    copied = student.fit(X[copies], y[copies], unlabeled=extra).decision_function(X)
    assert_allclose(weighted, copied, atol=1e-6)


def test_sparse_samples_give_the_same_student(three, forest):
    X, y = three
    student = GatedSVC("bee", forest, gate="distilled", tol=1e-9)
    dense = student.fit(X, y, unlabeled=X[::2]).decision_function(X)
    rows = sparse.csr_array(X)
    thin = student.fit(rows, y, unlabeled=rows[::2]).decision_function(rows)
    assert_allclose(thin, dense, atol=1e-4)
    mixed = student.fit(X, y, unlabeled=rows[::2]).decision_function(X)
    assert_allclose(mixed, dense, atol=1e-12)


class OnlyProbabilities:
    def __init__(self, teacher):
        self.predict_proba = teacher.predict_proba


class Session:
    """What a student needs of an ONNX Runtime session."""

    def __init__(self, teacher, as_dicts):
        self.teacher, self.as_dicts = teacher, as_dicts

    def get_inputs(self):
        return [type("Input", (), {"name": "samples"})()]

    def run(self, names, feed):
        values = feed["samples"]
        assert names is None
        assert values.dtype == np.float32
        p = self.teacher.predict_proba(values.astype(np.float64))
        rows = [dict(zip(self.teacher.classes_.tolist(), row, strict=True)) for row in p]
        return [self.teacher.predict(values), rows if self.as_dicts else p.astype(np.float32)]


def test_teachers_need_not_be_estimators(three):
    X, y = three
    X = X.astype(np.float32).astype(np.float64)
    teacher = LogisticRegression().fit(X, y)
    classes = teacher.classes_
    log_odds = np.log(teacher.predict_proba(X)) - np.log1p(-teacher.predict_proba(X))
    expected = GatedSVC("bee", classes=classes, gate="distilled", tol=1e-9)
    expected = expected.fit(X, y, teacher_scores=log_odds).decision_function(X)
    teachers = (
        teacher.predict_proba,
        lambda X: np.log(teacher.predict_proba(X)) - np.log1p(-teacher.predict_proba(X)),
        OnlyProbabilities(teacher),
        Session(teacher, as_dicts=False),
        Session(teacher, as_dicts=True),
    )
    for each in teachers:
        student = GatedSVC("bee", each, classes=classes, gate="distilled", tol=1e-9).fit(X, y)
        assert_allclose(student.decision_function(X), expected, atol=1e-4)
        gated = GatedSVC("bee", each, classes=classes).fit(X, y)
        assert not gated.merged_
        assert gated.predict(X).shape == (len(X),)


def test_scores_that_sum_to_one_by_accident_are_not_probabilities(three):
    X, y = three
    one = np.flatnonzero(np.abs(X[:, 0]) > 0.5)[0]
    X = X / np.abs(X[one, 0])

    def scores(X):  # the row of sample `one` sums to one
        return np.abs(X[:, :1]) * np.array([[0.5, 0.3, 0.2]])

    student = GatedSVC("bee", scores).fit(X, y)
    batch = student.decision_function(X)
    assert_allclose(student.decision_function(X[[one]]), batch[[one]], atol=1e-12)


def test_a_distilled_student_is_pickled_without_a_function(three, forest):
    X, y = three
    for teacher in (lambda X: forest.predict_proba(X), Session(forest, as_dicts=False)):
        student = GatedStudents(teacher, gate="distilled", classes=forest.classes_).fit(X, y)
        restored = pickle.loads(pickle.dumps(student))
        assert_array_equal(restored.decision_function(X), student.decision_function(X))
        with pytest.raises(ValueError, match="Set teacher before fit"):
            restored.fit(X, y)
        copied = deepcopy(student)
        assert_array_equal(copied.fit(X, y).decision_function(X), student.decision_function(X))


def test_a_function_must_score_all_classes(three):
    X, y = three
    with pytest.raises(ValueError, match=r"column for each of the 3 classes.*shape \(\d+, 2\)"):
        GatedSVC("bee", lambda X: np.zeros((len(X), 2))).fit(X, y)
    with pytest.raises(ValueError, match="cv must be None for a teacher without a fit method"):
        GatedSVC("bee", lambda X: np.zeros((len(X), 3)), cv=3).fit(X, y)


def test_arguments_that_do_not_fit_together_are_refused(three, forest):
    X, y = three
    with pytest.raises(ValueError, match="needs kernel='linear', got 'rbf'"):
        GatedSVC("bee", forest, gate="distilled", kernel="rbf").fit(X, y)
    with pytest.raises(ValueError, match="needs features to distill the teacher into"):
        GatedSVC("bee", forest, gate="distilled", features="constant").fit(X, y)
    with pytest.raises(ValueError, match="unlabeled samples are used by gate='distilled' only"):
        GatedSVC("bee", forest).fit(X, y, unlabeled=X)
    with pytest.raises(ValueError, match="unlabeled needs a teacher"):
        GatedSVC("bee", gate="distilled").fit(
            X, y, teacher_scores=forest.predict_proba(X), unlabeled=X
        )
    with pytest.raises(ValueError, match="features"):
        GatedSVC("bee", forest, gate="distilled").fit(X, y, unlabeled=X[:, :1])
