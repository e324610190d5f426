"""Incremental fits, prediction by Bayes' rule, and validation, for all discriminant classifiers."""

import copy
import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from widemargin._base.docs import shared_docs
from widemargin._base.matmul import tiled_multiply
from widemargin._base.options import discriminant_options
from widemargin._base.sklearn_compat import check_same_namespace, fit_context
from widemargin._base.threads import for_each
from widemargin._base.validation import check_class_labels, validate_all_weights, validate_weights
from widemargin.discriminant.namespaces import (
    empty_like,
    float_types,
    foreign_namespace,
    to_namespace_of,
    to_numpy,
    to_type_of,
)
from widemargin.discriminant.statistics import ClassStatistics


def _has_partial_fit(estimator: Any) -> bool:
    if estimator._needs_samples():
        raise AttributeError(
            "partial_fit is not available with solver='svd' or a covariance_estimator, which need "
            "all samples at once. Use solver='gram' and shrinkage."
        )
    return True


@shared_docs
class IncrementalMixin:
    """`partial_fit` and `merge` by class statistics.

    New samples update the statistics at once. The attributes in `_fitted_names` are computed when
    they are first needed, with the parameters that the estimator had at that time. A class defines
    `_statistics_options`, the statistics that it needs, and `_estimate`, which returns the fitted
    attributes.
    """

    _fitted_names: tuple[str, ...] = ()
    _declared = False
    _statistics: ClassStatistics | None
    _template: Any
    classes_: np.ndarray

    @abstractmethod
    def _statistics_options(self) -> dict[str, Any]:
        """Return the keyword arguments of `ClassStatistics`."""

    @abstractmethod
    def _estimate(self, statistics: ClassStatistics) -> dict[str, Any]:
        """Return the fitted attributes by name."""

    @abstractmethod
    def _needs_samples(self) -> bool:
        """Return whether the statistics are not sufficient."""

    @abstractmethod
    def _check_solver(self) -> None:
        """Raise an error if parameters are incompatible."""

    @property
    def statistics_(self) -> ClassStatistics | None:
        """Weight, mean and scatter of every class; None if the solver used the samples."""
        check_is_fitted(self)
        return self._statistics

    @available_if(_has_partial_fit)
    @fit_context(prefer_skip_nested_validation=False)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Update the model with a batch of samples.

        Batches of any size give the same model as one `fit` on all samples, up to rounding. A
        batch may contain any number of classes. Data that do not fit into memory, such as files or
        the blocks of a Dask array, are passed batch by batch.

        Parameters
        ----------
        <<X_train>>
        <<y>>
        classes : array-like of shape (n_classes,), default=None
            All classes that will occur; other labels then raise an error. By default a class is
            added when it first occurs.
        <<density_weight>>

        Returns
        -------
        <<returns_self>>
        """
        self._check_solver()
        first = not hasattr(self, "classes_")
        X, y = validate_samples(self, X, y, reset=first)
        weight = _validate_batch_weights(sample_weight, y)
        declared = classes is not None if first else self._declared
        labels = _merge_labels(None if first else self.classes_, classes, y, declared)
        if first:
            statistics = ClassStatistics(len(labels), X.shape[1], **self._statistics_options())
        else:
            statistics = self._incremental_statistics()
            self._check_statistics(statistics)
            if len(labels) > len(self.classes_):
                index = np.searchsorted(labels, self.classes_)
                statistics = statistics.expanded(index, len(labels))
        statistics.update(X, np.searchsorted(labels, y), weight)
        self._declared, self._template = declared, empty_like(X)
        self._store(labels, statistics)
        return self

    def merge(self, other: Any) -> Self:
        """Add the samples that another estimator was fitted on.

        Parameters
        ----------
        other : estimator of the same class
            Estimator fitted with the same parameters on other samples of the same features.

        Returns
        -------
        self : object
            The estimator, as if fitted on the samples of both.
        """
        if type(other) is not type(self):
            raise TypeError(f"other must be a {type(self).__name__}, got {type(other).__name__}.")
        statistics, others = self._incremental_statistics(), other._incremental_statistics()
        if len(statistics.origin) != len(others.origin):
            raise ValueError(
                f"other must have been fitted with {len(statistics.origin)} features, as this "
                f"estimator, got {len(others.origin)}."
            )
        if statistics.kind != others.kind:
            raise ValueError(
                "other must have the same solver, shrinkage and kind of priors, because they "
                "determine which statistics are stored."
            )
        self._check_statistics(statistics)
        _check_label_types(self.classes_, other.classes_, "other")
        classes = np.union1d(self.classes_, other.classes_)
        merged = statistics.expanded(np.searchsorted(classes, self.classes_), len(classes))
        merged.merge(others.expanded(np.searchsorted(classes, other.classes_), len(classes)))
        self._store(classes, merged)
        return self

    def _begin_fit(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray | None]:
        """Return validated samples, the classes, the class indices, and the weights."""
        self._check_solver()
        X, y = validate_samples(self, X, y)
        return X, *encode_targets(y, sample_weight)

    def _check_options(self) -> None:
        """Raise an error for parameters that are incompatible with each other."""
        estimator: Any = self
        if estimator.covariance_estimator is not None and estimator.shrinkage:
            raise ValueError(
                "covariance_estimator and shrinkage parameters are not None. Only one of the two "
                "can be set."
            )
        if estimator.solver == "svd" and estimator.shrinkage is not None:
            raise NotImplementedError(
                "shrinkage not supported with 'svd' solver. Use solver='gram'."
            )

    def _check_support(self, X: Any, weight: np.ndarray | None, needs_samples: bool) -> None:
        """Raise an error for samples and weights that the solver does not support."""
        if needs_samples and sp.issparse(X):
            raise TypeError(
                "X must be dense for solver='svd' and for a covariance_estimator, got sparse X. "
                "Use solver='gram' with shrinkage."
            )
        if weight is not None and self.covariance_estimator is not None:
            raise ValueError(
                "sample_weight is not supported with a covariance_estimator. Use shrinkage."
            )

    def _estimated_covariance(self, X: np.ndarray) -> np.ndarray:
        """Return the covariance of samples by `covariance_estimator`."""
        estimator = clone(self.covariance_estimator, safe=False)
        estimator.fit(X)
        if not hasattr(estimator, "covariance_"):
            raise ValueError(
                "covariance_estimator must have a covariance_ attribute after fit, but "
                f"{type(estimator).__name__} does not have a covariance_ attribute."
            )
        return np.atleast_2d(estimator.covariance_)

    def _store(
        self,
        classes: np.ndarray,
        statistics: ClassStatistics | None,
        fitted: Mapping[str, Any] | None = None,
    ) -> None:
        """Store statistics and fitted attributes, or the parameters to compute these with later."""
        for name in self._fitted_names:
            vars(self).pop(name, None)
        self.classes_, self._statistics = classes, statistics
        if fitted is None:
            self._pending: dict[str, Any] | None = self.get_params(deep=False)
        else:
            self._store_fitted(fitted)

    def _store_fitted(self, fitted: Mapping[str, Any]) -> None:
        # In one update: other threads see either all attributes or none.
        values = {name: to_type_of(value, self._template) for name, value in fitted.items()}
        vars(self).update(values, _pending=None)

    def _incremental_statistics(self) -> ClassStatistics:
        check_is_fitted(self)
        if self._statistics is None:
            raise ValueError(
                f"{type(self).__name__} was fitted with a solver that stores no statistics, so "
                "that samples cannot be added. Use solver='gram' and shrinkage."
            )
        return self._statistics

    def _check_statistics(self, statistics: ClassStatistics) -> None:
        """Raise an error if parameters that were changed need statistics that were not stored."""
        options = self._statistics_options()
        lacking = options["scatter"] == "classes" and not statistics.per_class
        if (
            lacking
            or (options.get("fourth") and statistics.fourth is None)
            or self._needs_samples()
        ):
            raise ValueError(
                "Parameters such as solver, shrinkage or priors were changed after the first "
                "samples, and need statistics that were not stored: set them before the first "
                "partial_fit."
            )

    def _finish_fit(self) -> None:
        """Compute the fitted attributes after `partial_fit` or `merge`."""
        parameters = vars(self).get("_pending")
        if parameters is not None and self._statistics is not None:
            estimator = copy.copy(self)
            vars(estimator).update(parameters)
            self._store_fitted(estimator._estimate(self._statistics))

    def __getattr__(self, name: str) -> Any:
        if name in type(self)._fitted_names and vars(self).get("_pending") is not None:
            try:
                self._finish_fit()
            except ValueError as error:  # hasattr expects an AttributeError
                raise NotFittedError(str(error)) from error
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "classes_" in vars(self)


@shared_docs
class BayesMixin:
    """Prediction by Bayes' rule from `_scores`.

    There is one score for each class, or for two classes the difference of their scores.
    """

    classes_: np.ndarray

    @abstractmethod
    def _scores(self, X: Any) -> Any:
        """Return log prior plus log density, up to a constant for each sample."""

    def _finish_fit(self) -> None:
        """Compute fitted attributes that were postponed."""

    def decision_function(self, X: Any) -> Any:
        """Compute the logarithms of the posterior probabilities, up to a constant per sample.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores of the classes. For two classes the log-odds of ``classes_[1]``.
        """
        return self._scores(self._validate(X, "decision_function"))

    def predict(self, X: Any) -> Any:
        """Predict class labels.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        <<returns_labels>>
        """
        X = self._validate(X, "predict")
        scores = to_numpy(self._scores(X))
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        labels = self.classes_[codes]
        return labels if labels.dtype.kind in "OUST" else to_namespace_of(labels, X)

    def predict_proba(self, X: Any) -> Any:
        """Compute the posterior probabilities of the classes.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Probabilities that sum to 1 for each sample.
        """
        X = self._validate(X, "predict_proba")
        scores = to_numpy(self._scores(X))
        if scores.ndim == 1:
            return to_namespace_of(np.column_stack([expit(-scores), expit(scores)]), X)
        return to_namespace_of(softmax(scores, axis=1), X)

    def predict_log_proba(self, X: Any) -> Any:
        """Compute the logarithms of the posterior probabilities, accurate where these underflow.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Logarithms of `predict_proba`.
        """
        X = self._validate(X, "predict_log_proba")
        scores = to_numpy(self._scores(X))
        if scores.ndim == 1:
            return to_namespace_of(np.column_stack([log_expit(-scores), log_expit(scores)]), X)
        return to_namespace_of(log_softmax(scores, axis=1), X)

    def _validate(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        self._finish_fit()
        check_same_namespace(X, self, attribute="means_", method=method)
        return validate_data(self, X, reset=False, dtype=float_types(X), accept_sparse="csr")


def validate_samples(estimator: Any, X: Any, y: Any, reset: bool = True) -> tuple[Any, np.ndarray]:
    """Return numeric samples, dense, CSR or of another namespace, and labels as a NumPy array."""
    y = to_numpy(y)
    if foreign_namespace(X) is None:
        X, y = validate_data(estimator, X, y, reset=reset, dtype="numeric", accept_sparse="csr")
    else:
        X = validate_data(estimator, X, reset=reset, dtype=float_types(X))
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_consistent_length(X, y)
    check_class_labels(y)
    return X, y


def encode_targets(
    y: np.ndarray, sample_weight: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the classes of samples of positive weight, the class indices, and the weights."""
    samples, weight = validate_weights(to_numpy(sample_weight), y)
    classes = np.unique(y[samples])
    if len(classes) < 2:
        raise ValueError(
            "y must contain at least two classes; the number of classes has to be greater than "
            f"one; got {len(classes)} class."
        )
    codes = np.searchsorted(classes, y)
    if weight is None:
        return classes, codes, None
    # Samples of weight 0 remain, so that X is not copied; their labels may not be in classes.
    all_weights = np.zeros(len(y))
    all_weights[samples] = weight
    return classes, np.minimum(codes, len(classes) - 1), all_weights


def class_priors(priors: Any, statistics: ClassStatistics) -> np.ndarray:
    """Return the prior probabilities of the classes, zero for classes without samples."""
    if priors is None:
        return statistics.weight / statistics.weight.sum()
    given = np.array(priors, dtype=np.float64)
    if given.shape != statistics.weight.shape:
        raise ValueError(
            f"priors must contain one number for each of the {len(statistics.weight)} classes, got "
            f"shape {given.shape}."
        )
    if not (given >= 0).all() or not 0 < given.sum() < np.inf:
        raise ValueError(
            f"priors must be non-negative and finite with a positive sum, got {priors}."
        )
    if abs(given.sum() - 1.0) > discriminant_options.prior_sum:
        warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=4)
        given = given / given.sum()
    if (statistics.count == 0).any():
        given = np.where(statistics.count > 0, given, 0.0)
        given = given / given.sum()
    return given


def log_priors(priors: np.ndarray) -> np.ndarray:
    """Return the logarithms of priors, minus infinity for zero."""
    with np.errstate(divide="ignore"):
        return np.log(priors)


def project(X: Any, matrix: Any, origin: Any = None) -> Any:
    """Return ``(X - origin) @ matrix``, where the bits of a sample do not depend on the others.

    Dense and sparse samples are multiplied in blocks, those of another namespace on their device.
    """
    if foreign_namespace(X) is not None:
        return (X if origin is None else X - origin) @ matrix
    if origin is None and sp.issparse(X):
        return X @ matrix
    result = np.empty((X.shape[0], matrix.shape[1]), dtype=matrix.dtype)

    def multiply(samples: slice) -> None:
        block = X[samples].toarray() if sp.issparse(X) else X[samples]
        if origin is not None:
            block = block - origin
        block = np.ascontiguousarray(block, dtype=matrix.dtype)
        tiled_multiply(block, matrix, out=result[samples])

    for_each(multiply, sample_blocks(X))
    return result


def sample_blocks(X: Any) -> list[slice]:
    """Return slices of samples that are small enough to be copied."""
    options = discriminant_options
    step = max(options.smallest_chunk, options.predict_entries // max(1, X.shape[1]))
    return [slice(start, start + step) for start in range(0, X.shape[0], step)]


def _validate_batch_weights(sample_weight: Any, y: np.ndarray) -> np.ndarray | None:
    weight = validate_all_weights(to_numpy(sample_weight), y)
    if weight is not None and weight.min() < 0:
        raise ValueError(
            f"sample_weight must be at least 0, got {weight.min()}. Use 0 to leave a sample out."
        )
    return weight


def _merge_labels(
    known: np.ndarray | None, classes: Any, y: np.ndarray, declared: bool
) -> np.ndarray:
    """Return the classes after a batch with labels y; new ones only if none were declared."""
    present = np.unique(y)
    if known is not None:
        _check_label_types(known, present, "y")
    if classes is not None:
        classes = np.unique(classes)
        _check_label_types(classes, present, "y")
        if known is not None and not (declared and np.array_equal(classes, known)):
            raise ValueError(
                f"classes must be passed in the first call and stay the same, got {classes} after "
                f"{known}."
            )
        known = classes
    if known is None:
        return present
    labels = np.union1d(known, present)
    if declared and len(labels) > len(known):
        raise ValueError(
            f"y must contain only labels from classes={known}, got "
            f"{np.setdiff1d(present, known)}. Pass all labels as classes in the first call, or "
            "omit classes."
        )
    return labels


def _check_label_types(known: np.ndarray, labels: np.ndarray, name: str) -> None:
    """Raise an error if strings and numbers are mixed."""
    strings = [part.dtype.kind in "UST" or isinstance(part[0], str) for part in (known, labels)]
    if strings[0] != strings[1]:
        raise ValueError(
            f"{name} must have labels of the same type as the earlier ones ({known}), got "
            f"{labels}. Use either strings or numbers."
        )
