"""PrivilegedSVCCV: the C and penalty of a PrivilegedSVC by cross-validation, at a few fits' price.

In every fold the kernel matrix and the decomposition of the privileged columns are computed once
and serve all C, all penalties and all classes; every machine starts from its neighbour's solution.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.sklearn_compat import fit_context, safe_indexing, safe_split
from widemargin._base.threads import for_each
from widemargin._base.validation import validate_all_weights
from widemargin.privileged.svc import PrivilegedSVC
from widemargin.svm.cross_validation import (
    SEARCH_CONSTRAINTS,
    Search,
    best_of,
    check_costs,
    takes_weights,
    warn_if_stopped,
)


class PrivilegedSVCCV(Search, PrivilegedSVC):
    r"""A `PrivilegedSVC` that chooses its C and its privileged penalty by cross-validation.

    Gives what a grid search over `PrivilegedSVC` gives, sooner: in every fold one kernel matrix and
    one decomposition of the privileged columns serve the whole grid, and fits start from each
    other. Folds are scored on X alone, as the machine will be used. It then is the `PrivilegedSVC`
    with the best of them:

    .. math::

        \max_{C, \lambda} \; \frac{1}{n_\mathrm{folds}} \sum_k
        \mathrm{score}(\mathrm{machine}_{C, \lambda} \text{ trained without fold } k,
        \text{ fold } k)

    Parameters
    ----------
    Cs : array-like of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        The costs to try.

    privileged_penalties : array-like of float, default=(0.01, 0.1, 1.0, 10.0, 100.0)
        The penalties to try.

    loss : {'squared_hinge', 'hinge'}, default='squared_hinge'
        SVM2+ or SVM1+.

    kernel : str or callable, default='rbf'
        As in `PrivilegedSVC`.

    degree : int, default=3
        Degree of 'poly'.

    gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of the kernel.

    coef0 : float, default=0.0
        Constant of 'poly' and 'sigmoid'.

    privileged_kernel : str or callable, default='linear'
        The kernel of the privileged columns.

    privileged_degree : int, default=3
        Degree of a privileged 'poly'.

    privileged_gamma : {'scale', 'auto'} or float, default='scale'
        Coefficient of the privileged kernel.

    privileged_coef0 : float, default=0.0
        Constant of a privileged 'poly' or 'sigmoid'.

    privileged_transformer : transformer, default=None
        Fitted on the privileged columns of every fold, as in `PrivilegedSVC`.

    cv : int, splitter or iterable, default=None
        How rows fall into folds: a number of stratified folds (5 when None), a splitter, or pairs
        of training and test rows.

    scoring : str or callable, default=None
        What makes a fold's machine good: the name of a scorer or a function
        ``scoring(machine, X, y)``. Accuracy when None.

    refit : bool, default=True
        Whether to train on all rows in the end. If not, there are scores but no predictions.

    tol : float, default=1e-3
        Largest violation of the optimality conditions at which the solver stops.

    cache_size : float, default=200
        Memory for kernel values in MB, for more than 2,000 rows.

    class_weight : dict or 'balanced', default=None
        Multiplies `C` by class.

    verbose : bool, default=False
        Print a line for every machine of the last fit.

    max_iter : int, default=-1
        Most solver iterations for each machine, -1 for no limit.

    n_jobs : int, default=None
        How many folds are worked on at once, in threads. The result does not depend on it.

    Attributes
    ----------
    C_ : float
        The best of `Cs`.

    privileged_penalty_ : float
        The best of `privileged_penalties`.

    best_score_ : float
        Mean score of the two over the folds. Of equal scores the first wins, C varying slowest.

    best_params_ : dict
        The two by name.

    scores_ : ndarray of shape (n_Cs, n_penalties, n_folds)
        Scores of all fits.

    cv_results_ : dict
        The same in the manner of :class:`sklearn.model_selection.GridSearchCV`, without times.

    best_estimator_ : PrivilegedSVC
        What was trained on all rows in the end, as a `PrivilegedSVC`.

    classes_ : ndarray of shape (n_classes,)
        The labels. This and what follows describe the machine trained on all rows.

    class_weight_ : ndarray of shape (n_classes,)
        Multiplier of `C` for each class.

    support_ : ndarray of shape (n_support,)
        Indices of the support vectors, grouped by class.

    support_vectors_ : ndarray or sparse matrix of shape (n_support, n_features)
        The support vectors; empty for a precomputed kernel.

    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.

    dual_coef_ : ndarray or sparse matrix of shape (n_machines, n_support)
        Dual variables times signs.

    intercept_ : ndarray of shape (n_machines,)
        Constant of each decision function.

    coef_ : ndarray or sparse matrix of shape (n_machines, n_features)
        Weights of the features, for ``kernel='linear'``.

    slack_ : ndarray of shape (n_samples,) or (n_samples, n_machines)
        Slack of the training rows.

    privileged_coef_ : ndarray of shape (n_machines, n_privileged)
        Weights of the privileged columns in the slack, for ``privileged_kernel='linear'``.

    privileged_dual_coef_ : ndarray of shape (n_machines, n_rows)
        Weights of the kernel values against the training rows in the slack, for other kernels, or
        where there are more privileged columns than rows.

    privileged_intercept_ : ndarray of shape (n_machines,)
        Constant of the slack.

    privileged_transformer_ : transformer
        The fitted `privileged_transformer`.

    objective_ : ndarray of shape (n_machines,)
        Value of the minimised objective.

    dual_gap_ : ndarray of shape (n_machines,)
        Bound on how far `objective_` is from the optimum, relative to it, as in `PrivilegedSVC`.

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
    PrivilegedSVC : The machine for one C and penalty.

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
    _learned = "support_"

    _parameter_constraints: dict = {
        **PrivilegedSVC._parameter_constraints,
        **SEARCH_CONSTRAINTS,
        "privileged_penalties": ["array-like"],
    }
    del _parameter_constraints["C"], _parameter_constraints["privileged_penalty"]

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
    def fit(self, X, y, privileged=None, sample_weight=None):
        """Score the grid and train with the best of it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training rows, or the kernel matrix between them for ``kernel='precomputed'``.

        y : array-like of shape (n_samples,)
            Labels.

        privileged : {array-like, sparse matrix} of shape (n_samples, n_privileged), default=None
            What is known of the training rows only, as in `PrivilegedSVC`.

        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies `C` by row; at least 0. Rows are counted by it in scores too, where the
            scorer takes weights.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        Cs = check_costs(self.Cs, finite=True)
        penalties = _check_penalties(self.privileged_penalties)
        X, y = self._check_training_data(X, y)
        training = self._prepare(X, y, sample_weight, self.gamma)
        side = self._side(privileged, training, len(y))
        weight = validate_all_weights(sample_weight, y)
        data = Data(self, X, y, privileged, weight)
        splits = self._splits(X, y, weight)
        given = {"sample_weight": sample_weight, "privileged": privileged}
        n_machines = len(training.reduction.problems) * self.refit
        progress = FitProgress.open(self, n_machines + len(splits), X=X, y=y, metadata=given)

        def work(number):
            with progress.task(n_machines + number) as stop:
                report = (lambda _: stop()) if progress.active else None
                return data.scores(*splits[number], Cs, penalties, report)

        folds = for_each(work, range(len(splits)), effective_n_jobs(self.n_jobs))
        scores = np.dstack([fold for fold, _ in folds])
        best = best_of(scores)
        grid = {"C": Cs, "privileged_penalty": penalties}
        if self.refit:
            chosen = [values[place] for place, values in zip(best, grid.values(), strict=True)]
            gram = self._gram(X, training.order, training.parameters.gamma)
            shared = self._shared(gram, side, training)
            solutions = self._solve(shared, X, training, *chosen, progress)
            self._settle(X, training, side, shared, solutions)
        else:
            self.__dict__.pop("support_", None)
        self._keep_search(scores, best, grid)
        progress.close()
        tried = [solution for _, solutions in folds for solution in solutions]
        warn_if_stopped(tried, self.max_iter, progress.stop_requested)
        if self.refit:
            report_convergence(self, solutions, progress.stop_requested)
        return self


@dataclass(frozen=True)
class Data:
    """What every fold takes its part of."""

    estimator: PrivilegedSVCCV
    X: Any
    y: np.ndarray
    privileged: Any
    weight: np.ndarray | None

    def scores(self, train, test, Cs, penalties, report=None) -> tuple[np.ndarray, list]:
        """Scores of the grid on one fold, over C and penalty, and all solutions."""
        estimator = self.estimator
        model = estimator._new_estimator(PrivilegedSVC)
        X, y = safe_split(estimator, self.X, self.y, train)
        X_test, y_test = safe_split(estimator, self.X, self.y, test, train)
        weight = None if self.weight is None else self.weight[train]
        training = model._prepare(X, y, weight, model.gamma)
        side = model._side(self._privileged_of(train), training, len(y), tell=False)
        gram = model._gram(X, training.order, training.parameters.gamma)
        shared = model._shared(gram, side, training)
        scorer = estimator._scorer()
        counted = {}
        if self.weight is not None and takes_weights(scorer):
            counted = {"sample_weight": self.weight[test]}
        scores, solutions = np.empty((len(Cs), len(penalties))), []
        machines = training.reduction.problems
        starts: list = [None] * len(machines)
        # Without privileged columns there is no penalty.
        for column in np.argsort(penalties if side is not None else penalties[:1])[::-1]:
            for row in np.argsort(Cs):
                solve = shared.at(Cs[row], penalties[column], estimator._solver_options())
                pairs = zip(machines, starts, strict=True)
                found = [solve(machine.sign, start, report) for machine, start in pairs]
                solutions += found
                # Several optima may exist where a kernel is indefinite: that of a fresh start is
                # wanted.
                if shared.positive_semidefinite:
                    starts = found
                vars(model).update(model._attributes(X, training, found))
                scores[row, column] = scorer(model, X_test, y_test, **counted)
        if side is None:
            scores[:] = scores[:, :1]
        return scores, solutions

    def _privileged_of(self, train):
        Z = self.privileged
        if Z is None:
            return None
        if self.estimator.privileged_kernel == "precomputed":
            return np.asarray(Z)[np.ix_(train, train)]
        return safe_indexing(Z, train)


def _check_penalties(penalties):
    values = list(penalties)
    if not values or not all(isinstance(v, Real) and 0 < float(v) < np.inf for v in values):
        raise ValueError(
            f"privileged_penalties must hold finite numbers greater than 0, got {penalties!r}."
        )
    return [float(v) for v in values]
