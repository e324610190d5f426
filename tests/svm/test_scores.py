"""Ties between classes are broken by one rule."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris

from widemargin import SVC, CrammerSingerSVC, LinearSVC
from widemargin.svm.scores import linear_tie_tolerance, merge_ties, tie_tolerance


def test_scores_within_the_tolerance_of_the_best_are_tied():
    scores = np.array([[1.0, 1.05, 0.5], [1.0, 2.0, 1.95]])
    assert_array_equal(merge_ties(scores, 0.1), [[1.05, 1.05, 0.5], [1.0, 2.0, 2.0]])
    assert_array_equal(merge_ties(scores, np.array([0.1, 0.0]))[1], scores[1])
    assert_array_equal(merge_ties(scores, 0.0), scores)


def test_the_tolerance_grows_with_scores_and_is_0_without_a_joint_problem():
    X, y = load_iris(return_X_y=True)
    for model in (CrammerSingerSVC(), LinearSVC(multi_class="crammer_singer", max_iter=10_000)):
        model.fit(X, y)
        tolerance = tie_tolerance(model, X)
        largest = np.abs(model.decision_function(X)).max(axis=1)
        assert (tolerance >= 1e-8 * largest).all()
        assert (tolerance <= 1e-5 * largest).all()
        assert_allclose(tie_tolerance(model, sparse.csr_array(X)), tolerance)
    assert 0.0 < tie_tolerance(CrammerSingerSVC(kernel="rbf").fit(X, y), X) < 1e-5
    for model in (LinearSVC(), SVC()):
        assert tie_tolerance(model.fit(X, y), X) == 0.0


def test_duplicate_entries_of_sparse_samples_are_one():
    X = sparse.csr_array(np.array([[1.0, 2.0], [0.0, 3.0]]))
    halves = (np.repeat(X.data / 2.0, 2), np.repeat(X.indices, 2), 2 * X.indptr)
    coef, intercept = np.eye(2), np.ones(2)
    expected = linear_tie_tolerance(X, coef, intercept)
    assert_array_equal(linear_tie_tolerance(sparse.csr_array(halves), coef, intercept), expected)
