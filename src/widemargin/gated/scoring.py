"""Metrics of binary answers, by the names of scikit-learn's scorers."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import get_scorer

from widemargin._base.sklearn_compat import BaseEstimator


class Answers(ClassifierMixin, BaseEstimator):
    """Decision values of samples as a fitted binary classifier, which is what scorers evaluate."""

    def __init__(self, scores: Any):
        self.scores = scores
        self.classes_ = np.array([False, True])

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the decision values."""
        return self.scores

    def predict(self, X: Any) -> np.ndarray:
        """Return which samples are accepted."""
        return self.scores >= 0.0


def score_answers(
    scoring: str | Callable | None, scores: np.ndarray, X: Any, positive: np.ndarray, weight: Any
) -> float:
    """Return a metric of decision values.

    Parameters
    ----------
    scoring : str, callable or None
        Name of a scorer, or a function of an estimator, X and y. None for the accuracy.
    scores : ndarray of shape (n_samples,)
        Decision values of the samples X.
    positive : ndarray of bool of shape (n_samples,)
        Which samples belong to the target class.
    weight : array-like of shape (n_samples,) or None
        Weights of the samples.
    """
    scorer = scoring if callable(scoring) else get_scorer(scoring or "accuracy")
    weights = {} if weight is None else {"sample_weight": weight}
    try:
        return float(scorer(Answers(scores), X, positive, **weights))
    except AttributeError as error:
        if "predict_proba" not in str(error):
            raise
        raise ValueError(
            f"scoring={scoring!r} needs probabilities, which students do not have. Use a metric of "
            "predictions or of decision values, such as 'f1' or 'roc_auc'."
        ) from error
