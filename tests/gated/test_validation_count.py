"""Each input of a student is validated once, however many estimators see it."""

import sys
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from widemargin import SVC, CrammerSingerSVC, GatedStudents, GatedSVC, LinearSVC

X, Y = load_iris(return_X_y=True)
TEACHERS = {
    "linear": CrammerSingerSVC(),
    "kernel": CrammerSingerSVC(kernel="rbf"),
    "one-vs-rest": LinearSVC(),
    "kernel one-vs-rest": SVC(multi_class="ovr"),
}
CODES = {check_array.__code__: "check_array", validate_data.__code__: "validate_data"}
STUDENTS = [
    lambda teacher, **given: GatedStudents(teacher, C=0.1, **given),
    lambda teacher, **given: GatedSVC(1, teacher, C=0.1, **given),
]


def count(function, *arguments, **named):
    """Return how often arrays are checked and estimators' data are validated in a call."""
    calls = Counter()

    def profile(frame, event, _):
        if event == "call" and frame.f_code in CODES:
            calls[CODES[frame.f_code]] += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        function(*arguments, **named)
    finally:
        sys.setprofile(before)
    return dict(calls)


@pytest.mark.parametrize("kind", STUDENTS, ids=["students", "student"])
@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("name", TEACHERS)
def test_fit_validates_samples_labels_and_scores_once(kind, name, fitted):
    teacher = clone(TEACHERS[name])
    if fitted:
        teacher.fit(X, Y)
    found = count(kind(teacher).fit, X, Y)
    assert found == {"validate_data": 1, "check_array": 3}


@pytest.mark.parametrize("kind", STUDENTS, ids=["students", "student"])
def test_fit_to_scores_validates_samples_labels_and_scores_once(kind):
    scores = CrammerSingerSVC().fit(X, Y).decision_function(X)
    found = count(kind(None).fit, X, Y, teacher_scores=scores)
    assert found == {"validate_data": 1, "check_array": 3}


def test_fit_to_out_of_fold_scores_validates_scores_once_for_each_fold():
    folds = KFold(3, shuffle=True, random_state=0)
    found = count(GatedStudents(CrammerSingerSVC(), C=0.1, cv=folds).fit, X, Y)
    assert found == {"validate_data": 1, "check_array": 2 + 3}


@pytest.mark.parametrize("method", ["predict", "decision_function"])
@pytest.mark.parametrize("name", TEACHERS)
def test_a_student_validates_samples_once_in_prediction(name, method):
    student = GatedSVC(1, FrozenEstimator(clone(TEACHERS[name]).fit(X, Y)), C=0.1).fit(X, Y)
    assert count(getattr(student, method), X) == {"validate_data": 1, "check_array": 1}
    scores = np.zeros((len(X), 3))
    found = count(getattr(student, method), X, teacher_scores=scores)
    assert found == {"validate_data": 1, "check_array": 2}


@pytest.mark.parametrize("method", ["predict", "decision_function"])
@pytest.mark.parametrize("name", TEACHERS)
def test_students_validate_samples_once_in_prediction(name, method):
    students = GatedStudents(clone(TEACHERS[name]).fit(X, Y), C=0.1).fit(X, Y)
    # The scores of a kernel teacher are validated too.
    checks = 1 if students.merged_ else 2
    assert count(getattr(students, method), X) == {"validate_data": 1, "check_array": checks}
    assert count(students.is_class, X, 1) == {"validate_data": 1, "check_array": 1}
