"""Covariances from class statistics, shrinkage, and whitening."""

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

from widemargin._base.numeric import EPSILON
from widemargin.discriminant.statistics import ClassStatistics

SHRINKAGES = ("auto", "oas")


def within_covariance(statistics: ClassStatistics, shrinkage: Any, shares: Any = None) -> tuple:
    """Return the covariance within classes and the amounts of shrinkage.

    Parameters
    ----------
    statistics : ClassStatistics
        Statistics with scatter matrices.
    shrinkage : None, float, "auto" or "oas"
        Amount of shrinkage, or how to estimate it.
    shares : ndarray of shape (n_classes,), default=None
        Weight of the covariance of each class; by default its share of the sample weight.

    Returns
    -------
    covariance : ndarray of shape (n_features, n_features)
    amounts : float or ndarray of shape (n_classes,)
    """
    proportions = statistics.weight / statistics.weight.sum()
    shares = proportions if shares is None else shares
    if shrinkage in SHRINKAGES:
        covariance, amounts = np.zeros(()), np.zeros(len(proportions))
        for k in np.flatnonzero(statistics.count):
            estimate, amounts[k] = class_covariance(statistics, k, shrinkage)
            covariance = covariance + shares[k] * estimate
        return covariance, amounts
    if np.array_equal(shares, proportions):
        covariance = statistics.pooled_scatter() / statistics.weight.sum()
    else:
        weight = np.where(statistics.weight > 0, statistics.weight, 1.0)
        covariance = np.tensordot(shares / weight, statistics.scatter, axes=1)
    return _shrink(covariance, shrinkage or 0.0), shrinkage or 0.0


def class_covariance(statistics: ClassStatistics, k: Any, shrinkage: Any) -> tuple:
    """Return the shrunk covariance of class k and the amount of shrinkage."""
    weight = statistics.weight[k]
    covariance = statistics.scatter[k] / weight
    if shrinkage not in SHRINKAGES:
        return _shrink(covariance, shrinkage or 0.0), shrinkage or 0.0
    # As in scikit-learn, the amount is estimated from standardized features.
    scale = _deviations(covariance)
    units = np.outer(scale, scale)
    standard = covariance / units
    if len(covariance) == 1:
        amount = 0.0
    elif shrinkage == "oas":
        amount = _oracle_approximating_shrinkage(standard, weight)
    else:
        fourth = (statistics.fourth[k] / units**2).sum() / weight
        amount = _ledoit_wolf_shrinkage(standard, fourth, weight)
    return _shrink(standard, amount) * units, amount


def _shrink(covariance: np.ndarray, amount: float) -> np.ndarray:
    """Shrink the covariance towards a multiple of the identity with the same trace."""
    if amount == 0:
        return covariance
    result = (1.0 - amount) * covariance
    result.flat[:: len(result) + 1] += amount * covariance.trace() / len(result)
    return result


def _ledoit_wolf_shrinkage(covariance: np.ndarray, fourth: float, n: float) -> float:
    """Return the amount of shrinkage of Ledoit and Wolf (2004), with the mean of ||x - mean||^4."""
    p = len(covariance)
    square = (covariance**2).sum()
    distance = (square - covariance.trace() ** 2 / p) / p
    noise = min((fourth - square) / (p * n), distance)
    return noise / distance if noise > 0 else 0.0


def _oracle_approximating_shrinkage(covariance: np.ndarray, n: float) -> float:
    """Return the amount of shrinkage of Chen, Wiesel, Eldar and Hero (2010), as in scikit-learn."""
    p = len(covariance)
    mean_square, level = (covariance**2).mean(), (covariance.trace() / p) ** 2
    excess = (n + 1.0) * (mean_square - level / p)
    return 1.0 if excess <= 0 else min(1.0, (mean_square + level) / excess)


def whitening(covariance: np.ndarray, tol: float) -> np.ndarray:
    r"""Return a matrix :math:`A` with :math:`A^\top \Sigma A = I`, of shape (n_features, rank).

    Directions in which standardized features deviate by at most ``tol`` are left out. A Cholesky
    factor is used if the sum of the inverse eigenvalues, the squared norm of its inverse, proves
    that there are none.
    """
    scale = _deviations(covariance)
    correlation = covariance / np.outer(scale, scale)
    rounding = len(scale) * EPSILON  # of an eigenvalue, relative to the largest
    try:
        factor = cholesky(correlation, lower=True, check_finite=False)
        inverse = solve_triangular(factor, np.eye(len(factor)), lower=True, check_finite=False)
        if (inverse**2).sum() * max(tol**2, rounding) < 1.0:
            return inverse.T / scale[:, np.newaxis]
    except LinAlgError:
        pass
    values, vectors = eigh(correlation)
    values, vectors = values[::-1], vectors[:, ::-1]
    retained = values > max(tol**2, rounding * values[0])
    return vectors[:, retained] / np.sqrt(values[retained]) / scale[:, np.newaxis]


def _deviations(covariance: np.ndarray) -> np.ndarray:
    scale = np.sqrt(covariance.diagonal().clip(min=0.0))
    scale[scale == 0.0] = 1.0
    return scale
