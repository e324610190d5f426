r"""Binary subproblems of the estimators with privileged features.

A `Subproblems` holds what the subproblems of all classes, all C and all penalties have in common.
Its ``solver(C, penalty, ridge)`` returns a function from signs to a solution. Without privileged
features, and with an infinite ridge, it is the SVM with the same loss.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs

from widemargin._base.matmul import tiled_multiply, tiled_product
from widemargin._base.options import active_set_options, smo_options
from widemargin._base.options import privileged_options as options
from widemargin.kernels import GramCache, KernelGram, MatrixGram
from widemargin.kernels.label_coupled import PrivilegedGram, SignedSum
from widemargin.privileged.slack_functions import FitData, PrivilegedFunctions, PrivilegedKernel
from widemargin.privileged.slack_space import SlackSpace, distinct_rows
from widemargin.solvers import HingeProblem, NotSeparableError, Solution, solve_hinge
from widemargin.solvers.coupled.problem import (
    CoupledProblem,
    CoupledSolution,
    svm1plus_problem,
    svm2k_problem,
)
from widemargin.solvers.coupled.solver import solve_coupled
from widemargin.solvers.hinge.hard_margin import solve_hard_margin

Report = Callable[[Any], bool] | None
Solver = Callable[..., CoupledSolution]


def uses_slack_space(n: int, n_features: int) -> bool:
    """Return whether the active-set method of SVM1+ is able to use the weights of the slack."""
    return min(n, n_features) < active_set_options.most_unknowns


class Subproblems:
    """Base class of the subproblems of an estimator.

    Parameters
    ----------
    estimator : PrivilegedBase
    data : FitData

    Attributes
    ----------
    gram : KernelGram or MatrixGram
        Gram matrix K of X.
    kernel : PrivilegedKernel or None
    weight : ndarray of shape (n,)
        Positive weights of the samples.
    matrix : ndarray of shape (n, n) or None
        K, where it is held in memory.
    space : SlackSpace or None
        Space of the slack functions, where they have coordinates.
    """

    space: SlackSpace | None = None
    matrix: Any = None
    constant = False
    """Whether the privileged kernel has a constant feature in place of an intercept."""

    def __init__(self, estimator: Any, data: FitData):
        training = data.training
        self.gram: KernelGram | MatrixGram = training.parameters.gram(data.X, training.order)
        self.kernel = data.kernel
        self.weight = training.costs(1.0)
        if not (self.weight > 0.0).all():
            raise ValueError(
                "class_weight must be positive for every class. To leave out samples, remove them "
                "from X or set their sample_weight to 0."
            )
        self.positive_semidefinite = self.gram.positive_semidefinite
        self.estimator = estimator
        self.cache_bytes = int(estimator.cache_size * 2**20)
        self.solver_options = {"tol": estimator.tol, "max_iter": estimator.max_iter}

    def solver(self, C: float, penalty: float, ridge: float = 0.0) -> Solver:
        """Return a function of signs, a solution to start from and a report."""
        raise NotImplementedError

    def add_slack(
        self, solutions: list, C: float, penalty: float, ridge: float = 0.0
    ) -> list[CoupledSolution]:
        """Return the solutions with the values of their second functions."""
        return solutions

    def functions(self, solutions: list[CoupledSolution]) -> PrivilegedFunctions | None:
        """Return the fitted functions of the privileged features."""
        kernel, space = self.kernel, self.space
        if kernel is None:
            return None
        intercept = np.array([s.second_intercept for s in solutions])
        duals = [s.second_dual for s in solutions]
        coordinates = [s.second_weights for s in solutions if s.second_weights is not None]
        if space is not None and len(coordinates) == len(solutions):
            if space.loadings is not None:
                coef = np.vstack([space.loadings @ t for t in coordinates])
                if self.constant:
                    coef, intercept = coef[:, :-1], coef[:, -1]
                return PrivilegedFunctions("linear", kernel.features, intercept, None, coef)
            duals = list(space.dual(np.column_stack(coordinates)).T)
        if self.constant:
            intercept = np.array([dual.sum() for dual in duals])
        return kernel.from_duals(duals, intercept)

    def zero_functions(self, solutions: Sequence[CoupledSolution]) -> np.ndarray:
        """Return the numbers of the solutions whose function is 0, though their duals are not.

        The norm of such a function is small compared with the sum of the norms of its terms, and
        too small to change any margin.
        """
        duals = np.vstack([solution.dual for solution in solutions])
        support = np.flatnonzero(duals.any(axis=0))
        duals = np.ascontiguousarray(duals[:, support])
        squared = np.sum(duals.T * self._function_values(duals, support), axis=0)
        diagonal = np.abs(self.gram.diagonal())
        terms = np.abs(duals) @ np.sqrt(diagonal[support])
        converged = np.array([solution.converged for solution in solutions])
        flat = squared * diagonal.mean() <= options.zero_margin**2
        return np.flatnonzero(converged & flat & (squared <= options.zero_norm**2 * terms**2))

    def predicted_signs(self, solution: CoupledSolution) -> np.ndarray:
        """Return which of False and True the training samples are predicted to be."""
        support, rest = np.flatnonzero(solution.dual), np.flatnonzero(solution.dual == 0.0)
        duals = np.ascontiguousarray(solution.dual[np.newaxis, support])
        signs = np.array([], dtype=bool)
        for samples in (support, rest):  # mostly, the first decide
            values = self._function_values(duals, support, samples)[:, 0] + solution.intercept
            signs = np.unique([*signs, *(values > 0.0)])
            if len(signs) > 1:
                break
        return signs

    def _function_values(
        self, duals: np.ndarray, samples: np.ndarray, points: np.ndarray | None = None
    ) -> np.ndarray:
        """Return values of functions by their duals at some samples, without intercepts.

        They are the values at ``points``, the same samples if None.
        """
        gram, matrix, points = self.gram, self.matrix, samples if points is None else points
        if matrix is None and _is_linear(gram):
            X, Y = gram.X[samples], gram.X[points]
            if sp.issparse(X):
                return np.asarray(Y @ np.asarray(duals @ X).T)
            return tiled_multiply(Y, tiled_product(duals, np.ascontiguousarray(X.T)).T)
        step = max(1, options.block_entries // max(1, len(samples)))
        blocks = [np.zeros((0, len(duals)))]
        for i in range(0, len(points), step):
            rows = points[i : i + step]
            block = gram.block(rows, samples) if matrix is None else matrix[np.ix_(rows, samples)]
            blocks.append(tiled_multiply(block, duals.T))
        return np.vstack(blocks)


class SVM2Plus(Subproblems):
    r"""SVM2+, and without privileged features the SVM with the squared hinge loss.

    It is the hinge problem with infinite costs over :math:`K + Q \circ yy^\top`, where Q accounts
    for the cost of slack.
    """

    constant = True

    def __init__(self, estimator: Any, data: FitData):
        super().__init__(estimator, data)
        if self.kernel is not None:
            self.space = _slack_space(self.kernel, self.weight, constant=True)
        self._features = self._few_features()

    def solver(self, C: float, penalty: float, ridge: float = 0.0) -> Solver:
        """Return a function of signs, a solution to start from and a report."""
        n, space = self.gram.size, self.space
        factor = np.zeros((n, 0)) if space is None else space.factor(C, penalty, ridge)
        diagonal = 1.0 / (C * self.weight) if space is None else space.diagonal(C, penalty, ridge)
        # The slack of every sample is another feature.
        features = self._features if diagonal is None else None
        if features is None and self.matrix is None and n <= smo_options.dense_size:
            self.matrix = self.gram.block(slice(None), slice(None))
        gram_of = self._grams(factor, diagonal)

        def solve(sign, start=None, report: Report = None, checkpoint: Any = None):
            if features is not None:
                # The features x_i and y_i times those of the factor.
                signed = sign[:, np.newaxis] * factor
                problem = _hard_margin(PrivilegedGram(self.gram, signed), sign)
                both = np.hstack([features, signed])
                solution = solve_hard_margin(
                    problem, features=both, **self.solver_options, report=report
                )
            else:
                problem = _hard_margin(gram_of(sign), sign)
                solution = self._solve_over_samples(problem, start, report, checkpoint)
            if not solution.converged:
                solution = self._tighten_bound(solution, sign, C, penalty, ridge)
            alpha = sign * solution.dual
            return _with_second(solution, alpha, alpha)

        return solve

    def add_slack(
        self, solutions: list, C: float, penalty: float, ridge: float = 0.0
    ) -> list[CoupledSolution]:
        """Return the solutions with their slack, computed for all of them in one product."""
        alphas = np.column_stack([solution.second_dual for solution in solutions])
        if self.space is None:
            slacks = alphas / (C * self.weight)[:, np.newaxis]
            coordinates: Any = [None] * len(solutions)
        else:
            costs = C, penalty, ridge
            coordinates = self.space.coordinates(alphas, *costs)
            slacks, coordinates = self.space.values(coordinates), coordinates.T
            slacks = slacks + self.space.free_slack(alphas, slacks, costs)
        return [
            replace(s, second_values=slack, second_weights=t)
            for s, slack, t in zip(solutions, slacks.T, coordinates, strict=True)
        ]

    def _tighten_bound(
        self, solution: Solution, sign: np.ndarray, C: float, penalty: float, ridge: float
    ) -> Solution:
        """Return a solution that rounding keeps from being feasible, with a better bound.

        The objective of a hard-margin problem is that of its function scaled up until all samples
        satisfy their margins. The scale may be large, or no scale may suffice. Slack raised by a
        constant, whose norm is at most 1, makes every function feasible.
        """
        costs = C, penalty, ridge
        values = self._function_values(solution.dual[np.newaxis], np.arange(self.gram.size))[:, 0]
        missing = 1.0 - sign * (values + solution.intercept)
        if self.space is None:
            slack, squared = np.maximum(missing, 0.0), 0.0
        else:
            alpha = (sign * solution.dual)[:, np.newaxis]
            coordinates = self.space.coordinates(alpha, *costs)
            values_of_z = self.space.values(coordinates)
            free = self.space.free_slack(alpha, values_of_z, costs)[:, 0]
            slack = values_of_z[:, 0] + free
            raised = max(0.0, float((missing - slack).max()))
            slack = slack + raised
            squared = (float(np.linalg.norm(coordinates)) + raised) ** 2
            squared += float(self.weight @ free**2) / ridge if ridge > 0.0 else 0.0
        norms = float(solution.dual @ values) + penalty * squared
        objective = 0.5 * (norms + C * float(self.weight @ slack**2))
        if not objective < solution.objective:
            return solution
        gap = max(0.0, 1.0 - solution.dual_objective / objective)
        gap = gap if self.positive_semidefinite else np.nan
        return replace(solution, objective=objective, gap=gap)

    def _solve_over_samples(
        self, problem: HingeProblem, start: CoupledSolution | None, report: Report, checkpoint: Any
    ) -> Solution:
        """Solve by SMO, then by the interior-point method if SMO is slow on a whole matrix."""
        n, dual = problem.size, None if start is None else start.dual
        if dual is not None and not problem.is_feasible(dual):
            dual = None  # that of an interior-point method that stopped early
        if self.matrix is None:
            control = {"report": report, "checkpoint": checkpoint}
            return solve_hinge(problem, **self.solver_options, dual=dual, **control)
        limit, updates = self.solver_options["max_iter"], options.pair_updates * n
        smo = {
            **self.solver_options,
            "max_iter": updates if limit < 0 else min(updates, limit // 2),
        }
        exact, done = n <= options.exact_size, 0
        try:
            solution = solve_hinge(problem, **smo, dual=dual, exact=exact, report=report)
        except NotSeparableError:
            pass  # a tiny margin and rounding errors
        else:
            if solution.converged:
                return solution
            done = solution.iterations
        rest = {**self.solver_options, "max_iter": -1 if limit < 0 else limit - done}
        solution = solve_hard_margin(problem, **rest, report=report)
        return replace(solution, iterations=done + solution.iterations)

    def _few_features(self) -> np.ndarray | None:
        """Return X if both kernels are linear with few features beside many samples, or None."""
        if self.space is None or not _is_linear(self.gram):
            return None
        n, X = self.gram.size, self.gram.X
        n_features = X.shape[1] + self.space.vectors.shape[1]
        if n_features > min(options.most_features, n / options.samples_per_feature):
            return None
        dense: Any = X.toarray() if sp.issparse(X) else X  # type: ignore[union-attr]
        return np.asarray(dense, dtype=np.float64)

    def _grams(self, factor: np.ndarray, ridge: np.ndarray | None) -> Callable[[np.ndarray], Any]:
        """Return a function from signs to the Gram matrix of the subproblem."""
        matrix = self.matrix
        if matrix is None:
            return lambda sign: GramCache(
                PrivilegedGram(self.gram, sign[:, np.newaxis] * factor, ridge),
                self.cache_bytes,
            ).of()
        second = tiled_product(factor, factor) if factor.shape[1] else np.zeros(matrix.shape)
        if ridge is not None:
            second[np.diag_indices(len(second))] += ridge
        sums = threading.local()

        def gram_of(sign: np.ndarray) -> MatrixGram:
            if not hasattr(sums, "sum"):
                sums.sum = SignedSum(matrix, second, self.positive_semidefinite)
            return sums.sum.of(sign)

        return gram_of


class CoupledSubproblems(Subproblems):
    """Coupled problems over two matrices; without privileged features the SVM with hinge loss."""

    def __init__(self, estimator: Any, data: FitData):
        super().__init__(estimator, data)
        jobs = effective_n_jobs(estimator.n_jobs)
        self._cache = GramCache(self.gram, self.cache_bytes, shared=True, jobs=jobs)
        if self.kernel is not None:
            self.grams = self.gram, self.kernel.gram
            self.matrix, self.second = (g.block(slice(None), slice(None)) for g in self.grams)
            self.positive_semidefinite &= self.kernel.gram.positive_semidefinite

    def solver(self, C: float, penalty: float, ridge: float = 0.0) -> Solver:
        """Return a function of signs, a solution to start from and a report."""
        cost, kernel = C * self.weight, self.kernel

        def solve(sign, start=None, report: Report = None, checkpoint: Any = None):
            if kernel is None or ridge == np.inf:
                return self._solve_plain(sign, cost, report)
            problem = self._problem(sign, cost, penalty, kernel.low_rank, start)
            coupled = solve_coupled(
                problem, **self.solver_options, report=report, checkpoint=checkpoint
            )
            return coupled if self.positive_semidefinite else replace(coupled, gap=np.nan)

        return solve

    def _solve_plain(self, sign: np.ndarray, cost: np.ndarray, report: Report) -> CoupledSolution:
        """Solve the SVM with the hinge loss, whose slack functions are 0."""
        plain = HingeProblem(self._cache.of(), sign, 1.0, cost)
        plain_solution = solve_hinge(plain, **self.solver_options, report=report)
        alpha = np.abs(plain_solution.dual)
        solution = _with_second(plain_solution, alpha, np.vstack([alpha, cost - alpha]))
        if self.kernel is None:
            return solution
        support = np.flatnonzero(plain_solution.dual)
        values = tiled_multiply(
            np.ascontiguousarray(self.matrix[:, support]), plain_solution.dual[support, np.newaxis]
        )
        slack = np.maximum(0.0, 1.0 - sign * (values[:, 0] + plain_solution.intercept))
        return replace(solution, second_values=slack, second_dual=np.zeros(len(sign)))

    def _problem(self, sign, cost, penalty, low_rank, start) -> CoupledProblem:
        raise NotImplementedError


class SVM1Plus(CoupledSubproblems):
    """SVM1+; it has a space of slack functions on small problems."""

    def __init__(self, estimator: Any, data: FitData):
        super().__init__(estimator, data)
        if self.kernel and uses_slack_space(self.kernel.gram.size, self.kernel.n_features):
            self.space = _slack_space(self.kernel, np.ones(self.kernel.gram.size), constant=False)

    def _problem(self, sign, cost, penalty, low_rank, start) -> CoupledProblem:
        factor = None if self.space is None else self.space.rows()
        # Feasible for other costs after scaling.
        point = None if start is None else start.point * (cost.sum() / start.point.sum())
        named = {"factor": factor, "low_rank": low_rank, "start": point, "grams": self.grams}
        return svm1plus_problem(self.matrix, self.second, sign, cost, penalty, **named)


class SVM2K(CoupledSubproblems):
    """SVM-2K."""

    def _problem(self, sign, cost, penalty, low_rank, start) -> CoupledProblem:
        model, weight = self.estimator, self.weight
        C_privileged = model.C if model.C_privileged is None else model.C_privileged
        costs = np.vstack([cost, C_privileged * weight]), model.D * weight
        named = {"low_rank": low_rank, "grams": self.grams}
        return svm2k_problem(self.matrix, self.second, sign, *costs, model.epsilon, **named)


def _slack_space(kernel: PrivilegedKernel, weight: np.ndarray, constant: bool) -> SlackSpace:
    """Decompose the privileged features, or their Gram matrix if that is smaller."""
    if kernel.low_rank:
        return SlackSpace.of_features(kernel.Z, weight, constant)
    pairwise = kernel.parameters.is_pairwise
    same = np.arange(kernel.gram.size) if pairwise else distinct_rows(kernel.Z)
    return SlackSpace.of_gram(kernel.gram, weight, constant, same)


def _hard_margin(gram: Any, sign: np.ndarray) -> HingeProblem:
    return HingeProblem(gram, sign, 1.0, np.inf, separable=True)


def _with_second(solution: Solution, alpha: np.ndarray, point: np.ndarray) -> CoupledSolution:
    """Return a solution of the hinge problem as one with slack; the slack itself comes later."""
    return CoupledSolution(**vars(solution), second_values=alpha, second_dual=alpha, point=point)


def _is_linear(gram: KernelGram | MatrixGram) -> TypeGuard[KernelGram]:
    return isinstance(gram, KernelGram) and gram.function.name == "linear"
