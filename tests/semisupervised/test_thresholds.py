"""The thresholds of the baselines agree with brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

from widemargin.semisupervised.constraints import Constraints
from widemargin.semisupervised.thresholds import (
    cross_fitted_threshold,
    labels_only,
    prior_threshold,
)


@pytest.fixture
def data():
    X, y = make_classification(500, 6, weights=[0.75], flip_y=0.1, class_sep=0.6, random_state=0)
    return X[:200], y[:200], X[200:]


def test_labels_only_is_the_classifier_itself_and_does_not_fit_the_argument(data):
    X, y, new = data
    given = LogisticRegression()
    model = labels_only(given, X, y)
    np.testing.assert_array_equal(model.predict(new), LogisticRegression().fit(X, y).predict(new))
    assert not hasattr(given, "coef_")


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
@pytest.mark.parametrize("pos_label", [0, 1])
@pytest.mark.parametrize(
    "constraints",
    [None, Constraints(precision=0.75), Constraints(recall=0.9)],
    ids=["f1", "precision", "recall"],
)
def test_the_cross_fitted_threshold_is_the_best_on_cross_validated_scores(
    data, estimator, pos_label, constraints
):
    X, y, _ = data
    model = cross_fitted_threshold(
        estimator, X, y, constraints=constraints, pos_label=pos_label, random_state=3
    )
    seed = np.random.RandomState(3).randint(np.iinfo(np.int32).max)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    if hasattr(estimator, "decision_function"):
        scores = cross_val_predict(estimator, X, y, cv=folds, method="decision_function")
        scores = scores if pos_label == 1 else -scores
    else:
        scores = cross_val_predict(estimator, X, y, cv=folds, method="predict_proba")[:, pos_label]
    positive = y == pos_label

    def metrics(threshold):
        yes = scores > threshold
        hits = np.sum(yes & positive)
        return (
            hits / max(1, yes.sum()),
            hits / positive.sum(),
            2 * hits / (yes.sum() + positive.sum()),
        )

    every = np.array([metrics(t) for t in [scores.min() - 1.0, *np.unique(scores)]])
    if constraints is not None and constraints.precision is not None:
        every = every[every[:, 0] >= constraints.precision]
    if constraints is not None and constraints.recall is not None:
        every = every[every[:, 1] >= constraints.recall]
    best = every[every[:, 2] == every[:, 2].max()]
    assert metrics(model.threshold) in map(tuple, best.tolist())


def test_decisions_are_those_of_the_whole_classifier_at_the_threshold(data):
    X, y, new = data
    model = cross_fitted_threshold(LogisticRegression(), X, y, random_state=0)
    scores = LogisticRegression().fit(X, y).decision_function(new)
    np.testing.assert_array_equal(model.predict(new) == 1, scores > model.threshold)


@pytest.mark.parametrize("pos_label", ["yes", "no"])
def test_the_prior_threshold_accepts_the_labeled_fraction(data, pos_label):
    X, y, new = data
    labels = np.where(y == 1, "yes", "no")
    model = prior_threshold(LogisticRegression(), X, labels, new, pos_label=pos_label)
    accepted = np.count_nonzero(model.predict(new) == pos_label)
    assert accepted == round(len(new) * np.mean(labels == pos_label))


def test_equal_scores_are_not_separated_by_the_prior_threshold(data):
    X, y, _ = data
    model = prior_threshold(LogisticRegression(), X, y, np.repeat(X[:1], 7, axis=0))
    assert len(set(model.predict(np.repeat(X[:1], 7, axis=0)))) == 1


def test_sparse_samples_give_the_thresholds_of_dense_ones(data):
    X, y, new = data
    for baseline, more in ((cross_fitted_threshold, {"random_state": 0}), (prior_threshold, {})):
        args = (new,) if baseline is prior_threshold else ()
        dense = baseline(LogisticRegression(), X, y, *args, **more)
        args = (sp.csr_array(new),) if args else ()
        sparse = baseline(LogisticRegression(), sp.csr_array(X), y, *args, **more)
        assert sparse.threshold == pytest.approx(dense.threshold, abs=1e-3)


def test_other_than_two_labels_and_unknown_ones_are_refused(data):
    X, y, new = data
    three = np.arange(len(y)) % 3
    with pytest.raises(ValueError, match=r"two classes, .*, got \[0, 1, 2\]"):
        cross_fitted_threshold(LogisticRegression(), X, three)
    with pytest.raises(ValueError, match=r"of labeled samples only, got \[-1, 0, 1\]"):
        labels_only(LogisticRegression(), X, three - 1)
    with pytest.raises(ValueError, match="of one type, got NoneType, str"):
        labels_only(LogisticRegression(), X, np.array(["a", "b", None], dtype=object)[three])
    for pos_label in (5, [1]):
        with pytest.raises(ValueError, match=r"pos_label must be one of the labels \[0, 1\]"):
            prior_threshold(LogisticRegression(), X, y, new, pos_label=pos_label)


def test_a_classifier_without_scores_is_refused_before_it_is_trained(data, monkeypatch):
    X, y, new = data
    monkeypatch.setattr(NearestNeighbour, "fit", lambda *_: pytest.fail("trained"))
    for baseline in (cross_fitted_threshold, lambda *args: prior_threshold(*args, new)):
        with pytest.raises(AttributeError, match="decision_function or predict_proba; Nearest"):
            baseline(NearestNeighbour(), X, y)


class NearestNeighbour(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self
