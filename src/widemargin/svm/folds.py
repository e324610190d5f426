"""Cross-validation fits of an SVC that share their work.

What the fits of a grid search have in common is computed once. Distances (or inner products)
between all samples serve every gamma. The Gram matrix of a gamma serves every fold, both its
training samples and the kernel values of its test samples. The subproblems of a fold are solved
for increasing C, each starting from the best multiple of the previous solution. Large ones are
problems over all samples in which those of the fold have cost 0, so that no rows of the matrix are
copied. They may start from the solution of the first fold, too: samples that are not in training
leave it, those that come in are at their bounds if they violate the margin (DeCoste and Wagstaff,
2000, call this alpha seeding).
"""

import threading
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from widemargin._base.callbacks import FitProgress
from widemargin._base.options import smo_options
from widemargin._base.sklearn_compat import safe_split
from widemargin._base.threads import for_each, single_threaded_blas
from widemargin.kernels import Gram, MatrixGram
from widemargin.kernels.dense import SharedGram, SubsetGram, gather
from widemargin.kernels.gram import gram_matrices
from widemargin.solvers import HingeProblem, NotSeparableError, Solution
from widemargin.solvers.hinge.shrinking import subtract_kernel_sum
from widemargin.solvers.hinge.small import SmallSolver, scale_up, solve_path
from widemargin.solvers.hinge.smo import solve_from
from widemargin.svm.reduction import pairs_of_classes
from widemargin.svm.training import Training, prepare_training, solver_options, support_attributes


def make_folds(
    models: list, X: Any, y: Any, weight: Any, splits: list, path: list, first_task: int = 0
) -> "list[Fold]":
    """Return a `Fold` for each of ``splits`` and each number that gamma is in it.

    Parameters
    ----------
    models : list of SVC
        Unfitted, one for each gamma.
    X, y, weight : array-like
        Validated samples, labels and sample weights (or None).
    splits : list of pairs of arrays of int
        Training and test samples of each fold.
    path : list of float
        Increasing values of C.
    first_task : int, default=0
        Number of the first callback task; each subproblem and each C is a task.
    """
    folds: dict[tuple[int, float], Fold] = {}
    for number, (train, test) in enumerate(splits):
        X_train, y_train = safe_split(models[0], X, y, train)
        weight_train = None if weight is None else weight[train]
        for column, model in enumerate(models):
            training = prepare_training(model, X_train, y_train, weight_train)
            fold = Fold(number, train, test, model, training, path)
            folds.setdefault((number, fold.gamma), fold).columns.append(column)
    for fold in folds.values():
        fold.first_task = first_task
        first_task += fold.n_tasks
    return list(folds.values())


def solve_folds(
    folds: "list[Fold]", X: Any, y: Any, cache: float, jobs: int, progress: Any
) -> None:
    """Compute the solutions of the folds, one gamma after the other, with ``cache`` MB."""
    of_gamma: dict[float, list[Fold]] = {}
    for fold in folds:
        of_gamma.setdefault(fold.gamma, []).append(fold)
    parameters = folds[0].training.parameters
    order = np.arange(len(y))
    if not parameters.is_pairwise:
        # With samples grouped by class, those of a subproblem are contiguous.
        order = np.argsort(np.unique(y, return_inverse=True)[1], kind="stable")
    position = np.argsort(order)
    grams = gram_matrices(
        lambda gamma: replace(parameters, gamma=gamma).gram(X, order), of_gamma, cache * 2**20
    )
    with single_threaded_blas():
        for gram, members in zip(grams, of_gamma.values(), strict=True):
            if gram is not None:
                _solve_together(gram, position, members, jobs, progress)
                continue
            for fold in members:
                X_train, _ = safe_split(fold.model, X, None, fold.train)
                fold.solve_with_cache(X_train, jobs, progress)


def _solve_together(gram: MatrixGram, position: Any, folds: list, jobs: int, progress: Any) -> None:
    """Solve the subproblems of folds, of which ``gram`` holds the samples at ``position``."""
    units = [(fold, numbers) for fold in folds for numbers in fold.problems_by_samples()]
    # Large ones first, so that the last job to finish is a short one.
    units.sort(key=lambda unit: -len(unit[0].problems[unit[1][0]].samples))
    scratch = Scratch(max(len(problem.samples) for fold in folds for problem in fold.problems))
    first = folds[0]

    def solve(unit: tuple) -> None:
        fold, numbers = unit
        fold.solve_group(numbers, gram, position, scratch.memory(), progress, first)

    # Large subproblems may start from those of the first fold, whatever the number of jobs is.
    waiting = [fold is not first and fold.is_large(numbers, gram) for fold, numbers in units]
    for_each(solve, [unit for unit, waits in zip(units, waiting, strict=True) if not waits], jobs)
    for_each(solve, [unit for unit, waits in zip(units, waiting, strict=True) if waits], jobs)
    for_each(lambda fold: fold.compute_values(gram, position), folds, jobs)


class Scratch(threading.local):
    """Memory for the matrix of a subproblem, in each thread the same for all subproblems."""

    def __init__(self, size: int):
        self.size = size
        self._memory: np.ndarray | None = None

    def memory(self) -> np.ndarray:
        if self._memory is None:
            self._memory = np.empty(self.size**2)
        return self._memory


@dataclass(frozen=True)
class FoldSolution(Solution):
    """Solution of a subproblem, with the values of f without its intercept.

    ``values`` are those at all samples of its Gram matrix, if they are known.
    """

    values: np.ndarray | None = None

    def is_free(self, costs: np.ndarray) -> bool:
        """Return whether no cost bounds the solution."""
        return self.converged and bool((np.abs(self.dual) < costs).all())


@dataclass
class Fold:
    """The subproblems of one fold for one gamma, and their solutions.

    ``columns`` are the positions of this gamma in the grid; ``solutions`` holds for each subproblem
    a list over ``path``, the increasing values of C; ``rows`` are the positions of its samples in a
    Gram matrix of all samples, if that is what it is solved on; ``failed`` are the positions in
    ``path`` at which a subproblem has no solution; ``values`` are decision values by test sample,
    subproblem and position in ``path``, if they are known; ``first_task`` is the number of the
    first callback task.
    """

    number: int
    train: np.ndarray
    test: np.ndarray
    model: Any
    training: Training
    path: list[float]
    columns: list[int] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)
    first_task: int = 0
    values_known: bool = True

    def __post_init__(self) -> None:
        self.problems = self.training.reduction.problems
        self.gamma = float(self.training.parameters.gamma)
        self.solutions: list[list[FoldSolution]] = [[] for _ in self.problems]
        self.rows: dict[int, np.ndarray] = {}
        self.costs = np.stack([self.training.costs(C) for C in self.path])
        self.values = np.empty((len(self.test), len(self.problems), len(self.path)))

    @property
    def n_tasks(self) -> int:
        """Number of callback tasks."""
        return len(self.problems) * len(self.path)

    def problems_by_samples(self) -> list[list[int]]:
        """Return the numbers of the subproblems, grouped by their samples."""
        together: dict[tuple[int, ...], list[int]] = {}
        for number, problem in enumerate(self.problems):
            together.setdefault(problem.groups, []).append(number)
        return list(together.values())

    def is_large(self, numbers: list, gram: MatrixGram) -> bool:
        """Return whether subproblems over the same samples are solved over all samples.

        Samples of cost 0 are no part of them, and no rows have to be copied.
        """
        n_samples = len(self.problems[numbers[0]].samples)
        return n_samples > max(smo_options.dense_size, gram.size // 2)

    def solve_group(
        self, numbers: list, gram: MatrixGram, position: Any, memory: np.ndarray, progress: Any,
        first: "Fold",
    ) -> None:  # fmt: skip
        """Solve subproblems over the same samples.

        ``position`` holds the position of each sample in ``gram``; ``memory`` is that of their
        matrix. Large subproblems of the fold ``first`` are solved.
        """
        rows = position[self.train[self.training.order[self.problems[numbers[0]].samples]]]
        if self.is_large(numbers, gram):
            shared = SharedGram(gram, exact=False)
            for number in numbers:
                self.rows[number] = rows
                self.solve_path(number, shared, progress, first)
            return
        subset = SubsetGram(gram, rows, memory, exact=False)
        for number in numbers:
            self.solve_path(number, subset, progress)

    def compute_values(self, gram: MatrixGram, position: Any) -> None:
        """Compute the decision values of the test samples."""
        if len(self.rows) == len(self.problems):
            columns = position[self.test]
            for number, path in enumerate(self.solutions):
                for step, solution in enumerate(path):
                    assert solution.values is not None
                    self.values[:, number, step] = solution.values[columns] + solution.intercept
            return
        reduction, shape = self.training.reduction, (self.training.reduction.width, len(self.path))
        rows, columns = position[self.train[self.training.order]], position[self.test]
        dual = np.zeros((len(rows), *shape))
        for problem, path in zip(self.problems, self.solutions, strict=True):
            dual[problem.samples, problem.columns] = np.column_stack([s.dual for s in path])
        self.values[:] = [[solution.intercept for solution in path] for path in self.solutions]
        functions: Any = [slice(None)]
        if reduction.one_vs_one:
            functions = pairs_of_classes(len(reduction.group_sizes))
        ends = accumulate(reduction.group_sizes, initial=0)
        for (first, last), indices in zip(pairwise(ends), functions, strict=True):
            support = first + np.flatnonzero(dual[first:last].any(axis=(1, 2)))
            # Read along the rows of support vectors: test samples, too, are contiguous in them.
            kernel = gather(gram.matrix, rows[support], columns).T
            with single_threaded_blas():  # the same product for any number of jobs: the same bits
                sums = kernel @ dual[support].reshape(len(support), shape[0] * shape[1])
            self.values[:, indices] += sums.reshape(len(columns), *shape)

    def solve_with_cache(self, X_train: Any, jobs: int, progress: FitProgress) -> None:
        """Solve all subproblems over a kernel cache of their own."""
        self.values_known = False
        cache = self.training.cache(X_train, self.model.cache_size, jobs)

        def solve(number):
            self.solve_path(number, cache.of(*self.problems[number].groups), progress)

        for_each(solve, range(len(self.problems)), jobs)

    def solve_path(
        self, number: int, gram: Gram, progress: FitProgress, first: "Fold | None" = None
    ) -> None:
        """Solve a subproblem for increasing C.

        A solution that no cost bounds is that of every larger C. ``first`` is a fold whose
        solutions may be close to those of this one.
        """
        problem, solutions = self.problems[number], self.solutions[number]
        margins = self.training.margins()[problem.samples]
        first_task = self.first_task + number * len(self.path)
        names = [str(first_task + step) for step in range(len(self.path))]
        saved = progress.checkpoint
        costs = np.take(self.costs, problem.samples, axis=1)
        # Small problems are solved again unless all of them are known: they start from each other.
        whole = all(name in saved.results for name in names)
        if self._is_small(gram) and not progress.active and not whole:
            path = solve_path(gram, problem.sign, margins, costs, self.model.tol)
            solutions.extend(FoldSolution(**vars(solution)) for solution in path)
            for name, small in zip(names, solutions, strict=False):
                saved.keep(name, small)
        for step in range(len(solutions), len(self.path)):
            with progress.task(first_task + step) as stop:
                name = names[step]
                solution = saved.get(name, FoldSolution)
                if step and gram.positive_semidefinite and solutions[-1].is_free(costs[step - 1]):
                    solution = solutions[-1]
                if solution is None:
                    rows = self.rows.get(number)
                    hinge = _hinge_problem(gram, problem.sign, margins, costs[step], rows)
                    start = self._start(number, hinge, first)
                    report = (lambda _, stop=stop: stop()) if progress.active else None
                    control = {"report": report, "checkpoint": saved.task(name)}
                    solution = self._solve(hinge, start, control, rows)
                saved.keep(name, solution)
            if solution.dual_objective == np.inf:
                self.failed.add(step)
            solutions.append(solution)

    def _is_small(self, gram: Gram) -> bool:
        """Return whether the solver of small problems applies."""
        plain = self.model.gap_tol is None and self.model.max_iter < 0
        return plain and SmallSolver.applies(gram)

    def _start(self, number: int, hinge: HingeProblem, first: "Fold | None") -> tuple[Any, Any]:
        """Return the dual variables to start from, and the values of f, where they are known.

        Where the kernel is not known to be positive semidefinite there may be several optima, and
        each C starts afresh, as a separate fit would.
        """
        if not hinge.gram.positive_semidefinite:
            return None, None
        starts: list[tuple | None] = []
        step = len(self.solutions[number])
        if step:
            before = self._point(number, step - 1, hinge.size)
            starts.append(_scaled(hinge, *before))
        if first is not None and first is not self and self._is_like(first, number):
            starts.append(_moved(hinge, *first._point(number, step, hinge.size)))
        return _best_start(hinge, starts)

    def _point(self, number: int, step: int, size: int) -> tuple:
        """Return costs, dual variables and values of f at all samples, and the intercept."""
        rows, solution = self.rows.get(number), self.solutions[number][step]
        costs = self.costs[step][self.problems[number].samples]
        dual = _at(rows, size, solution.dual)
        return _at(rows, size, costs), dual, solution.values, solution.intercept

    def _is_like(self, other: "Fold", number: int) -> bool:
        """Return whether another fold has the same subproblem, over part of the same samples."""
        same = np.array_equal(self.training.classes, other.training.classes)
        return same and number in other.rows

    def _solve(
        self, problem: HingeProblem, start: tuple, control: dict[str, Any], rows: np.ndarray | None
    ) -> FoldSolution:
        """Solve a problem from ``start``; the bound of one that has no solution is infinite.

        Only scores are compared: the tolerance is enough, whatever the gap.
        """
        options, size = solver_options(self.model), problem.size
        try:
            solution, values = solve_from(problem, start, strict=False, **options, **control)
        except NotSeparableError:
            solution = Solution(np.zeros(size), 0.0, np.inf, np.inf, 0.0, 0, True)
            values = np.zeros(size)
        dual = solution.dual if rows is None else solution.dual[rows]
        return FoldSolution(**{**vars(solution), "dual": dual, "values": values})

    def fitted_model(self, step: int, X_train: Any, X_test: Any, whole: bool) -> Any:
        """Return the `SVC` at a C of the path, for scorers.

        Unless it has to be ``whole`` it predicts the test samples only, if their values are known.
        """
        model, training = copy(self.model), self.training
        model.C = self.path[step]
        model.classes_, model._one_vs_one = training.classes, training.reduction.one_vs_one
        if whole or not self.values_known:
            solutions = [path[step] for path in self.solutions]
            model.__dict__.update(support_attributes(X_train, training, solutions))
            if not callable(model.kernel):
                model.n_features_in_ = X_train.shape[1]
        if self.values_known:
            values = np.ascontiguousarray(self.values[:, :, step])
            model.__dict__["_decision_values"] = partial(_values_at, model, X_test, values)
        return model


def _hinge_problem(
    gram: Gram, sign: np.ndarray, margin: np.ndarray, cost: np.ndarray, rows: np.ndarray | None
) -> HingeProblem:
    """Return a problem over samples of a Gram matrix, of which others have cost 0."""
    sign, margin = _at(rows, gram.size, sign, 1.0), _at(rows, gram.size, margin, 1.0)
    return HingeProblem(gram, sign, margin, _at(rows, gram.size, cost))


def _scaled(
    problem: HingeProblem, cost: np.ndarray, dual: np.ndarray, values: Any, intercept: float
) -> tuple:
    """Return a solution for smaller costs, multiplied by what is best for those of ``problem``."""
    if values is None:
        return dual, None
    dual, residual = dual.copy(), problem.linear() - values
    scale_up(problem.linear(), cost, problem.cost, dual, residual)
    return dual, problem.linear() - residual


def _moved(
    problem: HingeProblem, cost: np.ndarray, dual: np.ndarray, values: Any, intercept: float
) -> tuple | None:
    """Return a solution for costs that are 0 at other samples, made feasible for ``problem``.

    Samples that come in are at their bounds if they violate the margin. The sum of the dual
    variables is made 0 by moving those that violate the optimality conditions most.
    """
    if not (problem.cost < np.inf).all():
        return None
    lower, upper = problem.bounds()
    rest = problem.linear() - values - intercept
    bound = np.where(problem.sign > 0.0, upper, lower)
    at_bound = np.where(cost > 0.0, np.abs(dual) == cost, problem.sign * rest > 0.0)
    start = np.where(at_bound, bound, np.clip(dual, lower, upper))
    excess = float(start.sum())
    room = start - lower if excess > 0.0 else upper - start
    order = np.argsort(rest if excess > 0.0 else -rest)
    until = np.cumsum(room[order])
    if until[-1] < abs(excess):
        return None
    whole = order[until <= abs(excess)]
    start[whole] = (lower if excess > 0.0 else upper)[whole]
    if len(whole) < len(order):
        start[order[len(whole)]] -= start.sum()
    residual = problem.linear() - values
    subtract_kernel_sum(problem.gram, start - dual, residual)
    return np.clip(start, lower, upper), problem.linear() - residual


def _best_start(problem: HingeProblem, starts: list[tuple | None]) -> tuple[Any, Any]:
    """Return the point of the best dual objective, which is 0 where all variables are 0.

    Without values of f the objective is not known; such a point is a solution for smaller costs.
    """
    best, most = (None, None), 0.0
    for dual, values in filter(None, starts):
        value = 0.0 if values is None else np.sum(dual * (problem.linear() - 0.5 * values))
        if value > most or (values is None and most == 0.0):
            best, most = (dual, values), float(value)
    return best


def _at(rows: np.ndarray | None, size: int, values: np.ndarray, other: float = 0.0) -> np.ndarray:
    """Return values at ``rows``, and the same number elsewhere."""
    if rows is None:
        return values
    out = np.full(size, other)
    out[rows] = values
    return out


def _values_at(model: Any, X_test: Any, values: np.ndarray, X: Any) -> np.ndarray:
    """Return the decision values, which are known for the test samples."""
    return values if X is X_test else type(model)._decision_values(model, X)
