"""Every private name of scikit-learn that the library uses, in one place.

A release of scikit-learn that moves one of them breaks this file and no other.
"""

# ruff: noqa: F401 - the names are imported for other modules

from typing import Any

from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._array_api import check_same_namespace, device, get_namespace, move_to
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads as openmp_effective_n_threads
from sklearn.utils._param_validation import HasMethods, Hidden, Interval, StrOptions
from sklearn.utils._set_output import _get_adapter_from_container as get_adapter_from_container
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.multiclass import _ovr_decision_function as ovr_decision_function
from sklearn.utils.validation import _check_feature_names as check_feature_names
from sklearn.utils.validation import _check_n_features as check_n_features
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _check_y as check_y
from sklearn.utils.validation import _get_feature_names as get_feature_names
from sklearn.utils.validation import _num_samples as num_samples


def __getattr__(name: str) -> Any:
    if name == "SparseCoefMixin":  # its module takes long to import
        from sklearn.linear_model._base import SparseCoefMixin

        return SparseCoefMixin
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def validate_parameters(estimator: Any) -> None:
    """Raise an InvalidParameterError if a constructor parameter is not valid."""
    estimator._validate_params()


def has_callbacks(estimator: Any) -> bool:
    """Return whether callbacks are registered on the estimator."""
    return bool(getattr(estimator, "_skl_callbacks", None))


def init_callback_context(estimator: Any, **options: Any) -> Any:
    """Return the root callback context of a fit."""
    return estimator._init_callback_context(**options)
