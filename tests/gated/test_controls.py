"""The controls are what they are called."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from widemargin import GatedStudents, GatedSVC, LinearSVC, compare_students


@pytest.fixture(scope="module")
def students(kernel_teacher):
    return GatedStudents(kernel_teacher, C=0.5, tol=1e-9)


def test_every_rival_is_what_its_name_says(three, kernel_teacher, students):
    X, y = three
    scores = compare_students(students, X, y, X)
    asked = kernel_teacher.decision_function(X)
    assert_array_equal(scores["teacher"] >= 0, asked == asked.max(axis=1, keepdims=True))
    assert_allclose(scores["gSVM"], students.fit(X, y).decision_function(X), atol=1e-6)
    zero = GatedStudents(kernel_teacher, C=0.5, difficulty=None, tol=1e-9).fit(X, y)
    assert_allclose(scores["gSVM-0"], zero.decision_function(X), atol=1e-6)
    svm = LinearSVC(loss="hinge", C=0.5, tol=1e-9, max_iter=100_000).fit(X, y)
    assert_allclose(scores["SVM"], svm.decision_function(X), atol=1e-4)
    biased = GatedStudents(kernel_teacher, C=0.5, features="constant", tol=1e-9).fit(X, y)
    assert_allclose(scores["gate + bias"], biased.decision_function(X), atol=1e-6)
    assert_allclose(np.ptp(scores["gate + bias"] - asked, axis=0), 0.0, atol=1e-9)
    wider = np.column_stack([X, asked[:, 1]])
    svm = LinearSVC(loss="hinge", C=0.5, tol=1e-9, max_iter=100_000).fit(wider, y == "bee")
    assert_allclose(scores["SVM + score"][:, 1], svm.decision_function(wider), atol=1e-4)


def test_sparse_rows_are_compared_too(three, teacher):
    X, y = three
    dense = compare_students(GatedStudents(teacher), X, y, X)
    thin = compare_students(GatedStudents(teacher), sparse.csr_array(X), y, sparse.csr_array(X))
    for name in dense:
        assert_allclose(thin[name], dense[name], atol=1e-3)


def test_a_row_of_weight_two_is_compared_as_two_rows(three, students):
    X, y = three[0][:80], three[1][:80]
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = compare_students(students, X, y, X, sample_weight=weight)
    repeated = compare_students(students, np.repeat(X, weight, axis=0), np.repeat(y, weight), X)
    for name in repeated:
        assert_allclose(weighted[name], repeated[name], atol=1e-4)


def test_rivals_that_did_not_converge_are_told(three, kernel_teacher):
    X, y = three
    students = GatedStudents(kernel_teacher, C=100.0, max_iter=1)
    with pytest.warns(ConvergenceWarning) as told:
        compare_students(students, X, y, X)
    said = [str(warning.message) for warning in told if warning.category is ConvergenceWarning]
    named = "of 'ant', 'bee', 'cat' did not converge (max_iter=1)"
    assert [text.partition(":")[0] for text in said] == [
        f"Gated students {named}", f"Gated students {named}", f"Controls {named}",
    ]  # fmt: skip
    assert {warning.filename for warning in told} == {__file__}


def test_students_that_cannot_be_compared_are_refused(three, teacher):
    X, y = three
    with pytest.raises(TypeError, match="students must be a GatedStudents, got GatedSVC"):
        compare_students(GatedSVC("bee"), X, y, X)
    with pytest.raises(ValueError, match="'C' parameter"):
        compare_students(GatedStudents(C=-1.0), X, y, X)
    with pytest.raises(ValueError, match="students must be linear to be compared, got 'rbf'"):
        compare_students(GatedStudents(teacher, kernel="rbf"), X, y, X)
