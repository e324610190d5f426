"""Constraints on the precision and recall of a binary classifier, and thresholds that meet them.

A sample is accepted, that is predicted positive, if its score is greater than the threshold.
Candidate thresholds are the midpoints between neighboring distinct scores and one beyond each end,
so that samples with scores that are equal, or equal up to rounding errors, are never separated.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincinv

from widemargin._base.options import preference_options as options


@dataclass(frozen=True)
class Constraints:
    """Constraints on a binary classifier, and the objective that is maximized within them.

    Attributes
    ----------
    precision, recall : float or None
        Lower bounds.
    false_positive_rate : float or None
        Upper bound.
    beta : float
        The objective is F-beta, in which recall has beta times the weight of precision.
    cost_ratio : float or None
        If not None, the objective is the negative cost of the errors instead: a false positive
        costs this many times as much as a false negative.
    margin : float or None
        Level of the one-sided confidence limits of the rates that must meet the bounds. If None,
        the rates themselves must meet them.
    """

    precision: float | None = None
    recall: float | None = None
    false_positive_rate: float | None = None
    beta: float = 1.0
    cost_ratio: float | None = None
    margin: float | None = None

    @property
    def bounds(self) -> dict[str, float]:
        """Bounds on precision, recall and false positive rate that are not None, by name."""
        names = ("precision", "recall", "false_positive_rate")
        bounds = {name: getattr(self, name) for name in names}
        return {name: bound for name, bound in bounds.items() if bound is not None}

    def violation(self, curve: "ThresholdCurve") -> np.ndarray:
        """Return the largest violation of a bound at each threshold, 0 where all are met.

        With a margin, the confidence limits at this level must meet the bounds.
        """
        largest = np.zeros(len(curve.thresholds))
        for name, bound in self.bounds.items():
            rate = getattr(curve, name) if self.margin is None else curve.limit(name, self.margin)
            excess = rate - bound if name == "false_positive_rate" else bound - rate
            np.maximum(largest, excess, out=largest)
        return largest

    def margins(self, curve: "ThresholdCurve") -> dict[str, float]:
        """Return the levels up to which limits at the first threshold meet the bounds."""
        return {name: float(curve.level(name, bound)[0]) for name, bound in self.bounds.items()}

    def objective(self, curve: "ThresholdCurve") -> np.ndarray:
        """Return the objective at each threshold."""
        if self.cost_ratio is not None:
            return -(self.cost_ratio * curve.false_positives + curve.false_negatives)
        return curve.f_score(self.beta)

    def best_index(self, curve: "ThresholdCurve") -> int:
        """Return the index of the threshold with the greatest objective that meets the bounds.

        If none meets them, only thresholds with the smallest violation are considered. Of equally
        good thresholds the lowest is returned.
        """
        violation, objective = self.violation(curve), self.objective(curve)
        return int(np.where(violation == violation.min(), objective, -np.inf).argmax())

    def tuned_threshold(self, samples: "ScoredSamples") -> float:
        """Return the best threshold for the samples, as in `best_index`."""
        curve = ThresholdCurve(samples)
        return float(curve.thresholds[self.best_index(curve)])

    def smoothed_threshold(self, samples: "ScoredSamples") -> float:
        """Return the mean of the best thresholds of bootstrap samples.

        It is moved to the nearest candidate, so that equal scores are not separated. The best
        threshold of one sample jumps between distant values when a few samples change.
        """
        scores, positive, weight = samples
        rng, n = np.random.default_rng(0), len(scores)
        thresholds = []
        for _ in range(options.smoothed_over):
            count = np.bincount(rng.integers(n, size=n), minlength=n)
            drawn = count > 0
            if positive[drawn].any() and not positive[drawn].all():
                total = count[drawn] if weight is None else count[drawn] * weight[drawn]
                thresholds.append(
                    self.tuned_threshold(ScoredSamples(scores[drawn], positive[drawn], total))
                )
        if not thresholds:
            return self.tuned_threshold(samples)
        candidates = candidate_thresholds(np.unique(scores))
        return float(candidates[np.abs(candidates - np.mean(thresholds)).argmin()])

    def adjusted_threshold(self, samples: "ScoredSamples") -> float:
        """Return the threshold above which unlabeled samples get a positive pseudo-label.

        If the bound on precision (or recall) is not met at 0, the threshold is raised (lowered)
        until it is met. If it is met, or there is no bound, the smaller of precision and recall is
        raised to the value of the larger one, as far as the bound stays met. For other constraints
        it is the tuned threshold.
        """
        bounds = self.bounds
        simple = len(bounds) < 2 and "false_positive_rate" not in bounds
        if not simple or self.cost_ratio is not None:
            return self.tuned_threshold(samples)
        thresholds = np.union1d(candidate_thresholds(np.unique(samples.scores)), [0.0])
        curve = ThresholdCurve(samples, thresholds)
        zero = int(np.searchsorted(thresholds, 0.0))
        precision, recall = curve.precision[zero], curve.recall[zero]
        allowed = self.violation(curve) == 0.0
        if allowed[zero]:
            metric, target = ("precision", recall) if precision < recall else ("recall", precision)
        else:
            metric, target = next(iter(bounds.items()))
            allowed = np.ones_like(allowed)
        end, step = (len(thresholds), 1) if metric == "precision" else (-1, -1)
        candidates = np.arange(zero, end, step)
        candidates = candidates[allowed[candidates]]
        values = getattr(curve, metric)[candidates]
        nearest = int((values >= min(target, values.max())).argmax())
        return float(thresholds[candidates[nearest]])


class ScoredSamples(NamedTuple):
    """Labeled samples on which a threshold is chosen.

    Attributes
    ----------
    scores : ndarray of shape (n_samples,)
    positive : ndarray of bool of shape (n_samples,)
        Which samples are positive.
    weight : ndarray of shape (n_samples,) or None
        Sample weights.
    """

    scores: np.ndarray
    positive: np.ndarray
    weight: np.ndarray | None = None


def with_share(samples: ScoredSamples, share: float | None) -> ScoredSamples:
    """Return the samples with weights such that this fraction of the total weight is positive.

    The total weight of the samples does not change. If the share is None, nothing does.
    """
    if share is None:
        return samples
    scores, positive, weight = samples
    weight = np.ones(len(scores)) if weight is None else weight
    fraction = weight[positive].sum() / weight.sum()
    factor = np.where(positive, share / fraction, (1.0 - share) / (1.0 - fraction))
    return ScoredSamples(scores, positive, weight * factor)


class ThresholdCurve:
    """Metrics of a binary classifier as functions of the decision threshold.

    Parameters
    ----------
    samples : ScoredSamples
        Both classes must be present.
    thresholds : array-like, default=None
        Thresholds to evaluate. If None, the `candidate_thresholds` of the scores.
    """

    def __init__(self, samples: ScoredSamples, thresholds: ArrayLike | None = None) -> None:
        scores, positive, weight = samples
        weight = np.ones(len(scores)) if weight is None else weight
        distinct, group = np.unique(scores, return_inverse=True)
        positives = np.bincount(group, weight * positive, len(distinct))
        negatives = np.bincount(group, weight * ~positive, len(distinct))
        if thresholds is None:
            thresholds = candidate_thresholds(distinct)
        self.thresholds = np.asarray(thresholds, dtype=np.float64)
        above = np.searchsorted(distinct, self.thresholds, side="right")
        self.true_positives = _reverse_cumsum(positives)[above]
        self.false_positives = _reverse_cumsum(negatives)[above]
        self.false_negatives = positives.sum() - self.true_positives
        accepted = self.true_positives + self.false_positives
        self.negatives = negatives.sum()
        self.precision = self.true_positives / np.where(accepted == 0.0, 1.0, accepted)
        self.recall = self.true_positives / positives.sum()
        self.false_positive_rate = self.false_positives / negatives.sum()

    def limit(self, name: str, level: float) -> np.ndarray:
        """Return one-sided exact confidence limits of a rate, upper ones of false positive rates.

        They are those of Clopper and Pearson for a threshold that is fixed beforehand.
        """
        good, bad = self._counts(name)
        limit = betaincinv(np.where(good > 0.0, good, 1.0), bad + 1.0, 1.0 - level)
        limit = np.where(good > 0.0, limit, 0.0)
        return 1.0 - limit if name == "false_positive_rate" else limit

    def level(self, name: str, bound: float) -> np.ndarray:
        """Return the levels up to which the confidence limits of a rate meet a bound."""
        good, bad = self._counts(name)
        bound = 1.0 - bound if name == "false_positive_rate" else bound
        level = 1.0 - betainc(np.where(good > 0.0, good, 1.0), bad + 1.0, bound)
        # Every limit meets a bound of 0, that of a rate without good samples too.
        return np.where(good > 0.0, level, float(bound <= 0.0))

    def _counts(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return how many of the samples that a rate is about are good and bad."""
        if name == "false_positive_rate":
            return np.maximum(self.negatives - self.false_positives, 0.0), self.false_positives
        bad = self.false_positives if name == "precision" else self.false_negatives
        return self.true_positives, bad

    def f_score(self, beta: float = 1.0) -> np.ndarray:
        """Return F-beta at each threshold, 0 where it is undefined."""
        square = beta * beta
        numerator = (1.0 + square) * self.true_positives
        denominator = numerator + square * self.false_negatives + self.false_positives
        return numerator / np.where(denominator == 0.0, 1.0, denominator)


def candidate_thresholds(distinct: np.ndarray) -> np.ndarray:
    """Return the `midpoints` of ascending scores that differ by more than rounding errors.

    Support vectors on the margin have equal scores, in any order by rounding.
    """
    apart = np.diff(distinct) > options.score_rounding * np.abs(distinct).max()
    return midpoints(distinct)[np.concatenate([[True], apart, [True]])]


def midpoints(distinct: np.ndarray) -> np.ndarray:
    """Return the midpoints of ascending scores, and a threshold beyond each end."""
    steps = np.diff(distinct)
    first, last = (steps[0], steps[-1]) if len(steps) else (1.0, 1.0)
    inner = distinct[:-1] + 0.5 * steps
    # The midpoint of adjacent floats is one of them. It must be the lower one, which is rejected.
    inner = np.minimum(inner, np.nextafter(distinct[1:], -np.inf))
    lowest = min(distinct[0] - 0.5 * first, np.nextafter(distinct[0], -np.inf))
    return np.concatenate([[lowest], inner, [distinct[-1] + 0.5 * last]])


def _reverse_cumsum(counts: np.ndarray) -> np.ndarray:
    """Return the sum of the counts from each index on, and 0 after the last."""
    return np.append(np.cumsum(counts[::-1])[::-1], 0.0)
