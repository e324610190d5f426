"""LinearSVCCV: the C of a LinearSVC by cross-validation."""

from dataclasses import dataclass

import numpy as np
from joblib import effective_n_jobs

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.sklearn_compat import fit_context
from widemargin._base.threads import for_each
from widemargin._base.validation import validate_all_weights
from widemargin.svm.cross_validation import (
    SEARCH_CONSTRAINTS,
    Search,
    best_of,
    check_costs,
    takes_weights,
    warn_if_stopped,
)
from widemargin.svm.linear_svc import LinearSVC, Training


class LinearSVCCV(Search, LinearSVC):
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

    class_weight : dict, 'balanced' or 'effective', default=None
        Multiplies `C` by class, as in `LinearSVC`.

    class_margin : dict or 'ldam', default=None
        How far from the boundary the rows of each class should be, as in `LinearSVC`.

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

    class_margin_ : ndarray of shape (n_classes,)
        Margin of each class.

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
        **SEARCH_CONSTRAINTS,
    }
    del _parameter_constraints["C"], _parameter_constraints["warm_start"]
    _plain = LinearSVC
    _learned = "coef_"

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
        class_margin=None,
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
        self.class_margin = class_margin
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
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
        Cs = check_costs(self.Cs, finite=True)
        X, y = self._check_training_data(X, y)
        whole = self._prepare(X, y, sample_weight)
        weight = validate_all_weights(sample_weight, y)
        folds = self._folds(X, y, weight)
        pieces = [
            (fold, number) for fold in folds for number in range(self._n_problems(fold.training))
        ]
        last = self._n_problems(whole) if self.refit else 0
        progress = FitProgress.open(
            self, len(pieces) + last, X, y, {"sample_weight": sample_weight}
        )
        path = sorted(set(Cs))

        def solve(task):
            fold, number = pieces[task]
            with progress.task(task) as stop:
                fold.solutions[number] = self._solve_path(fold.training, number, path, stop)

        for_each(solve, range(len(pieces)), effective_n_jobs(self.n_jobs))
        scores = self._score_folds(X, y, weight, folds, path)[[path.index(C) for C in Cs]]
        best = best_of(scores)
        if self.refit:
            solutions = self._train(whole, Cs[best[0]], progress, first_task=len(pieces))
            self.__dict__.update(self._attributes(whole, solutions))
        else:
            for name in self._attributes(whole, [None] * self._n_problems(whole)):
                self.__dict__.pop(name, None)
        self._keep_search(scores, best, {"C": Cs})
        progress.close()
        tried = [s for fold in folds for solved in fold.solutions for s in solved]
        warn_if_stopped(tried, self.max_iter, progress.stop_requested)
        if self.refit:
            report_convergence(self, solutions, progress.stop_requested)
        return self

    def _starts_warm(self):
        return False

    def _folds(self, X, y, weight):
        folds = []
        for train, test in self._splits(X, y, weight):
            weight_train = None if weight is None else weight[train]
            training = self._prepare(X[train], y[train], weight_train)
            folds.append(Fold(test, training, [None] * self._n_problems(training)))
        return folds

    def _solve_path(self, training, number, path, stop):
        """Solve a machine for increasing C, each time from the solution before."""
        keeps_dual = self._keeps_dual(training.X.shape)
        solutions: list = []
        start = None
        for C in path:
            solution = self._solve(training, C, number, start, keep=lambda _: stop())
            start = solution.dual if keeps_dual else solution.weights
            solutions.append(solution)
        return solutions

    def _score_folds(self, X, y, weight, folds, path):
        """Scores by C and fold."""
        scorer = self._scorer()
        weighted = weight is not None and takes_weights(scorer)
        scores = np.empty((len(path), len(folds)))
        for column, fold in enumerate(folds):
            weights = {"sample_weight": weight[fold.test]} if weighted else {}
            X_test, y_test = X[fold.test], y[fold.test]
            for row, C in enumerate(path):
                model = self._new_estimator(LinearSVC, C=C)
                solutions = [solved[row] for solved in fold.solutions]
                vars(model).update(self._attributes(fold.training, solutions))
                model.n_features_in_ = X.shape[1]
                scores[row, column] = scorer(model, X_test, y_test, **weights)
        return scores


@dataclass(frozen=True)
class Fold:
    """The problems of one fold; ``solutions`` has a list over increasing C for every machine."""

    test: np.ndarray
    training: Training
    solutions: list
