"""Scores find their way through scikit-learn's meta-estimators."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import GatedStudents, GatedSVC


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def asking(student):
    student.set_fit_request(teacher_scores=True, sample_weight=True)
    student.set_decision_function_request(teacher_scores=True)
    student.set_predict_request(teacher_scores=True)
    return student.set_score_request(teacher_scores=True, sample_weight=True)


def test_a_pipeline_routes_scores(three, teacher, routing):
    X, y = three
    scores = teacher.decision_function(X)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, asking(GatedStudents()))
    pipeline.fit(X, y, teacher_scores=scores)
    rows = scaler.fit_transform(X)
    direct = GatedStudents().fit(rows, y, teacher_scores=scores)
    assert_array_equal(
        pipeline.predict(X, teacher_scores=scores), direct.predict(rows, teacher_scores=scores)
    )
    expected = direct.decision_function(rows, teacher_scores=scores)
    assert_array_equal(pipeline.decision_function(X, teacher_scores=scores), expected)


def test_a_search_and_cross_validation_split_scores_with_their_rows(three, teacher, routing):
    X, y = three
    scores = teacher.decision_function(X)
    weight = np.arange(len(y)) % 2 + 1.0
    both = {"teacher_scores": scores, "sample_weight": weight}
    search = GridSearchCV(asking(GatedSVC("bee")), {"C": [1e-4, 1.0]}, cv=3).fit(X, y, **both)
    direct = GatedSVC("bee", C=search.best_params_["C"]).fit(X, y, weight, scores)
    assert_array_equal(search.best_estimator_.theta_, direct.theta_)
    split = [(np.arange(160), np.arange(160, 240))]
    found = cross_validate(asking(GatedSVC("bee")), X, y, cv=split, params=both)
    half = GatedSVC("bee").fit(X[:160], y[:160], weight[:160], scores[:160])
    assert found["test_score"] == [half.score(X[160:], y[160:], weight[160:], scores[160:])]


def test_scorers_of_two_classes_judge_a_student_by_truth_values(three, teacher):
    X, y = three
    student = GatedSVC("bee", FrozenEstimator(teacher), difficulty=None)
    grid = {"margin": [0.5, 1.0]}
    search = GridSearchCV(student, grid, scoring=["f1", "roc_auc"], refit="roc_auc", cv=3)
    search.fit(X, y == "bee")
    assert (search.cv_results_["mean_test_roc_auc"] > 0.7).all()
    assert (search.cv_results_["mean_test_f1"] > 0.4).all()


def test_a_frozen_teacher_survives_a_search(three, teacher):
    X, y = three
    frozen = FrozenEstimator(teacher)
    search = GridSearchCV(GatedStudents(frozen), {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    assert search.best_estimator_.teacher_ is frozen
    assert search.best_estimator_.merged_


class Noting(LogisticRegression):
    """A teacher that keeps the metadata of its fit."""

    noted = []

    def fit(self, X, y, sample_weight=None, extra=None, level=None):
        self.noted.append((X[:, 0].copy(), extra, level))
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("student", [GatedStudents, lambda teacher, **k: GatedSVC("bee", teacher)])
def test_metadata_reach_the_fits_of_the_teacher(three, routing, student):
    X, y = three
    Noting.noted.clear()
    teacher = Noting().set_fit_request(extra=True, level=True)
    model = student(teacher, cv=3)
    weight = np.arange(len(y)) % 2.0
    model.fit(X, y, sample_weight=weight, extra=X[:, 0], level=7)
    assert len(Noting.noted) == (1 if isinstance(model, GatedSVC) else 4)
    for samples, extra, level in Noting.noted:
        assert_array_equal(extra, samples)
        assert level == 7
    pipeline = make_pipeline(StandardScaler(), GatedStudents(teacher)).fit(X, y, extra=X[:, 1])
    assert_array_equal(Noting.noted[-1][1], X[:, 1])
    assert pipeline.predict(X).shape == y.shape


def test_metadata_that_nothing_takes_are_refused(three, routing):
    X, y = three
    with pytest.raises(TypeError, match="extra"):
        GatedStudents().fit(X, y, extra=y)
    fitted = Noting().fit(X, y).set_fit_request(extra=True)
    with pytest.raises(ValueError, match="teacher is fitted already, so that extra cannot"):
        GatedStudents(fitted).fit(X, y, extra=y)
    with (
        sklearn.config_context(enable_metadata_routing=False),
        pytest.raises(TypeError, match=r"unexpected arguments: extra.*enable_metadata_routing"),
    ):
        GatedStudents(Noting()).fit(X, y, extra=y)
