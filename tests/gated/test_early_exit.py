"""Early exit predicts what the teacher predicts, with fewer scores."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import SVC, CrammerSingerSVC, LinearSVC, early_exit_predict

TEACHERS = [
    CrammerSingerSVC(),
    CrammerSingerSVC(kernel="rbf"),
    LinearSVC(),
    SVC(multi_class="ovr"),
    svm.LinearSVC(),
    svm.SVC(),
    svm.SVC(kernel="linear", C=0.01),
    OneVsRestClassifier(svm.SVC()),
    GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
    make_pipeline(StandardScaler(), CrammerSingerSVC(kernel="rbf")),
    GaussianNB(),
]


@pytest.mark.parametrize("teacher", TEACHERS, ids=str)
def test_it_decides_as_the_teacher(three, teacher):
    X, y = three
    teacher = teacher.fit(X, y)
    for label in np.unique(y):
        assert_array_equal(early_exit_predict(teacher, X, label), teacher.predict(X) == label)


def test_votes_that_scores_do_not_follow_are_the_teachers_too():
    X, y = make_classification(
        n_samples=600, n_classes=5, n_features=6, n_informative=5, n_redundant=0, class_sep=0.3,
        random_state=0,
    )  # fmt: skip
    teacher = svm.SVC(C=0.3).fit(X, y)
    assert (teacher.decision_function(X).argmax(axis=1) != teacher.predict(X)).any()
    for label in range(5):
        assert_array_equal(early_exit_predict(teacher, X, label), teacher.predict(X) == label)


@pytest.mark.parametrize("kind", [LinearSVC, CrammerSingerSVC])
@pytest.mark.parametrize("lead", [0.0, 1e-12, 1e-9])
def test_a_small_lead_is_a_lead_but_where_the_teacher_takes_it_for_none(three, kind, lead):
    X, y = three[0][:80], three[1][:80]
    teacher = kind().fit(X, y)
    teacher.coef_ = np.zeros((3, 6))
    teacher.intercept_ = np.array([1.0, 1.0 + lead, 0.0])
    for label in teacher.classes_:
        expected = teacher.predict(X) == label
        assert_array_equal(early_exit_predict(teacher, X, label), expected)


JOINT = [LinearSVC(multi_class="crammer_singer"), CrammerSingerSVC()]


@pytest.mark.parametrize("teacher", JOINT, ids=str)
def test_ties_follow_the_rule_of_the_teacher(three, teacher):
    X, y = three[0][:80], three[1][:80]
    teacher = clone(teacher).fit(X, y)
    teacher.coef_ = np.zeros((3, 6))
    results = set()
    for steps in product(range(5), repeat=3):
        # Of three scores, two may be tied that are not tied with the third.
        teacher.intercept_ = 1.0 + 3e-8 * np.array(steps)
        predicted = teacher.predict(X[:5])
        results.add((predicted[0], int(np.argmax(steps))))
        for label in teacher.classes_:
            assert_array_equal(early_exit_predict(teacher, X[:5], label), predicted == label)
    assert len(results) > 3  # not all are predicted by their largest score


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_any_sparse_format_will_do(three, kernel):
    X, y = three[0][:80], three[1][:80]
    teacher = CrammerSingerSVC(kernel=kernel).fit(X, y)
    for rows in (sparse.coo_matrix(X), sparse.coo_array(X), sparse.csc_array(X)):
        expected = teacher.predict(X) == "bee"
        assert_array_equal(early_exit_predict(teacher, rows, "bee"), expected)


def test_it_computes_all_scores_only_of_rows_of_the_target(three):
    X, y = three
    teacher = CrammerSingerSVC().fit(X, y)
    answers, counts = early_exit_predict(teacher, X, "ant", return_counts=True)
    assert (counts[answers] == 3).all()
    assert counts.min() == 2
    bayes = GaussianNB().fit(X, y)
    assert (early_exit_predict(bayes, X, "ant", return_counts=True)[1] == 3).all()


@pytest.mark.parametrize("kind", [CrammerSingerSVC, LinearSVC])
def test_a_linear_estimator_of_this_library_does_not_compute_all_scores(three, kind, monkeypatch):
    X, y = three
    teacher = kind().fit(X, y)
    expected = teacher.predict(X) == "bee"

    def refuse(self, X):
        raise AssertionError("all scores were computed")

    monkeypatch.setattr(kind, "decision_function", refuse)
    for asked in (teacher, FrozenEstimator(teacher)):
        assert_array_equal(early_exit_predict(asked, X, "bee"), expected)


@pytest.mark.parametrize("teacher", TEACHERS, ids=str)
def test_samples_with_other_features_are_refused(three, teacher):
    X, y = three[0][:60], three[1][:60]
    rows = pd.DataFrame(X, columns=list("abcdef"))
    teacher = clone(teacher).fit(rows, y)
    with pytest.raises(ValueError, match="feature names should match"):
        early_exit_predict(teacher, rows[list("fedcba")], "bee")
    teacher.fit(X, y)
    with pytest.raises(ValueError, match="expecting 6 features"):
        early_exit_predict(teacher, X[:, :5], "bee")
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        early_exit_predict(teacher, X[0], "bee")


def test_a_teacher_that_knows_no_classes_is_refused(three):
    machine = svm.OneClassSVM().fit(three[0])
    with pytest.raises(TypeError, match=r"teacher must be a classifier.* got OneClassSVM"):
        early_exit_predict(machine, three[0], "bee")


def test_an_unknown_class_is_refused(three, teacher):
    with pytest.raises(ValueError, match="target 'dog' is unknown"):
        early_exit_predict(teacher, three[0], "dog")
