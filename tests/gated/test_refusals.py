"""What cannot be done is refused; what is done but dubious is told."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem

from widemargin import CrammerSingerSVC, GatedStudents, GatedSVC, compare_students


def test_rows_that_do_not_match_are_refused(three, teacher):
    X, y = three
    scores = teacher.decision_function(X)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GatedSVC("bee").fit(X, y, teacher_scores=scores[1:])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        GatedSVC("bee", teacher).fit(X, y[1:])
    student = GatedSVC("bee").fit(X, y, teacher_scores=scores)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        student.predict(X[1:], teacher_scores=scores)
    with pytest.raises(ValueError, match="must have 3 columns"):
        student.predict(X, teacher_scores=scores[:, :2])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_refused(three, teacher, bad):
    X, y = three
    scores = teacher.decision_function(X)
    scores[3, 1] = bad
    with pytest.raises(ValueError, match="teacher_scores contains"):
        GatedSVC("bee").fit(X, y, teacher_scores=scores)


def test_fewer_than_two_columns_are_refused(three):
    X, y = three
    with pytest.raises(ValueError, match="minimum of 2"):
        GatedSVC("bee").fit(X, y, teacher_scores=np.ones((len(y), 1)))


def test_one_class_is_refused(three, teacher):
    X, y = three
    with pytest.raises(ValueError, match="at least two classes"):
        GatedSVC("bee", teacher).fit(X[y == "bee"], y[y == "bee"])
    with pytest.raises(ValueError, match="got no rows of it"):
        GatedSVC("bee", teacher).fit(X[y != "bee"], y[y != "bee"])
    with pytest.raises(ValueError, match="at least two classes, got 1"):
        GatedStudents(teacher, targets=["bee"]).fit(X, y)


def test_a_target_that_the_teacher_does_not_know_is_refused(three, teacher):
    with pytest.raises(
        ValueError, match=r"target 'dog' is unknown .* \['ant', 'bee', 'cat'\]|np.str_"
    ):
        GatedSVC("dog", teacher).fit(*three)
    with pytest.raises(ValueError, match="target 7 is unknown"):
        GatedSVC(7, teacher).fit(*three)


@pytest.mark.parametrize("target", [True, ["bee"], None, np.nan])
def test_what_is_no_label_is_no_target(three, target):
    X, y = three
    codes = np.unique(y, return_inverse=True)[1]
    scores = (codes[:, None] == np.arange(3)) - 0.5
    with pytest.raises(ValueError, match="is unknown to the teacher, whose classes are"):
        GatedSVC(target).fit(X, codes, teacher_scores=scores)


def test_a_number_is_no_truth_value(three):
    X, y = three
    with pytest.raises(ValueError, match=r"target 0 is unknown .* \[False, True\]"):
        GatedSVC(0).fit(X, y == "bee")
    assert GatedSVC(True).fit(X, y == "bee").score(X, y == "bee") > 0.7


def test_a_teacher_cannot_be_trained_on_truth_values(three):
    X, y = three
    codes = np.unique(y, return_inverse=True)[1]
    teacher = CrammerSingerSVC().fit(X, codes)
    with pytest.raises(ValueError, match="y must hold labels for cv"):
        GatedSVC(1, teacher, cv=3).fit(X, codes == 1)


@pytest.mark.parametrize("targets", [None, [0, 1]])
def test_many_students_cannot_be_trained_on_truth_values(three, targets):
    X, y = three
    codes = np.unique(y, return_inverse=True)[1]
    students = GatedStudents(CrammerSingerSVC().fit(X, codes), targets)
    with pytest.raises(ValueError, match="y must hold labels, got truth values"):
        students.fit(X, codes == 1)
    with pytest.raises(ValueError, match="y must hold labels, got truth values"):
        compare_students(students, X, codes == 1, X)


def test_labels_that_the_teacher_does_not_know_are_refused(three, teacher):
    X, y = three
    strange = np.where(y == "ant", "dog", y)
    for student in (GatedSVC("bee", teacher), GatedStudents(teacher, ["bee", "cat"])):
        with pytest.raises(ValueError, match=r"unknown to the teacher, \['dog'\]; it knows"):
            student.fit(X, strange)
    # A row of a new class is no row of the target: there is something to be judged.
    student = GatedSVC("bee", teacher).fit(X, strange == "bee")
    assert student.score(X, strange) == student.score(X, y)


def test_labels_that_are_given_twice_are_refused(three, teacher):
    X, y = three
    with pytest.raises(ValueError, match="targets must be different classes"):
        GatedStudents(teacher, targets=["bee", "bee"]).fit(X, y)
    with pytest.raises(ValueError, match="classes must be different labels"):
        GatedSVC("bee", classes=["ant", "ant", "bee"]).fit(
            X, y, teacher_scores=np.eye(3)[np.arange(len(y)) % 3]
        )


def test_a_kernel_and_features_exclude_each_other(three, teacher):
    with pytest.raises(ValueError, match="features and kernel='rbf' exclude each other"):
        GatedSVC("bee", teacher, kernel="rbf", features=Nystroem()).fit(*three)


def test_other_classes_than_the_teachers_are_refused(three, teacher):
    with pytest.raises(ValueError, match="classes must be those of the teacher"):
        GatedSVC("bee", teacher, classes=["ant", "bee"]).fit(*three)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("C", 0.0), ("C", -1.0), ("decay", 0.0), ("decay", 1.0), ("margin", -0.1), ("solver", "sgd")],
)
def test_parameters_out_of_range_are_refused(three, teacher, parameter, value):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter"):
        GatedSVC("bee", teacher, **{parameter: value}).fit(*three)


def test_majorisation_of_an_indefinite_kernel_is_refused(three, teacher):
    with pytest.raises(ValueError, match="solver='mm' needs a positive semidefinite kernel"):
        GatedSVC("bee", teacher, kernel="sigmoid", solver="mm").fit(*three)
    assert np.isnan(GatedSVC("bee", teacher, kernel="sigmoid").fit(*three).dual_gap_)


def test_no_convergence_is_told(three, teacher):
    with pytest.warns(ConvergenceWarning, match="'bee' did not converge .max_iter=3."):
        student = GatedSVC("bee", teacher, C=100.0, max_iter=3).fit(*three)
    assert student.fit_status_ == 1


@pytest.mark.parametrize("kind", [GatedStudents, lambda **given: GatedSVC("bee", **given)])
def test_a_warning_points_at_the_line_that_fits(three, teacher, kind):
    with pytest.warns(ConvergenceWarning) as told:
        kind(teacher=teacher, C=100.0, max_iter=3).fit(*three)
    assert {warning.filename for warning in told} == {__file__}


def test_an_overfitted_teacher_is_told(three):
    X, y = three
    scores = 5.0 * np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    with pytest.warns(UserWarning, match="'bee' learned nothing .theta is about 0.*cv="):
        GatedSVC("bee").fit(X, y, teacher_scores=scores)


def test_scores_that_say_nothing_are_told(three):
    X, y = three
    with pytest.warns(UserWarning, match="scores that are all about 0"):
        GatedSVC("bee").fit(X, y, teacher_scores=np.zeros((len(y), 3)))


def test_a_constant_student_is_told_once_with_all_that_are(three):
    X, y = three
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((len(y), 3)) - 9.0
    with pytest.warns(UserWarning, match="'ant', 'bee', 'cat' say the same") as told:
        GatedStudents(C=1e-4).fit(X, y, teacher_scores=scores)
    assert len(told) == 1


def test_a_student_without_trouble_is_silent(three, teacher, recwarn):
    GatedStudents(teacher, difficulty=None).fit(*three)
    CrammerSingerSVC().fit(*three)
    assert not [w for w in recwarn if issubclass(w.category, UserWarning)]
