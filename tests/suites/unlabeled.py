"""Semi-supervised estimators for the shared suites, which pass labeled samples only."""

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing, check_array

from widemargin import PreferenceClassifier, PreferenceSVC, TransductiveSVC


class TwinsFromRows:
    """Passes every sample of positive weight as an unlabeled sample too."""

    def fit(self, X, y, X_unlabeled=None, sample_weight=None):
        return super().fit(X, y, X_unlabeled=twins(X, sample_weight), sample_weight=sample_weight)


class PreferenceOfTwins(TwinsFromRows, PreferenceSVC):
    """PreferenceSVC with unlabeled samples."""


class ClassifierOfTwins(TwinsFromRows, PreferenceClassifier):
    """PreferenceClassifier with unlabeled samples."""


class TransductiveOfTwins(TwinsFromRows, TransductiveSVC):
    """TransductiveSVC with unlabeled samples."""


def twins(X, weight):
    """Return the distinct samples of nonzero weight, in an order independent of theirs.

    Invalid samples and weights are returned as they are, for the estimator to refuse.
    """
    try:
        values = check_array(X, accept_sparse="csr")
        values = values.toarray() if sparse.issparse(values) else values
        counted = np.arange(len(values)) if weight is None else np.flatnonzero(np.asarray(weight))
        rows = counted[np.unique(values[counted], axis=0, return_index=True)[1]]
        return _safe_indexing(X.tocsr() if sparse.issparse(X) else X, rows) if len(rows) else X
    except (IndexError, TypeError, ValueError):
        return X
