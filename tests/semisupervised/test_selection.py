"""Folds that keep unlabeled samples out of the tests, and scorers for constraints."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import precision_recall_curve
from sklearn.model_selection import GridSearchCV

from widemargin import (
    PartiallyLabeledKFold,
    PreferenceClassifier,
    precision_at_recall_scorer,
    recall_at_precision_scorer,
)


def draw(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    return rng.normal(size=(n, 3)) + 1.2 * y[:, np.newaxis], y


@pytest.mark.parametrize("mark", [-1, np.nan, None])
def test_test_folds_have_labels_and_training_folds_have_all_unlabeled_samples(mark):
    X, y = draw()
    marked = y.astype(object)
    marked[100:] = mark
    tested = []
    for train, test in PartiallyLabeledKFold(4, shuffle=True, random_state=0).split(X, marked):
        assert test.max() < 100
        assert_array_equal(np.sort(np.append(train, test)), np.arange(300))
        assert abs(y[test].mean() - y[:100].mean()) < 0.05
        tested.extend(test)
    assert sorted(tested) == list(range(100))


def test_scorers_agree_with_the_precision_recall_curve_of_scikit_learn():
    X, y = draw()
    model = LogisticRegression().fit(X, y)
    precision, recall, _ = precision_recall_curve(y, model.decision_function(X))
    for bound in (0.5, 0.8, 0.95):
        expected = recall[:-1][precision[:-1] >= bound].max()
        assert recall_at_precision_scorer(bound)(model, X, y) == pytest.approx(expected)
        expected = precision[:-1][recall[:-1] >= bound].max()
        assert precision_at_recall_scorer(bound)(model, X, y) == pytest.approx(expected)


def test_a_search_with_unlabeled_samples_uses_folds_and_scorer():
    X, y = draw()
    marked = np.where(np.arange(300) < 150, y, -1)
    search = GridSearchCV(
        PreferenceClassifier(
            LogisticRegression(), precision=0.7, margin=None, max_rounds=1, random_state=0
        ),
        {"estimator__C": [1e-3, 1.0]},
        scoring=recall_at_precision_scorer(0.7),
        cv=PartiallyLabeledKFold(3),
    ).fit(X, marked)
    assert (search.cv_results_["mean_test_score"] > 0.1).all()


def test_bad_bounds_and_labels_are_refused():
    X, y = draw()
    with pytest.raises(
        ValueError, match=r"precision must be a number greater than 0 and at most 1, got 1\.5"
    ):
        recall_at_precision_scorer(1.5)
    with pytest.raises(ValueError, match="recall must be a number greater than 0"):
        precision_at_recall_scorer("0.5")
    with pytest.raises(ValueError, match="got only unlabeled samples"):
        next(PartiallyLabeledKFold(2).split(X, np.full(len(X), -1)))
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="y_true must contain labels of two classes"):
        precision_at_recall_scorer(0.5)(model, X[:3], [1, 1, 1])
