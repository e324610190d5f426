"""Thresholds on scores written by hand, where every metric can be counted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binomtest
from sklearn.metrics import fbeta_score, precision_score, recall_score

from widemargin.semisupervised.constraints import (
    Constraints,
    ScoredSamples,
    ThresholdCurve,
    midpoints,
    with_share,
)

SCORES = np.array([-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0])
POSITIVE = np.array([False, False, True, False, False, True, False, True])


def chosen(constraints, scores=SCORES, positive=POSITIVE):
    return constraints.tuned_threshold(ScoredSamples(scores, positive))


def adjusted(constraints, scores=SCORES, positive=POSITIVE):
    return constraints.adjusted_threshold(ScoredSamples(scores, positive))


def at(threshold, scores=SCORES, positive=POSITIVE):
    accepted = scores > threshold
    hits = (accepted & positive).sum()
    return hits / max(1, accepted.sum()), hits / positive.sum()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.booleans(), st.integers(1, 3)), min_size=2, max_size=9
    ),
    st.sampled_from([0.5, 1.0, 2.0]),
)
def test_a_curve_counts_as_scikit_learn_does(samples, beta):
    scores = np.array([sample[0] for sample in samples], dtype=float)
    positive = np.array([sample[1] for sample in samples])
    weight = np.array([sample[2] for sample in samples], dtype=float)
    positive[0], positive[1] = True, False
    curve = ThresholdCurve(ScoredSamples(scores, positive, weight))
    for k, threshold in enumerate(curve.thresholds):
        options = {"sample_weight": weight, "zero_division": 0.0}
        accepted = scores > threshold
        assert_allclose(curve.precision[k], precision_score(positive, accepted, **options))
        assert_allclose(curve.recall[k], recall_score(positive, accepted, **options))
        expected = fbeta_score(positive, accepted, beta=beta, **options)
        assert_allclose(curve.f_score(beta)[k], expected)
        false = weight[accepted & ~positive].sum() / weight[~positive].sum()
        assert_allclose(curve.false_positive_rate[k], false)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, unique=True))
def test_midpoints_separate_all_distinct_scores(scores):
    distinct = np.unique(scores)
    thresholds = midpoints(distinct)
    accepted = [int((distinct > t).sum()) for t in thresholds]
    assert accepted == list(range(len(distinct), -1, -1))


def test_adjacent_floats_are_separated():
    pair = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert_array_equal(pair > midpoints(pair)[1], [False, True])


def test_the_tuned_threshold_has_the_best_f_within_the_bounds():
    assert at(chosen(Constraints(precision=0.9))) == (1.0, 1 / 3)
    # (1/2, 1) and (2/3, 2/3) have the same F1: the lower threshold is taken.
    assert at(chosen(Constraints(recall=0.6))) == (0.5, 1.0)
    assert at(chosen(Constraints(precision=0.6))) == (2 / 3, 2 / 3)
    assert at(chosen(Constraints(recall=0.9))) == (0.5, 1.0)
    assert at(chosen(Constraints(precision=0.5, recall=0.9))) == (0.5, 1.0)


def test_the_tuned_threshold_has_the_smallest_violation_of_infeasible_bounds():
    precision, recall = at(chosen(Constraints(precision=0.9, recall=0.9)))
    # (1/2, 1) misses by .4, (1, 1/3) by .57, (2/3, 2/3) by .23.
    assert (precision, recall) == (2 / 3, 2 / 3)


def test_false_positive_rate_and_costs_are_constraints_too():
    strict, dear, cheap = (
        chosen(Constraints(**constraints)) < SCORES
        for constraints in (
            {"false_positive_rate": 0.0},
            {"cost_ratio": 100.0},
            {"cost_ratio": 0.01},
        )
    )
    assert not (strict & ~POSITIVE).any()
    assert (strict.sum(), dear.sum(), cheap.sum()) == (1, 1, 6)


def test_a_missed_precision_is_reached_by_going_up_and_no_farther_than_needed():
    # At 0: 4 accepted, 2 positive.
    assert 0.5 < adjusted(Constraints(precision=0.6)) < 1.0
    assert 2.0 < adjusted(Constraints(precision=0.9)) < 3.0


def test_a_precision_out_of_reach_gives_the_lowest_threshold_of_the_greatest_one():
    positive = np.array([False, False, True, False, True, True, False, False])
    threshold = adjusted(Constraints(precision=0.9), SCORES, positive)
    assert threshold == 0.0  # 2 of 4 there; going up gives 1/3, 0, 0


def test_a_missed_recall_is_reached_by_going_down_and_no_farther_than_needed():
    assert -2.0 < adjusted(Constraints(recall=0.9)) < -1.0


@pytest.mark.parametrize(
    ("constraints", "low", "high"),
    [
        # precision .5, recall 2/3 at 0: precision is raised to 2/3
        (Constraints(), 0.5, 1.0),
        (Constraints(precision=0.4), 0.5, 1.0),
        (Constraints(recall=0.5), 0.5, 1.0),
    ],
)
def test_without_a_violation_the_smaller_metric_is_raised(constraints, low, high):
    assert low < adjusted(constraints) < high


def test_bringing_precision_up_never_breaks_a_recall_that_is_kept():
    # Precision 1/3 and recall 2/2 at 0; precision 1 would need a threshold with recall 1/2.
    scores = np.array([-1.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    positive = np.array([False, True, False, False, False, False, True])
    threshold = adjusted(Constraints(recall=0.9), scores, positive)
    assert at(threshold, scores, positive)[1] == 1.0


def test_bringing_recall_up_stops_at_the_highest_of_equal_thresholds():
    # Precision 1, recall 1/3 at 0. All recall would cost too much precision; 2/3 of it is had
    # with precision 2/3 at -2.5 and 1/2 at -4.
    scores = np.array([-9.0, -8.0, -7.0, -6.0, -5.0, -3.0, -2.0, -1.0, 1.0])
    positive = np.isin(scores, [-9.0, -2.0, 1.0])
    assert adjusted(Constraints(precision=0.5), scores, positive) == -2.5


def test_equal_precision_and_recall_leave_the_threshold_at_zero():
    positive = np.array([False, False, True, False, False, True, True, False])
    positive[-1] = True
    positive[2], positive[0] = False, True  # 3 of 4 accepted are positive, 3 of 4 positive accepted
    assert at(0.0, SCORES, positive) == (0.75, 0.75)
    assert adjusted(Constraints(), SCORES, positive) == 0.0


@pytest.mark.parametrize("name", ["precision", "recall", "false_positive_rate"])
def test_limits_are_the_exact_ones_and_levels_invert_them(name):
    curve = ThresholdCurve(ScoredSamples(SCORES, POSITIVE))
    upper = name == "false_positive_rate"
    limits, n = curve.limit(name, 0.9), {"recall": 3, "false_positive_rate": 5}
    for k, threshold in enumerate(curve.thresholds):
        accepted = threshold < SCORES
        hits = (accepted & (~POSITIVE if upper else POSITIVE)).sum()
        size = n.get(name, accepted.sum())
        test = binomtest(int(hits), max(1, int(size)), alternative="less" if upper else "greater")
        interval = test.proportion_ci(0.9)
        assert_allclose(limits[k], interval.high if upper else interval.low, atol=1e-9)
        if 0.0 < limits[k] < 1.0:
            assert_allclose(curve.level(name, limits[k])[k], 0.9)


@pytest.mark.parametrize(("name", "bound"), [("recall", 0.0), ("false_positive_rate", 1.0)])
def test_a_bound_that_every_rate_meets_is_met_at_every_level(name, bound):
    curve = ThresholdCurve(ScoredSamples(SCORES, POSITIVE))
    np.testing.assert_array_equal(curve.level(name, bound), 1.0)
    violation = Constraints(**{name: bound}, margin=0.9).violation(curve)
    np.testing.assert_array_equal(violation, 0.0)


def test_a_margin_refuses_a_precision_of_too_few_samples():
    scores, positive = np.arange(60.0), np.arange(60) >= 30
    positive[25:30] = True, False, True, False, True
    plain, safe = (
        ThresholdCurve(
            ScoredSamples(scores, positive),
            [chosen(Constraints(precision=0.9, margin=m), scores, positive)],
        )
        for m in (None, 0.99)
    )
    assert plain.true_positives > safe.true_positives
    # Without an error 44 accepted samples would be needed: the smallest violation is taken.
    assert safe.true_positives == 31
    assert safe.false_positives == 0


@pytest.mark.parametrize(
    ("constraints", "most"),
    [
        (Constraints(), 0.8),
        (Constraints(precision=0.8, margin=0.9), 0.85),
        (Constraints(recall=0.8, margin=0.9), 1.0),
    ],
    ids=["F1", "precision", "recall"],
)
def test_a_smoothed_threshold_varies_less_than_the_best_one(constraints, most):
    found = {"tuned": [], "smoothed": []}
    rng = np.random.default_rng(0)
    for _ in range(60):
        positive = rng.random(120) < 0.3
        samples = ScoredSamples(2.0 * positive + rng.normal(size=120), positive)
        found["tuned"].append(constraints.tuned_threshold(samples))
        found["smoothed"].append(constraints.smoothed_threshold(samples))
    assert np.std(found["smoothed"]) < most * np.std(found["tuned"])
    assert abs(np.mean(found["smoothed"]) - np.mean(found["tuned"])) < 0.3


def test_a_smoothed_threshold_is_a_candidate_and_the_best_one_where_all_agree():
    candidates = ThresholdCurve(ScoredSamples(SCORES, POSITIVE)).thresholds
    for constraints in (Constraints(), Constraints(precision=0.7, margin=0.6)):
        assert constraints.smoothed_threshold(ScoredSamples(SCORES, POSITIVE)) in candidates
    # Two separated scores, of which every bootstrap sample that has both gives the same threshold.
    apart = ScoredSamples(np.repeat([-1.0, 1.0], 20), np.repeat([False, True], 20))
    assert Constraints().smoothed_threshold(apart) == Constraints().tuned_threshold(apart) == 0.0
    # No bootstrap sample of two samples has both classes unless it draws each of them once.
    pair = ScoredSamples(np.array([-1.0, 1.0]), np.array([False, True]), np.array([2.0, 1.0]))
    assert Constraints().smoothed_threshold(pair) == 0.0


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 0.99), st.booleans())
def test_a_share_of_positive_samples_changes_precision_as_bayes_rule_does(share, weighted):
    weight = np.arange(1.0, 9.0) if weighted else None
    samples = ScoredSamples(SCORES, POSITIVE, weight)
    before = ThresholdCurve(samples)
    after = ThresholdCurve(with_share(samples, share))
    assert_allclose(after.recall, before.recall)
    assert_allclose(after.false_positive_rate, before.false_positive_rate)
    hits, false = share * before.recall, (1.0 - share) * before.false_positive_rate
    assert_allclose(after.precision[:-1], (hits / (hits + false + 1e-300))[:-1])
    total = len(SCORES) if weight is None else weight.sum()
    assert with_share(samples, share).weight.sum() == pytest.approx(total)
    assert with_share(samples, None) is samples
