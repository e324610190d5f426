"""LinearDiscriminantAnalysis: Fisher's directions and Bayes' rule for classes of one covariance."""

from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)

from widemargin._base.sklearn_compat import HasMethods, Interval, StrOptions, fit_context
from widemargin._base.threads import single_threaded_blas
from widemargin.discriminant.base import (
    BayesMixin,
    GrowingMixin,
    check_rows_and_labels,
    class_priors,
    encode,
    log_of,
    rows_times,
)
from widemargin.discriminant.covariance import SHRINKAGES, whitening, within_covariance
from widemargin.discriminant.directions import (
    facing,
    fisher,
    loses_digits,
    sharpened,
    trace_ratio,
    whitening_of_rows,
)
from widemargin.discriminant.namespaces import like
from widemargin.discriminant.statistics import ClassStatistics, dense_rows

# Rows per feature from which on the covariance is formed: it then is the smaller matrix by far.
_TALL = 2


class LinearDiscriminantAnalysis(
    ClassNamePrefixFeaturesOutMixin,
    GrowingMixin,
    BayesMixin,
    ClassifierMixin,
    TransformerMixin,
    BaseEstimator,
):
    r"""Linear discriminant analysis in one pass: directions that separate classes, and Bayes' rule.

    A drop-in for :class:`sklearn.discriminant_analysis.LinearDiscriminantAnalysis` that takes
    weights, sparse rows and rows that come in pieces (`partial_fit`, `merge`), and that reads tall
    data once. The classes are taken for Gaussian with means :math:`m_k`, priors :math:`\pi_k` and
    one covariance :math:`\Sigma`; the class of a row is that of the largest

    .. math::

        \delta_k(x) = x^\top \Sigma^{-1} m_k - \tfrac12 m_k^\top \Sigma^{-1} m_k + \log \pi_k

    The directions of `transform` maximise the scatter between classes against that within them.
    With :math:`S_w = \sum_k \sum_{x \in k} (x - m_k)(x - m_k)^\top` and
    :math:`S_b = \sum_k n_k (m_k - m)(m_k - m)^\top` they solve

    .. math::

        \max_W \operatorname{tr}\bigl((W^\top S_w W)^{-1} W^\top S_b W\bigr)
        \quad \text{(ratio trace)} \qquad \text{or} \qquad
        \max_{W^\top W = I} \frac{\operatorname{tr}(W^\top S_b W)}{\operatorname{tr}(W^\top S_w W)}
        \quad \text{(trace ratio)}

    The first is the eigenproblem :math:`S_b w = \lambda S_w w`, which has at most as many
    directions as there are classes but one; for two classes it is
    :math:`w \propto S_w^{-1}(m_2 - m_1)`.

    Parameters
    ----------
    solver : {'auto', 'gram', 'svd', 'lsqr', 'eigen'}, default='auto'
        - 'gram': the scatter within classes by one pass over the rows, centred by class means; then
          on as 'svd'. Takes memory for a few matrices of (n_features, n_features). Where features
          nearly depend on each other, `fit` looks at the rows a second time, to be as exact as
          'svd'.
        - 'svd': the singular value decomposition of the centred rows, for data with more features
          than rows. Takes dense rows and no shrinkage.
        - 'lsqr': Bayes' rule alone, without directions.
        - 'eigen': the eigenproblem above, for all directions in which rows vary.
        - 'auto': 'gram' for tall data (from two rows per feature on), sparse rows, shrinkage and
          the trace ratio, 'eigen' with a `covariance_estimator`, 'svd' otherwise.

        They agree where they overlap, but with given `priors`: 'svd' and 'gram' pool the
        covariances of the classes by their frequencies, 'lsqr' and 'eigen' by the priors, as
        scikit-learn's do.

    shrinkage : {'auto', 'oas'} or float, default=None
        How far the covariance is moved towards a sphere: by a fixed part between 0 and 1, or for
        each class by what the lemma of Ledoit and Wolf ('auto') or the oracle approximating
        formula ('oas') says of its rows in standard units.

    priors : array-like of shape (n_classes,), default=None
        Prior probabilities of the classes; their frequencies by default.

    n_components : int, default=None
        How many directions `transform` gives; ``min(n_classes - 1, n_features)`` by default.

    store_covariance : bool, default=False
        Whether 'gram' and 'svd' keep `covariance_`; the other solvers always do.

    tol : float, default=1e-4
        Directions in which rows deviate by no more, in standard units within classes, are left
        out by 'gram' and 'svd'.

    covariance_estimator : estimator, default=None
        What estimates the covariance of each class instead of `shrinkage`: it has ``fit`` and
        ``covariance_``. For 'lsqr' and 'eigen', on dense rows without weights.

    objective : {'ratio_trace', 'trace_ratio'}, default='ratio_trace'
        Which of the two ratios above the directions of `transform` maximise. Predictions are the
        same for both.

    covariance_divisor : {'n', 'unbiased'}, default='n'
        What the scatter within classes is divided by: the number of rows, as in scikit-learn, or
        that less the number of classes.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features in the scores of `decision_function`: :math:`\delta_k` less what
        is the same for all classes, :math:`x^\top \Sigma^{-1} \bar x`, with every solver.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constants of the scores.

    covariance_ : ndarray of shape (n_features, n_features)
        Covariance within classes, those of the classes averaged by the priors with every solver.

    explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of each direction in what the objective sums up (not for 'lsqr').

    means_ : ndarray of shape (n_classes, n_features)
        Means of the classes.

    priors_ : ndarray of shape (n_classes,)
        Priors of the classes; they sum to 1.

    scalings_ : ndarray of shape (n_features, n_directions)
        The directions (not for 'lsqr').

    xbar_ : ndarray of shape (n_features,)
        Mean of the class means by their priors; 'gram' and 'svd' centre with it.

    within_rank_ : int
        Effective rank of the covariance within classes: below n_features it is singular.

    between_rank_ : int
        Effective rank of the scatter between classes, the number of directions that separate any:
        below ``n_classes - 1`` the means are dependent (not for 'lsqr').

    shrinkage_ : float or ndarray of shape (n_classes,)
        How far the covariance, or that of each class, was shrunk; nan with a
        `covariance_estimator`.

    objective_ : float
        The ratio that the directions of `transform` reach (not for 'lsqr').

    n_iter_ : int
        Steps to the largest trace ratio; 1 for the others.

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
    QuadraticDiscriminantAnalysis : A covariance for each class.
    KernelDiscriminantAnalysis : For classes that are not Gaussian.

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

    Two halves of the rows, read apart, give the same machine:

    >>> other = LinearDiscriminantAnalysis().fit(X[::2], y[::2])
    >>> other = other.merge(LinearDiscriminantAnalysis().fit(X[1::2], y[1::2]))
    >>> bool(abs(other.coef_ - model.coef_).max() < 1e-9)
    True
    """

    _parameter_constraints: dict = {
        "solver": [StrOptions({"auto", "gram", "svd", "lsqr", "eigen"})],
        "shrinkage": [StrOptions(set(SHRINKAGES)), Interval(Real, 0, 1, closed="both"), None],
        "priors": ["array-like", None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "store_covariance": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "covariance_estimator": [HasMethods("fit"), None],
        "objective": [StrOptions({"ratio_trace", "trace_ratio"})],
        "covariance_divisor": [StrOptions({"n", "unbiased"})],
    }

    _learned = (
        "coef_",
        "intercept_",
        "covariance_",
        "explained_variance_ratio_",
        "means_",
        "priors_",
        "scalings_",
        "xbar_",
        "within_rank_",
        "between_rank_",
        "shrinkage_",
        "objective_",
        "n_iter_",
        "solver_",
        "_origin",
        "_constant",
        "_max_components",
        "_n_features_out",
    )

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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.array_api_support = True
        tags.input_tags.sparse = self.solver != "svd" and self.covariance_estimator is None
        return tags

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, sample_weight=None):
        """Learn from rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. Sparse ones are made dense in small pieces; for those of very many
            features, `KernelDiscriminantAnalysis` with ``kernel='linear'`` takes memory for
            (n_samples, n_samples) instead.

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
        solver = self._solver_for(X)
        on_rows = self._works_on_rows(solver)
        self._check_needs(X, weight, on_rows)
        options = self._statistics_options(solver)
        statistics = ClassStatistics(len(classes), X.shape[1], **options)
        statistics.update(X, codes, weight)
        rows = dense_rows(X) if on_rows else X, codes, weight
        learned = self._learn(statistics, solver, rows)
        self._declared, self._like = False, like(X)
        self._keep(classes, None if on_rows else statistics, learned)
        return self

    def transform(self, X):
        """Project rows onto the directions that separate the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_samples, min(n_components, `between_rank_`))
            The coordinates; 'gram' and 'svd' put the mean `xbar_` at zero.
        """
        if self.solver == "lsqr":
            raise NotImplementedError(
                "transform not implemented for 'lsqr' solver (use 'svd' or 'eigen')."
            )
        X = self._check_rows(X, "transform")
        directions = self.scalings_[:, : self._max_components]
        return rows_times(X, directions, getattr(self, "xbar_", None))

    def _scores(self, X):
        # Far from zero, products with the rows as they are would lose digits.
        if not sp.issparse(X):
            scores = rows_times(X, self.coef_.T, self._origin)
        else:
            slopes, far = self.coef_.T.copy(), np.flatnonzero(self._origin)
            scores = rows_times(X[:, far], slopes[far], self._origin[far])
            slopes[far] = 0.0
            scores += rows_times(X, slopes)
        scores += self._constant
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _check_solver(self):
        self._check_options()
        if self.covariance_estimator is not None and self.solver in ("svd", "gram"):
            raise ValueError(
                f"covariance estimator is not supported with {self.solver} solver. Try another "
                "solver: 'eigen' or 'lsqr'."
            )
        if self.objective == "trace_ratio" and self.solver in ("svd", "lsqr"):
            raise ValueError(
                f"objective='trace_ratio' needs the covariance and directions, which "
                f"solver={self.solver!r} does not compute: use solver='gram' or 'eigen'."
            )

    def _solver_for(self, X=None):
        """The solver that 'auto' stands for; without rows at hand the one that needs none."""
        if self.solver != "auto":
            return self.solver
        if self.covariance_estimator is not None:
            return "eigen"
        wide = X is not None and X.shape[0] < _TALL * X.shape[1] and not sp.issparse(X)
        plain = self.shrinkage is None and self.objective == "ratio_trace"
        return "svd" if wide and plain else "gram"

    def _works_on_rows(self, solver=None):
        return (solver or self.solver) == "svd" or self.covariance_estimator is not None

    def _statistics_options(self, solver=None):
        """What has to be known of the rows."""
        solver = solver or self._solver_for()
        by_priors = self.priors is not None and (
            solver in ("lsqr", "eigen") or self.store_covariance
        )
        apart = by_priors or self.shrinkage in SHRINKAGES
        scatter = "classes" if apart else "pooled"
        if self._works_on_rows(solver) and not (solver == "svd" and self.store_covariance):
            scatter = "none"
        return {"scatter": scatter, "fourth": self.shrinkage == "auto"}

    def _learn(self, statistics, solver=None, rows=None):
        """What follows from the statistics, and from the rows where the solver needs them."""
        solver = solver or self._solver_for()
        statistics = statistics.settled()
        present = statistics.count > 0
        if present.sum() < 2:
            raise ValueError(
                f"y must hold at least two classes, got {present.sum()} class with rows so far."
            )
        if statistics.count.sum() <= present.sum():
            raise ValueError("The number of samples must be more than the number of classes.")
        n_classes, n_features = statistics.shift.shape
        most = min(n_classes - 1, n_features)
        if self.n_components is not None and self.n_components > most:
            raise ValueError(
                "n_components cannot be larger than min(n_features, n_classes - 1) = "
                f"{most}, got {self.n_components}."
            )
        priors = class_priors(self.priors, statistics)
        means = statistics.shift.copy()
        if not present.all():
            overall = statistics.weight @ means / statistics.weight.sum()
            means = np.where(present[:, np.newaxis], means, overall)
        solve = {
            "gram": self._solve_gram,
            "svd": self._solve_svd,
            "lsqr": self._solve_lsqr,
            "eigen": self._solve_eigen,
        }[solver]
        components = self.n_components or most
        with single_threaded_blas():
            learned = solve(statistics, priors, means, components, rows)
        if n_classes == 2:
            for name in ("coef_", "intercept_"):
                learned[name] = learned[name][[1]] - learned[name][[0]]
        origin, constant = statistics.origin, learned["intercept_"]
        if "xbar_" in learned:
            learned["xbar_"] = origin + learned["xbar_"]
        return learned | {
            "intercept_": constant - learned["coef_"] @ origin,
            "means_": origin + means,
            "_origin": origin,
            "_constant": constant,
            "priors_": priors,
            "solver_": solver,
            "_max_components": components,
            "_n_features_out": min(components, learned.get("between_rank_", components)),
        }

    def _solve_gram(self, statistics, priors, means, components, rows=None):
        covariance, amounts = self._pooled(statistics)
        factor = whitening(covariance, self.tol)
        if rows is not None and not self.shrinkage and loses_digits(covariance, factor):
            X, codes, weight = rows
            factor = sharpened(factor, X, codes, weight, statistics)
            factor /= np.sqrt(self._inflation(statistics))
        learned = fisher(factor, priors, means, self.tol, components)
        if self.objective == "trace_ratio":
            learned |= trace_ratio(covariance, factor, priors, means, learned, components)
        if self.store_covariance:
            shares = None if self.priors is None else priors
            learned["covariance_"] = self._pooled(statistics, shares)[0]
        return learned | {"shrinkage_": amounts}

    def _solve_svd(self, statistics, priors, means, components, rows):
        X, codes, weight = rows
        factor = whitening_of_rows(X, codes, weight, statistics, self.tol)
        factor /= np.sqrt(self._inflation(statistics))
        learned = fisher(factor, priors, means, self.tol, components)
        if self.store_covariance:
            learned["covariance_"] = self._pooled(statistics, priors)[0]
        return learned | {"shrinkage_": 0.0}

    def _solve_lsqr(self, statistics, priors, means, components, rows=None):
        covariance, amounts = self._prior_covariance(statistics, priors, rows)
        factor = whitening(covariance, self.tol)
        origin = priors @ means
        coef = (means - origin) @ factor @ factor.T
        return {
            **_bayes(coef, means, origin, priors),
            "covariance_": covariance,
            "within_rank_": factor.shape[1],
            "shrinkage_": amounts,
            "n_iter_": 1,
        }

    def _solve_eigen(self, statistics, priors, means, components, rows=None):
        within, amounts = self._prior_covariance(statistics, priors, rows)
        between = self._total_covariance(statistics, rows) - within / self._inflation(statistics)
        factor = whitening(within, 0.0)
        values, axes = eigh(factor.T @ between @ factor)
        values, vectors = values[::-1], factor @ axes[:, ::-1]
        vectors = facing(vectors, means @ vectors)
        origin = priors @ means
        learned = {
            **_bayes((means - origin) @ vectors @ vectors.T, means, origin, priors),
            "covariance_": within,
            "scalings_": vectors,
            "explained_variance_ratio_": (values / (values.sum() or 1.0))[:components],
            "within_rank_": factor.shape[1],
            "between_rank_": int((values > self.tol**2 * values[:1].sum()).sum()),
            "shrinkage_": amounts,
            "objective_": float(values[:components].sum()),
            "n_iter_": 1,
        }
        if self.objective == "trace_ratio":
            learned |= trace_ratio(within, vectors, priors, means, learned, components)
        return learned

    def _prior_covariance(self, statistics, priors, rows):
        """Covariances of the classes, averaged by the priors."""
        if self.covariance_estimator is None:
            return self._pooled(statistics, None if self.priors is None else priors)
        X, codes, _ = rows
        parts = [self._estimated(X[codes == k]) for k in range(len(priors))]
        return np.tensordot(priors, parts, axes=1) * self._inflation(statistics), np.nan

    def _pooled(self, statistics, shares=None):
        """The covariance within classes, each counted by its share, and how far it was shrunk."""
        covariance, amounts = within_covariance(statistics, self.shrinkage, shares)
        return covariance * self._inflation(statistics), amounts

    def _total_covariance(self, statistics, rows):
        if self.covariance_estimator is not None:
            return self._estimated(rows[0])
        return within_covariance(statistics.total(), self.shrinkage)[0]

    def _inflation(self, statistics):
        """What turns a covariance over n into one over the divisor that is wanted."""
        if self.covariance_divisor == "n":
            return 1.0
        n, n_classes = statistics.weight.sum(), (statistics.count > 0).sum()
        if n <= n_classes:
            raise ValueError(
                "covariance_divisor='unbiased' needs more weight than classes, got a sum of "
                f"weights of {n} in {n_classes} classes: use covariance_divisor='n'."
            )
        return n / (n - n_classes)


def _bayes(coef, means, origin, priors):
    """Bayes' rule of classes whose means less the origin are ``coef`` times the covariance."""
    half_norms = 0.5 * np.einsum("kj,kj->k", means - origin, coef)
    return {"coef_": coef, "intercept_": log_of(priors) - half_norms - coef @ origin}
