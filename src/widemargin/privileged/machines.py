"""Binary machines whose slack is a function of the privileged columns, or free without them.

A `SquaredHinge` or `Hinge` holds what all classes, all C and all penalties have in common; its
``at(C, penalty)`` is a function from signs to a solution.
"""

import threading
from dataclasses import replace

import numpy as np

from widemargin._core.products import tiled_multiply, tiled_product
from widemargin.kernels import GramCache, KernelGram
from widemargin.kernels.privileged import PrivilegedGram, SignedSum
from widemargin.privileged.slack_space import SlackSpace
from widemargin.solvers import HingeProblem, solve_hinge
from widemargin.solvers.active_set import MOST_UNKNOWNS
from widemargin.solvers.smo import WHOLE_ROWS
from widemargin.solvers.svm1plus import SlackSolution, solve_svm1plus

_NORM_ENTRIES = 1 << 22
_NOTHING = 1e-6


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
        # Beyond so many rows the solver asks for rows and not for the matrix.
        whole = gram.size <= WHOLE_ROWS
        self._matrix = gram.block(slice(None), slice(None)) if whole else None

    def at(self, C, penalty, options):
        """A function from signs, a dual point to start from and a report to a `SlackSolution`."""
        n = self.gram.size
        factor = np.zeros((n, 0)) if self.space is None else self.space.factor(C, penalty)
        ridge = 1.0 / (C * self.weight) if self.space is None else None
        gram_of = self._grams(factor, ridge)

        def solve(sign, start=None, report=None):
            problem = HingeProblem(gram_of(sign), sign, 1.0, np.inf)
            dual = None if start is None else start.dual
            found = solve_hinge(problem, **options, dual=dual, report=report)
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

    def _grams(self, factor, ridge):
        """A function from signs to the Gram matrix of the machine."""
        if self._matrix is None:
            return lambda sign: GramCache(
                PrivilegedGram(self.gram, sign[:, np.newaxis] * factor, ridge), self.cache_bytes
            ).of()
        second = np.diag(ridge) if ridge is not None else tiled_product(factor, factor)
        known = self.gram.positive_semidefinite
        own = threading.local()

        def gram_of(sign):
            if not hasattr(own, "sum"):
                own.sum = SignedSum(self._matrix, second, known)
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
        self._second = None
        if second is None:
            self._cache = GramCache(gram, cache_bytes, shared=True, jobs=jobs)
        else:
            self._matrix = gram.block(slice(None), slice(None))
            self._second = second.block(slice(None), slice(None))

    def at(self, C, penalty, options):
        """A function from signs, a solution to start from and a report to a `SlackSolution`."""
        cost = C * self.weight
        if self._second is None:
            return lambda sign, start=None, report=None: self._plainly(sign, cost, options, report)
        factor = None if self.space is None else self.space.rows()

        def solve(sign, start=None, report=None):
            point = None if start is None else _moved(start.point, cost)
            return solve_svm1plus(
                self._matrix, self._second, sign, cost, penalty,
                factor=factor, **options, point=point, report=report,
            )  # fmt: skip

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
    return min(n, n_columns) < MOST_UNKNOWNS


def collapsed(gram, solutions) -> np.ndarray:
    """Numbers of the solutions whose function is 0, though their dual variables are not."""
    duals = np.vstack([solution.dual for solution in solutions])
    support = np.flatnonzero(duals.any(axis=0))
    duals = np.ascontiguousarray(duals[:, support])
    if isinstance(gram, KernelGram) and gram.function.name == "linear":
        squared = np.sum(np.asarray(duals @ gram.X[support]) ** 2, axis=1)
    else:
        squared = np.zeros(len(duals))
        step = max(1, _NORM_ENTRIES // max(1, len(support)))
        for i in range(0, len(support), step):
            values = tiled_multiply(gram.block(support[i : i + step], support), duals.T)
            squared += np.sum(duals[:, i : i + step] * values.T, axis=1)
    most = np.abs(duals) @ np.sqrt(np.abs(gram.diagonal()[support]))
    done = np.array([solution.converged for solution in solutions])
    return np.flatnonzero(done & (squared <= _NOTHING * most**2))


def _moved(point, cost):
    """alpha and beta, feasible for other costs."""
    return point * (cost.sum() / point.sum())
