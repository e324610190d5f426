"""What estimators with privileged columns have in common: an SVC with a second set of columns."""

import warnings
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from widemargin._base.matmul import tiled_multiply
from widemargin._base.sklearn_compat import HasMethods, Interval, StrOptions, num_samples
from widemargin.kernels import KernelGram, MatrixGram
from widemargin.kernels.functions import KernelNames
from widemargin.privileged.features import PrivilegedColumns, check
from widemargin.svm import support

_PASSED_ON = (
    "C", "kernel", "degree", "gamma", "coef0", "tol", "cache_size", "class_weight", "verbose",
    "max_iter", "n_jobs",
)  # fmt: skip
_LEARNED = ("privileged_", "_privileged_", "slack_")


@dataclass(frozen=True)
class Side:
    """The privileged side of a fit: the columns of the rows that count, and their kernel."""

    Z: Any
    weight: np.ndarray
    gram: KernelGram | MatrixGram
    columns: PrivilegedColumns | None
    gamma: float
    order: np.ndarray
    n_samples: int


class PrivilegedBase(support.TransitionalSVC):
    """An `SVC` of one class against the rest that is told more about its training rows."""

    _parameter_constraints: dict = {
        **{name: support.TransitionalSVC._parameter_constraints[name] for name in _PASSED_ON},
        "C": [Interval(Real, 0.0, np.inf, closed="neither")],
        "privileged_kernel": [StrOptions(KernelNames("precomputed")), callable],
        "privileged_degree": [Interval(Integral, 0, None, closed="left")],
        "privileged_gamma": [
            StrOptions({"scale", "auto"}),
            Interval(Real, 0.0, None, closed="left"),
        ],
        "privileged_coef0": [Interval(Real, None, None, closed="neither")],
        "privileged_transformer": [HasMethods(["fit", "transform"]), None],
    }

    # Routing hands the privileged columns on without being asked to.
    __metadata_request__fit = {"privileged": True}

    multi_class = "ovr"
    decision_function_shape = "ovr"
    break_ties = False
    shrinking = True
    gap_tol = None
    class_margin = None

    def _privileged_machine(self):
        """An `SVC` whose kernel is that of the privileged columns."""
        return support.TransitionalSVC(
            kernel=self.privileged_kernel,
            degree=self.privileged_degree,
            gamma=self.privileged_gamma,
            coef0=self.privileged_coef0,
        )

    def _side(self, privileged, training, n_samples, tell=True):
        """The privileged side of training data, None without privileged columns."""
        weight = training.costs(1.0)
        if not (weight > 0.0).all():
            raise ValueError(
                "class_weight must be greater than 0 for every class: leave rows that are not to "
                "count out of X, or give them a sample_weight of 0."
            )
        if privileged is None:
            if tell:
                warnings.warn(
                    f"privileged was not given: {type(self).__name__} is fitted as a plain SVM of "
                    "the same loss, whose slack is free. Pass privileged to fit.",
                    UserWarning,
                    stacklevel=4,
                )
            return None
        given = num_samples(privileged)
        if given != n_samples:
            raise ValueError(
                f"privileged has {given} rows, but X has {n_samples}: it needs one for every "
                "training row."
            )
        machine, order = self._privileged_machine(), training.order
        if self._privileged_is_pairwise():
            learned, values = None, privileged
            if not callable(self.privileged_kernel):
                values = check(privileged)
                if sp.issparse(values) or values.shape[0] != values.shape[1]:
                    raise ValueError(
                        "privileged must be a dense square matrix for "
                        f"privileged_kernel='precomputed', got shape {values.shape}. A search "
                        "that cuts it on both sides is PrivilegedSVCCV."
                    )
        else:
            learned, values = PrivilegedColumns.learn(
                privileged, self.privileged_transformer, order, tell
            )
        gamma = machine._effective_gamma(values, order, training.weight, self.privileged_gamma)
        try:
            gram = machine._gram(values, order, gamma)
        except ValueError as error:
            if self._privileged_is_pairwise():
                raise ValueError(f"privileged is no kernel matrix: {error}") from error
            raise ValueError(
                "privileged holds values that are too large for privileged_kernel: scale them, "
                "for example by privileged_transformer=StandardScaler()."
            ) from error
        rows = values if self._privileged_is_pairwise() else values[order]
        return Side(rows, weight, gram, learned, gamma, order, n_samples)

    def _privileged_is_pairwise(self):
        return callable(self.privileged_kernel) or self.privileged_kernel == "precomputed"

    @property
    def privileged_transformer_(self):
        """The fitted `privileged_transformer`."""
        check_is_fitted(self)
        columns = getattr(self, "_privileged_columns", None)
        if columns is None or columns.transformer is None:
            raise AttributeError("privileged_transformer_ needs a privileged_transformer.")
        return columns.transformer

    def _forget_privileged(self):
        """Drop what an earlier fit has learned of privileged columns."""
        for name in [name for name in vars(self) if name.startswith(_LEARNED)]:
            if name not in self.get_params(deep=False):
                delattr(self, name)

    def _remember(self, side):
        self._privileged_columns = side.columns
        self._privileged_gamma = side.gamma
        self._privileged_rows = side.Z

    def _dual_coef(self, side, duals):
        """Weights of kernel values: against all training rows where others give these values."""
        duals = np.vstack(duals)
        if not self._privileged_is_pairwise():
            return duals
        out = np.zeros((len(duals), side.n_samples))
        out[:, side.order] = duals
        return out

    def _privileged_scores(self, Z, weights, intercepts):
        """Values of functions of the privileged columns, given by weights of kernel values.

        Weights of the columns themselves will do for a linear kernel.
        """
        values = self._privileged_values(Z, weights.shape[1])
        if sp.issparse(values):
            return np.asarray(values @ weights.T) + intercepts
        values = np.ascontiguousarray(values, dtype=np.float64)
        return tiled_multiply(values, weights.T) + intercepts

    def _privileged_values(self, Z, width):
        """Kernel values of other rows against the training rows; the rows where that is wanted."""
        machine = self._privileged_machine()
        if callable(self.privileged_kernel):
            return machine._call_kernel(Z, self._privileged_rows)
        if self.privileged_kernel == "precomputed":
            values = check(Z)
            if values.shape[1] != width:
                raise ValueError(
                    f"privileged has {values.shape[1]} columns, but needs {width}: kernel values "
                    "against all training rows."
                )
            return values
        Z = self._privileged_columns.apply(Z)
        rows = self._privileged_rows
        if rows is None:
            return Z
        if sp.issparse(rows) and not sp.issparse(Z):
            Z = type(rows)(Z)
        return machine._rows_gram(rows, self._privileged_gamma).cross_values(Z)
