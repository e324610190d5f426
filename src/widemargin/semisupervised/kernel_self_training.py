"""A kernel SVM that is trained repeatedly while the labels of some samples change.

All samples are part of the optimization problem from the start, unlabeled ones with a cost of 0,
which fixes their dual variables at 0. The solver ends with the decision values of all samples,
which the next round needs, and every round starts from the dual variables and the cached kernel
rows of the one before.
"""

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from widemargin._base.callbacks import run_in_slices
from widemargin._base.convergence import warn_if_not_converged
from widemargin._base.sklearn_compat import Interval
from widemargin._base.threads import single_threaded_blas
from widemargin.kernels import GramCache
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import KernelParameters, kernel_constraints
from widemargin.semisupervised.self_training import RoundModel
from widemargin.semisupervised.split import NO_SPLIT, LabelSplit
from widemargin.semisupervised.targets import PartialLabels
from widemargin.solvers import HingeProblem, Solution
from widemargin.solvers.hinge.shrinking import subtract_kernel_sum
from widemargin.solvers.hinge.smo import State, advance, finish, values_at
from widemargin.svm.svc import SVC


class WarmStartedSVM:
    """A binary kernel SVM that is trained several times on the same samples.

    Parameters
    ----------
    estimator : estimator
        With the parameters of a kernel and of the solver.
    data : PartialLabels
    split : LabelSplit, default=NO_SPLIT
        Scores of validation and calibration samples are computed in float64; those of others may
        use float32 kernel values. Gamma does not depend on the calibration samples, which there
        are only without weights.
    """

    def __init__(self, estimator: Any, data: PartialLabels, split: LabelSplit = NO_SPLIT) -> None:
        self.estimator, self.X = estimator, data.X
        X, excluded = data.X, split.calibration
        self.exact = np.union1d(split.validation, excluded)
        used = np.delete(np.arange(X.shape[0]), excluded) if len(excluded) else None
        self.kernel = KernelParameters.of(estimator).resolve(X, used, data.weight)
        # Shared: cached rows of the whole matrix are used in several rounds.
        cache_bytes = int(estimator.cache_size * 2**20)
        self.gram = GramCache(self.kernel.gram(X), cache_bytes, shared=True)
        self.dual: Any = None
        self.values: Any = None
        self.iterations = 0
        self.not_converged: list[Solution] = []

    def train(self, sign: np.ndarray, cost: np.ndarray) -> RoundModel:
        """Solve for these labels and costs, starting from the last solution.

        Parameters
        ----------
        sign : ndarray of shape (n_samples,)
            Labels 1 and -1. Ignored where the cost is 0.
        cost : ndarray of shape (n_samples,)

        Returns
        -------
        RoundModel
            The solution, and the decision values of all samples.
        """
        problem = HingeProblem(self.gram.of(), sign, 1.0, cost)
        if self.dual is not None:
            # Balanced in every round: rounding errors of the sum would grow with the costs.
            self._set_dual(_balanced(np.clip(self.dual, *problem.bounds())))
        options = {"tol": self.estimator.tol, "max_iter": self.estimator.max_iter}
        state = State(problem, dual=self.dual, values=self.values, **options)
        run_in_slices(advance, state)
        solution = finish(state)
        self.dual, self.values = solution.dual, values_at(state, self.exact)
        self.iterations += solution.iterations
        if not solution.converged:
            self.not_converged.append(solution)
        return RoundModel(solution, self.values + solution.intercept)

    def swap_labels(self, first: np.ndarray, second: np.ndarray) -> None:
        """Swap the dual variables of pairs of samples whose labels are swapped."""
        dual = self.dual.copy()
        dual[first], dual[second] = self.dual[second], self.dual[first]
        self._set_dual(dual)

    def warn_if_not_converged(self, stacklevel: int) -> None:
        """Warn if the solver did not converge in some rounds."""
        warn_if_not_converged(self.not_converged, self.estimator.max_iter, False, stacklevel + 1)

    def _set_dual(self, dual: np.ndarray) -> None:
        if (dual != self.dual).any():
            subtract_kernel_sum(self.gram.of(), self.dual - dual, self.values)
            self.dual = dual


class BinaryKernelModelMixin:
    """Parameters, fitted attributes and scores of a binary kernel SVM."""

    _parameter_constraints: dict = {
        "C": [Interval(Real, 0.0, np.inf, closed="neither")],
        **kernel_constraints(pairwise=False),
        **{name: SVC._parameter_constraints[name] for name in ("tol", "cache_size", "max_iter")},
    }

    def _set_solution(self, svm: WarmStartedSVM, solution: Solution) -> None:
        X, dual, tol = svm.X, solution.dual, svm.estimator.tol
        expansion = KernelExpansion.from_dual(svm.kernel, X, dual, solution.intercept, tol)
        self._expansion = expansion
        sides = [np.flatnonzero(dual < 0), np.flatnonzero(dual > 0)]
        self.support_ = np.concatenate(sides).astype(np.int32)
        self.n_support_ = np.array([len(side) for side in sides], dtype=np.int32)
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
