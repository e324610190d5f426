"""What the solvers of the structured problem share.

    min over w   1/2 ||w - anchor||^2  +  sum_i cost_i * H_i(w)
    H_i(w) = max over y of   loss_i(y) - w . d_i(y)

where d_i(y) is the joint feature of the truth of sample i less that of y. An `Oracle` finds the
maximisers. Any convex combination of their losses and differences is a plane below the sum of the
H_i, which gives lower bounds: with planes g = sum_i cost_i d_i and b = sum_i cost_i loss_i

    min over w   1/2 ||w - anchor||^2 + b - w . g  =  b - anchor . g - 1/2 ||g||^2
"""

from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from widemargin._base.jit import compiled

_CURVES = ("iteration", "objective", "dual_objective", "gap", "seconds")
_ROUNDING = 1e-6


class Oracle(Protocol):
    """Training samples, as `widemargin.structured.oracle` makes them.

    Solvers need what is below up to `violations`, learners the rest. `FrankWolfeSSVM` makes its
    passes by ``sweep(order, state)`` if the oracle has it and it does not return False; a cache of
    answers needs ``labels`` of `violations` and ``evaluate``. Ensembles need ``threads``, ``extra``
    and ``rows`` in questions, ``task_losses``, ``best_states`` and ``true_rows``: see
    `widemargin.structured.oracle.PlainOracle`.
    """

    n_samples: int
    size: int

    def violation(self, i: int, w: np.ndarray, out: np.ndarray) -> tuple[float, float]:
        """Write d_i of the maximiser; return its loss and H_i."""

    def violations(self, w: np.ndarray, samples=None, weight=None) -> Any:
        """The same for many samples: losses, slacks, bounds, and the weighted sum of the d_i."""

    def inward(self, w: np.ndarray) -> np.ndarray:
        """Weights in the oracle's order, from the model's."""

    def outward(self, w: np.ndarray) -> np.ndarray:
        """Weights in the model's order, from the oracle's."""


@dataclass(frozen=True)
class StructuredSolution:
    """What a solver found.

    Attributes
    ----------
    w : ndarray of shape (size,)
    objective : float
        As far as inference could tell; above it is ``bound``.
    bound : float
        An upper bound on the objective where inference was not exact, else equal to it.
    dual_objective : float
        A lower bound on the objective of all w.
    gap : float
        (bound - dual_objective) / bound; nan if there is no upper bound, or none to believe in.
    iterations : int
        Passes over the samples, or rounds.
    converged : bool
    """

    w: np.ndarray
    objective: float
    bound: float
    dual_objective: float
    gap: float
    iterations: int
    converged: bool


@dataclass
class Record:
    """The best weights seen, the best lower bound, and how both came about."""

    w: np.ndarray
    objective: float = np.inf
    bound: float = np.inf
    dual: float = -np.inf
    curves: dict[str, list] = field(default_factory=lambda: {name: [] for name in _CURVES})
    spent: float = 0.0
    _since: float = field(default_factory=perf_counter)

    @property
    def gap(self) -> float:
        # An upper bound below a lower one shows that inference was not as exact as it claimed.
        least = self.dual - _ROUNDING * max(1.0, abs(self.dual))
        if not least <= self.bound < np.inf:
            return np.nan
        return max(0.0, self.bound - self.dual) / max(self.bound, np.finfo(float).tiny)

    @property
    def level(self) -> float:
        """What gaps are measured by: the upper bound, or the objective if there is none."""
        return self.bound if np.isfinite(self.bound) else self.objective

    def settled(self, tol: float) -> bool:
        """Whether the gap is closed; where it is unknown, whether inference finds nothing more."""
        gap = self.gap
        if np.isnan(gap):
            gap = (self.level - self.dual) / max(self.level, np.finfo(float).tiny)
        return bool(gap <= tol)

    def enter(self, iteration: int, w: np.ndarray, objective: float, bound: float, dual: float):
        """Take note of weights, of their objective and of a lower bound."""
        if objective < self.objective:
            self.objective, self.bound, self.w = objective, bound, w.copy()
        self.dual = max(self.dual, dual)
        line = iteration, self.objective, self.dual, self.gap, self.seconds()
        for name, value in zip(_CURVES, line, strict=True):
            self.curves[name].append(value)

    def seconds(self) -> float:
        return self.spent + perf_counter() - self._since

    def solution(self, iterations: int, tol: float) -> StructuredSolution:
        bounds = self.objective, self.bound, self.dual
        return StructuredSolution(self.w, *bounds, self.gap, iterations, bool(self.gap <= tol))

    def numbers(self) -> dict:
        """All of it as plain arrays and numbers, for a checkpoint."""
        curves = {name: np.array(values, dtype=float) for name, values in self.curves.items()}
        scalars = {"objective": self.objective, "bound": self.bound, "dual": self.dual}
        return {"w": self.w, **scalars, "spent": self.seconds(), "curves": curves}

    @classmethod
    def of(cls, numbers: dict) -> "Record":
        curves = {name: list(values) for name, values in numbers["curves"].items()}
        return cls(**{**numbers, "curves": curves})


class SomeSamples:
    """Some samples of an oracle, as an oracle of their own.

    Parameters
    ----------
    oracle : Oracle
        One whose `violation` takes ``extra``, if that is given.
    samples : ndarray of int
    extra : list of ndarray, optional
        For each of ``samples`` what its outputs gain: added to their losses, less what the truth
        would gain.
    """

    def __init__(self, oracle, samples, extra=None):
        self.oracle, self.samples, self.extra = oracle, np.asarray(samples), extra
        self.n_samples, self.size = len(self.samples), oracle.size

    def violation(self, i, w, out):
        """Write the difference of sample ``i`` and return its loss and slack."""
        if self.extra is None:
            return self.oracle.violation(self.samples[i], w, out)
        _, slack = self.oracle.violation(self.samples[i], w, out, extra=self.extra[i])
        return slack + dot(w, out), slack

    def violations(self, w, samples=None, weight=None):
        """The same for many samples."""
        chosen = np.arange(self.n_samples) if samples is None else np.asarray(samples)
        gains = {} if self.extra is None else {"extra": [self.extra[i] for i in chosen]}
        return self.oracle.violations(w, samples=self.samples[chosen], weight=weight, **gains)

    def sweep(self, order, state):
        """A pass over the samples in compiled code, where there is one."""
        sweep = getattr(self.oracle, "sweep", None)
        return sweep is not None and sweep(order, state, self.samples, self.extra)


def upper_bounds(oracle, w, cost, anchor):
    """The objective at ``w``, what it is at most, and the plane that touches it there."""
    found = oracle.violations(w, weight=cost)
    distance = w if anchor is None else w - anchor
    base = 0.5 * dot(distance, distance)
    objective = base + float(np.sum(cost * found.slacks))
    counts = cost > 0.0  # no bound times no cost is nothing
    return objective, base + float(np.sum(cost[counts] * found.bounds[counts])), found


def lower_bound(gradient, loss, anchor):
    """The least of 1/2 ||w - anchor||^2 + loss - w . gradient."""
    moved = 0.0 if anchor is None else dot(anchor, gradient)
    return loss - moved - 0.5 * dot(gradient, gradient)


@compiled
def dot(a, b):
    """The inner product, with the same bits however many threads BLAS has."""
    sums = np.zeros(8)
    whole = len(a) - len(a) % 8
    for j in range(0, whole, 8):
        for k in range(8):
            sums[k] += a[j + k] * b[j + k]
    for j in range(whole, len(a)):
        sums[0] += a[j] * b[j]
    return sums.sum()
