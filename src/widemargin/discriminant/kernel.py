"""KernelDiscriminantAnalysis: linear discriminant analysis in the space of a kernel."""

from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from widemargin._base.matmul import tiled_multiply
from widemargin._base.sklearn_compat import Interval, StrOptions, fit_context
from widemargin._base.threads import single_threaded_blas
from widemargin.discriminant.base import (
    BayesMixin,
    check_rows_and_labels,
    class_priors,
    encode,
    log_of,
)
from widemargin.discriminant.directions import facing
from widemargin.discriminant.statistics import ClassStatistics
from widemargin.kernels import KERNEL_NAMES, KernelFunction, KernelGram
from widemargin.kernels.parameters import effective_gamma

_PREDICT_ENTRIES = 1 << 21


class KernelDiscriminantAnalysis(
    ClassNamePrefixFeaturesOutMixin, BayesMixin, ClassifierMixin, TransformerMixin, BaseEstimator
):
    r"""Fisher's discriminant in the space of a kernel, for classes that are not Gaussian.

    Linear discriminant analysis of the images :math:`\phi(x)` of the rows: with their class means
    :math:`m_k`, priors :math:`\pi_k` and the regularised covariance within classes

    .. math::

        \Sigma = C_w + \rho \operatorname{tr}(C_w) I, \qquad
        C_w = \tfrac1n \sum_k \sum_{x \in k} (\phi(x) - m_k)(\phi(x) - m_k)^\top

    the class of a row is that of the largest
    :math:`\phi(x)^\top \Sigma^{-1} m_k - \tfrac12 m_k^\top \Sigma^{-1} m_k + \log \pi_k`, and the
    directions of `transform` solve :math:`C_b w = \lambda \Sigma w`, of which there are at most as
    many as classes but one. All is computed from the kernel matrix of the training rows: memory
    for two matrices of (n_samples, n_samples) is needed. For many rows use
    :class:`sklearn.kernel_approximation.Nystroem` in front of `LinearDiscriminantAnalysis`.

    Parameters
    ----------
    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian', 'precomputed'}, default='rbf'
        The kernel. 'sigmoid' may be indefinite; it is refused where it shows.

    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of 'rbf', 'poly', 'sigmoid' and 'laplacian'. 'scale' is
        ``1 / (n_features * X.var())`` with rows counted by their weights, 'auto' is
        ``1 / n_features``.

    degree : int, default=3
        Degree of 'poly'.

    coef0 : float, default=0.0
        Constant of 'poly' and 'sigmoid'.

    reg_param : float, default=1e-3
        How much of the sphere is added to the covariance (:math:`\rho` above).

    priors : array-like of shape (n_classes,), default=None
        Prior probabilities of the classes; their frequencies by default.

    n_components : int, default=None
        How many directions `transform` gives; ``n_classes - 1`` by default.

    tol : float, default=1e-4
        Directions that separate the classes by no more than this part of the best are left out.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_rows, `between_rank_`)
        The directions, as weights of the training rows.

    X_fit_ : ndarray or sparse matrix of shape (n_rows, n_features)
        The training rows of positive weight; absent for a precomputed kernel.

    means_ : ndarray of shape (n_classes, `between_rank_`)
        Means of the classes along the directions.

    priors_ : ndarray of shape (n_classes,)
        Priors of the classes; they sum to 1.

    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each direction in the sum of the eigenvalues.

    between_rank_ : int
        Number of directions that separate any classes.

    gamma_ : float
        The coefficient of the kernel.

    classes_ : ndarray of shape (n_classes,)
        The labels.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during fit, when they are all strings.

    See Also
    --------
    LinearDiscriminantAnalysis : The same on the rows as they are.

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
        "kernel": [StrOptions({*KERNEL_NAMES, "precomputed"})],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Learn from rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training rows, or the kernel matrix between them for ``kernel='precomputed'``.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, at least 0. A row of weight k counts as k rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        if sp.issparse(X) and self.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported: give X as an array.")
        X, y = check_rows_and_labels(self, X, y)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X must be a square matrix for kernel='precomputed', got shape {X.shape}: the "
                "kernel values between all training rows."
            )
        classes, codes, weight = encode(y, sample_weight)
        most = len(classes) - 1
        if self.n_components is not None and self.n_components > most:
            raise ValueError(
                f"n_components cannot be larger than n_classes - 1 = {most}, got "
                f"{self.n_components}."
            )
        # By class, so that the rows of a class are a slice; those of no weight are left out.
        order = np.argsort(codes, kind="stable")
        weight = np.ones(len(y)) if weight is None else weight
        order = order[weight[order] > 0]
        codes, weight = codes[order], weight[order]
        rows, matrix, gamma = self._kernel_matrix(X, order, weight)
        counts = ClassStatistics(len(classes), 0, scatter="none")
        counts.count, counts.weight = np.bincount(codes), np.bincount(codes, weights=weight)
        priors = class_priors(self.priors, counts)
        with single_threaded_blas():
            dual, means, values = self._directions(matrix, codes, weight, priors)
        origin = priors @ means
        learned = {
            "classes_": classes,
            "gamma_": gamma,
            "dual_coef_": dual,
            "means_": means - origin,
            "priors_": priors,
            "explained_variance_ratio_": (values / (values.sum() or 1.0))[
                : self.n_components or most
            ],
            "between_rank_": dual.shape[1],
            "_origin": origin,
            "_order": order,
            "_n_features_out": min(self.n_components or most, dual.shape[1]),
        }
        self.__dict__.pop("X_fit_", None)
        if self.kernel != "precomputed":
            learned["X_fit_"] = rows
        for name, value in learned.items():
            setattr(self, name, value)
        return self

    def transform(self, X):
        """Project rows onto the directions that separate the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_fit)
            Rows, or their kernel values against the training rows for ``kernel='precomputed'``.

        Returns
        -------
        X_new : ndarray of shape (n_samples, min(n_components, `between_rank_`))
            The coordinates; the mean of the class means by their priors is at zero.
        """
        return self._projected(self._check_rows(X, "transform"))[:, : self.n_components]

    def _scores(self, X):
        scores = tiled_multiply(self._projected(X), self.means_.T)
        scores += log_of(self.priors_) - 0.5 * (self.means_**2).sum(axis=1)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def _projected(self, X):
        """Coordinates of checked rows along all directions."""
        against = self._values_against_rows()
        step = max(16, _PREDICT_ENTRIES // len(self._order))
        result = np.empty((X.shape[0], self.between_rank_))
        for start in range(0, X.shape[0], step):
            rows = slice(start, start + step)
            tiled_multiply(against(X[rows]), self.dual_coef_, out=result[rows])
        return result - self._origin

    def _values_against_rows(self):
        """A function from checked rows to their kernel values against the training rows."""
        if self.kernel == "precomputed":
            return lambda X: np.ascontiguousarray(X[:, self._order])
        gram, offset = self._gram(self.X_fit_, self.gamma_)

        def against(X):
            if sp.issparse(self.X_fit_) and not sp.issparse(X):
                X = type(self.X_fit_)(X)
            elif offset is not None:
                X = (X.toarray() if sp.issparse(X) else X) - offset
            return gram.against(X)

        return against

    def _check_rows(self, X, method):
        check_is_fitted(self)
        return validate_data(self, X, reset=False, dtype=np.float64, accept_sparse="csr", order="C")

    def _kernel_matrix(self, X, order, weight):
        """The rows in the given order, a kernel matrix of them to write to, and gamma."""
        if self.kernel == "precomputed":
            return None, X[np.ix_(order, order)].astype(np.float64), 0.0
        rows = X[order].astype(np.float64)
        if sp.issparse(rows):
            rows.sum_duplicates()
        gamma = effective_gamma(self.gamma, rows, weight)
        gram, _ = self._gram(rows, gamma)
        return rows, gram.block(slice(None)), gamma

    def _gram(self, rows, gamma):
        """The kernel of rows and what is taken from them: discriminants do not see offsets."""
        offset = rows.mean(axis=0) if self.kernel == "linear" and not sp.issparse(rows) else None
        function = KernelFunction(self.kernel, gamma, self.degree, self.coef0)
        return KernelGram(function, rows if offset is None else rows - offset), offset

    def _directions(self, matrix, codes, weight, priors):
        r"""Directions as weights of the rows, class means along them, and eigenvalues.

        With :math:`\Phi` the images of the rows, :math:`E` the class averages, so that
        :math:`\Phi^\top E` are the means, and :math:`G` the centring by class, so that
        :math:`C_w = \Phi^\top G G^\top \Phi / n`, Woodbury's identity gives

        .. math::

            \Sigma^{-1} \Phi^\top B
            = \Phi^\top \bigl(B - G (A + r I)^{-1} G^\top K B / n \bigr) / r,
            \qquad A = G^\top K G / n, \quad r = \rho \operatorname{tr} A

        for :math:`B`, the averages less their mean, times the roots of the priors. What remains
        is an eigenproblem of the size of the number of classes.
        """
        n, n_classes = weight.sum(), len(priors)
        members = np.arange(n_classes) == codes[:, np.newaxis]
        averages = members * (weight / np.bincount(codes, weights=weight)[codes])[:, np.newaxis]
        root = np.sqrt(weight / n)[:, np.newaxis]
        against_means = matrix @ averages

        _centre_by_class(matrix, against_means, averages, codes)
        matrix *= root
        matrix *= root.T
        variance = matrix.trace()
        ridge = self.reg_param * (variance if variance > 0 else 1.0)
        matrix.flat[:: len(matrix) + 1] += ridge
        try:
            factor = cho_factor(matrix.T, lower=False, overwrite_a=True, check_finite=False)
        except LinAlgError as error:
            raise ValueError(
                f"kernel={self.kernel!r} is not positive semidefinite on these rows: use another "
                "kernel, or a larger reg_param."
            ) from error

        mixing = np.sqrt(priors) * (np.eye(n_classes) - priors[:, np.newaxis])
        kernel_spread = against_means @ mixing
        centred = root * (kernel_spread - (averages.T @ kernel_spread)[codes])
        solved = root * cho_solve(factor, centred, check_finite=False)
        dual = (averages @ (mixing + members.T @ solved) - solved) / ridge
        values, vectors = eigh(kernel_spread.T @ dual)
        values, vectors = values[::-1].clip(min=0.0), vectors[:, ::-1]
        kept = np.sqrt(values) > self.tol * np.sqrt(values[0])
        dual = dual @ vectors[:, kept] / np.sqrt(values[kept])
        dual = facing(dual, against_means.T @ dual)
        return dual, against_means.T @ dual, values


def _centre_by_class(matrix, against_means, averages, codes):
    """Turn kernel values into inner products of the rows less the means of their classes."""
    between_means = averages.T @ against_means
    ends = np.cumsum(np.bincount(codes))
    starts = np.append(0, ends[:-1])
    for k, (start, end) in enumerate(zip(starts, ends, strict=True)):
        matrix[start:end] -= against_means[:, k]
        matrix[:, start:end] -= (against_means[:, k] - between_means[codes, k])[:, np.newaxis]
