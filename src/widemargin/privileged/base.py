"""What the estimators with privileged features have in common."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.sklearn_compat import HasMethods, Interval, StrOptions
from widemargin._base.validation import validate_kernel_training
from widemargin.kernels import KERNEL_NAMES
from widemargin.kernels.parameters import KernelParameters
from widemargin.privileged.features import PrivilegedInput
from widemargin.privileged.slack_functions import (
    PrivilegedFunctions,
    PrivilegedKernel,
    validate_privileged,
)
from widemargin.svm.kernel_classifier import KernelClassifierMixin
from widemargin.svm.svc import SVC
from widemargin.svm.training import Training, prepare_training

_SVC_PARAMETERS = (
    "kernel", "degree", "gamma", "coef0", "tol", "cache_size", "class_weight", "verbose",
    "max_iter", "n_jobs",
)  # fmt: skip
_PRIVILEGED_ATTRIBUTES = (
    "privileged_dual_coef_", "privileged_intercept_", "slack_", "_privileged_functions",
)  # fmt: skip


class PrivilegedBase(KernelClassifierMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """Base class of kernel classifiers, one-vs-rest, that are fitted with privileged features.

    Predictions depend on fitted attributes only.
    """

    _parameter_constraints: dict = {
        **{name: SVC._parameter_constraints[name] for name in _SVC_PARAMETERS},
        "C": [Interval(Real, 0.0, np.inf, closed="neither")],
        "privileged_kernel": [StrOptions({*KERNEL_NAMES, "precomputed"}), callable],
        "privileged_degree": [Interval(Integral, 0, None, closed="left")],
        "privileged_gamma": [
            StrOptions({"scale", "auto"}),
            Interval(Real, 0.0, None, closed="left"),
        ],
        "privileged_coef0": [Interval(Real, None, None, closed="neither")],
        "privileged_transformer": [HasMethods(["fit", "transform"]), None],
    }

    # Metadata routing passes the privileged features on without a request.
    __metadata_request__fit = {"privileged": True}

    _privileged_functions: PrivilegedFunctions

    @property
    def privileged_transformer_(self) -> Any:
        """The fitted `privileged_transformer`."""
        check_is_fitted(self)
        functions = getattr(self, "_privileged_functions", None)
        if functions is None or functions.features is None or not functions.features.transformer:
            raise AttributeError(
                "privileged_transformer_ is only available after a fit with privileged features "
                "and a privileged_transformer."
            )
        return functions.features.transformer

    def _set_fitted(
        self, attributes: dict[str, Any], functions: PrivilegedFunctions | None
    ) -> None:
        """Set the fitted attributes; those of an earlier fit with privileged features go."""
        for name in _PRIVILEGED_ATTRIBUTES:
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes)
        self._expansion.use_float32_within(self.tol)
        if functions is not None:
            self._privileged_functions = functions
            self.privileged_intercept_ = functions.intercept
            if functions.expansion is not None:
                self.privileged_dual_coef_ = functions.expansion.coefficients


@dataclass(frozen=True)
class FitData:
    """Validated and encoded arguments of a fit."""

    X: Any
    y: np.ndarray
    privileged: PrivilegedInput | None
    training: Training
    kernel: PrivilegedKernel | None
    metadata: dict[str, Any]

    @staticmethod
    def prepare(estimator: Any, X: Any, y: Any, privileged: Any, sample_weight: Any) -> "FitData":
        """Validate the arguments of a fit, once, and resolve the parameters of both kernels."""
        X, y = validate_kernel_training(estimator, X, y, estimator.kernel)
        training = encode(estimator, X, y, sample_weight)
        validated = validate_privileged(estimator, privileged, len(y))
        kernel = PrivilegedKernel.fit(estimator, validated, training)
        metadata = {"sample_weight": sample_weight, "privileged": privileged}
        return FitData(X, y, validated, training, kernel, metadata)

    @property
    def n_problems(self) -> int:
        """Number of binary subproblems."""
        return len(self.training.reduction.problems)

    def open_progress(self, estimator: Any, n_tasks: int) -> FitProgress:
        """Start the callbacks of the fit."""
        return FitProgress.open(estimator, n_tasks, self.X, self.y, self.metadata)


def encode(estimator: Any, X: Any, y: np.ndarray, sample_weight: Any) -> Training:
    """Encode validated targets and resolve the kernel parameters of X."""
    return prepare_training(
        X, y, sample_weight, KernelParameters.of(estimator), class_weight=estimator.class_weight
    )
