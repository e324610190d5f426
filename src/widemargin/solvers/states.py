"""State classes that solvers share, and the codes of the counters in their compiled code."""

from typing import ClassVar, Self

import numpy as np

# Entries of `PassState.counts`: passes over the samples, whether the solver has finished and
# whether it has converged, the number of samples in this pass, the position in it.
PASSES, FINISHED, CONVERGED, ACTIVE, POSITION = range(5)


class Resumable:
    """A state that can be saved as plain arrays and numbers, and resumed from them."""

    kept: ClassVar[tuple[str, ...]]
    """Names of the attributes that change."""

    def numbers(self) -> dict[str, object]:
        """Return the attributes that change, for a checkpoint."""
        return {name: getattr(self, name) for name in self.kept}

    def resume(self, numbers: dict) -> Self:
        """Restore the `numbers` of another state of the same problem."""
        for name, value in numbers.items():
            setattr(self, name, value.copy() if isinstance(value, np.ndarray) else value)
        return self


class PassState(Resumable):
    """State of a solver whose compiled code counts passes over the samples in ``counts``."""

    counts: np.ndarray

    @property
    def iterations(self) -> int:
        return int(self.counts[PASSES])

    @property
    def finished(self) -> bool:
        return bool(self.counts[FINISHED])

    @property
    def converged(self) -> bool:
        return bool(self.counts[CONVERGED])

    def set_status(self, *, finished: bool, converged: bool) -> None:
        """Set whether the solver has finished, and whether it has converged."""
        self.counts[FINISHED], self.counts[CONVERGED] = finished, converged
