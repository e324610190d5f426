"""Rows that a meta-estimator hands on as they are, to estimators that validate them."""

from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

__all__ = ["look_at"]


def look_at(estimator, X, y="no_validation"):
    """Check the shape of rows and remember, or compare, the features of ``estimator``.

    Parameters
    ----------
    estimator : estimator
        The one that is being fitted or asked.
    X : array-like, sparse matrix, frame, or a sequence of texts or dicts
        What it was given. Texts and dicts are none of our business.
    y : array-like, default="no_validation"
        Labels, where it is being fitted.
    """
    if not _is_sequence_of_things(X):
        check_array(X, accept_sparse=True, dtype=None, ensure_all_finite=False, estimator=estimator)
    fitting = not isinstance(y, str)
    validate_data(estimator, X, y, reset=fitting, skip_check_array=True)


def _is_sequence_of_things(X):
    if hasattr(X, "shape") and len(X.shape) != 1:
        return False
    first = next(iter(X), None) if hasattr(X, "__iter__") else None
    return isinstance(first, str | bytes | dict)
