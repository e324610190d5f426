"""QuadraticDiscriminantAnalysis: Bayes' rule for classes each with a covariance of its own."""

from numbers import Real

import numpy as np
from scipy.linalg import LinAlgError, eigh, svd
from sklearn.base import BaseEstimator, ClassifierMixin

from widemargin._base.matmul import tiled_multiply
from widemargin._base.sklearn_compat import HasMethods, Interval, StrOptions, fit_context
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin.discriminant.base import (
    BayesMixin,
    GrowingMixin,
    check_rows_and_labels,
    class_priors,
    encode,
    log_of,
    row_blocks,
)
from widemargin.discriminant.covariance import SHRINKAGES, class_covariance
from widemargin.discriminant.namespaces import like
from widemargin.discriminant.statistics import ClassStatistics, dense_rows


class QuadraticDiscriminantAnalysis(GrowingMixin, BayesMixin, ClassifierMixin, BaseEstimator):
    r"""Quadratic discriminant analysis: Bayes' rule with a covariance for each class.

    A drop-in for :class:`sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis` that takes
    weights, sparse rows and rows that come in pieces (`partial_fit`, `merge`). The classes are
    taken for Gaussian with means :math:`m_k`, covariances :math:`\Sigma_k` and priors
    :math:`\pi_k`; the class of a row is that of the largest

    .. math::

        \delta_k(x) = - \tfrac12 (x - m_k)^\top \Sigma_k^{-1} (x - m_k)
        - \tfrac12 \log \det \Sigma_k + \log \pi_k

    Parameters
    ----------
    solver : {'auto', 'gram', 'svd', 'eigen'}, default='auto'
        - 'gram': the eigenvectors of each class's covariance, from one pass over the rows centred
          by class means; what 'auto' stands for.
        - 'svd': the singular value decomposition of the centred rows of each class. Takes dense
          rows and no shrinkage.
        - 'eigen': as 'gram' but for `reg_param`, which it leaves out, and
          `covariance_estimator`, which it takes; 'auto' stands for it where there is one.

    shrinkage : {'auto', 'oas'} or float, default=None
        How far the covariance of each class is moved towards a sphere: by a fixed part between 0
        and 1, or by what the lemma of Ledoit and Wolf ('auto') or the oracle approximating formula
        ('oas') says of its rows in standard units. Not for 'svd'.

    priors : array-like of shape (n_classes,), default=None
        Prior probabilities of the classes; their frequencies by default.

    reg_param : float, default=0.0
        The eigenvalues s of each covariance become ``(1 - reg_param) * s + reg_param``.

    store_covariance : bool, default=False
        Whether `covariance_` is kept.

    tol : float, default=1e-4
        A covariance with eigenvalues up to this is refused as singular.

    covariance_estimator : estimator, default=None
        What estimates the covariance of each class instead of `shrinkage`: it has ``fit`` and
        ``covariance_``. On dense rows without weights.

    covariance_divisor : {'n', 'unbiased'}, default='n'
        What the scatter of a class is divided by: its number of rows, as in scikit-learn, or that
        less one.

    Attributes
    ----------
    covariance_ : list of n_classes ndarray of shape (n_features, n_features)
        Covariance of each class, if `store_covariance`.

    means_ : ndarray of shape (n_classes, n_features)
        Means of the classes.

    priors_ : ndarray of shape (n_classes,)
        Priors of the classes.

    rotations_ : list of n_classes ndarray of shape (n_features, n_features)
        Axes of each class's Gaussian.

    scalings_ : list of n_classes ndarray of shape (n_features,)
        Variances along them.

    shrinkage_ : ndarray of shape (n_classes,)
        How far the covariance of each class was shrunk; nan with a `covariance_estimator`.

    solver_ : str
        The solver that 'auto' chose.

    classes_ : ndarray of shape (n_classes,)
        The labels.

    statistics_ : ClassStatistics
        What was gathered from the rows, for `partial_fit` and `merge`; None after 'svd'.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during fit, when they are all strings.

    See Also
    --------
    LinearDiscriminantAnalysis : One covariance for all classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import QuadraticDiscriminantAnalysis
    >>> X, y = load_iris(return_X_y=True)
    >>> QuadraticDiscriminantAnalysis(shrinkage="oas").fit(X, y).score(X, y)
    0.98
    """

    _parameter_constraints: dict = {
        "solver": [StrOptions({"auto", "gram", "svd", "eigen"})],
        "shrinkage": [StrOptions(set(SHRINKAGES)), Interval(Real, 0, 1, closed="both"), None],
        "priors": ["array-like", None],
        "reg_param": [Interval(Real, 0, 1, closed="both")],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_estimator": [HasMethods("fit"), None],
        "covariance_divisor": [StrOptions({"n", "unbiased"})],
    }

    _learned = (
        "covariance_",
        "means_",
        "priors_",
        "rotations_",
        "scalings_",
        "shrinkage_",
        "solver_",
        "_origin",
        "_shift",
    )

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._works_on_rows()
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None):
        """Learn from rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, at least 0. A row of weight k counts as k rows.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_solver()
        X, y = check_rows_and_labels(self, X, y)
        classes, codes, weight = encode(y, sample_weight)
        on_rows = self._works_on_rows()
        self._check_needs(X, weight, on_rows)
        options = {"scatter": "none"} if on_rows else self._statistics_options()
        statistics = ClassStatistics(len(classes), X.shape[1], **options)
        statistics.update(X, codes, weight)
        rows = (dense_rows(X), codes, weight) if on_rows else None
        learned = self._learn(statistics, rows, classes)
        self._declared, self._like = False, like(X)
        self._keep(classes, None if on_rows else statistics, learned)
        return self

    def _scores(self, X):
        scores = np.empty((X.shape[0], len(self.classes_)))
        constants = log_of(self.priors_.astype(float))
        constants -= [0.5 * np.log(variances).sum() for variances in self.scalings_]
        factors = [
            np.ascontiguousarray(rotation / np.sqrt(variances), dtype=np.float64)
            for rotation, variances in zip(self.rotations_, self.scalings_, strict=True)
        ]

        def score(rows):
            block = dense_rows(X[rows]) - self._origin
            for k, (shift, factor) in enumerate(zip(self._shift, factors, strict=True)):
                distance = tiled_multiply(block - shift, factor)
                scores[rows, k] = constants[k] - 0.5 * np.einsum("ij,ij->i", distance, distance)

        for_each(score, row_blocks(X))
        if len(self.classes_) == 2:
            scores = scores[:, 1] - scores[:, 0]
        return scores.astype(self._like.dtype, copy=False)

    def _check_solver(self):
        self._check_options()
        if self.covariance_estimator is not None and self.solver in ("svd", "gram"):
            raise ValueError(
                f"covariance_estimator is not supported with solver={self.solver!r}. Try "
                "solver='eigen' instead."
            )

    def _works_on_rows(self):
        return self.solver == "svd" or self.covariance_estimator is not None

    def _statistics_options(self):
        return {"scatter": "classes", "fourth": self.shrinkage == "auto"}

    def _learn(self, statistics, rows=None, classes=None):
        """What follows from the statistics, and from the rows where the solver needs them."""
        classes = self.classes_ if classes is None else classes
        present = np.flatnonzero(statistics.count)
        if len(present) < 2:
            raise ValueError(
                f"y must hold at least two classes, got {len(present)} class with rows so far."
            )
        few = present[(statistics.count[present] == 1) & (statistics.weight[present] <= 1)]
        if len(few):
            raise ValueError(
                f"y has only 1 sample in class {classes[few[0]]}, covariance is ill defined."
            )
        solver = self._solver_name()
        n_features = len(statistics.origin)
        nothing = np.zeros((n_features, 0)), np.zeros(0), np.zeros((n_features, n_features)), 0.0

        def gaussian(k):
            if not statistics.count[k]:
                return nothing
            with single_threaded_blas():
                parts = self._gaussian(statistics, k, rows)
            self._check_rank(parts[1], classes[k], statistics.count[k], solver)
            return parts

        with single_threaded_blas():
            parts = for_each(gaussian, range(len(classes)))
        rotations, variances, covariances, amounts = zip(*parts, strict=True)
        learned = {
            "means_": statistics.mean,
            "priors_": class_priors(self.priors, statistics),
            "rotations_": list(rotations),
            "scalings_": list(variances),
            "shrinkage_": np.array(amounts),
            "solver_": solver,
            "_origin": statistics.origin,
            "_shift": statistics.shift.copy(),
        }
        if self.store_covariance:
            learned["covariance_"] = list(covariances)
        return learned

    def _solver_name(self):
        if self.solver == "auto":
            return "gram" if self.covariance_estimator is None else "eigen"
        return self.solver

    def _gaussian(self, statistics, k, rows):
        """Axes, variances along them, covariance and shrinkage of one class."""
        weight = statistics.weight[k]
        inflation = 1.0
        if self.covariance_divisor == "unbiased":
            if weight <= 1:
                raise ValueError(
                    "covariance_divisor='unbiased' needs a sum of weights above 1 in each class, "
                    f"got {weight}: use covariance_divisor='n'."
                )
            inflation = weight / (weight - 1.0)
        if self._solver_name() == "svd":
            X, codes, weights = rows
            chosen = codes == k if weights is None else (codes == k) & (weights > 0)
            centred = X[chosen] - statistics.origin - statistics.shift[k]
            if weights is not None:
                centred *= np.sqrt(weights[chosen])[:, np.newaxis]
            _, singular, axes = svd(centred, full_matrices=False, overwrite_a=True)
            rotation, variances, amount = axes.T, inflation * singular**2 / weight, 0.0
        else:
            covariance, amount = self._covariance(statistics, k, rows)
            variances, rotation = eigh(inflation * covariance)
            variances, rotation = variances[::-1], rotation[:, ::-1]
        if self._solver_name() != "eigen":
            variances = (1.0 - self.reg_param) * variances + self.reg_param
        return rotation, variances, (rotation * variances) @ rotation.T, amount

    def _covariance(self, statistics, k, rows):
        if self.covariance_estimator is None:
            return class_covariance(statistics, k, self.shrinkage)
        X, codes, _ = rows
        return self._estimated(X[codes == k]), np.nan

    def _check_rank(self, variances, label, count, solver):
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
