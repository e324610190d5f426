"""What is promised holds, in the share of cases that was promised."""

import numpy as np
import pytest
from scipy.stats import beta, binomtest, norm

from widemargin.semisupervised.constraints import Demand
from widemargin.semisupervised.guarantee import promise, scores_at_ranks, thresholds_to_test

CONFIDENCE = 0.9


def problem(seed):
    """Scores of two Gaussians of a share, a distance and a size that vary; and exact measures."""
    rng = np.random.default_rng(seed)
    n, share = int(rng.integers(60, 1500)), rng.uniform(0.05, 0.5)
    distance, spread = rng.uniform(0.5, 3.0), rng.uniform(0.5, 2.0)
    truth = rng.random(n) < share
    truth[:2] = True, False
    scores = np.where(truth, distance + spread * rng.normal(size=n), rng.normal(size=n))
    other = rng.random(2000) < share
    others = np.where(other, distance + spread * rng.normal(size=2000), rng.normal(size=2000))

    def measures(threshold):
        recall, false = norm.sf(threshold, distance, spread), norm.sf(threshold)
        hits = share * recall
        return {
            "precision": hits / max(hits + (1.0 - share) * false, 1e-300),
            "recall": recall,
            "false_positive_rate": false,
        }

    return scores, truth, others, measures


@pytest.mark.parametrize(
    "demand",
    [
        Demand(precision=0.7),
        Demand(recall=0.8),
        Demand(false_positive_rate=0.1),
        Demand(precision=0.6, recall=0.3),
    ],
    ids=lambda demand: ",".join(demand.limits),
)
@pytest.mark.parametrize("unlabeled", [True, False], ids=["unlabelled rows", "labels alone"])
def test_promises_hold_at_the_promised_rate(demand, unlabeled):
    kept = held = 0
    for seed in range(300):
        scores, truth, others, measures = problem(seed)
        given = promise(demand, CONFIDENCE, scores, truth, others if unlabeled else None)
        if not given.kept:
            continue
        kept += 1
        found = measures(given.threshold)
        held += all(
            found[name] <= limit if name == "false_positive_rate" else found[name] >= limit
            for name, limit in demand.limits.items()
        )
    assert kept >= 100
    # That the rate is at least the promised one is not rejected at a level of one in a thousand.
    assert binomtest(held, kept, CONFIDENCE, alternative="less").pvalue > 1e-3


def test_recall_is_promised_by_the_largest_rank_that_the_beta_distribution_allows():
    scores, truth = np.arange(100.0), np.arange(100) % 2 == 1
    # Negative rows cost so much that the highest threshold allowed is the best one.
    demand = Demand(recall=0.8, cost_ratio=1e6)
    given = promise(demand, CONFIDENCE, scores, truth, scores)
    k = 1 + int((scores[truth] <= given.threshold).sum())
    assert k > 2
    assert beta.cdf(0.2, k, 50 - k + 1) >= CONFIDENCE > beta.cdf(0.2, k + 1, 50 - k)
    assert given.possible["recall"] == pytest.approx(1 - beta.ppf(CONFIDENCE, 1, 50))


def test_few_positive_rows_promise_no_high_recall_but_say_which_they_do():
    scores, truth = np.arange(20.0), np.arange(20) >= 10
    given = promise(Demand(recall=0.99), CONFIDENCE, scores, truth, scores)
    assert not given.kept
    again = promise(Demand(recall=given.possible["recall"]), CONFIDENCE, scores, truth, scores)
    assert again.kept


def test_a_precision_that_no_threshold_has_is_not_promised_but_what_could_be_is():
    rng = np.random.default_rng(0)
    scores, truth = rng.normal(size=400), rng.random(400) < 0.5
    given = promise(Demand(precision=0.95), CONFIDENCE, scores, truth, rng.normal(size=400))
    assert not given.kept
    assert 0.3 < given.possible["precision"] < 0.6


def test_equal_scores_are_accepted_or_left_out_together():
    scores = np.repeat([0.0, 1.0, 2.0], 50)
    truth = np.tile([True, False], 75)
    given = promise(Demand(recall=0.5), CONFIDENCE, scores, truth, scores)
    assert given.kept
    assert int((scores > given.threshold).sum()) in (50, 100, 150)
    assert promise(Demand(recall=0.9), CONFIDENCE, scores, truth, scores).threshold < 0.0


def test_thresholds_to_test_do_not_depend_on_labels_and_are_few():
    thresholds = thresholds_to_test(np.arange(1000.0))
    assert len(thresholds) <= 20
    assert thresholds[0] == pytest.approx(499.5, abs=1.0)
    assert (np.diff(thresholds) > 0).all()


def test_scores_at_ranks_leave_fixed_numbers_of_rows_above_them_whatever_the_scores():
    scores = np.random.default_rng(0).normal(size=200)
    above = [(scores > threshold).sum() for threshold in scores_at_ranks(scores)]
    assert above == [(scores**3 > threshold).sum() for threshold in scores_at_ranks(scores**3)]
    assert (min(above), max(above)) == (2, 100)
    assert len(scores_at_ranks(np.zeros(1))) == 1
