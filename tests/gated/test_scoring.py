"""Metrics of students by name, with class labels, in searches and pipelines."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import GatedStudents, GatedSVC


def test_a_search_scores_students_by_the_name_of_a_metric_with_labels(three):
    X, y = three
    folds = [(np.arange(0, 160), np.arange(160, 240)), (np.arange(80, 240), np.arange(80))]
    metrics = {"f1": f1_score, "roc_auc": roc_auc_score}
    for name, metric in metrics.items():
        student = GatedSVC("bee", LogisticRegression(), scoring=name)
        search = GridSearchCV(student, {"C": [1e-4, 1.0]}, cv=folds).fit(X, y)
        for k, (train, test) in enumerate(folds):
            for row, C in enumerate([1e-4, 1.0]):
                fitted = GatedSVC("bee", LogisticRegression(), C=C).fit(X[train], y[train])
                found = fitted.decision_function(X[test])
                expected = metric(y[test] == "bee", found if name == "roc_auc" else found >= 0.0)
                assert search.cv_results_[f"split{k}_test_score"][row] == pytest.approx(expected)
    scaled = make_pipeline(StandardScaler(), GatedSVC("bee", scoring="f1"))
    assert 0.0 < cross_val_score(scaled, X, y, cv=folds).min() < 1.0


def test_students_score_the_mean_over_their_classes(three, teacher):
    X, y = three
    students = GatedStudents(teacher, scoring="roc_auc").fit(X, y)
    each = [student.score(X, y) for student in students.students_.values()]
    assert students.score(X, y) == pytest.approx(np.mean(each))
    plain = GatedStudents(teacher).fit(X, y)
    assert plain.score(X, y) == np.mean(plain.predict(X) == y)


def test_weights_booleans_and_scores_of_the_teacher_are_passed_on(three, teacher):
    X, y = three
    weight = np.arange(len(y)) % 3
    scores = teacher.decision_function(X)
    student = GatedSVC("bee", classes=teacher.classes_, scoring="precision")
    student.fit(X, y, teacher_scores=scores)
    expected = precision_score(y == "bee", student.predict(X, scores), sample_weight=weight)
    assert student.score(X, y, weight, scores) == pytest.approx(expected)
    assert student.score(X, y == "bee", weight, scores) == pytest.approx(expected)


def test_a_function_may_be_the_metric(three, teacher):
    X, y = three

    def share(estimator, X, y):
        return np.mean(estimator.predict(X) & y)

    student = GatedSVC("bee", teacher, scoring=share).fit(X, y)
    assert student.score(X, y) == np.mean(student.predict(X) & (y == "bee"))


def test_unknown_metrics_are_refused(three):
    with pytest.raises(ValueError, match="'scoring' parameter of GatedSVC"):
        GatedSVC("bee", scoring="F").fit(*three)


def test_metrics_of_probabilities_are_refused(three, teacher):
    student = GatedSVC("bee", teacher, scoring="neg_log_loss").fit(*three)
    with pytest.raises(ValueError, match="scoring='neg_log_loss' needs probabilities"):
        student.score(*three)
