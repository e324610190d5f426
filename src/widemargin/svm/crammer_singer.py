"""CrammerSingerSVC: one problem over all classes, linear or with a kernel."""

from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.matmul import tiled_multiply
from widemargin._base.sklearn_compat import Interval, StrOptions, fit_context
from widemargin._base.targets import encode_targets
from widemargin._base.threads import for_each
from widemargin._base.validation import (
    canonical_csr,
    check_class_labels,
    check_magnitude,
    validate_predict,
    validate_training,
)
from widemargin.kernels import GramCache
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.functions import KernelNames
from widemargin.kernels.parameters import KernelParameters
from widemargin.solvers.multiclass.gram import solution_at as gram_solution_at
from widemargin.solvers.multiclass.gram import solve_gram
from widemargin.solvers.multiclass.problem import MultiClassSolution
from widemargin.solvers.multiclass.rows import solution_at as rows_solution_at
from widemargin.solvers.multiclass.rows import solve_rows
from widemargin.svm import support
from widemargin.svm.linear_svc import (
    TIE,
    LinearSVC,
    constant_feature,
    largest_scores,
    linear_scores,
    with_ties,
)

_PREDICT_BYTES = 1 << 25
_OF_ONE_KIND = (
    "coef_", "support_", "support_vectors_", "dual_coef_", "_gamma", "_X_fit", "_size",
)  # fmt: skip


class CrammerSingerSVC(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    r"""Multi-class support vector classification as one problem over all classes.

    The machine of Crammer and Singer pays for the class that most nearly beats the right one,
    instead of for every class by itself; it is the structural machine with the zero-one loss. It
    gives comparable scores of all classes and tells how far from the optimum it stopped:

    .. math::

        \min_{f_1, \dots, f_K} \tfrac12 \sum_k \|f_k\|^2
        + \sum_i C_i \max_k (m_i 1[k \neq y_i] + f_k(x_i) - f_{y_i}(x_i)), \qquad
        C_i = C \cdot \mathrm{class\ weight} \cdot \mathrm{sample\ weight}

    As in liblinear, an intercept is the weight of a constant feature and is regularised with the
    others. The margin :math:`m_i` is 1 unless `class_margin` says otherwise.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a unit of slack; multiplies the sum of the losses.

    kernel : str or callable, default='linear'
        One of 'linear', 'poly', 'rbf', 'sigmoid', 'laplacian' and 'precomputed'. With 'linear' the
        solver keeps weights of the features, else kernel values between rows.
        A function ``kernel(X, Y)`` returns the kernel values between the rows of X and Y.

    degree : int, default=3
        Degree of 'poly'.

    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of 'rbf', 'poly', 'sigmoid' and 'laplacian', as in `SVC`.

    coef0 : float, default=0.0
        Constant of 'poly' and 'sigmoid'.

    fit_intercept : bool, default=True
        Whether every class has an intercept.

    intercept_scaling : float, default=1.0
        Value of the constant feature behind the intercepts; the larger, the less they are
        regularised.

    tol : float, default=1e-3
        Largest violation of a row's optimality conditions at which the solver stops.

    gap_tol : float, default=None
        Stop on this relative duality gap instead of on `tol`. Without meaning where the kernel is
        not positive semidefinite.

    cache_size : float, default=200
        Memory for kernel values in MB.

    class_weight : dict, 'balanced' or 'effective', default=None
        Multiplies `C` by class. 'balanced' weighs inversely to class frequencies, 'effective' to
        effective numbers of rows (see `effective_class_weight`).

    class_margin : dict or 'ldam', default=None
        By how much the score of a row's own class should exceed those of the others, 1 for classes
        not named. 'ldam' asks more of rarer classes (see `ldam_class_margin`).

    verbose : bool, default=False
        Print a line at the end.

    max_iter : int, default=10000
        Most passes over the rows, or batches of rows with a kernel; -1 for no limit.

    warm_start : bool, default=False
        Whether to start from the solution of the previous fit, where that was to the same classes
        and number of rows. So a fit that a callback or `max_iter` stopped goes on.

    random_state : int, RandomState instance or None, default=None
        Seed of the order in which rows are taken. None is a fixed seed too: a fit can be repeated.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.

    class_weight_ : ndarray of shape (n_classes,)
        Multiplier of `C` for each class.

    class_margin_ : ndarray of shape (n_classes,)
        Margin of each class.

    coef_ : ndarray of shape (n_classes, n_features)
        Weights of the features, for ``kernel='linear'``.

    intercept_ : ndarray of shape (n_classes,)
        Constants of the classes.

    support_ : ndarray of shape (n_support,)
        Indices of the rows that the functions are made of, for other kernels.

    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        Those rows, for other kernels; empty for 'precomputed' and callables.

    dual_coef_ : ndarray of shape (n_classes, n_support)
        Their dual variables, for other kernels.

    objective_ : float
        Value of the minimised objective.

    dual_gap_ : float
        Bound on how far `objective_` is from the optimum, relative to it; nan for kernels that are
        not known to be positive semidefinite ('sigmoid', and matrices that are not).

    n_iter_ : int
        Passes over the rows, or batches.

    fit_status_ : int
        0 if the solver converged, else 1 (and a warning was given).

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during fit, when they are all strings.

    See Also
    --------
    LinearSVC : One class against the rest.
    SVC : Pairs of classes, with kernels.

    References
    ----------
    K. Crammer, Y. Singer: On the algorithmic implementation of multiclass kernel-based vector
    machines. JMLR 2001.

    S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin: A sequential dual method
    for large scale multi-class linear SVMs. KDD 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import CrammerSingerSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrammerSingerSVC(kernel="rbf").fit(X, y)
    >>> labels, scores = model.top_two(X[[70]])
    >>> labels
    array([[1, 2]])
    >>> bool(model.dual_gap_ < 1e-6)
    True
    """

    _parameter_constraints: dict = {
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "kernel": [StrOptions(KernelNames("precomputed")), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "gap_tol": [Interval(Real, 0.0, None, closed="neither"), None],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced", "effective"}), dict, None],
        "class_margin": [StrOptions({"ldam"}), dict, None],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        C=1.0,
        kernel="linear",
        degree=3,
        gamma="scale",
        coef0=0.0,
        fit_intercept=True,
        intercept_scaling=1.0,
        tol=1e-3,
        gap_tol=None,
        cache_size=200,
        class_weight=None,
        class_margin=None,
        verbose=False,
        max_iter=10_000,
        warm_start=False,
        random_state=None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.gap_tol = gap_tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.class_margin = class_margin
        self.verbose = verbose
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Train the functions of all classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training rows, or the kernel matrix between them for ``kernel='precomputed'``.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies `C` by row; at least 0. A row of weight k counts as k rows, one of weight 0
            as none.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = self._check_training_data(X, y)
        rows, labels = encode_targets(y, sample_weight, self.class_weight, self.class_margin)
        index = np.arange(len(y))[rows]
        gamma = self._gram_maker()._effective_gamma(X, rows, labels.weight, self.gamma)
        progress = FitProgress.open(self, 1, X, y, {"sample_weight": sample_weight})
        latest, radius = self._nothing(len(index), X, len(labels.classes)), 0.0

        def attributes():
            return self._attributes(X, index, labels, gamma, latest, radius)

        with progress.task(0, attributes) as stop:

            def report(state):
                nonlocal latest
                if progress.active:
                    latest = solution_at(state)
                return stop()

            solution_at, solve, radius = self._solver(X, index, gamma)
            latest = solve(
                labels.codes, labels.costs(self.C), len(labels.classes), margin=labels.margins(),
                dual=self._start(index, labels), report=report, **self._solver_options(),
            )  # fmt: skip
        for name in _OF_ONE_KIND:  # of the last fit
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes())
        progress.close()
        report_convergence(self, [latest], progress.stop_requested)
        return self

    def decision_function(self, X):
        """Scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_fit)
            Rows, or their kernel values against the training rows for ``kernel='precomputed'``.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, the score of the second less that of the first.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """The class of every row.

        At the optimum the rivals of a training row that it pays for have equal scores. Of classes
        whose scores agree to eight digits of the largest the first is taken; `decision_function`
        gives them the same score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_fit)
            Rows, or their kernel values against the training rows for ``kernel='precomputed'``.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            One of `classes_` for every row.
        """
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def top_two(self, X):
        """The two best classes of every row, and their scores.

        Their difference is how sure the machine is: at least its margin where a training row costs
        nothing.
        Ties are settled as in `predict`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_fit)
            Rows, or their kernel values against the training rows for ``kernel='precomputed'``.

        Returns
        -------
        labels : ndarray of shape (n_samples, 2)
            The best class and the runner-up.

        scores : ndarray of shape (n_samples, 2)
            Their scores.
        """
        scores = self._scores(X)
        rows = np.arange(len(scores))
        best = scores.argmax(axis=1)
        first = scores[rows, best]
        scores[rows, best] = -np.inf
        second = scores.argmax(axis=1)
        labels = self.classes_[np.column_stack([best, second])]
        return labels, np.column_stack([first, scores[rows, second]])

    def _check_training_data(self, X, y):
        if sp.issparse(X) and self.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported: give X as an array.")
        if callable(self.kernel):
            check_consistent_length(X, y)
            y = column_or_1d(y, warn=True)
            check_class_labels(y)
            return X, y
        X, y = validate_training(self, X, y)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X must be a square matrix for kernel='precomputed', got shape {X.shape}: the "
                "kernel values between all training rows."
            )
        return X, y

    def _solver(self, X, index, gamma):
        """How to look at the solver's states, the solver, and how far rows are from the origin."""
        if self.kernel == "linear":
            check_magnitude(X)
            X = X if len(index) == X.shape[0] else X[index]
            return rows_solution_at, partial(solve_rows, X), 0.0
        gram = GramCache(self._gram_maker()._gram(X, index, gamma), self.cache_size * 2**20).of()
        gram.use_float64()
        radius = float(np.sqrt(np.abs(gram.diagonal()).max(initial=0.0)))
        return gram_solution_at, partial(solve_gram, gram), radius

    def _solver_options(self):
        random = check_random_state(0 if self.random_state is None else self.random_state)
        return {
            "bias": constant_feature(self),
            "tol": self.tol,
            "gap_tol": self.gap_tol,
            "max_iter": self.max_iter,
            "seed": int(random.randint(np.iinfo(np.int32).max)),
        }

    def _start(self, index, labels):
        """Where to start from: the last solution, if it is wanted and fits."""
        dual = getattr(self, "_dual", None)
        same = np.array_equal(getattr(self, "classes_", ()), labels.classes)
        fits = self.warm_start and dual is not None and same and len(dual) == len(index)
        return dual if fits else None

    def _gram_maker(self):
        """An `SVC` with this estimator's kernel, which knows how to make Gram matrices."""
        return support.TransitionalSVC(
            kernel=self.kernel, degree=self.degree, gamma=self.gamma, coef0=self.coef0
        )

    def _attributes(self, X, index, labels, gamma, solution, radius):
        """Fitted attributes by name."""
        bias = constant_feature(self)
        attributes = {
            "classes_": labels.classes,
            "class_weight_": labels.class_weight,
            "class_margin_": labels.class_margin,
            "objective_": solution.objective,
            "dual_gap_": solution.gap,
            "n_iter_": solution.iterations,
            "fit_status_": int(not solution.converged),
            "_dual": solution.dual if self.warm_start else None,
        }
        if self.kernel == "linear":
            weights = solution.weights
            attributes["coef_"] = np.ascontiguousarray(weights[:-1].T)
            attributes["intercept_"] = bias * weights[-1]
            return attributes
        support = np.flatnonzero(solution.dual.any(axis=1))
        given = callable(self.kernel) or self.kernel == "precomputed"
        return {
            **attributes,
            "support_": index[support].astype(np.int32),
            "support_vectors_": np.empty((0, 0)) if given else X[index[support]],
            "dual_coef_": np.ascontiguousarray(solution.dual[support].T),
            "intercept_": bias**2 * solution.dual.sum(axis=0),
            "_gamma": gamma,
            "_X_fit": X if callable(self.kernel) else None,
            "_size": radius * _norm(solution, labels),
        }

    def _scores(self, X):
        """Scores of all classes."""
        check_is_fitted(self)
        if callable(self.kernel):
            X = self._gram_maker()._call_kernel(X, self._X_fit)
        else:
            X = canonical_csr(validate_predict(self, X))
        if hasattr(self, "coef_"):
            scores = linear_scores(X, self.coef_) + self.intercept_
            return with_ties(scores, largest_scores(X, self.coef_, self.intercept_))
        values = self._kernel_values(X)
        step = max(1, _PREDICT_BYTES // (8 * max(len(self.support_), 1)))
        dual = np.ascontiguousarray(self.dual_coef_.T)
        scores = for_each(
            lambda first: tiled_multiply(values(first, first + step), dual),
            range(0, X.shape[0], step),
        )
        return with_ties(np.concatenate(scores) + self.intercept_, self._size)

    def _kernel_values(self, X):
        """A function from a range of rows to their kernel values against the support vectors."""
        if callable(self.kernel) or self.kernel == "precomputed":
            return lambda first, last: np.ascontiguousarray(X[first:last, self.support_])
        support = self.support_vectors_
        if sp.issparse(support) and not sp.issparse(X):
            X = type(support)(X)
        gram = self._gram_maker()._rows_gram(support, self._gamma)
        return lambda first, last: gram.cross_values(X[first:last])

    def _nothing(self, n, X, n_classes):
        """The functions that are 0, before anything is known."""
        weights = np.zeros((X.shape[1] + 1, n_classes)) if self.kernel == "linear" else None
        dual = np.zeros((n, n_classes))
        return MultiClassSolution(dual, weights, np.nan, np.nan, np.nan, 0, False)


def _norm(solution, labels):
    """The norm of all functions together, from what the dual says of it: gain - norm^2 / 2."""
    own = solution.dual[np.arange(len(labels.codes)), labels.codes]
    gain = float(np.sum(labels.margins() * own))
    return np.sqrt(max(0.0, 2.0 * (gain - np.nan_to_num(solution.dual_objective))))


def joint_expansion(estimator: CrammerSingerSVC) -> KernelExpansion | None:
    """Return the functions of all classes of a fitted estimator, None if they are linear."""
    if hasattr(estimator, "coef_") or not estimator.support_vectors_.shape[0]:
        return None
    kernel = estimator.kernel, estimator._gamma, estimator.degree, estimator.coef0
    return KernelExpansion(
        KernelParameters(*kernel),
        estimator.support_vectors_,
        estimator.dual_coef_,
        estimator.intercept_,
    )


def tie_tolerance(estimator: Any, X: Any) -> np.ndarray | float:
    """Return the difference up to which `predict` takes the scores of classes as equal.

    ``X`` are validated samples; only estimators with a joint problem over all classes have ties.
    """
    if isinstance(estimator, LinearSVC) and estimator.multi_class == "crammer_singer":
        return TIE * largest_scores(X, estimator.coef_, estimator.intercept_)
    if not isinstance(estimator, CrammerSingerSVC):
        return 0.0
    if hasattr(estimator, "coef_"):
        return TIE * largest_scores(X, estimator.coef_, estimator.intercept_)
    return TIE * estimator._size
