"""Finite-sample guarantees for constrained thresholds.

The calibration samples are used neither in training nor to choose the classifier, so that they and
new samples come from one distribution.

Recall. Let v_k be the k-th smallest of the n scores of positive calibration samples. The fraction
of positive samples with scores below it has the distribution Beta(k, n - k + 1) of the k-th
smallest of n uniform numbers. Accepting scores of at least v_k therefore has recall r with
probability BetaCDF(1 - r; k, n - k + 1). The threshold uses the largest k for which this is at
least the confidence; lower thresholds meet the bound too. The false positive rate is treated in
the same way, with the largest scores of negative samples.

Precision. At a threshold that is fixed beforehand, each of the n accepted calibration samples is
positive with a probability equal to the precision. The hypothesis that the precision is less than p
has the p-value P(Bin(n, p) >= number of accepted positive samples). Several thresholds, quantiles
of the scores of unlabeled samples, are tested with Holm's correction, so that the guarantee holds
for all that pass simultaneously.

Without unlabeled samples, the thresholds are the calibration scores at fixed ranks. Given such a
score, the samples above it are still independent and the same test holds. But the tested precision
is then random too, which Holm's correction does not allow for, so Bonferroni's is used.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, binom

from widemargin._base.options import preference_options
from widemargin.semisupervised.constraints import (
    Constraints,
    ScoredSamples,
    ThresholdCurve,
    midpoints,
)


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
    """

    guaranteed: bool
    confidence: float
    threshold: float
    achievable: dict[str, float]


def guaranteed_threshold(
    constraints: Constraints, confidence: float, samples: ScoredSamples, unlabeled: np.ndarray
) -> Guarantee:
    """Find the best threshold for which the constraints can be guaranteed.

    Parameters
    ----------
    constraints : Constraints
    confidence : float
    samples : ScoredSamples
        The calibration samples, without weights.
    unlabeled : ndarray
        Scores of unlabeled samples, from which thresholds are chosen; empty if there are none.
    """
    # The risk is divided among the bounds, so that they hold simultaneously.
    risk = (1.0 - confidence) / max(1, len(constraints.bounds))
    scores, positive, _ = samples
    candidates, lowest, highest = midpoints(np.unique(scores)), -np.inf, np.inf
    achievable = {}
    for name, bound in constraints.bounds.items():
        if name == "recall":
            # At most the fraction 1 - recall of the positive samples is rejected. The threshold is
            # just below the lowest score that must be accepted.
            rejected, rate = _lowest_threshold(-scores[positive], 1.0 - bound, risk)
            highest, achievable[name] = np.nextafter(-rejected, -np.inf), 1.0 - rate
        elif name == "false_positive_rate":
            lowest, achievable[name] = _lowest_threshold(scores[~positive], bound, risk)
        else:
            candidates, achievable[name] = _precise(samples, unlabeled, bound, risk)
    candidates = candidates[(candidates >= lowest) & (candidates <= highest)]
    guaranteed = bool(len(candidates))
    curve = ThresholdCurve(samples, candidates if guaranteed else None)
    # The bounds hold for all candidates, though not always on the calibration samples.
    objective = constraints.objective(curve)
    best = int(objective.argmax()) if guaranteed else constraints.best_index(curve)
    return Guarantee(guaranteed, confidence, float(curve.thresholds[best]), achievable)


def quantile_thresholds(unlabeled_scores: np.ndarray) -> np.ndarray:
    """Return thresholds that accept given fractions of the unlabeled samples."""
    distinct = np.unique(unlabeled_scores)
    quantiles = np.quantile(unlabeled_scores, 1.0 - _accepted_fractions(len(unlabeled_scores)))
    return np.unique(midpoints(distinct)[np.searchsorted(distinct, quantiles, side="right")])


def rank_thresholds(scores: np.ndarray) -> np.ndarray:
    """Return the scores above which there are given fractions of them."""
    n = len(scores)
    ranks = np.minimum(np.ceil(_accepted_fractions(n) * n).astype(int), n - 1)
    return np.sort(scores)[::-1][np.unique(ranks)]


def _accepted_fractions(n: int) -> np.ndarray:
    """Return fractions of accepted samples, denser for small ones, where precision is high."""
    return np.geomspace(0.5, 2.0 / max(4, n), preference_options.n_tested_thresholds)


def _lowest_threshold(scores: np.ndarray, rate: float, risk: float) -> tuple[float, float]:
    """Return the lowest threshold whose rate of higher scores is guaranteed, inf if there is none.

    The second value is the achievable rate.
    """
    descending, n = np.sort(scores)[::-1], len(scores)
    k = np.arange(1, n + 1)
    passed = np.flatnonzero(beta.cdf(rate, k, n - k + 1) >= 1.0 - risk)
    achievable = float(beta.ppf(1.0 - risk, 1, n))
    return (float(descending[passed[-1]]) if len(passed) else np.inf), achievable


def _precise(
    samples: ScoredSamples, unlabeled: np.ndarray, precision: float, risk: float
) -> tuple[np.ndarray, float]:
    """Return thresholds that have the precision, simultaneously, and the achievable precision.

    The correction for multiple tests is Holm's with unlabeled samples, else Bonferroni's.
    """
    holm = len(unlabeled) > 0
    tested = quantile_thresholds(unlabeled) if holm else rank_thresholds(samples.scores)
    accepted = samples.scores[np.newaxis] > tested[:, np.newaxis]
    n, hits = accepted.sum(axis=1), (accepted & samples.positive).sum(axis=1)
    p = np.where(n > 0, binom.sf(hits - 1, n, precision), 1.0)
    order = np.argsort(p, kind="stable")
    rejected = p[order] <= risk / (np.arange(len(p), 0, -1) if holm else len(p))
    passed = order[: len(p) if rejected.all() else int(rejected.argmin())]
    achievable = beta.ppf(risk / len(p), hits, n - hits + 1)
    return tested[np.sort(passed)], float(np.nan_to_num(achievable).max(initial=0.0))
