"""Scores of structured outputs, part by part."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.metrics import jaccard_score


def flat_scorer(metric: Callable, **parameters: Any) -> Callable:
    """Return a scorer that applies a metric of labels to the parts of all outputs together.

    Parameters
    ----------
    metric : callable
        ``metric(y_true, y_pred, **parameters)`` of two flat arrays of labels, such as
        `sklearn.metrics.f1_score`.
    **parameters : dict
        Further arguments of the metric.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, Y)``, for the parameter `scoring` of scikit-learn's searches.

    Examples
    --------
    >>> from sklearn.metrics import f1_score
    >>> from sklearn.model_selection import cross_val_score
    >>> from widemargin.datasets import load_letters
    >>> from widemargin.structured import ChainCRF, StructuredPerceptron, flat_scorer
    >>> X, Y = load_letters(return_X_y=True)
    >>> learner = StructuredPerceptron(ChainCRF(n_states=26), max_iter=5, average=True)
    >>> scores = cross_val_score(learner, X, Y, scoring=flat_scorer(f1_score, average="micro"))
    >>> bool(scores.mean() > 0.6)
    True
    """
    if not callable(metric):
        raise TypeError(
            f"metric must be a function of two arrays of labels, such as "
            f"sklearn.metrics.f1_score, got {metric!r}."
        )

    def score(estimator: Any, X: Sequence, Y: Sequence) -> float:
        return metric(_flatten(Y), _flatten(estimator.predict(X)), **parameters)

    return score


def jaccard_index(Y: Sequence, Y_hat: Sequence, labels: Any = None) -> float:
    r"""Compute the Jaccard index (intersection over union), averaged over labels.

    .. math::

        \frac{1}{K} \sum_k \frac{|\{v : y_v = k \wedge \hat y_v = k\}|}
        {|\{v : y_v = k \vee \hat y_v = k\}|}

    over the parts v of all outputs together, as for semantic segmentation. Rare labels count as
    much as frequent ones; ``class_weight='balanced'`` of the model trains for it.

    Parameters
    ----------
    Y : sequence
        True outputs.
    Y_hat : sequence
        Outputs.
    labels : array-like, default=None
        Labels to average over; by default those that occur in either.

    Returns
    -------
    index : float
        Between 0 and 1.

    Examples
    --------
    >>> from widemargin.structured import jaccard_index
    >>> jaccard_index([[0, 0, 1, 1]], [[0, 0, 0, 1]], labels=[1])
    0.5
    """
    truth, outputs = _flatten(Y), _flatten(Y_hat)
    if len(truth) == 0 or len(truth) != len(outputs):
        raise ValueError(
            "Y and Y_hat must have equal numbers of parts, at least one, got "
            f"{len(truth)} and {len(outputs)}."
        )
    score = jaccard_score(truth, outputs, labels=labels, average="macro", zero_division=0.0)
    return float(score)


def _flatten(Y: Sequence) -> np.ndarray:
    return np.concatenate([np.ravel(y) for y in Y]) if len(Y) else np.empty(0)
