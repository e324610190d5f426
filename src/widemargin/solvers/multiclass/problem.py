"""The multi-class problem of Crammer and Singer: one problem over the functions of all classes.

    min over f   1/2 sum_k ||f_k||^2
                 + sum_i cost_i * max_k (margin_i 1[k != y_i] + f_k(x_i) - f_y_i(x_i))

Its dual, with f_k = sum_i alpha_ik k(x_i, .):

    max over alpha   sum_i margin_i alpha_iy_i - 1/2 sum_k ||f_k||^2
    subject to       sum_k alpha_ik = 0,   alpha_iy_i <= cost_i,   alpha_ik <= 0 for k != y_i

The dual variables of one sample at a time are set to their optimal values with those of all others
fixed (Keerthi et al., 2008). With g_k = f_k(x_i) + margin_i 1[k != y_i], curvature a = k(x_i, x_i),
bounds u_k and top_k = g_k + a (u_k - alpha_k), they are

    alpha_k = u_k - max(0, top_k - level) / a    where   sum_k max(0, top_k - level) = a cost_i

which is exact and needs no search. A sample is optimal when no g_k exceeds the least one among the
classes that are not at their bound; ``tol`` bounds the largest excess, as in liblinear.

These steps converge slowly where features are ill-conditioned. If few variables are not at their
bounds, Newton steps on these (see `newton`) come between the passes.

`linear` keeps the weights of linear functions, `kernel` the scores of all samples over a Gram
matrix. The constant feature ``bias`` stands for an intercept: it adds bias^2 to every kernel value.

References
----------
K. Crammer, Y. Singer: On the algorithmic implementation of multiclass kernel-based vector
machines. JMLR 2001.
S. S. Keerthi, S. Sundararajan, K.-W. Chang, C.-J. Hsieh, C.-J. Lin: A sequential dual method for
large scale multi-class linear SVMs. KDD 2008.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from widemargin._base import extended
from widemargin._base.extended import Pair
from widemargin._base.options import smo_options as options
from widemargin.solvers.solution import Solution, relative_gap
from widemargin.solvers.states import PassState


@dataclass(frozen=True)
class CrammerSingerProblem:
    """Arrays and numbers that define the problem, apart from the samples.

    Parameters
    ----------
    label : ndarray of shape (n,)
        Integers from 0 to ``n_classes - 1``.
    cost : ndarray of shape (n,)
        Positive and finite.
    n_classes : int
    margin : ndarray of shape (n,), optional
        Positive; 1 for all samples if not given.
    bias : float, default=0.0
        Value of the constant feature; 0 for no intercept.
    """

    label: np.ndarray
    cost: np.ndarray
    n_classes: int
    margin: np.ndarray = None  # type: ignore[assignment]
    bias: float = 0.0

    def __post_init__(self) -> None:
        label, cost = np.asarray(self.label, np.int64), np.asarray(self.cost, np.float64)
        margin = np.ones(len(label)) if self.margin is None else self.margin
        vars(self).update(label=label, cost=cost, margin=np.asarray(margin, np.float64))

    @property
    def size(self) -> int:
        return len(self.label)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the dual variables."""
        return self.size, self.n_classes

    def subset(self, index: np.ndarray) -> "CrammerSingerProblem":
        """Return the problem of some of the samples."""
        return CrammerSingerProblem(
            self.label[index], self.cost[index], self.n_classes, self.margin[index], self.bias
        )

    @cached_property
    def upper(self) -> np.ndarray:
        """The upper bounds of the dual variables."""
        upper = np.zeros(self.shape)
        upper[np.arange(self.size), self.label] = self.cost
        return upper

    def gradients(self, scores: np.ndarray) -> np.ndarray:
        """Return g of all classes and samples, from scores of shape (n_classes, n)."""
        gradients = scores + self.margin
        gradients[self.label, np.arange(self.size)] -= self.margin
        return gradients

    def make_feasible(self, dual: np.ndarray) -> np.ndarray:
        """Return a feasible copy of dual variables, which may be those of other labels or costs."""
        others = np.array(dual, dtype=np.float64)
        if others.shape != self.shape:
            raise ValueError(f"dual must have shape {self.shape}, got {others.shape}.")
        samples = np.arange(self.size)
        others = np.minimum(others, 0.0)
        others[samples, self.label] = 0.0
        total = -others.sum(axis=1)
        too_large = total > self.cost
        others *= np.divide(self.cost, total, out=np.ones_like(total), where=too_large)[
            :, np.newaxis
        ]
        others[samples, self.label] = np.minimum(-others.sum(axis=1), self.cost)
        return others


@dataclass
class CrammerSingerState(PassState):
    """State of both solvers."""

    problem: CrammerSingerProblem

    def __post_init__(self) -> None:
        super().__post_init__()
        make_feasible, shape = self.problem.make_feasible, self.problem.shape
        self.dual = np.zeros(shape) if self.dual is None else make_feasible(self.dual)

    def certify(
        self, scores: Pair, norm: float, known: bool, errors: Any = 0.0, **others: Any
    ) -> Solution:
        """Return the solution at the dual point, with the bound that it gives.

        Parameters
        ----------
        scores : Pair of ndarray of shape (n_classes, n)
            With their rounding errors.
        norm : float
            sum_k ||f_k||^2.
        known : bool
            Whether the kernel is known to be positive semidefinite.
        errors : ndarray of shape (n,) or float, default=0.0
            Bounds of the rounding errors of the scores.
        **others
            ``bound_norm``, the squared norm of the functions of the dual point where they are not
            those of the scores, and fields of the `Solution`.
        """
        problem, dual = self.problem, self.dual.copy()
        samples, label = np.arange(problem.size), problem.label
        label_scores = [array[label, samples] for array in scores]
        total, rest = extended.two_sum(scores[0], -label_scores[0])
        loss = (total + problem.margin) + (rest + (scores[1] - label_scores[1]))
        loss[label, samples] = 0.0
        objective = 0.5 * norm + float(np.sum(problem.cost * loss.max(axis=0)))
        bound_norm = others.pop("bound_norm", norm)
        bound = float(np.sum(problem.margin * dual[samples, label])) - 0.5 * bound_norm
        error = float(np.sum((2.0 * problem.cost + np.abs(dual).sum(axis=1)) * errors))
        rounded = error > options.negligible_rounding * objective
        gap = relative_gap(objective, bound - error if rounded else bound, known)
        fields = {"rounded": rounded, **others}
        return Solution(dual, 0.0, objective, bound, gap, self.iterations, self.converged, **fields)
