"""PrivilegedSVCCV: selection of C and the privileged penalty by cross-validation.

In every fold the kernel matrix and the decomposition of the privileged features are computed once
for all C, all penalties and all classes, and every fit starts from the solution of the previous C.
"""

from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike

from widemargin._base.callbacks import FitProgress
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import fit_context, safe_split
from widemargin._base.threads import for_each
from widemargin._base.validation import validate_all_weights
from widemargin.privileged.slack_functions import FitData
from widemargin.privileged.svc import PrivilegedSVC, SlackClassifier
from widemargin.svm.cross_validation import Search
from widemargin.svm.training import support_attributes


@shared_docs
class PrivilegedSVCCV(Search, SlackClassifier):
    r"""`PrivilegedSVC` with built-in cross-validation of C and the privileged penalty.

    Gives the result of a grid search over `PrivilegedSVC` in less time: in every fold one kernel
    matrix and one decomposition of the privileged features serve the whole grid, and fits start
    from each other. Folds are scored on X alone, as the model will be used. The final model is
    the `PrivilegedSVC` with the best parameters:

    .. math::

        \max_{C, \lambda} \; \frac{1}{n_\mathrm{folds}} \sum_k
        \mathrm{score}(\mathrm{model}_{C, \lambda} \text{ fitted without fold } k,
        \text{ fold } k)

    Parameters
    ----------
    Cs : array-like of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        Values of `C` to try.

    privileged_penalties : array-like of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        Values of `privileged_penalty` to try.

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

    Attributes
    ----------
    C_ : float
        Best value of `Cs`.

    privileged_penalty_ : float
        Best value of `privileged_penalties`.

    best_score_ : float
        Mean score of the best parameters over the folds. Of equal scores the first is chosen, with
        C varying slowest.

    best_params_ : dict
        The best parameters by name.

    scores_ : ndarray of shape (n_Cs, n_penalties, n_folds)
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
    >>> model = PrivilegedSVCCV(cv=3).fit(X, y, privileged=noise)
    >>> sorted(model.best_params_)
    ['C', 'privileged_penalty']
    >>> model.scores_.shape
    (5, 5, 3)
    """

    _plain = PrivilegedSVC

    _parameter_constraints: dict = {
        **SlackClassifier._parameter_constraints,
        **Search._parameter_constraints,
        "privileged_penalties": ["array-like"],
    }
    del _parameter_constraints["C"]

    def __init__(
        self,
        *,
        Cs=(0.01, 0.1, 1.0, 10.0, 100.0),
        privileged_penalties=(0.01, 0.1, 1.0, 10.0, 100.0),
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
        cv=None,
        scoring=None,
        refit=True,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        n_jobs=None,
    ):
        self.Cs = Cs
        self.privileged_penalties = privileged_penalties
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
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs

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
        data = self._prepare(X, y, privileged, sample_weight)
        weight = validate_all_weights(sample_weight, data.y)
        splits = self._splits(data.X, data.y, weight)
        n_last = data.n_problems * self.refit
        metadata = {"sample_weight": sample_weight, "privileged": privileged}
        progress = FitProgress(self, n_last + len(splits), data.X, data.y, metadata)

        def work(number: int) -> tuple[np.ndarray, list]:
            with progress.task(n_last + number) as stop:
                report = (lambda _: stop()) if progress.active else None
                return self._score_fold(data, weight, splits[number], Cs, penalties, report)

        folds = for_each(work, range(len(splits)), effective_n_jobs(self.n_jobs))
        shape = len(Cs), len(penalties)  # without privileged features all penalties are alike
        scores = np.dstack([np.broadcast_to(fold, shape) for fold, _ in folds])
        solutions = [solution for _, found in folds for solution in found]
        grid = {"C": Cs, "privileged_penalty": penalties}
        last = None
        if self.refit:
            costs = self._best_parameters(scores, grid).values()
            last = self._fit_subproblems(data, progress, *costs)
        return self._finish_search(scores, grid, solutions, last, progress)

    def _score_fold(self, data: FitData, weight, split, Cs, penalties, report) -> tuple:
        """Return the scores of one fold by C and penalty, and all solutions."""
        train, test = split
        X, y = safe_split(self, data.X, data.y, train)
        X_test, y_test = safe_split(self, data.X, data.y, test, train)
        privileged, scorer = data.privileged, self._scorer()
        weights = self._test_weights(weight, test)
        if privileged is not None:
            privileged = privileged.take(train, self.privileged_kernel == "precomputed")
        else:
            penalties = penalties[:1]
        own_weight = None if weight is None else weight[train]
        fold = FitData(self, X, y, privileged, own_weight, warn=False)
        subproblems, model = self._subproblems(fold), self._new_estimator()
        signs = [problem.sign for problem in fold.training.reduction.problems]
        starts: list = [None] * len(signs)
        scores, solutions = np.empty((len(Cs), len(penalties))), []
        for column in np.argsort(penalties)[::-1]:
            for row in np.argsort(Cs):
                solve = subproblems.solver(Cs[row], penalties[column])
                found = [
                    solve(sign, start, report) for sign, start in zip(signs, starts, strict=True)
                ]
                solutions += found
                # With an indefinite kernel several optima may exist: use that of a fresh start.
                if subproblems.positive_semidefinite:
                    starts = found
                vars(model).update(support_attributes(X, fold.training, found))
                scores[row, column] = scorer(model, X_test, y_test, **weights)
        return scores, solutions
