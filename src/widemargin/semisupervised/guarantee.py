"""What can be promised of a threshold on new rows, with a confidence.

The rows that certify have been seen neither in training nor when the scorer was chosen, so that
they and new rows come from one distribution.

Recall. Let v_k be the k-th smallest of the n scores of positive rows. The share of positive rows
below it is distributed as the k-th smallest of n uniform numbers, Beta(k, n - k + 1): accepting
what lies at or above v_k keeps recall r with probability BetaCDF(1 - r; k, n - k + 1). The largest
k for which that is the confidence is taken; any lower threshold keeps the promise too. The same
holds for the false positive rate and the largest scores of negative rows.

Precision. At a threshold fixed beforehand, of the n certifying rows it accepts each is positive
with a probability that is the precision: that it is less than p is rejected at the level
P(Bin(n, p) >= number of positive ones). Several thresholds are tested, taken from the scores of
unlabelled rows, and Holm's correction makes the promise hold for all that pass at once.

Where there are no unlabelled rows, the thresholds are the scores of the certifying rows at fixed
ranks. Given such a score, the rows above it are still independent and the same test holds; but
which precision is asked about is then a matter of chance too, which Holm's correction does not
foresee: Bonferroni's is taken.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import beta, binom

from widemargin.semisupervised.constraints import Curve, Demand, between, refined

N_TESTED = 20


@dataclass(frozen=True)
class Promise:
    """What a threshold keeps on new rows.

    Attributes
    ----------
    kept : bool
        Whether the demand holds on new rows with the confidence.
    confidence : float
    threshold : float
        Where it does, or the best effort.
    possible : dict of float
        What could have been promised in place of each limit, by the same rows.
    """

    kept: bool
    confidence: float
    threshold: float
    possible: dict[str, float]


def promise(demand: Demand, confidence, scores, truth, others) -> Promise:
    """The best threshold among those of which the demand can be promised.

    Parameters
    ----------
    demand : Demand
    confidence : float
    scores : ndarray of shape (n,)
        Of the rows that certify.
    truth : ndarray of bool of shape (n,)
    others : ndarray or None
        Scores of rows without a label, from which thresholds are taken; None where there are none.
    """
    # Each limit is promised with its share of the risk, so that all of them hold together.
    risk = (1.0 - confidence) / max(1, len(demand.limits))
    tested = scores_at_ranks(scores) if others is None else thresholds_to_test(others)
    lowest, highest = -np.inf, np.inf
    certain = np.ones(len(tested), dtype=bool)
    possible = {}
    for name, limit in demand.limits.items():
        if name == "recall":
            highest, possible[name] = _highest_for_recall(scores[truth], limit, risk)
        elif name == "false_positive_rate":
            lowest, possible[name] = _lowest_for_false_positives(scores[~truth], limit, risk)
        else:
            certain, possible[name] = _certain_of_precision(
                scores, truth, tested, limit, risk, stepwise=others is not None
            )
    candidates = tested[certain] if "precision" in demand.limits else between(np.unique(scores))
    candidates = candidates[(candidates >= lowest) & (candidates <= highest)]
    kept = bool(len(candidates))
    curve = Curve(scores, truth, thresholds=candidates if kept else None)
    value = demand.value(curve)
    best = int(value.argmax()) if kept else refined(demand, curve)
    return Promise(kept, confidence, float(curve.thresholds[best]), possible)


def thresholds_to_test(others) -> np.ndarray:
    """Quantiles of scores, denser at the top: precision is asked of the rows accepted."""
    distinct = np.unique(others)
    quantiles = np.quantile(others, 1.0 - _shares(len(others)))
    return np.unique(between(distinct)[np.searchsorted(distinct, quantiles, side="right")])


def scores_at_ranks(scores) -> np.ndarray:
    """Scores below which there are fixed shares of them."""
    ranks = np.minimum(np.ceil(_shares(len(scores)) * len(scores)).astype(int), len(scores) - 1)
    return np.sort(scores)[::-1][np.unique(ranks)]


def _shares(n):
    """Shares of rows to accept."""
    return np.geomspace(0.5, 2.0 / max(4, n), N_TESTED)


def _highest_for_recall(positive, recall, risk):
    """The highest threshold that keeps the recall, -inf if none does, and what could be kept."""
    positive, n = np.sort(positive), len(positive)
    k = np.arange(1, n + 1)
    sure = beta.cdf(1.0 - recall, k, n - k + 1) >= 1.0 - risk
    possible = float(1.0 - beta.ppf(1.0 - risk, 1, n))
    if not sure.any():
        return -np.inf, possible
    return _below(positive[np.flatnonzero(sure)[-1]]), possible


def _lowest_for_false_positives(negative, rate, risk):
    """The lowest threshold that keeps the rate, inf if none does, and what could be kept."""
    falling, n = np.sort(negative)[::-1], len(negative)
    k = np.arange(1, n + 1)
    sure = beta.cdf(rate, k, n - k + 1) >= 1.0 - risk
    possible = float(beta.ppf(1.0 - risk, 1, n))
    # Scores equal to the threshold are not accepted.
    return (float(falling[np.flatnonzero(sure)[-1]]) if sure.any() else np.inf), possible


def _certain_of_precision(scores, truth, tested, precision, risk, stepwise):
    """Which thresholds keep the precision, all at once, and the best that one of them could.

    ``stepwise`` is Holm's correction, else it is Bonferroni's.
    """
    accepted = scores[np.newaxis] > tested[:, np.newaxis]
    n, hits = accepted.sum(axis=1), (accepted & truth).sum(axis=1)
    p = np.where(n > 0, binom.sf(hits - 1, n, precision), 1.0)
    order = np.argsort(p, kind="stable")
    passed = p[order] <= risk / (np.arange(len(p), 0, -1) if stepwise else len(p))
    certain = np.zeros(len(p), dtype=bool)
    certain[order[: len(p) if passed.all() else int(passed.argmin())]] = True
    possible = beta.ppf(risk / len(p), hits, n - hits + 1)
    return certain, float(np.nan_to_num(possible).max(initial=0.0))


def _below(score):
    return float(np.nextafter(score, -np.inf))
