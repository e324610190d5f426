"""Distilled gates: exact for linear teachers, merged, unlabeled samples, teachers of any kind."""

import pickle
import warnings
from copy import deepcopy
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import GridSearchCV

from widemargin import CrammerSingerSVC, GatedStudents, GatedSVC
from widemargin._base.options import gated_options as options
from widemargin.gated import budget
from widemargin.gated.strength import f_and_auc


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
        students = GatedStudents(forest, gate="distilled", gate_strength=1, C=1e-12).fit(X, y)
    gate = expected_gate(X, clipped_log_odds(forest, X))
    assert_allclose(students.decision_function(X), gate.predict(X), atol=1e-8)


def test_a_distilled_student_solves_the_gated_problem_with_its_gate_as_scores(three, forest):
    X, y = three
    distilled = GatedSVC("bee", forest, C=1.0, gate="distilled", gate_strength=1.0).fit(X, y)
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
        students = GatedStudents(forest, C=1.0, gate="distilled", features=features).fit(X, y)
        expected = students.decision_function(X)
        restored = pickle.loads(pickle.dumps(students))
        with monkeypatch.context() as patch:
            patch.setattr(RandomForestClassifier, "predict_proba", None, raising=False)
            assert_array_equal(students.decision_function(X), expected)
            assert_array_equal(restored.decision_function(X), expected)
        assert students.students_["bee"].export().needs_teacher is False


def test_a_number_of_landmarks_is_a_budget_of_features(three, forest):
    X, y = three
    student = GatedSVC("bee", forest, C=1.0, gate="distilled", features=9).fit(X, y)
    assert student.coef_.shape == (9,)
    assert student.set_params(features=10**6).fit(X, y).coef_.size <= len(X)
    with pytest.raises(ValueError, match="features"):
        GatedSVC("bee", forest, features=0).fit(X, y)


class Clock:
    """Times of maps by a formula: 1 microsecond, and 1 more for every 10 features of a map."""

    def __init__(self, monkeypatch):
        monkeypatch.setattr(budget, "prediction_time", self.time)

    def time(self, features, batch):
        assert len(batch) == options.timed_samples
        size = 0 if features is None else features.n_components
        return 1.0 + size / 10.0


@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame])
def test_a_budget_permits_the_largest_maps_that_are_fast_enough(three, container, monkeypatch):
    Clock(monkeypatch)
    X, _ = three
    frame = container(X)
    sizes = [getattr(f, "n_components", None) for f in budget.maps_within(14.0, frame, X)]
    assert sizes == [None, 100, 100]
    assert budget.maps_within(1.5, frame, X) == [None]
    with pytest.raises(ValueError, match="budget must be at least 1 microseconds"):
        budget.maps_within(0.5, frame, X)


@pytest.mark.parametrize("container", [np.asarray, lambda X: pd.DataFrame(X).add_prefix("f")])
def test_a_budget_chooses_features_that_can_express_the_teacher(container, monkeypatch):
    Clock(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 2))
    y = (X**2).sum(axis=1) > 1.4  # a disk, which no linear function of X can express
    X, y = container(X), y.astype(int)
    teacher = RandomForestClassifier(30, random_state=0).fit(X, y)
    student = GatedSVC(1, teacher, gate="distilled", budget=14.0, scoring="f1").fit(X, y)
    assert student.features_ is not None
    assert student.coef_.shape == (100,)
    assert student.score(X, y) > 0.9
    restored = pickle.loads(pickle.dumps(student))
    assert_array_equal(restored.decision_function(X), student.decision_function(X))
    again = GatedSVC(1, teacher, gate="distilled", features=student.features_).fit(X, y)
    assert_allclose(again.decision_function(X), student.decision_function(X))
    linear = GatedSVC(1, teacher, gate="distilled", budget=1.0, scoring="f1").fit(X, y)
    assert linear.features_ is None
    assert linear.score(X, y) < student.score(X, y)


def test_times_of_maps_of_a_frame_are_measured_with_its_names(three):
    frame = pd.DataFrame(three[0]).add_prefix("f")
    maps = budget.maps_within(1e6, frame, three[0])  # warnings are errors
    assert [type(features).__name__ for features in maps] == ["NoneType", "Nystroem", "RBFSampler"]


def test_the_time_of_a_map_is_measured_on_a_batch(three):
    X, _ = three
    seen = []

    class Map:
        def transform(self, X):
            seen.append(len(X))
            return X

    assert budget.prediction_time(Map(), X) > 0.0
    assert seen == [len(X)] * options.timed_repeats


def test_unlabeled_samples_count_as_labeled_ones_for_the_gate(three, forest):
    X, y = three
    extra = X[::2] + 0.1
    students = GatedStudents(forest, gate="distilled", gate_strength=1, C=1e-12)
    with pytest.warns(UserWarning, match="close to zero"):
        students.fit(X, y, unlabeled=extra)
    both = np.vstack([X, extra])
    gate = expected_gate(both, clipped_log_odds(forest, both))
    assert_allclose(students.decision_function(X), gate.predict(X), atol=1e-8)


def test_a_weight_is_a_number_of_copies(three, forest):
    X, y = three
    weight = np.arange(len(X)) % 3
    copies = np.repeat(np.arange(len(X)), weight)
    extra = X[::2] + 0.1
    student = GatedSVC("bee", forest, gate="distilled", gate_strength=0.3, tol=1e-9)
    weighted = student.fit(X, y, sample_weight=weight, unlabeled=extra).decision_function(X)
    copied = student.fit(X[copies], y[copies], unlabeled=extra).decision_function(X)
    assert_allclose(weighted, copied, atol=1e-6)


def test_a_gate_without_strength_leaves_a_student_of_labels_alone(three, forest):
    X, y = three
    student = GatedSVC("bee", forest, C=1.0, gate="distilled", gate_strength=0.0, tol=1e-9)
    student.fit(X, y)
    zeros = np.zeros((len(y), 3))
    plain = GatedSVC("bee", classes=forest.classes_, tol=1e-9).fit(X, y, teacher_scores=zeros)
    assert_allclose(student.coef_, -plain.theta_, atol=1e-6)
    assert student.gate_strength_ == 0.0


def held_out_values(X, y, scores, target, strength, C):
    """Decision values out of fold, by students of scores that are passed to them."""
    fold = np.empty(len(y), dtype=int)
    fold[np.argsort(y, kind="stable")] = np.arange(len(y)) % options.strength_folds
    values, scores = np.empty(len(y)), strength * scores
    for k in range(options.strength_folds):
        student = GatedSVC(target, classes=np.unique(y), C=C, tol=1e-11)
        student.fit(X[fold != k], y[fold != k], teacher_scores=scores[fold != k])
        values[fold == k] = student.decision_function(X[fold == k], scores[fold == k])
    return values


@pytest.mark.filterwarnings("ignore:The gate is not used")
@pytest.mark.parametrize("C", [1e-3, 1.0, "auto"])
def test_the_strength_and_c_are_those_of_the_best_students_out_of_fold(
    three, forest, C, monkeypatch
):
    monkeypatch.setattr(options, "strength_tol", 1e-11)
    monkeypatch.setattr(options, "strength_passes", 10**6)
    monkeypatch.setattr(options, "auto_costs", (1e-2, 1.0))
    X, y = three
    few = slice(0, 120)
    X, y = X[few], y[few]
    scores = expected_gate(X, clipped_log_odds(forest, X)).predict(X)
    quality = {}
    costs = options.auto_costs if C == "auto" else [C]
    for strength, cost in product(options.strengths, costs):
        found = []
        for target in np.unique(y):
            values = held_out_values(X, y, scores, target, strength, cost).round(6)
            found.append((f1_score(y == target, values >= 0), roc_auc_score(y == target, values)))
        quality[strength, cost] = np.mean(found, axis=0)
    alone = max((quality[0.0, cost] for cost in costs), key=np.sum)
    allowed = [pair for pair in quality if quality[pair][0] >= alone[0]]
    best, cost = max(allowed, key=lambda pair: quality[pair].sum())
    students = GatedStudents(forest, gate="distilled", C=C).fit(X, y)
    assert (students.gate_strength_, students.C_) == (best, cost)
    fixed = GatedStudents(forest, gate="distilled", gate_strength=best, C=cost).fit(X, y)
    assert_array_equal(students.decision_function(X), fixed.decision_function(X))


def test_the_number_of_jobs_does_not_change_what_is_chosen(three, forest):
    X, y = three
    students = GatedStudents(forest, gate="distilled", features=20, C="auto")
    one = students.fit(X[:90], y[:90], unlabeled=X[90:])
    scores = one.decision_function(X)
    two = students.set_params(n_jobs=2).fit(X[:90], y[:90], unlabeled=X[90:])
    assert_array_equal(two.decision_function(X), scores)


def test_c_is_chosen_for_students_of_the_teacher_itself(three, teacher):
    X, y = three
    student = GatedSVC("bee", teacher, C="auto").fit(X, y)
    assert student.C_ in options.auto_costs
    fixed = GatedSVC("bee", teacher, C=student.C_).fit(X, y)
    assert fixed.C_ == fixed.C
    assert_array_equal(student.coef_, fixed.coef_)
    with pytest.raises(ValueError, match="C='auto' needs kernel='linear', got 'rbf'"):
        GatedSVC("bee", teacher, C="auto", kernel="rbf").fit(X, y)


def test_c_is_chosen_by_default_for_distilled_students(three, forest):
    X, y = (values[:90] for values in three)
    parameters = {"gate": "distilled", "features": 20}
    default = GatedSVC("bee", forest, **parameters).fit(X, y)
    chosen = GatedSVC("bee", forest, C="auto", **parameters).fit(X, y)
    assert default.C is None
    assert default.C_ in options.auto_costs
    assert_array_equal(default.coef_, chosen.coef_)
    for given in ({}, {"kernel": "rbf"}):
        assert GatedSVC("bee", forest, **given).fit(X, y).C_ == 1.0


@pytest.mark.parametrize("gate", ["teacher", "distilled"])
def test_a_choice_by_scores_of_the_teachers_own_training_samples_raises_a_warning(three, gate):
    teacher = CrammerSingerSVC()
    student = GatedSVC("bee", teacher, C="auto", gate=gate)
    with pytest.warns(UserWarning, match="Set cv=3 to use out-of-fold scores"):
        student.fit(*three)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*cv=3.*")
        GatedSVC("bee", teacher, C="auto", gate=gate, cv=3).fit(*three)
        GatedSVC("bee", clone(teacher).fit(*three), C="auto", gate=gate).fit(*three)
        GatedSVC("bee", teacher, C=1.0).fit(*three)


def test_metrics_in_folds_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    positive, values, weight = rng.random(60) < 0.3, rng.normal(size=60).round(1), rng.random(60)
    expected = (
        f1_score(positive, values >= 0.0, sample_weight=weight),
        roc_auc_score(positive, values, sample_weight=weight),
    )
    assert_allclose(f_and_auc(positive, values, weight), expected)
    assert f_and_auc(np.ones(60, dtype=bool), values, weight) == (0.0, 0.0)


def test_a_gate_that_misleads_is_not_used_and_named_in_a_warning(three):
    X, y = three

    def wrong(X):
        return -10.0 * LogisticRegression().fit(*three).decision_function(X)

    with pytest.warns(UserWarning, match="The gate is not used"):
        students = GatedStudents(wrong, gate="distilled", C=0.01).fit(X, y)
    assert students.gate_strength_ == 0.0
    plain = GatedStudents(wrong, gate="distilled", gate_strength=0.0, C=0.01).fit(X, y)
    assert_array_equal(students.decision_function(X), plain.decision_function(X))


def test_sparse_samples_give_the_same_student(three, forest):
    X, y = three
    student = GatedSVC("bee", forest, C=1.0, gate="distilled", tol=1e-9)
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("zipmap", [False, True])
def test_sessions_of_onnx_runtime_are_teachers(three, forest, dtype, zipmap):
    runtime, convert = pytest.importorskip("onnxruntime"), pytest.importorskip("skl2onnx")
    X, y = three
    X = X.astype(np.float32).astype(np.float64)
    model = convert.to_onnx(forest, X[:1].astype(dtype), options={"zipmap": zipmap})
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = GatedStudents(forest, C=1.0, gate="distilled").fit(X, y).decision_function(X)
    students = GatedStudents(session, C=1.0, gate="distilled").fit(X, y)
    assert_allclose(students.decision_function(X), expected, atol=1e-3)
    search = GridSearchCV(GatedStudents(session, gate="distilled"), {"C": [0.1, 1.0]}, cv=3)
    assert 0.5 < search.fit(X, y).best_score_ <= 1.0
    gated = GatedStudents(session).fit(X, y)
    again = deepcopy(gated).fit(X, y).decision_function(X)
    assert_array_equal(again, gated.decision_function(X))


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
    for named in ({"gate": "teacher"}, {"gate": "distilled", "features": 5}):
        with pytest.raises(ValueError, match=r"budget chooses the features of students with"):
            GatedSVC("bee", forest, budget=10.0, **named).fit(X, y)
    with pytest.raises(ValueError, match="'gate_strength' parameter of GatedSVC"):
        GatedSVC("bee", forest, gate="distilled", gate_strength=-1.0).fit(X, y)
    with pytest.raises(ValueError, match="unlabeled needs a teacher"):
        GatedSVC("bee", gate="distilled").fit(
            X, y, teacher_scores=forest.predict_proba(X), unlabeled=X
        )
    with pytest.raises(ValueError, match="features"):
        GatedSVC("bee", forest, gate="distilled").fit(X, y, unlabeled=X[:, :1])
