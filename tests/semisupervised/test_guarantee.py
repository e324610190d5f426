"""Guarantees hold at the stated confidence, and are given where they can be."""

import warnings

import numpy as np
import pytest
from scipy.stats import beta, betabinom, binom, binomtest, norm

from widemargin._base.options import preference_options
from widemargin.semisupervised.constraints import Constraints, ScoredSamples
from widemargin.semisupervised.guarantee import (
    _passed_thresholds,
    _Ranked,
    _Reference,
    _Tests,
    guarantee_chance,
    guaranteed_threshold,
    shift_pvalue,
)

CONFIDENCE = 0.9


class Problem:
    """Scores of two Gaussians of a share, a distance and a size that vary; and exact metrics.

    With outliers, a hundredth of all scores are far above the others whatever the label, so that
    the precision is not monotone. With ties, scores are rounded.
    """

    def __init__(self, seed, kind="plain"):
        self.rng = np.random.default_rng(seed)
        self.n, self.share = int(self.rng.integers(60, 1500)), self.rng.uniform(0.05, 0.5)
        self.distance, self.spread = self.rng.uniform(0.5, 4.0), self.rng.uniform(0.5, 2.0)
        self.outliers = 0.01 if kind == "outliers" else 0.0
        self.step = 0.5 if kind == "ties" else None

    def draw(self, n=None, share=None):
        n, rng = n or self.n, self.rng
        positive = rng.random(n) < (self.share if share is None else share)
        positive[:2] = True, False
        scores = self.spread**positive * rng.normal(size=n) + self.distance * positive
        scores = np.where(rng.random(n) < self.outliers, 9.0 + rng.normal(size=n), scores)
        if self.step:
            scores = self.step * np.round(scores / self.step)
        return ScoredSamples(scores, positive)

    def metrics(self, threshold):
        if self.step:  # the next multiple is the first that is accepted
            threshold = self.step * (np.floor(threshold / self.step + 1e-9) + 0.5)
        rates = [
            (1.0 - self.outliers) * norm.sf(threshold, *gaussian)
            + self.outliers * norm.sf(threshold, 9.0)
            for gaussian in ((self.distance, self.spread), (0.0, 1.0))
        ]
        hits = self.share * rates[0]
        precision = hits / max(hits + (1.0 - self.share) * rates[1], 1e-300)
        return {"precision": precision, "recall": rates[0], "false_positive_rate": rates[1]}

    def meets(self, constraints, threshold):
        found = self.metrics(threshold)
        return all(
            found[name] <= bound if name == "false_positive_rate" else found[name] >= bound
            for name, bound in constraints.bounds.items()
        )


def samples_of(scores, positive):
    return ScoredSamples(np.asarray(scores, dtype=float), np.asarray(positive))


@pytest.mark.parametrize(
    "kind", ["plain", pytest.param("outliers", marks=pytest.mark.slow), "ties"]
)
@pytest.mark.parametrize(
    "constraints",
    [
        Constraints(precision=0.7),
        Constraints(precision=0.9),
        Constraints(recall=0.8),
        Constraints(false_positive_rate=0.1),
        Constraints(precision=0.6, recall=0.3),
        Constraints(precision=0.6, recall=0.3, false_positive_rate=0.2),
    ],
    ids=lambda constraints: ",".join(constraints.bounds),
)
def test_guarantees_hold_at_the_stated_rate(constraints, kind):
    count = held = 0
    for seed in range(120):
        problem = Problem(seed, kind)
        samples, reference = problem.draw(), problem.draw()
        found = guaranteed_threshold(constraints, CONFIDENCE, samples, reference)
        if found.guaranteed:
            count += 1
            held += problem.meets(constraints, found.threshold)
    assert count >= 25
    # That the rate is at least the confidence is not rejected at a level of one in a thousand.
    assert binomtest(held, count, CONFIDENCE, alternative="less").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "ties"])
def test_invalid_thresholds_pass_at_most_at_the_nominal_rate_where_none_is_valid(kind):
    """The hardest case: the precision is the same, slightly too small, at every threshold."""
    rng = np.random.default_rng(0)
    passed, draws = 0, 400
    for _ in range(draws):
        positive = rng.random(2 * 150) < 0.69
        scores = rng.integers(5, size=300) if kind == "ties" else rng.normal(size=300)
        first, second = slice(150), slice(150, None)
        found = guaranteed_threshold(
            Constraints(precision=0.7),
            CONFIDENCE,
            samples_of(scores[first], positive[first]),
            samples_of(scores[second], positive[second]),
        )
        passed += found.guaranteed
    assert passed > 0
    assert binomtest(passed, draws, 1 - CONFIDENCE, alternative="greater").pvalue > 1e-3


@pytest.mark.slow
def test_labels_drawn_by_class_give_valid_guarantees_with_the_true_share_only():
    constraints = Constraints(precision=0.7)
    counts = {None: [0, 0], "true": [0, 0]}
    for seed in range(200):
        problem = Problem(seed)
        samples, reference = problem.draw(share=0.5), problem.draw(share=0.5)
        for share, count in counts.items():
            known = None if share is None else problem.share
            found = guaranteed_threshold(constraints, CONFIDENCE, samples, reference, known)
            count[0] += found.guaranteed
            count[1] += found.guaranteed and problem.meets(constraints, found.threshold)
    assert counts[None][1] < 0.7 * counts[None][0]
    given, held = counts["true"]
    assert given >= 60
    assert binomtest(held, given, CONFIDENCE, alternative="less").pvalue > 1e-3


def test_a_nearly_perfect_scorer_needs_only_the_samples_that_one_test_needs():
    """At precision 0.9 and confidence 0.95, 29 accepted samples without an error are enough."""
    rng = np.random.default_rng(0)
    given = 0
    for _ in range(60):
        positive = rng.random(600) < 0.13
        scores = 6.0 * positive + rng.normal(size=600)
        found = guaranteed_threshold(
            Constraints(precision=0.9),
            0.95,
            samples_of(scores[:300], positive[:300]),
            samples_of(scores[300:], positive[300:]),
        )
        given += found.guaranteed
    assert given >= 54


@pytest.mark.parametrize(("share", "distance"), [(0.3, 2.5), (0.07, 3.5)])
def test_the_start_is_nearly_as_good_as_the_best_one_known_beforehand(share, distance):
    """No fixed sequence with one start passes more often than the best rank by the true scores."""
    rng = np.random.default_rng(0)
    draws, n, bound = 120, 300, 0.85
    passed = np.zeros(n + 1)
    found = 0
    for _ in range(draws):
        positive = rng.random((2, n)) < share
        scores = distance * positive + rng.normal(size=(2, n))
        order = np.argsort(-scores[0])
        hits = np.append(0, np.cumsum(positive[0, order]))
        passed += binom.sf(hits - 1, np.arange(n + 1), bound) <= 1 - CONFIDENCE
        tests = _Tests({"precision": bound}, 1 - CONFIDENCE, None)
        samples = [samples_of(*both) for both in zip(scores, positive, strict=True)]
        reference = _Reference(samples[1], n)
        found += len(_passed_thresholds(tests, _Ranked(samples[0]), reference)) > 0
    assert 0.3 * draws < passed[1:].max() < 0.99 * draws
    assert found >= 0.93 * passed[1:].max()


def test_a_start_at_a_rank_depends_on_no_calibration_sample_but_on_their_number():
    """Otherwise the tests from there on would not have the stated level."""
    rng = np.random.default_rng(0)
    positive = rng.random(300) < 0.3
    reference = samples_of(3.0 * positive + rng.normal(size=300), positive)
    tests = _Tests({"precision": 0.9}, 1 - CONFIDENCE, None)
    starts = {
        tests.start(_Reference(reference, 200), np.sort(scores)[::-1])
        for scores in (rng.normal(size=200), rng.random(200), np.zeros(200))
    }
    assert len(starts) == 1
    assert starts.pop() >= np.ceil(np.log(1 - CONFIDENCE) / np.log(0.9))


@pytest.mark.parametrize(("precision", "risk"), [(0.9, 0.1), (0.75, 0.05), (0.99, 0.1)])
def test_starts_are_the_ranks_from_which_on_one_more_error_is_permitted(precision, risk):
    """A sequence from any other rank is contained in that from the nearest of them above it."""
    n = 300
    ranks = np.arange(1, n + 1)
    errors = np.arange(n + 1)[:, np.newaxis]
    permitted = (binom.sf(ranks - errors - 1, ranks, precision) <= risk).sum(axis=0)
    reference = samples_of(np.arange(100.0), np.arange(100) >= 20)
    tried = _Tests({"precision": precision}, risk, None).power(_Reference(reference, n))[0]
    assert tried.tolist() == ranks[np.diff(permitted, prepend=0) > 0].tolist()


def test_resampled_chances_are_those_of_the_beta_binomial_distribution(monkeypatch):
    """So many of all n samples drawn by the Bayesian bootstrap are positive."""
    monkeypatch.setattr(preference_options, "resampled", 4000)
    rng = np.random.default_rng(0)
    samples, enough = samples_of(rng.normal(size=40), np.arange(40) < 30), np.arange(40, 60)
    found = _Reference(samples, 60).chance(np.full(20, 60), enough)
    assert found == pytest.approx(betabinom.sf(enough, 60, 30, 10), abs=0.04)


def test_resampling_is_left_out_where_it_would_take_much_memory(monkeypatch):
    rng = np.random.default_rng(0)
    samples = samples_of(rng.normal(size=100), rng.random(100) < 0.7)
    ranks = np.arange(1, 101)
    assert _Reference(samples, 100).chance(ranks, ranks) is not None
    monkeypatch.setattr(preference_options, "most_resampled", 99)
    assert _Reference(samples, 100).chance(ranks, ranks) is None
    found = guaranteed_threshold(Constraints(precision=0.5), CONFIDENCE, samples, samples)
    assert found.guaranteed


@pytest.mark.parametrize("bounds", [{"precision": 0.9}, {"recall": 0.9}], ids=str)
def test_the_estimated_chance_of_a_guarantee_is_close_to_how_often_it_is_given(bounds):
    constraints, chances, given = Constraints(**bounds), [], []
    for seed in range(60):
        problem = Problem(seed)
        problem.n, problem.share, problem.distance, problem.spread = 160, 0.25, 2.9, 1.0
        samples, reference = problem.draw(), problem.draw()
        chances.append(guarantee_chance(constraints, CONFIDENCE, reference, 160))
        found = guaranteed_threshold(constraints, CONFIDENCE, samples, reference)
        given.append(found.guaranteed)
    assert np.mean(given) > 0.1
    assert abs(np.mean(chances) - np.mean(given)) < 0.2


def test_all_samples_can_be_accepted():
    rng = np.random.default_rng(0)
    samples = samples_of(rng.normal(size=400), rng.random(400) < 0.9)
    found = guaranteed_threshold(Constraints(precision=0.8), CONFIDENCE, samples, samples)
    assert (samples.scores > found.threshold).all()


def test_joint_bounds_are_each_tested_at_the_whole_level():
    scores = np.arange(200.0)
    samples = samples_of(scores, scores >= 100)
    # No positive sample may be missed: 44 of them allow for a recall of 0.95 at the whole level.
    size = int(np.ceil(np.log(1 - CONFIDENCE) / np.log(0.95)))
    few = samples_of(scores[100 - size : 100 + size], scores[100 - size : 100 + size] >= 100)
    joint = Constraints(precision=0.7, recall=0.95)
    assert guaranteed_threshold(joint, CONFIDENCE, few, samples).guaranteed
    fewer = samples_of(few.scores[1:-1], few.positive[1:-1])
    assert not guaranteed_threshold(joint, CONFIDENCE, fewer, samples).guaranteed


def test_recall_is_guaranteed_by_the_largest_rank_that_the_beta_distribution_allows():
    samples = samples_of(np.arange(100.0), np.arange(100) % 2 == 1)
    # False positives cost so much that the highest threshold allowed is the best one.
    constraints = Constraints(recall=0.8, cost_ratio=1e6)
    found = guaranteed_threshold(constraints, CONFIDENCE, samples, samples)
    k = 1 + int((samples.scores[samples.positive] <= found.threshold).sum())
    assert k > 2
    assert beta.cdf(0.2, k, 50 - k + 1) >= CONFIDENCE > beta.cdf(0.2, k + 1, 50 - k)
    assert found.achievable["recall"] == pytest.approx(1 - beta.ppf(CONFIDENCE, 1, 50))


@pytest.mark.parametrize("name", ["recall", "false_positive_rate", "precision"])
def test_what_is_achievable_is_guaranteed_and_a_tighter_bound_is_not(name):
    rng = np.random.default_rng(0)
    positive = rng.random(400) < 0.5
    samples = samples_of(2.0 * positive + rng.normal(size=400), positive)
    other = samples_of(2.0 * positive + rng.normal(size=400), positive)
    tight = 0.001 if name == "false_positive_rate" else 0.999
    found = guaranteed_threshold(Constraints(**{name: tight}), CONFIDENCE, samples, other)
    assert not found.guaranteed
    sign = 1 if name == "false_positive_rate" else -1
    for offset, guaranteed in ((1e-9, True), (-0.011, False)):
        bound = found.achievable[name] + sign * offset
        if 0 < bound < 1:
            again = guaranteed_threshold(Constraints(**{name: bound}), CONFIDENCE, samples, other)
            assert again.guaranteed == guaranteed


@pytest.mark.parametrize("bound", [0.7, 0.75, 0.8, 0.85, 0.9])
def test_no_tighter_bound_is_achievable_where_the_bound_is_not_guaranteed(bound):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        positive = rng.random(300) < 0.3
        scores = 2.2 * positive + rng.normal(size=300)
        halves = [samples_of(scores[h], positive[h]) for h in (slice(150), slice(150, None))]
        found = guaranteed_threshold(Constraints(precision=bound), CONFIDENCE, *halves)
        assert (found.achievable["precision"] >= bound) == found.guaranteed


@pytest.mark.parametrize("bounds", [{"precision": 0.9}, {"recall": 0.9}], ids=str)
def test_the_additional_samples_reported_are_enough_in_about_half_of_the_draws(bounds):
    rng = np.random.default_rng(1)

    def draw(n):
        positive = rng.random(n) < 0.2
        positive[:2] = True, False
        return samples_of(3.0 * positive + rng.normal(size=n), positive)

    reference = draw(2000)
    small = [
        guaranteed_threshold(Constraints(**bounds), 0.95, draw(60), reference) for _ in "x" * 9
    ]
    more = np.median([found.more_samples for found in small])
    passed = [
        guaranteed_threshold(
            Constraints(**bounds), 0.95, draw(60 + int(more)), draw(400)
        ).guaranteed
        for _ in range(40)
    ]
    assert 0.25 <= np.mean(passed) <= 0.95


def test_no_number_of_samples_is_reported_where_none_is_enough():
    rng = np.random.default_rng(0)
    samples = samples_of(rng.normal(size=400), rng.random(400) < 0.5)
    found = guaranteed_threshold(Constraints(precision=0.95), CONFIDENCE, samples, samples)
    assert not found.guaranteed
    assert found.more_samples is None
    assert 0.3 < found.achievable["precision"] < 0.6
    perfect = guaranteed_threshold(Constraints(precision=1.0), CONFIDENCE, samples, samples)
    assert not perfect.guaranteed


def test_equal_scores_are_accepted_or_left_out_together():
    samples = samples_of(np.repeat([0.0, 1.0, 2.0], 50), np.tile([True, False], 75))
    found = guaranteed_threshold(Constraints(recall=0.5), CONFIDENCE, samples, samples)
    assert found.guaranteed
    assert int((samples.scores > found.threshold).sum()) in (50, 100, 150)
    found = guaranteed_threshold(Constraints(recall=0.9), CONFIDENCE, samples, samples)
    assert found.threshold < 0.0


def test_a_precision_threshold_passes_the_binomial_test():
    rng = np.random.default_rng(3)
    positive = rng.random(500) < 0.4
    samples = samples_of(2.0 * positive + rng.normal(size=500), positive)
    found = guaranteed_threshold(Constraints(precision=0.75), CONFIDENCE, samples, samples)
    accepted = samples.scores > found.threshold
    hits = int(positive[accepted].sum())
    assert binom.sf(hits - 1, accepted.sum(), 0.75) <= 1 - CONFIDENCE


def test_a_shift_between_calibration_and_unlabeled_samples_is_found_without_false_alarms():
    alarms = {"same": 0, "balanced": 0, "balanced, known": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(100):
            problem = Problem(seed)
            problem.n, problem.share, problem.distance = 400, 0.1, 3.0
            unlabeled = problem.draw(2000).scores
            same, balanced = problem.draw(), problem.draw(share=0.5)
            alarms["same"] += shift_pvalue(same, unlabeled) < 1e-3
            alarms["balanced"] += shift_pvalue(balanced, unlabeled) < 1e-3
            alarms["balanced, known"] += shift_pvalue(balanced, unlabeled, 0.1) < 1e-3
    assert alarms["same"] <= 1
    assert alarms["balanced"] >= 95
    assert alarms["balanced, known"] <= 1
    assert shift_pvalue(balanced, unlabeled, 0.9) < 1e-3
    assert shift_pvalue(balanced, np.empty(0)) is None
