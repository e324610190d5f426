"""Thresholds on hand-made scores, where every measure can be counted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import fbeta_score, precision_score, recall_score

from widemargin.semisupervised.constraints import Curve, Demand, adjusted, between, refined

SCORES = np.array([-3.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 3.0])
TRUTH = np.array([False, False, True, False, False, True, False, True])


def chosen(demand, scores=SCORES, truth=TRUTH):
    curve = Curve(scores, truth)
    return curve.thresholds[refined(demand, curve)]


def at(threshold, scores=SCORES, truth=TRUTH):
    accepted = scores > threshold
    hits = (accepted & truth).sum()
    return hits / max(1, accepted.sum()), hits / truth.sum()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.integers(1, 3)), min_size=2),
    st.sampled_from([0.5, 1.0, 2.0]),
)
def test_a_curve_counts_as_scikit_learn_does(rows, beta):
    scores = np.array([row[0] for row in rows], dtype=float)
    truth = np.array([row[1] for row in rows])
    weight = np.array([row[2] for row in rows], dtype=float)
    truth[0], truth[1] = True, False
    curve = Curve(scores, truth, weight)
    for k, threshold in enumerate(curve.thresholds):
        options = {"sample_weight": weight, "zero_division": 0.0}
        accepted = scores > threshold
        assert_allclose(curve.precision[k], precision_score(truth, accepted, **options))
        assert_allclose(curve.recall[k], recall_score(truth, accepted, **options))
        expected = fbeta_score(truth, accepted, beta=beta, **options)
        assert_allclose(curve.f_score(beta)[k], expected)
        false = weight[accepted & ~truth].sum() / weight[~truth].sum()
        assert_allclose(curve.false_positive_rate[k], false)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, unique=True))
def test_thresholds_tell_all_scores_apart_and_no_equal_ones(scores):
    distinct = np.unique(scores)
    thresholds = between(distinct)
    accepted = [int((distinct > t).sum()) for t in thresholds]
    assert accepted == list(range(len(distinct), -1, -1))


def test_neighbouring_floats_are_told_apart():
    pair = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert_array_equal(pair > between(pair)[1], [False, True])


def test_refined_is_the_best_f_within_the_limits():
    assert at(chosen(Demand(precision=0.9))) == (1.0, 1 / 3)
    # (1/2, 1) and (2/3, 2/3) have the same F1: the lower threshold is taken.
    assert at(chosen(Demand(recall=0.6))) == (0.5, 1.0)
    assert at(chosen(Demand(precision=0.6))) == (2 / 3, 2 / 3)
    assert at(chosen(Demand(recall=0.9))) == (0.5, 1.0)
    assert at(chosen(Demand(precision=0.5, recall=0.9))) == (0.5, 1.0)


def test_refined_misses_by_least_what_cannot_be_had():
    precision, recall = at(chosen(Demand(precision=0.9, recall=0.9)))
    # (1/2, 1) misses by .4, (1, 1/3) by .57, (2/3, 2/3) by .23.
    assert (precision, recall) == (2 / 3, 2 / 3)


def test_false_positive_rate_and_costs_are_demands_too():
    strict, dear, cheap = (
        chosen(Demand(**demand)) < SCORES
        for demand in ({"false_positive_rate": 0.0}, {"cost_ratio": 100.0}, {"cost_ratio": 0.01})
    )
    assert not (strict & ~TRUTH).any()
    assert (strict.sum(), dear.sum(), cheap.sum()) == (1, 1, 6)


def test_a_missed_precision_is_reached_by_going_up_and_no_farther_than_needed():
    # At 0: 4 accepted, 2 positive.
    assert 0.5 < adjusted(Demand(precision=0.6), SCORES, TRUTH) < 1.0
    assert 2.0 < adjusted(Demand(precision=0.9), SCORES, TRUTH) < 3.0


def test_a_precision_out_of_reach_gives_the_lowest_threshold_of_the_greatest_one():
    truth = np.array([False, False, True, False, True, True, False, False])
    threshold = adjusted(Demand(precision=0.9), SCORES, truth)
    assert threshold == 0.0  # 2 of 4 there; going up gives 1/3, 0, 0


def test_a_missed_recall_is_reached_by_going_down_and_no_farther_than_needed():
    assert -2.0 < adjusted(Demand(recall=0.9), SCORES, TRUTH) < -1.0


@pytest.mark.parametrize(
    ("demand", "low", "high"),
    [
        # precision .5, recall 2/3 at 0: precision is raised to 2/3
        (Demand(), 0.5, 1.0),
        (Demand(precision=0.4), 0.5, 1.0),
        (Demand(recall=0.5), 0.5, 1.0),
    ],
)
def test_without_a_missed_demand_the_lesser_measure_is_brought_up(demand, low, high):
    assert low < adjusted(demand, SCORES, TRUTH) < high


def test_bringing_precision_up_never_breaks_a_recall_that_is_kept():
    # Precision 1/3 and recall 2/2 at 0; precision 1 would need a threshold with recall 1/2.
    scores = np.array([-1.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
    truth = np.array([False, True, False, False, False, False, True])
    threshold = adjusted(Demand(recall=0.9), scores, truth)
    assert at(threshold, scores, truth)[1] == 1.0


def test_bringing_recall_up_stops_at_the_highest_of_equal_thresholds():
    # Precision 1, recall 1/3 at 0. All recall would cost too much precision; 2/3 of it is had
    # with precision 2/3 at -2.5 and 1/2 at -4.
    scores = np.array([-9.0, -8.0, -7.0, -6.0, -5.0, -3.0, -2.0, -1.0, 1.0])
    truth = np.isin(scores, [-9.0, -2.0, 1.0])
    assert adjusted(Demand(precision=0.5), scores, truth) == -2.5


def test_equal_precision_and_recall_leave_the_threshold_at_zero():
    truth = np.array([False, False, True, False, False, True, True, False])
    truth[-1] = True
    truth[2], truth[0] = False, True  # 3 of 4 accepted are positive, 3 of 4 positive accepted
    assert at(0.0, SCORES, truth) == (0.75, 0.75)
    assert adjusted(Demand(), SCORES, truth) == 0.0
