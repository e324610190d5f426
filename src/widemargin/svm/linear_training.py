"""Training of linear classifiers: from validated samples to fitted attributes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from widemargin._base.sklearn_compat import Hidden, StrOptions
from widemargin._base.targets import Targets, encode_targets
from widemargin._base.threads import single_threaded_blas
from widemargin._base.validation import check_magnitude, validate_training
from widemargin.kernels.functions import squared_norms
from widemargin.solvers.hinge import dual_coordinate_descent, newton
from widemargin.solvers.hinge.linear_problem import LinearProblem
from widemargin.solvers.hinge.losses import LOSSES, Loss
from widemargin.solvers.multiclass import linear as crammer_singer
from widemargin.solvers.multiclass.problem import CrammerSingerProblem
from widemargin.solvers.solution import Solution

LOSS_CONSTRAINTS: dict = {
    "penalty": [StrOptions({"l2"}), Hidden(StrOptions({"l1"}))],
    # The keys of the registry as they are at the time of a check.
    "loss": [StrOptions(LOSSES.keys())],
    "dual": ["boolean", StrOptions({"auto"})],
}


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
    joint : bool
        Whether there is one problem over all classes.
    in_dual : bool
        Whether binary problems are solved in the dual.
    solver_options : dict
        Tolerance and limit on iterations.
    """

    X: Any
    seeds: np.ndarray
    loss: Loss
    bias: float
    joint: bool
    in_dual: bool
    solver_options: dict

    @property
    def n_functions(self) -> int:
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def n_problems(self) -> int:
        return 1 if self.joint else self.n_functions

    @cached_property
    def norms(self) -> np.ndarray:
        return squared_norms(self.X)

    @property
    def solution_at(self) -> Callable[[Any], Solution]:
        """The function from a state of the solver to a solution."""
        if self.joint:
            return crammer_singer.solution_at
        return dual_coordinate_descent.solution_at if self.in_dual else newton.solution_at

    def solve(
        self, C: float, number: int, start: np.ndarray | None, report: Callable | None
    ) -> Solution:
        """Solve one problem, from the `start` of a solution of another C if given."""
        costs, margins = self.costs(C), self.margins()
        options = {"report": report, **self.solver_options}
        seed = int(self.seeds[number])
        if self.joint:
            n_classes = len(self.classes)
            joint = CrammerSingerProblem(self.codes, costs, n_classes, margins, self.bias)
            return crammer_singer.solve_linear(self.X, joint, seed=seed, dual=start, **options)
        # With two classes, the second is the positive one.
        positive = 1 if len(self.classes) == 2 else number
        sign = np.where(self.codes == positive, 1.0, -1.0)
        arrays = self.X, sign, costs, self.loss, self.bias, margins
        with single_threaded_blas():  # once for all products
            if self.in_dual:
                problem = LinearProblem(*arrays, self.norms)
                return dual_coordinate_descent.solve_dual(problem, seed=seed, dual=start, **options)
            return newton.solve_primal(LinearProblem(*arrays), weights=start, **options)

    def start(self, solution: Solution) -> np.ndarray | None:
        """Return the point that the solver can start from, given an earlier solution."""
        return solution.dual if self.joint or self.in_dual else solution.weights

    def can_start_from(self, starts: Sequence[np.ndarray | None]) -> bool:
        """Return whether the points have the shape of this training's solutions."""
        n, d = self.X.shape
        shape: tuple[int, ...] = (n,) if self.in_dual else (d + 1,)
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
        return {
            "classes_": self.classes,
            "class_weight_": self.class_weight,
            "class_margin_": self.class_margin,
            "coef_": np.ascontiguousarray(weights[:, :-1]),
            "intercept_": self.bias * weights[:, -1],
            "objective_": np.array([s.objective if s else np.nan for s in solutions]),
            "dual_gap_": np.array([s.gap if s else np.nan for s in solutions]),
            "n_iter_": max((s.iterations if s else 0) for s in solutions),
            "_joint": self.joint,
        }


def validate_linear_training(estimator: Any, X: Any, y: Any) -> tuple[Any, np.ndarray]:
    """Return validated samples and labels; check parameters that depend on each other."""
    if estimator.penalty == "l1":
        raise ValueError(
            "penalty='l1' is not supported. Use penalty='l2', or sklearn.svm.LinearSVC for sparse "
            "weights."
        )
    smooth = LOSSES[estimator.loss].differentiable
    if not smooth and not estimator.dual and estimator.multi_class == "ovr":
        raise ValueError(
            f"dual=False is not supported with loss={estimator.loss!r}, which is not "
            "differentiable. Use dual=True or 'auto', or loss='squared_hinge'."
        )
    X, y = validate_training(estimator, X, y)
    check_magnitude(X)
    return X, y


def prepare_linear_training(
    estimator: Any, X: Any, y: np.ndarray, sample_weight: Any
) -> LinearTraining:
    """Return the training on validated samples with the parameters of an estimator, whatever C."""
    kept, targets = encode_targets(y, sample_weight, estimator.class_weight, estimator.class_margin)
    X = X if len(targets.codes) == len(y) else X[kept]
    loss, in_dual = LOSSES[estimator.loss], estimator.dual
    if isinstance(in_dual, str):  # "auto"
        in_dual = not loss.differentiable or X.shape[0] < X.shape[1]
    return LinearTraining(
        **vars(targets),
        X=X,
        seeds=random_seeds(estimator.random_state, len(targets.classes)),
        loss=loss,
        bias=constant_feature(estimator),
        joint=estimator.multi_class == "crammer_singer",
        in_dual=bool(in_dual),
        solver_options={"tol": estimator.tol, "max_iter": estimator.max_iter},
    )


def random_seeds(random_state: Any, size: int | None = None) -> Any:
    """Return seeds for solvers; a fixed one stands for None, so that fits are reproducible."""
    random = check_random_state(0 if random_state is None else random_state)
    return random.randint(np.iinfo(np.int32).max, size=size)


def constant_feature(estimator: Any) -> float:
    """Return the value of the feature whose weight is the intercept; 0 for none."""
    return float(estimator.intercept_scaling) if estimator.fit_intercept else 0.0
