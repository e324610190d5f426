"""LinearSVC and LinearSVCCV: linear machines, one class against the rest, and their C."""

import warnings
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.callback import CallbackSupportMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from widemargin._core.products import tiled_multiply
from widemargin._core.progress import FitProgress
from widemargin._core.threads import for_each
from widemargin.costs import class_weights, row_costs
from widemargin.solvers.crammer_singer import rows_solution_at, solve_rows
from widemargin.solvers.linear import LinearProblem
from widemargin.solvers.linear_descent import descend_linear
from widemargin.solvers.linear_descent import solution_at as descent_at
from widemargin.solvers.linear_newton import newton_linear
from widemargin.solvers.linear_newton import solution_at as newton_at
from widemargin.svm.svc import _check_weights
from widemargin.svm.svccv import _accuracy, _nan_last, _takes_weights


@dataclass(frozen=True)
class Training:
    """Checked training data of positive weight; ``rows`` says which rows of X they are."""

    X: np.ndarray
    classes: np.ndarray
    codes: np.ndarray
    weight: np.ndarray | None
    weight_of_class: np.ndarray
    seeds: np.ndarray

    @property
    def n_machines(self):
        return 1 if len(self.classes) == 2 else len(self.classes)

    def costs(self, C):
        return row_costs(C, self.codes, self.weight_of_class, self.weight)

    def sign(self, machine):
        """+1 for the rows of the machine's class, which is the second one of two."""
        positive = 1 if len(self.classes) == 2 else machine
        return np.where(self.codes == positive, 1.0, -1.0)


class LinearSVC(CallbackSupportMixin, SparseCoefMixin, ClassifierMixin, BaseEstimator):
    r"""Linear support vector classification with a certificate.

    A drop-in for :class:`sklearn.svm.LinearSVC` (with the l2 penalty) that tells how far from the
    optimum it stopped, treats a row of weight k as k rows, and gives the same bits for any number
    of threads and jobs. For every class against the rest it solves

    .. math::

        \min_{w, b} \tfrac12 (\|w\|^2 + (b / s)^2)
        + \sum_i C_i \, \ell(1 - y_i (\langle w, x_i \rangle + b)), \qquad
        C_i = C \cdot \mathrm{class\ weight} \cdot \mathrm{sample\ weight}

    where :math:`\ell(t)` is :math:`\max(0, t)` or its square and s is `intercept_scaling`: as in
    liblinear, the intercept is the weight of a constant feature and is regularised with the others.

    Parameters
    ----------
    penalty : {'l2'}, default='l2'
        The norm of the weights. For sparse weights use the 'l1' of
        :class:`sklearn.svm.LinearSVC`.

    loss : {'hinge', 'squared_hinge'}, default='squared_hinge'
        What a unit of slack costs: itself or its square.

    dual : bool or 'auto', default='auto'
        Whether the dual is solved by coordinate descent, or the primal by Newton's method (for the
        squared hinge only). 'auto' takes the primal where it can and there are no fewer rows than
        features.

    tol : float, default=1e-4
        When to stop, as in liblinear: largest difference between projected gradients of the dual,
        or norm of the primal's gradient relative to that at zero and the share of the rarer side.

    C : float, default=1.0
        Cost of a unit of slack; multiplies the sum of the losses.

    multi_class : {'ovr', 'crammer_singer'}, default='ovr'
        A machine for every class against the rest, or one problem over all classes as in
        `CrammerSingerSVC`, in which `loss` and `dual` have no meaning.

    fit_intercept : bool, default=True
        Whether there is an intercept.

    intercept_scaling : float, default=1.0
        Value of the constant feature behind the intercept; the larger, the less the intercept is
        regularised.

    class_weight : dict or 'balanced', default=None
        Multiplies `C` by class. 'balanced' weighs inversely to class frequencies.

    verbose : int, default=0
        Whether to print a line for every machine.

    random_state : int, RandomState instance or None, default=None
        Seed of the order in which coordinate descent takes the rows. None is a fixed seed too: a
        fit can be repeated.

    max_iter : int, default=1000
        Most passes over the rows, or Newton steps, for each machine.

    n_jobs : int, default=None
        How many machines are trained at once, in threads. The result does not depend on it.

    warm_start : bool, default=False
        Whether to start from the solution of the previous fit, where that was to the same number of
        rows, features and classes.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features; one row for two classes.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constant of each decision function.

    classes_ : ndarray of shape (n_classes,)
        The labels.

    class_weight_ : ndarray of shape (n_classes,)
        Multiplier of `C` for each class.

    objective_ : ndarray of shape (n_machines,)
        Value of the minimised objective; one entry for ``multi_class='crammer_singer'``.

    dual_gap_ : ndarray of shape (n_machines,)
        Bound on how far `objective_` is from the optimum, relative to it.

    n_iter_ : int
        Most passes or Newton steps of any machine.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during fit, when they are all strings.

    See Also
    --------
    LinearSVCCV : Chooses C by cross-validation.
    CrammerSingerSVC : One problem over all classes, with kernels.
    SVC : Machines with kernels, whose intercepts are not regularised.
    sklearn.svm.LinearSVC : The class this one stands in for.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC().fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> bool((model.dual_gap_ < 1e-9).all())
    True
    """

    _parameter_constraints: dict = {
        "penalty": [StrOptions({"l2"}), Hidden(StrOptions({"l1"}))],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "dual": ["boolean", StrOptions({"auto"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [None, dict, StrOptions({"balanced"})],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        penalty="l2",
        loss="squared_hinge",
        *,
        dual="auto",
        tol=1e-4,
        C=1.0,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=None,
        verbose=0,
        random_state=None,
        max_iter=1000,
        n_jobs=None,
        warm_start=False,
    ):
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.warm_start = warm_start

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Train the machines.

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
        X, y = self._check_training_data(X, y)
        training = self._prepare(X, y, sample_weight)
        joint = self.multi_class == "crammer_singer"
        n_problems = 1 if joint else training.n_machines
        progress = FitProgress.open(
            self, n_problems, X=X, y=y, metadata={"sample_weight": sample_weight}
        )
        solutions = self._train(training, self.C, progress)
        for name, value in self._attributes(training, solutions).items():
            setattr(self, name, value)
        progress.close()
        self._tell(solutions)
        return self

    def decision_function(self, X):
        """Scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64, order="C", accept_sparse="csr")
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        scores = linear_scores(X, coef) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X):
        """The class of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            One of `classes_` for every row.
        """
        scores = self.decision_function(X)
        if len(self.classes_) == 2:
            return self.classes_[(scores > 0).astype(np.intp)]
        return self.classes_[scores.argmax(axis=1)]

    def _check_training_data(self, X, y):
        if self.penalty == "l1":
            raise ValueError(
                "penalty='l1' is not supported: use penalty='l2', or sklearn.svm.LinearSVC for "
                "sparse weights."
            )
        if self.loss == "hinge" and self.dual is False and self.multi_class == "ovr":
            raise ValueError(
                "dual=False is not supported with loss='hinge', which has no second derivatives: "
                "use dual=True or 'auto', or loss='squared_hinge'."
            )
        X, y = validate_data(self, X, y, dtype=np.float64, order="C", accept_sparse="csr")
        check_classification_targets(y)
        return canonical(X), y

    def _prepare(self, X, y, sample_weight):
        """What training on checked rows starts from, whatever C is."""
        rows, weight = _check_weights(sample_weight, y)
        classes, codes = np.unique(y[rows], return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "y must hold at least two classes; the number of classes has to be greater than "
                f"one; got {len(classes)} class."
            )
        random = check_random_state(0 if self.random_state is None else self.random_state)
        return Training(
            X=X if isinstance(rows, slice) or len(rows) == len(y) else X[rows],
            classes=classes,
            codes=codes,
            weight=weight,
            weight_of_class=class_weights(self.class_weight, classes, y[rows], weight),
            seeds=random.randint(np.iinfo(np.int32).max, size=len(classes)),
        )

    def _train(self, training, C, progress):
        """The solutions of all machines, or of the one problem over all classes."""
        solutions: list = [None] * training.n_machines
        if self.multi_class == "crammer_singer":
            solutions = [None]
        starts = self._starts(training)

        def solve(number):
            with progress.task(number, lambda: self._attributes(training, solutions)) as stop:

                def keep(solution):
                    solutions[number] = solution
                    return stop()

                solutions[number] = self._solve(
                    training, C, number, starts, keep if progress.listening else None
                )

        for_each(solve, range(len(solutions)), effective_n_jobs(self.n_jobs))
        return solutions

    def _solve(self, training, C, number, starts, keep=None):
        """Solve one machine; ``keep`` is given intermediate solutions and says when to stop."""
        options = {"tol": self.tol, "max_iter": self.max_iter}
        costs, seed = training.costs(C), int(training.seeds[number])
        start = None if starts is None else starts[number]
        if self.multi_class == "crammer_singer":
            return solve_rows(
                training.X, training.codes, costs, len(training.classes), bias=self._bias(),
                seed=seed, dual=start, report=_report(keep, rows_solution_at), **options,
            )  # fmt: skip
        squared = self.loss == "squared_hinge"
        problem = LinearProblem(training.X, training.sign(number), costs, squared, self._bias())
        if self._solves_dual(training.X):
            return descend_linear(
                problem, seed=seed, dual=start, report=_report(keep, descent_at), **options
            )
        return newton_linear(problem, weights=start, report=_report(keep, newton_at), **options)

    def _starts(self, training):
        """Where the machines start from: the last solutions, if they are wanted and fit."""
        if not self._starts_warm() or not np.array_equal(
            getattr(self, "classes_", ()), training.classes
        ):
            return None
        kept = [s.dual if self._keeps_dual(training.X) else s.weights for s in self._solutions]
        expected = len(training.codes) if self._keeps_dual(training.X) else training.X.shape[1] + 1
        return kept if len(kept[0]) == expected else None

    def _starts_warm(self):
        return self.warm_start

    def _keeps_dual(self, X):
        return self.multi_class == "crammer_singer" or self._solves_dual(X)

    def _solves_dual(self, X):
        if self.dual == "auto":
            return self.loss == "hinge" or X.shape[0] < X.shape[1]
        return self.dual

    def _bias(self):
        return float(self.intercept_scaling) if self.fit_intercept else 0.0

    def _attributes(self, training, solutions):
        """Fitted attributes by name; machines without a solution yet decide nothing."""
        d, n_machines = training.X.shape[1], training.n_machines
        weights = np.zeros((d + 1, n_machines))
        if self.multi_class == "crammer_singer":
            if solutions[0] is not None:
                joint = solutions[0].weights
                weights = joint[:, [1]] - joint[:, [0]] if n_machines == 1 else joint
        else:
            for number, solution in enumerate(solutions):
                if solution is not None:
                    weights[:, number] = solution.weights
        attributes = {
            "classes_": training.classes,
            "class_weight_": training.weight_of_class,
            "coef_": np.ascontiguousarray(weights[:-1].T),
            "intercept_": self._bias() * weights[-1],
            "objective_": np.array([s.objective if s else np.nan for s in solutions]),
            "dual_gap_": np.array([s.gap if s else np.nan for s in solutions]),
            "n_iter_": max((s.iterations if s else 0) for s in solutions),
        }
        if self._starts_warm():
            attributes["_solutions"] = solutions
        return attributes

    def _tell(self, solutions):
        name = type(self).__name__
        if self.verbose:
            for number, s in enumerate(solutions, start=1):
                print(
                    f"[{name}] machine {number} of {len(solutions)}: {s.iterations} iterations, "
                    f"objective {s.objective:.6g}, relative gap {s.gap:.1e}"
                )
        if not all(s.converged for s in solutions):
            warnings.warn(
                f"{name} failed to converge, increase the number of iterations "
                f"(max_iter={self.max_iter}) or scale the data. Largest relative duality gap: "
                f"{max(s.gap for s in solutions):.1e}.",
                ConvergenceWarning,
                stacklevel=3,
            )


class LinearSVCCV(LinearSVC):
    r"""A `LinearSVC` that chooses its C by cross-validation.

    Gives what ``GridSearchCV(LinearSVC(), {"C": Cs})`` gives, sooner: in every fold each machine is
    solved along increasing C from the solution before. It then is the `LinearSVC` with the best C:

    .. math::

        \max_C \; \frac{1}{n_\mathrm{folds}} \sum_k
        \mathrm{score}(\mathrm{LinearSVC}_C \text{ trained without fold } k, \text{ fold } k)

    Parameters
    ----------
    Cs : array-like of float, default=(0.01, 0.1, 1.0, 10.0)
        The costs to try, as `C` of `LinearSVC`.

    penalty : {'l2'}, default='l2'
        The norm of the weights.

    loss : {'hinge', 'squared_hinge'}, default='squared_hinge'
        What a unit of slack costs: itself or its square.

    cv : int, splitter or iterable, default=None
        How rows fall into folds: a number of stratified folds (5 when None), a splitter, or pairs
        of training and test rows.

    scoring : str or callable, default=None
        What makes a fold's machine good: the name of a scorer or a function
        ``scoring(machine, X, y)``, where ``machine`` is a fitted `LinearSVC`. Accuracy when None.

    refit : bool, default=True
        Whether to train on all rows in the end. If not, there are scores but no predictions.

    dual : bool or 'auto', default='auto'
        As in `LinearSVC`.

    tol : float, default=1e-4
        When to stop, as in `LinearSVC`.

    multi_class : {'ovr', 'crammer_singer'}, default='ovr'
        As in `LinearSVC`.

    fit_intercept : bool, default=True
        Whether there is an intercept.

    intercept_scaling : float, default=1.0
        Value of the constant feature behind the intercept.

    class_weight : dict or 'balanced', default=None
        Multiplies `C` by class. 'balanced' weighs inversely to class frequencies.

    verbose : int, default=0
        Whether to print a line for every machine of the last fit.

    random_state : int, RandomState instance or None, default=None
        Seed, as in `LinearSVC`.

    max_iter : int, default=1000
        Most passes over the rows, or Newton steps, for each machine.

    n_jobs : int, default=None
        How many machines are trained at once, in threads. The result does not depend on it.

    Attributes
    ----------
    C_ : float
        The best of `Cs`; of equally good ones the first, as in
        :class:`sklearn.model_selection.GridSearchCV`.

    best_score_ : float
        Its mean score over the folds.

    best_params_ : dict
        ``{"C": C_}``.

    scores_ : ndarray of shape (n_Cs, n_folds)
        Scores of all fits.

    cv_results_ : dict
        The same in the manner of :class:`sklearn.model_selection.GridSearchCV`, without times.

    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features. This and what follows describe the machine trained on all rows.

    intercept_ : ndarray of shape (1,) or (n_classes,)
        Constant of each decision function.

    classes_ : ndarray of shape (n_classes,)
        The labels.

    class_weight_ : ndarray of shape (n_classes,)
        Multiplier of `C` for each class.

    objective_ : ndarray of shape (n_machines,)
        Value of the minimised objective.

    dual_gap_ : ndarray of shape (n_machines,)
        Bound on how far `objective_` is from the optimum, relative to it.

    n_iter_ : int
        Most passes or Newton steps of any machine.

    n_features_in_ : int
        Number of features seen during fit.

    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features seen during fit, when they are all strings.

    See Also
    --------
    LinearSVC : The machine for one C.
    SVCCV : The same for machines with kernels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVCCV(Cs=[0.01, 1, 100]).fit(X, y)
    >>> model.scores_.shape
    (3, 5)
    >>> model.C_
    1.0
    """

    _parameter_constraints: dict = {
        **LinearSVC._parameter_constraints,
        "Cs": ["array-like"],
        "cv": ["cv_object"],
        "scoring": [StrOptions(set(get_scorer_names())), callable, None],
        "refit": ["boolean"],
    }
    del _parameter_constraints["C"], _parameter_constraints["warm_start"]

    def __init__(
        self,
        *,
        Cs=(0.01, 0.1, 1.0, 10.0),
        penalty="l2",
        loss="squared_hinge",
        cv=None,
        scoring=None,
        refit=True,
        dual="auto",
        tol=1e-4,
        multi_class="ovr",
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=None,
        verbose=0,
        random_state=None,
        max_iter=1000,
        n_jobs=None,
    ):
        self.Cs = Cs
        self.penalty = penalty
        self.loss = loss
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.dual = dual
        self.tol = tol
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coef_")

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Try every C and train with the best of them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.

        y : array-like of shape (n_samples,)
            Labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies `C` by row; at least 0. Rows are counted by it in scores too, where the
            scorer takes weights.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        Cs = self._check_costs()
        X, y = self._check_training_data(X, y)
        whole = self._prepare(X, y, sample_weight)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        splits = [
            (np.arange(len(y))[train], np.arange(len(y))[test])
            for train, test in check_cv(self.cv, y, classifier=True).split(X, y)
        ]
        folds = [
            self._prepare(X[train], y[train], None if weight is None else weight[train])
            for train, _ in splits
        ]
        path = sorted(set(Cs))
        joint = self.multi_class == "crammer_singer"
        pieces = [
            (fold, number)
            for fold, training in enumerate(folds)
            for number in range(1 if joint else training.n_machines)
        ]
        last = 1 if joint else whole.n_machines
        progress = FitProgress.open(
            self, len(pieces) + last * self.refit, X, y, {"sample_weight": sample_weight}
        )

        def solve(task):
            fold, number = pieces[task]
            with progress.task(task) as stop:
                return self._solve_path(folds[fold], number, path, stop)

        paths = for_each(solve, range(len(pieces)), effective_n_jobs(self.n_jobs))
        scores = self._score_folds(X, y, weight, splits, folds, pieces, paths, path)
        scores = scores[[path.index(C) for C in Cs]]
        best = int(_nan_last(scores.mean(axis=1)).argmax())
        solutions = []
        if self.refit:
            later = _Later(progress, len(pieces))
            solutions = self._train(whole, Cs[best], later)
            for name, value in self._attributes(whole, solutions).items():
                setattr(self, name, value)
        else:
            self.__dict__.pop("coef_", None)
        self.scores_, self.best_score_ = scores, float(scores[best].mean())
        self.C_, self._costs = Cs[best], Cs
        progress.close()
        stopped = [s for solved in paths for s in solved if not s.converged]
        self._tell([*solutions, *stopped])
        return self

    def score(self, X, y, sample_weight=None):
        """How good the predictions are by `scoring`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        y : array-like of shape (n_samples,)
            True labels.

        sample_weight : array-like of shape (n_samples,), default=None
            Weights of rows.

        Returns
        -------
        score : float
            Accuracy where `scoring` is None.
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return self._scorer()(self, X, y, **weights)

    def decision_function(self, X):
        """Scores of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, positive for ``classes_[1]``.
        """
        if hasattr(self, "scores_") and not hasattr(self, "coef_"):
            raise NotFittedError(
                f"This {type(self).__name__} was fitted with refit=False and is not fitted for "
                "predictions: use refit=True."
            )
        return super().decision_function(X)

    @property
    def best_params_(self):
        """The best C by name."""
        self._check_searched()
        return {"C": self.C_}

    @property
    def cv_results_(self):
        """Scores of all fits in the manner of GridSearchCV."""
        self._check_searched()
        mean = self.scores_.mean(axis=1)
        return {
            "param_C": np.array(self._costs),
            "params": [{"C": C} for C in self._costs],
            **{f"split{k}_test_score": column for k, column in enumerate(self.scores_.T)},
            "mean_test_score": mean,
            "std_test_score": self.scores_.std(axis=1),
            "rank_test_score": rankdata(-_nan_last(mean), method="min").astype(np.int32),
        }

    def _starts_warm(self):
        return False

    def _check_searched(self):
        if not hasattr(self, "scores_"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet.")

    def _check_costs(self):
        Cs = list(self.Cs)
        if not Cs or not all(isinstance(C, Real) and 0 < float(C) < np.inf for C in Cs):
            raise ValueError(f"Cs must hold finite numbers greater than 0, got {self.Cs!r}.")
        return [float(C) for C in Cs]

    def _solve_path(self, training, number, path, stop):
        """Solve a machine for increasing C, each time from the solution before."""
        solutions: list = []
        starts = None
        for C in path:
            solutions.append(self._solve(training, C, number, starts, keep=lambda _: stop()))
            keeps_dual = self._keeps_dual(training.X)
            start = solutions[-1].dual if keeps_dual else solutions[-1].weights
            starts = {number: start}
        return solutions

    def _score_folds(self, X, y, weight, splits, folds, pieces, paths, path):
        """Scores by C and fold."""
        scorer = self._scorer()
        weighted = weight is not None and _takes_weights(scorer)
        names = LinearSVC().get_params()
        own = {name: value for name, value in self.get_params(deep=False).items() if name in names}
        scores = np.empty((len(path), len(folds)))
        for fold, (training, (_, test)) in enumerate(zip(folds, splits, strict=True)):
            weights = {"sample_weight": weight[test]} if weighted else {}
            of_fold = [
                solved for piece, solved in zip(pieces, paths, strict=True) if piece[0] == fold
            ]
            X_test, y_test = X[test], y[test]
            for step, C in enumerate(path):
                model = LinearSVC(**own, C=C)
                solutions = [solved[step] for solved in of_fold]
                model.__dict__.update(self._attributes(training, solutions))
                model.n_features_in_ = X.shape[1]
                scores[step, fold] = scorer(model, X_test, y_test, **weights)
        return scores

    def _scorer(self):
        return _accuracy if self.scoring in (None, "accuracy") else get_scorer(self.scoring)


@dataclass(frozen=True)
class _Later:
    """The progress of a fit whose tasks are counted from ``first``."""

    progress: FitProgress
    first: int

    @property
    def listening(self):
        return self.progress.listening

    def task(self, number, attributes=None):
        return self.progress.task(self.first + number, attributes)


def linear_scores(X, coef):
    """<w_k, x_i> of all rows and classes; a row's scores do not depend on the other rows."""
    if sp.issparse(X):
        return np.asarray(X @ np.ascontiguousarray(coef.T))
    return tiled_multiply(X, np.ascontiguousarray(coef.T))


def canonical(X):
    """X as solvers want it: if sparse, without duplicates and with 32-bit indices."""
    if not sp.issparse(X):
        return X
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.indices.dtype != np.int32 or X.indptr.dtype != np.int32:
        if max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
            raise ValueError(
                f"X must have fewer than 2^31 entries and columns, got {X.nnz} entries in shape "
                f"{X.shape}."
            )
        parts = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
        X = type(X)(parts, shape=X.shape)
    return X


def _report(keep, solution_at):
    """What a solver is to call after every slice of work."""
    return None if keep is None else lambda state: keep(solution_at(state))
