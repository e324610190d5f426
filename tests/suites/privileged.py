"""Estimators with privileged columns for the shared suites, which give rows and labels only."""

from sklearn.utils import check_array

from widemargin import PrivilegedSVC, PrivilegedSVCCV, TwoViewSVC


class FromRows:
    """Takes the sizes of the first columns of X for privileged columns."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, privileged=sizes(X), sample_weight=sample_weight)


class PrivilegedFromRows(FromRows, PrivilegedSVC):
    """SVM2+ and SVM1+."""


class TwoViewFromRows(FromRows, TwoViewSVC):
    """SVM-2K."""


class SearchFromRows(FromRows, PrivilegedSVCCV):
    """The search."""


def sizes(X):
    """Sizes of all entries; rows that are no numbers are for the estimator to refuse."""
    try:
        return abs(check_array(X, accept_sparse="csr", ensure_all_finite=False))
    except (TypeError, ValueError):
        return X
