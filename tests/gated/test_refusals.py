"""Invalid input raises an error, doubtful results a warning."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from widemargin import CrammerSingerSVC, GatedStudents, GatedSVC, compare_students


def test_inputs_of_different_lengths_are_refused(three, teacher):
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
    with pytest.raises(ValueError, match="got no samples of it"):
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
def test_a_target_must_be_a_label(three, target):
    X, y = three
    codes = np.unique(y, return_inverse=True)[1]
    scores = (codes[:, None] == np.arange(3)) - 0.5
    with pytest.raises(ValueError, match="is unknown to the teacher, whose classes are"):
        GatedSVC(target).fit(X, codes, teacher_scores=scores)


def test_a_number_is_not_a_boolean_label(three):
    X, y = three
    with pytest.raises(ValueError, match=r"target 0 is unknown .* \[False, True\]"):
        GatedSVC(0).fit(X, y == "bee")
    assert GatedSVC(True).fit(X, y == "bee").score(X, y == "bee") > 0.7


def test_a_teacher_cannot_be_fitted_to_booleans(three):
    X, y = three
    codes = np.unique(y, return_inverse=True)[1]
    teacher = CrammerSingerSVC().fit(X, codes)
    with pytest.raises(ValueError, match="y must contain class labels if cv is set"):
        GatedSVC(1, teacher, cv=3).fit(X, codes == 1)


@pytest.mark.parametrize("targets", [None, [0, 1]])
def test_many_students_cannot_be_fitted_to_booleans(three, targets):
    X, y = three
    codes = np.unique(y, return_inverse=True)[1]
    students = GatedStudents(CrammerSingerSVC().fit(X, codes), targets)
    with pytest.raises(ValueError, match="y must contain class labels, got booleans"):
        students.fit(X, codes == 1)
    with pytest.raises(ValueError, match="y must contain class labels, got booleans"):
        compare_students(students, X, codes == 1, X)


def test_labels_that_the_teacher_does_not_know_are_refused(three, teacher):
    X, y = three
    strange = np.where(y == "ant", "dog", y)
    for student in (GatedSVC("bee", teacher), GatedStudents(teacher, ["bee", "cat"])):
        with pytest.raises(ValueError, match=r"unknown to the teacher: \['dog'\]. Its classes"):
            student.fit(X, strange)
    # Samples of a new class are negatives: a student can be scored on them.
    student = GatedSVC("bee", teacher).fit(X, strange == "bee")
    assert student.score(X, strange) == student.score(X, y)


def test_labels_that_are_given_twice_are_refused(three, teacher):
    X, y = three
    with pytest.raises(ValueError, match="targets must be distinct classes"):
        GatedStudents(teacher, targets=["bee", "bee"]).fit(X, y)
    with pytest.raises(ValueError, match="classes must be distinct labels"):
        GatedSVC("bee", classes=["ant", "ant", "bee"]).fit(
            X, y, teacher_scores=np.eye(3)[np.arange(len(y)) % 3]
        )


def test_a_kernel_and_features_exclude_each_other(three, teacher):
    with pytest.raises(ValueError, match="features cannot be combined with kernel='rbf'"):
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


def test_majorization_of_an_indefinite_kernel_is_refused(three, teacher):
    with pytest.raises(
        ValueError, match="solver='majorize-minimize' needs a positive semidefinite kernel"
    ):
        GatedSVC("bee", teacher, kernel="sigmoid", solver="majorize-minimize").fit(*three)
    assert np.isnan(GatedSVC("bee", teacher, kernel="sigmoid").fit(*three).dual_gap_)


def test_a_student_that_did_not_converge_raises_a_warning(three, teacher):
    with pytest.warns(ConvergenceWarning, match=".max_iter=3.*the student for class 'bee'"):
        student = GatedSVC("bee", teacher, C=100.0, max_iter=3).fit(*three)
    assert student.fit_status_ == 1


@pytest.mark.parametrize("kind", [GatedStudents, lambda **given: GatedSVC("bee", **given)])
def test_a_warning_points_at_the_line_that_calls_fit(three, teacher, kind):
    with pytest.warns(ConvergenceWarning) as caught:
        kind(teacher=teacher, C=100.0, max_iter=3).fit(*three)
    assert {warning.filename for warning in caught} == {__file__}


def warned(student, X, y, scores):
    """Return the text of the warnings of fit."""
    with pytest.warns(UserWarning, match="the student for class 'bee'") as warnings:
        student.fit(X, y, teacher_scores=scores)
    return " ".join(str(warning.message) for warning in warnings)


def test_an_overfitted_teacher_raises_a_warning(three):
    X, y = three
    scores = 5.0 * np.where(y[:, None] == np.unique(y), 1.0, -1.0)
    cause = "class 'bee', because the teacher meets the margin on all training samples."
    assert f"{cause} Set cv to use out-of-fold scores, or increase margin." in warned(
        GatedSVC("bee"), X, y, scores
    )
    assert f"{cause} Increase margin." in warned(GatedSVC("bee", cv=3), X, y, scores)


def test_a_student_with_strong_regularization_does_not_blame_its_teacher(three, teacher):
    X, y = three
    text = warned(GatedSVC("bee", C=1e-12), X, y, teacher.decision_function(X))
    assert "theta is close to zero for the student for class 'bee'. Increase C." in text
    assert "meets the margin" not in text


def test_a_margin_that_no_sample_meets_raises_a_warning(three, teacher):
    X, y = three
    scores = teacher.decision_function(X)
    text = warned(GatedSVC("bee", margin=1e6), X, y, scores)
    assert "No training sample meets the margin for the student for class 'bee', so" in text
    found = [GatedSVC("bee", margin=margin) for margin in (1e6, 2e6)]
    for student in found:
        warned(student, X, y, scores)
    np.testing.assert_allclose(found[0].theta_, found[1].theta_)


def test_booleans_need_a_fitted_teacher_or_classes(three):
    X, y = three
    with pytest.raises(ValueError, match=r"pass a fitted teacher, or set classes\. Otherwise"):
        GatedSVC("bee").fit(X, y == "bee")


def test_scores_that_are_all_zero_raise_a_warning(three):
    X, y = three
    scores = np.zeros((len(y), 3))
    text = warned(GatedSVC("bee", difficulty="relative-margin"), X, y, scores)
    assert "class 'bee', so that degrees of difficulty are not meaningful. Use diffic" in text
    text = warned(GatedSVC("bee"), X, y, scores)
    assert "scores are all close to zero for the student for class 'bee'. Use a teacher" in text
    assert "difficulty" not in warned(GatedSVC("bee", C=1e-9), X, y, scores - 9.0)


class NotFinite(GaussianNB):
    """A teacher whose scores are not finite from some sample on."""

    def predict_proba(self, X):
        probability = super().predict_proba(X)
        probability[100:] = np.nan
        return probability


def test_scores_of_a_teacher_that_are_no_numbers_are_refused(three):
    X, y = three
    teacher = NotFinite().fit(X, y)
    for student in (GatedSVC("bee", teacher), GatedStudents(teacher)):
        with pytest.raises(ValueError, match="the teacher's scores contains NaN"):
            student.fit(X, y)
        student.fit(X[:90], y[:90])
        with pytest.raises(ValueError, match="the teacher's scores contains NaN"):
            student.predict(X)
        for bad in (np.nan, np.inf):
            with pytest.raises(ValueError, match="teacher_scores contains"):
                student.predict(X[:90], teacher_scores=np.full((90, 3), bad))


WRONG_SCORES = {
    "rows": (lambda X: np.ones((3, 3)), "teacher must return a row for each of 100 samples"),
    "texts": (lambda X: np.full((len(X), 3), "much"), "The scores of teacher must contain numbers"),
}


@pytest.mark.parametrize("kind", WRONG_SCORES)
def test_functions_that_return_no_scores_of_the_samples_are_refused(three, kind):
    function, message = WRONG_SCORES[kind]
    with pytest.raises(ValueError, match=message):
        GatedStudents(function).fit(*three)


WRONG_PARAMETERS = {
    "strength": ({"gate_strength": 0.5}, "gate_strength is that of a distilled gate"),
    "features": ({"features": True}, "features must be a transformer or a number"),
    "checkpoint": (
        {"gate": "distilled", "budget": 50.0, "checkpoint": "state"}, "cannot be used with budget",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG_PARAMETERS)
def test_parameters_that_exclude_each_other_are_refused(three, teacher, kind):
    parameters, message = WRONG_PARAMETERS[kind]
    with pytest.raises(ValueError, match=message):
        GatedStudents(teacher, **parameters).fit(*three)


def test_unlabeled_samples_of_other_features_are_refused_by_their_name(three, teacher):
    X, y = three
    students = GatedStudents(teacher, gate="distilled")
    for unlabeled in (X[:, :2], np.full((3, 6), np.nan)):
        with pytest.raises(ValueError, match="unlabeled must be samples like those of X"):
            students.fit(X, y, unlabeled=unlabeled)


def test_scores_with_another_index_than_the_samples_are_refused(three, teacher):
    X, y = three
    scores = pd.DataFrame(teacher.decision_function(X), index=np.arange(len(y))[::-1])
    with pytest.raises(ValueError, match="X and teacher_scores must have the same index"):
        GatedStudents().fit(pd.DataFrame(X), y, teacher_scores=scores)


def test_a_teacher_that_knows_no_classes_is_refused(three):
    X, y = three
    for estimator in (svm.OneClassSVM(), svm.OneClassSVM().fit(X)):
        with pytest.raises(TypeError, match=r"teacher must be a classifier.* got OneClassSVM"):
            GatedSVC("bee", estimator).fit(X, y)


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
    predicted = student.predict(X)
    with pytest.raises(ValueError, match=message):
        FAILURES[message](student, X, y)
    assert student.n_features_in_ == 6
    assert_array_equal(student.predict(X), predicted)


def test_students_whose_fit_fails_stay_as_they_were(three, teacher):
    X, y = three
    students = GatedStudents(teacher, ["bee", "dog"])
    with pytest.raises(ValueError, match="target 'dog' is unknown"):
        students.fit(X, y)
    with pytest.raises(NotFittedError):
        students.predict(X)
    students.set_params(targets=None).fit(X, y)
    predicted = students.predict(X)
    with pytest.raises(ValueError, match="target 'dog' is unknown"):
        students.set_params(targets=["bee", "dog"], teacher=None).fit(X[:, :5], y)
    assert_array_equal(students.predict(X), predicted)


def test_constant_students_raise_one_warning_that_names_all(three):
    X, y = three
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((len(y), 3)) - 9.0
    with pytest.warns(UserWarning, match="the same .* classes 'ant', 'bee', 'cat'") as caught:
        GatedStudents(C=1e-4).fit(X, y, teacher_scores=scores)
    assert len(caught) == 1


def test_a_student_without_issues_raises_no_warning(three, teacher, recwarn):
    GatedStudents(teacher).fit(*three)
    CrammerSingerSVC().fit(*three)
    assert not [w for w in recwarn if issubclass(w.category, UserWarning)]


@pytest.mark.parametrize("features", [None, 3])
def test_texts_are_refused_with_a_pointer_to_the_features_of_the_teacher(features):
    texts, y = ["good dog", "bad cat", "good cat", "bad dog"] * 5, [0, 1, 0, 2] * 5
    teacher = make_pipeline(TfidfVectorizer(), CrammerSingerSVC())
    with pytest.raises(ValueError, match="set features='teacher'"):
        GatedSVC(0, teacher, features=features).fit(texts, y)
    fitted = teacher.fit(texts, y)
    with pytest.raises(ValueError, match="set features='teacher'"):
        GatedStudents(fitted, features=features).fit(np.array(texts, dtype=object), y)
