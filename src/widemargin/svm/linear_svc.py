"""LinearSVC: linear machines, one class against the rest."""

from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.convergence import report_convergence
from widemargin._base.matmul import tiled_multiply
from widemargin._base.sklearn_compat import (
    Hidden,
    Interval,
    SparseCoefMixin,
    StrOptions,
    fit_context,
)
from widemargin._base.targets import Targets, encode_targets
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin._base.validation import check_magnitude, validate_predict, validate_training
from widemargin.kernels.functions import squared_norms
from widemargin.solvers.hinge.dual_coordinate_descent import solution_at as descent_at
from widemargin.solvers.hinge.dual_coordinate_descent import solve_dual
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.losses import LOSSES
from widemargin.solvers.hinge.newton import solution_at as newton_at
from widemargin.solvers.hinge.newton import solve_primal
from widemargin.solvers.multiclass.rows import solution_at as joint_at
from widemargin.solvers.multiclass.rows import solve_rows

TIE = 1e-8


@dataclass(frozen=True)
class Training(Targets):
    """Rows of positive weight with their labels, and a seed for every machine."""

    X: np.ndarray
    seeds: np.ndarray

    @property
    def n_machines(self):
        return 1 if len(self.classes) == 2 else len(self.classes)

    @cached_property
    def norms(self):
        return squared_norms(self.X)

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
        + \sum_i C_i \, \ell(m_i - y_i (\langle w, x_i \rangle + b)), \qquad
        C_i = C \cdot \mathrm{class\ weight} \cdot \mathrm{sample\ weight}

    where :math:`\ell(t)` is :math:`\max(0, t)` or its square and s is `intercept_scaling`: as in
    liblinear, the intercept is the weight of a constant feature and is regularised with the others.
    The margin :math:`m_i` is 1 unless `class_margin` says otherwise.

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

    class_weight : dict, 'balanced' or 'effective', default=None
        Multiplies `C` by class. 'balanced' weighs inversely to class frequencies, 'effective' to
        effective numbers of rows (see `effective_class_weight`).

    class_margin : dict or 'ldam', default=None
        How far from the boundary the rows of each class should be, 1 for those not named. 'ldam'
        asks more of rarer classes (see `ldam_class_margin`).

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
        Whether to start from the solution of the previous fit, where that was to the same classes
        and the same number of rows and features. So a fit that a callback or `max_iter` stopped
        goes on.

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

    class_margin_ : ndarray of shape (n_classes,)
        Margin of each class.

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
        "loss": [StrOptions(LOSSES.keys())],
        "dual": ["boolean", StrOptions({"auto"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced", "effective"}), dict, None],
        "class_margin": [StrOptions({"ldam"}), dict, None],
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
        class_margin=None,
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
        self.class_margin = class_margin
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.warm_start = warm_start

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None):
        """Train the machines.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.

        y : array-like of shape (n_samples,)
            Targets.

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
        progress = FitProgress.open(
            self, self._n_problems(training), X, y, {"sample_weight": sample_weight}
        )
        solutions = self._train(training, self.C, progress)
        for name, value in self._attributes(training, solutions).items():
            setattr(self, name, value)
        progress.close()
        report_convergence(self, solutions, progress.stop_requested)
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
        X = validate_predict(self, X)
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
        scores = linear_scores(X, coef) + self.intercept_
        if len(self.classes_) == 2:
            return scores[:, 0]
        if self.multi_class != "crammer_singer":
            return scores
        return with_ties(scores, largest_scores(X, coef, self.intercept_))

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
        smooth = LOSSES[self.loss].differentiable
        if not smooth and not self.dual and self.multi_class == "ovr":
            raise ValueError(
                f"dual=False is not supported with loss={self.loss!r}, which is not "
                "differentiable. Use dual=True or 'auto', or loss='squared_hinge'."
            )
        return validate_training(self, X, y)

    def _prepare(self, X, y, sample_weight):
        """What training on checked rows starts from, whatever C is."""
        check_magnitude(X)
        rows, labels = encode_targets(y, sample_weight, self.class_weight, self.class_margin)
        random = check_random_state(0 if self.random_state is None else self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=len(labels.classes))
        X = X if len(labels.codes) == len(y) else X[rows]
        return Training(**vars(labels), X=X, seeds=seeds)

    def _n_problems(self, training):
        return 1 if self.multi_class == "crammer_singer" else training.n_machines

    def _train(self, training, C, progress, first_task=0):
        """The solutions of all machines, or of the one problem over all classes."""
        solutions: list = [None] * self._n_problems(training)
        starts = self._starts(training)

        def solve(number):
            with progress.task(
                first_task + number, lambda: self._attributes(training, solutions)
            ) as stop:

                def keep(solution_so_far):
                    solutions[number] = solution_so_far()
                    return stop()

                start = None if starts is None else starts[number]
                solutions[number] = self._solve(
                    training, C, number, start, keep if progress.active else None
                )

        for_each(solve, range(len(solutions)), effective_n_jobs(self.n_jobs))
        return solutions

    def _solve(self, training, C, number, start, keep):
        """Solve one machine; ``keep`` may ask for the solution so far and says when to stop."""
        X = training.X
        options = {"tol": self.tol, "max_iter": self.max_iter}
        costs, seed = training.costs(C), int(training.seeds[number])
        if self.multi_class == "crammer_singer":
            return solve_rows(
                X, training.codes, costs, len(training.classes), margin=training.margins(),
                bias=constant_feature(self), seed=seed, dual=start,
                report=_report(keep, joint_at), **options,
            )  # fmt: skip
        numbers = (
            training.sign(number), costs, LOSSES[self.loss], constant_feature(self),
            training.margins(),
        )  # fmt: skip
        with single_threaded_blas():  # held once, since every product asks for it
            if self._solves_dual(X.shape):
                problem = LinearProblem(X, *numbers, training.norms)
                return solve_dual(
                    problem, seed=seed, dual=start, report=_report(keep, descent_at), **options
                )
            problem = LinearProblem(X, *numbers)
            return solve_primal(problem, weights=start, report=_report(keep, newton_at), **options)

    def _starts(self, training):
        """Where the machines start from: the last solutions, if they are wanted and fit."""
        if not self._starts_warm() or not np.array_equal(
            getattr(self, "classes_", ()), training.classes
        ):
            return None
        n, d = training.X.shape
        keeps_dual = self._keeps_dual((n, d))
        if self.multi_class == "crammer_singer":
            shape: tuple[int, ...] = (n, len(training.classes))
        else:
            shape = (n,) if keeps_dual else (d + 1,)
        starts = [
            solution.dual if keeps_dual else solution.weights
            for solution in getattr(self, "_solutions", ())
        ]
        if len(starts) != self._n_problems(training) or starts[0].shape != shape:
            return None
        return starts

    def _starts_warm(self):
        return self.warm_start

    def _keeps_dual(self, shape):
        return self.multi_class == "crammer_singer" or self._solves_dual(shape)

    def _solves_dual(self, shape):
        if self.dual == "auto":
            return not LOSSES[self.loss].differentiable or shape[0] < shape[1]
        return self.dual

    def _attributes(self, training, solutions):
        """Fitted attributes by name; machines without a solution yet decide nothing."""
        d, n_machines = training.X.shape[1], training.n_machines
        weights = np.zeros((n_machines, d + 1))
        if self.multi_class == "crammer_singer":
            if solutions[0] is not None:
                joint = solutions[0].weights.T
                weights = joint[[1]] - joint[[0]] if n_machines == 1 else joint
        else:
            for row, solution in zip(weights, solutions, strict=True):
                if solution is not None:
                    row[:] = solution.weights
        attributes = {
            "classes_": training.classes,
            "class_weight_": training.class_weight,
            "class_margin_": training.class_margin,
            "coef_": np.ascontiguousarray(weights[:, :-1]),
            "intercept_": constant_feature(self) * weights[:, -1],
            "objective_": np.array([s.objective if s else np.nan for s in solutions]),
            "dual_gap_": np.array([s.gap if s else np.nan for s in solutions]),
            "n_iter_": max((s.iterations if s else 0) for s in solutions),
        }
        attributes["_solutions"] = solutions if self._starts_warm() else ()
        return attributes


def linear_scores(X, coef):
    """<w_k, x_i> of all rows and classes; a row's scores do not depend on the other rows."""
    if sp.issparse(X):
        return np.asarray(X @ np.ascontiguousarray(coef.T))
    return tiled_multiply(X, np.ascontiguousarray(coef.T))


def with_ties(scores, size):
    """Scores of classes, those equal to the row's best but for rounding being just that.

    At the optimum of a joint problem the rivals of a row that it pays for have equal scores: which
    of them is the greatest must not be for rounding to say. ``size`` is what scores may be as large
    as, for all rows or for each.
    """
    best = scores.max(axis=1)
    least = best - TIE * size
    return np.where(scores >= least[:, np.newaxis], best[:, np.newaxis], scores)


def largest_scores(X, coef, intercept):
    """What the scores of each row may be as large as."""
    norm = np.sqrt(np.sum(coef**2) + np.sum(intercept**2))
    return norm * np.sqrt(squared_norms(X) + 1.0)


def constant_feature(estimator):
    """Return the value of the feature whose weight is the intercept; 0 for none."""
    return float(estimator.intercept_scaling) if estimator.fit_intercept else 0.0


def _report(keep, solution_at):
    """What a solver is to call after every slice of work."""
    return None if keep is None else lambda state: keep(partial(solution_at, state))
