"""What the estimators with privileged features have in common."""

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import HasMethods, Interval, fit_context, num_samples
from widemargin._base.validation import check_index, validate_kernel_training
from widemargin.kernels.parameters import kernel_constraints
from widemargin.privileged.features import (
    PrivilegedInput,
    split_columns,
    without_columns,
)
from widemargin.privileged.problems import Subproblems
from widemargin.privileged.slack_functions import FitData, PrivilegedFunctions
from widemargin.solvers.coupled.problem import CoupledSolution
from widemargin.svm.svc import SVC, KernelClassifier
from widemargin.svm.training import solve_problems, support_attributes

_SVC_PARAMETERS = (
    "kernel", "degree", "gamma", "coef0", "tol", "cache_size", "class_weight", "verbose",
    "max_iter", "n_jobs", "checkpoint",
)  # fmt: skip
_PRIVILEGED_ATTRIBUTES = (
    "privileged_dual_coef_", "privileged_intercept_", "slack_", "_privileged_functions",
)  # fmt: skip


@shared_docs
class PrivilegedBase(KernelClassifier):
    """Base class of kernel classifiers, one-vs-rest, that are fitted with privileged features.

    Predictions depend on fitted attributes only.
    """

    _parameter_constraints: dict = {
        **{name: SVC._parameter_constraints[name] for name in _SVC_PARAMETERS},
        "C": [Interval(Real, 0.0, np.inf, closed="neither")],
        **kernel_constraints("privileged_"),
        "privileged_transformer": [HasMethods(["fit", "transform"]), None],
        "privileged_columns": ["array-like", None],
    }

    # Metadata routing passes the privileged features on without a request.
    __metadata_request__fit = {"privileged": True}

    _privileged_functions: PrivilegedFunctions | None = None
    _privileged_names: list | tuple = ()

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: ArrayLike, privileged: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        <<X_kernel_train>>

        <<y>>

        <<privileged>>

        <<sample_weight>>

        Returns
        -------
        <<returns_self>>
        """
        data = self._prepare(X, y, privileged, sample_weight)
        metadata = {"sample_weight": sample_weight, "privileged": privileged}
        progress = FitProgress(self, data.n_problems, data.X, data.y, metadata, self.checkpoint)
        solutions = self._fit_subproblems(data, progress, *self._costs())
        progress.close()
        report_convergence(self, solutions, progress.stop_requested)
        return self

    @property
    def privileged_transformer_(self) -> Any:
        """The fitted `privileged_transformer`."""
        check_is_fitted(self)
        functions = self._privileged_functions
        if functions is None or functions.features is None or not functions.features.transformer:
            raise AttributeError(
                "privileged_transformer_ is only available after a fit with privileged features "
                "and a privileged_transformer."
            )
        return functions.features.transformer

    def _decision_values(self, X: Any) -> NDArray[np.float64]:
        # A test fold of a search has the privileged columns too.
        return super()._decision_values(without_columns(X, self._privileged_names))

    def _evaluate_privileged(self, privileged: Any, name: str) -> np.ndarray:
        """Compute the functions of the privileged features of other samples."""
        if self._privileged_functions is None:
            raise ValueError(
                f"{name} needs a model that was fitted with privileged features. Pass privileged "
                "to fit."
            )
        return self._privileged_functions.evaluate(privileged)

    def _subproblems(self, data: FitData) -> Subproblems:
        """Return what the subproblems of all classes, C and penalties have in common."""
        raise NotImplementedError

    def _costs(self) -> tuple[float, ...]:
        """Return the C, the penalty and, where there is one, the slack ridge of the fit."""
        raise NotImplementedError

    def _prepare(self, X: Any, y: Any, privileged: Any, sample_weight: Any) -> FitData:
        """Validate the arguments of a fit, once, and resolve the parameters of both kernels."""
        names: list | tuple = ()
        if self.privileged_columns is not None:
            X, privileged = split_columns(X, list(self.privileged_columns), privileged)
            names = list(privileged.columns)
        check_index(X, privileged, "privileged")
        X, y = validate_kernel_training(self, X, y, self.kernel)
        validated = None
        if privileged is None:
            warnings.warn(
                f"{type(self).__name__} was fitted without privileged features, which gives a "
                "plain SVM with the same loss. Pass privileged to fit.",
                UserWarning,
                stacklevel=4,
            )
        elif num_samples(privileged) != len(y):
            raise ValueError(
                "privileged must have one row for each training sample, got "
                f"{num_samples(privileged)} rows, but X has {len(y)} samples."
            )
        else:
            validated = PrivilegedInput.validate(
                privileged, self.privileged_kernel, self.privileged_transformer
            )
        data = FitData(self, X, y, validated, sample_weight)
        self._privileged_names = names
        return data

    def _fit_subproblems(self, data: FitData, progress: Any, *costs: float) -> list:
        """Solve the subproblems of all classes and set the fitted attributes."""
        subproblems, problems = self._subproblems(data), data.training.reduction.problems
        solve = subproblems.solver(*costs)
        solutions = solve_problems(
            lambda number, **control: solve(problems[number].sign, **control),
            range(len(problems)),
            effective_n_jobs(self.n_jobs),
            progress,
            lambda solved: support_attributes(data.X, data.training, solved),
            kind=CoupledSolution,
        )
        solutions = subproblems.add_slack(solutions, *costs)
        self._set_fitted(data, subproblems, solutions)
        return solutions

    def _set_fitted(self, data: FitData, subproblems: Subproblems, solutions: list) -> None:
        """Set the fitted attributes; those of an earlier fit with privileged features go."""
        for name in _PRIVILEGED_ATTRIBUTES:
            self.__dict__.pop(name, None)
        self.__dict__.update(support_attributes(data.X, data.training, solutions))
        self._expansion.use_float32_within(self.tol)
        functions = subproblems.functions(solutions)
        if functions is not None:
            self._privileged_functions = functions
            self.privileged_intercept_ = functions.intercept
            if functions.expansion is not None:
                self.privileged_dual_coef_ = functions.expansion.coefficients
