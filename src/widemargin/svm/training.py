"""Training of kernel classifiers that consist of binary subproblems.

The way of the data: `prepare_training` encodes validated targets and resolves the kernel
parameters, `fit_binary_problems` solves a hinge problem for each binary subproblem over one kernel
cache, and `support_attributes` turns the solutions into fitted attributes. The estimators of this
package and of others compose these functions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from widemargin._base.sklearn_compat import Interval, StrOptions
from widemargin._base.targets import Targets, encode_targets
from widemargin._base.threads import for_each
from widemargin.kernels import GramCache
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import KernelParameters
from widemargin.solvers import HingeProblem, Solution, solution_at, solve_hinge
from widemargin.svm.reduction import OneVsOne, OneVsRest, TwoClasses

TRAINING_CONSTRAINTS: dict = {
    "tol": [Interval(Real, 0.0, None, closed="neither")],
    "gap_tol": [Interval(Real, 0.0, None, closed="neither"), None],
    "cache_size": [Interval(Real, 0.0, None, closed="neither")],
    "class_weight": [StrOptions({"balanced", "effective"}), dict, None],
    "class_margin": [StrOptions({"ldam"}), dict, None],
    "verbose": ["verbose"],
    "max_iter": [Interval(Integral, -1, None, closed="left")],
}

_NO_SOLUTION = Solution(np.zeros(()), 0.0, np.nan, np.nan, np.nan, 0, False)


@dataclass(frozen=True)
class Training(Targets):
    """Encoded targets in the order of the Gram matrix, which consists of groups of samples.

    Attributes
    ----------
    reduction : OneVsOne or OneVsRest
        The binary subproblems.
    order : ndarray of shape (n,)
        Indices of the training samples, in the order of the Gram matrix. Samples of weight 0 are
        left out.
    parameters : KernelParameters
        With gamma resolved.
    """

    reduction: Any
    order: np.ndarray
    parameters: KernelParameters


def prepare_training(
    X: Any,
    y: np.ndarray,
    sample_weight: Any,
    parameters: KernelParameters,
    *,
    multi_class: str | Callable = "ovr",
    class_weight: Any = None,
    class_margin: Any = None,
) -> Training:
    """Encode targets and resolve the kernel parameters.

    Parameters
    ----------
    X : ndarray, CSR matrix, or what a callable kernel takes
        Validated training samples.
    y : ndarray of shape (n_samples,)
        Validated labels.
    sample_weight : array-like of shape (n_samples,) or None
    parameters : KernelParameters
    multi_class : {"ovo", "ovr"} or callable, default="ovr"
        A callable takes codes and the number of classes and returns a reduction.
    class_weight, class_margin : dict, str or None
        As in `SVC`.

    Returns
    -------
    Training
    """
    samples, targets = encode_targets(y, sample_weight, class_weight, class_margin)
    n_classes = len(targets.classes)
    if callable(multi_class):
        make_reduction = multi_class
    elif n_classes == 2:
        make_reduction = TwoClasses
    else:
        make_reduction = OneVsOne if multi_class == "ovo" else OneVsRest
    reduction = make_reduction(targets.codes, n_classes)
    return Training(
        **vars(targets.reordered(reduction.order)),
        reduction=reduction,
        order=np.arange(len(y))[samples][reduction.order],
        parameters=parameters.resolve(X, samples, targets.weight),
    )


def fit_binary_problems(
    X: Any,
    training: Training,
    C: float,
    *,
    solver_options: dict[str, Any],
    cache_size: float,
    n_jobs: int | None,
    progress: Any,
    first_task: int = 0,
    make_cache: Callable[[int], Any] | None = None,
    margins_and_costs: Callable[[int, np.ndarray, np.ndarray], tuple] | None = None,
) -> tuple[list[Solution], dict[str, Any]]:
    """Solve the hinge problems of all binary subproblems.

    Parameters
    ----------
    X : ndarray, CSR matrix, or what a callable kernel takes
        Validated training samples.
    training : Training
    C : float
        Regularization parameter.
    solver_options : dict
        Arguments of `solve_hinge`: tol and others.
    cache_size : float
        Memory for kernel values in MB.
    n_jobs : int or None
        Number of subproblems solved at once.
    progress : FitProgress
    first_task : int, default=0
        Number of the first callback task.
    make_cache : callable, optional
        ``make_cache(jobs)`` returns what serves the Gram matrices of groups of samples; a
        `GramCache` by default.
    margins_and_costs : callable, optional
        Returns the margins and costs of a subproblem, given its number and those of all samples.

    Returns
    -------
    solutions : list of Solution
    attributes : dict
        Fitted attributes, as `support_attributes` returns them; its expansion has chosen its
        precision.
    """
    problems, jobs = training.reduction.problems, effective_n_jobs(n_jobs)
    if make_cache is None:
        gram = training.parameters.gram(X, training.order)
        cache: Any = gram_cache(gram, training.reduction, cache_size, jobs)
    else:
        cache = make_cache(jobs)
    costs, margins = training.costs(C), training.margins()

    def solve(number, report):
        problem = problems[number]
        if margins_and_costs is None:
            own = margins[problem.samples], costs[problem.samples]
        else:
            own = margins_and_costs(number, margins, costs)
        hinge = HingeProblem(cache.of(*problem.groups), problem.sign, *own)
        return solve_hinge(hinge, **solver_options, report=report)

    def attributes(solutions):
        return support_attributes(X, training, solutions)

    solutions = solve_problems(
        solve, len(problems), jobs, progress, attributes, solution_at, first_task
    )
    fitted = attributes(solutions)
    fitted["_expansion"].use_float32_within(solver_options["tol"])
    return solutions, fitted


def solve_problems(
    solve: Callable[[int, Callable | None], Any],
    n_problems: int,
    jobs: int,
    progress: Any,
    attributes: Callable[[list], dict[str, Any]],
    solution_at: Callable | None = None,
    first_task: int = 0,
) -> list[Any]:
    """Solve problems in threads, each as a task of the callbacks.

    Parameters
    ----------
    solve : callable
        ``solve(number, report)`` returns the solution of a problem; ``report(state)`` is to be
        called now and then and returns whether to stop. It is None without callbacks.
    n_problems : int
    jobs : int
        Number of problems solved at once.
    progress : FitProgress
    attributes : callable
        Returns fitted attributes from a list of solutions, None for those not known yet.
    solution_at : callable, optional
        Returns a solution from the state of a solver that is still running.
    first_task : int, default=0
        Number of the first callback task.

    Returns
    -------
    solutions : list
    """
    solutions: list[Any] = [None] * n_problems

    def work(number):
        with progress.task(first_task + number, lambda: attributes(solutions)) as stop:

            def report(state):
                if solution_at is not None:
                    solutions[number] = solution_at(state)
                return stop()

            solutions[number] = solve(number, report if progress.active else None)

    for_each(work, range(n_problems), jobs)
    return solutions


def gram_cache(gram: Any, reduction: Any, cache_size: float, jobs: int) -> GramCache:
    """Return the kernel cache that all binary subproblems share, of ``cache_size`` MB."""
    sizes, n_problems = reduction.group_sizes, len(reduction.problems)
    several = n_problems > len(sizes) == 1
    jobs = min(jobs, n_problems)
    return GramCache(gram, int(cache_size * 2**20), sizes, shared=several, jobs=jobs)


def support_attributes(
    X: Any, training: Training, solutions: Sequence[Solution | None]
) -> dict[str, Any]:
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
        ``_expansion``, which `KernelClassifierMixin` reads.
    """
    done = [solution or _NO_SOLUTION for solution in solutions]
    reduction, order, codes = training.reduction, training.order, training.codes
    coef = np.zeros((len(order), reduction.width))
    for number, problem in enumerate(reduction.problems):
        coef[problem.samples, reduction.columns(number)] = done[number].dual
    positions = np.flatnonzero(coef.any(axis=1))
    positions = positions[np.lexsort((order[positions], codes[positions]))]
    support = order[positions].astype(np.int32)
    dual_coef = np.ascontiguousarray(coef[positions].T)
    intercept = np.array([s.intercept for s in done])
    n_support = np.bincount(codes[positions], minlength=len(training.classes)).astype(np.int32)
    pairwise = training.parameters.is_pairwise
    vectors = np.empty((0, 0)) if pairwise else X[support]
    expansion = KernelExpansion(
        training.parameters,
        X if callable(training.parameters.kernel) else vectors,
        dual_coef,
        intercept,
        columns=support,
        combine=reduction.combine(n_support),
    )
    return {
        "shape_fit_": X.shape if hasattr(X, "shape") else (len(X),),
        "classes_": training.classes,
        "class_weight_": training.class_weight,
        "class_margin_": training.class_margin,
        "support_": support,
        "support_vectors_": vectors,
        "dual_coef_": type(X)(dual_coef) if sp.issparse(vectors) else dual_coef,
        "intercept_": intercept,
        "objective_": np.array([s.objective for s in done]),
        "dual_gap_": np.array([s.gap for s in done]),
        "n_iter_": np.array([s.iterations for s in done], dtype=np.int32),
        "fit_status_": int(not all(s.converged for s in done)),
        "_n_support": n_support,
        "_one_vs_one": isinstance(reduction, OneVsOne),
        "_expansion": expansion,
    }
