"""Training of kernel classifiers that consist of binary subproblems.

The way of the data: `prepare_training` encodes validated targets and resolves the kernel
parameters, `fit_binary_problems` solves a hinge problem for each binary subproblem over one kernel
cache, and `support_attributes` turns the solutions into fitted attributes. The estimators of this
package and of others compose these functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin._base.targets import Targets, encode_targets
from widemargin._base.threads import for_each
from widemargin.kernels import GramCache
from widemargin.kernels.expansion import KernelExpansion, weighted_sums
from widemargin.kernels.parameters import KernelParameters
from widemargin.solvers import HingeProblem, Solution, solution_at, solve_hinge
from widemargin.svm.reduction import PairSums, Reduction, reduce_classes

TRAINING_CONSTRAINTS: dict = {
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "gap_tol": [Interval(Real, 0.0, None, closed="neither"), None],
    "cache_size": [Interval(Real, 0.0, None, closed="neither")],
    "class_weight": [StrOptions({"balanced", "effective"}), dict, None],
    "class_margin": [StrOptions({"ldam"}), dict, None],
    "verbose": ["verbose"],
    "max_iter": [Interval(Integral, -1, None, closed="left")],
}

NO_SOLUTION = Solution(np.zeros(()), 0.0, np.nan, np.nan, np.nan, 0, False)


@dataclass(frozen=True)
class Training(Targets):
    """Encoded targets in the order of the Gram matrix, which consists of groups of samples.

    Attributes
    ----------
    reduction : Reduction
        The binary subproblems.
    order : ndarray of shape (n,)
        Indices of the training samples, in the order of the Gram matrix. Samples of weight 0 are
        left out.
    parameters : KernelParameters
        With gamma resolved.
    """

    reduction: Reduction
    order: np.ndarray
    parameters: KernelParameters

    @property
    def n_problems(self) -> int:
        return len(self.reduction.problems)

    def cache(self, X: Any, cache_size: float, jobs: int) -> Any:
        """Return the kernel cache that all binary subproblems share, of ``cache_size`` MB."""
        gram, sizes = (
            self.parameters.gram(X, self.order).without_offset(),
            self.reduction.group_sizes,
        )
        several = self.n_problems > len(sizes) == 1
        jobs = min(jobs, self.n_problems)
        return GramCache(gram, int(cache_size * 2**20), sizes, shared=several, jobs=jobs)

    def problem(self, number: int, cache: Any, margins: Any, costs: Any) -> HingeProblem:
        """Return a binary subproblem, given the margins and costs of all samples."""
        problem = self.reduction.problems[number]
        selected = margins[problem.samples], costs[problem.samples]
        return HingeProblem(cache.of(*problem.groups), problem.sign, *selected)


def prepare_training(estimator: Any, X: Any, y: np.ndarray, sample_weight: Any) -> Training:
    """Encode targets and resolve the kernel parameters.

    Parameters
    ----------
    estimator : estimator
        With the kernel parameters and ``class_weight`` of an `SVC`. Subproblems are one-vs-rest
        with margins of 1 unless it has the parameters ``multi_class`` and ``class_margin``, too.
    X : ndarray, CSR matrix, or what a callable kernel takes
        Validated training samples.
    y : ndarray of shape (n_samples,)
        Validated labels.
    sample_weight : array-like of shape (n_samples,) or None

    Returns
    -------
    Training
    """
    multi_class, margin, shape = "ovr", None, "ovr"
    if "multi_class" in estimator._parameter_constraints:
        multi_class, margin = estimator.multi_class, estimator.class_margin
        shape = estimator.decision_function_shape
    if multi_class == "ovr" and shape == "ovo":
        raise ValueError(
            "decision_function_shape='ovo' needs a binary subproblem for each pair of classes. "
            "Set multi_class='ovo'."
        )
    retained, targets = encode_targets(y, sample_weight, estimator.class_weight, margin)
    reduction = reduce_classes(targets.codes, len(targets.classes), multi_class)
    return Training(
        **vars(targets.reordered(reduction.order)),
        reduction=reduction,
        order=np.arange(len(y))[retained][reduction.order],
        parameters=KernelParameters.of(estimator).resolve(X, retained, targets.weight),
    )


def fit_binary_problems(
    estimator: Any, X: Any, training: Training, jobs: int, progress: Any, first_task: int = 0
) -> tuple[list[Solution], dict[str, Any]]:
    """Solve the hinge problems of all binary subproblems.

    Parameters
    ----------
    estimator : SVC
        With C, and the parameters of the solver.
    X : ndarray, CSR matrix, or what a callable kernel takes
        Validated training samples.
    training : Training
    jobs : int
        Number of subproblems solved at once.
    progress : FitProgress
    first_task : int, default=0
        Number of the first callback task.

    Returns
    -------
    solutions : list of Solution
    attributes : dict
        Fitted attributes, as `support_attributes` returns them; its expansion has chosen its
        precision.
    """
    cache = training.cache(X, estimator.cache_size, jobs)
    costs, margins = training.costs(estimator.C), training.margins()

    def solve(number, **control):
        hinge = training.problem(number, cache, margins, costs)
        return solve_hinge(hinge, **solver_options(estimator), **control)

    attributes = partial(support_attributes, X, training)
    tasks = range(first_task, first_task + training.n_problems)
    solutions = solve_problems(solve, tasks, jobs, progress, attributes, solution_at)
    fitted = attributes(solutions)
    fitted["_expansion"].use_float32_within(estimator.tol)
    return solutions, fitted


def solver_options(estimator: Any) -> dict[str, Any]:
    """Return the arguments of the solver of binary subproblems, as set in an estimator."""
    names = ("tol", "gap_tol", "max_iter", "shrinking")
    return {name: getattr(estimator, name) for name in names}


def solve_problems(
    solve: Any,
    tasks: range,
    jobs: int,
    progress: Any,
    attributes: Any,
    solution_at: Any = None,
    kind: type = Solution,
) -> list:
    """Solve problems in threads, each as a task of the callbacks.

    Parameters
    ----------
    solve : callable
        ``solve(number, report, checkpoint)`` returns the solution of a problem; ``report(state)``
        is to be called now and then and returns whether to stop, and ``checkpoint`` saves the
        state of the solver. They are None without callbacks and without a file.
    tasks : range
        Numbers of the callback tasks, one for each problem.
    jobs : int
        Number of problems solved at once.
    progress : FitProgress
    attributes : callable
        Returns fitted attributes from a list of solutions, None for those not known yet.
    solution_at : callable, optional
        Returns a solution from the state of a solver that is still running.
    kind : type, default=Solution
        Class of the solutions.

    Returns
    -------
    solutions : list
    """
    solutions: list = [None] * len(tasks)

    def work(number):
        name, run = str(tasks[number]), progress.checkpoint.run
        if not progress.active:
            solutions[number] = run(
                name, lambda task: solve(number, report=None, checkpoint=task), kind
            )
            return
        running = None

        def fitted():
            # Only callbacks that evaluate the estimator pay for the certificate of its solution.
            if running is not None and solution_at is not None:
                solutions[number] = solution_at(running)
            return attributes(solutions)

        with progress.task(tasks[number], fitted) as stop:

            def report(state):
                nonlocal running
                running = state
                stopped = stop()
                running = None  # another thread may call `fitted` while the state changes
                return stopped

            solutions[number] = run(
                name, lambda task: solve(number, report=report, checkpoint=task), kind
            )

    for_each(work, range(len(tasks)), jobs)
    return solutions


def support_attributes(X: Any, training: Training, solutions: Sequence) -> dict[str, Any]:
    """Return the fitted attributes of a kernel classifier by name.

    Parameters
    ----------
    X : ndarray, CSR matrix, or what a callable kernel takes
        Validated training samples.
    training : Training
    solutions : sequence of Solution or None
        One for each binary subproblem. The decision function of one without a solution is 0.

    Returns
    -------
    dict
        Those documented in `SVC`; ``_n_support``, ``_one_vs_one`` and the `KernelExpansion`
        ``_expansion``, which `KernelClassifier` reads.
    """
    done = [solution or NO_SOLUTION for solution in solutions]
    reduction, order, codes = training.reduction, training.order, training.codes
    coef = np.zeros((len(order), reduction.width))
    for problem, solution in zip(reduction.problems, done, strict=True):
        coef[problem.samples, problem.columns] = solution.dual
    positions = np.flatnonzero(coef.any(axis=1))
    positions = positions[np.lexsort((order[positions], codes[positions]))]
    support = order[positions].astype(np.int32)
    dual_coef = np.ascontiguousarray(coef[positions].T)
    intercept = np.array([s.intercept for s in done])
    n_support = np.bincount(codes[positions], minlength=len(training.classes)).astype(np.int32)
    combine = PairSums(n_support) if reduction.one_vs_one else weighted_sums
    parameters = training.parameters
    functions = expansion_attributes(X, parameters, support, dual_coef, intercept, combine)
    sparse = sp.issparse(functions["support_vectors_"])
    return {
        **common_attributes(training, done),
        **functions,
        "shape_fit_": X.shape if hasattr(X, "shape") else (len(X),),
        "dual_coef_": type(X)(dual_coef) if sparse else dual_coef,
        "n_iter_": np.array([s.iterations for s in done], dtype=np.int32),
        "fit_status_": int(not all(s.converged for s in done)),
        "_n_support": n_support,
        "_one_vs_one": reduction.one_vs_one,
    }


def expansion_attributes(
    X: Any, kernel: Any, support: Any, dual_coef: Any, intercept: Any, combine: Any = weighted_sums
) -> dict[str, Any]:
    """Return the fitted attributes of a `KernelExpansion` over the training samples ``support``.

    ``kernel`` is a `KernelParameters`; the others are the parameters of the expansion.
    """
    vectors = np.empty((0, 0)) if kernel.is_pairwise else X[support]
    basis = X if callable(kernel.kernel) else vectors
    return {
        "support_": support,
        "support_vectors_": vectors,
        "dual_coef_": dual_coef,
        "intercept_": intercept,
        "_expansion": KernelExpansion(
            kernel, basis, dual_coef, intercept, columns=support, combine=combine
        ),
    }


def set_attributes(estimator: Any, attributes: dict[str, Any]) -> None:
    """Set fitted attributes. Of those of an earlier fit only the features remain."""
    state = estimator.__dict__
    for name in [name for name in state if name.endswith("_") and "_in_" not in name]:
        del state[name]
    state.update(attributes)


def common_attributes(targets: Targets, solutions: Sequence[Solution]) -> dict[str, Any]:
    """Return the fitted attributes that describe the targets and certify the solutions."""
    return {
        "classes_": targets.classes,
        "class_weight_": targets.class_weight,
        "class_margin_": targets.class_margin,
        "objective_": np.array([solution.objective for solution in solutions]),
        "dual_gap_": np.array([solution.gap for solution in solutions]),
    }
