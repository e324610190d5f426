"""Metrics of rankings, compared with their definitions and with scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import ndcg_score
from tests.labeltree.cases import documents

from widemargin import LabelTreeClassifier, label_propensities, ndcg_at_k, precision_at_k


@pytest.fixture
def ranked():
    random = np.random.default_rng(0)
    Y = (random.random((50, 12)) < 0.2).astype(int)
    Y[3] = 0
    scores = random.random((50, 12))
    return Y, np.argsort(-scores, axis=1), scores


@pytest.mark.parametrize("k", [1, 3, 5])
def test_precision_is_the_share_of_true_labels(ranked, k):
    Y, ranking, _ = ranked
    expected = np.mean([[Y[i, label] for label in ranking[i, :k]] for i in range(50)])
    assert precision_at_k(Y, ranking, k) == pytest.approx(expected)
    assert precision_at_k(sp.csr_array(Y), ranking, k) == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_ndcg_is_that_of_scikit_learn(ranked, k):
    Y, ranking, scores = ranked
    assert ndcg_at_k(Y, ranking, k) == pytest.approx(ndcg_score(Y, scores, k=k))


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize(("metric", "discounted"), [(precision_at_k, 0.0), (ndcg_at_k, 1.0)])
def test_propensity_scores_are_normalized_by_the_best_ranking(ranked, k, metric, discounted):
    Y, ranking, _ = ranked
    propensity = label_propensities(Y)
    discount = 1.0 / np.log2(np.arange(2, k + 2)) ** discounted
    gained = sum(
        Y[i, label] / propensity[label] * discount[j]
        for i in range(50)
        for j, label in enumerate(ranking[i, :k])
    )
    best = sum(np.sum(-np.sort(-Y[i] / propensity)[:k] * discount) for i in range(50))
    assert metric(Y, ranking, k, propensity) == pytest.approx(gained / best)
    ideal = np.argsort(-Y / propensity, axis=1)
    assert metric(Y, ideal, k, propensity) == pytest.approx(1.0)


def test_propensities_follow_their_definition():
    counts = np.array([0, 1, 10, 500])
    Y = sp.csr_array((np.arange(1000)[:, np.newaxis] < counts).astype(int))
    constant = (np.log(1000) - 1) * 2.5**0.55
    expected = 1 / (1 + constant * np.exp(-0.55 * np.log(counts + 1.5)))
    np.testing.assert_allclose(label_propensities(Y), expected)
    assert (label_propensities(Y, A=0.5, B=0.4) > 0).all()


@pytest.mark.large
def test_predictions_are_scored_as_they_are_returned():
    X, Y = documents()
    labels, _ = LabelTreeClassifier().fit(X, Y).predict_topk(X, 5)
    assert precision_at_k(Y, labels, 1) > 0.95
    assert ndcg_at_k(Y, labels, 5) > 0.9


def test_rankings_that_cannot_be_used_are_refused(ranked):
    Y, ranking, scores = ranked
    with pytest.raises(ValueError, match="at least k=5 labels for each of the 50 samples"):
        precision_at_k(Y, ranking[:, :3], 5)
    with pytest.raises(ValueError, match="column numbers of y_true, from 0 to 11"):
        ndcg_at_k(Y, scores, 5)
    with pytest.raises(ValueError, match="column numbers"):
        ndcg_at_k(Y, ranking + 1, 5)
    with pytest.raises(ValueError, match="propensity must have shape"):
        precision_at_k(Y, ranking, 5, np.ones(3))
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="propensity must contain positive numbers"):
            precision_at_k(Y, ranking, 5, np.full(12, wrong))
    for k in (0, 1.5, "1", True):
        with pytest.raises(ValueError, match="k must be a positive integer"):
            ndcg_at_k(Y, ranking, k)


@pytest.mark.parametrize(
    "wrong", [np.zeros((2, 2, 2)), [1, 0], [["a"], ["b"]], np.zeros((0, 3)), [[1.0, np.nan]]]
)
def test_matrices_that_are_no_indicators_are_refused(wrong):
    with pytest.raises(ValueError, match="y_true must be an indicator matrix"):
        precision_at_k(wrong, [[0]], 1)
    with pytest.raises(ValueError, match="Y must be an indicator matrix"):
        label_propensities(wrong)


def test_propensities_need_a_training_set_and_positive_constants():
    with pytest.raises(ValueError, match="at least 3 samples, got 2"):
        label_propensities([[1, 0], [1, 1]])
    for constants in ({"A": np.nan}, {"B": -5.0}, {"A": 0.0}):
        with pytest.raises(ValueError, match="A and B must be positive"):
            label_propensities(np.eye(3), **constants)


def test_explicit_zeros_and_duplicates_of_sparse_matrices_count_once():
    Y = sp.coo_array(([1.0, 1.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert precision_at_k(Y, [[1], [0]], 1) == 0.5


def test_a_repeated_label_counts_once():
    truth, ranking = [[1, 0, 1], [0, 1, 0]], [[0, 0, 2], [1, 1, 1]]
    assert precision_at_k(truth, ranking, k=3) == pytest.approx(3 / 6)
    assert ndcg_at_k(truth, ranking, k=3) == pytest.approx(((1.5) / (1 + 1 / np.log2(3)) + 1) / 2)
