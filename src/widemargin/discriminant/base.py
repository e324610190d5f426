"""What the discriminants share: checks at the door, statistics that grow and merge, Bayes' rule."""

import warnings
from abc import abstractmethod

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from widemargin._base.matmul import tiled_multiply
from widemargin._base.sklearn_compat import check_same_namespace, check_sample_weight, fit_context
from widemargin._base.threads import for_each
from widemargin._base.validation import validate_weights
from widemargin.discriminant.namespaces import (
    beside,
    float_types,
    foreign_namespace,
    in_namespace,
    like,
    to_numpy,
)
from widemargin.discriminant.statistics import ClassStatistics

_PREDICT_ENTRIES = 1 << 18


def _keeps_statistics(estimator):
    if estimator._works_on_rows():
        raise AttributeError(
            "partial_fit keeps statistics of the rows; solver='svd' and covariance_estimator work "
            "on the rows themselves: use solver='gram' and shrinkage."
        )
    return True


class GrowingMixin:
    """`partial_fit` and `merge` over statistics of the classes.

    New rows change the statistics at once; what is learned from them is computed when it is first
    asked for. A class lists in `_learned` what that is, says in `_statistics_options` what it has
    to know of the rows, and learns in `_learn`.
    """

    _learned: tuple[str, ...] = ()
    _declared = False

    @property
    def statistics_(self):
        """Weight, mean and scatter of every class; None where the solver worked on the rows."""
        check_is_fitted(self)
        return self._statistics

    @available_if(_keeps_statistics)
    @fit_context(prefer_skip_nested_validation=False)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Take in more rows.

        What was learned before is kept: rows in any number of pieces give what one `fit` on all of
        them gives, up to rounding. A piece may hold any classes, be it one. What does not fit into
        memory, such as files or the blocks of a Dask array, is given piece by piece.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.

        y : array-like of shape (n_samples,)
            Labels.

        classes : array-like of shape (n_classes,), default=None
            All labels that will come; other ones are then refused. By default a label is known
            once it has come.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, at least 0. A row of weight k counts as k rows.

        Returns
        -------
        self : object
            The estimator.
        """
        self._check_solver()
        first = not hasattr(self, "classes_")
        X, y = check_rows_and_labels(self, X, y, reset=first)
        weight = _nonnegative_weights(sample_weight, y)
        declared = classes is not None if first else self._declared
        labels = _known_labels(None if first else self.classes_, classes, y, declared)
        if first:
            statistics = ClassStatistics(len(labels), X.shape[1], **self._statistics_options())
        else:
            statistics = self._grown()
            self._check_statistics(statistics)
            if len(labels) > len(self.classes_):
                places = np.searchsorted(labels, self.classes_)
                statistics = statistics.placed(places, len(labels))
        statistics.update(X, np.searchsorted(labels, y), weight)
        self._declared, self._like = declared, like(X)
        self._keep(labels, statistics)
        return self

    def merge(self, other):
        """Take in the rows that another estimator has seen.

        Parameters
        ----------
        other : estimator of the same class
            Fitted with the same parameters, on other rows of the same features.

        Returns
        -------
        self : object
            The estimator, as if it had seen the rows of both.
        """
        if type(other) is not type(self):
            raise TypeError(f"other must be a {type(self).__name__}, got {type(other).__name__}.")
        mine, theirs = self._grown(), other._grown()
        if len(mine.origin) != len(theirs.origin):
            raise ValueError(
                f"other must know {len(mine.origin)} features as this estimator does, got one "
                f"of {len(theirs.origin)}."
            )
        if mine.kind != theirs.kind:
            raise ValueError(
                "other must have the same solver, shrinkage and kind of priors: the statistics "
                "that these need differ."
            )
        _check_kinds(self.classes_, other.classes_, "other")
        classes = np.union1d(self.classes_, other.classes_)
        statistics = mine.placed(np.searchsorted(classes, self.classes_), len(classes))
        statistics.merge(theirs.placed(np.searchsorted(classes, other.classes_), len(classes)))
        self._keep(classes, statistics)
        return self

    def _check_options(self):
        """Refuse parameters that do not go together, whatever the rows."""
        if self.covariance_estimator is not None and self.shrinkage:
            raise ValueError(
                "covariance_estimator and shrinkage parameters are not None. Only one of the two "
                "can be set."
            )
        if self.solver == "svd" and self.shrinkage is not None:
            raise NotImplementedError(
                "shrinkage not supported with 'svd' solver. Use solver='gram'."
            )

    def _check_needs(self, X, weight, on_rows):
        """Refuse rows and weights that what works on the rows does not take."""
        if on_rows and sp.issparse(X):
            raise TypeError(
                "X must be dense for solver='svd' and for a covariance_estimator, got sparse X: "
                "use solver='gram' with shrinkage."
            )
        if weight is not None and self.covariance_estimator is not None:
            raise ValueError("covariance_estimator takes no sample_weight: use shrinkage.")

    def _estimated(self, X):
        """The covariance of rows by the estimator that was given for it."""
        estimator = clone(self.covariance_estimator, safe=False)
        estimator.fit(X)
        if not hasattr(estimator, "covariance_"):
            raise ValueError(
                "covariance_estimator must have a covariance_ once it is fitted, "
                f"{type(estimator).__name__} does not have a covariance_ attribute."
            )
        return np.atleast_2d(estimator.covariance_)

    def _keep(self, classes, statistics, learned=None):
        """Keep new statistics and what was learned from them, or forget what was."""
        for name in self._learned:
            self.__dict__.pop(name, None)
        self.classes_, self._statistics, self._pending = classes, statistics, learned is None
        for name, value in (learned or {}).items():
            setattr(self, name, in_namespace(value, self._like))

    def _grown(self):
        check_is_fitted(self)
        if self._statistics is None:
            raise ValueError(
                f"{type(self).__name__} was fitted on the rows themselves and kept no statistics "
                "of them that could be added to: use solver='gram' and shrinkage."
            )
        return self._statistics

    def _check_statistics(self, statistics):
        """Refuse parameters, set since, that need to know more of the rows."""
        options = self._statistics_options()
        lacking = options["scatter"] == "classes" and not statistics.per_class
        if (
            lacking
            or (options.get("fourth") and statistics.fourth is None)
            or self._works_on_rows()
        ):
            raise ValueError(
                "Parameters such as solver, shrinkage or priors were changed after rows had come, "
                "of which they need to know more than was kept: set them before the first "
                "partial_fit."
            )

    def _settle(self):
        if self.__dict__.get("_pending"):
            self._check_statistics(self._statistics)
            self._keep(self.classes_, self._statistics, self._learn(self._statistics))

    def __getattr__(self, name):
        if name in type(self)._learned and self.__dict__.get("_pending"):
            try:
                self._settle()
            except ValueError as error:  # so that hasattr may ask
                raise NotFittedError(str(error)) from error
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self):
        return "classes_" in self.__dict__


class BayesMixin:
    """Predictions by Bayes' rule; a class gives the `_scores` of checked rows.

    There is a score for every class, or with two classes one: the second's less the first's.
    """

    classes_: np.ndarray

    @abstractmethod
    def _scores(self, X):
        """Logarithms of prior times density, up to a constant of each row."""

    def _settle(self):
        """Learn what is still to be learnt from the rows that have come."""

    def decision_function(self, X):
        """Logarithms of the posterior probabilities, up to a constant of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes the logarithm of the odds of ``classes_[1]``.
        """
        return self._scores(self._check_rows(X, "decision_function"))

    def predict(self, X):
        """The most probable class of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            One of `classes_` for every row.
        """
        X = self._check_rows(X, "predict")
        scores = to_numpy(self._scores(X))
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels = self.classes_[codes]
        return labels if labels.dtype.kind in "OUST" else beside(labels, X)

    def predict_proba(self, X):
        """The posterior probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            They sum to 1 in every row.
        """
        X = self._check_rows(X, "predict_proba")
        scores = to_numpy(self._scores(X))
        if scores.ndim == 1:
            return beside(np.column_stack([expit(-scores), expit(scores)]), X)
        return beside(softmax(scores, axis=1), X)

    def predict_log_proba(self, X):
        """The logarithms of the posterior probabilities, exact where these vanish.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Those of `predict_proba`.
        """
        X = self._check_rows(X, "predict_log_proba")
        scores = to_numpy(self._scores(X))
        if scores.ndim == 1:
            return beside(np.column_stack([log_expit(-scores), log_expit(scores)]), X)
        return beside(log_softmax(scores, axis=1), X)

    def _check_rows(self, X, method):
        check_is_fitted(self)
        self._settle()
        check_same_namespace(X, self, attribute="means_", method=method)
        return validate_data(self, X, reset=False, dtype=float_types(X), accept_sparse="csr")


def check_rows_and_labels(estimator, X, y, reset=True):
    """Rows of numbers, dense, CSR or of another namespace; labels as a NumPy array."""
    y = to_numpy(y)
    if foreign_namespace(X) is None:
        X, y = validate_data(estimator, X, y, reset=reset, dtype="numeric", accept_sparse="csr")
    else:
        X = validate_data(estimator, X, reset=reset, dtype=float_types(X))
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_consistent_length(X, y)
    if y.dtype.kind not in "biuUST":
        check_classification_targets(y)
    return X, y


def encode(y, sample_weight):
    """Classes of the rows that count, each row's class as a number, and the weights."""
    rows, weight = validate_weights(to_numpy(sample_weight), y)
    classes = np.unique(y[rows])
    if len(classes) < 2:
        raise ValueError(
            "y must hold at least two classes; the number of classes has to be greater than one; "
            f"got {len(classes)} class."
        )
    codes = np.searchsorted(classes, y)
    if weight is None:
        return classes, codes, None
    # Rows of no weight stay where they are, so that X is not copied; their class may be none.
    all_weights = np.zeros(len(y))
    all_weights[rows] = weight
    return classes, np.minimum(codes, len(classes) - 1), all_weights


def class_priors(priors, statistics):
    """The prior probability of every class, zero for classes without rows."""
    if priors is None:
        return statistics.weight / statistics.weight.sum()
    given = np.array(priors, dtype=np.float64)
    if given.shape != statistics.weight.shape:
        raise ValueError(
            f"priors must hold one number for each of the {len(statistics.weight)} classes, got "
            f"shape {given.shape}."
        )
    if not (given >= 0).all() or not 0 < given.sum() < np.inf:
        raise ValueError(f"priors must be non-negative, finite, and some positive, got {priors}.")
    if abs(given.sum() - 1.0) > 1e-5:
        warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=4)
        given = given / given.sum()
    if (statistics.count == 0).any():
        given = np.where(statistics.count > 0, given, 0.0)
        given = given / given.sum()
    return given


def log_of(priors):
    """Logarithms, minus infinity for zero."""
    with np.errstate(divide="ignore"):
        return np.log(priors)


def rows_times(X, matrix, origin=None):
    """``(X - origin) @ matrix``, every row on its own to the last bit.

    Dense and sparse rows are multiplied in blocks; those of another namespace where they are.
    """
    if foreign_namespace(X) is not None:
        return (X if origin is None else X - origin) @ matrix
    if origin is None and sp.issparse(X):
        return X @ matrix
    result = np.empty((X.shape[0], matrix.shape[1]), dtype=matrix.dtype)

    def multiply(rows):
        block = X[rows].toarray() if sp.issparse(X) else X[rows]
        if origin is not None:
            block = block - origin
        block = np.ascontiguousarray(block, dtype=matrix.dtype)
        tiled_multiply(block, matrix, out=result[rows])

    for_each(multiply, row_blocks(X))
    return result


def row_blocks(X):
    """Slices of rows that are small enough to be copied."""
    step = max(256, _PREDICT_ENTRIES // max(1, X.shape[1]))
    return [slice(start, start + step) for start in range(0, X.shape[0], step)]


def _nonnegative_weights(sample_weight, y):
    if sample_weight is None:
        return None
    weight = check_sample_weight(
        to_numpy(sample_weight), y, dtype=np.float64, allow_all_zero_weights=True
    )
    if weight.min() < 0:
        raise ValueError(
            f"sample_weight must be at least 0, got {weight.min()}: use 0 to leave a row out."
        )
    return weight


def _known_labels(known, classes, y, declared):
    """The labels after rows with labels y, of which some may be new unless all were declared."""
    present = np.unique(y)
    if known is not None:
        _check_kinds(known, present, "y")
    if classes is not None:
        classes = np.unique(classes)
        _check_kinds(classes, present, "y")
        if known is not None and not (declared and np.array_equal(classes, known)):
            raise ValueError(
                f"classes must be given at the first call and stay the same, got {classes} after "
                f"{known}."
            )
        known = classes
    if known is None:
        return present
    labels = np.union1d(known, present)
    if declared and len(labels) > len(known):
        raise ValueError(
            f"y must hold labels among classes={known} only, got {np.setdiff1d(present, known)}: "
            "give all labels that will come as classes at the first call, or none."
        )
    return labels


def _check_kinds(known, labels, name):
    """Refuse to mix words and numbers."""
    words = [part.dtype.kind in "UST" or isinstance(part[0], str) for part in (known, labels)]
    if words[0] != words[1]:
        raise ValueError(
            f"{name} must have labels of the kind of those that are known ({known}), got {labels}: "
            "words or numbers, not both."
        )
