"""What cannot be done is refused; what is done but dubious is told."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.naive_bayes import GaussianNB

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


def told(student, X, y, scores):
    """What fit warns of."""
    with pytest.warns(UserWarning, match="Gated students of") as warnings:
        student.fit(X, y, teacher_scores=scores)
    return " ".join(str(warning.message) for warning in warnings)


def test_an_overfitted_teacher_is_told(three):
    X, y = three
    scores = 5.0 * np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    cause = "'bee' learned nothing (theta is about 0) because the teacher meets the margin"
    assert f"{cause} on all training rows: give out-of-fold scores by cv=, or use" in told(
        GatedSVC("bee"), X, y, scores
    )
    assert f"{cause} on all training rows: use a larger margin" in told(
        GatedSVC("bee", cv=3), X, y, scores
    )


def test_a_student_that_pays_next_to_nothing_does_not_blame_its_teacher(three, teacher):
    X, y = three
    said = told(GatedSVC("bee", C=1e-12), X, y, teacher.decision_function(X))
    assert "'bee' learned nothing (theta is about 0): use a larger C." in said
    assert "meets the margin" not in said


def test_scores_that_say_nothing_are_told(three):
    X, y = three
    scores = np.zeros((len(y), 3))
    said = told(GatedSVC("bee"), X, y, scores)
    assert "all about 0, so that difficulty is noise: use difficulty=None or a teacher" in said
    said = told(GatedSVC("bee", difficulty=None), X, y, scores)
    assert "scores that are all about 0: use a teacher that tells classes apart" in said
    assert "difficulty" not in told(GatedSVC("bee", C=1e-9, difficulty=None), X, y, scores - 9.0)


class Silent(GaussianNB):
    """A teacher whose scores are no numbers from some row on."""

    def predict_proba(self, X):
        probability = super().predict_proba(X)
        probability[100:] = np.nan
        return probability


def test_scores_of_a_teacher_that_are_no_numbers_are_refused(three):
    X, y = three
    teacher = Silent().fit(X, y)
    for student in (GatedSVC("bee", teacher), GatedStudents(teacher)):
        with pytest.raises(ValueError, match="the teacher's scores contains NaN"):
            student.fit(X, y)
        student.fit(X[:90], y[:90])
        with pytest.raises(ValueError, match="the teacher's scores contains NaN"):
            student.predict(X)
        for bad in (np.nan, np.inf):
            with pytest.raises(ValueError, match="teacher_scores contains"):
                student.predict(X[:90], teacher_scores=np.full((90, 3), bad))


def test_a_teacher_that_knows_no_classes_is_refused(three):
    X, y = three
    for machine in (svm.OneClassSVM(), svm.OneClassSVM().fit(X)):
        with pytest.raises(TypeError, match=r"teacher must be a classifier.* got OneClassSVM"):
            GatedSVC("bee", machine).fit(X, y)


FAILURES = {
    "target 'dog' is unknown": lambda s, X, y: s.set_params(target="dog").fit(X, y),
    "inconsistent numbers": lambda s, X, y: s.fit(X[:, :5], y, teacher_scores=np.zeros((3, 3))),
    "got 1 class": lambda s, X, y: s.set_params(teacher=None).fit(X[:, :5], np.full(len(y), "ant")),
}


@pytest.mark.parametrize("message", FAILURES)
def test_a_fit_that_fails_leaves_no_trace(three, teacher, message):
    X, y = three
    student = GatedSVC("bee", teacher)
    with pytest.raises(ValueError, match=message):
        FAILURES[message](student, X, y)
    with pytest.raises(NotFittedError):
        student.predict(X)
    student = GatedSVC("bee", teacher).fit(X, y)
    answers = student.predict(X)
    with pytest.raises(ValueError, match=message):
        FAILURES[message](student, X, y)
    assert student.n_features_in_ == 6
    assert_array_equal(student.predict(X), answers)


def test_students_whose_fit_fails_stay_as_they_were(three, teacher):
    X, y = three
    students = GatedStudents(teacher, ["bee", "dog"])
    with pytest.raises(ValueError, match="target 'dog' is unknown"):
        students.fit(X, y)
    with pytest.raises(NotFittedError):
        students.predict(X)
    students.set_params(targets=None).fit(X, y)
    answers = students.predict(X)
    with pytest.raises(ValueError, match="target 'dog' is unknown"):
        students.set_params(targets=["bee", "dog"], teacher=None).fit(X[:, :5], y)
    assert_array_equal(students.predict(X), answers)


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
