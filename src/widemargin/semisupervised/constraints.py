"""What is asked of a two-class scorer, and the thresholds that give it.

A row is accepted if its score is greater than the threshold. Thresholds worth trying lie midway
between neighbouring scores, so that equal scores are never told apart, and beyond both ends.
"""

from dataclasses import dataclass

import numpy as np

NAMES = ("precision", "recall", "false_positive_rate", "beta", "cost_ratio")


@dataclass(frozen=True)
class Demand:
    """What accepted rows must be like, and what is made as good as that allows.

    Attributes
    ----------
    precision, recall : float or None
        The least share of accepted rows that are positive, of positive rows that are accepted.
    false_positive_rate : float or None
        The greatest share of negative rows that are accepted.
    beta : float
        What is maximised is F-beta, in which recall counts beta times as much as precision...
    cost_ratio : float or None
        ... unless this is given: then the cost of errors is minimised, where accepting a negative
        row costs this many times as much as leaving out a positive one.
    """

    precision: float | None = None
    recall: float | None = None
    false_positive_rate: float | None = None
    beta: float = 1.0
    cost_ratio: float | None = None

    @property
    def limits(self) -> dict[str, float]:
        """Least precision, least recall and greatest false positive rate, where they are given."""
        named = {name: getattr(self, name) for name in NAMES[:3]}
        return {name: value for name, value in named.items() if value is not None}

    def shortfall(self, curve: "Curve") -> np.ndarray:
        """By how much the worst limit is missed at every threshold; 0 where all are kept."""
        missed = np.zeros(len(curve.thresholds))
        for name, limit in self.limits.items():
            share = getattr(curve, name)
            miss = share - limit if name == "false_positive_rate" else limit - share
            np.maximum(missed, miss, out=missed)
        return missed

    def value(self, curve: "Curve") -> np.ndarray:
        """What is to be made as great as possible, at every threshold."""
        if self.cost_ratio is not None:
            return -(self.cost_ratio * curve.false_positives + curve.missed)
        return curve.f_score(self.beta)


class Curve:
    """Measures of a scorer at every threshold that makes a difference.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    truth : ndarray of bool of shape (n,)
        Which rows are positive; both kinds must be there.
    weight : ndarray of shape (n,), optional
    thresholds : ndarray, optional
        Others than those that make a difference.
    """

    def __init__(self, scores, truth, weight=None, thresholds=None):
        weight = np.ones(len(scores)) if weight is None else weight
        distinct, place = np.unique(scores, return_inverse=True)
        positive = np.bincount(place, weight * truth, len(distinct))
        negative = np.bincount(place, weight * ~truth, len(distinct))
        if thresholds is None:
            thresholds = between(distinct)
        above = np.searchsorted(distinct, thresholds, side="right")
        self.thresholds = np.asarray(thresholds, dtype=np.float64)
        self.true_positives = _sums_from(positive)[above]
        self.false_positives = _sums_from(negative)[above]
        self.missed = positive.sum() - self.true_positives
        accepted = self.true_positives + self.false_positives
        nothing = accepted == 0.0
        self.precision = self.true_positives / np.where(nothing, 1.0, accepted)
        self.recall = self.true_positives / positive.sum()
        self.false_positive_rate = self.false_positives / negative.sum()

    def f_score(self, beta: float = 1.0) -> np.ndarray:
        """F-beta at every threshold, 0 where nothing positive is accepted."""
        square = beta * beta
        hits = (1.0 + square) * self.true_positives
        whole = hits + square * self.missed + self.false_positives
        return hits / np.where(whole == 0.0, 1.0, whole)


def between(distinct: np.ndarray) -> np.ndarray:
    """Thresholds midway between scores in rising order, and half a step beyond both ends."""
    steps = np.diff(distinct)
    first, last = (steps[0], steps[-1]) if len(steps) else (1.0, 1.0)
    inner = distinct[:-1] + 0.5 * steps
    # Midway between neighbouring floats is one of them: the lower one, which is left out.
    inner = np.minimum(inner, np.nextafter(distinct[1:], -np.inf))
    lowest = min(distinct[0] - 0.5 * first, np.nextafter(distinct[0], -np.inf))
    return np.concatenate([[lowest], inner, [distinct[-1] + 0.5 * last]])


def refined(demand: Demand, curve: Curve) -> int:
    """Where the demand is met best: the greatest value within all limits.

    Where they cannot be kept, where the worst is missed by least. The lowest threshold of equals.
    """
    shortfall = demand.shortfall(curve)
    value = np.where(shortfall == shortfall.min(), demand.value(curve), -np.inf)
    return int(value.argmax())


def adjusted(demand: Demand, scores, truth, weight=None) -> float:
    """The threshold above which unlabelled rows are taken for positive in the next round.

    A limit on precision or recall that is missed at 0 is reached by going up or down from there.
    Once it is kept, or without one, precision and recall are brought together: the lesser one is
    raised to what the greater one is, so far as the limit stays kept. With other demands the
    refined threshold is taken.
    """
    limits = demand.limits
    if set(limits) - {"precision", "recall"} or len(limits) > 1 or demand.cost_ratio is not None:
        curve = Curve(scores, truth, weight)
        return float(curve.thresholds[refined(demand, curve)])
    thresholds = np.union1d(between(np.unique(scores)), [0.0])
    curve = Curve(scores, truth, weight, thresholds)
    zero = int(np.searchsorted(thresholds, 0.0))
    precision, recall = curve.precision[zero], curve.recall[zero]
    kept = demand.shortfall(curve) == 0.0
    if kept[zero]:
        if precision == recall:
            return 0.0
        wanted, least = ("precision", recall) if precision < recall else ("recall", precision)
    else:
        (wanted, least), kept = next(iter(limits.items())), np.ones(len(kept), dtype=bool)
    if wanted == "precision":
        places = zero + np.flatnonzero(kept[zero:])
        reached = places[curve.precision[places] >= least]
        best = places[curve.precision[places].argmax()]
        return float(thresholds[reached[0] if len(reached) else best])
    places = np.flatnonzero(kept[: zero + 1])
    reached = places[curve.recall[places] >= least]
    best = places[curve.recall[places] == curve.recall[places].max()]
    return float(thresholds[reached[-1] if len(reached) else best[-1]])


def _sums_from(counts: np.ndarray) -> np.ndarray:
    """The sum of all counts from each place on, and 0 after the last."""
    return np.append(np.cumsum(counts[::-1])[::-1], 0.0)
