"""Incremental fits, prediction by Bayes' rule, and validation, for all discriminant classifiers."""

import copy
import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin, clone
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from widemargin._base.callbacks import FitProgress
from widemargin._base.docs import shared_docs
from widemargin._base.matmul import tiled_multiply
from widemargin._base.options import discriminant_options
from widemargin._base.sklearn_compat import (
    BaseEstimator,
    HasMethods,
    Interval,
    StrOptions,
    check_same_namespace,
    fit_context,
    naming,
)
from widemargin._base.threads import for_each
from widemargin._base.validation import (
    check_class_labels,
    check_indices,
    check_magnitude,
    check_non_negative,
    check_several_classes,
    validate_all_weights,
    validate_weights,
)
from widemargin.discriminant.covariance import SHRINKAGES
from widemargin.discriminant.namespaces import (
    empty_like,
    float_types,
    foreign_namespace,
    to_namespace_of,
    to_numpy,
    to_type_of,
)
from widemargin.discriminant.statistics import ClassStatistics, as_dense, sample_blocks


@shared_docs
class BayesClassifier(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Classifier that predicts by Bayes' rule.

    A class defines `_validate`, which returns validated samples for a method, and `_scores`, which
    returns their log priors plus log densities, up to a constant for each sample. There is one
    score for each class, or for two classes the difference of their scores.
    """

    classes_: np.ndarray

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
        return self._posterior(X, "predict_proba", expit, softmax)

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
        return self._posterior(X, "predict_log_proba", log_expit, log_softmax)

    def _posterior(self, X: Any, method: str, of_two: Any, of_many: Any) -> Any:
        """Return a function of the scores: one of log-odds, or one of the scores of all classes."""
        X = self._validate(X, method)
        scores = to_numpy(self._scores(X))
        if scores.ndim == 1:
            return to_namespace_of(np.column_stack([of_two(-scores), of_two(scores)]), X)
        return to_namespace_of(of_many(scores, axis=1), X)


def _has_partial_fit(estimator: Any) -> bool:
    if estimator._needs_samples(estimator.solver):
        raise AttributeError(
            "partial_fit is not available with solver='svd' or a covariance_estimator, which need "
            "all samples at once. Use solver='gram' and shrinkage."
        )
    return True


@shared_docs
class IncrementalClassifier(BayesClassifier):
    """Classifier that is fitted by class statistics, which `partial_fit` and `merge` update.

    New samples update the statistics at once. The attributes in `_fitted_names` are computed when
    they are first needed, with the parameters that the estimator had at that time. A class defines

    - `_check_solver`, which raises an error for incompatible parameters,
    - `_solver_for`, the solver for samples; without samples, one that needs only statistics,
    - `_statistics_options`, the keyword arguments of `ClassStatistics` for a solver,
    - `_estimate`, which returns the fitted attributes by name, from statistics, the classes, a
      solver, and the samples with their class indices and weights (None except in `fit`).
    """

    _parameter_constraints: dict = {
        "shrinkage": [StrOptions(set(SHRINKAGES)), Interval(Real, 0, 1, closed="both"), None],
        "priors": ["array-like", None],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_estimator": [HasMethods("fit"), None],
        "covariance_divisor": [StrOptions({"n", "unbiased"})],
    }
    _fitted_names: tuple[str, ...] = ()
    _declared = False
    _statistics: ClassStatistics | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._needs_samples(self.solver)
        return tags

    @property
    def statistics_(self) -> ClassStatistics | None:
        """Weight, mean and scatter of every class; None if the solver used the samples."""
        check_is_fitted(self)
        return self._statistics

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        <<X_train>>
        <<y>>
        <<counting_weight>>

        Returns
        -------
        <<returns_self>>
        """
        self._check_solver()
        X, y = validate_samples(self, X, y)
        classes, codes, weight = encode_samples(y, sample_weight)
        solver = self._solver_for(X)
        needs_samples = self._needs_samples(solver)
        if needs_samples and sp.issparse(X):
            raise TypeError(
                "X must be dense for solver='svd' and for a covariance_estimator, got sparse X. "
                "Use solver='gram' with shrinkage."
            )
        if weight is not None and self.covariance_estimator is not None:
            raise ValueError(
                "sample_weight is not supported with a covariance_estimator. Use shrinkage."
            )
        options = self._statistics_options(solver)
        statistics = ClassStatistics(len(classes), X.shape[1], **options)
        # One task, which nothing can stop: there is no model before its end.
        progress = FitProgress(self, 1, X, y, {"sample_weight": sample_weight})
        with progress.task(0):
            statistics.update(X, codes, weight)
            samples = as_dense(X) if needs_samples else X, codes, weight
            fitted = self._estimate(statistics, classes, solver, samples)
        self._declared, self._template = False, empty_like(X)
        self._store(classes, None if needs_samples else statistics)
        self._store_fitted(fitted)
        progress.close()
        return self

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
        <<counting_weight>>

        Returns
        -------
        <<returns_self>>
        """
        self._check_solver()
        first = not hasattr(self, "classes_")
        X, y = validate_samples(self, X, y, reset=first)
        weight = validate_all_weights(to_numpy(sample_weight), y)
        if weight is not None:
            check_non_negative(weight)
        declared = classes is not None if first else self._declared
        labels = _merge_labels(None if first else self.classes_, classes, y, declared)
        if first:
            options = self._statistics_options(self._solver_for())
            statistics = ClassStatistics(len(labels), X.shape[1], **options)
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

    def _needs_samples(self, solver: str) -> bool:
        """Return whether the statistics are not sufficient."""
        return solver == "svd" or self.covariance_estimator is not None

    def _check_solver(self) -> None:
        if self.covariance_estimator is not None and self.shrinkage:
            raise ValueError(
                "covariance_estimator and shrinkage parameters are not None. Only one of the two "
                "can be set."
            )
        if self.solver == "svd" and self.shrinkage is not None:
            raise NotImplementedError(
                "shrinkage not supported with 'svd' solver. Use solver='gram'."
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

    def _store(self, classes: np.ndarray, statistics: ClassStatistics | None) -> None:
        """Store statistics, and the parameters to compute the fitted attributes with later."""
        for name in self._fitted_names:
            self.__dict__.pop(name, None)
        self.classes_, self._statistics = classes, statistics
        self._pending: dict[str, Any] | None = self.get_params(deep=False)

    def _store_fitted(self, fitted: dict[str, Any]) -> None:
        # In one update: other threads see either all attributes or none.
        values = {name: to_type_of(value, self._template) for name, value in fitted.items()}
        self.__dict__.update(values, _pending=None)

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
        solver, (scatter, fourth) = self._solver_for(), statistics.kind
        options = self._statistics_options(solver)
        lacking = options["scatter"] == "classes" and scatter != "classes"
        if lacking or (options["fourth"] and not fourth) or self._needs_samples(solver):
            raise ValueError(
                "Parameters such as solver, shrinkage or priors were changed after the first "
                "samples, and need statistics that were not stored: set them before the first "
                "partial_fit."
            )

    def _finish_fit(self) -> None:
        """Compute the fitted attributes after `partial_fit` or `merge`."""
        parameters = vars(self).get("_pending")
        if parameters is not None and self._statistics is not None:
            n = np.count_nonzero(self._statistics.count)
            if n < 2:
                raise ValueError(f"y must contain at least two classes, got {n} class so far.")
            estimator = copy.copy(self)
            estimator.__dict__.update(parameters)
            solver = estimator._solver_for()
            self._store_fitted(estimator._estimate(self._statistics, self.classes_, solver, None))

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

    def _validate(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        self._finish_fit()
        X = supported(self, X)
        check_same_namespace(X, self, attribute="means_", method=method)
        return validate_data(self, X, reset=False, dtype=float_types(X), accept_sparse="csr")


def validate_samples(estimator: Any, X: Any, y: Any, reset: bool = True) -> tuple[Any, np.ndarray]:
    """Return numeric samples, dense, CSR or of another namespace, and labels as a NumPy array."""
    X, y = supported(estimator, X), to_numpy(y)
    if foreign_namespace(X) is None:
        with naming("X"):
            X, y = validate_data(estimator, X, y, reset=reset, dtype="numeric", accept_sparse="csr")
        check_magnitude(X)
        if sp.issparse(X):
            check_indices(X)
    else:
        X = validate_data(estimator, X, reset=reset, dtype=float_types(X))
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_consistent_length(X, y)
    check_class_labels(y)
    return X, y


def supported(estimator: Any, X: Any) -> Any:
    """Return samples as a NumPy array if the estimator does not compute in other namespaces."""
    if foreign_namespace(X) is None or get_tags(estimator).array_api_support:
        return X
    return to_numpy(X)


def encode_samples(y: np.ndarray, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the classes of samples of positive weight, the class indices, and the weights."""
    samples, positive = validate_weights(to_numpy(sample_weight), y)
    classes = np.unique(y[samples])
    check_several_classes(len(classes))
    # Samples of weight 0 remain, so that X is not copied; their labels may not be in classes.
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    weight = None if positive is None else np.zeros(len(y))
    if weight is not None:
        weight[samples] = positive
    return classes, codes, weight


def class_priors(priors: Any, weight: np.ndarray) -> np.ndarray:
    """Return the prior probabilities of classes by their weights, zero for those of weight 0."""
    if priors is None:
        return weight / weight.sum()
    with naming("priors"):
        values = np.array(priors, dtype=np.float64)
    if values.shape != weight.shape:
        raise ValueError(
            f"priors must contain one number for each of the {len(weight)} classes, got shape "
            f"{values.shape}."
        )
    if not (values >= 0).all() or not 0 < values.sum() < np.inf:
        raise ValueError(
            f"priors must be non-negative and finite with a positive sum, got {priors}."
        )
    if abs(values.sum() - 1.0) > discriminant_options.prior_sum:
        warnings.warn("The priors do not sum to 1. Renormalizing", UserWarning, stacklevel=4)
        values = values / values.sum()
    if not weight.all():
        values = np.where(weight > 0, values, 0.0)
        values = values / values.sum()
    return values


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


def _merge_labels(known: Any, classes: Any, y: np.ndarray, declared: bool) -> np.ndarray:
    """Return the classes after a batch with labels y; new ones only if none were declared."""
    present, classes = np.unique(y), None if classes is None else np.unique(classes)
    if known is None:
        known = classes
    elif classes is not None and not (declared and np.array_equal(classes, known)):
        raise ValueError(
            f"classes must be passed in the first call and stay the same, got {classes} after "
            f"{known}."
        )
    if known is None:
        return present
    _check_label_types(known, present, "y")
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
    strings = [array.dtype.kind in "UST" or isinstance(array[0], str) for array in (known, labels)]
    if strings[0] != strings[1]:
        raise ValueError(
            f"{name} must have labels of the same type as the earlier ones ({known}), got "
            f"{labels}. Use either strings or numbers."
        )
