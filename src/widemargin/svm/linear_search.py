"""LinearSVCCV: LinearSVC with C chosen by cross-validation."""

from collections.abc import Iterator
from itertools import islice
from typing import Any, Self

import numpy as np

from widemargin._base.callbacks import FitProgress
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import fit_context
from widemargin._base.threads import for_each
from widemargin._base.validation import validate_all_weights
from widemargin._base.workers import local_jobs
from widemargin.svm.cross_validation import Search
from widemargin.svm.linear_svc import LinearClassifier, LinearSVC


@shared_docs
class LinearSVCCV(Search, LinearClassifier):
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

    <<checkpoint>>

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

    _parameter_constraints = LinearSVC._parameter_constraints | Search._parameter_constraints
    del _parameter_constraints["C"], _parameter_constraints["warm_start"]
    _plain = LinearSVC

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
        checkpoint=None,
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
        self.checkpoint = checkpoint

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
        Cs = self._check_costs(finite=True)
        X, y = self._validate_training(X, y)
        whole = self._prepare_training(X, y, sample_weight)
        weight = validate_all_weights(sample_weight, y)
        folds = []
        splits, grid = self._splits(X, y, weight), {"C": Cs}
        data = {"X": X, "y": y, "sample_weight": sample_weight}
        scores = self._cluster_scores(grid, splits, data)
        for train, test in splits if scores is None else ():
            weight_train = None if weight is None else weight[train]
            folds.append((test, self._prepare_training(X[train], y[train], weight_train)))
        tasks = [(fold, number) for _, fold in folds for number in range(fold.n_problems)]
        n_last = whole.n_problems * self.refit
        metadata = {"sample_weight": sample_weight}
        n_tasks = len(tasks) + n_last
        progress = FitProgress(self, n_tasks, X, y, metadata, self.checkpoint, splits)
        path, jobs = sorted(set(Cs)), local_jobs(self.n_jobs)

        def solve(task):
            fold, number = tasks[task]
            with progress.task(task) as stop:
                return fold.solve_path(number, path, stop, progress.checkpoint, str(task))

        paths = for_each(solve, range(len(tasks)), jobs)
        if scores is None:
            scores = self._score_folds(X, y, weight, folds, path, iter(paths))
            scores = scores[[path.index(C) for C in Cs]]
        solutions = [solution for solved in paths for solution in solved]
        last = None
        if self.refit:
            C = self._best_parameters(scores, grid)["C"]
            last = whole.solve_all(C, jobs, range(len(tasks), len(tasks) + n_last), progress)
            self.__dict__.update(whole.attributes(last))
        return self._finish_search(scores, grid, solutions, last, progress)

    def _score_folds(
        self, X: Any, y: Any, weight: Any, folds: list, path: list, solutions: Iterator
    ) -> np.ndarray:
        """Compute the scores of each C and fold, given the solutions of each problem by C."""
        scorer, scores = self._scorer(), np.empty((len(path), len(folds)))
        for column, (test, training) in enumerate(folds):
            X_test, y_test = X[test], y[test]
            weights = self._test_weights(weight, test)
            solved = list(islice(solutions, training.n_problems))
            for row, C in enumerate(path):
                model = self._new_estimator(C=C)
                model.__dict__.update(training.attributes([by_C[row] for by_C in solved]))
                model.n_features_in_ = X.shape[1]
                scores[row, column] = scorer(model, X_test, y_test, **weights)
        return scores
