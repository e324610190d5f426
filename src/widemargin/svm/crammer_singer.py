"""CrammerSingerSVC: one problem over all classes, linear or with a kernel."""

import warnings
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from widemargin._core.products import tiled_multiply
from widemargin._core.progress import FitProgress
from widemargin._core.threads import for_each
from widemargin.kernels import KERNEL_NAMES, GramCache
from widemargin.solvers.crammer_singer import MultiClassSolution
from widemargin.solvers.crammer_singer_gram import solution_at as gram_solution_at
from widemargin.solvers.crammer_singer_gram import solve_gram
from widemargin.solvers.crammer_singer_rows import solution_at as rows_solution_at
from widemargin.solvers.crammer_singer_rows import solve_rows
from widemargin.svm.linear import linear_scores
from widemargin.svm.svc import SVC
from widemargin.svm.training import check_rows, check_training_rows, encode, print_solutions

_PREDICT_BYTES = 1 << 25
_EQUAL = 1e-8


class CrammerSingerSVC(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    r"""Multi-class support vector classification as one problem over all classes.

    The machine of Crammer and Singer pays for the class that most nearly beats the right one,
    instead of for every class by itself; it is the structural machine with the zero-one loss. It
    gives comparable scores of all classes and tells how far from the optimum it stopped:

    .. math::

        \min_{f_1, \dots, f_K} \tfrac12 \sum_k \|f_k\|^2
        + \sum_i C_i \max_k (1[k \neq y_i] + f_k(x_i) - f_{y_i}(x_i)), \qquad
        C_i = C \cdot \mathrm{class\ weight} \cdot \mathrm{sample\ weight}

    As in liblinear, an intercept is the weight of a constant feature and is regularised with the
    others.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a unit of slack; multiplies the sum of the losses.

    kernel : {'linear', 'poly', 'rbf', 'sigmoid', 'laplacian'}, default='linear'
        With 'linear' the solver keeps weights of the features, else kernel values between rows.

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
        Stop on this relative duality gap instead of on `tol`.

    cache_size : float, default=200
        Memory for kernel values in MB.

    class_weight : dict, 'balanced' or 'effective', default=None
        Multiplies `C` by class. 'balanced' weighs inversely to class frequencies, 'effective' to
        effective numbers of rows (see `effective_class_weight`).

    verbose : bool, default=False
        Print a line at the end.

    max_iter : int, default=-1
        Most passes over the rows, or batches of rows with a kernel; -1 for no limit.

    random_state : int, RandomState instance or None, default=None
        Seed of the order in which rows are taken. None is a fixed seed too: a fit can be repeated.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.

    class_weight_ : ndarray of shape (n_classes,)
        Multiplier of `C` for each class.

    coef_ : ndarray of shape (n_classes, n_features)
        Weights of the features, for ``kernel='linear'``.

    intercept_ : ndarray of shape (n_classes,)
        Constants of the classes.

    support_ : ndarray of shape (n_support,)
        Indices of the rows that the functions are made of, for other kernels.

    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        Those rows, for other kernels.

    dual_coef_ : ndarray of shape (n_classes, n_support)
        Their dual variables, for other kernels.

    objective_ : float
        Value of the minimised objective.

    dual_gap_ : float
        Bound on how far `objective_` is from the optimum, relative to it; nan for kernels that are
        not known to be positive semidefinite ('sigmoid').

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
        "kernel": [StrOptions(set(KERNEL_NAMES))],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "gap_tol": [Interval(Real, 0.0, None, closed="neither"), None],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced", "effective"}), dict, None],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
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
        verbose=False,
        max_iter=-1,
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
        self.verbose = verbose
        self.max_iter = max_iter
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Train the functions of all classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.

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
        X, y = check_training_rows(self, X, y)
        rows, labels = encode(y, sample_weight, self.class_weight)
        n_classes, index = len(labels.classes), np.arange(len(y))[rows]
        gamma = self._gram_maker()._effective_gamma(X, rows, labels.weight, self.gamma)
        progress = FitProgress.open(self, 1, X, y, {"sample_weight": sample_weight})

        def attributes(solution):
            shared = {
                "classes_": labels.classes,
                "class_weight_": labels.weight_of_class,
                "_gamma": gamma,
            }
            return {**shared, **self._attributes(X, index, solution)}

        nothing = np.zeros((len(index), n_classes)), np.zeros((X.shape[1] + 1, n_classes))
        latest = {"solution": MultiClassSolution(*nothing, np.nan, np.nan, np.nan, 0, False)}
        with progress.task(0, lambda: attributes(latest["solution"])) as stop:

            def report(state):
                if progress.listening:
                    latest["solution"] = self._solution_at(state)
                return stop()

            solution = self._solve(X, index, labels, gamma, report)
        for name, value in attributes(solution).items():
            setattr(self, name, value)
        progress.close()
        self._tell(solution)
        return self

    def decision_function(self, X):
        """Scores of the classes.

        At the optimum the rivals of a training row that it pays for have equal scores: those that
        agree with a row's best to eight digits are given as equal.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, the score of the second less that of the first.
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """The class of every row.

        Of classes with equal scores the first one is taken.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            One of `classes_` for every row.
        """
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def top_two(self, X):
        """The two best classes of every row, and their scores.

        Their difference is how sure the machine is: at least 1 where a training row costs nothing.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

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

    def _solve(self, X, index, labels, gamma, report):
        problem = labels.codes, labels.costs(self.C), len(labels.classes)
        random = check_random_state(0 if self.random_state is None else self.random_state)
        options = {
            "bias": self._bias(),
            "tol": self.tol,
            "gap_tol": self.gap_tol,
            "max_iter": self.max_iter,
            "seed": int(random.randint(np.iinfo(np.int32).max)),
            "report": report,
        }
        if self.kernel == "linear":
            X = X if len(index) == X.shape[0] else X[index]
            return solve_rows(X, *problem, **options)
        gram = GramCache(self._gram_maker()._gram(X, index, gamma), self.cache_size * 2**20).of()
        gram.sharpen()
        return solve_gram(gram, *problem, **options)

    def _solution_at(self, state):
        return rows_solution_at(state) if self.kernel == "linear" else gram_solution_at(state)

    def _gram_maker(self):
        """An `SVC` with this estimator's kernel, which knows how to make Gram matrices."""
        return SVC(kernel=self.kernel, degree=self.degree, gamma=self.gamma, coef0=self.coef0)

    def _bias(self):
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _attributes(self, X, index, solution):
        """Fitted attributes by name."""
        attributes = {
            "objective_": solution.objective,
            "dual_gap_": solution.gap,
            "n_iter_": solution.iterations,
            "fit_status_": int(not solution.converged),
        }
        if self.kernel == "linear":
            weights = solution.weights
            attributes["coef_"] = np.ascontiguousarray(weights[:-1].T)
            attributes["intercept_"] = self._bias() * weights[-1]
        else:
            support = np.flatnonzero(solution.dual.any(axis=1))
            attributes["support_"] = index[support].astype(np.int32)
            attributes["support_vectors_"] = X[index[support]]
            attributes["dual_coef_"] = np.ascontiguousarray(solution.dual[support].T)
            attributes["intercept_"] = self._bias() ** 2 * solution.dual.sum(axis=0)
        return attributes

    def _tell(self, solution):
        if self.verbose:
            print_solutions(type(self).__name__, [solution])
        if not solution.converged:
            warnings.warn(
                f"Solver terminated early (max_iter={self.max_iter}). Consider pre-processing your "
                "data with StandardScaler or MinMaxScaler. Relative duality gap: "
                f"{solution.gap:.1e}.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _scores(self, X):
        """Scores of all classes."""
        check_is_fitted(self)
        X = check_rows(self, X)
        if self.kernel == "linear":
            return _settle_ties(linear_scores(X, self.coef_) + self.intercept_)
        support = self.support_vectors_
        if sp.issparse(support) and not sp.issparse(X):
            X = type(support)(X)
        gram = self._gram_maker()._rows_gram(support, self._gamma)
        step = max(1, _PREDICT_BYTES // (8 * max(support.shape[0], 1)))
        dual = np.ascontiguousarray(self.dual_coef_.T)
        scores = for_each(
            lambda first: tiled_multiply(gram.against(X[first : first + step]), dual),
            range(0, X.shape[0], step),
        )
        return _settle_ties(np.concatenate(scores) + self.intercept_)


def _settle_ties(scores):
    """Make scores that are a row's best but for rounding equal to it."""
    best = scores.max(axis=1, keepdims=True)
    return np.where(scores >= best - _EQUAL * np.maximum(1.0, np.abs(best)), best, scores)
