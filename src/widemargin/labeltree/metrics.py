"""Metrics of rankings of labels: precision and nDCG at k, and their propensity-scored forms."""

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from widemargin._base.docs import shared_docs


@shared_docs
def precision_at_k(y_true: Any, y_pred: ArrayLike, k: int = 5, propensity: Any = None) -> float:
    r"""Compute the precision of the k labels ranked first.

    The share of the k labels that are true, as a mean over the samples. With propensities p, true
    labels count :math:`1 / p_l`, and the sum over the samples is divided by the largest one that
    any ranking can reach:

    .. math::

        \mathrm{P@}k = \frac{1}{nk} \sum_i \sum_{j \le k} y_{i, l_{ij}}, \qquad
        \mathrm{PSP@}k = \frac{\sum_i \sum_{j \le k} y_{i, l_{ij}} / p_{l_{ij}}}
        {\sum_i \max_r \sum_{j \le k} y_{i, r_j} / p_{r_j}}

    Parameters
    ----------
    <<y_true_ranking>>

    Returns
    -------
    precision : float
        From 0 to 1.

    See Also
    --------
    ndcg_at_k : The same with more weight on the labels ranked first.
    label_propensities : Propensities of the labels of a training set.

    Examples
    --------
    >>> from widemargin import precision_at_k
    >>> precision_at_k([[1, 0, 1], [0, 1, 0]], [[0, 1], [1, 2]], k=2)
    0.5
    """
    hits, ideal = _gains(y_true, y_pred, k, propensity)
    if propensity is None:
        return float(np.sum(hits) / (k * max(1, len(hits))))
    return float(np.sum(hits) / max(np.sum(ideal), np.finfo(float).tiny))


@shared_docs
def ndcg_at_k(y_true: Any, y_pred: ArrayLike, k: int = 5, propensity: Any = None) -> float:
    r"""Compute the normalized discounted cumulative gain of the k labels ranked first.

    A true label at rank j counts :math:`1 / \log_2(j + 1)`, divided by the sum that the best
    ranking of the sample reaches; the result is the mean over the samples. With propensities p,
    true labels count :math:`1 / p_l` times as much, and the sum over the samples is divided by the
    largest one that any ranking can reach.

    Parameters
    ----------
    <<y_true_ranking>>

    Returns
    -------
    ndcg : float
        From 0 to 1. Samples without a true label count 0.

    See Also
    --------
    precision_at_k : The same without a discount.
    label_propensities : Propensities of the labels of a training set.

    Examples
    --------
    >>> from widemargin import ndcg_at_k
    >>> round(ndcg_at_k([[1, 0, 1], [0, 1, 0]], [[0, 1], [1, 2]], k=2), 3)
    0.807
    """
    hits, ideal = _gains(y_true, y_pred, k, propensity)
    discount = 1.0 / np.log2(np.arange(2, k + 2))
    gained, best = hits @ discount, ideal @ discount
    if propensity is None:
        return float(np.mean(np.divide(gained, best, out=np.zeros(len(hits)), where=best > 0)))
    return float(np.sum(gained) / max(np.sum(best), np.finfo(float).tiny))


def label_propensities(Y: Any, *, A: float = 0.55, B: float = 1.5) -> np.ndarray:
    r"""Estimate the propensities of labels from their numbers of training samples.

    The propensity of a label is the probability that a sample which should have it does have it in
    the data. It is smaller for rare labels: with n samples, of which :math:`n_l` have the label,

    .. math::

        p_l = \frac{1}{1 + C e^{-A \log(n_l + B)}}, \qquad C = (\log n - 1)(B + 1)^A

    Parameters
    ----------
    Y : {array-like, sparse matrix} of shape (n_samples, n_labels)
        Indicator matrix of the labels of the training samples.
    A, B : float, default=0.55, 1.5
        Constants; the defaults are those of most data sets, 0.5 and 0.4 those of Wikipedia, 0.6
        and 2.6 those of Amazon.

    Returns
    -------
    propensity : ndarray of shape (n_labels,)
        From 0 to 1.

    References
    ----------
    H. Jain, Y. Prabhu, M. Varma: Extreme multi-label loss functions for recommendation, tagging,
    ranking and other missing label applications. KDD 2016.

    Examples
    --------
    >>> from widemargin import label_propensities
    >>> label_propensities([[1, 0], [1, 0], [1, 1], [1, 0]]).round(2)
    array([0.8 , 0.72])
    """
    matrix = _indicators(Y, "Y")
    if matrix.shape[0] < 3:
        raise ValueError(
            f"Y must have at least 3 samples, got {matrix.shape[0]}: propensities are estimated "
            "from a training set."
        )
    if not (A > 0.0 and B > 0.0 and np.isfinite(A) and np.isfinite(B)):
        raise ValueError(f"A and B must be positive and finite, got A={A!r} and B={B!r}.")
    counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
    C = (np.log(matrix.shape[0]) - 1.0) * (B + 1.0) ** A
    return 1.0 / (1.0 + C * (counts + B) ** -A)


def _indicators(Y: Any, name: str) -> Any:
    """Return an indicator matrix as a CSR array of ones."""
    matrix = Y if sp.issparse(Y) else np.asarray(Y)
    if matrix.ndim != 2 or matrix.shape[0] == 0 or matrix.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be an indicator matrix of shape (n_samples, n_labels) with at least one "
            f"sample, got an array of shape {matrix.shape} and dtype {matrix.dtype}."
        )
    matrix = sp.csr_array(matrix, copy=sp.issparse(matrix))
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise ValueError(f"{name} must be an indicator matrix, got nan or infinity.")
    matrix.eliminate_zeros()
    ones = np.ones(matrix.nnz, bool)
    return sp.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape)


def _inverse(propensity: Any, n_labels: int) -> np.ndarray:
    """Return what a true label counts."""
    if propensity is None:
        return np.ones(n_labels)
    values = np.asarray(propensity, float)
    if values.shape != (n_labels,):
        raise ValueError(f"propensity must have shape {(n_labels,)}, got {values.shape}.")
    if not ((values > 0.0) & np.isfinite(values)).all():
        raise ValueError(
            "propensity must contain positive numbers, got others. Use label_propensities."
        )
    return 1.0 / values


def _gains(y_true: Any, y_pred: Any, k: int, propensity: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the gains of the first k labels of each sample, and those of the best ranking."""
    matrix, ranking = _indicators(y_true, "y_true"), np.asarray(y_pred)
    n_samples, n_labels = matrix.shape
    if not isinstance(k, Integral) or isinstance(k, bool) or k < 1:
        raise ValueError(f"k must be a positive integer, got {k!r}.")
    if ranking.ndim != 2 or len(ranking) != n_samples or ranking.shape[1] < k:
        raise ValueError(
            f"y_pred must contain at least k={k} labels for each of the {n_samples} samples, got "
            f"an array of shape {ranking.shape}."
        )
    ranking = ranking[:, :k]
    if ranking.size and not (
        ranking.dtype.kind in "iu" and 0 <= ranking.min() <= ranking.max() < n_labels
    ):
        raise ValueError(
            f"y_pred must contain column numbers of y_true, from 0 to {n_labels - 1}. Pass the "
            "labels of predict_topk of a model that was fitted with an indicator matrix."
        )
    weight = _inverse(propensity, n_labels)
    matrix = matrix.multiply(weight).tocsr()
    rows = np.repeat(np.arange(n_samples), k)
    hits = np.asarray(matrix[rows, ranking.ravel()]).reshape(n_samples, k)
    for j in range(1, k):  # a repeated label counts once
        hits[(ranking[:, :j] == ranking[:, [j]]).any(axis=1), j] = 0.0
    ideal = np.zeros((n_samples, k))
    order = np.lexsort((-matrix.data, np.repeat(np.arange(n_samples), np.diff(matrix.indptr))))
    rank = np.arange(matrix.nnz) - np.repeat(matrix.indptr[:-1], np.diff(matrix.indptr))
    row = np.repeat(np.arange(n_samples), np.diff(matrix.indptr))
    first = rank < k
    ideal[row[first], rank[first]] = matrix.data[order][first]
    return hits, ideal
