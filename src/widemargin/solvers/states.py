"""State classes that solvers share, and the codes of the counters in their compiled code."""

from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from widemargin.solvers.jit import random_state
from widemargin.solvers.stopping import initial_tol, next_tol

# Entries of `PassState.counts`: passes over the samples, whether the solver has finished and
# whether it has converged, the number of samples in this pass, the position in it.
PASSES, FINISHED, CONVERGED, ACTIVE, POSITION = range(5)


class Resumable:
    """A state that can be saved as plain arrays and numbers, and resumed from them.

    Parameters are not saved: a state may be resumed with others. Whether it has finished depends on
    them, so that this is not saved either.
    """

    # Names of the arrays and numbers that are saved.
    saved: ClassVar[tuple[str, ...]]
    gap_tol: float | None = None

    @property
    def can_be_saved(self) -> bool:
        """Return whether `numbers` are the whole state: an interior-point method begins anew."""
        return getattr(self, "interior", None) is None

    def numbers(self) -> dict[str, Any]:
        """Return what makes up the state as arrays and numbers, for a checkpoint."""
        return {name: getattr(self, name) for name in self._names()}

    def resume(self, numbers: dict[str, Any]) -> Self:
        """Continue from the `numbers` of another state of the same problem."""
        for name in numbers.keys() & self._names():
            setattr(self, name, copy(numbers[name]))
        return self

    def _names(self) -> set[str]:
        # A solver that stops on the gap lowers its tolerance, which is a parameter otherwise.
        return {*self.saved} if self.gap_tol is None else {*self.saved, "tol"}


@dataclass
class PassState(Resumable):
    """State of a solver whose compiled code counts passes over the samples in ``counts``.

    Parameters
    ----------
    problem : LinearProblem or CrammerSingerProblem
    tol : float, default=1e-4
        Tolerance on the violation of the optimality conditions.
    gap_tol : float, optional
        Relative duality gap to stop at, instead of ``tol``.
    max_iter : int, default=1000
        Maximum number of passes over the samples; -1 for no limit.
    seed : int, default=0
        Seed of the order of the samples.
    dual : ndarray, optional
        Dual variables to start from, then the current ones; 0 if not given.
    """

    problem: Any
    _: KW_ONLY
    tol: float = 1e-4
    gap_tol: float | None = None
    max_iter: int = 1000
    seed: int = 0
    dual: Any = None
    worked: float = 0.0
    """Work since the last Newton step, which is taken when it costs no more than that."""

    saved: ClassVar[tuple[str, ...]] = ("dual", "worked", "random", "counts")

    def __post_init__(self) -> None:
        self.tol = initial_tol(self.tol, self.gap_tol)
        self.max_iter = self.max_iter if self.max_iter >= 0 else np.iinfo(np.int64).max
        self.random = random_state(self.seed)
        # The last two entries are for the solver.
        self.counts = np.array([0, 0, 0, self.problem.size, 0, 0, 0])

    @property
    def iterations(self) -> int:
        return int(self.counts[PASSES])

    @property
    def finished(self) -> bool:
        return bool(self.counts[FINISHED])

    @property
    def converged(self) -> bool:
        return bool(self.counts[CONVERGED])

    def resume(self, numbers: dict[str, Any]) -> Self:
        super().resume(numbers).set_status(finished=False, converged=False)
        return self

    def set_status(self, *, finished: bool, converged: bool) -> None:
        """Set whether the solver has finished, and whether it has converged."""
        self.counts[FINISHED], self.counts[CONVERGED] = finished, converged

    def finish_or_tighten(self, gap: float, rounded: bool = False) -> None:
        """Finish, as the tolerance is met, or lower it if the gap is not small enough.

        Parameters
        ----------
        gap : float
        rounded : bool, default=False
            Whether the violation is as small as rounding permits.
        """
        closed = self.gap_tol is None or gap <= self.gap_tol
        tol = next_tol(self.tol, closed=closed, rounded=rounded)
        self.tol = self.tol if tol is None else tol
        self.set_status(finished=tol is None, converged=closed)
