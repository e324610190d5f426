"""The number behind the gamma of a kernel."""

import numpy as np
import scipy.sparse as sp


def effective_gamma(gamma, X, weight=None) -> float:
    """Gamma as a number, every row counted by its weight.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float
        "scale" is one over the number of features times the variance of all values, "auto" is one
        over the number of features.
    X : ndarray or CSR matrix of shape (n, d)
    weight : ndarray of shape (n,), optional
        Positive.

    Returns
    -------
    float
    """
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma != "scale":
        return float(gamma)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        variance = _variance(X, weight)
        scale = 1.0 / (X.shape[1] * variance) if variance != 0.0 else 1.0
    if not 0.0 < scale < np.inf:
        raise ValueError(
            "The dual coefficients or intercepts are not finite: X holds values so large or so "
            f"small that their variance ({variance:.3g}), from which gamma='scale' is computed, is "
            "of no use. Preprocess X, for example by StandardScaler, or give gamma as a number."
        )
    return scale


def _variance(X, weight):
    """The variance of all values, in two passes: no digits are lost to a common offset."""
    if weight is None and not sp.issparse(X):
        return float(X.var())
    if weight is not None:
        weight = weight / weight.max()
    mean = np.average(np.asarray(X.mean(axis=1)).ravel(), weights=weight)
    if not sp.issparse(X):
        return float(np.average(((X - mean) ** 2).mean(axis=1), weights=weight))
    squares = X.copy()
    squares.data = (X.data - mean) ** 2
    zeros = X.shape[1] - np.diff(X.indptr)
    sums = np.asarray(squares.sum(axis=1)).ravel() + zeros * mean**2
    return float(np.average(sums / X.shape[1], weights=weight))
