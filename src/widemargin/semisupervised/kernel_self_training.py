"""A kernel SVM that is trained repeatedly while the labels of some samples change.

All samples are part of the optimization problem from the start, unlabeled ones with a cost of 0,
which fixes their dual variables at 0. The solver ends with the decision values of all samples,
which the next round needs, and every round starts from the dual variables and the cached kernel
rows of the one before.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import run_in_slices
from widemargin._base.convergence import warn_if_not_converged
from widemargin._base.threads import single_threaded_blas
from widemargin.kernels import GramCache
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import KernelParameters
from widemargin.semisupervised.targets import PartialLabels
from widemargin.solvers import HingeProblem, Solution
from widemargin.solvers.hinge.shrinking import subtract_kernel_sum
from widemargin.solvers.hinge.smo import State, advance, finish, values_at


class KernelSamples:
    """All samples of a fit, the kernel with gamma as a number, and their Gram matrix.

    Parameters
    ----------
    estimator : estimator
        With the parameters of a kernel.
    data : PartialLabels
    excluded : ndarray, default=None
        Labeled samples that gamma must not depend on.
    """

    def __init__(
        self, estimator: Any, data: PartialLabels, excluded: np.ndarray | None = None
    ) -> None:
        self.X, weight = data.all_samples(), data.all_weights()
        used = None
        if excluded is not None:
            used = np.delete(np.arange(self.X.shape[0]), excluded)
            weight = None if weight is None else weight[used]
        self.kernel = KernelParameters.of(estimator).resolve(self.X, used, weight)
        self.gram = self.kernel.gram(self.X)


@dataclass(frozen=True)
class SolvedRound:
    """A solution over all samples, and their decision values."""

    solution: Solution
    scores: np.ndarray


class WarmStartedSVM:
    """A binary kernel SVM that is trained several times on the same samples.

    Parameters
    ----------
    gram : KernelGram or MatrixGram
        Gram matrix of all samples.
    cache_size : float
        Size of the kernel cache in MB.
    solver_options : dict
        Options of the solver.
    exact : ndarray, default=None
        Samples whose scores must be computed in float64. Those of others may use float32 kernel
        values.
    """

    def __init__(
        self,
        gram: Any,
        cache_size: float,
        solver_options: dict[str, Any],
        exact: np.ndarray | None = None,
    ) -> None:
        # Shared: cached rows of the whole matrix are used in several rounds.
        self.gram = GramCache(gram, int(cache_size * 2**20), shared=True)
        self.solver_options = solver_options
        self.exact = np.empty(0, dtype=np.intp) if exact is None else exact
        self.dual: np.ndarray | None = None
        self.values: np.ndarray | None = None
        self.iterations = 0
        self.not_converged: list[Solution] = []

    def train(self, sign: np.ndarray, cost: np.ndarray) -> SolvedRound:
        """Solve for these labels and costs, starting from the last solution.

        Parameters
        ----------
        sign : ndarray of shape (n_samples,)
            Labels 1 and -1. Ignored where the cost is 0.
        cost : ndarray of shape (n_samples,)

        Returns
        -------
        SolvedRound
        """
        problem = HingeProblem(self.gram.of(), sign, 1.0, cost)
        state = State(problem, **self.solver_options, **self._warm_start(problem))
        run_in_slices(advance, state)
        solution = finish(state)
        self.dual, self.values = solution.dual, values_at(state, self.exact)
        self.iterations += solution.iterations
        if not solution.converged:
            self.not_converged.append(solution)
        return SolvedRound(solution, self.values + solution.intercept)

    def swap_labels(self, first: np.ndarray, second: np.ndarray) -> None:
        """Swap the dual variables of pairs of samples whose labels are swapped."""
        if self.dual is not None:
            dual = self.dual.copy()
            dual[first], dual[second] = self.dual[second], self.dual[first]
            self._set_dual(dual)

    def warn_if_not_converged(self, max_iter: int, stacklevel: int) -> None:
        """Warn if the solver did not converge in some rounds."""
        warn_if_not_converged(self.not_converged, max_iter, False, stacklevel + 1)

    def _warm_start(self, problem: HingeProblem) -> dict[str, Any]:
        """Return the last solution, made feasible for the new labels and costs."""
        if self.dual is None:
            return {}
        # Balanced in every round: rounding errors of the sum would grow with the costs.
        dual = _balanced(np.clip(self.dual, *problem.bounds()))
        if (dual != self.dual).any():
            self._set_dual(dual)
        return {"dual": self.dual, "values": self.values}

    def _set_dual(self, dual: np.ndarray) -> None:
        assert self.values is not None
        subtract_kernel_sum(self.gram.of(), self.dual - dual, self.values)
        self.dual = dual


class BinaryKernelModelMixin:
    """Fitted attributes and scores of a binary kernel SVM."""

    def _set_solution(self, samples: KernelSamples, solution: Solution, tol: float) -> None:
        X, dual = samples.X, solution.dual
        expansion = KernelExpansion.from_dual(samples.kernel, X, dual, solution.intercept, tol)
        self._expansion = expansion
        support = np.concatenate([np.flatnonzero(dual < 0), np.flatnonzero(dual > 0)])
        self.support_ = support.astype(np.int32)
        self.n_support_ = np.array([(dual < 0).sum(), (dual > 0).sum()], dtype=np.int32)
        self.support_vectors_ = expansion.vectors
        coefficients = expansion.coefficients
        self.dual_coef_ = type(X)(coefficients) if sp.issparse(X) else coefficients
        self.intercept_ = np.atleast_1d(expansion.intercept)
        self.objective_, self.dual_gap_ = np.array([solution.objective]), np.array([solution.gap])

    @property
    def coef_(self) -> Any:
        """Coefficients of the features, for ``kernel='linear'``."""
        check_is_fitted(self)
        if self._expansion.parameters.kernel != "linear":
            raise AttributeError("coef_ is only available with a linear kernel.")
        with single_threaded_blas():
            return self.dual_coef_ @ self.support_vectors_

    def _score(self, X: Any) -> NDArray[np.float64]:
        return self._expansion.evaluate(X)[:, 0]


def _balanced(dual: np.ndarray) -> np.ndarray:
    """Return the dual variables with sum 0, reducing the largest ones of the excess sign."""
    excess = dual.sum()
    side = np.flatnonzero(dual * excess > 0.0)
    order = side[np.argsort(-np.abs(dual[side]), kind="stable")]
    before = np.cumsum(np.abs(dual[order])) - np.abs(dual[order])
    cut = np.clip(abs(excess) - before, 0.0, np.abs(dual[order]))
    dual[order] -= np.sign(excess) * cut
    return dual
