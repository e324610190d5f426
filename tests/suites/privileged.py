"""Estimators with privileged features for the shared suites, which pass samples and labels only."""

from sklearn.utils import check_array

from widemargin import PrivilegedSVC, PrivilegedSVCCV, TwoViewSVC


class FromRows:
    """Uses the absolute values of X as privileged features."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, privileged=sizes(X), sample_weight=sample_weight)


class PrivilegedFromRows(FromRows, PrivilegedSVC):
    """SVM2+ and SVM1+."""


class TwoViewFromRows(FromRows, TwoViewSVC):
    """SVM-2K."""


class SearchFromRows(FromRows, PrivilegedSVCCV):
    """The search."""


def sizes(X):
    """Absolute values; samples that are not numbers are left for the estimator to reject."""
    try:
        return abs(check_array(X, accept_sparse="csr", ensure_all_finite=False))
    except (TypeError, ValueError):
        return X
