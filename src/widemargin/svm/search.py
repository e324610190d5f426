"""SVCCV: C and gamma of an SVC by cross-validation, in the time of a few fits.

What the fits of a grid search have in common is computed once. Distances (or inner products)
between all samples serve every gamma. The Gram matrix of a gamma serves every fold, both its
training samples and the kernel values of its test samples. The subproblems of a fold are solved
for increasing C, each starting from the previous solution.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from numbers import Real
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import fit_context, safe_split
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin._base.validation import validate_all_weights, validate_kernel_training
from widemargin.kernels import Gram, MatrixGram
from widemargin.kernels.dense import SubsetGram, gather
from widemargin.kernels.gamma_grid import gram_matrices
from widemargin.kernels.parameters import KernelParameters
from widemargin.solvers import HingeProblem, NotSeparableError, Solution, solve_hinge
from widemargin.svm.cross_validation import (
    SEARCH_CONSTRAINTS,
    Search,
    best_of,
    check_costs,
    takes_weights,
    warn_if_failed,
    warn_if_stopped,
)
from widemargin.svm.kernel_classifier import KernelClassifierMixin
from widemargin.svm.reduction import OneVsOne
from widemargin.svm.svc import SVC, check_decision_function_shape, solver_options
from widemargin.svm.training import (
    Training,
    fit_binary_problems,
    gram_cache,
    prepare_training,
    support_attributes,
)


@shared_docs
class SVCCV(Search, KernelClassifierMixin, CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    r"""C-support vector classification with C and gamma selected by cross-validation.

    Gives the results of ``GridSearchCV(SVC(), {"C": Cs, "gamma": gammas})`` in less time: distances
    between samples are computed once for all gammas, a kernel matrix once for all folds, and every
    fit starts from that of the next smaller C. The parameters are those of

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
        **SEARCH_CONSTRAINTS,
        "gammas": ["array-like"],
    }
    del _parameter_constraints["C"], _parameter_constraints["gamma"]
    _plain = SVC
    _learned = "support_"

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
        Cs, gammas = self._check_grid()
        check_decision_function_shape(self.multi_class, self.decision_function_shape)
        X, y = validate_kernel_training(self, X, y, self.kernel)
        whole = self._prepare(X, y, sample_weight, gammas[0])
        weight = validate_all_weights(sample_weight, y)
        folds = self._folds(X, y, weight, Cs, gammas)
        n_tasks = sum(len(fold.problems) * len(fold.path) for fold in folds)
        n_last = len(whole.reduction.problems) * self.refit
        progress = FitProgress.open(self, n_tasks + n_last, X, y, {"sample_weight": sample_weight})
        with single_threaded_blas():
            self._solve_folds(X, y, folds, progress)
        scores, failed = self._score_folds(X, y, weight, folds, Cs, gammas)
        warn_if_failed(failed, scores.size)
        best = best_of(scores)
        C, gamma = Cs[best[0]], gammas[best[1]]
        if self.refit:
            solutions, attributes = fit_binary_problems(
                X,
                self._prepare(X, y, sample_weight, gamma),
                C,
                solver_options=solver_options(self),
                cache_size=self.cache_size,
                n_jobs=self.n_jobs,
                progress=progress,
                first_task=n_tasks,
            )
            self.__dict__.update(attributes)
        else:
            self.__dict__.pop("support_", None)
        self._keep_search(scores, best, {"C": Cs, "gamma": gammas})
        progress.close()
        tried = [s for fold in folds for path in fold.solutions for s in path]
        warn_if_stopped(tried, self.max_iter, progress.stop_requested)
        if self.refit:
            report_convergence(self, solutions, progress.stop_requested)
        return self

    def _check_grid(self) -> tuple[list[float], list]:
        Cs, gammas = check_costs(self.Cs, finite=False), list(self.gammas)
        numbers = [gamma for gamma in gammas if gamma not in ("scale", "auto")]
        if not gammas or not all(isinstance(g, Real) and 0 <= float(g) < np.inf for g in numbers):
            raise ValueError(
                "gammas must contain 'scale', 'auto' or finite non-negative numbers, got "
                f"{self.gammas!r}."
            )
        return Cs, [str(g) if isinstance(g, str) else float(g) for g in gammas]

    def _prepare(self, X: Any, y: np.ndarray, sample_weight: Any, gamma: float | str) -> Training:
        return prepare_training(
            X,
            y,
            sample_weight,
            KernelParameters(self.kernel, gamma, self.degree, self.coef0),
            multi_class=self.multi_class,
            class_weight=self.class_weight,
            class_margin=self.class_margin,
        )

    def _folds(
        self, X: Any, y: np.ndarray, weight: np.ndarray | None, Cs: list[float], gammas: list
    ) -> "list[Fold]":
        """Return a `Fold` for each fold and each number that gamma is in it."""
        folds: dict[tuple[int, float], Fold] = {}
        for number, (train, test) in enumerate(self._splits(X, y, weight)):
            X_train, y_train = safe_split(self, X, y, train)
            weight_train = None if weight is None else weight[train]
            for column, gamma in enumerate(gammas):
                training = self._prepare(X_train, y_train, weight_train, gamma)
                fold = Fold(number, train, test, training, path=sorted(set(Cs)))
                folds.setdefault((number, fold.gamma), fold).columns.append(column)
        return list(folds.values())

    def _solve_folds(
        self, X: Any, y: np.ndarray, folds: "list[Fold]", progress: FitProgress
    ) -> None:
        """Compute the solutions of the folds, one gamma after the other."""
        of_gamma: dict[float, list[Fold]] = {}
        tasks = count()
        for fold in folds:
            of_gamma.setdefault(fold.gamma, []).append(fold)
            fold.tasks = [[next(tasks) for _ in fold.path] for _ in fold.problems]
        parameters = folds[0].training.parameters
        order = np.arange(len(y))
        if not parameters.is_pairwise:
            # With samples grouped by class, those of a subproblem are contiguous.
            order = np.argsort(np.unique(y, return_inverse=True)[1], kind="stable")
        position = np.argsort(order)
        grams = gram_matrices(
            lambda gamma: replace(parameters, gamma=gamma).gram(X, order),
            of_gamma,
            self.cache_size * 2**20,
        )
        for gram, members in zip(grams, of_gamma.values(), strict=True):
            self._solve_for_gamma(X, gram, position, members, progress)

    def _solve_for_gamma(
        self,
        X: Any,
        gram: MatrixGram | None,
        position: np.ndarray,
        folds: "list[Fold]",
        progress: FitProgress,
    ) -> None:
        jobs = effective_n_jobs(self.n_jobs)
        if gram is None:
            for fold in folds:
                self._solve_with_cache(X, fold, jobs, progress)
            return
        units = [(fold, numbers) for fold in folds for numbers in fold.problems_by_samples()]
        # Large ones first, so that the last job to finish is a short one.
        units.sort(key=lambda unit: -len(unit[0].problems[unit[1][0]].samples))
        for_each(
            lambda unit: self._solve_unit(gram, position, unit[0], unit[1], progress), units, jobs
        )

    def _solve_unit(
        self,
        gram: MatrixGram,
        position: np.ndarray,
        fold: "Fold",
        numbers: list[int],
        progress: FitProgress,
    ) -> None:
        """Solve subproblems of a fold over the same samples, and score its test samples.

        ``position`` holds the position of each sample in ``gram``.
        """
        samples = fold.train[fold.training.order[fold.problems[numbers[0]].samples]]
        rows = position[samples]
        subset = SubsetGram(gram, rows)
        for number in numbers:
            self._solve_path(fold, number, subset, progress)
        solutions = [solution for number in numbers for solution in fold.solutions[number]]
        duals = np.column_stack([solution.dual for solution in solutions])
        support = duals.any(axis=1)
        # Read along the rows of support vectors: test samples, too, are contiguous in them.
        kernel = gather(gram.matrix, rows[support], position[fold.test]).T
        with single_threaded_blas():  # the same product for any number of jobs: the same bits
            scores = kernel @ duals[support] + [solution.intercept for solution in solutions]
        assert fold.test_scores is not None
        fold.test_scores[:, numbers] = scores.reshape(len(scores), len(numbers), -1)

    def _solve_with_cache(self, X: Any, fold: "Fold", jobs: int, progress: FitProgress) -> None:
        """Solve the subproblems of a fold over a kernel cache of its own."""
        X_train, _ = safe_split(self, X, None, fold.train)
        gram = fold.training.parameters.gram(X_train, fold.training.order)
        cache = gram_cache(gram, fold.training.reduction, self.cache_size, jobs)
        for_each(
            lambda number: self._solve_path(
                fold, number, cache.of(*fold.problems[number].groups), progress
            ),
            range(len(fold.problems)),
            jobs,
        )
        fold.test_scores = None

    def _solve_path(self, fold: "Fold", number: int, gram: Gram, progress: FitProgress) -> None:
        """Solve a subproblem for increasing C, each time starting from the previous solution.

        That one remains feasible. Where the kernel is not known to be positive semidefinite there
        may be several optima, and each C starts afresh, as a separate fit would.
        """
        problem, solutions = fold.problems[number], fold.solutions[number]
        margins = fold.training.margins()[problem.samples]
        unbounded = False
        for step, (C, task) in enumerate(zip(fold.path, fold.tasks[number], strict=True)):
            with progress.task(task) as stop:
                # A solution that no cost bounds is that of every larger C.
                if unbounded and gram.positive_semidefinite:
                    solutions.append(solutions[-1])
                    continue
                cost = fold.training.costs(C)[problem.samples]
                warm = gram.positive_semidefinite and solutions
                try:
                    solution = solve_hinge(
                        HingeProblem(gram, problem.sign, margins, cost),
                        **solver_options(self),
                        dual=solutions[-1].dual if warm else None,
                        report=lambda _, stop=stop: stop(),  # type: ignore[misc]
                    )
                except NotSeparableError:
                    fold.failed.add(step)
                    solution = Solution(np.zeros(gram.size), 0.0, np.inf, np.inf, 0.0, 0, True)
            solutions.append(solution)
            unbounded = solution.converged and bool((np.abs(solution.dual) < cost).all())

    def _score_folds(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray | None,
        folds: "list[Fold]",
        Cs: list[float],
        gammas: list,
    ) -> tuple[np.ndarray, int]:
        """Return scores by C, gamma and fold, and the number of those whose fit failed."""
        scorer = self._scorer()
        weighted = takes_weights(scorer)
        scores = np.empty((len(Cs), len(gammas), 1 + max(fold.number for fold in folds)))
        failed = 0
        for fold in folds:
            X_train, _ = safe_split(self, X, None, fold.train)
            X_test, y_test = safe_split(self, X, y, fold.test, fold.train)
            weights = {}
            if weight is not None and weighted:
                weights["sample_weight"] = weight[fold.test]
            for row, C in enumerate(Cs):
                step = fold.path.index(C)
                if step in fold.failed:
                    scores[row, fold.columns, fold.number] = np.nan
                    failed += len(fold.columns)
                    continue
                model = self._new_estimator(FoldSVC, C=C, gamma=gammas[fold.columns[0]])
                model.set_fold(fold, step, X_train, X_test)
                scores[row, fold.columns, fold.number] = scorer(model, X_test, y_test, **weights)
        return scores, failed


class FoldSVC(SVC):
    """The `SVC` of a fold, whose decision values at the test samples are known.

    Most scorers need no more; the other fitted attributes are computed when they are read.
    """

    def set_fold(self, fold: "Fold", step: int, X_train: Any, X_test: Any) -> None:
        """Set what is known: the solutions at a C of the path, and decision values."""
        solutions = [path[step] for path in fold.solutions]
        self.classes_ = fold.training.classes
        self._one_vs_one = isinstance(fold.training.reduction, OneVsOne)
        self._fold_attributes = partial(support_attributes, X_train, fold.training, solutions)
        self._fold_features = None if callable(self.kernel) else X_train.shape[1]
        self._known_X = X_test
        self._known_values: np.ndarray | None = None
        if fold.test_scores is not None:
            self._known_values = np.ascontiguousarray(fold.test_scores[:, :, step])

    def _decision_values(self, X: Any) -> NDArray[np.float64]:
        if self._known_values is not None and X is self._known_X:
            return self._known_values
        return super()._decision_values(X)

    def __getattr__(self, name: str) -> Any:
        compute = None if name.startswith("__") else self.__dict__.pop("_fold_attributes", None)
        if compute is None:
            raise AttributeError(f"SVC has no attribute {name!r}.")
        self.__dict__.update(compute())
        if self._fold_features is not None:
            self.n_features_in_ = self._fold_features
        return getattr(self, name)


@dataclass
class Fold:
    """The subproblems of one fold for one gamma, and their solutions.

    ``columns`` are the positions of this gamma in the grid; ``solutions`` holds for each subproblem
    a list over ``path``, the increasing values of C; ``failed`` are the positions in it at which
    a subproblem has no solution; ``test_scores`` is an array over test samples, subproblems and
    ``path``, or None.
    """

    number: int
    train: np.ndarray
    test: np.ndarray
    training: Training
    path: list[float]
    columns: list[int] = field(default_factory=list)
    tasks: list[list[int]] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)
    solutions: list[list[Solution]] = field(init=False)
    test_scores: np.ndarray | None = field(init=False)

    def __post_init__(self) -> None:
        self.problems = self.training.reduction.problems
        self.gamma = float(self.training.parameters.gamma)
        self.solutions = [[] for _ in self.problems]
        self.test_scores = np.empty((len(self.test), len(self.problems), len(self.path)))

    def problems_by_samples(self) -> list[list[int]]:
        """Return the numbers of the subproblems, grouped by their samples."""
        together: dict[tuple[int, ...], list[int]] = {}
        for number, problem in enumerate(self.problems):
            together.setdefault(problem.groups, []).append(number)
        return list(together.values())
