"""What solvers that take one row after another share: their rows, their order, their states."""

from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp


class Resumable:
    """A state of which `numbers` are all that is needed to go on elsewhere."""

    kept: ClassVar[tuple[str, ...]]
    """Names of the attributes that change."""

    def numbers(self) -> dict[str, object]:
        """The state as plain arrays and numbers, for a checkpoint."""
        return {name: getattr(self, name) for name in self.kept}

    def resume(self, numbers: dict) -> Self:
        """Go on from the `numbers` of another state of the same problem."""
        for name, value in numbers.items():
            setattr(self, name, value.copy() if isinstance(value, np.ndarray) else value)
        return self


class Passing(Resumable):
    """A state whose ``counts`` begin with what is told here, as compiled code keeps it."""

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

    def end(self, *, finished: bool, converged: bool) -> None:
        """Say whether the work is over, and whether by the tolerance."""
        self.counts[FINISHED], self.counts[CONVERGED] = finished, converged


PASSES, FINISHED, CONVERGED = range(3)


def flat_rows(X):
    """The arrays behind the rows of a dense or CSR matrix; a dense one has no indices."""
    if not sp.issparse(X):
        return X.ravel(), None, None
    # Unsigned: compiled code need not ask whether an index counts from the end.
    return X.data, X.indices.view(np.uint32), X.indptr.view(np.uint32)


def entries(X) -> int:
    """How many numbers a pass over the rows reads."""
    return X.nnz if sp.issparse(X) else X.size


def random_state(seed: int) -> np.ndarray:
    """The state of the compiled generators."""
    return np.array([seed ^ 0x9E3779B97F4A7C15], dtype=np.uint64)
