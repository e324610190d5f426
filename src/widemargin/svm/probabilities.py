"""Probabilities of kernel classifiers, from decision values of samples that were not trained on.

The log odds of a binary subproblem are those of Platt's sigmoid, a linear function of the decision
value, where their sign is that of the decision value, as `predict` has it, and a small multiple of
the decision value elsewhere. (The sigmoid alone moves the decision boundary, so that it disagrees
with `predict`.) The probabilities of pairs of classes are coupled by the second method of Wu, Lin
and Weng (2004). Where the most probable class is another than the predicted one, such as after a
tie of votes, the nearest probabilities for which it is the same are returned.

References
----------
J. Platt, Probabilistic outputs for support vector machines and comparisons to regularized
likelihood methods, 1999.

H.-T. Lin, C.-J. Lin and R. C. Weng, A note on Platt's probabilistic outputs for support vector
machines, Machine Learning 68, 2007.

T.-F. Wu, C.-J. Lin and R. C. Weng, Probability estimates for multi-class classification by pairwise
coupling, JMLR 5, 2004.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from widemargin._base.docs import shared_docs
from widemargin._base.options import probability_options as options
from widemargin._base.sklearn_compat import safe_split
from widemargin.svm.reduction import one_vs_rest


def _has_probability(estimator: Any) -> bool:
    """Return whether a fitted model has probabilities, or an unfitted one will have them."""
    if getattr(estimator, "probability_sigmoids_", None) is not None:
        return True
    if hasattr(estimator, "classes_"):
        raise AttributeError(
            f"predict_proba is not available, because this {type(estimator).__name__} was fitted "
            "with probability=False. Set probability=True and fit it again."
        )
    if not estimator.probability:
        raise AttributeError(
            "predict_proba is only available with probability=True. Set it before fit."
        )
    return True


@shared_docs
class ProbabilityMixin:
    """Probabilities of a `KernelClassifier` that has the parameter ``probability``."""

    probability = False  # of model files that are older than the parameter

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
        values = self._decision_values(X)
        probabilities = class_probabilities(
            values, self.probability_sigmoids_, len(self.classes_), self._one_vs_one
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
    classes, counts = np.unique(y[used], return_counts=True)
    fewest = int(counts.min())
    if fewest < 2:
        raise ValueError(
            "probability=True needs at least two samples of each class, one to train and one to "
            f"calibrate with, but class {classes[counts.argmin()]!s} has one sample. Set "
            "probability=False or leave the class out."
        )
    folds = StratifiedKFold(min(options.folds, fewest)).split(used, y[used])
    return [(used[train], used[test]) for train, test in folds]


def fit_sigmoids(
    folds: list, C: float, X: Any, y: np.ndarray, weight: Any, full: Any
) -> np.ndarray:
    """Return the slopes and intercepts of the log odds of all binary subproblems.

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
    matrix = _code_matrix(len(full.classes), full.reduction.one_vs_one)
    collected: list[list] = [[] for _ in matrix.T]
    for fold in folds:
        step = fold.path.index(C)
        if step in fold.failed:
            continue
        # Samples of a class whose samples all have weight 0 belong to no subproblem.
        test = fold.test[np.isin(y[fold.test], full.classes)]
        codes = np.searchsorted(full.classes, y[test])
        test_weight = full.class_weight[codes] * (1.0 if weight is None else weight[test])
        values = _fold_values(fold, step, X)[np.isin(fold.test, test)]
        for number, column in _same_problems(fold.training, full.classes, matrix):
            sign = matrix[codes, number]
            used = (sign != 0) & (test_weight > 0.0)
            collected[number].append((values[used, column], sign[used] > 0, test_weight[used]))
    sigmoids = np.empty((len(collected), 2))
    for number, batches in enumerate(collected):
        if not sum(len(batch[0]) for batch in batches):
            classes = full.classes[matrix[:, number] != 0].tolist()
            raise ValueError(
                "probability=True needs held-out samples of all classes, but the folds of cv have "
                f"no test samples for the binary subproblem of classes {classes}. Use stratified "
                "folds."
            )
        sigmoids[number] = fit_sigmoid(*map(np.concatenate, zip(*batches, strict=True)))
    return sigmoids


def fit_sigmoid(
    values: np.ndarray, positive: np.ndarray, weight: np.ndarray
) -> tuple[float, float]:
    """Return the slope, not below 0, and the intercept of log odds of the least log loss.

    As in Platt's method, targets are 0 and 1 with a sample of each class added, so that they are
    finite. Newton's method with a line search, as in Lin, Lin and Weng (2007).
    """
    scale = float(np.abs(values).max()) or 1.0
    z = values / scale
    n_positive, n_negative = float(weight[positive].sum()), float(weight[~positive].sum())
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    prior = float(np.sum(weight * target) / weight.sum())
    columns = np.column_stack((z, np.ones_like(z)))

    def loss(point: np.ndarray) -> float:
        odds = columns @ point
        return float(np.sum(weight * (np.logaddexp(0.0, odds) - target * odds)))

    point = np.array([0.0, logit(prior)])
    value = loss(point)
    for _ in range(options.sigmoid_steps):
        p = expit(columns @ point)
        gradient = columns.T @ (weight * (p - target))
        if np.abs(gradient).max() <= options.sigmoid_gradient * weight.sum():
            break
        hessian = (columns * (weight * p * (1.0 - p))[:, np.newaxis]).T @ columns
        hessian[[0, 1], [0, 1]] += options.sigmoid_ridge * weight.sum()
        direction = np.linalg.solve(hessian, -gradient)
        step, decrease = 1.0, float(gradient @ direction)
        while (new := loss(point + step * direction)) > value + 1e-4 * step * decrease:
            step /= 2.0
            if step < options.sigmoid_ridge:
                break
        if new >= value:
            break
        point, value = point + step * direction, new
    if point[0] <= 0.0:
        return 0.0, float(logit(prior))
    return float(point[0]) / scale, float(point[1])


def class_probabilities(
    values: np.ndarray, sigmoids: np.ndarray, n_classes: int, one_vs_one: bool
) -> np.ndarray:
    """Return the probabilities of classes from the decision values of the binary subproblems."""
    slope, intercept = sigmoids.T
    odds, nearest = slope * values + intercept, options.agreement * slope * values
    odds = np.where(values > 0.0, np.maximum(odds, nearest), np.minimum(odds, nearest))
    positive = np.clip(expit(odds), options.least, 1.0 - options.least)
    if n_classes == 2:
        return np.hstack((1.0 - positive, positive))
    if not one_vs_one:
        return positive / positive.sum(axis=1, keepdims=True)
    height = max(1, options.entries // (n_classes + 1) ** 2)
    blocks = [
        couple_pairs(positive[first : first + height], n_classes)
        for first in range(0, len(values), height)
    ]
    return np.concatenate(blocks) if blocks else np.empty((0, n_classes))


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


def _same_problems(training: Any, classes: np.ndarray, matrix: np.ndarray) -> Iterator[tuple]:
    """Yield the numbers of subproblems that a fold has, too, and their numbers in the fold.

    A fold may lack samples of a class.
    """
    present = np.searchsorted(classes, training.classes)
    of_fold = _code_matrix(len(present), training.reduction.one_vs_one)
    for number, column in enumerate(matrix.T):
        matches = np.flatnonzero((of_fold == column[present, np.newaxis]).all(axis=0))
        if len(matches):
            yield number, matches[0]


def _fold_values(fold: Any, step: int, X: Any) -> np.ndarray:
    """Return the decision values of the test samples of a fold."""
    X_train, X_test = (
        safe_split(fold.model, X, None, rows, fold.train)[0] for rows in (fold.train, fold.test)
    )
    return fold.fitted_model(step, X_train, X_test, whole=False)._decision_values(X_test)
