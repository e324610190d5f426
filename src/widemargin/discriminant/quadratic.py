"""QuadraticDiscriminantAnalysis: Bayes' rule with a covariance matrix for each class."""

from numbers import Real
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, eigh, svd

from widemargin._base.docs import shared_docs
from widemargin._base.matmul import tiled_multiply
from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin._base.validation import check_magnitude
from widemargin.discriminant.base import IncrementalClassifier, class_priors, log_priors
from widemargin.discriminant.covariance import class_covariance
from widemargin.discriminant.statistics import ClassStatistics, as_dense, sample_blocks


@shared_docs
class QuadraticDiscriminantAnalysis(IncrementalClassifier):
    r"""Quadratic discriminant analysis: Bayes' rule with a covariance matrix for each class.

    A drop-in replacement for
    :class:`sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis` that supports sample
    weights, sparse samples and incremental fits (`partial_fit`, `merge`). The classes are assumed
    to be Gaussian with means :math:`m_k`, covariances :math:`\Sigma_k` and priors :math:`\pi_k`. A
    sample is assigned to the class with the largest

    .. math::

        \delta_k(x) = - \tfrac12 (x - m_k)^\top \Sigma_k^{-1} (x - m_k)
        - \tfrac12 \log \det \Sigma_k + \log \pi_k

    Parameters
    ----------
    solver : {'auto', 'gram', 'svd', 'eigen'}, default='auto'
        - 'gram': the eigenvectors of the covariance of each class, from one pass over the samples
          centered by class means.
        - 'svd': the singular value decomposition of the centered samples of each class. Requires
          dense samples and no shrinkage.
        - 'eigen': as 'gram', but without `reg_param` and with `covariance_estimator`.
        - 'auto': 'eigen' with a `covariance_estimator`, 'gram' otherwise.
    <<covariance_shrinkage>>
    <<priors>>
    reg_param : float, default=0.0
        Regularization: the eigenvalues s of each covariance become
        ``(1 - reg_param) * s + reg_param``.
    store_covariance : bool, default=False
        Whether to store `covariance_`.
    tol : float, default=1e-4
        A covariance with eigenvalues up to this is rejected as singular.
    <<covariance_estimator>>
    covariance_divisor : {'n', 'unbiased'}, default='n'
        Divisor of the scatter of a class: its number of samples, as in scikit-learn, or that number
        minus one.

    Attributes
    ----------
    covariance_ : list of n_classes ndarray of shape (n_features, n_features)
        Covariance of each class, if `store_covariance`.
    <<means_>>
    <<priors_>>
    rotations_ : list of n_classes ndarray of shape (n_features, n_features)
        Principal axes of each class.
    scalings_ : list of n_classes ndarray of shape (n_features,)
        Variances along the principal axes.
    shrinkage_ : ndarray of shape (n_classes,)
        Shrinkage of the covariance of each class; nan with a `covariance_estimator`.
    <<discriminant_results>>
    <<n_features_in_>>
    <<feature_names_in_>>

    See Also
    --------
    LinearDiscriminantAnalysis : One covariance matrix for all classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> QuadraticDiscriminantAnalysis(shrinkage="oas").fit(X, y).score(X, y)
    0.98
    """

    _parameter_constraints: dict = {
        **IncrementalClassifier._parameter_constraints,
        "solver": [StrOptions({"auto", "gram", "svd", "eigen"})],
        "reg_param": [Interval(Real, 0, 1, closed="both")],
    }

    _fitted_names = (
        "covariance_", "means_", "priors_", "rotations_", "scalings_", "shrinkage_", "solver_",
        "_origin", "_shift",
    )  # fmt: skip

    def __init__(
        self,
        *,
        solver="auto",
        shrinkage=None,
        priors=None,
        reg_param=0.0,
        store_covariance=False,
        tol=1e-4,
        covariance_estimator=None,
        covariance_divisor="n",
    ):
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.reg_param = reg_param
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator
        self.covariance_divisor = covariance_divisor

    def _scores(self, X: Any) -> np.ndarray:
        scores = np.empty((X.shape[0], len(self.classes_)))
        constants = log_priors(self.priors_.astype(float))
        constants -= [0.5 * np.log(variances).sum() for variances in self.scalings_]
        factors = [
            np.ascontiguousarray(rotation / np.sqrt(variances), dtype=np.float64)
            for rotation, variances in zip(self.rotations_, self.scalings_, strict=True)
        ]

        def score(samples: slice) -> None:
            block = as_dense(X[samples]) - self._origin
            for k, (shift, factor) in enumerate(zip(self._shift, factors, strict=True)):
                with np.errstate(over="ignore", invalid="ignore"):
                    distance = tiled_multiply(block - shift, factor)
                    squares = np.einsum("ij,ij->i", distance, distance)
                scores[samples, k] = constants[k] - 0.5 * squares

        check_magnitude(X)
        for_each(score, sample_blocks(X))
        # Squared distances of samples that are far from all classes overflow.
        largest = np.finfo(self._template.dtype).max / 4.0
        scores = np.nan_to_num(np.maximum(scores, -largest), nan=-largest)
        if len(self.classes_) == 2:
            scores = scores[:, 1] - scores[:, 0]
        return scores.astype(self._template.dtype, copy=False)

    def _check_solver(self) -> None:
        super()._check_solver()
        if self.covariance_estimator is not None and self.solver in ("svd", "gram"):
            raise ValueError(
                f"covariance_estimator is not supported with solver={self.solver!r}. Try "
                "solver='eigen' instead."
            )

    def _solver_for(self, X: Any = None) -> str:
        if self.solver == "auto":
            return "gram" if self.covariance_estimator is None else "eigen"
        return self.solver

    def _statistics_options(self, solver: str) -> dict[str, Any]:
        scatter = "none" if self._needs_samples(solver) else "classes"
        return {"scatter": scatter, "fourth": self.shrinkage == "auto"}

    def _estimate(self, statistics: Any, classes: Any, solver: str, samples: Any) -> dict[str, Any]:
        """Return the fitted attributes, from the samples if the solver needs them."""
        few = np.flatnonzero((statistics.count == 1) & (statistics.weight <= 1))
        if len(few):
            raise ValueError(
                f"y has only 1 sample in class {classes[few[0]]}, covariance is ill defined."
            )
        empty = np.zeros((len(statistics.origin), 0)), np.zeros(0), 0.0

        def gaussian(k: int) -> tuple:
            if not statistics.count[k]:
                return empty
            with single_threaded_blas():
                estimate = self._gaussian(statistics, k, solver, samples)
            self._check_rank(estimate[1], classes[k], statistics.count[k], solver)
            return estimate

        with single_threaded_blas():
            estimates = for_each(gaussian, range(len(classes)))
        rotations, variances, amounts = zip(*estimates, strict=True)
        fitted = {
            "means_": statistics.mean,
            "priors_": class_priors(self.priors, statistics.weight),
            "rotations_": list(rotations),
            "scalings_": list(variances),
            "shrinkage_": np.array(amounts),
            "solver_": solver,
            "_origin": statistics.origin,
            "_shift": statistics.shift.copy(),
        }
        if self.store_covariance:
            with single_threaded_blas():
                fitted["covariance_"] = [(axes * values) @ axes.T for axes, values, _ in estimates]
        return fitted

    def _gaussian(self, statistics: ClassStatistics, k: int, solver: str, samples: Any) -> tuple:
        """Return the principal axes, variances and shrinkage of one class."""
        weight = statistics.weight[k]
        inflation = 1.0
        if self.covariance_divisor == "unbiased":
            if weight <= 1:
                raise ValueError(
                    "covariance_divisor='unbiased' requires a sum of weights above 1 in each "
                    f"class, got {weight}. Use covariance_divisor='n'."
                )
            inflation = weight / (weight - 1.0)
        if solver == "svd":
            X, codes, weights = samples
            chosen = codes == k if weights is None else (codes == k) & (weights > 0)
            centered = X[chosen] - statistics.origin - statistics.shift[k]
            if weights is not None:
                centered *= np.sqrt(weights[chosen])[:, np.newaxis]
            _, singular, axes = svd(centered, full_matrices=False, overwrite_a=True)
            rotation, variances, amount = axes.T, inflation * singular**2 / weight, 0.0
        else:
            if self.covariance_estimator is None:
                covariance, amount = class_covariance(statistics, k, self.shrinkage)
            else:
                X, codes, _ = samples
                covariance, amount = self._estimated_covariance(X[codes == k]), np.nan
            variances, rotation = eigh(inflation * covariance)
            variances, rotation = variances[::-1], rotation[:, ::-1]
        if solver != "eigen":
            variances = (1.0 - self.reg_param) * variances + self.reg_param
        return rotation, variances, amount

    def _check_rank(self, variances: np.ndarray, label: Any, count: int, solver: str) -> None:
        n_features = self.n_features_in_
        if (variances > self.tol).sum() == n_features:
            return
        message = f"The covariance matrix of class {label} is not full rank. "
        if solver == "svd" and count <= n_features:
            raise LinAlgError(
                f"{message}When using `solver='svd'` the number of samples in each class should be "
                f"more than the number of features, but class {label} has {count} samples and "
                f"{n_features} features. Try solver='gram' and set shrinkage."
            )
        parameter = {"svd": "reg_param", "eigen": "shrinkage"}.get(solver, "shrinkage or reg_param")
        raise LinAlgError(f"{message}Increase the value of {parameter} to reduce the collinearity.")
