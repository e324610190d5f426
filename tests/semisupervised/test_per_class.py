"""Constraints for several classes."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import precision_score, recall_score
from sklearn.naive_bayes import GaussianNB

from widemargin import PreferenceClassifier
from widemargin.semisupervised.per_class import fit_per_class

BASE = PreferenceClassifier(GaussianNB(), random_state=0)


def three_classes(n=3000, labels=1200):
    X, y = make_classification(
        n, n_classes=3, n_informative=4, n_redundant=0, class_sep=2.0, random_state=0
    )
    marked = y.copy()
    marked[labels:] = -1
    return X, y, marked


def test_each_class_has_the_classifier_of_its_binary_problem():
    X, y, marked = three_classes(600, 300)
    decisions = fit_per_class(BASE, X, marked, {2: {"recall": 0.7}, 0: {"precision": 0.7}})
    assert decisions.classes == [2, 0]
    binary = PreferenceClassifier(GaussianNB(), recall=0.7, random_state=0)
    binary.fit(X, np.where(marked == -1, -1, marked == 2))
    assert_array_equal(decisions.accept(X)[:, 0], binary.predict(X) == 1)
    separate = fit_per_class(
        BASE, X[:300], y[:300], {2: {"recall": 0.7}}, X_unlabeled=X[300:]
    ).accept(X)
    assert_array_equal(separate[:, 0], binary.predict(X) == 1)


def test_unlabeled_samples_are_marked_by_minus_one_or_missing_values():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    hidden = np.arange(150) % 3 == 0
    bounds = {"precision": 0.7}
    missing = fit_per_class(BASE, X, np.where(hidden, None, names), {"virginica": bounds})
    marked = fit_per_class(BASE, X, np.where(hidden, -1, y), {2: bounds})
    assert_array_equal(missing.accept(X), marked.accept(X))
    assert missing.models["virginica"].pseudo_labels_.shape == (50,)


def test_constraints_of_all_classes_hold_together():
    X, y, marked = three_classes()
    base = PreferenceClassifier(GaussianNB(), confidence=0.9, random_state=0)
    bounds = {0: {"precision": 0.75}, 1: {"recall": 0.7}}
    decisions = fit_per_class(base, X, marked, bounds)
    assert decisions.guaranteed
    assert {model.confidence for model in decisions.models.values()} == {0.95}
    accepted = decisions.accept(X[1200:])
    assert precision_score(y[1200:] == 0, accepted[:, 0]) >= 0.75
    assert recall_score(y[1200:] == 1, accepted[:, 1]) >= 0.7
    assert not fit_per_class(BASE, X, marked, {0: {"recall": 0.5}}).guaranteed


@pytest.mark.parametrize(
    ("estimator", "constraints", "message"),
    [
        (BASE, {}, "bounds by class label"),
        (BASE, {-1: {"recall": 0.5}}, r"labels in \[0, 1, 2\], got \[-1\]"),
        (BASE, {0: {"f1": 0.5}}, "at least one of precision"),
        (BASE, {0: {}}, "at least one of precision"),
        (PreferenceClassifier(GaussianNB(), pos_label=2), {0: {"recall": 0.5}}, "pos_label"),
    ],
)
def test_invalid_constraints_are_refused(estimator, constraints, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        fit_per_class(estimator, X, np.where(np.arange(150) < 20, -1, y), constraints)
