"""Machines of unlabelled rows for the shared suites, which give labelled ones only."""

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing, check_array

from widemargin import PreferenceClassifier, PreferenceSVC, TransductiveSVC


class TwinsFromRows:
    """Takes every row that counts for a row without a label as well."""

    def fit(self, X, y, X_unlabeled=None, sample_weight=None):
        return super().fit(X, y, X_unlabeled=twins(X, sample_weight), sample_weight=sample_weight)


class PreferenceOfTwins(TwinsFromRows, PreferenceSVC):
    """Rounds of a kernel machine."""


class ClassifierOfTwins(TwinsFromRows, PreferenceClassifier):
    """Rounds of any classifier."""


class TransductiveOfTwins(TwinsFromRows, TransductiveSVC):
    """Exchanges of labels."""


def twins(X, weight):
    """One of each of the rows whose weight is not 0, in an order that theirs does not change.

    Rows that are no numbers and weights of nothing are for the estimator to refuse.
    """
    try:
        values = check_array(X, accept_sparse="csr")
        values = values.toarray() if sparse.issparse(values) else values
        counted = np.arange(len(values)) if weight is None else np.flatnonzero(np.asarray(weight))
        rows = counted[np.unique(values[counted], axis=0, return_index=True)[1]]
        return _safe_indexing(X.tocsr() if sparse.issparse(X) else X, rows) if len(rows) else X
    except (IndexError, TypeError, ValueError):
        return X
