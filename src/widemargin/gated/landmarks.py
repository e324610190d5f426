"""Nystroem features, as far as predictions need them.

Nystroem maps a sample to phi(x) = N k(x), with k(x) the kernel values at its landmarks and N a
square matrix. A student needs <u, phi(x)> = <N' u, k(x)>: once N' u is known, the kernel values
suffice, and the product with N, which costs more than they do with many landmarks, is not computed.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import Pipeline

from widemargin.svm.scores import linear_scores


class LandmarkFeatures(NamedTuple):
    """Features ``values @ matrix.T`` of samples, not multiplied out.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_landmarks)
    matrix : ndarray of shape (n_landmarks, n_landmarks)
    """

    values: np.ndarray
    matrix: np.ndarray


def landmark_features(features: Any, X: Any) -> LandmarkFeatures | None:
    """Return the features of samples, or None if their map does not end with Nystroem."""
    before = features[:-1] if isinstance(features, Pipeline) and len(features) > 1 else None
    last = features[-1] if isinstance(features, Pipeline) else features
    if type(last) is not Nystroem or last.kernel == "precomputed":
        return None
    X = X if before is None else before.transform(X)
    parameters = {name: getattr(last, name) for name in ("gamma", "degree", "coef0")}
    parameters = {name: value for name, value in parameters.items() if value is not None}
    values = pairwise_kernels(
        X, last.components_, metric=last.kernel, filter_params=True, n_jobs=last.n_jobs,
        **(last.kernel_params or {}), **parameters,
    )  # fmt: skip
    return LandmarkFeatures(np.ascontiguousarray(values, dtype=np.float64), last.normalization_)


def inner_products(phi: Any, coef: np.ndarray) -> np.ndarray:
    """Return <coef_k, phi_i> of all samples i and vectors k."""
    if isinstance(phi, LandmarkFeatures):
        return linear_scores(phi.values, coef @ phi.matrix)
    return linear_scores(phi, coef)


def feature_array(phi: Any) -> Any:
    """Return features as a matrix."""
    return phi.values @ phi.matrix.T if isinstance(phi, LandmarkFeatures) else phi
