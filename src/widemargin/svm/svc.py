"""SVC: kernel support vector classification, one-vs-one and one-vs-rest."""

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.sklearn_compat import (
    Interval,
    StrOptions,
    fit_context,
    num_samples,
    ovr_decision_function,
)
from widemargin._base.targets import Targets, encode_targets
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin._base.validation import check_class_labels, validate_training
from widemargin.kernels import (
    KERNEL_NAMES,
    GramCache,
    KernelFunction,
    KernelGram,
    MatrixGram,
)
from widemargin.kernels.parameters import effective_gamma
from widemargin.kernels.precomputed import check_symmetric, is_positive_semidefinite
from widemargin.solvers import HingeProblem, Solution, solution_at, solve_hinge
from widemargin.svm.reduction import OneVsOne, OneVsRest, TwoClasses
from widemargin.svm.support import SupportScores

_NOTHING = Solution(np.zeros(()), 0.0, np.nan, np.nan, np.nan, 0, False)


@dataclass(frozen=True)
class Training(Targets):
    """Checked training data but for the rows themselves, in the order of the machines' Gram matrix.

    ``order`` says which row stands where in it; labels and weights are those of its rows.
    """

    reduction: OneVsOne | OneVsRest
    order: np.ndarray
    gamma: float


class SVC(SupportScores, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    r"""Kernel support vector classification with a certificate.

    A drop-in for :class:`sklearn.svm.SVC` (without ``probability``) that tells how far from the
    optimum it stopped, treats a row of weight k as k rows, and gives the same bits for any number
    of threads. For every pair of classes (or every class against the rest) it solves

    .. math::

        \min_{f, b} \tfrac12 \|f\|^2
        + \sum_i C_i \max(0, m_i - y_i (f(x_i) + b)), \qquad
        C_i = C \cdot \mathrm{class\ weight} \cdot \mathrm{sample\ weight}

    where the margin :math:`m_i` is 1 but for a given `class_margin`.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a unit of slack; multiplies the sum of the losses. ``np.inf`` demands separation.

    kernel : str or callable, default='rbf'
        One of 'linear', 'poly', 'rbf', 'sigmoid', 'laplacian' and 'precomputed'. A callable takes
        two sets of rows and returns the matrix of kernel values between them.

    degree : int, default=3
        Degree of 'poly'.

    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of 'rbf', 'poly', 'sigmoid' and 'laplacian'. 'scale' is
        ``1 / (n_features * X.var())`` with rows counted by their weights, 'auto' is
        ``1 / n_features``.

    coef0 : float, default=0.0
        Constant of 'poly' and 'sigmoid'.

    multi_class : {'ovo', 'ovr'}, default='ovo'
        Whether there is a machine for every pair of classes or for every class against the rest.
        One problem over all classes is not a set of such machines: see `CrammerSingerSVC`.

    shrinking : bool, default=True
        Whether the solver leaves out rows that will not move.

    tol : float, default=1e-3
        Largest violation of the optimality conditions at which the solver stops.

    gap_tol : float, default=None
        Stop on this relative duality gap instead of on `tol`.

    cache_size : float, default=200
        Memory for kernel values in MB, shared by all machines.

    class_weight : dict, 'balanced' or 'effective', default=None
        Multiplies `C` by class. 'balanced' weighs inversely to class frequencies, 'effective' to
        effective numbers of rows (see `effective_class_weight`).

    class_margin : dict or 'ldam', default=None
        The margin of rows by class, 1 for those not named. 'ldam' gives rare classes wider margins
        than frequent ones (see `ldam_class_margin`).

    verbose : bool, default=False
        Print a line for every machine.

    max_iter : int, default=-1
        Most solver iterations for each machine, -1 for no limit.

    decision_function_shape : {'ovo', 'ovr'}, default='ovr'
        With more than two classes and ``multi_class='ovo'``: whether `decision_function` gives
        one column for each pair of classes or for each class.

    break_ties : bool, default=False
        Whether `predict` settles equal votes by `decision_function`.

    n_jobs : int, default=None
        How many machines are trained at once, in threads. The result does not depend on it.

    random_state : int, RandomState instance or None, default=None
        Has no effect: the solver takes no random steps. Kept so that the class is a drop-in.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.

    class_weight_ : ndarray of shape (n_classes,)
        Multiplier of `C` for each class.

    class_margin_ : ndarray of shape (n_classes,)
        Margin of the rows of each class.

    support_ : ndarray of shape (n_support,)
        Indices of the support vectors, grouped by class.

    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        The support vectors; empty for a precomputed kernel.

    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.

    dual_coef_ : ndarray or sparse matrix of shape (n_classes - 1, n_support)
        Dual variables times signs, laid out as in scikit-learn; one row for each class with
        ``multi_class='ovr'`` and more than two classes.

    intercept_ : ndarray of shape (n_machines,)
        Constant of each decision function.

    coef_ : ndarray or sparse matrix of shape (n_machines, n_features)
        Weights of the features, for ``kernel='linear'``.

    objective_ : ndarray of shape (n_machines,)
        Value of the minimised objective.

    dual_gap_ : ndarray of shape (n_machines,)
        Bound on how far `objective_` is from the optimum, relative to it; nan for kernels that
        are not known to be positive semidefinite ('sigmoid', callables, precomputed matrices that
        are not).

    n_iter_ : ndarray of shape (n_machines,)
        Solver iterations.

    fit_status_ : int
        0 if every machine converged, else 1 (and a warning was given).

    shape_fit_ : tuple of int
        Shape of the training data.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during fit, when they are all strings.

    See Also
    --------
    sklearn.svm.SVC : The class this one stands in for.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10.0).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> bool((model.dual_gap_ < 1e-9).all())
    True
    """

    _parameter_constraints: dict = {
        "C": [Interval(Real, 0.0, None, closed="right")],
        "kernel": [StrOptions({*KERNEL_NAMES, "precomputed"}), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "multi_class": [StrOptions({"ovo", "ovr"})],
        "shrinking": ["boolean"],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "gap_tol": [Interval(Real, 0.0, None, closed="neither"), None],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced", "effective"}), dict, None],
        "class_margin": [StrOptions({"ldam"}), dict, None],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "decision_function_shape": [StrOptions({"ovo", "ovr"})],
        "break_ties": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    _multi_class: str | None = None

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        multi_class="ovo",
        shrinking=True,
        tol=1e-3,
        gap_tol=None,
        cache_size=200,
        class_weight=None,
        class_margin=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        n_jobs=None,
        random_state=None,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.multi_class = multi_class
        self.shrinking = shrinking
        self.tol = tol
        self.gap_tol = gap_tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.class_margin = class_margin
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the machines.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training rows, or the kernel matrix between them for ``kernel='precomputed'``.

        y : array-like of shape (n_samples,)
            Targets.

        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies `C` by row; at least 0. A row of weight k counts as k rows, one of weight 0
            as none.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X, y = self._check_training_data(X, y)
        training = self._prepare(X, y, sample_weight, self.gamma)
        progress = FitProgress.open(
            self,
            len(training.reduction.machines),
            X=X,
            y=y,
            metadata={"sample_weight": sample_weight},
        )
        solutions = self._train(X, training, self.C, progress)
        progress.close()
        report_convergence(self, solutions, progress.stop_requested)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the classes, or of the pairs of classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or \
                (n_samples, n_samples_fit)
            Rows, or their kernel values against the training rows for ``kernel='precomputed'``.

        Returns
        -------
        scores : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            With two classes, positive for ``classes_[1]``.
        """
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        if self._way() == "ovo" and self.decision_function_shape == "ovr":
            return ovr_decision_function(scores < 0, -scores, len(self.classes_))
        return scores

    def predict(self, X: Any) -> np.ndarray:
        """The class of every row.

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
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'.")
        n_classes = len(self.classes_)
        if n_classes == 2:
            codes = (self._scores(X)[:, 0] > 0).astype(np.intp)
        elif self._way() == "ovr" or self.break_ties:
            codes = self.decision_function(X).argmax(axis=1)
        else:
            codes = OneVsOne.votes(self._scores(X), n_classes).argmax(axis=1)
        return self.classes_[codes]

    @property
    def n_support_(self):
        """Number of support vectors of each class."""
        check_is_fitted(self)
        return self._n_support

    @property
    def coef_(self):
        """Weights of the features of every machine, for ``kernel='linear'``."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel.")
        check_is_fitted(self)
        reduction = self._reduction(len(self.classes_))
        with single_threaded_blas():
            coef = reduction.primal(self.dual_coef_, self.support_vectors_, self.n_support_)
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    def _check_training_data(self, X, y):
        if self.multi_class == "ovr" and self.decision_function_shape == "ovo":
            raise ValueError(
                "decision_function_shape='ovo' needs a machine for every pair of classes: "
                "use multi_class='ovo'."
            )
        if sp.issparse(X) and self.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported: give X as an array.")
        if callable(self.kernel):
            check_consistent_length(X, y)
            y = column_or_1d(y, warn=True)
            check_class_labels(y)
        else:
            X, y = validate_training(self, X, y)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"X must be a square matrix for kernel='precomputed', got shape {X.shape}: the "
                "kernel values between all training rows."
            )
        return X, y

    def _prepare(self, X, y, sample_weight, gamma):
        """What training on checked rows starts from, whatever C is."""
        rows, labels = encode_targets(y, sample_weight, self.class_weight, self.class_margin)
        n_classes = len(labels.classes)
        reduction = self._reduction(n_classes, self.multi_class)(labels.codes, n_classes)
        return Training(
            **vars(labels.reordered(reduction.order)),
            reduction=reduction,
            order=np.arange(len(y))[rows][reduction.order],
            gamma=self._effective_gamma(X, rows, labels.weight, gamma),
        )

    def _train(self, X, training, C, progress, first_task=0):
        """Solve all machines, set the fitted attributes and return the solutions."""
        machines, jobs = training.reduction.machines, effective_n_jobs(self.n_jobs)
        cache = self._cache(X, training, jobs)
        costs, margins = training.costs(C), training.margins()
        solutions: list = [None] * len(machines)

        def attributes():
            return self._attributes(X, training, solutions)

        def solve(number):
            machine = machines[number]
            problem = HingeProblem(
                cache.of(*machine.groups),
                machine.sign,
                *self._margins_and_costs(training, machine, margins, costs),
            )
            with progress.task(first_task + number, attributes) as stop:

                def report(state):
                    solutions[number] = solution_at(state)
                    return stop()

                solutions[number] = solve_hinge(
                    problem,
                    **self._solver_options(),
                    report=report if progress.active else None,
                )

        for_each(solve, range(len(machines)), jobs)
        for name, value in attributes().items():
            setattr(self, name, value)
        self._single = self._single_is_enough()
        return solutions

    def _margins_and_costs(self, training, machine, margins, costs):
        """Those of a machine's rows, given those of all rows."""
        return margins[machine.rows], costs[machine.rows]

    def _cache(self, X, training, jobs):
        """The memory that all machines share."""
        gram = self._gram(X, training.order, training.gamma)
        sizes = training.reduction.group_sizes
        several = len(training.reduction.machines) > len(sizes) == 1
        jobs = min(jobs, len(training.reduction.machines))
        return GramCache(gram, self.cache_size * 2**20, sizes, shared=several, jobs=jobs)

    def _solver_options(self):
        names = ("tol", "gap_tol", "max_iter", "shrinking")
        return {name: getattr(self, name) for name in names}

    def _reduction(self, n_classes, way=None):
        if n_classes == 2:
            return TwoClasses
        return OneVsOne if (way or self._way()) == "ovo" else OneVsRest

    def _way(self):
        """What `multi_class` was when training began: it may have been set anew since."""
        return self._multi_class or self.multi_class

    def _effective_gamma(self, X, rows, weight, gamma):
        """The number behind gamma, every row counted by its weight."""
        if callable(self.kernel) or self.kernel in ("linear", "precomputed"):
            return 0.0
        return effective_gamma(gamma, X if isinstance(gamma, Real) else X[rows], weight)

    def _gram(self, X, order, gamma):
        """The Gram matrix of the training rows in the given order."""
        if callable(self.kernel):
            X = self._call_kernel(X, X)
        if callable(self.kernel) or self.kernel == "precomputed":
            matrix = X if _is_identity(order, len(X)) else X[np.ix_(order, order)]
            check_symmetric(matrix, "kernel's matrix" if callable(self.kernel) else "X")
            gram = MatrixGram(matrix, positive_semidefinite=is_positive_semidefinite(matrix))
        else:
            gram = self._rows_gram(X if _is_identity(order, X.shape[0]) else X[order], gamma)
        if not gram.is_finite():
            raise ValueError(
                "The dual coefficients or intercepts are not finite: X holds values that are too "
                "large for the kernel and need to be preprocessed, for example by StandardScaler."
            )
        return gram

    def _rows_gram(self, X, gamma):
        return KernelGram(KernelFunction(self.kernel, gamma, self.degree, self.coef0), X)

    def _call_kernel(self, X, Y):
        if not num_samples(X):
            raise ValueError("X must hold at least one row, got 0 sample(s).")
        values = self.kernel(X, Y)
        values = values.toarray() if sp.issparse(values) else np.asarray(values)
        if values.shape != (num_samples(X), num_samples(Y)):
            raise ValueError(
                f"kernel returned an array of shape {values.shape} for {num_samples(X)} and "
                f"{num_samples(Y)} rows; it must return one value for every pair of rows."
            )
        if values.dtype.kind == "c":
            raise ValueError("kernel returned complex numbers; it must return real ones.")
        values = np.ascontiguousarray(values, dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError("kernel returned values that are not finite; none may be inf or nan.")
        return values

    def _attributes(self, X, training, solutions):
        """Fitted attributes by name; machines without a solution yet decide nothing."""
        done = [solution or _NOTHING for solution in solutions]
        reduction, order, codes = training.reduction, training.order, training.codes
        coef = np.zeros((len(order), reduction.width))
        for number, machine in enumerate(reduction.machines):
            coef[machine.rows, reduction.columns(number)] = done[number].dual
        positions = np.flatnonzero(coef.any(axis=1))
        positions = positions[np.lexsort((order[positions], codes[positions]))]
        support = order[positions].astype(np.int32)
        dual_coef = np.ascontiguousarray(coef[positions].T)
        sparse = sp.issparse(X) and not callable(self.kernel)
        attributes = {
            "_multi_class": self.multi_class,
            "_gamma": training.gamma,
            "_sparse": sparse,
            "_single": False,
            "_support_grams": {},
            "shape_fit_": X.shape if hasattr(X, "shape") else (len(X),),
            "classes_": training.classes,
            "class_weight_": training.class_weight,
            "class_margin_": training.class_margin,
            "support_": support,
            "support_vectors_": np.empty((0, 0)),
            "_n_support": np.bincount(codes[positions], minlength=len(training.classes)).astype(
                np.int32
            ),
            "dual_coef_": type(X)(dual_coef) if sparse else dual_coef,
            "intercept_": np.array([s.intercept for s in done]),
            "objective_": np.array([s.objective for s in done]),
            "dual_gap_": np.array([s.gap for s in done]),
            "n_iter_": np.array([s.iterations for s in done], dtype=np.int32),
            "fit_status_": int(not all(s.converged for s in done)),
        }
        if callable(self.kernel):
            attributes["_X_fit"] = X
        elif self.kernel != "precomputed":
            attributes["support_vectors_"] = X[support]
        return attributes

    def __getstate__(self):
        state = super().__getstate__()
        return {**state, "_support_grams": {}} if "_support_grams" in state else state


def _is_identity(order, n):
    return len(order) == n and bool((order == np.arange(n)).all())
