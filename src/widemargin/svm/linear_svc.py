"""LinearSVC: linear support vector classification."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import FitProgress
from widemargin._base.checkpoint import FitCheckpoint
from widemargin._base.convergence import report_convergence
from widemargin._base.docs import shared_docs
from widemargin._base.sklearn_compat import (
    BaseEstimator,
    Hidden,
    Interval,
    SparseCoefMixin,
    StrOptions,
    fit_context,
)
from widemargin._base.targets import Targets, encode_targets
from widemargin._base.threads import single_threaded_blas
from widemargin._base.validation import (
    LARGEST_VALUE,
    check_magnitude,
    validate_predict,
    validate_training,
)
from widemargin.kernels.functions import squared_norms
from widemargin.solvers.hinge import dual_coordinate_descent, newton
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.losses import LOSSES, Loss
from widemargin.solvers.multiclass import linear as crammer_singer
from widemargin.solvers.multiclass.problem import CrammerSingerProblem
from widemargin.solvers.solution import Solution
from widemargin.svm.scores import best_classes, linear_scores, linear_tie_tolerance, merge_ties
from widemargin.svm.training import NO_SOLUTION, common_attributes, solve_problems


@shared_docs
class LinearClassifier(CallbackSupportMixin, SparseCoefMixin, ClassifierMixin, BaseEstimator):
    """Base class of estimators with the fitted attributes of `LinearTraining`."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Compute the decision function.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
            Scores of the classes. With two classes, positive for ``classes_[1]``.
        """
        check_is_fitted(self)
        X = validate_predict(self, X)
        scores = linear_scores(X, self._dense_coef()) + self.intercept_
        if len(self.classes_) == 2:
            return scores[:, 0]
        return merge_ties(scores, self._tie_tolerance(X)) if self._joint else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict class labels.

        Parameters
        ----------
        <<X>>

        Returns
        -------
        <<returns_labels>>
        """
        return best_classes(self.decision_function(X), self.classes_)

    def _validate_training(self, X: Any, y: Any) -> tuple[Any, np.ndarray]:
        """Return validated samples and labels; check parameters that depend on each other."""
        if self.penalty == "l1":
            raise ValueError(
                "penalty='l1' is not supported. Use penalty='l2', or sklearn.svm.LinearSVC for "
                "sparse weights."
            )
        smooth = LOSSES[self.loss].differentiable
        if not smooth and not self.dual and self.multi_class == "ovr":
            raise ValueError(
                f"dual=False is not supported with loss={self.loss!r}, which is not "
                "differentiable. Use dual=True or 'auto', or loss='squared_hinge'."
            )
        X, y = validate_training(self, X, y)
        check_magnitude(X)
        return X, y

    def _prepare_training(self, X: Any, y: np.ndarray, sample_weight: Any) -> "LinearTraining":
        """Return the training on validated samples with the parameters of this one, whatever C."""
        retained, targets = encode_targets(y, sample_weight, self.class_weight, self.class_margin)
        X = X if len(targets.codes) == len(y) else X[retained]
        loss, in_dual = LOSSES[self.loss], self.dual
        if isinstance(in_dual, str):  # "auto"
            in_dual = not loss.differentiable or X.shape[0] < X.shape[1]
        solver: Any = dual_coordinate_descent if in_dual else newton
        return LinearTraining(
            **vars(targets),
            X=X,
            seeds=random_seeds(self.random_state, len(targets.classes)),
            loss=loss,
            bias=constant_feature(self),
            solver=crammer_singer if self.multi_class == "crammer_singer" else solver,
            solver_options={"tol": self.tol, "max_iter": self.max_iter},
        )

    def _tie_tolerance(self, X: Any) -> float | np.ndarray:
        """Difference of scores up to which classes are tied, for validated samples."""
        if not self._joint or len(self.classes_) == 2:
            return 0.0
        return linear_tie_tolerance(X, self._dense_coef(), self.intercept_)

    def _dense_coef(self) -> np.ndarray:
        return self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_


@shared_docs
class LinearSVC(LinearClassifier):
    r"""Linear support vector classification.

    A replacement for :class:`sklearn.svm.LinearSVC` (with the l2 penalty) that reports how far
    from the optimum it stopped, treats a sample of weight k as k samples, and gives the same bits
    for any number of threads and jobs. For every class against the rest it solves

    .. math::

        \min_{w, b} \tfrac12 (\|w\|^2 + (b / s)^2)
        + \sum_i C_i \, \ell(m_i - y_i (\langle w, x_i \rangle + b)), \qquad
        C_i = C \cdot \mathrm{class\ weight} \cdot \mathrm{sample\ weight}

    where :math:`\ell(t)` is :math:`\max(0, t)` or its square and s is `intercept_scaling`: as in
    liblinear, the intercept is the weight of a constant feature and is regularized with the others.
    The margin :math:`m_i` is 1 unless `class_margin` is given.

    Parameters
    ----------
    penalty : {'l2'}, default='l2'
        Norm of the weights in the penalty. For sparse weights, use ``penalty='l1'`` of
        :class:`sklearn.svm.LinearSVC`.

    <<loss>>

    <<dual>>

    <<linear_tol>>

    <<finite_C>>

    <<joint_multi_class>>

    <<fit_intercept>>

    <<intercept_scaling>>

    <<class_weight>>

    <<class_margin>>

    verbose : int, default=0
        Whether to print a line for each binary subproblem.

    <<solver_random_state>>

    <<passes_max_iter>>

    <<n_jobs>>

    warm_start : bool, default=False
        Whether to start from the solution of the previous fit, if that had the same classes and
        the same numbers of samples and features. A fit that was stopped by a callback or by
        `max_iter` is continued in this way.

    <<checkpoint>>

    Attributes
    ----------
    <<linear_attributes>>

    See Also
    --------
    LinearSVCCV : Linear support vector classification with C chosen by cross-validation.
    CrammerSingerSVC : One problem over all classes, with kernels.
    SVC : Support vector classification with kernels, whose intercept is not regularized.
    sklearn.svm.LinearSVC : The class that this one replaces.

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
        # The keys of the registry as they are at the time of a check.
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
        "checkpoint": [None, str, os.PathLike],
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
        checkpoint=None,
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
        self.checkpoint = checkpoint

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        <<X_train>>

        <<y>>

        <<sample_weight>>

        Returns
        -------
        <<returns_self>>
        """
        X, y = self._validate_training(X, y)
        training = self._prepare_training(X, y, sample_weight)
        metadata = {"sample_weight": sample_weight}
        progress = FitProgress(self, training.n_problems, X, y, metadata, self.checkpoint)
        jobs, tasks = effective_n_jobs(self.n_jobs), range(training.n_problems)
        solutions = training.solve_all(self.C, jobs, tasks, progress, self._starts(training))
        self.__dict__.update(training.attributes(solutions))
        self._solutions = solutions if self.warm_start else ()
        progress.close()
        report_convergence(self, solutions, progress.stop_requested)
        return self

    def _starts(self, training: "LinearTraining") -> list | None:
        """Return the points to start from: the last solutions, if they are wanted and fit."""
        same = np.array_equal(getattr(self, "classes_", ()), training.classes)
        solutions = getattr(self, "_solutions", ()) if self.warm_start and same else ()
        starts = [training.start(solution) for solution in solutions]
        return starts if training.can_start_from(starts) else None


@dataclass(frozen=True)
class LinearTraining(Targets):
    """Training samples of positive weight, their targets, and how to solve their problems.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    seeds : ndarray of shape (n_classes,)
        Seeds of the solvers.
    loss : Loss
    bias : float
        Value of the constant feature whose weight is the intercept; 0 for no intercept.
    solver : module
        With one problem over all classes, or binary problems in the dual or in the primal.
    solver_options : dict
        Tolerance and limit on iterations.
    """

    X: Any
    seeds: np.ndarray
    loss: Loss
    bias: float
    solver: Any
    solver_options: dict

    @property
    def joint(self) -> bool:
        return self.solver is crammer_singer

    @property
    def n_functions(self) -> int:
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def n_problems(self) -> int:
        return 1 if self.joint else self.n_functions

    @cached_property
    def norms(self) -> np.ndarray:
        return squared_norms(self.X)

    @np.errstate(over="ignore", invalid="ignore")  # an overflow shows in the duality gap
    def solve(self, C: float, number: int, start: Any, **control: Any) -> Solution:
        """Solve one problem, from the `start` of a solution of another C if given.

        ``control`` are the ``report`` and the ``checkpoint`` of the solver.
        """
        costs, margins = self.costs(C), self.margins()
        options = {**control, **self.solver_options}
        seed = int(self.seeds[number])
        if self.joint:
            n_classes = len(self.classes)
            joint = CrammerSingerProblem(self.codes, costs, n_classes, margins, self.bias)
            with single_threaded_blas():  # once for all products
                return crammer_singer.solve_linear(self.X, joint, seed=seed, dual=start, **options)
        # With two classes, the second is the positive one.
        positive = 1 if len(self.classes) == 2 else number
        sign = np.where(self.codes == positive, 1.0, -1.0)
        arrays = self.X, sign, costs, self.loss, self.bias, margins
        if self.solver is newton:
            return newton.solve_primal(LinearProblem(*arrays), weights=start, **options)
        with single_threaded_blas():  # once for all products
            problem = LinearProblem(*arrays, self.norms)
            return dual_coordinate_descent.solve_dual(problem, seed=seed, dual=start, **options)

    def solve_all(
        self, C: float, jobs: int, tasks: range, progress: Any, starts: list | None = None
    ) -> list[Solution]:
        """Solve all problems, as tasks of the callbacks; return their solutions."""

        def solve(number, **control):
            return self.solve(C, number, starts[number] if starts else None, **control)

        solution_at = self.solver.solution_at
        return solve_problems(solve, tasks, jobs, progress, self.attributes, solution_at)

    def solve_path(
        self, number: int, path: list, stop: Callable, checkpoint: FitCheckpoint, name: str
    ) -> list[Solution]:
        """Solve a problem for increasing C, each time from the previous solution."""
        solutions: list[Solution] = []
        for step, C in enumerate(path):
            start = self.start(solutions[-1]) if solutions else None

            def solve(task, C=C, start=start):
                return self.solve(C, number, start, report=lambda _: stop(), checkpoint=task)

            solutions.append(checkpoint.run(f"{name}.{step}", solve, Solution))
            if step:  # no solver starts from the last but one
                checkpoint.keep(f"{name}.{step - 1}", solutions[-2], dual=np.empty(0))
        return solutions

    def start(self, solution: Solution) -> np.ndarray | None:
        """Return the point that the solver can start from, given an earlier solution."""
        return solution.weights if self.solver is newton else solution.dual

    def can_start_from(self, starts: Sequence[np.ndarray | None]) -> bool:
        """Return whether the points have the shape of this training's solutions."""
        n, d = self.X.shape
        shape: tuple[int, ...] = (d + 1,) if self.solver is newton else (n,)
        shape = (n, len(self.classes)) if self.joint else shape
        first = starts[0] if len(starts) == self.n_problems else None
        return first is not None and first.shape == shape

    def attributes(self, solutions: Sequence[Solution | None]) -> dict[str, Any]:
        """Return fitted attributes by name; functions without a solution yet are 0."""
        weights = np.zeros((self.n_functions, self.X.shape[1] + 1))
        for number, solution in enumerate(solutions):
            if solution is None or solution.weights is None:
                continue
            if not self.joint:
                weights[number] = solution.weights
            elif self.n_functions == 1:
                weights[0] = solution.weights[:, 1] - solution.weights[:, 0]
            else:
                weights[:] = solution.weights.T
        done = [solution or NO_SOLUTION for solution in solutions]
        return {
            **common_attributes(self, done),
            "coef_": np.ascontiguousarray(weights[:, :-1]),
            "intercept_": self.bias * weights[:, -1],
            "n_iter_": max(solution.iterations for solution in done),
            "_joint": self.joint,
        }


def random_seeds(random_state: Any, size: int | None = None) -> Any:
    """Return seeds for solvers; fixed ones stand for None, so that fits are reproducible."""
    if random_state is None:
        return _fixed_seeds(size)
    return check_random_state(random_state).randint(np.iinfo(np.int32).max, size=size)


@cache
def _fixed_seeds(size: int | None) -> Any:
    return random_seeds(0, size)


def constant_feature(estimator: Any) -> float:
    """Return the value of the feature whose weight is the intercept; 0 for none."""
    if not estimator.fit_intercept:
        return 0.0
    if estimator.intercept_scaling > LARGEST_VALUE:
        raise ValueError(
            f"intercept_scaling must be at most {LARGEST_VALUE:g}, got "
            f"{estimator.intercept_scaling!r}. The default, 1, fits features of similar magnitude."
        )
    return float(estimator.intercept_scaling)
