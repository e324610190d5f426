"""The controls are what their names state."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.pipeline import make_pipeline

from widemargin import GatedStudents, GatedSVC, LinearSVC, compare_students


@pytest.fixture(scope="module")
def students(kernel_teacher):
    return GatedStudents(kernel_teacher, C=0.5, difficulty="relative-margin", tol=1e-9)


def test_every_method_is_what_its_name_states(three, kernel_teacher, students):
    X, y = three
    scores = compare_students(students, X, y, X, svm_costs=[0.5])
    asked = kernel_teacher.decision_function(X)
    assert_array_equal(scores["teacher"] >= 0, asked == asked.max(axis=1, keepdims=True))
    assert_allclose(scores["gSVM"], students.fit(X, y).decision_function(X), atol=1e-6)
    zero = GatedStudents(kernel_teacher, C=0.5, difficulty=None, tol=1e-9).fit(X, y)
    assert_allclose(scores["gSVM-0"], zero.decision_function(X), atol=1e-6)
    svm = LinearSVC(loss="hinge", C=0.5, tol=1e-9, max_iter=100_000).fit(X, y)
    assert_allclose(scores["SVM"], svm.decision_function(X), atol=1e-4)
    biased = GatedStudents(
        kernel_teacher, C=0.5, difficulty="relative-margin", features="constant", tol=1e-9
    ).fit(X, y)
    assert_allclose(scores["gate + bias"], biased.decision_function(X), atol=1e-6)
    assert_allclose(np.ptp(scores["gate + bias"] - asked, axis=0), 0.0, atol=1e-9)
    wider = np.column_stack([X, asked[:, 1]])
    svm = LinearSVC(loss="hinge", C=0.5, tol=1e-9, max_iter=100_000).fit(wider, y == "bee")
    assert_allclose(scores["SVM + score"][:, 1], svm.decision_function(wider), atol=1e-4)


def test_the_cost_of_an_svm_is_the_best_in_folds(three, students):
    X, y = three
    X, y, X_test = X[:90], y[:90], X[90:]
    costs = [1e-4, 1e-2, 1.0]
    found = compare_students(students, X, y, X_test, svm_costs=costs)["SVM"]
    fold = np.empty(len(y), dtype=int)
    fold[np.argsort(y, kind="stable")] = np.arange(len(y)) % 3
    for k, label in enumerate(np.unique(y)):
        quality = []
        for C in costs:
            values = np.empty(len(y))
            for part in range(3):
                svm = LinearSVC(loss="hinge", C=C, tol=1e-6).fit(X[fold != part], y[fold != part])
                values[fold == part] = svm.decision_function(X[fold == part])[:, k]
            own = y == label
            quality.append(f1_score(own, values >= 0) + roc_auc_score(own, values))
        alone = compare_students(students, X, y, X_test, svm_costs=[costs[np.argmax(quality)]])
        assert_allclose(found[:, k], alone["SVM"][:, k])
    one = compare_students(students, X, y, X_test, svm_costs=0.5)["SVM"]
    assert_allclose(one, compare_students(students, X, y, X_test, svm_costs=[0.5])["SVM"])
    with pytest.raises(ValueError, match="svm_costs must contain positive numbers, got"):
        compare_students(students, X, y, X_test, svm_costs=[0.0])


def test_sparse_samples_are_compared_too(three, teacher):
    X, y = three
    one = {"svm_costs": [1.0]}
    dense = compare_students(GatedStudents(teacher), X, y, X, **one)
    rows = sparse.csr_array(X)
    thin = compare_students(GatedStudents(teacher), rows, y, rows, **one)
    for name in dense:
        assert_allclose(thin[name], dense[name], atol=1e-3)


def test_a_sample_of_weight_two_is_compared_as_two_samples(three, students):
    X, y = three[0][:80], three[1][:80]
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    one = {"svm_costs": [0.5]}
    weighted = compare_students(students, X, y, X, sample_weight=weight, **one)
    copies = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    repeated = compare_students(students, *copies, X, **one)
    for name in repeated:
        assert_allclose(weighted[name], repeated[name], atol=1e-4)


def test_the_labels_of_the_columns_come_with_the_scores(three, kernel_teacher, students):
    X, y = three
    scores = compare_students(GatedStudents(kernel_teacher, ["cat", "ant"], C=0.5), X, y, X)
    assert_array_equal(scores.classes, ["ant", "cat"])
    every = compare_students(students, X, y, X)
    assert_array_equal(every.classes, ["ant", "bee", "cat"])
    assert_allclose(scores["gate + bias"], every["gate + bias"][:, [0, 2]], atol=1e-3)
    assert_array_equal(pickle.loads(pickle.dumps(scores)).classes, scores.classes)


def test_students_of_text_are_compared(three):
    words = np.array(["hum", "buzz", "purr", "crawl", "fly", "meow"])
    kinds = {"ant": (0, 3), "bee": (1, 4), "cat": (2, 5)}
    rng = np.random.default_rng(0)
    y = three[1][:60]
    texts = [" ".join(words[[*kinds[label], *rng.integers(0, 6, 3)]]) for label in y]
    teacher = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(texts, y)
    students = GatedStudents(teacher, features=TfidfVectorizer(), difficulty="relative-margin")
    scores = compare_students(students, texts, y, texts)
    expected = students.fit(texts, y).decision_function(texts)
    assert_allclose(scores["gSVM"], expected, atol=1e-8)


def test_methods_that_did_not_converge_are_named_in_warnings(three, kernel_teacher):
    X, y = three
    students = GatedStudents(kernel_teacher, C=100.0, max_iter=1)
    with pytest.warns(ConvergenceWarning) as caught:
        compare_students(students, X, y, X)
    messages = [str(w.message) for w in caught if w.category is ConvergenceWarning]
    assert all(m.startswith("Solver terminated early (max_iter=1).") for m in messages)
    names = "for classes 'ant', 'bee', 'cat'."
    assert [m.partition("This concerns ")[2] for m in messages] == [
        f"the students {names}", f"the students {names}", f"the controls {names}",
    ]  # fmt: skip
    assert {warning.filename for warning in caught} == {__file__}


def test_students_that_cannot_be_compared_are_refused(three, teacher):
    X, y = three
    with pytest.raises(TypeError, match="students must be a GatedStudents, got GatedSVC"):
        compare_students(GatedSVC("bee"), X, y, X)
    with pytest.raises(ValueError, match="'C' parameter"):
        compare_students(GatedStudents(C=-1.0), X, y, X)
    with pytest.raises(
        ValueError, match="students must have a linear kernel to be compared, got 'rbf'"
    ):
        compare_students(GatedStudents(teacher, kernel="rbf"), X, y, X)


def test_distilled_students_are_compared_with_their_distilled_gates(three, kernel_teacher):
    X, y = three
    shared = {"gate": "distilled", "C": 0.5, "tol": 1e-9}
    scores = compare_students(GatedStudents(kernel_teacher, **shared), X, y, X)
    zero = GatedStudents(kernel_teacher, **shared).fit(X, y)
    assert_allclose(scores["gSVM-0"], zero.decision_function(X), atol=1e-6)
    gate = zero.decision_function(X) + X @ zero.theta_.T + zero.theta_intercept_
    assert_allclose(np.ptp(scores["gate + bias"] - gate, axis=0), 0.0, atol=1e-6)
