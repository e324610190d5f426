"""From statistics of the classes to covariances, shrunk where wanted, and to what whitens them."""

import numpy as np
from scipy.linalg import LinAlgError, cholesky, eigh, solve_triangular

SHRINKAGES = ("auto", "oas")


def within_covariance(statistics, shrinkage, shares=None):
    """The covariance within classes and the amounts of shrinkage.

    Parameters
    ----------
    statistics : ClassStatistics
    shrinkage : None, float, "auto" or "oas"
    shares : ndarray of shape (n_classes,), default=None
        How much the covariance of each class counts; by default its share of the weight.

    Returns
    -------
    covariance : ndarray of shape (n_features, n_features)
    amounts : float or ndarray of shape (n_classes,)
    """
    own = statistics.weight / statistics.weight.sum()
    if shrinkage in SHRINKAGES:
        shares = own if shares is None else shares
        present = np.flatnonzero(statistics.count)
        parts = [class_covariance(statistics, k, shrinkage) for k in present]
        amounts = np.zeros(len(own))
        amounts[present] = [amount for _, amount in parts]
        pairs = zip(shares[present], parts, strict=True)
        return sum(share * covariance for share, (covariance, _) in pairs), amounts
    if shares is None or np.array_equal(shares, own):
        covariance = statistics.pooled_scatter() / statistics.weight.sum()
    else:
        weight = np.where(statistics.weight > 0, statistics.weight, 1.0)
        covariance = np.tensordot(shares / weight, statistics.scatter, axes=1)
    return shrunk(covariance, shrinkage or 0.0), shrinkage or 0.0


def class_covariance(statistics, k, shrinkage):
    """The covariance of class k around its mean, shrunk, and the amount of shrinkage."""
    weight = statistics.weight[k]
    covariance = statistics.scatter[k] / weight
    if shrinkage not in SHRINKAGES:
        return shrunk(covariance, shrinkage or 0.0), shrinkage or 0.0
    # As in scikit-learn, the amount is that of the data in standard units.
    scale = _deviations(covariance)
    units = np.outer(scale, scale)
    standard = covariance / units
    if shrinkage == "oas":
        amount = oracle_approximating_shrinkage(standard, weight)
    else:
        amount = ledoit_wolf_shrinkage(
            standard, (statistics.fourth[k] / units**2).sum() / weight, weight
        )
    return shrunk(standard, amount) * units, amount


def shrunk(covariance, amount):
    """The covariance moved by ``amount`` towards a sphere of the same mean variance."""
    if amount == 0:
        return covariance
    result = (1.0 - amount) * covariance
    result.flat[:: len(result) + 1] += amount * covariance.trace() / len(result)
    return result


def ledoit_wolf_shrinkage(covariance, mean_fourth_power, n):
    """The amount of shrinkage of Ledoit and Wolf (2004), from moments.

    Parameters
    ----------
    covariance : ndarray of shape (p, p)
    mean_fourth_power : float
        Mean of ||x - mean||^4.
    n : float
        Number of rows.
    """
    p = len(covariance)
    if p == 1:
        return 0.0
    square = (covariance**2).sum()
    distance = (square - covariance.trace() ** 2 / p) / p
    noise = min((mean_fourth_power - square) / (p * n), distance)
    return noise / distance if noise > 0 else 0.0


def oracle_approximating_shrinkage(covariance, n):
    """The amount of shrinkage of Chen, Wiesel, Eldar and Hero (2010), as scikit-learn computes it.

    Parameters
    ----------
    covariance : ndarray of shape (p, p)
    n : float
        Number of rows.
    """
    p = len(covariance)
    if p == 1:
        return 0.0
    mean_square, level = (covariance**2).mean(), (covariance.trace() / p) ** 2
    excess = (n + 1.0) * (mean_square - level / p)
    return 1.0 if excess <= 0 else min(1.0, (mean_square + level) / excess)


def whitening(covariance, tol):
    r"""A matrix :math:`A` with :math:`A^\top \Sigma A = I`, over the directions in which rows vary.

    In standard units, directions of deviation up to ``tol`` are left out. The factor of Cholesky
    serves while the sum of the inverse eigenvalues, its inverse's squared norm, proves that there
    are none.

    Parameters
    ----------
    covariance : ndarray of shape (n_features, n_features)
    tol : float

    Returns
    -------
    ndarray of shape (n_features, rank)
    """
    scale = _deviations(covariance)
    correlation = covariance / np.outer(scale, scale)
    try:
        factor = cholesky(correlation, lower=True, check_finite=False)
        inverse = solve_triangular(factor, np.eye(len(factor)), lower=True, check_finite=False)
        if (inverse**2).sum() * max(tol**2, _smallest(len(factor), 1.0)) < 1.0:
            return inverse.T / scale[:, np.newaxis]
    except LinAlgError:
        pass
    values, vectors = eigh(correlation)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = values > max(tol**2, _smallest(len(values), values[0]))
    return vectors[:, kept] / np.sqrt(values[kept]) / scale[:, np.newaxis]


def _smallest(n, largest):
    """Eigenvalues up to this may be rounding errors."""
    return n * np.finfo(float).eps * max(largest, 0.0)


def _deviations(covariance):
    scale = np.sqrt(covariance.diagonal().clip(min=0.0))
    scale[scale == 0.0] = 1.0
    return scale
