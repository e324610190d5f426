"""Binary machines whose slack is a function of the privileged columns, or free without them.

A `SquaredHinge` or `Hinge` holds what all classes, all C and all penalties have in common; its
``at(C, penalty)`` is a function from signs to a solution.
"""

import threading
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from widemargin._base.matmul import tiled_multiply, tiled_product
from widemargin._base.options import active_set_options, smo_options
from widemargin.kernels import GramCache, KernelGram
from widemargin.kernels.label_coupled import PrivilegedGram, SignedSum
from widemargin.privileged.slack_space import SlackSpace
from widemargin.solvers import HingeProblem, NotSeparableError, solve_hinge
from widemargin.solvers.coupled.svm1plus import SlackSolution, solve_svm1plus
from widemargin.solvers.hinge.hard_margin import solve_hard_margin

_NORM_ENTRIES = 1 << 22
_MOST_EXACT = 500
# So many updates of pairs for each row cost what the interior-point method does, within a factor of
# about two from 100 to 2,000 rows: both together then take twice the better one's time at most.
_CRAWL = 200
_MOST_COLUMNS = 500
_ROWS_FOR_A_COLUMN = 2
_NOTHING = 1e-3
_FLAT = 0.01


class SquaredHinge:
    r"""SVM2+, and without a space of slack functions the machine with the squared hinge loss.

    It is the hinge problem with infinite costs over :math:`K + Q \circ yy^\top`, where Q makes up
    for what slack costs.

    Parameters
    ----------
    gram : KernelGram or MatrixGram
        K.
    space : SlackSpace or None
    weight : ndarray of shape (n,)
        Of the rows, greater than 0.
    cache_bytes : float
    """

    def __init__(self, gram, space: SlackSpace | None, weight, cache_bytes):
        self.gram = gram
        self.space = space
        self.weight = weight
        self.cache_bytes = cache_bytes
        self.positive_semidefinite = gram.positive_semidefinite
        self._columns = self._few_columns()
        # Beyond so many rows the solver asks for rows and not for the matrix.
        whole = gram.size <= smo_options.dense_size and self._columns is None
        self.matrix = gram.block(slice(None), slice(None)) if whole else None

    def at(self, C, penalty, options):
        """A function from signs, a dual point to start from and a report to a `SlackSolution`."""
        n = self.gram.size
        factor = np.zeros((n, 0)) if self.space is None else self.space.factor(C, penalty)
        ridge = 1.0 / (C * self.weight) if self.space is None else None
        gram_of = self._grams(factor, ridge)

        def solve(sign, start=None, report=None):
            if self._columns is not None:
                found = self._by_columns(sign, factor, options, report)
            else:
                problem = HingeProblem(gram_of(sign), sign, 1.0, np.inf, separable=True)
                found = self._by_pairs(problem, start, options, report)
            if not found.converged:
                found = self._bounded(found, sign, C, penalty)
            alpha = sign * found.dual
            return SlackSolution(
                found.dual, found.intercept, alpha, alpha, None, 0.0, alpha,
                found.objective, found.dual_objective, found.gap, found.iterations,
                found.converged,
            )  # fmt: skip

        return solve

    def complete(self, solutions, C, penalty):
        """The solutions with their slack, for all machines in one product."""
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

    def _bounded(self, found, sign, C, penalty):
        """A solution that rounding keeps from being feasible, with a better bound.

        The objective of a hard-margin machine is that of its function scaled up until all rows
        meet their margins: it may have to be much, or nothing will do. Slack raised by a constant,
        whose norm is 1 at most, makes every function feasible.
        """
        rows = np.arange(self.gram.size)
        values = _values(self, found.dual[np.newaxis], rows, rows)[:, 0]
        short = 1.0 - sign * (values + found.intercept)
        if self.space is None:
            slack, squared = np.maximum(short, 0.0), 0.0
        else:
            alpha = (sign * found.dual)[:, np.newaxis]
            coordinates = self.space.coordinates(alpha, C, penalty)
            slack = self.space.values(coordinates)[:, 0]
            raised = max(0.0, float((short - slack).max()))
            slack, squared = slack + raised, (np.linalg.norm(coordinates) + raised) ** 2
        norms = float(found.dual @ values) + penalty * squared
        objective = 0.5 * (norms + C * float(self.weight @ slack**2))
        if not objective < found.objective:
            return found
        gap = found.gap if np.isnan(found.gap) else 1.0 - found.dual_objective / objective
        return replace(found, objective=objective, gap=max(0.0, gap))

    def _by_columns(self, sign, factor, options, report):
        """The solution over rows of x_i beside y_i times those of the factor."""
        turned = sign[:, np.newaxis] * factor
        gram = PrivilegedGram(self.gram, turned)
        problem = HingeProblem(gram, sign, 1.0, np.inf, separable=True)
        rows = np.hstack([self._columns, turned])
        return solve_hard_margin(problem, features=rows, **options, report=report)

    def _by_pairs(self, problem, start, options, report):
        """The solution by pairs of rows; if they crawl and the matrix is at hand, over all rows."""
        n, dual = problem.size, None if start is None else start.dual
        if self.matrix is None:
            return solve_hinge(problem, **options, dual=dual, report=report)
        limit = options["max_iter"]
        pairs = {**options, "max_iter": _CRAWL * n if limit < 0 else min(_CRAWL * n, limit // 2)}
        try:
            found = solve_hinge(problem, **pairs, dual=dual, exact=n <= _MOST_EXACT, report=report)
        except NotSeparableError:  # which rounding has made of a tiny margin
            done = 0
        else:
            if found.converged:
                return found
            done = found.iterations
        rest = {**options, "max_iter": -1 if limit < 0 else limit - done}
        found = solve_hard_margin(problem, **rest, report=report)
        return replace(found, iterations=done + found.iterations)

    def _few_columns(self):
        """The rows of X, if both sides are linear with few columns beside many rows; or None."""
        if self.space is None or not _is_linear(self.gram):
            return None
        n, X = self.gram.size, self.gram.X
        n_columns = X.shape[1] + self.space.vectors.shape[1]
        if n_columns > min(_MOST_COLUMNS, n / _ROWS_FOR_A_COLUMN):
            return None
        return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)

    def _grams(self, factor, ridge):
        """A function from signs to the Gram matrix of the machine."""
        if self.matrix is None:
            return lambda sign: GramCache(
                PrivilegedGram(self.gram, sign[:, np.newaxis] * factor, ridge), self.cache_bytes
            ).of()
        second = np.diag(ridge) if ridge is not None else tiled_product(factor, factor)
        known = self.positive_semidefinite
        own = threading.local()

        def gram_of(sign):
            if not hasattr(own, "sum"):
                own.sum = SignedSum(self.matrix, second, known)
            return own.sum.of(sign)

        return gram_of


class Hinge:
    """SVM1+, and without privileged columns the machine with the hinge loss.

    Parameters
    ----------
    gram : KernelGram or MatrixGram
        K.
    second : KernelGram, MatrixGram or None
        The Gram matrix of the privileged columns.
    space : SlackSpace or None
        The space of their functions, for small problems.
    weight : ndarray of shape (n,)
    cache_bytes : float
    jobs : int
        How many machines will be trained at once.
    """

    def __init__(self, gram, second, space, weight, cache_bytes, jobs):
        self.gram = gram
        self.space = space
        self.weight = weight
        self.positive_semidefinite = gram.positive_semidefinite
        self.matrix = self._second = None
        if second is None:
            self._cache = GramCache(gram, cache_bytes, shared=True, jobs=jobs)
        else:
            self.matrix = gram.block(slice(None), slice(None))
            self._second = second.block(slice(None), slice(None))
            self.positive_semidefinite &= second.positive_semidefinite
            self._low_rank = has_low_rank(second)

    def at(self, C, penalty, options):
        """A function from signs, a solution to start from and a report to a `SlackSolution`."""
        cost = C * self.weight
        if self._second is None:
            return lambda sign, start=None, report=None: self._plainly(sign, cost, options, report)
        factor = None if self.space is None else self.space.rows()

        def solve(sign, start=None, report=None):
            point = None if start is None else _moved(start.point, cost)
            found = solve_svm1plus(
                self.matrix, self._second, sign, cost, penalty,
                factor=factor, low_rank=self._low_rank, **options, point=point, report=report,
            )  # fmt: skip
            return found if self.positive_semidefinite else replace(found, gap=np.nan)

        return solve

    def complete(self, solutions, C, penalty):
        """Return the solutions, which have their slack."""
        return solutions

    def _plainly(self, sign, cost, options, report):
        found = solve_hinge(
            HingeProblem(self._cache.of(), sign, 1.0, cost), **options, report=report
        )
        alpha = np.abs(found.dual)
        return SlackSolution(
            found.dual, found.intercept, alpha, alpha, None, 0.0, np.vstack([alpha, cost - alpha]),
            found.objective, found.dual_objective, found.gap, found.iterations, found.converged,
        )  # fmt: skip


def small_enough(n: int, n_columns: int) -> bool:
    """Whether the exact end of `Hinge` can make use of a `SlackSpace`."""
    return min(n, n_columns) < active_set_options.most_unknowns


def collapsed(shared: SquaredHinge | Hinge, solutions) -> np.ndarray:
    """Numbers of the solutions whose function is 0, though their dual variables are not.

    Its norm is small beside what the rows would make if they did not cancel out, and too small to
    move any margin.
    """
    duals = np.vstack([solution.dual for solution in solutions])
    support = np.flatnonzero(duals.any(axis=0))
    duals = np.ascontiguousarray(duals[:, support])
    values = _values(shared, duals, support, support)
    squared = np.sum(duals.T * values, axis=0)
    diagonal = np.abs(shared.gram.diagonal())
    apart = np.abs(duals) @ np.sqrt(diagonal[support])
    done = np.array([solution.converged for solution in solutions])
    flat = squared * diagonal.mean() <= _FLAT**2
    return np.flatnonzero(done & flat & (squared <= _NOTHING**2 * apart**2))


def _values(shared, duals, rows, support) -> np.ndarray:
    """Values at some rows, without constants, of functions given by weights of support vectors."""
    gram, matrix = shared.gram, shared.matrix
    if matrix is None and _is_linear(gram):
        X = gram.X
        if sp.issparse(X):
            return np.asarray(X[rows] @ np.asarray(duals @ X[support]).T)
        weights = tiled_product(duals, np.ascontiguousarray(X[support].T))
        return tiled_multiply(X[rows], weights.T)
    step = max(1, _NORM_ENTRIES // max(1, len(support)))
    parts = [np.zeros((0, len(duals)))]
    for i in range(0, len(rows), step):
        own = rows[i : i + step]
        block = gram.block(own, support) if matrix is None else matrix[np.ix_(own, support)]
        parts.append(tiled_multiply(block, duals.T))
    return np.vstack(parts)


def _is_linear(gram):
    return isinstance(gram, KernelGram) and gram.function.name == "linear"


def has_low_rank(gram) -> bool:
    """Whether the kernel is linear with fewer columns than rows."""
    return _is_linear(gram) and gram.X.shape[1] < gram.size


def _moved(point, cost):
    """alpha and beta, feasible for other costs."""
    return point * (cost.sum() / point.sum())
