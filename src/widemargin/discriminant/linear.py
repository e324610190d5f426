"""LinearDiscriminantAnalysis: Fisher's directions, and Bayes' rule with one covariance matrix."""

from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from widemargin._base.docs import shared_docs
from widemargin._base.options import discriminant_options
from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin._base.threads import single_threaded_blas
from widemargin.discriminant.base import IncrementalClassifier, class_priors, log_priors, project
from widemargin.discriminant.covariance import SHRINKAGES, whitening, within_covariance
from widemargin.discriminant.directions import (
    DirectionProblem,
    fisher_directions,
    is_ill_conditioned,
    orient,
    refine_whitening,
    trace_ratio_directions,
    whitening_of_samples,
)
from widemargin.discriminant.statistics import ClassStatistics


@shared_docs
class LinearDiscriminantAnalysis(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, IncrementalClassifier
):
    r"""Linear discriminant analysis: directions that separate classes, and Bayes' rule.

    A drop-in replacement for :class:`sklearn.discriminant_analysis.LinearDiscriminantAnalysis` that
    supports sample weights, sparse samples and incremental fits (`partial_fit`, `merge`), and that
    reads tall data once. The classes are assumed to be Gaussian with means :math:`m_k`, priors
    :math:`\pi_k` and one covariance :math:`\Sigma`. A sample is assigned to the class with the
    largest

    .. math::

        \delta_k(x) = x^\top \Sigma^{-1} m_k - \tfrac12 m_k^\top \Sigma^{-1} m_k + \log \pi_k

    The directions of `transform` maximize the scatter between classes relative to that within
    classes. With :math:`S_w = \sum_k \sum_{x \in k} (x - m_k)(x - m_k)^\top` and
    :math:`S_b = \sum_k n_k (m_k - m)(m_k - m)^\top` they solve

    .. math::

        \max_W \operatorname{tr}\bigl((W^\top S_w W)^{-1} W^\top S_b W\bigr)
        \quad \text{(ratio trace)} \qquad \text{or} \qquad
        \max_{W^\top W = I} \frac{\operatorname{tr}(W^\top S_b W)}{\operatorname{tr}(W^\top S_w W)}
        \quad \text{(trace ratio)}

    The first is the eigenproblem :math:`S_b w = \lambda S_w w`, which has at most ``n_classes - 1``
    directions; for two classes it is :math:`w \propto S_w^{-1}(m_2 - m_1)`.

    Parameters
    ----------
    solver : {'auto', 'gram', 'svd', 'lsqr', 'eigen'}, default='auto'
        - 'gram': the scatter within classes by one pass over the samples, centered by class means,
          then as 'svd'. Needs memory for a few matrices of shape (n_features, n_features). If
          features are nearly collinear, `fit` makes a second pass over the samples, to be as
          accurate as 'svd'.
        - 'svd': the singular value decomposition of the centered samples, for data with more
          features than samples. Requires dense samples and no shrinkage.
        - 'lsqr': Bayes' rule only, without directions.
        - 'eigen': the eigenproblem above, for all directions in which samples vary.
        - 'auto': 'gram' for tall data (at least two samples per feature), sparse samples, shrinkage
          and the trace ratio, 'eigen' with a `covariance_estimator`, 'svd' otherwise.

        The solvers agree, except for given `priors`: as in scikit-learn, 'svd' and 'gram' average
        the covariances of the classes by the class frequencies, 'lsqr' and 'eigen' by the priors.
    <<covariance_shrinkage>>
    <<priors>>
    n_components : int, default=None
        Number of directions of `transform`; by default ``min(n_classes - 1, n_features)``.
    store_covariance : bool, default=False
        Whether 'gram' and 'svd' store `covariance_`; the other solvers always do.
    tol : float, default=1e-4
        Directions in which standardized samples deviate by at most this within classes are left out
        by 'gram' and 'svd'.
    <<covariance_estimator>>
    objective : {'ratio_trace', 'trace_ratio'}, default='ratio_trace'
        Objective that the directions of `transform` maximize. Predictions do not depend on it.
    covariance_divisor : {'n', 'unbiased'}, default='n'
        Divisor of the scatter within classes: the number of samples, as in scikit-learn, or that
        number minus the number of classes.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of the features in `decision_function`: those of :math:`\delta_k` without the
        term that all classes share, :math:`x^\top \Sigma^{-1} \bar x`, for every solver.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts of `decision_function`.
    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes, averaged by the priors for every solver.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each direction in the objective (not for 'lsqr').
    <<means_>>
    <<priors_>>
    scalings_ : ndarray of shape (n_features, n_directions)
        Directions (not for 'lsqr').
    xbar_ : ndarray of shape (n_features,)
        Mean of the class means, weighted by the priors; subtracted by 'gram' and 'svd'.
    within_rank_ : int
        Effective rank of the covariance within classes. Below n_features it is singular.
    between_rank_ : int
        Effective rank of the scatter between classes, the number of directions that separate
        classes. Below ``n_classes - 1`` the means are linearly dependent (not for 'lsqr').
    shrinkage_ : float or ndarray of shape (n_classes,)
        Shrinkage of the covariance, or of that of each class; nan with a `covariance_estimator`.
    objective_ : float
        Value of the objective (not for 'lsqr').
    n_iter_ : int
        Number of steps to the largest trace ratio; 1 for the ratio trace.
    decision_covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes that predictions use; None after 'svd'.
    <<discriminant_results>>
    <<n_features_in_>>
    <<feature_names_in_>>

    See Also
    --------
    QuadraticDiscriminantAnalysis : A covariance matrix for each class.
    KernelDiscriminantAnalysis : For classes that are not Gaussian.

    Notes
    -----
    Sparse samples are converted to dense chunks. With very many features,
    `KernelDiscriminantAnalysis` with ``kernel='linear'`` needs memory of shape
    (n_samples, n_samples) instead of (n_features, n_features).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearDiscriminantAnalysis().fit(X, y)
    >>> model.score(X, y)
    0.98
    >>> model.transform(X).shape
    (150, 2)

    Models of two halves of the samples can be merged:

    >>> other = LinearDiscriminantAnalysis().fit(X[::2], y[::2])
    >>> other = other.merge(LinearDiscriminantAnalysis().fit(X[1::2], y[1::2]))
    >>> bool(abs(other.coef_ - model.coef_).max() < 1e-9)
    True
    """

    _parameter_constraints: dict = {
        **IncrementalClassifier._parameter_constraints,
        "solver": [StrOptions({"auto", "gram", "svd", "lsqr", "eigen"})],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "objective": [StrOptions({"ratio_trace", "trace_ratio"})],
    }

    _fitted_names = (
        "coef_", "intercept_", "covariance_", "explained_variance_ratio_", "means_", "priors_",
        "scalings_", "xbar_", "within_rank_", "between_rank_", "shrinkage_", "objective_",
        "n_iter_", "solver_", "_origin", "_constant", "_max_components", "_n_features_out",
        "_pooling",
    )  # fmt: skip

    def __init__(
        self,
        solver="auto",
        shrinkage=None,
        priors=None,
        n_components=None,
        store_covariance=False,
        tol=1e-4,
        covariance_estimator=None,
        *,
        objective="ratio_trace",
        covariance_divisor="n",
    ):
        self.solver = solver
        self.shrinkage = shrinkage
        self.priors = priors
        self.n_components = n_components
        self.store_covariance = store_covariance
        self.tol = tol
        self.covariance_estimator = covariance_estimator
        self.objective = objective
        self.covariance_divisor = covariance_divisor

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        return tags

    def transform(self, X: Any) -> Any:
        """Project samples onto the directions that separate the classes.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        X_new : ndarray of shape (n_samples, min(n_components, `between_rank_`))
            Coordinates along the directions; 'gram' and 'svd' subtract the mean `xbar_`.
        """
        X = self._validate(X, "transform")
        if self.solver_ == "lsqr":
            raise NotImplementedError(
                "transform not implemented for 'lsqr' solver (use 'svd' or 'eigen')."
            )
        directions = self.scalings_[:, : self._max_components]
        return project(X, directions, getattr(self, "xbar_", None))

    @property
    def decision_covariance_(self) -> np.ndarray | None:
        """Covariance within classes that predictions use; None after 'svd'."""
        solver = self.solver_
        if solver != "gram":
            return None if solver == "svd" else self.covariance_
        shrinkage, inflation = self._pooling
        return within_covariance(self._incremental_statistics(), shrinkage)[0] * inflation

    def _scores(self, X: Any) -> Any:
        # Far from zero, products with samples that are not centered would lose digits.
        if not sp.issparse(X):
            scores = project(X, self.coef_.T, self._origin)
        else:
            slopes, far = self.coef_.T.copy(), np.flatnonzero(self._origin)
            scores = project(X[:, far], slopes[far], self._origin[far])
            slopes[far] = 0.0
            scores += project(X, slopes)
        scores += self._constant
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _check_solver(self) -> None:
        super()._check_solver()
        if self.covariance_estimator is not None and self.solver in ("svd", "gram"):
            raise ValueError(
                f"covariance estimator is not supported with {self.solver} solver. Try another "
                "solver: 'eigen' or 'lsqr'."
            )
        if self.objective == "trace_ratio" and self.solver in ("svd", "lsqr"):
            raise ValueError(
                f"objective='trace_ratio' requires the covariance and directions, which "
                f"solver={self.solver!r} does not compute. Use solver='gram' or 'eigen'."
            )

    def _solver_for(self, X: Any = None) -> str:
        """Return the solver for X; if None, one that needs only statistics."""
        if self.solver != "auto":
            return self.solver
        if self.covariance_estimator is not None:
            return "eigen"
        tall = discriminant_options.tall
        wide = X is not None and X.shape[0] < tall * X.shape[1] and not sp.issparse(X)
        plain = self.shrinkage is None and self.objective == "ratio_trace"
        return "svd" if wide and plain else "gram"

    def _statistics_options(self, solver: str) -> dict[str, Any]:
        averaged = solver in ("lsqr", "eigen") or self.store_covariance
        by_priors = averaged and self.priors is not None
        scatter = "classes" if by_priors or self.shrinkage in SHRINKAGES else "pooled"
        if self._needs_samples(solver) and not (solver == "svd" and self.store_covariance):
            scatter = "none"
        return {"scatter": scatter, "fourth": self.shrinkage == "auto"}

    def _estimate(self, statistics: Any, classes: Any, solver: str, samples: Any) -> dict[str, Any]:
        """Return the fitted attributes, from the samples if the solver needs them."""
        statistics = statistics.without_rounding()
        present = statistics.count > 0
        if statistics.count.sum() <= present.sum():
            raise ValueError("The number of samples must be more than the number of classes.")
        n_classes, n_features = statistics.shift.shape
        most = min(n_classes - 1, n_features)
        if self.n_components is not None and self.n_components > most:
            raise ValueError(
                "n_components cannot be larger than min(n_features, n_classes - 1) = "
                f"{most}, got {self.n_components}."
            )
        priors = class_priors(self.priors, statistics.weight)
        overall = statistics.weight @ statistics.shift / statistics.weight.sum()
        means = np.where(present[:, np.newaxis], statistics.shift, overall)
        components = self.n_components or most
        problem = DirectionProblem(statistics, priors, means, components, self.tol, samples)
        with single_threaded_blas():
            axes, fitted = getattr(self, f"_solve_{solver}")(problem)
            inner = problem.centered @ axes
            coef = inner @ axes.T
            constant = log_priors(priors) - 0.5 * (inner**2).sum(axis=1) - coef @ (priors @ means)
        if n_classes == 2:
            coef, constant = coef[[1]] - coef[[0]], constant[[1]] - constant[[0]]
        origin = statistics.origin
        if "xbar_" in fitted:
            fitted["xbar_"] = origin + fitted["xbar_"]
        if self.store_covariance and "covariance_" not in fitted:
            fitted["covariance_"] = self._pooled(statistics, priors)[0]
        return {
            "n_iter_": 1,
            **fitted,
            "coef_": coef,
            "intercept_": constant - coef @ origin,
            "means_": origin + means,
            "_origin": origin,
            "_constant": constant,
            "priors_": priors,
            "solver_": solver,
            "_max_components": components,
            "_n_features_out": min(components, fitted.get("between_rank_", components)),
            "_pooling": (self.shrinkage, self._inflation(statistics)),
        }

    # Solvers return a matrix A with A A' the inverse of the covariance, in the space spanned by the
    # class means, and fitted attributes.

    def _solve_gram(self, problem: DirectionProblem) -> tuple[np.ndarray, dict[str, Any]]:
        covariance, amounts = self._pooled(problem.statistics)
        factor = whitening(covariance, self.tol)
        refinable = problem.samples is not None and not self.shrinkage
        if refinable and is_ill_conditioned(covariance, factor):
            factor = refine_whitening(problem, factor)
            factor /= np.sqrt(self._inflation(problem.statistics))
        fitted = fisher_directions(problem, factor) | {"shrinkage_": amounts}
        scalings = fitted["scalings_"]
        if self.objective == "trace_ratio":
            fitted |= trace_ratio_directions(problem, covariance, factor, fitted)
        return scalings, fitted

    def _solve_svd(self, problem: DirectionProblem) -> tuple[np.ndarray, dict[str, Any]]:
        factor = whitening_of_samples(problem)
        factor /= np.sqrt(self._inflation(problem.statistics))
        fitted = fisher_directions(problem, factor) | {"shrinkage_": 0.0}
        return fitted["scalings_"], fitted

    def _solve_lsqr(self, problem: DirectionProblem) -> tuple[np.ndarray, dict[str, Any]]:
        covariance, amounts = self._prior_covariance(problem)
        factor = whitening(covariance, self.tol)
        fitted = {"covariance_": covariance, "within_rank_": factor.shape[1]}
        return factor, fitted | {"shrinkage_": amounts}

    def _solve_eigen(self, problem: DirectionProblem) -> tuple[np.ndarray, dict[str, Any]]:
        within, amounts = self._prior_covariance(problem)
        if self.covariance_estimator is None:
            total, _ = within_covariance(problem.statistics.total(), self.shrinkage)
        else:
            total = self._estimated_covariance(problem.samples[0])
        factor = whitening(within, 0.0)
        between = total - within / self._inflation(problem.statistics)
        values, axes = eigh(factor.T @ between @ factor)
        values, vectors = values[::-1], factor @ axes[:, ::-1]
        vectors = orient(vectors, problem.means @ vectors)
        fitted = problem.attributes(factor, vectors, values)
        if self.objective == "trace_ratio":
            fitted |= trace_ratio_directions(problem, within, vectors, fitted)
        return vectors, fitted | {"covariance_": within, "shrinkage_": amounts}

    def _prior_covariance(self, problem: DirectionProblem) -> tuple:
        """Return the covariances of the classes, averaged by the priors, and their shrinkage."""
        statistics, priors = problem.statistics, problem.priors
        if self.covariance_estimator is None:
            return self._pooled(statistics, priors)
        X, codes, _ = problem.samples
        covariances = [self._estimated_covariance(X[codes == k]) for k in range(len(priors))]
        return np.tensordot(priors, covariances, axes=1) * self._inflation(statistics), np.nan

    def _pooled(self, statistics: ClassStatistics, shares: np.ndarray | None = None) -> tuple:
        """Return the covariance within classes, weighted by shares, and its shrinkage."""
        covariance, amounts = within_covariance(statistics, self.shrinkage, shares)
        return covariance * self._inflation(statistics), amounts

    def _inflation(self, statistics: ClassStatistics) -> float:
        """Return the ratio of n and the divisor of the covariance."""
        if self.covariance_divisor == "n":
            return 1.0
        n, n_classes = statistics.weight.sum(), (statistics.count > 0).sum()
        if n <= n_classes:
            raise ValueError(
                "covariance_divisor='unbiased' requires a sum of weights above the number of "
                f"classes, got {n} for {n_classes} classes. Use covariance_divisor='n'."
            )
        return n / (n - n_classes)
