"""PrivilegedSVCCV: selection of C, the privileged penalty and the slack ridge by cross-validation.

In every fold the kernel matrix and the decomposition of the privileged features are computed once
for all C, all penalties, all ridges and all classes, and every fit starts from the solution of the
previous C. An infinite ridge is the SVM without privileged features.
"""

import warnings
from collections.abc import Iterator
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from widemargin._base.callbacks import FitProgress
from widemargin._base.checkpoint import FitCheckpoint
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import fit_context, safe_split
from widemargin._base.threads import for_each
from widemargin._base.validation import validate_all_weights
from widemargin._base.workers import local_jobs
from widemargin.privileged.slack_functions import FitData
from widemargin.privileged.svc import PrivilegedSVC, SlackClassifier, check_ridge
from widemargin.solvers.coupled.problem import CoupledSolution
from widemargin.svm.cross_validation import Search
from widemargin.svm.training import support_attributes


@shared_docs
class PrivilegedSVCCV(Search, SlackClassifier):
    r"""`PrivilegedSVC` with built-in cross-validation of C, penalty and slack ridge.

    Gives the result of a grid search over `PrivilegedSVC` in less time: in every fold one kernel
    matrix and one decomposition of the privileged features serve the whole grid, and fits start
    from each other. Folds are scored on X alone, as the model will be used. The final model is
    the `PrivilegedSVC` with the best parameters:

    .. math::

        \max_{C, \lambda, \rho} \; \frac{1}{n_\mathrm{folds}} \sum_k
        \mathrm{score}(\mathrm{model}_{C, \lambda, \rho} \text{ fitted without fold } k,
        \text{ fold } k)

    One of the candidates is the SVM without privileged features, :math:`\rho = \infty`. Another
    one replaces it only if its score is better by more than one standard error of the difference
    over folds. If none is, the SVM is used and a warning is raised.

    Parameters
    ----------
    Cs : array-like of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        Values of `C` to try.

    privileged_penalties : array-like of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        Values of `privileged_penalty` to try.

    slack_ridges : array-like of float, default=None
        Values of `slack_ridge` to try. If None, 0, 1 and np.inf, with ``loss='hinge'`` 0 and
        np.inf. np.inf is the SVM without privileged features.

    loss : {'squared_hinge', 'hinge'}, default='squared_hinge'
        Loss function: 'squared_hinge' is SVM2+, 'hinge' is SVM1+.

    <<kernel>>

    <<degree>>

    <<gamma>>

    <<coef0>>

    <<privileged_parameters>>

    cv : int, splitter or iterable, default=None
        Cross-validation strategy: the number of stratified folds (5 if None), a splitter, or pairs
        of training and test indices.

    scoring : str or callable, default=None
        Name of a scorer or a function ``scoring(estimator, X, y)``. Accuracy if None.

    refit : bool, default=True
        Whether to fit on all samples with the best parameters. If False, the estimator has scores
        but cannot predict.

    <<tol>>

    cache_size : float, default=200
        Size of the kernel cache in MB, for more than 2,000 samples.

    <<class_weight>>

    <<verbose>>

    <<max_iter>>

    n_jobs : int, default=None
        Number of folds processed at once, in threads. The result does not depend on it.

    <<checkpoint>>

    Attributes
    ----------
    C_ : float
        Best value of `Cs`.

    privileged_penalty_ : float
        Best value of `privileged_penalties`.

    slack_ridge_ : float
        Best value of `slack_ridges`, np.inf if the privileged features are not used.

    best_score_ : float
        Mean score of the best parameters over the folds. Of equal scores the first is chosen, with
        C varying slowest and the ridge fastest.

    best_params_ : dict
        The best parameters by name.

    scores_ : ndarray of shape (n_Cs, n_penalties, n_ridges, n_folds)
        Scores of all fits.

    cv_results_ : dict
        The same in the format of :class:`sklearn.model_selection.GridSearchCV`, without times.

    best_estimator_ : PrivilegedSVC
        The model fitted on all samples. The attributes below are its own.

    <<slack_attributes>>

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    PrivilegedSVC : The classifier for one C and penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import PrivilegedSVCCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> noise = rng.normal(size=(60, 1))
    >>> y = X[:, 0] + noise[:, 0] > 0
    >>> missed = np.maximum(0, 1 - np.where(y, 1, -1) * X[:, [0]].T).T  # by how much X misses
    >>> model = PrivilegedSVCCV(cv=3, slack_ridges=[0.0, 1.0]).fit(X, y, privileged=missed)
    >>> sorted(model.best_params_)
    ['C', 'privileged_penalty', 'slack_ridge']
    >>> model.scores_.shape
    (5, 5, 2, 3)
    """

    _plain = PrivilegedSVC

    _parameter_constraints: dict = {
        **SlackClassifier._parameter_constraints,
        **Search._parameter_constraints,
        "privileged_penalties": ["array-like"],
        "slack_ridges": ["array-like", None],
    }
    del _parameter_constraints["C"]

    def __init__(
        self,
        *,
        Cs=(0.01, 0.1, 1.0, 10.0, 100.0),
        privileged_penalties=(0.01, 0.1, 1.0, 10.0, 100.0),
        slack_ridges=None,
        loss="squared_hinge",
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        privileged_kernel="linear",
        privileged_degree=3,
        privileged_gamma="scale",
        privileged_coef0=0.0,
        privileged_transformer=None,
        privileged_columns=None,
        cv=None,
        scoring=None,
        refit=True,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        n_jobs=None,
        checkpoint=None,
    ):
        self.Cs = Cs
        self.privileged_penalties = privileged_penalties
        self.slack_ridges = slack_ridges
        self.loss = loss
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.privileged_kernel = privileged_kernel
        self.privileged_degree = privileged_degree
        self.privileged_gamma = privileged_gamma
        self.privileged_coef0 = privileged_coef0
        self.privileged_transformer = privileged_transformer
        self.privileged_columns = privileged_columns
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: ArrayLike, privileged: Any = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Select the parameters by cross-validation and fit on all samples.

        Parameters
        ----------
        <<X_kernel_train>>

        <<y>>

        <<privileged>>

        sample_weight : array-like of shape (n_samples,), default=None
            Non-negative weights that multiply `C` for each sample. They are used in the scores
            too, if the scorer takes weights.

        Returns
        -------
        <<returns_self>>
        """
        Cs = self._check_costs(finite=True)
        penalties = self._check_costs(finite=True, name="privileged_penalties")
        grid = {"C": Cs, "privileged_penalty": penalties, "slack_ridge": self._check_ridges()}
        data = self._prepare(X, y, privileged, sample_weight)
        weight = validate_all_weights(sample_weight, data.y)
        splits = self._splits(data.X, data.y, weight)
        n_last = data.n_problems * self.refit
        metadata = {"sample_weight": sample_weight, "privileged": privileged}
        progress = FitProgress(
            self, n_last + len(splits), data.X, data.y, metadata, self.checkpoint, splits
        )

        def work(number: int) -> tuple[np.ndarray, list]:
            with progress.task(n_last + number) as stop:
                report = (lambda _: stop()) if progress.active else None
                name = f"{n_last + number}"
                return self._score_fold(
                    data, weight, splits[number], grid, report, progress.checkpoint, name
                )

        solutions = []
        scores = self._cluster_scores(grid, splits, {"X": data.X, "y": data.y, **metadata})
        if scores is None:
            folds = for_each(work, range(len(splits)), local_jobs(self.n_jobs))
            scores = np.stack([fold for fold, _ in folds], axis=-1)
            solutions = [solution for _, of_fold in folds for solution in of_fold]
        last = None
        if self.refit:
            costs = self._best_parameters(scores, grid).values()
            last = self._fit_subproblems(data, progress, *costs)
        self._finish_search(scores, grid, solutions, last, progress)
        self.best_score_ = float(self._fold_scores(scores, grid, self.best_params_).mean())
        if data.privileged is not None and self.slack_ridge_ == np.inf:
            self._warn_about_loss()
        return self

    def _check_ridges(self) -> list[float]:
        """Return the values of the slack ridge to try."""
        if self.slack_ridges is None:
            return [0.0, 1.0, np.inf] if self.loss == "squared_hinge" else [0.0, np.inf]
        values = list(self.slack_ridges)
        if not values or not all(isinstance(r, Real) and float(r) >= 0.0 for r in values):
            raise ValueError(
                f"slack_ridges must contain non-negative numbers, got {self.slack_ridges!r}."
            )
        for ridge in values:
            check_ridge(ridge, self.loss, "slack_ridges")
        return [float(ridge) for ridge in values]

    def _best_parameters(self, scores: np.ndarray, grid: dict[str, list]) -> dict[str, Any]:
        """Return the best parameters; those of the plain SVM unless others are clearly better."""
        plain = np.array(grid["slack_ridge"]) == np.inf
        best = super()._best_parameters(scores, grid)
        if not plain.any() or best["slack_ridge"] == np.inf:
            return best
        without = {**grid, "slack_ridge": [np.inf]}
        baseline = super()._best_parameters(scores[:, :, plain], without)
        difference = self._fold_scores(scores, grid, best) - self._fold_scores(
            scores, grid, baseline
        )
        error = difference.std(ddof=min(1, len(difference) - 1)) / np.sqrt(len(difference))
        return best if difference.mean() > error else baseline

    @staticmethod
    def _fold_scores(scores: np.ndarray, grid: dict[str, list], point: dict) -> np.ndarray:
        """Return the scores of some parameters in all folds."""
        return scores[tuple(grid[name].index(value) for name, value in point.items())]

    def _warn_about_loss(self) -> None:
        """Warn that the privileged features are not used, if they were tried."""
        others = self.scores_[:, :, np.array(self._grid["slack_ridge"]) != np.inf].mean(axis=-1)
        if not others.size:
            return
        warnings.warn(
            "The privileged features are not used: in the folds they did not improve the score by "
            f"more than its standard error ({others.max():.4g} with them, {self.best_score_:.4g} "
            "without). Remove np.inf from slack_ridges to use them anyway.",
            UserWarning,
            stacklevel=4,
        )

    def _score_fold(
        self, data: FitData, weight, split, grid, report, checkpoint: FitCheckpoint, name: str
    ) -> tuple:
        """Return the scores of one fold by C, penalty and ridge, and all solutions."""
        train, test = split
        X, y = safe_split(self, data.X, data.y, train)
        X_test, y_test = safe_split(self, data.X, data.y, test, train)
        privileged, scorer = data.privileged, self._scorer()
        weights = self._test_weights(weight, test)
        if privileged is not None:
            privileged = privileged.take(train, self.privileged_kernel == "precomputed")
        train_weight = None if weight is None else weight[train]
        fold = FitData(self, X, y, privileged, train_weight, warn=False)
        subproblems, model = self._subproblems(fold), self._new_estimator()
        signs = [problem.sign for problem in fold.training.reduction.problems]
        scores = np.empty([len(values) for values in grid.values()])
        solutions: list[CoupledSolution] = []
        starts: list = [None] * len(signs)
        for penalties, ridges, costs in _paths(grid, privileged is None):
            for row in np.argsort(grid["C"]):
                solve = subproblems.solver(grid["C"][row], *costs)
                fitted: list[CoupledSolution] = []
                for sign, start in zip(signs, starts, strict=True):

                    def compute(task, sign=sign, start=start, solve=solve):
                        return solve(sign, start, report, task)

                    number = len(solutions) + len(fitted)
                    fitted.append(checkpoint.run(f"{name}.{number}", compute, CoupledSolution))
                solutions += fitted
                # With an indefinite kernel several optima may exist: use that of a fresh start.
                if subproblems.positive_semidefinite:
                    starts = fitted
                vars(model).update(support_attributes(X, fold.training, fitted))
                scores[row, penalties, ridges] = scorer(model, X_test, y_test, **weights)
        return scores, solutions


def _paths(grid: dict[str, list], plain: bool) -> Iterator[tuple]:
    """Yield penalties and ridges with the same solutions, as indices, and one pair of values.

    Without privileged features all are alike, with an infinite ridge all penalties.
    """
    penalties, ridges = grid["privileged_penalty"], grid["slack_ridge"]
    if plain:
        yield slice(None), slice(None), (penalties[0], ridges[0])
        return
    for number, ridge in enumerate(ridges):
        if ridge == np.inf:
            yield slice(None), number, (penalties[0], ridge)
            continue
        for column in np.argsort(penalties)[::-1]:
            yield column, number, (penalties[column], ridge)
