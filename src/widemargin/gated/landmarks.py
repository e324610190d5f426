"""Nystroem's features, as far as an answer needs them.

Nystroem maps a row to phi(x) = N k(x), with k(x) the kernel values at its landmarks and N a square
matrix. A student asks for <u, phi(x)> = <N' u, k(x)>: once N' u is known, the kernel values are
enough, and the product with N, which costs more than they do where landmarks are many, is not made.
"""

from typing import NamedTuple

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import Pipeline

from widemargin.svm.linear_svc import linear_scores


class Landmarks(NamedTuple):
    """phi of rows, not multiplied out: values times the matrix, transposed.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_landmarks)
    matrix : ndarray of shape (n_landmarks, n_landmarks)
    """

    values: np.ndarray
    matrix: np.ndarray


def landmarks(features, X):
    """The `Landmarks` of rows, or None if their map does not end with Nystroem."""
    before = features[:-1] if isinstance(features, Pipeline) and len(features) > 1 else None
    last = features[-1] if isinstance(features, Pipeline) else features
    if type(last) is not Nystroem or last.kernel == "precomputed":
        return None
    X = X if before is None else before.transform(X)
    given = {name: getattr(last, name) for name in ("gamma", "degree", "coef0")}
    given = {name: value for name, value in given.items() if value is not None}
    values = pairwise_kernels(
        X, last.components_, metric=last.kernel, filter_params=True, n_jobs=last.n_jobs,
        **(last.kernel_params or {}), **given,
    )  # fmt: skip
    return Landmarks(np.ascontiguousarray(values, dtype=np.float64), last.normalization_)


def products(rows, coef):
    """<coef_k, phi_i> of all rows i of phi, multiplied out or not."""
    if isinstance(rows, Landmarks):
        return linear_scores(rows.values, coef @ rows.matrix)
    return linear_scores(rows, coef)


def multiplied(rows):
    """Rows of phi as an array."""
    return rows.values @ rows.matrix.T if isinstance(rows, Landmarks) else rows
