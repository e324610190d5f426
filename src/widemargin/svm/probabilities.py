"""Probabilities of kernel classifiers, from decision values of samples that were not trained on.

The log odds of a binary subproblem are its decision value times a slope, one slope below 0 and one
above: both sides of the decision boundary are calibrated, and at the boundary the odds are even, as
`predict` has it. (Platt's sigmoid has one slope and an offset, which moves the boundary.) The
probabilities of pairs of classes are coupled by the second method of Wu, Lin and Weng (2004). Where
the most probable class is another than the predicted one, such as after a tie of votes, the nearest
probabilities for which it is the same are returned.
"""

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from widemargin._base.docs import shared_docs
from widemargin._base.options import probability_options as options
from widemargin._base.sklearn_compat import safe_split
from widemargin.svm.reduction import one_vs_rest


def _has_probability(estimator: Any) -> bool:
    if not estimator.probability:
        raise AttributeError(
            "predict_proba is only available with probability=True. Set it and fit again."
        )
    return True


@shared_docs
class ProbabilityMixin:
    """Probabilities of a `KernelClassifier` that has the parameter ``probability``."""

    @available_if(_has_probability)
    def predict_proba(self: Any, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities.

        The most probable class is always the one that `predict` returns.

        Parameters
        ----------
        <<X_kernel>>

        Returns
        -------
        <<returns_probabilities>>
        """
        check_is_fitted(self)
        if self.probability_slopes_ is None:
            raise AttributeError(
                f"This {type(self).__name__} was fitted with probability=False. Fit it again."
            )
        values = self._decision_values(X)
        probabilities = class_probabilities(
            values, self.probability_slopes_, len(self.classes_), self._one_vs_one
        )
        return make_most_probable(probabilities, self._best_positions(values))

    @available_if(_has_probability)
    def predict_log_proba(self: Any, X: Any) -> NDArray[np.float64]:
        """Predict the logarithms of class probabilities.

        Parameters
        ----------
        <<X_kernel>>

        Returns
        -------
        <<returns_log_probabilities>>
        """
        return np.log(self.predict_proba(X))


def calibration_splits(y: np.ndarray, weight: np.ndarray | None) -> list:
    """Return training and test samples of stratified folds, without samples of weight 0."""
    used = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    fewest = int(np.unique(y[used], return_counts=True)[1].min())
    if fewest < 2:
        raise ValueError(
            "probability=True needs at least two samples of each class, one to train and one to "
            "calibrate with, but a class of y has one sample. Set probability=False or leave the "
            "class out."
        )
    folds = StratifiedKFold(min(options.folds, fewest)).split(used, y[used])
    return [(used[train], used[test]) for train, test in folds]


def fit_slopes(folds: list, C: float, X: Any, y: np.ndarray, weight: Any, full: Any) -> np.ndarray:
    """Return the slopes of the log odds of all binary subproblems, below and above 0.

    Parameters
    ----------
    folds : list of Fold
        Solved.
    C : float
        The C of their paths to take.
    X, y, weight : array-like
        Validated samples, labels and sample weights (or None).
    full : Training
        That of the fit to all samples. Its class weights count as sample weights.

    Returns
    -------
    ndarray of shape (n_problems, 2)
    """
    collected: list[list] = [[] for _ in full.reduction.problems]
    codes = np.searchsorted(full.classes, y)
    weight = full.class_weight[codes] * (1.0 if weight is None else weight)
    matrix = _code_matrix(len(full.classes), full.reduction.one_vs_one)
    for fold in folds:
        step = fold.path.index(C)
        if step in fold.failed:
            continue
        X_train, X_test = (
            safe_split(fold.model, X, None, rows, fold.train)[0] for rows in (fold.train, fold.test)
        )
        values = fold.fitted_model(step, X_train, X_test, whole=False)._decision_values(X_test)
        present = np.searchsorted(full.classes, fold.training.classes)
        of_fold = _code_matrix(len(present), fold.training.reduction.one_vs_one)
        for number, column in enumerate(matrix.T):
            own = np.flatnonzero((of_fold == column[present, np.newaxis]).all(axis=0))
            if len(own):
                sign = column[codes[fold.test]]
                kept = sign != 0
                part = sign[kept], values[kept, own[0]], weight[fold.test][kept]
                collected[number].append(part)
    return np.array(
        [_slopes(*map(np.concatenate, zip(*parts, strict=True))) for parts in collected]
    )


def class_probabilities(
    values: np.ndarray, slopes: np.ndarray, n_classes: int, one_vs_one: bool
) -> np.ndarray:
    """Return the probabilities of classes from the decision values of the binary subproblems."""
    odds = np.minimum(values, 0.0) * slopes[:, 0] + np.maximum(values, 0.0) * slopes[:, 1]
    positive = np.clip(expit(odds), options.least, 1.0 - options.least)
    if n_classes == 2:
        return np.hstack((1.0 - positive, positive))
    if not one_vs_one:
        return positive / positive.sum(axis=1, keepdims=True)
    height = max(1, options.entries // (n_classes + 1) ** 2)
    parts = [
        couple_pairs(positive[first : first + height], n_classes)
        for first in range(0, len(values), height)
    ]
    return np.concatenate(parts) if parts else np.empty((0, n_classes))


def couple_pairs(positive: np.ndarray, n_classes: int) -> np.ndarray:
    r"""Return the probabilities of classes from those of pairs, of the first class of each.

    They minimize :math:`\sum_{i<j} (r_{ji} p_i - r_{ij} p_j)^2` over all p with sum 1, where r_ij
    is the probability of class i among i and j; the minimum is positive.
    """
    first, second = np.array(list(combinations(range(n_classes), 2))).T
    r = np.zeros((len(positive), n_classes, n_classes))
    r[:, first, second] = positive
    r[:, second, first] = 1.0 - positive
    system = np.zeros((len(positive), n_classes + 1, n_classes + 1))
    system[:, :-1, :-1] = -r * r.transpose(0, 2, 1)
    every = np.arange(n_classes)
    system[:, every, every] = np.sum(r**2, axis=1)
    system[:, -1, :-1] = system[:, :-1, -1] = 1.0
    right = np.zeros((len(positive), n_classes + 1, 1))
    right[:, -1] = 1.0
    solution = np.linalg.solve(system, right)[:, :-1, 0]
    solution = np.maximum(solution, np.finfo(np.float64).tiny)  # positive but for rounding
    return solution / solution.sum(axis=1, keepdims=True)


def make_most_probable(probabilities: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return the nearest probabilities of which those at ``positions`` are the largest.

    The class of the position and those above it get their mean, and the first one more digit.
    """
    out = probabilities.copy()
    every = np.arange(len(out))
    others = out.copy()
    others[every, positions] = -1.0
    changed = np.flatnonzero(others.max(axis=1) >= out[every, positions])
    for row in changed:
        position = positions[row]
        order = np.argsort(-others[row], kind="stable")[:-1]
        sums = out[row, position] + np.cumsum([0.0, *others[row, order]])
        means = sums / np.arange(1, len(sums) + 1)
        # With m classes of larger probability in the mean, the next one must not be above it.
        enough = np.append(others[row, order], 0.0) <= means
        pooled = int(enough.argmax())
        out[row, order[:pooled]] = means[pooled]
        out[row, position] = np.nextafter(max(means[pooled], others[row].max() * (pooled == 0)), 1)
    return out


def _code_matrix(n_classes: int, one_vs_one: bool) -> np.ndarray:
    """Return the code matrix of the binary subproblems: 1, -1 or 0 by class and subproblem."""
    if not one_vs_one:
        return one_vs_rest(n_classes)
    matrix = np.zeros((n_classes, n_classes * (n_classes - 1) // 2), dtype=np.intp)
    for number, (i, j) in enumerate(combinations(range(n_classes), 2)):
        matrix[i, number], matrix[j, number] = 1, -1
    return matrix


def _slopes(sign: np.ndarray, values: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Return the slopes below and above 0; a side without samples gets that of the other one."""
    below, above = (
        _slope(np.abs(values[side]), sign[side] * direction > 0.0, weight[side])
        for direction, side in ((-1.0, values < 0.0), (1.0, values > 0.0))
    )
    below, above = (above if below is None else below), (below if above is None else above)
    return below or 0.0, above or 0.0


def _slope(size: np.ndarray, right: np.ndarray, weight: np.ndarray) -> float | None:
    """Return the slope of the least log loss on one side, not below 0.

    ``size`` are absolute decision values and ``right`` is True where their signs are those of the
    samples. As in Platt's method, targets are 0 and 1 with a sample of each kind added, so that
    the slope is finite.
    """
    if not weight.any():
        return None
    scale = float(size.max())
    n_right, n_wrong = float(weight[right].sum()), float(weight[~right].sum())
    target = np.where(right, (n_right + 1.0) / (n_right + 2.0), 1.0 / (n_wrong + 2.0))
    size, weight = size / scale, weight / weight.max()

    def derivative(slope: float) -> float:
        return float(np.sum(weight * size * (expit(slope * size) - target)))

    if derivative(0.0) >= 0.0:
        return 0.0
    last = 1.0
    while derivative(last) < 0.0:
        last *= 2.0
    return float(brentq(derivative, 0.0, last)) / scale
