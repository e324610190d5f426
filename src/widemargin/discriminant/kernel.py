"""KernelDiscriminantAnalysis: Fisher's discriminant in the feature space of a kernel."""

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.docs import shared_docs
from widemargin._base.matmul import tiled_multiply
from widemargin._base.sklearn_compat import Interval, fit_context
from widemargin._base.targets import encode_targets
from widemargin._base.threads import single_threaded_blas
from widemargin._base.validation import validate_kernel_training, validate_predict
from widemargin.discriminant.base import BayesClassifier, class_priors, log_priors
from widemargin.discriminant.directions import orient
from widemargin.discriminant.namespaces import to_numpy
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import KernelParameters, effective_gamma, kernel_constraints


@shared_docs
class KernelDiscriminantAnalysis(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BayesClassifier
):
    r"""Kernel Fisher discriminant analysis, for classes that are not Gaussian.

    Linear discriminant analysis of the images :math:`\phi(x)` of the samples: with their class
    means :math:`m_k`, priors :math:`\pi_k` and the regularized covariance within classes

    .. math::

        \Sigma = C_w + \rho \operatorname{tr}(C_w) I, \qquad
        C_w = \tfrac1n \sum_k \sum_{x \in k} (\phi(x) - m_k)(\phi(x) - m_k)^\top

    a sample is assigned to the class with the largest
    :math:`\phi(x)^\top \Sigma^{-1} m_k - \tfrac12 m_k^\top \Sigma^{-1} m_k + \log \pi_k`, and the
    directions of `transform` solve :math:`C_b w = \lambda \Sigma w`. There are at most
    ``n_classes - 1`` of them. The computation needs memory for two matrices of shape
    (n_samples, n_samples). For many samples use :class:`sklearn.kernel_approximation.Nystroem`
    with `LinearDiscriminantAnalysis`.

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, default='rbf'
        Kernel function. 'sigmoid' may be indefinite, which raises an error if it is detected.
    <<gamma>>
    <<degree>>
    <<coef0>>
    reg_param : float, default=1e-3
        Regularization: the factor :math:`\rho` above.
    <<priors>>
    n_components : int, default=None
        Number of directions of `transform`; by default ``n_classes - 1``.
    tol : float, default=1e-4
        Directions that separate the classes by at most this share of the best one are left out.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_fit, `between_rank_`)
        Directions, as coefficients of the training samples.
    X_fit_ : ndarray or sparse matrix of shape (n_fit, n_features)
        Training samples of positive weight, sorted by class; not defined for a precomputed kernel.
    means_ : ndarray of shape (n_classes, `between_rank_`)
        Means of the classes along the directions.
    <<priors_>>
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each direction in the sum of the eigenvalues.
    between_rank_ : int
        Number of directions that separate classes.
    gamma_ : float
        Kernel coefficient.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    <<n_features_in_>>
    <<feature_names_in_>>

    See Also
    --------
    LinearDiscriminantAnalysis : The same without a kernel.

    References
    ----------
    S. Mika, G. Rätsch, J. Weston, B. Schölkopf and K.-R. Müller, Fisher discriminant analysis with
    kernels, 1999. G. Baudat and F. Anouar, Generalized discriminant analysis using a kernel
    approach, 2000.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from widemargin import KernelDiscriminantAnalysis, LinearDiscriminantAnalysis
    >>> X, y = make_circles(200, factor=0.4, noise=0.1, random_state=0)
    >>> LinearDiscriminantAnalysis().fit(X, y).score(X, y) < 0.6
    True
    >>> KernelDiscriminantAnalysis().fit(X, y).score(X, y)
    1.0
    """

    _parameter_constraints: dict = {
        **kernel_constraints(),
        "kernel": kernel_constraints()["kernel"][:1],  # no callable
        "reg_param": [Interval(Real, 0.0, None, closed="neither")],
        "priors": ["array-like", None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        kernel="rbf",
        gamma="scale",
        degree=3,
        coef0=0.0,
        reg_param=1e-3,
        priors=None,
        n_components=None,
        tol=1e-4,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.reg_param = reg_param
        self.priors = priors
        self.n_components = n_components
        self.tol = tol

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        pairwise = self.kernel == "precomputed"
        tags.input_tags.pairwise, tags.input_tags.sparse = pairwise, not pairwise
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        <<X_kernel_train>>
        <<y>>
        <<counting_weight>>

        Returns
        -------
        <<returns_self>>
        """
        X, y = validate_kernel_training(self, to_numpy(X), to_numpy(y), self.kernel)
        positive, targets = encode_targets(y, to_numpy(sample_weight), class_weight=None)
        most = len(targets.classes) - 1
        if self.n_components is not None and self.n_components > most:
            raise ValueError(
                f"n_components cannot be larger than n_classes - 1 = {most}, got "
                f"{self.n_components}."
            )
        # Sorted by class, so that the samples of a class are a slice.
        order = np.argsort(targets.codes, kind="stable")
        targets = targets.reordered(order)
        order = np.arange(len(y))[positive][order]
        weights = np.ones(len(order)) if targets.weight is None else targets.weight
        progress = FitProgress(self, 1, X, y, {"sample_weight": sample_weight})
        vectors, parameters, matrix = self._kernel_matrix(X, order, weights)
        priors = class_priors(self.priors, np.bincount(targets.codes, weights=weights))
        with progress.task(0), single_threaded_blas():
            dual, means, values = self._directions(matrix, targets.codes, weights, priors)
        origin = priors @ means
        components = self.n_components or most
        self.__dict__.pop("X_fit_", None)
        self.__dict__.update(
            classes_=targets.classes,
            gamma_=parameters.gamma,
            dual_coef_=dual,
            means_=means - origin,
            priors_=priors,
            explained_variance_ratio_=(values / (values.sum() or 1.0))[:components],
            between_rank_=dual.shape[1],
            _n_features_out=min(components, dual.shape[1]),
            _expansion=KernelExpansion(parameters, vectors, dual.T, -origin, columns=order),
        )
        if vectors is not None:
            self.X_fit_ = vectors
        progress.close()
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Project samples onto the directions that separate the classes.

        Parameters
        ----------
        <<X_kernel>>

        Returns
        -------
        X_new : ndarray of shape (n_samples, min(n_components, `between_rank_`))
            Coordinates along the directions. The mean of the class means, weighted by the priors,
            is at zero.
        """
        X = self._validate(X, "transform")
        return self._expansion.evaluate(X)[:, : self._n_features_out]

    def _scores(self, X: Any) -> np.ndarray:
        scores = tiled_multiply(self._expansion.evaluate(X), self.means_.T)
        scores += log_priors(self.priors_) - 0.5 * (self.means_**2).sum(axis=1)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _validate(self, X: Any, method: str) -> Any:
        check_is_fitted(self)
        return validate_predict(self, to_numpy(X))

    def _kernel_matrix(self, X: Any, order: np.ndarray, weight: np.ndarray) -> tuple:
        """Return the samples in this order, the resolved kernel, and a new kernel matrix."""
        if self.kernel == "precomputed":
            return None, KernelParameters(self.kernel, 0.0), X[np.ix_(order, order)]
        vectors = X[order]
        gamma = effective_gamma(self.gamma, vectors, weight)
        # Discriminants do not depend on an offset, but digits do.
        center = self.kernel == "linear"
        parameters = KernelParameters(self.kernel, gamma, self.degree, self.coef0, center=center)
        return vectors, parameters, parameters.gram_of_vectors(vectors).block(slice(None))

    def _directions(self, matrix: Any, codes: Any, weight: Any, priors: np.ndarray) -> tuple:
        r"""Return directions as coefficients of samples, class means along them, and eigenvalues.

        With :math:`\Phi` the images of the samples, :math:`E` the class averages, so that
        :math:`\Phi^\top E` are the means, and :math:`G` the centering by class, so that
        :math:`C_w = \Phi^\top G G^\top \Phi / n`, Woodbury's identity gives

        .. math::

            \Sigma^{-1} \Phi^\top B
            = \Phi^\top \bigl(B - G (A + r I)^{-1} G^\top K B / n \bigr) / r,
            \qquad A = G^\top K G / n, \quad r = \rho \operatorname{tr} A

        for :math:`B`, the averages minus their mean, times the square roots of the priors. The
        remaining eigenproblem has the size of the number of classes.
        """
        n, n_classes = weight.sum(), len(priors)
        members = np.arange(n_classes) == codes[:, np.newaxis]
        averages = members * (weight / np.bincount(codes, weights=weight)[codes])[:, np.newaxis]
        root = np.sqrt(weight / n)[:, np.newaxis]
        against_means = matrix @ averages

        # Replace kernel values by inner products of images centered by class means.
        between_means = averages.T @ against_means
        for k in range(n_classes):
            block = slice(*np.searchsorted(codes, [k, k + 1]))
            matrix[block] -= against_means[:, k]
            matrix[:, block] -= (against_means[:, k] - between_means[codes, k])[:, np.newaxis]
        matrix *= root
        matrix *= root.T
        variance = matrix.trace()
        ridge = self.reg_param * (variance if variance > 0 else 1.0)
        matrix.flat[:: len(matrix) + 1] += ridge
        try:
            factor = cho_factor(matrix.T, lower=False, overwrite_a=True, check_finite=False)
        except LinAlgError as error:
            raise ValueError(
                f"kernel={self.kernel!r} is not positive semidefinite on these samples. Use "
                "another kernel or a larger reg_param."
            ) from error

        mixing = np.sqrt(priors) * (np.eye(n_classes) - priors[:, np.newaxis])
        kernel_spread = against_means @ mixing
        centered = root * (kernel_spread - (averages.T @ kernel_spread)[codes])
        solved = root * cho_solve(factor, centered, check_finite=False)
        dual = (averages @ (mixing + members.T @ solved) - solved) / ridge
        values, vectors = eigh(kernel_spread.T @ dual)
        values, vectors = values[::-1].clip(min=0.0), vectors[:, ::-1]
        retained = np.sqrt(values) > self.tol * np.sqrt(values[0])
        dual = dual @ vectors[:, retained] / np.sqrt(values[retained])
        dual = orient(dual, against_means.T @ dual)
        return dual, against_means.T @ dual, values
