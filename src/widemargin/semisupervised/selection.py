"""Model selection with unlabeled samples: folds, and scorers for constraints."""

from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import make_scorer
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_consistent_length, column_or_1d

from widemargin.semisupervised.constraints import ScoredSamples, ThresholdCurve
from widemargin.semisupervised.targets import fill_missing_labels, find_unlabeled


class PartiallyLabeledKFold:
    """Stratified folds of the labeled samples; unlabeled samples are always training samples.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=False
        Whether to shuffle the labeled samples of each class before they are split.
    random_state : int, RandomState instance or None, default=None
        Determines the order if `shuffle` is True.

    See Also
    --------
    recall_at_precision_scorer, precision_at_recall_scorer : Scorers for a search.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import PartiallyLabeledKFold
    >>> y = np.array([0, 1, -1, 0, 1, -1])
    >>> for train, test in PartiallyLabeledKFold(2).split(np.zeros((6, 1)), y):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 2 5] [3 4]
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({parameters})"

    def split(
        self, X: Any, y: ArrayLike, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Generate indices of training and test samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, of which only the number is used.
        y : array-like of shape (n_samples,)
            Labels. None, NaN and missing values mean unlabeled; if there are none, -1 does.
        groups : object
            Ignored.

        Yields
        ------
        train : ndarray
            Indices of all unlabeled samples and of the labeled samples of the other folds.
        test : ndarray
            Indices of the labeled samples of the fold.
        """
        filled, missing = fill_missing_labels(y)
        labels = column_or_1d(filled)
        check_consistent_length(X, labels)
        unlabeled = missing if missing.any() else find_unlabeled(labels)
        labeled = np.flatnonzero(~unlabeled)
        if not len(labeled):
            raise ValueError("y must contain labels to split, got only unlabeled samples.")
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        codes = np.unique(labels[labeled], return_inverse=True)[1]
        for _, test in folds.split(labeled, codes):
            yield np.setdiff1d(np.arange(len(labels)), labeled[test]), labeled[test]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object
            Ignored.

        Returns
        -------
        n_splits : int
            The parameter `n_splits`.
        """
        return self.n_splits


def recall_at_precision_scorer(precision: float) -> Callable:
    """Return a scorer: the greatest recall of all thresholds that have a precision.

    It evaluates the scores of a binary classifier, whatever its own threshold is, for example in a
    grid search.

    Parameters
    ----------
    precision : float
        Lower bound on the precision.

    Returns
    -------
    scorer : callable
        With the signature ``scorer(estimator, X, y)``; 0 if no threshold has the precision.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from widemargin import recall_at_precision_scorer
    >>> X, y = make_classification(200, class_sep=3.0, random_state=0)
    >>> bool(recall_at_precision_scorer(0.9)(LogisticRegression().fit(X, y), X, y) > 0.9)
    True
    """
    return _scorer("precision", precision, "recall")


def precision_at_recall_scorer(recall: float) -> Callable:
    """Return a scorer: the greatest precision of all thresholds that have a recall.

    Parameters
    ----------
    recall : float
        Lower bound on the recall.

    Returns
    -------
    scorer : callable
        With the signature ``scorer(estimator, X, y)``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from widemargin import precision_at_recall_scorer
    >>> X, y = make_classification(200, class_sep=3.0, random_state=0)
    >>> bool(precision_at_recall_scorer(0.9)(LogisticRegression().fit(X, y), X, y) > 0.9)
    True
    """
    return _scorer("recall", recall, "precision")


def _scorer(name: str, bound: float, other: str) -> Callable:
    if not isinstance(bound, Real) or not 0.0 < bound <= 1.0:
        raise ValueError(f"{name} must be a number greater than 0 and at most 1, got {bound!r}.")
    response = ("decision_function", "predict_proba")
    return make_scorer(_best_other, response_method=response, name=name, bound=bound, other=other)


def _best_other(
    y_true: ArrayLike, y_score: ArrayLike, *, name: str, bound: float, other: str
) -> float:
    """Return the best value of the other metric where the first one meets its bound."""
    labels = column_or_1d(y_true)
    classes = np.unique(labels)
    if len(classes) != 2:
        raise ValueError(f"y_true must contain labels of two classes, got {classes.tolist()}.")
    curve = ThresholdCurve(ScoredSamples(np.asarray(y_score), labels == classes[1]))
    met = getattr(curve, name) >= bound
    return float(getattr(curve, other)[met].max(initial=0.0))
