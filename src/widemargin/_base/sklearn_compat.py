"""Every private name of scikit-learn that the library uses, in one place.

A release of scikit-learn that moves one of them breaks this file and no other.
"""

# ruff: noqa: F401 - the names are imported for other modules

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

import sklearn.base
from sklearn import config_context, get_config
from sklearn.base import _clone_parametrized as clone_parametrized
from sklearn.callback._callback_support import callback_management_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._array_api import check_same_namespace, device, get_namespace, move_to
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads as openmp_effective_n_threads
from sklearn.utils._param_validation import HasMethods, Hidden, Interval, Options, StrOptions
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.multiclass import _ovr_decision_function as ovr_decision_function
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _check_n_features as check_n_features
from sklearn.utils.validation import _check_sample_weight, _is_fitted
from sklearn.utils.validation import _check_y as check_y
from sklearn.utils.validation import _get_feature_names as get_feature_names
from sklearn.utils.validation import _num_samples as num_samples

from widemargin._base.transactions import unchanged_by_failure

# The stub of the package imports all modules, this one too.
__version__: str = import_module("widemargin").__version__


_parameter_names: WeakKeyDictionary[type, list[str]] = WeakKeyDictionary()


class BaseEstimator(sklearn.base.BaseEstimator):
    """scikit-learn's base class of estimators; pickles contain the version of widemargin."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        # Read from the signature once: every fit needs them, which takes long beside a small one.
        if cls not in _parameter_names:
            _parameter_names[cls] = super()._get_param_names()
        return list(_parameter_names[cls])

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_widemargin_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        version = state.get("_widemargin_version", "without a version number")
        if version != __version__:
            warnings.warn(
                f"This {type(self).__name__} was saved by widemargin {version} and loaded by "
                f"widemargin {__version__}. It may fail or predict something else. Fit it again, "
                "or use the version that saved it.",
                UserWarning,
                stacklevel=2,
            )
        super().__setstate__({k: v for k, v in state.items() if k != "_widemargin_version"})


def __getattr__(name: str) -> Any:
    if name == "SparseCoefMixin":  # its module takes long to import
        from sklearn.linear_model._base import SparseCoefMixin

        return SparseCoefMixin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Callable], Callable]:
    """Decorate ``fit``: scikit-learn's ``_fit_context``, and a failure leaves the model unchanged.

    It does not call scikit-learn's, so that warnings find the caller at the same stack level.
    """

    def decorate(fit: Callable) -> Callable:
        @functools.wraps(fit)
        def checked_fit(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            skip = get_config()["skip_parameter_validation"]
            if not skip and not (fit.__name__ == "partial_fit" and _is_fitted(estimator)):
                validate_parameters(estimator)
            with (
                unchanged_by_failure(estimator),
                config_context(skip_parameter_validation=prefer_skip_nested_validation or skip),
                callback_management_context(estimator),
            ):
                return fit(estimator, *args, **kwargs)

        return checked_fit

    return decorate


@contextlib.contextmanager
def naming(argument: str) -> Iterator[None]:
    """Name the argument in the message of a failed conversion to numbers."""
    try:
        yield
    except (TypeError, ValueError) as error:
        unconverted = ("could not convert", "float() argument", "int() argument")
        if not str(error).startswith(unconverted):
            raise
        raise type(error)(f"{argument} must contain numbers, but {error}.") from error


def check_sample_weight(sample_weight: Any, X: Any, **options: Any) -> Any:
    """Return validated weights of the samples X."""
    with naming("sample_weight"):
        return _check_sample_weight(sample_weight, X, **options)


def validate_parameters(estimator: Any) -> None:
    """Raise an InvalidParameterError if a constructor parameter is not valid."""
    estimator._validate_params()


def metric_of(scorer: Any) -> Callable:
    """Return the metric of a scorer; of another callable, itself."""
    return getattr(scorer, "_score_func", scorer)


def kernel_arguments(transformer: Any) -> dict[str, Any]:
    """Return the keyword arguments of `pairwise_kernels` for a Nystroem transformer."""
    return transformer._get_kernel_params()


def has_callbacks(estimator: Any) -> bool:
    """Return whether callbacks are registered on the estimator."""
    return bool(getattr(estimator, "_skl_callbacks", None))


def init_callback_context(estimator: Any, **options: Any) -> Any:
    """Return the root callback context of a fit."""
    return estimator._init_callback_context(**options)
