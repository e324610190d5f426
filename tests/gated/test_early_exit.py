"""The teacher's own short cut decides as the teacher does, with fewer scores."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn import svm
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
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
    make_pipeline(StandardScaler(), CrammerSingerSVC(kernel="rbf")),
    GaussianNB(),
]


@pytest.mark.parametrize("teacher", TEACHERS, ids=str)
def test_it_decides_as_the_teacher(three, teacher):
    X, y = three
    teacher = teacher.fit(X, y)
    for label in np.unique(y):
        assert_array_equal(early_exit_predict(teacher, X, label), teacher.predict(X) == label)


def test_it_computes_all_scores_only_of_rows_of_the_target(three):
    X, y = three
    teacher = CrammerSingerSVC().fit(X, y)
    answers, counts = early_exit_predict(teacher, X, "ant", return_counts=True)
    assert (counts[answers] == 3).all()
    assert counts.min() == 2
    bayes = GaussianNB().fit(X, y)
    assert (early_exit_predict(bayes, X, "ant", return_counts=True)[1] == 3).all()


@pytest.mark.parametrize("kind", [CrammerSingerSVC, LinearSVC])
def test_a_linear_machine_of_this_library_is_not_asked_for_all_scores(three, kind, monkeypatch):
    X, y = three
    teacher = kind().fit(X, y)
    expected = teacher.predict(X) == "bee"

    def refuse(self, X):
        raise AssertionError("all scores were computed")

    monkeypatch.setattr(kind, "decision_function", refuse)
    for asked in (teacher, FrozenEstimator(teacher)):
        assert_array_equal(early_exit_predict(asked, X, "bee"), expected)


@pytest.mark.parametrize("teacher", TEACHERS, ids=str)
def test_rows_that_are_none_of_the_teachers_are_refused(three, teacher):
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


def test_an_unknown_class_is_refused(three, teacher):
    with pytest.raises(ValueError, match="target 'dog' is unknown"):
        early_exit_predict(teacher, three[0], "dog")
