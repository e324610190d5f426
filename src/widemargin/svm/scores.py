"""Scores of linear classifiers, and the rule for ties between classes.

At the optimum of a joint problem over all classes, the classes that a training sample on the
margin is compared with have equal scores. Which of them is largest in floating-point arithmetic is
rounding error. So classes whose scores differ from the best one by no more than a tolerance are
tied with it, and the first of the tied classes is predicted.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.matmul import multiply_vectors, tiled_multiply
from widemargin._base.options import crammer_singer_options as options
from widemargin._base.options import matmul_options
from widemargin._base.validation import canonical_csr, validate_predict
from widemargin.kernels.functions import squared_norms


def linear_scores(X: Any, coef: np.ndarray) -> np.ndarray:
    """Compute <w_k, x_i> of all samples and classes, each sample independently of the others."""
    if sp.issparse(X):
        return np.asarray(X @ np.ascontiguousarray(coef.T))
    if len(coef) <= matmul_options.padded_vectors:
        return multiply_vectors(X, np.ascontiguousarray(coef))
    return tiled_multiply(X, np.ascontiguousarray(coef.T))


def finite_scores(estimator: Any, X: Any, coef: np.ndarray, intercept: Any) -> np.ndarray:
    """Validate samples and compute <w_k, x_i> + b_k, reading the values of X only once.

    A score that involves a NaN or an infinite value is not finite, whatever the weights. So the
    scores show whether X has such values, and X itself is checked only if one is not finite.
    """
    values = canonical_csr(validate_predict(estimator, X, check_finite=False))
    with np.errstate(invalid="ignore", over="ignore"):
        scores = linear_scores(values, coef) + intercept
        if not np.isfinite(scores.sum()):
            validate_predict(estimator, X)
    return scores


def best_classes(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the classes of the largest scores; those of two classes are one score, above 0."""
    return classes[(scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)]


def linear_tie_tolerance(X: Any, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Return the difference of scores up to which classes are tied, for each sample."""
    with np.errstate(over="ignore"):  # then all classes are tied
        norm = np.sqrt(np.sum(coef**2) + np.sum(intercept**2))
    return options.tie_tolerance * (norm * np.sqrt(squared_norms(canonical_csr(X)) + 1.0))


def merge_ties(scores: np.ndarray, tolerance: float | np.ndarray) -> np.ndarray:
    """Return the scores with those of tied classes set to the best one.

    ``tolerance`` is a number for all samples or an array with one for each.
    """
    best = scores.max(axis=1)
    least = best - tolerance
    return np.where(scores >= least[:, np.newaxis], best[:, np.newaxis], scores)


def tie_tolerance(estimator: Any, X: Any) -> float | np.ndarray:
    """Return the difference of scores up to which a fitted estimator considers classes tied.

    Parameters
    ----------
    estimator : estimator
        Only those with one problem over all classes have a method ``_tie_tolerance``; for others
        the tolerance is 0.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Validated samples.
    """
    method = getattr(estimator, "_tie_tolerance", None)
    return 0.0 if method is None else method(X)
