"""LinearSVCCV: LinearSVC with C chosen by cross-validation."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.docs import shared_docs
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
from widemargin.svm.linear_svc import LinearClassifierMixin, LinearSVC, fitted_linear_svc
from widemargin.svm.linear_training import (
    LinearTraining,
    prepare_linear_training,
    validate_linear_training,
)
from widemargin.svm.training import solve_problems


@shared_docs
class LinearSVCCV(
    Search, CallbackSupportMixin, LinearClassifierMixin, ClassifierMixin, BaseEstimator
):
    r"""Linear support vector classification with C chosen by cross-validation.

    Gives the result of ``GridSearchCV(LinearSVC(), {"C": Cs})`` in less time: in every fold each
    binary subproblem is solved for increasing C, starting from the previous solution. The model is
    then fitted to all samples with the best C:

    .. math::

        \max_C \; \frac{1}{n_\mathrm{folds}} \sum_k
        \mathrm{score}(\mathrm{LinearSVC}_C \text{ trained without fold } k, \text{ fold } k)

    Parameters
    ----------
    Cs : array-like of float, default=(0.01, 0.1, 1.0, 10.0)
        Values of the regularization parameter to try, as `C` of `LinearSVC`.

    penalty : {'l2'}, default='l2'
        Norm of the weights in the penalty.

    <<loss>>

    cv : int, splitter or iterable, default=None
        Cross-validation: the number of stratified folds (5 if None), a splitter, or pairs of
        training and test indices.

    scoring : str or callable, default=None
        Name of a scorer or a callable ``scoring(estimator, X, y)``, where ``estimator`` is a fitted
        `LinearSVC`. If None, the accuracy is used.

    refit : bool, default=True
        Whether to fit the model to all samples with the best C. If False, there are scores but no
        predictions.

    <<dual>>

    <<linear_tol>>

    <<joint_multi_class>>

    <<fit_intercept>>

    <<intercept_scaling>>

    <<class_weight>>

    <<class_margin>>

    verbose : int, default=0
        Whether to print a line for each binary subproblem of the final fit.

    <<solver_random_state>>

    <<passes_max_iter>>

    <<n_jobs>>

    Attributes
    ----------
    C_ : float
        Best value of `Cs`; the first of equally good ones, as in
        :class:`sklearn.model_selection.GridSearchCV`.

    best_score_ : float
        Mean score of the best C over the folds.

    best_params_ : dict
        ``{"C": C_}``.

    scores_ : ndarray of shape (n_Cs, n_folds)
        Scores of all fits.

    cv_results_ : dict
        Scores in the format of :class:`sklearn.model_selection.GridSearchCV`, without times.

    best_estimator_ : LinearSVC
        The `LinearSVC` with the best C, fitted to all samples. The attributes below are its
        attributes.

    <<linear_attributes>>

    See Also
    --------
    LinearSVC : Linear support vector classification with a given C.
    SVCCV : The same with kernels.

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
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Try every C and fit the model with the best one.

        Parameters
        ----------
        <<X_train>>

        <<y>>

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights that multiply `C` for each sample. They are passed to the scorer
            too, if it accepts weights.

        Returns
        -------
        <<returns_self>>
        """
        Cs = check_costs(self.Cs, finite=True)
        X, y = validate_linear_training(self, X, y)
        whole = prepare_linear_training(self, X, y, sample_weight)
        weight = validate_all_weights(sample_weight, y)
        folds = self._folds(X, y, weight)
        tasks = [(fold, number) for fold in folds for number in range(fold.training.n_problems)]
        last = whole.n_problems if self.refit else 0
        progress = FitProgress.open(self, len(tasks) + last, X, y, {"sample_weight": sample_weight})
        path = sorted(set(Cs))

        def solve(task):
            fold, number = tasks[task]
            with progress.task(task) as stop:
                fold.solutions[number] = _solve_path(fold.training, number, path, stop)

        jobs = effective_n_jobs(self.n_jobs)
        for_each(solve, range(len(tasks)), jobs)
        scores = self._score_folds(X, y, weight, folds, path)[[path.index(C) for C in Cs]]
        best = best_of(scores)
        solutions: list = [None] * whole.n_problems
        if self.refit:
            C = Cs[best[0]]
            solutions = solve_problems(
                lambda number, report: whole.solve(C, number, None, report), whole.n_problems,
                jobs, progress, whole.attributes, whole.solution_at, first_task=len(tasks),
            )  # fmt: skip
        attributes = whole.attributes(solutions)
        for name in attributes:
            self.__dict__.pop(name, None)
        self.__dict__.update(attributes if self.refit else {})
        self._keep_search(scores, best, {"C": Cs})
        progress.close()
        tried = [s for fold in folds for solved in fold.solutions for s in solved]
        warn_if_stopped(tried, self.max_iter, progress.stop_requested)
        if self.refit:
            report_convergence(self, solutions, progress.stop_requested)
        return self

    def _folds(self, X: Any, y: np.ndarray, weight: np.ndarray | None) -> list["Fold"]:
        folds = []
        for train, test in self._splits(X, y, weight):
            weight_train = None if weight is None else weight[train]
            training = prepare_linear_training(self, X[train], y[train], weight_train)
            folds.append(Fold(test, training, [None] * training.n_problems))
        return folds

    def _score_folds(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, folds: list["Fold"], path: list
    ) -> np.ndarray:
        """Compute the scores of each C and fold."""
        scorer = self._scorer()
        weighted = weight is not None and takes_weights(scorer)
        names = LinearSVC._parameter_constraints.keys() & self._parameter_constraints.keys()
        parameters = {name: getattr(self, name) for name in names}
        scores = np.empty((len(path), len(folds)))
        for column, fold in enumerate(folds):
            weights = (
                {"sample_weight": weight[fold.test]} if weight is not None and weighted else {}
            )
            X_test, y_test = X[fold.test], y[fold.test]
            for row, C in enumerate(path):
                solutions = [solved[row] for solved in fold.solutions]
                attributes = fold.training.attributes(solutions)
                attributes["n_features_in_"] = X.shape[1]
                model = fitted_linear_svc({**parameters, "C": C}, attributes)
                scores[row, column] = scorer(model, X_test, y_test, **weights)
        return scores


@dataclass(frozen=True)
class Fold:
    """Test samples and training of a fold, and for each problem the solutions by increasing C."""

    test: np.ndarray
    training: LinearTraining
    solutions: list


def _solve_path(training: LinearTraining, number: int, path: list, stop: Any) -> list:
    """Solve a problem for increasing C, each time from the previous solution."""
    solutions: list = []
    start = None
    for C in path:
        solution = training.solve(C, number, start, lambda _: stop())
        start = training.start(solution)
        solutions.append(solution)
    return solutions
