"""Finite-sample guarantees for constrained thresholds.

The calibration samples are drawn independently from the distribution of new samples, and are used
neither in training nor to choose the classifier. The scores are those of a fixed classifier. A
threshold is guaranteed at a confidence of 1 - a if the probability, over the draw of the
calibration samples, that it violates a bound is at most a.

Tests. At a fixed threshold, the number of positive samples among the n accepted ones is binomial,
given n, and its success probability is the precision. P(Bin(n, p) >= positives) is therefore a
p-value of the hypothesis that the precision is less than p. Those of recall and false positive rate
are P(Bin(positives, 1 - recall) <= rejected positives) and P(Bin(negatives, rate) <= accepted
negatives). A threshold passes if all p-values are at most a. Several bounds do not share the risk:
if a threshold violates some of them, it passes only if the test of the violated one does
(intersection-union test).

Recall or false positive rate alone. The rate is monotone in the threshold, so that all thresholds
that violate the bound pass only if the extreme one of them does, which has probability a. Every
threshold is tested at level a.

Fixed sequence. All thresholds are tested in descending order from a start, each at level a, up to
the first that does not pass. Let u be the first one that violates a bound. All thresholds before it
are valid, so that an invalid one is returned only if u passes, which has probability a. No
correction for the number of thresholds is needed. Since the accepted samples change only at scores
of calibration samples, it is sufficient to test once between neighboring scores.

The start must not depend on the labels of the calibration samples. It is the highest threshold with
nearly the best chance to pass, estimated by other samples, the reference. If precision is the only
bound, the start is a rank k: the k highest calibration scores are accepted, so that a start never
has too few samples to pass. Ranks are only tried where one more error is permitted than at the rank
before: if a rank passes, so do all higher ones down to the first that permits as many errors, and a
sequence from there contains its own. The rank with the best chance is the start.
Its chance is estimated in two ways: at the rates of the reference, and
by the Bayesian bootstrap, which draws calibration samples from it and so takes into account that
the number of positive samples varies. The start is a function of the reference and of the number of
calibration samples only. The start is then the random score of rank k + 1, and the argument
above still holds. Let B be the set of invalid thresholds, assume that scores have no ties, and
condition on the number of samples between the end points of B. At each end point the precision is
p, by continuity, so that the samples between two end points have the precision p too and the number
of positive ones above an end point is Bin(count, p). A rank is invalid if a threshold of B accepts
as many samples. If c samples are above an interval of B and d are in it, these are the ranks from c
to c + d: they are determined by the counts. The number of positive samples above an invalid rank r
is at most Bin(r, p), in the sense of stochastic order: above the end point the precision is p, and
below it, it is less. So all p-values of invalid ranks are valid given the
counts, and u is a fixed rank. Samples with equal scores are put in random order and tested one by
one; a threshold never separates them.

Given share of positive samples. If the labels were drawn by class, the precision on samples of
which a share s is positive is s t / (s t + (1 - s) f) with the recall t and the false positive rate
f. The test compares a lower bound of t with an upper bound of f (Clopper and Pearson), which divide
the level.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.stats import beta, binom, ks_2samp, nbinom

from widemargin._base.options import preference_options
from widemargin.semisupervised.constraints import Constraints, ScoredSamples, ThresholdCurve


@dataclass(frozen=True)
class Guarantee:
    """Finite-sample guarantee for a threshold.

    Attributes
    ----------
    guaranteed : bool
        Whether the constraints hold on new samples with the given confidence.
    confidence : float
        Probability over the draw of the calibration samples.
    threshold : float
        The best guaranteed threshold or, if there is none, the best one without a guarantee.
    achievable : dict of float
        The tightest bounds that can be guaranteed with these calibration samples, by name, each at
        a threshold of its own.
    more_samples : int or None
        Estimated number of additional calibration samples with which the constraints can be
        guaranteed with probability 1/2; 0 if they are guaranteed. None if no number up to 1,000
        times the present one is sufficient, or if the guarantee is withheld because unlabeled
        samples have another distribution: more samples of the same kind do not help then.
    shift_pvalue : float or None
        P-value of the hypothesis that calibration samples and unlabeled samples have the same
        distribution of scores. None if there are no unlabeled samples to compare with.
    reason : str
        Why nothing is guaranteed, and what to do; empty if the constraints are guaranteed.
    """

    guaranteed: bool
    confidence: float
    threshold: float
    achievable: dict[str, float]
    more_samples: int | None
    shift_pvalue: float | None = None
    reason: str = ""


def guaranteed_threshold(
    constraints: Constraints,
    confidence: float,
    samples: ScoredSamples,
    reference: ScoredSamples,
    positive_share: float | None = None,
) -> Guarantee:
    """Find the best threshold for which the constraints can be guaranteed.

    Parameters
    ----------
    constraints : Constraints
    confidence : float
    samples : ScoredSamples
        The calibration samples, without weights.
    reference : ScoredSamples
        Other samples, of both classes, that suggest where to start. The guarantee holds whatever
        they are; it is found more often if their scores are distributed like those of `samples`.
    positive_share : float, default=None
        Fraction of positive samples among new samples. If None, that of the calibration samples.
    """
    tests = _Tests(constraints.bounds, 1.0 - confidence, positive_share)
    ranked, suggested = _Ranked(samples), _Reference(reference, len(samples.scores))
    candidates = _passed_thresholds(tests, ranked, suggested)
    guaranteed = bool(len(candidates))
    curve = ThresholdCurve(samples, candidates if guaranteed else None)
    # The bounds hold for all candidates, though not always on the calibration samples.
    objective = constraints.objective(curve)
    best = int(objective.argmax()) if guaranteed else constraints.best_index(curve)
    achievable = {name: _achievable(name, tests, ranked, suggested) for name in tests.bounds}
    more = 0 if guaranteed else _more_samples(tests, samples, reference)
    return Guarantee(guaranteed, confidence, float(curve.thresholds[best]), achievable, more)


def guarantee_chance(
    constraints: Constraints,
    confidence: float,
    reference: ScoredSamples,
    n: int,
    positive_share: float | None = None,
) -> float:
    """Estimate the probability that the constraints can be guaranteed by n calibration samples.

    The scores and labels of the reference are taken for those of the calibration samples.
    """
    tests = _Tests(constraints.bounds, 1.0 - confidence, positive_share)
    return float(tests.chances(_Reference(reference, n))[1].max(initial=0.0))


def shift_pvalue(
    samples: ScoredSamples, unlabeled: np.ndarray, positive_share: float | None = None
) -> float | None:
    """Return a p-value of equal distributions of calibration scores and unlabeled scores.

    Without a share of positive samples, it is that of the two-sample Kolmogorov-Smirnov test. With
    one, the classes of the calibration samples are mixed in that proportion, and it is an upper
    bound by the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart for the three samples.
    """
    scores, positive, _ = samples
    if not len(unlabeled):
        return None
    if positive_share is None:
        return float(ks_2samp(scores, unlabeled).pvalue)
    groups = ((scores[positive], positive_share), (scores[~positive], 1.0 - positive_share))
    points = np.sort(np.concatenate([scores, unlabeled]))
    distance = _distribution(unlabeled, points)
    for group, share in groups:
        distance = distance - share * _distribution(group, points)
    # Each of the three empirical distributions is off by less than its weight times a number, for
    # which all three have the same probability of failure.
    width = 1.0 / np.sqrt(len(unlabeled)) + sum(
        share / np.sqrt(len(group)) for group, share in groups
    )
    return float(min(1.0, 6.0 * np.exp(-2.0 * (np.abs(distance).max() / width) ** 2)))


def _distribution(values: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the empirical distribution function of the values."""
    return np.searchsorted(np.sort(values), points, side="right") / len(values)


class _Ranked:
    """Calibration samples in descending order of scores; those with equal scores at random.

    Entry k of each array is about the k samples with the highest scores.
    """

    def __init__(self, samples: ScoredSamples) -> None:
        scores, positive, _ = samples
        n = len(scores)
        # A fixed seed: the order must not depend on the labels, but may be the same in every call.
        order = np.lexsort((np.random.default_rng(0).permutation(n), -scores))
        descending = scores[order]
        self.scores, self.n_positive = descending, int(positive.sum())
        self.accepted = np.arange(n + 1)
        self.hits = np.append(0, np.cumsum(positive[order]))
        below = np.nextafter(descending[-1], -np.inf)
        self.thresholds = np.append(descending, below)
        self.separates = np.append(True, np.append(descending[:-1] > descending[1:], True))


class _Reference:
    """Samples that suggest where to start, and calibration samples that they make likely.

    Parameters
    ----------
    samples : ScoredSamples
        Samples of both classes, independent of the calibration samples.
    n : int
        Number of calibration samples.
    """

    def __init__(self, samples: ScoredSamples, n: int) -> None:
        self.samples, self.n = samples, n
        order = np.argsort(-samples.scores, kind="stable")
        self.positive = samples.positive[order]
        # Entry k is the number of positive samples among the k highest scores.
        self.cumulative = np.append(0, np.cumsum(self.positive))

    @cached_property
    def _hits(self) -> np.ndarray:
        """Numbers of positive samples up to each rank, in random calibration samples by line.

        They are drawn by the Bayesian bootstrap: the probability of each sample of the reference is
        random, because the reference itself is a random sample.
        """
        rng = np.random.default_rng(0)
        draws = preference_options.resampled
        probability = rng.standard_exponential((draws, len(self.positive)))
        probability /= probability.sum(axis=1, keepdims=True)
        drawn = rng.multinomial(self.n, probability)
        positive = np.repeat(np.tile(self.positive, draws), drawn.ravel())
        hits = np.zeros((draws, self.n + 1), dtype=np.int32)
        np.cumsum(positive.reshape(draws, self.n), axis=1, out=hits[:, 1:])
        return hits

    def chance(self, ranks: np.ndarray, enough: np.ndarray) -> np.ndarray | None:
        """Estimate how probable more than `enough` positive samples are at each rank.

        It is None if there are very many samples, whose rates are known well without it.
        """
        if max(self.n, len(self.positive)) > preference_options.most_resampled:
            return None
        return (self._hits[:, ranks] > enough).mean(axis=0)


def _passed_thresholds(tests: "_Tests", ranked: _Ranked, reference: _Reference) -> np.ndarray:
    """Return thresholds, in ascending order, that are guaranteed simultaneously."""
    n = len(ranked.scores)
    passes = tests.passes(ranked.accepted, ranked.hits, ranked.n_positive, n - ranked.n_positive)
    if tests.needs_start:
        start = tests.start(reference, ranked.scores)
        passes[:start] = False
        failed = np.flatnonzero(~passes[start:])
        if len(failed):
            passes[start + failed[0] :] = False
    return ranked.thresholds[passes & ranked.separates][::-1]


def _achievable(name: str, tests: "_Tests", ranked: _Ranked, reference: _Reference) -> float:
    """Return the tightest bound of this name that can be guaranteed alone."""
    if name != "precision":
        n = ranked.n_positive if name == "recall" else len(ranked.scores) - ranked.n_positive
        rate = float(beta.ppf(1.0 - tests.risk, 1, n))
        return 1.0 - rate if name == "recall" else rate

    def passes(bound: float) -> bool:
        alone = _Tests({name: bound}, tests.risk, tests.share)
        return len(_passed_thresholds(alone, ranked, reference)) > 0

    # Each bound has a start of its own, so that a tighter one may pass by chance where the bound
    # itself does not: it is not achievable then.
    bound = tests.bounds["precision"]
    lowest, highest = (bound, 99) if passes(bound) else (0.0, int(np.ceil(100.0 * bound)) - 1)
    # The highest tenth that passes, then the highest hundredth from there to the next tenth.
    tenth = next((k for k in range(highest // 10, 0, -1) if passes(k / 10)), 0)
    hundredths = range(min(10 * tenth + 9, highest), 10 * tenth, -1)
    return max(lowest, next((k / 100 for k in hundredths if passes(k / 100)), tenth / 10))


def _more_samples(tests: "_Tests", samples: ScoredSamples, reference: ScoredSamples) -> int | None:
    """Return how many more calibration samples would pass with probability 1/2, or None."""
    n = len(samples.scores)
    samples = ScoredSamples(
        np.append(samples.scores, reference.scores), np.append(samples.positive, reference.positive)
    )
    for factor in np.geomspace(1.0, 1000.0, 61)[1:]:
        size = int(np.ceil(factor * n))
        if tests.power(_Reference(samples, size))[1].max(initial=0.0) >= 0.5:
            return size - n
    return None


class _Tests:
    """Tests of all bounds at one level."""

    def __init__(self, bounds: dict[str, float], risk: float, share: float | None) -> None:
        self.bounds, self.risk, self.share = bounds, risk, share
        self.needs_start = len(bounds) > 1 or "precision" in bounds

    def passes(
        self, accepted: np.ndarray, hits: np.ndarray, n_positive: int, n_negative: int
    ) -> np.ndarray:
        """Return which thresholds pass, by the numbers of samples that they accept."""
        false, result = accepted - hits, np.ones(len(accepted), dtype=bool)
        if "recall" in self.bounds:
            missed = 1.0 - self.bounds["recall"]
            result &= binom.cdf(n_positive - hits, n_positive, missed) <= self.risk
        if "false_positive_rate" in self.bounds:
            rate = self.bounds["false_positive_rate"]
            result &= binom.cdf(false, n_negative, rate) <= self.risk
        if "precision" in self.bounds:
            result &= self._precise(accepted, hits, n_positive, n_negative)
        return result

    def _precise(
        self, accepted: np.ndarray, hits: np.ndarray, n_positive: int, n_negative: int
    ) -> np.ndarray:
        precision = self.bounds["precision"]
        if self.share is None:
            return (accepted > 0) & (binom.sf(hits - 1, accepted, precision) <= self.risk)
        false = accepted - hits
        low = self.risk * preference_options.recall_risk
        recall = beta.ppf(low, hits, n_positive - hits + 1)
        rate = beta.ppf(1.0 - (self.risk - low), false + 1, n_negative - false)
        # The distributions are not defined where no positive or all negative samples are accepted.
        recall, rate = np.where(hits > 0, recall, 0.0), np.where(false < n_negative, rate, 1.0)
        weight = self.share * recall * (1.0 - precision)
        return (recall > 0.0) & (weight >= (1.0 - self.share) * rate * precision)

    @property
    def starts_at_rank(self) -> bool:
        """Whether the start is a rank instead of a threshold."""
        return list(self.bounds) == ["precision"] and self.share is None

    def start(self, reference: _Reference, descending: np.ndarray) -> int:
        """Return the rank to start at, which is fixed or that of a fixed threshold."""
        n = len(descending)
        ranks, power = self.chances(reference)
        if not len(ranks):
            return n + 1
        if self.starts_at_rank:
            return int(ranks[power.argmax()])
        best = float(power.max())
        # At most twice the smallest chance to fail, if that is small.
        tolerance = min(preference_options.power_tolerance, 1.01 - best)
        rank = int(ranks[(power >= best - tolerance).argmax()])
        size = len(reference.positive)
        position = min(size - 1, max(0, round(rank * size / n) - 1))
        threshold = np.nextafter(np.sort(reference.samples.scores)[::-1][position], -np.inf)
        return int((descending > threshold).sum())

    def chances(self, reference: _Reference) -> tuple[np.ndarray, np.ndarray]:
        """Return ranks, and their estimated chances to pass: the power, and that in resamples."""
        ranks, power = self.power(reference)
        if self.starts_at_rank and len(ranks):
            enough = binom.isf(self.risk, ranks, self.bounds["precision"])
            resampled = reference.chance(ranks, enough)
            if resampled is not None:
                power = power + preference_options.resampled_weight * (resampled - power)
        return ranks, power

    def _starts(self, n: int) -> np.ndarray:
        """Return ranks among n samples to start at.

        If the start is a rank, only those are useful from which on one more error is permitted: a
        sequence from there contains that of any rank up to the next one.
        """
        tried = preference_options.tried_starts
        ranks = np.union1d(np.rint(np.geomspace(1, n, tried)), [0])
        error_rate = 1.0 - self.bounds.get("precision", 0.0)
        if error_rate < 1.0 and self.share is None:
            most = n * error_rate
            errors = np.union1d(
                np.arange(min(most, tried)), np.rint(np.geomspace(1, most + 1, tried)) - 1
            )
            # P(Bin(r, q) <= e) is the probability that e + 1 errors take more than r samples. It
            # is 1 without errors: then the first rank is nan, and none is left.
            permitted = errors + 1 + nbinom.isf(self.risk, errors + 1, error_rate)
            fewest = permitted[0]
            ranks = permitted if self.starts_at_rank else np.append(fewest, ranks[ranks > fewest])
        return ranks[ranks <= n].astype(int)

    def power(self, reference: _Reference) -> tuple[np.ndarray, np.ndarray]:
        """Return ranks among calibration samples, and estimates of the chance that they pass."""
        n, cumulative = reference.n, reference.cumulative
        size, n_positive = len(reference.positive), int(cumulative[-1])
        ranks = self._starts(n)
        position = np.rint(ranks * size / n).astype(int)
        hits, false = cumulative[position] + 0.5, position - cumulative[position] + 0.5
        positives = max(1, round(n * n_positive / size))
        negatives = max(1, n - positives)
        recall, rate = hits / (n_positive + 1.0), false / (size - n_positive + 1.0)
        for known in (recall, rate):
            known[ranks == 0], known[ranks == n] = 0.0, 1.0
        power = np.ones(len(ranks))
        if "recall" in self.bounds:
            power = _power_below(1.0 - self.bounds["recall"], 1.0 - recall, positives, self.risk)
        if "false_positive_rate" in self.bounds:
            bound = self.bounds["false_positive_rate"]
            power = np.minimum(power, _power_below(bound, rate, negatives, self.risk))
        if "precision" in self.bounds and self.share is None:
            enough = binom.isf(self.risk, ranks, self.bounds["precision"])
            # The same threshold accepts more or fewer of other samples: a deeper rank counts too.
            deeper = np.minimum(size, position + np.sqrt(position).astype(int))
            rate = np.minimum(hits / (position + 1.0), (cumulative[deeper] + 0.5) / (deeper + 1.0))
            power = np.minimum(power, binom.sf(enough, ranks, rate))
        elif "precision" in self.bounds:
            # Whether it passes at the expected counts, and at counts that are an error worse.
            chances = []
            for errors in (0.0, 1.0):
                hits = np.rint(_shifted(positives, recall, -errors)).astype(int)
                false = np.rint(_shifted(negatives, rate, errors)).astype(int)
                chances.append(self._precise(hits + false, hits, positives, negatives))
            power = np.minimum(power, np.mean(chances, axis=0))
        return ranks, power


def _power_below(bound: float, rate: np.ndarray, n: int, risk: float) -> np.ndarray:
    """Return the probability that Bin(n, rate) is so small that the bound passes."""
    most = binom.ppf(risk, n, bound) - 1.0
    return binom.cdf(most, n, rate)


def _shifted(n: int, rate: np.ndarray, errors: float) -> np.ndarray:
    """Return the expected count plus a number of standard errors, from 0 to n."""
    return np.clip(n * rate + errors * np.sqrt(n * rate * (1.0 - rate)), 0.0, n)
