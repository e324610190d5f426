"""Guarantees hold at the stated confidence."""

import numpy as np
import pytest
from scipy.stats import beta, binomtest, norm

from widemargin.semisupervised.constraints import Constraints, ScoredSamples
from widemargin.semisupervised.guarantee import (
    guaranteed_threshold,
    quantile_thresholds,
    rank_thresholds,
)

CONFIDENCE = 0.9


def guaranteed(constraints, scores, positive, unlabeled):
    return guaranteed_threshold(constraints, CONFIDENCE, ScoredSamples(scores, positive), unlabeled)


def problem(seed):
    """Scores of two Gaussians of a share, a distance and a size that vary; and exact metrics."""
    rng = np.random.default_rng(seed)
    n, share = int(rng.integers(60, 1500)), rng.uniform(0.05, 0.5)
    distance, spread = rng.uniform(0.5, 3.0), rng.uniform(0.5, 2.0)
    positive = rng.random(n) < share
    positive[:2] = True, False
    scores = np.where(positive, distance + spread * rng.normal(size=n), rng.normal(size=n))
    other = rng.random(2000) < share
    others = np.where(other, distance + spread * rng.normal(size=2000), rng.normal(size=2000))

    def metrics(threshold):
        recall, false = norm.sf(threshold, distance, spread), norm.sf(threshold)
        hits = share * recall
        return {
            "precision": hits / max(hits + (1.0 - share) * false, 1e-300),
            "recall": recall,
            "false_positive_rate": false,
        }

    return scores, positive, others, metrics


@pytest.mark.parametrize(
    "constraints",
    [
        Constraints(precision=0.7),
        Constraints(recall=0.8),
        Constraints(false_positive_rate=0.1),
        Constraints(precision=0.6, recall=0.3),
    ],
    ids=lambda constraints: ",".join(constraints.bounds),
)
@pytest.mark.parametrize("unlabeled", [True, False], ids=["unlabeled samples", "labels only"])
def test_guarantees_hold_at_the_stated_rate(constraints, unlabeled):
    count = held = 0
    for seed in range(300):
        scores, positive, others, metrics = problem(seed)
        guarantee = guaranteed(constraints, scores, positive, others if unlabeled else np.empty(0))
        if not guarantee.guaranteed:
            continue
        count += 1
        found = metrics(guarantee.threshold)
        held += all(
            found[name] <= bound if name == "false_positive_rate" else found[name] >= bound
            for name, bound in constraints.bounds.items()
        )
    assert count >= 100
    # That the rate is at least the confidence is not rejected at a level of one in a thousand.
    assert binomtest(held, count, CONFIDENCE, alternative="less").pvalue > 1e-3


def test_recall_is_guaranteed_by_the_largest_rank_that_the_beta_distribution_allows():
    scores, positive = np.arange(100.0), np.arange(100) % 2 == 1
    # False positives cost so much that the highest threshold allowed is the best one.
    constraints = Constraints(recall=0.8, cost_ratio=1e6)
    guarantee = guaranteed(constraints, scores, positive, scores)
    k = 1 + int((scores[positive] <= guarantee.threshold).sum())
    assert k > 2
    assert beta.cdf(0.2, k, 50 - k + 1) >= CONFIDENCE > beta.cdf(0.2, k + 1, 50 - k)
    assert guarantee.achievable["recall"] == pytest.approx(1 - beta.ppf(CONFIDENCE, 1, 50))


def test_few_positive_samples_guarantee_no_high_recall_and_the_achievable_one_is_reported():
    scores, positive = np.arange(20.0), np.arange(20) >= 10
    guarantee = guaranteed(Constraints(recall=0.99), scores, positive, scores)
    assert not guarantee.guaranteed
    again = guaranteed(Constraints(recall=guarantee.achievable["recall"]), scores, positive, scores)
    assert again.guaranteed


def test_a_precision_that_no_threshold_has_is_not_guaranteed_and_the_achievable_one_is_reported():
    rng = np.random.default_rng(0)
    scores, positive = rng.normal(size=400), rng.random(400) < 0.5
    guarantee = guaranteed(Constraints(precision=0.95), scores, positive, rng.normal(size=400))
    assert not guarantee.guaranteed
    assert 0.3 < guarantee.achievable["precision"] < 0.6


def test_equal_scores_are_accepted_or_left_out_together():
    scores = np.repeat([0.0, 1.0, 2.0], 50)
    positive = np.tile([True, False], 75)
    guarantee = guaranteed(Constraints(recall=0.5), scores, positive, scores)
    assert guarantee.guaranteed
    assert int((scores > guarantee.threshold).sum()) in (50, 100, 150)
    assert guaranteed(Constraints(recall=0.9), scores, positive, scores).threshold < 0.0


def test_tested_thresholds_do_not_depend_on_labels_and_are_few():
    thresholds = quantile_thresholds(np.arange(1000.0))
    assert len(thresholds) <= 20
    assert thresholds[0] == pytest.approx(499.5, abs=1.0)
    assert (np.diff(thresholds) > 0).all()


def test_rank_thresholds_leave_fixed_numbers_of_samples_above_them_whatever_the_scores():
    scores = np.random.default_rng(0).normal(size=200)
    above = [(scores > threshold).sum() for threshold in rank_thresholds(scores)]
    assert above == [(scores**3 > threshold).sum() for threshold in rank_thresholds(scores**3)]
    assert (min(above), max(above)) == (2, 100)
    assert len(rank_thresholds(np.zeros(1))) == 1
