"""SVCCV: the C and gamma of an SVC by cross-validation, at the price of a few fits.

What the fits of a grid search have in common is computed once. Distances (or inner products)
between all rows serve every gamma; the Gram matrix of a gamma serves every fold, both its training
rows and the kernel values of its test rows; and the machines of a fold are solved along increasing
C, each starting from the solution before it.
"""

from dataclasses import dataclass, field
from functools import partial
from itertools import count
from numbers import Real
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.sklearn_compat import fit_context, safe_split
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin._base.validation import validate_all_weights
from widemargin.kernels.dense import PartGram, gather
from widemargin.kernels.gamma_grid import sweep
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
from widemargin.svm.svc import SVC, Training


class SVCCV(Search, SVC):
    r"""An `SVC` that chooses its C and gamma by cross-validation.

    Gives what ``GridSearchCV(SVC(), {"C": Cs, "gamma": gammas})`` gives, a good deal sooner:
    distances between rows are computed once for all gammas, a kernel matrix once for all folds, and
    every fit starts from that of the next smaller C. It then is the `SVC` with the best of them:

    .. math::

        \max_{C, \gamma} \; \frac{1}{n_\mathrm{folds}} \sum_k
        \mathrm{score}(\mathrm{SVC}_{C, \gamma} \text{ trained without fold } k, \text{ fold } k)

    Parameters
    ----------
    Cs : array-like of float, default=(0.1, 1.0, 10.0, 100.0)
        The costs to try, as `C` of `SVC`.

    gammas : array-like of float, 'scale' or 'auto', default=('scale',)
        The kernel coefficients to try, as `gamma` of `SVC`. 'scale' is computed from the training
        rows of each fold.

    kernel : str or callable, default='rbf'
        As in `SVC`. Kernels without a gamma are computed once.

    degree : int, default=3
        Degree of 'poly'.

    coef0 : float, default=0.0
        Constant of 'poly' and 'sigmoid'.

    cv : int, splitter or iterable, default=None
        How rows fall into folds: a number of stratified folds (5 when None), a splitter, or pairs
        of training and test rows. For groups, give ``GroupKFold().split(X, y, groups)``.

    scoring : str or callable, default=None
        What makes a fold's machine good: the name of a scorer or a function
        ``scoring(machine, X, y)``, where ``machine`` is a fitted `SVC`. Accuracy when None.

    refit : bool, default=True
        Whether to train on all rows in the end. If not, there are scores but no predictions.

    multi_class : {'ovo', 'ovr'}, default='ovo'
        Whether there is a machine for every pair of classes or for every class against the rest.

    shrinking : bool, default=True
        Whether the solver leaves out rows that will not move.

    tol : float, default=1e-3
        Largest violation of the optimality conditions at which the solver stops.

    gap_tol : float, default=None
        Stop on this relative duality gap instead of on `tol`.

    cache_size : float, default=1000
        Memory for kernel values in MB. Two matrices over all rows (16 bytes for every pair of
        rows) are kept if they fit. If only one does, distances are computed for every gamma
        again; if none does, every fold has a cache of its own for every gamma. Every job needs
        room for the matrix of its machines besides.

    class_weight : dict, 'balanced' or 'effective', default=None
        Multiplies `C` by class, as in `SVC`.

    class_margin : dict or 'ldam', default=None
        The margin of rows by class, as in `SVC`.

    verbose : bool, default=False
        Print a line for every machine of the last fit.

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
        Has no effect, as in `SVC`.

    Attributes
    ----------
    C_ : float
        The best of `Cs`.

    gamma_ : float or str
        The best of `gammas`.

    best_score_ : float
        Mean score of the two over the folds. Of equal scores, the one that comes first with C
        varying slowest wins, as in :class:`sklearn.model_selection.GridSearchCV`.

    best_params_ : dict
        The two by name.

    scores_ : ndarray of shape (n_Cs, n_gammas, n_folds)
        Scores of all fits.

    cv_results_ : dict
        The same in the manner of :class:`sklearn.model_selection.GridSearchCV`, without times.

    best_estimator_ : SVC
        What was trained on all rows in the end, as an `SVC`.

    classes_ : ndarray of shape (n_classes,)
        The labels. This and what follows describe the machine trained on all rows.

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
        Dual variables times signs, as in `SVC`.

    intercept_ : ndarray of shape (n_machines,)
        Constant of each decision function.

    coef_ : ndarray or sparse matrix of shape (n_machines, n_features)
        Weights of the features, for ``kernel='linear'``.

    objective_ : ndarray of shape (n_machines,)
        Value of the minimised objective.

    dual_gap_ : ndarray of shape (n_machines,)
        Bound on how far `objective_` is from the optimum, relative to it, as in `SVC`.

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
    SVC : The machine for one C and gamma.
    sklearn.model_selection.GridSearchCV : The same for any estimator and any parameter.

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
        """Try every C with every gamma and train with the best of them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training rows, or the kernel matrix between them for ``kernel='precomputed'``.

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
        Cs, gammas = self._check_grid()
        X, y = self._check_training_data(X, y)
        n_machines = len(self._prepare(X, y, sample_weight, gammas[0]).reduction.machines)
        weight = validate_all_weights(sample_weight, y)
        folds = self._folds(X, y, weight, Cs, gammas)
        n_tasks = sum(len(fold.machines) * len(fold.path) for fold in folds)
        progress = FitProgress.open(
            self, n_tasks + n_machines * self.refit, X, y, {"sample_weight": sample_weight}
        )
        with single_threaded_blas():
            self._solve_folds(X, y, folds, progress)
        scores, failed = self._score_folds(X, y, weight, folds, Cs, gammas)
        warn_if_failed(failed, scores.size)
        best = best_of(scores)
        C, gamma = Cs[best[0]], gammas[best[1]]
        if self.refit:
            training = self._prepare(X, y, sample_weight, gamma)
            solutions = self._train(X, training, C, progress, first_task=n_tasks)
        else:
            self.__dict__.pop("support_", None)
        self._keep_search(scores, best, {"C": Cs, "gamma": gammas})
        progress.close()
        tried = [s for fold in folds for path in fold.solutions for s in path]
        warn_if_stopped(tried, self.max_iter, progress.stop_requested)
        if self.refit:
            report_convergence(self, solutions, progress.stop_requested)
        return self

    def _check_grid(self):
        Cs, gammas = check_costs(self.Cs, finite=False), list(self.gammas)
        numbers = [gamma for gamma in gammas if gamma not in ("scale", "auto")]
        if not gammas or not all(isinstance(g, Real) and 0 <= float(g) < np.inf for g in numbers):
            raise ValueError(
                "gammas must hold 'scale', 'auto' or finite numbers of at least 0, got "
                f"{self.gammas!r}."
            )
        return Cs, [str(g) if isinstance(g, str) else float(g) for g in gammas]

    def _folds(self, X, y, weight, Cs, gammas):
        """What there is to solve: a `Fold` for every fold and every number that gamma is in it."""
        folds: dict[tuple[int, float], Fold] = {}
        for number, (train, test) in enumerate(self._splits(X, y, weight)):
            X_train, y_train = safe_split(self, X, y, train)
            weight_train = None if weight is None else weight[train]
            for column, gamma in enumerate(gammas):
                training = self._prepare(X_train, y_train, weight_train, gamma)
                fold = Fold(number, train, test, training, path=sorted(set(Cs)))
                folds.setdefault((number, training.gamma), fold).columns.append(column)
        return list(folds.values())

    def _solve_folds(self, X, y, folds, progress):
        """Fill in the solutions of the folds, gamma after gamma."""
        of_gamma: dict[float, list[Fold]] = {}
        tasks = count()
        for fold in folds:
            of_gamma.setdefault(fold.training.gamma, []).append(fold)
            fold.tasks = [[next(tasks) for _ in fold.path] for _ in fold.machines]
        order = np.arange(len(y))
        if not callable(self.kernel) and self.kernel != "precomputed":
            # With classes side by side a machine's part of the matrix lies in long runs.
            order = np.argsort(np.unique(y, return_inverse=True)[1], kind="stable")
        place = np.argsort(order)
        grams = sweep(lambda gamma: self._gram(X, order, gamma), of_gamma, self.cache_size * 2**20)
        for gram, members in zip(grams, of_gamma.values(), strict=True):
            self._solve_for_gamma(X, gram, place, members, progress)

    def _solve_for_gamma(self, X, gram, place, folds, progress):
        jobs = effective_n_jobs(self.n_jobs)
        if gram is None:
            for fold in folds:
                self._solve_with_cache(X, fold, jobs, progress)
            return
        pieces = [(fold, numbers) for fold in folds for numbers in fold.pieces()]
        # Large ones first, so that the last job to end is a short one.
        pieces.sort(key=lambda piece: -len(piece[0].machines[piece[1][0]].rows))
        for_each(lambda piece: self._solve_piece(gram, place, piece, progress), pieces, jobs)

    def _solve_piece(self, gram, place, piece, progress):
        """Solve machines of a fold that see the same rows, and score its test rows.

        ``place`` says where a row of the data stands in ``gram``.
        """
        fold, numbers = piece
        rows = place[fold.train[fold.training.order[fold.machines[numbers[0]].rows]]]
        own = PartGram(gram, rows)
        for number in numbers:
            self._solve_path(fold, number, own, progress)
        solutions = [solution for number in numbers for solution in fold.solutions[number]]
        duals = np.column_stack([solution.dual for solution in solutions])
        support = duals.any(axis=1)
        # Read along the rows of support vectors: test rows, too, lie in long runs.
        kernel = gather(gram.matrix, rows[support], place[fold.test]).T
        with single_threaded_blas():  # the same product on any number of jobs: the same bits
            scores = kernel @ duals[support] + [solution.intercept for solution in solutions]
        fold.test_scores[:, numbers] = scores.reshape(len(scores), len(numbers), -1)

    def _solve_with_cache(self, X, fold, jobs, progress):
        """Solve the machines of a fold over a cache of its own."""
        X_train, _ = safe_split(self, X, None, fold.train)
        cache = self._cache(X_train, fold.training, jobs)
        for_each(
            lambda number: self._solve_path(
                fold, number, cache.of(*fold.machines[number].groups), progress
            ),
            range(len(fold.machines)),
            jobs,
        )
        fold.test_scores = None

    def _solve_path(self, fold, number, gram, progress):
        """Solve a machine for increasing C, each time from the solution before.

        That one remains feasible. It is no place to start from where the kernel is not known to be
        positive semidefinite: several optima may exist, and that of a fresh start is wanted.
        """
        machine, solutions = fold.machines[number], fold.solutions[number]
        margins = fold.training.margins()[machine.rows]
        unbound = False
        for step, (C, task) in enumerate(zip(fold.path, fold.tasks[number], strict=True)):
            with progress.task(task) as stop:
                # What no cost held back stays the solution for any larger one.
                if unbound and gram.positive_semidefinite:
                    solutions.append(solutions[-1])
                    continue
                cost = fold.training.costs(C)[machine.rows]
                warm = gram.positive_semidefinite and solutions
                try:
                    solution = solve_hinge(
                        HingeProblem(gram, machine.sign, margins, cost),
                        **self._solver_options(),
                        dual=solutions[-1].dual if warm else None,
                        report=partial(_ask, stop),
                    )
                except NotSeparableError:
                    fold.failed.add(step)
                    solution = Solution(np.zeros(gram.size), 0.0, np.inf, np.inf, 0.0, 0, True)
            solutions.append(solution)
            unbound = solution.converged and bool((np.abs(solution.dual) < cost).all())

    def _score_folds(self, X, y, weight, folds, Cs, gammas):
        """Scores by C, gamma and fold, and how many are nan because their fit failed."""
        scorer = self._scorer()
        weighted = weight is not None and takes_weights(scorer)
        scores = np.empty((len(Cs), len(gammas), 1 + max(fold.number for fold in folds)))
        failed = 0
        for fold in folds:
            X_train, _ = safe_split(self, X, None, fold.train)
            X_test, y_test = safe_split(self, X, y, fold.test, fold.train)
            weights = {"sample_weight": weight[fold.test]} if weighted else {}
            for row, C in enumerate(Cs):
                step = fold.path.index(C)
                if step in fold.failed:
                    scores[row, fold.columns, fold.number] = np.nan
                    failed += len(fold.columns)
                    continue
                solutions = [path[step] for path in fold.solutions]
                model = self._machine(FoldSVC, C=C, gamma=gammas[fold.columns[0]])
                model.classes_ = fold.training.classes
                model.known = X_train, fold.training, solutions
                if fold.test_scores is not None:
                    model.answers = X_test, np.ascontiguousarray(fold.test_scores[:, :, step])
                scores[row, fold.columns, fold.number] = scorer(model, X_test, y_test, **weights)
        return scores, failed


class FoldSVC(SVC):
    """The `SVC` of a fold, which has the decision values of its test rows beforehand.

    Most scorers ask for no more; its other fitted attributes are made when they are.
    """

    answers = None, None

    def _scores(self, X):
        return self.answers[1] if X is self.answers[0] else super()._scores(X)

    def __getattr__(self, name):
        known = None if name.startswith("__") else self.__dict__.pop("known", None)
        if known is None:
            raise AttributeError(f"SVC has no attribute {name!r}.")
        self.__dict__.update(self._attributes(*known))
        if not callable(self.kernel):
            self.n_features_in_ = known[0].shape[1]
        return getattr(self, name)


@dataclass
class Fold:
    """The problems of one fold for one gamma, and what became of them.

    ``columns`` are the places in the grid that this gamma has; ``solutions`` holds a list over
    ``path``, the increasing Cs, for every machine; ``failed`` are the places in it at which some
    machine has none; ``test_scores`` is an array over test rows, machines and ``path``, or None.
    """

    number: int
    train: np.ndarray
    test: np.ndarray
    training: Training
    path: list[float]
    columns: list[int] = field(default_factory=list)
    tasks: list[list[int]] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)
    solutions: list = field(init=False)
    test_scores: np.ndarray | None = field(init=False)

    def __post_init__(self):
        self.machines = self.training.reduction.machines
        self.solutions = [[] for _ in self.machines]
        self.test_scores = np.empty((len(self.test), len(self.machines), len(self.path)))

    def pieces(self):
        """Numbers of the machines, those that see the same rows together."""
        together: dict[tuple[int, ...], list[int]] = {}
        for number, machine in enumerate(self.machines):
            together.setdefault(machine.groups, []).append(number)
        return list(together.values())


def _ask(stop, state):
    return stop()
