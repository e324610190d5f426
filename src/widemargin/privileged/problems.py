r"""Binary subproblems whose slack is a function of the privileged features.

An `SVM2Plus` or `SVM1Plus` holds what the subproblems of all classes, all C and all penalties have
in common. Its ``solver(C, penalty, options)`` returns a function from signs to a solution. Without
privileged features the slack is free: they are then the SVM with the same loss.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np
import scipy.sparse as sp

from widemargin._base.matmul import tiled_multiply, tiled_product
from widemargin._base.options import active_set_options, smo_options
from widemargin._base.options import privileged_options as options
from widemargin.kernels import GramCache, KernelGram, MatrixGram
from widemargin.kernels.label_coupled import PrivilegedGram, SignedSum
from widemargin.privileged.slack_functions import PrivilegedKernel
from widemargin.privileged.slack_space import SlackSpace, distinct_rows
from widemargin.solvers import HingeProblem, NotSeparableError, Solution, solve_hinge
from widemargin.solvers.coupled.svm1plus import SlackSolution, solve_svm1plus
from widemargin.solvers.hinge.hard_margin import solve_hard_margin

Gram = KernelGram | MatrixGram
Report = Callable[[Any], bool] | None
Solver = Callable[..., SlackSolution]


def make_subproblems(
    loss: str,
    gram: Gram,
    kernel: PrivilegedKernel | None,
    weight: np.ndarray,
    cache_size: float,
    jobs: int,
) -> "SVM1Plus | SVM2Plus":
    """Return the subproblems of a loss.

    Parameters
    ----------
    loss : {"squared_hinge", "hinge"}
    gram : KernelGram or MatrixGram
        Gram matrix of X.
    kernel : PrivilegedKernel or None
    weight : ndarray of shape (n,)
        Positive weights of the samples.
    cache_size : float
        Memory for kernel values in MB.
    jobs : int
        Number of subproblems solved at once.

    Returns
    -------
    SVM1Plus or SVM2Plus
    """
    cache_bytes = int(cache_size * 2**20)
    if loss == "squared_hinge":
        space = None if kernel is None else _slack_space(kernel, weight, constant=True)
        return SVM2Plus(gram, space, weight, cache_bytes)
    space = None
    if kernel is not None and uses_slack_space(kernel.gram.size, kernel.n_features):
        space = _slack_space(kernel, np.ones(kernel.gram.size), constant=False)
    return SVM1Plus(gram, kernel, space, weight, cache_bytes, jobs)


def uses_slack_space(n: int, n_features: int) -> bool:
    """Return whether the active-set method of SVM1+ is able to use the weights of the slack."""
    return min(n, n_features) < active_set_options.most_unknowns


def _slack_space(kernel: PrivilegedKernel, weight: np.ndarray, constant: bool) -> SlackSpace:
    """Decompose the privileged features, or their Gram matrix if that is smaller."""
    if kernel.low_rank:
        return SlackSpace.of_features(kernel.Z, weight, constant)
    pairwise = kernel.parameters.is_pairwise
    same = np.arange(kernel.gram.size) if pairwise else distinct_rows(kernel.Z)
    return SlackSpace.of_gram(kernel.gram, weight, constant, same)


class SVM2Plus:
    r"""SVM2+, and without a space of slack functions the SVM with the squared hinge loss.

    It is the hinge problem with infinite costs over :math:`K + Q \circ yy^\top`, where Q accounts
    for the cost of slack.

    Parameters
    ----------
    gram : KernelGram or MatrixGram
        K.
    space : SlackSpace or None
    weight : ndarray of shape (n,)
        Positive weights of the samples.
    cache_bytes : int
        Memory for kernel values.
    """

    def __init__(self, gram: Gram, space: SlackSpace | None, weight: np.ndarray, cache_bytes: int):
        self.gram = gram
        self.space = space
        self.weight = weight
        self.cache_bytes = cache_bytes
        self.positive_semidefinite = gram.positive_semidefinite
        self._features = self._few_features()
        # Above this size the solver reads rows of the matrix.
        dense = gram.size <= smo_options.dense_size and self._features is None
        self.matrix = gram.block(slice(None), slice(None)) if dense else None

    def solver(self, C: float, penalty: float, solver_options: dict[str, Any]) -> Solver:
        """Return a function of signs, a solution to start from and a report."""
        n = self.gram.size
        factor = np.zeros((n, 0)) if self.space is None else self.space.factor(C, penalty)
        ridge = 1.0 / (C * self.weight) if self.space is None else None
        gram_of = self._grams(factor, ridge)

        def solve(
            sign: np.ndarray, start: SlackSolution | None = None, report: Report = None
        ) -> SlackSolution:
            if self._features is not None:
                found = self._solve_over_features(sign, factor, solver_options, report)
            else:
                problem = HingeProblem(gram_of(sign), sign, 1.0, np.inf, separable=True)
                found = self._solve_over_samples(problem, start, solver_options, report)
            if not found.converged:
                found = self._tighten_bound(found, sign, C, penalty)
            alpha = sign * found.dual
            return _with_slack(found, alpha, alpha)

        return solve

    def add_slack(
        self, solutions: list[SlackSolution], C: float, penalty: float
    ) -> list[SlackSolution]:
        """Return the solutions with their slack, computed for all of them in one product."""
        alphas = np.column_stack([solution.slack_dual for solution in solutions])
        if self.space is None:
            slacks = alphas / (C * self.weight)[:, np.newaxis]
            return [replace(s, slack=slack) for s, slack in zip(solutions, slacks.T, strict=True)]
        coordinates = self.space.coordinates(alphas, C, penalty)
        slacks = self.space.values(coordinates)
        return [
            replace(s, slack=slack, slack_weights=t)
            for s, slack, t in zip(solutions, slacks.T, coordinates.T, strict=True)
        ]

    def _tighten_bound(
        self, found: Solution, sign: np.ndarray, C: float, penalty: float
    ) -> Solution:
        """Return a solution that rounding keeps from being feasible, with a better bound.

        The objective of a hard-margin problem is that of its function scaled up until all samples
        satisfy their margins. The scale may be large, or no scale may suffice. Slack raised by a
        constant, whose norm is at most 1, makes every function feasible.
        """
        samples = np.arange(self.gram.size)
        values = _function_values(self, found.dual[np.newaxis], samples, samples)[:, 0]
        missing = 1.0 - sign * (values + found.intercept)
        if self.space is None:
            slack, squared = np.maximum(missing, 0.0), 0.0
        else:
            alpha = (sign * found.dual)[:, np.newaxis]
            coordinates = self.space.coordinates(alpha, C, penalty)
            slack = self.space.values(coordinates)[:, 0]
            raised = max(0.0, float((missing - slack).max()))
            slack = slack + raised
            squared = (float(np.linalg.norm(coordinates)) + raised) ** 2
        norms = float(found.dual @ values) + penalty * squared
        objective = 0.5 * (norms + C * float(self.weight @ slack**2))
        if not objective < found.objective:
            return found
        gap = max(0.0, 1.0 - found.dual_objective / objective)
        gap = gap if self.positive_semidefinite else np.nan
        return replace(found, objective=objective, gap=gap)

    def _solve_over_features(
        self, sign: np.ndarray, factor: np.ndarray, solver_options: dict[str, Any], report: Report
    ) -> Solution:
        """Solve a problem with the features x_i and y_i times those of the factor."""
        signed = sign[:, np.newaxis] * factor
        gram = PrivilegedGram(self.gram, signed)
        problem = HingeProblem(gram, sign, 1.0, np.inf, separable=True)
        assert self._features is not None
        features = np.hstack([self._features, signed])
        return solve_hard_margin(problem, features=features, **solver_options, report=report)

    def _solve_over_samples(
        self,
        problem: HingeProblem,
        start: SlackSolution | None,
        solver_options: dict[str, Any],
        report: Report,
    ) -> Solution:
        """Solve by SMO, then by the interior-point method if SMO is slow on a whole matrix."""
        n, dual = problem.size, None if start is None else start.dual
        if dual is not None and not problem.is_feasible(dual):
            dual = None  # that of an interior-point method that stopped early
        if self.matrix is None:
            return solve_hinge(problem, **solver_options, dual=dual, report=report)
        limit, updates = solver_options["max_iter"], options.pair_updates * n
        smo = {**solver_options, "max_iter": updates if limit < 0 else min(updates, limit // 2)}
        exact = n <= options.exact_size
        try:
            found = solve_hinge(problem, **smo, dual=dual, exact=exact, report=report)
        except NotSeparableError:  # a tiny margin and rounding errors
            done = 0
        else:
            if found.converged:
                return found
            done = found.iterations
        rest = {**solver_options, "max_iter": -1 if limit < 0 else limit - done}
        found = solve_hard_margin(problem, **rest, report=report)
        return replace(found, iterations=done + found.iterations)

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
                PrivilegedGram(self.gram, sign[:, np.newaxis] * factor, ridge),  # type: ignore[arg-type]
                self.cache_bytes,
            ).of()
        second = np.diag(ridge) if ridge is not None else tiled_product(factor, factor)
        sums = threading.local()

        def gram_of(sign: np.ndarray) -> MatrixGram:
            if not hasattr(sums, "sum"):
                sums.sum = SignedSum(matrix, second, self.positive_semidefinite)
            return sums.sum.of(sign)

        return gram_of


class SVM1Plus:
    """SVM1+, and without privileged features the SVM with the hinge loss.

    Parameters
    ----------
    gram : KernelGram or MatrixGram
        K.
    kernel : PrivilegedKernel or None
    space : SlackSpace or None
        Space of the slack functions, for small problems.
    weight : ndarray of shape (n,)
        Positive weights of the samples.
    cache_bytes : int
        Memory for kernel values, without privileged features.
    jobs : int
        Number of subproblems solved at once.
    """

    def __init__(
        self,
        gram: Gram,
        kernel: PrivilegedKernel | None,
        space: SlackSpace | None,
        weight: np.ndarray,
        cache_bytes: int,
        jobs: int,
    ):
        self.gram = gram
        self.space = space
        self.weight = weight
        self.positive_semidefinite = gram.positive_semidefinite
        self.matrix: np.ndarray | None = None
        self._kernel = kernel
        if kernel is None:
            self._cache = GramCache(gram, cache_bytes, shared=True, jobs=jobs)
        else:
            self.matrix = gram.block(slice(None), slice(None))
            self._second = kernel.gram.block(slice(None), slice(None))
            self.positive_semidefinite &= kernel.gram.positive_semidefinite

    def solver(self, C: float, penalty: float, solver_options: dict[str, Any]) -> Solver:
        """Return a function of signs, a solution to start from and a report."""
        cost = C * self.weight
        if self._kernel is None or self.matrix is None:
            solve_hinge_problem = hinge_solver(self._cache, cost, solver_options)

            def solve_plain(
                sign: np.ndarray, start: SlackSolution | None = None, report: Report = None
            ) -> SlackSolution:
                found = solve_hinge_problem(sign, report)
                alpha = np.abs(found.dual)
                return _with_slack(found, alpha, np.vstack([alpha, cost - alpha]))

            return solve_plain
        matrix, low_rank = self.matrix, self._kernel.low_rank
        factor = None if self.space is None else self.space.rows()

        def solve(
            sign: np.ndarray, start: SlackSolution | None = None, report: Report = None
        ) -> SlackSolution:
            found = solve_svm1plus(
                matrix,
                self._second,
                sign,
                cost,
                penalty,
                factor=factor,
                low_rank=low_rank,
                **solver_options,
                # Feasible for other costs after scaling.
                point=None if start is None else start.point * (cost.sum() / start.point.sum()),
                report=report,
            )
            return found if self.positive_semidefinite else replace(found, gap=np.nan)

        return solve

    def add_slack(
        self, solutions: list[SlackSolution], C: float, penalty: float
    ) -> list[SlackSolution]:
        """Return the solutions, which have their slack."""
        return solutions


def hinge_solver(
    cache: GramCache, cost: np.ndarray, solver_options: dict[str, Any]
) -> Callable[[np.ndarray, Report], Solution]:
    """Return a function of signs and a report that solves hinge problems of margin 1."""

    def solve(sign: np.ndarray, report: Report) -> Solution:
        problem = HingeProblem(cache.of(), sign, 1.0, cost)
        return solve_hinge(problem, **solver_options, report=report)

    return solve


def find_zero_functions(
    subproblems: SVM1Plus | SVM2Plus, solutions: Sequence[SlackSolution]
) -> np.ndarray:
    """Return the numbers of the solutions whose function is 0, though their duals are not.

    The norm of such a function is small compared with the sum of the norms of its terms, and too
    small to change any margin.
    """
    duals = np.vstack([solution.dual for solution in solutions])
    support = np.flatnonzero(duals.any(axis=0))
    duals = np.ascontiguousarray(duals[:, support])
    values = _function_values(subproblems, duals, support, support)
    squared = np.sum(duals.T * values, axis=0)
    diagonal = np.abs(subproblems.gram.diagonal())
    terms = np.abs(duals) @ np.sqrt(diagonal[support])
    converged = np.array([solution.converged for solution in solutions])
    flat = squared * diagonal.mean() <= options.zero_margin**2
    return np.flatnonzero(converged & flat & (squared <= options.zero_norm**2 * terms**2))


def _with_slack(found: Solution, alpha: np.ndarray, point: np.ndarray) -> SlackSolution:
    """Return a solution of the hinge problem as one with slack; the slack itself comes later."""
    return SlackSolution(**vars(found), slack=alpha, slack_dual=alpha, point=point)


def _function_values(
    subproblems: SVM1Plus | SVM2Plus, duals: np.ndarray, samples: np.ndarray, support: np.ndarray
) -> np.ndarray:
    """Return values at some samples, without intercepts, of functions given by dual variables."""
    gram, matrix = subproblems.gram, subproblems.matrix
    if matrix is None and _is_linear(gram):
        X = gram.X
        if sp.issparse(X):
            return np.asarray(X[samples] @ np.asarray(duals @ X[support]).T)
        weights = tiled_product(duals, np.ascontiguousarray(X[support].T))
        return tiled_multiply(X[samples], weights.T)
    step = max(1, options.block_entries // max(1, len(support)))
    parts = [np.zeros((0, len(duals)))]
    for i in range(0, len(samples), step):
        rows = samples[i : i + step]
        block = gram.block(rows, support) if matrix is None else matrix[np.ix_(rows, support)]
        parts.append(tiled_multiply(block, duals.T))
    return np.vstack(parts)


def _is_linear(gram: Gram) -> TypeGuard[KernelGram]:
    return isinstance(gram, KernelGram) and gram.function.name == "linear"
