"""SVCCV: C and gamma of an SVC by cross-validation, in the time of a few fits."""

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import FitFailedWarning

from widemargin._base.callbacks import FitProgress
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import fit_context, safe_split
from widemargin._base.validation import validate_all_weights, validate_kernel_training
from widemargin._base.workers import local_jobs
from widemargin.solvers import NotSeparableError
from widemargin.svm.cross_validation import Search, accuracy_scorer
from widemargin.svm.folds import make_folds, solve_folds
from widemargin.svm.probabilities import ProbabilityMixin, fit_sigmoids
from widemargin.svm.svc import SVC, KernelClassifier
from widemargin.svm.training import fit_binary_problems, prepare_training


@shared_docs
class SVCCV(Search, ProbabilityMixin, KernelClassifier):
    r"""C-support vector classification with C and gamma selected by cross-validation.

    Gives the results of ``GridSearchCV(SVC(), {"C": Cs, "gamma": gammas})`` in less time: distances
    between samples are computed once for all gammas, a kernel matrix once for all folds, and every
    fit starts from that of the next smaller C, or from that of the first fold. Scores are those of
    fits to `tol`. The parameters are those of

    .. math::

        \max_{C, \gamma} \; \frac{1}{n_\mathrm{folds}} \sum_k
        \mathrm{score}(\mathrm{SVC}_{C, \gamma} \text{ trained without fold } k, \text{ fold } k)

    Parameters
    ----------
    Cs : array-like of float, default=(0.1, 1.0, 10.0, 100.0)
        Values of the regularization parameter `C` of `SVC` to try.

    gammas : array-like of float, 'scale' or 'auto', default=('scale',)
        Values of the kernel coefficient `gamma` of `SVC` to try. 'scale' is computed from the
        training samples of each fold.

    <<kernel>>

    <<degree>>

    <<coef0>>

    <<search_parameters>>

    <<multi_class>>

    <<shrinking>>

    <<probability>>

    <<tol>>

    <<gap_tol>>

    cache_size : float, default=1000
        Memory for kernel values in MB. Two matrices over all samples (16 bytes for each pair of
        samples) are stored if they fit. If only one fits, distances are computed for each gamma
        again; if none does, each fold has a kernel cache for each gamma. Each job needs additional
        memory for the matrix of its subproblem.

    <<class_weight>>

    <<class_margin>>

    <<verbose>>

    <<max_iter>>

    <<decision_function_shape>>

    <<break_ties>>

    <<n_jobs>>

    <<unused_random_state>>

    <<checkpoint>>

    Attributes
    ----------
    C_ : float
        Best of `Cs`.

    gamma_ : float or str
        Best of `gammas`.

    <<search_results>>

    scores_ : ndarray of shape (n_Cs, n_gammas, n_folds)
        Scores of all fits.

    best_estimator_ : SVC
        The `SVC` with the best parameters, fitted to all samples. The attributes below are its
        attributes.

    <<classes_>>

    <<class_weight_>>

    <<class_margin_>>

    <<dual_coef_>>

    <<support_attributes>>

    <<probability_sigmoids_>>

    <<n_features_in_>>

    <<feature_names_in_>>

    See Also
    --------
    SVC : Support vector classification with given C and gamma.
    sklearn.model_selection.GridSearchCV : Grid search for any estimator and any parameters.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVCCV(Cs=[0.1, 1, 10, 100], gammas=[0.01, 0.1, 1]).fit(X, y)
    >>> model.best_params_
    {'C': 1.0, 'gamma': 0.1}
    >>> model.scores_.shape
    (4, 3, 5)
    >>> print(f"{model.best_score_:.2f}")
    0.98
    """

    _parameter_constraints: dict = {
        **SVC._parameter_constraints,
        **Search._parameter_constraints,
        "gammas": ["array-like"],
    }
    del _parameter_constraints["C"], _parameter_constraints["gamma"]
    _plain = SVC

    def __init__(
        self,
        *,
        Cs=(0.1, 1.0, 10.0, 100.0),
        gammas=("scale",),
        kernel="rbf",
        degree=3,
        coef0=0.0,
        cv=None,
        scoring=None,
        refit=True,
        multi_class="ovo",
        shrinking=True,
        probability=False,
        tol=1e-3,
        gap_tol=None,
        cache_size=1000,
        class_weight=None,
        class_margin=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        n_jobs=None,
        random_state=None,
        checkpoint=None,
    ):
        self.Cs = Cs
        self.gammas = gammas
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.multi_class = multi_class
        self.shrinking = shrinking
        self.probability = probability
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
        self.checkpoint = checkpoint

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Select C and gamma by cross-validation and fit the model.

        Parameters
        ----------
        <<X_kernel_train>>

        <<y>>

        <<search_sample_weight>>

        Returns
        -------
        <<returns_self>>
        """
        Cs, gammas = self._check_costs(finite=False), self._check_gammas()
        X, y = validate_kernel_training(self, X, y, self.kernel)
        models = [self._new_estimator(gamma=gamma) for gamma in gammas]
        n_last = prepare_training(models[0], X, y, sample_weight).n_problems * self.refit
        weight, jobs = validate_all_weights(sample_weight, y), local_jobs(self.n_jobs)
        splits, grid = self._splits(X, y, weight), {"C": Cs, "gamma": gammas}
        scores = None
        if not self.probability:
            data = {"X": X, "y": y, "sample_weight": sample_weight}
            scores = self._cluster_scores(grid, splits, data, apart="gamma")
        folds = []
        if scores is None:
            folds = make_folds(models, X, y, weight, splits, sorted(set(Cs)))
        n_tasks = sum(fold.n_tasks for fold in folds)
        metadata = {"sample_weight": sample_weight}
        progress = FitProgress(
            self, n_tasks + n_last, X, y, metadata, self.checkpoint,
            [(fold.train, fold.test) for fold in folds],
        )  # fmt: skip
        if scores is None:
            solve_folds(folds, X, y, self.cache_size, jobs, progress)
            scores = self._score_folds(X, y, weight, folds, grid)
        solutions = [s for fold in folds for path in fold.solutions for s in path]
        last = None
        if self.refit:
            best = self._new_estimator(**self._best_parameters(scores, grid))
            training = prepare_training(best, X, y, sample_weight)
            last, fitted = fit_binary_problems(best, X, training, jobs, progress, n_tasks)
            sigmoids = None
            if self.probability:
                of_gamma = grid["gamma"].index(best.gamma)
                chosen = [fold for fold in folds if of_gamma in fold.columns]
                sigmoids = fit_sigmoids(chosen, best.C, X, y, weight, training)
            self.__dict__.update(fitted, probability_sigmoids_=sigmoids)
        return self._finish_search(scores, grid, solutions, last, progress)

    def _check_gammas(self) -> list:
        gammas = list(self.gammas)
        numbers = [gamma for gamma in gammas if gamma not in ("scale", "auto")]
        if not gammas or not all(isinstance(g, Real) and 0 <= float(g) < np.inf for g in numbers):
            raise ValueError(
                "gammas must contain 'scale', 'auto' or finite non-negative numbers, got "
                f"{self.gammas!r}."
            )
        return [str(g) if isinstance(g, str) else float(g) for g in gammas]

    def _score_folds(self, X: Any, y: Any, weight: Any, folds: list, grid: dict) -> np.ndarray:
        """Return scores by C, gamma and fold, nan where the fit failed."""
        shape = len(grid["C"]), len(grid["gamma"]), 1 + max(fold.number for fold in folds)
        scores, failed, scorer = np.full(shape, np.nan), 0, self._scorer()
        # Scorers made by scikit-learn need predictions only, others may read any attribute.
        whole = scorer is not accuracy_scorer and not hasattr(scorer, "_score_func")
        for fold in folds:
            X_train, _ = safe_split(self, X, None, fold.train)
            X_test, y_test = safe_split(self, X, y, fold.test, fold.train)
            weights = self._test_weights(weight, fold.test)
            for row, C in enumerate(grid["C"]):
                step = fold.path.index(C)
                if step in fold.failed:
                    failed += len(fold.columns)
                    continue
                model = fold.fitted_model(step, X_train, X_test, whole)
                scores[row, fold.columns, fold.number] = scorer(model, X_test, y_test, **weights)
        if failed == scores.size:
            raise NotSeparableError
        if failed:
            warnings.warn(
                f"{failed} of {scores.size} cross-validation fits failed, because samples of "
                "infinite cost were not separable. Their scores are nan.",
                FitFailedWarning,
                stacklevel=4,
            )
        return scores
