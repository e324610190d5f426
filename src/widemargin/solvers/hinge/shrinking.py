"""Shrinking: solve the hinge problem over the samples that are not held at a bound.

Once half of the samples are at a bound, and their residuals indicate that they will stay there, the
problem is solved over the others alone. Rows of its Gram matrix are shorter, more of them fit into
memory, and the problem may become small enough for a dense matrix. Afterwards the residual of the
removed samples is brought up to date, and the solver continues if any of them violates now.

Shrinking may be applied repeatedly: the active sets form a stack.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin._base.options import smo_options as options
from widemargin._base.threads import for_each
from widemargin.kernels import Gram
from widemargin.kernels.dense import DenseMatrix
from widemargin.solvers.hinge.pairs import residual_extremes, subtract_columns
from widemargin.solvers.stopping import rounding_floor


@dataclass
class ActiveSet:
    """Samples that the solver works on, and the state of their dual variables.

    The first active set has all samples. A smaller one has copies of the entries of its ``index``
    in the one before it, which keeps its values until `unshrink`.
    """

    index: np.ndarray
    gram: Gram
    dual: np.ndarray
    residual: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    diagonal: np.ndarray
    largest: float
    """Largest absolute value of the Gram matrix."""
    dense: DenseMatrix | None = None
    """The Gram matrix as an array for small problems; otherwise rows come from ``gram``."""

    @property
    def size(self) -> int:
        return len(self.dual)

    @property
    def free(self) -> np.ndarray:
        """Whether each dual variable is strictly between its bounds."""
        return (self.lower < self.dual) & (self.dual < self.upper)

    def extremes(self) -> tuple[float, float]:
        """Return the highest residual that can rise and the lowest that can fall."""
        return residual_extremes(self.dual, self.residual, self.lower, self.upper)

    def violation(self, intercept: bool) -> float:
        """Return the largest violation of the optimality conditions by a pair of samples.

        Without an intercept, that by a single sample.
        """
        highest, lowest = self.extremes()
        return highest - lowest if intercept else max(highest, -lowest, 0.0)

    def rounding(self) -> float:
        """Return the size of violations that are rounding errors of the residual."""
        return rounding_floor(float(np.abs(self.dual).sum()) * self.largest)

    def update_residual(self, change: np.ndarray) -> None:
        """Compute residual -= K change."""
        if self.dense is None:
            subtract_kernel_sum(self.gram, change, self.residual)
        else:
            moved = np.flatnonzero(change)
            subtract_rows(self.dense.rows(moved), moved, change[moved], self.residual)

    def subset(self, index: np.ndarray, dense: bool = False) -> "ActiveSet":
        """Return the active set of some of the samples.

        It has a dense matrix if it is small, or with ``dense``.
        """
        gram, matrix = self.gram, None
        if self.dense is not None:
            matrix = self.dense.subset(index)
        elif dense or len(index) <= options.dense_size:
            copied = gram.float64_rows and gram.dense is not None
            matrix = gram.dense.subset(index) if copied else DenseMatrix(gram.block(index, index))
        else:
            gram = gram.subset(index)
        names = ("dual", "residual", "lower", "upper", "diagonal")
        arrays = {name: getattr(self, name)[index] for name in names}
        return replace(self, index=index, gram=gram, dense=matrix, **arrays)


def shrink(state: Any) -> bool:
    """Continue without the samples held at a bound, if they are many; return whether they are.

    Before the first update of a variable only samples of cost 0 are held.

    Parameters
    ----------
    state : State
        State of the solver (see `smo`).
    """
    active = state.active
    if not state.shrinking or state.hard or active.size < options.shrink_size:
        return False
    held = active.lower == active.upper
    if state.rounds > 0:
        highest, lowest = active.extremes() if state.problem.intercept else (0.0, 0.0)
        held |= (active.dual <= active.lower) & (active.residual < lowest)
        held |= (active.dual >= active.upper) & (active.residual > highest)
    if np.count_nonzero(held) < options.shrink_share * active.size:
        return False
    state.active_sets.append(active.subset(np.flatnonzero(~held)))
    state.working_set = state.working_set[:0]
    return True


def unshrink(state: Any) -> None:
    """Continue with the samples before the last `shrink`, whose residual is updated."""
    smaller = state.active_sets.pop()
    active, index = state.active, smaller.index
    smaller.gram = active.gram  # frees the cached rows of the smaller set
    change = np.zeros(active.size)
    change[index] = smaller.dual - active.dual[index]
    active.update_residual(change)
    active.dual[index], active.residual[index] = smaller.dual, smaller.residual
    state.working_set = state.working_set[:0]


def subtract_kernel_sum(gram: Gram, change: np.ndarray, residual: np.ndarray) -> None:
    """Compute residual -= K change in place."""
    moved = np.flatnonzero(change)
    size = min(options.working_set_size, gram.max_rows)
    for i in range(0, len(moved), size):
        chunk = moved[i : i + size]
        subtract_rows(*gram.rows(chunk), change[chunk], residual)


def subtract_rows(
    rows: np.ndarray, positions: np.ndarray, change: np.ndarray, residual: np.ndarray
) -> None:
    """Compute residual -= change' rows[positions] in place, with threads over columns."""
    columns = options.update_columns

    def subtract(first: int) -> None:
        subtract_columns(rows, positions, change, residual, first, first + columns)

    for_each(subtract, range(0, len(residual), columns))
