r"""The structured problem: what its solvers share.

    min over w   1/2 ||w - anchor||^2  +  sum_i cost_i * H_i(w)
    H_i(w) = max over y of   loss_i(y) - w . d_i(y)

where d_i(y) is the joint feature of the true output of sample i minus that of y. An oracle
finds the maximizers. Any convex combination of their losses and differences is a plane below the
sum of the H_i, which gives lower bounds: with g = sum_i cost_i d_i and b = sum_i cost_i loss_i

    min over w   1/2 ||w - anchor||^2 + b - w . g  =  b - anchor . g - 1/2 ||g||^2

With bounds floor <= w <= ceiling the minimum is at the projection of anchor + g onto them. Bounds
of 0 are constraints on signs, which keep pairwise terms submodular.

An oracle is an object with these attributes and methods, which all solvers need:

- ``n_samples`` and ``size``, the numbers of samples and of weights;
- ``violation(i, w, out)`` writes d_i of the maximizer to ``out`` and returns its loss and H_i;
- ``violations(w, samples=None, weight=None)`` returns losses, slacks, bounds and the weighted sum
  of the d_i of several samples;
- ``from_model_order(w)`` and ``to_model_order(w)`` return weights in the order of the oracle, from
  the order of the model, and the reverse.

Solvers run their passes in compiled code where an oracle has ``frank_wolfe_pass`` (with
``empty_blocks`` and ``sum_blocks``), ``subgradient_pass`` or ``perceptron_pass``; `PerceptronState`
needs ``mistakes`` otherwise. The cache of `CuttingPlanesState` needs ``labels`` of `violations` and
``evaluate``. Ensembles need ``threads``, the arguments ``extra`` and ``rows``, ``task_losses``,
``best_states`` and ``true_joint_features``: see `widemargin.structured.oracles.PlainOracle`.

A solver is a subclass of `SolverState`: `advance` does one pass or round, `finish` returns the
solution, `to_dict` and `resume` save and restore the state as plain arrays.
"""

from dataclasses import KW_ONLY, dataclass, field
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np

from widemargin._base.jit import compiled, uncompiled
from widemargin._base.numeric import TINY
from widemargin._base.options import structured_solver_options as options

_CURVES = ("iteration", "objective", "dual_objective", "gap", "seconds")


@dataclass(frozen=True)
class StructuredSolution:
    """Solution of the structured problem.

    Attributes
    ----------
    w : ndarray of shape (size,)
        Weights.
    objective : float
        Objective with the outputs that inference returned.
    bound : float
        Upper bound on the objective, equal to it where inference is exact.
    dual_objective : float
        Lower bound on the objective of all w.
    gap : float
        (bound - dual_objective) / bound; nan if there is no upper bound, or if it is below the
        lower one.
    iterations : int
        Passes over the samples, or rounds.
    converged : bool
        Whether the gap is at most tol.
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
    """The best weights and lower bound so far, and the curves of both."""

    w: np.ndarray
    objective: float = np.inf
    bound: float = np.inf
    dual: float = -np.inf
    curves: dict[str, list] = field(default_factory=lambda: {name: [] for name in _CURVES})
    spent: float = 0.0
    _since: float = field(default_factory=perf_counter)

    @property
    def gap(self) -> float:
        """Relative duality gap, nan where it is not known."""
        # An upper bound below a lower one shows that inference was not exact.
        least = self.dual - options.bound_rounding * max(1.0, abs(self.dual))
        if not least <= self.bound < np.inf:
            return np.nan
        return max(0.0, self.bound - self.dual) / max(self.bound, TINY)

    @property
    def level(self) -> float:
        """The upper bound, or the objective if there is none: gaps are relative to it."""
        return self.bound if np.isfinite(self.bound) else self.objective

    def has_converged(self, tol: float) -> bool:
        """Return whether the gap, or the gap of the objective if it is unknown, is at most tol."""
        gap = self.gap
        if np.isnan(gap):
            gap = (self.level - self.dual) / max(self.level, TINY)
        return bool(gap <= tol)

    def add(
        self, iteration: int, w: np.ndarray, objective: float, bound: float, dual: float
    ) -> None:
        """Add weights with their objective, and a lower bound."""
        if objective < self.objective:
            self.objective, self.bound, self.w = objective, bound, w.copy()
        self.dual = max(self.dual, dual)
        line = iteration, self.objective, self.dual, self.gap, self.seconds()
        for name, value in zip(_CURVES, line, strict=True):
            self.curves[name].append(value)

    def seconds(self) -> float:
        """Return the seconds spent so far, those before a checkpoint included."""
        return self.spent + perf_counter() - self._since

    def solution(self, iterations: int, tol: float) -> StructuredSolution:
        """Return the best weights as a solution."""
        bounds = self.objective, self.bound, self.dual
        return StructuredSolution(self.w, *bounds, self.gap, iterations, bool(self.gap <= tol))

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain arrays and numbers, for a checkpoint."""
        curves = {name: np.array(values, dtype=float) for name, values in self.curves.items()}
        scalars = {"objective": self.objective, "bound": self.bound, "dual": self.dual}
        return {"w": self.w, **scalars, "spent": self.seconds(), "curves": curves}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> "Record":
        """Return the record that `to_dict` saved."""
        curves = {name: list(values) for name, values in saved["curves"].items()}
        return cls(**{**saved, "curves": curves})


@dataclass
class SolverState:
    """State of a solver of the structured problem; subclasses define the steps.

    Parameters
    ----------
    oracle : PlainOracle, GraphOracle or OracleSubset
        Loss-augmented inference on the samples.
    cost : ndarray of shape (n_samples,)
        Non-negative factors of the H_i.
    anchor : ndarray of shape (size,), optional
        Center of the regularization; 0 by default.
    tol : float, default=1e-3
        Relative duality gap at which to stop.
    max_iter : int, default=1000
        Largest number of iterations: of passes over the samples, or of rounds.
    w : ndarray of shape (size,), optional
        Weights to start from, then the current weights; the anchor by default.
    seed : int, default=0
        Seed of the order of the samples.
    floor, ceiling : ndarray of shape (size,), optional
        Bounds on the weights: 0, or minus and plus infinity.

    Attributes
    ----------
    record : Record
        The best weights and bounds so far.
    random : Generator
        Random generator of the order of the samples.
    iterations : int
        Iterations so far.
    finished : bool
        Whether the solver has converged or reached max_iter.
    """

    oracle: Any
    cost: np.ndarray
    _: KW_ONLY
    anchor: Any = None
    tol: float = 1e-3
    max_iter: int = 1000
    w: Any = None
    seed: int = 0
    floor: Any = None
    ceiling: Any = None
    record: Record = field(init=False)
    random: np.random.Generator = field(init=False)
    iterations: int = 0
    finished: bool = False

    # Names of the arrays and numbers that make up the state of a subclass.
    saved: ClassVar[tuple[str, ...]] = ("w", "iterations")

    def __post_init__(self) -> None:
        self.cost = np.asarray(self.cost, dtype=float)
        self.anchor = np.zeros(self.oracle.size) if self.anchor is None else self.anchor
        self.w = self.project(self.anchor if self.w is None else self.w)
        self.record, self.random = Record(self.w.copy()), np.random.default_rng(self.seed)

    @property
    def is_bounded(self) -> bool:
        """Whether there are bounds on the weights."""
        return self.floor is not None

    def project(self, w: np.ndarray) -> np.ndarray:
        """Return a copy of weights, moved to the nearest within the bounds."""
        w = np.array(w, dtype=float)
        return np.clip(w, self.floor, self.ceiling) if self.is_bounded else w

    def lower_bound(self, gradient: np.ndarray, loss: float) -> float:
        """Return the minimum of 1/2 ||w - anchor||^2 + loss - w . gradient within the bounds."""
        if not self.is_bounded:
            return lower_bound(gradient, loss, self.anchor)
        w = self.project(self.anchor + gradient)
        distance = w - self.anchor
        return loss + 0.5 * dot(distance, distance) - dot(w, gradient)

    def advance(self) -> bool:
        """Do one iteration; return whether the solver is finished."""
        if not self.finished and self.iterations < self.max_iter:
            self.iterate()
        return self.finished or self.iterations >= self.max_iter

    def iterate(self) -> None:
        """Do one iteration; update `iterations`, `record` and `finished`."""
        raise NotImplementedError

    def finish(self) -> StructuredSolution:
        """Return the solution at the current state."""
        raise NotImplementedError

    def record_at(self, w: np.ndarray, dual: float) -> Any:
        """Add ``w``, its objective and a lower bound to the record; return the violations."""
        objective, bound, violations = upper_bounds(self.oracle, w, self.cost, self.anchor)
        self.record.add(self.iterations, w, objective, bound, dual)
        return violations

    def warm_start(self) -> dict[str, Any]:
        """Return the arrays from which another fit can start."""
        return {"w": self.record.w}

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers, for a checkpoint."""
        plain = {name: getattr(self, name) for name in self.saved}
        random = self.random.bit_generator.state
        return {**plain, "random": random, "record": self.record.to_dict()}

    can_be_saved = True

    def numbers(self) -> dict[str, Any]:
        """Return the state as a `TaskCheckpoint` saves it."""
        return self.to_dict()

    def expected(self, saved: dict[str, Any]) -> dict[str, Any]:
        """Return a state to check another `to_dict` of the same problem with.

        A solver with arrays that change their shapes returns those of ``saved``, see
        `widemargin._base.checkpoint.check_state`.
        """
        generator = type(self.random.bit_generator)()
        generator.state = saved["random"]
        if saved["random"]["state"]["inc"] % 2 == 0:
            raise ValueError("the random generator repeats itself")
        checks = len(saved["record"]["curves"]["iteration"])
        curves = {name: np.full(checks, np.nan) for name in _CURVES}
        fresh = Record(self.w).to_dict()
        record = {**fresh, "curves": curves}
        return {**self.to_dict(), "random": generator.state, "record": record}

    def resume(self, saved: dict[str, Any]) -> Self:
        """Continue from the `to_dict` of another state of the same problem."""
        saved = dict(saved)
        self.random.bit_generator.state = saved.pop("random")
        self.record = Record.from_dict(saved.pop("record"))
        for name, value in saved.items():
            setattr(self, name, value)
        self.finished = self.record.has_converged(self.tol)
        return self


@dataclass(kw_only=True)
class PassState(SolverState):
    """State of a solver that makes passes over the samples and checks the gap now and then.

    Parameters
    ----------
    check_every : int, default=10
        Passes between two checks of the gap.
    """

    check_every: int = 10

    def run_pass(self) -> None:
        """Make one pass over the samples."""
        raise NotImplementedError

    def check_gap(self) -> None:
        """Add weights and bounds to the record."""
        raise NotImplementedError

    def iterate(self) -> None:
        self.run_pass()
        self.iterations += 1
        last = self.iterations >= self.max_iter
        if last or self.iterations % self.check_every == 0:
            self.check_gap()
            self.finished = last or self.record.has_converged(self.tol)

    def finish(self) -> StructuredSolution:
        checked = self.record.curves["iteration"]
        if not checked or (not self.finished and checked[-1] != self.iterations):
            self.check_gap()
        return self.record.solution(self.iterations, self.tol)


class OracleSubset:
    """Some samples of an oracle, as an oracle.

    Parameters
    ----------
    oracle : PlainOracle, GraphOracle or OracleSubset
        Its `violation` and `violations` take ``extra`` if that is given here.
    samples : ndarray of int
        The samples.
    extra : list of ndarray, optional
        Terms added to the scores of the states of the parts of each of ``samples``. They count as
        loss, relative to their value at the true output.
    """

    def __init__(self, oracle: Any, samples: Any, extra: list[np.ndarray] | None = None) -> None:
        self.oracle, self.samples, self.extra = oracle, np.asarray(samples), extra
        self.n_samples, self.size = len(self.samples), oracle.size

    def violation(self, i: Any, w: np.ndarray, out: np.ndarray) -> tuple[float, float]:
        """Write the difference of sample ``i`` and return its loss and slack."""
        if self.extra is None:
            return self.oracle.violation(self.samples[i], w, out)
        _, slack = self.oracle.violation(self.samples[i], w, out, extra=self.extra[i])
        return slack + dot(w, out), slack

    def violations(self, w: np.ndarray, samples: Any = None, weight: Any = None) -> Any:
        """Return the violations of several samples."""
        chosen = np.arange(self.n_samples) if samples is None else np.asarray(samples)
        extra = {} if self.extra is None else {"extra": [self.extra[i] for i in chosen]}
        return self.oracle.violations(w, samples=self.samples[chosen], weight=weight, **extra)

    def empty_blocks(self) -> Any:
        """Return blocks for compiled passes, or None."""
        make = getattr(self.oracle, "empty_blocks", None)
        return None if make is None else make(self.samples)

    def sum_blocks(self, blocks: np.ndarray, pairs: np.ndarray, cost: np.ndarray) -> np.ndarray:
        """Return the sum of such blocks."""
        return self.oracle.sum_blocks(blocks, pairs, cost, self.samples)

    def frank_wolfe_pass(self, order: np.ndarray, state: Any) -> None:
        """Run a pass over the samples in compiled code."""
        self.oracle.frank_wolfe_pass(order, state, self.samples, self.extra)


def upper_bounds(
    oracle: Any, w: np.ndarray, cost: np.ndarray, anchor: Any
) -> tuple[float, float, Any]:
    """Return the objective at ``w``, an upper bound on it, and the violations there."""
    violations = oracle.violations(w, weight=cost)
    return *bounds_of(violations.slacks, violations.bounds, w, cost, anchor), violations


def bounds_of(
    slacks: np.ndarray, bounds: np.ndarray, w: np.ndarray, cost: np.ndarray, anchor: Any
) -> tuple[float, float]:
    """Return the objective at ``w`` and an upper bound on it, from slacks and their bounds."""
    distance = w if anchor is None else w - anchor
    base = 0.5 * dot(distance, distance)
    counts = cost > 0.0  # an infinite bound times a cost of 0 is 0
    bound = base + float(np.sum(cost[counts] * bounds[counts]))
    return base + float(np.sum(cost * slacks)), bound


def lower_bound(gradient: np.ndarray, loss: float, anchor: np.ndarray) -> float:
    """Return the minimum of 1/2 ||w - anchor||^2 + loss - w . gradient."""
    return loss - dot(anchor, gradient) - 0.5 * dot(gradient, gradient)


@compiled
def dot(a: np.ndarray, b: np.ndarray) -> float:
    """Return the inner product, with the same bits for any number of BLAS threads."""
    sums = np.zeros(8)
    whole = len(a) - len(a) % 8
    for j in range(0, whole, 8):
        for k in range(8):
            sums[k] += a[j + k] * b[j + k]
    for j in range(whole, len(a)):
        sums[0] += a[j] * b[j]
    return sum_in_order(sums)


@compiled
def dots(rows: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Return the inner product of each row with a vector."""
    products = np.empty(len(rows))
    for k in range(len(rows)):
        products[k] = dot(rows[k], vector)
    return products


@uncompiled(dots)
def _dots_by_vectors(rows: np.ndarray, vector: np.ndarray) -> np.ndarray:
    terms, whole = rows * vector, len(vector) - len(vector) % 8
    sums = np.zeros((len(rows), 8))
    for j in range(0, whole, 8):
        sums += terms[:, j : j + 8]
    for j in range(whole, len(vector)):
        sums[:, 0] += terms[:, j]
    return np.add.accumulate(sums, axis=1)[:, -1]


@compiled
def sum_in_order(values: np.ndarray) -> float:
    """Return the sum with the same bits uncompiled, where NumPy adds in another order."""
    total = 0.0
    for value in values:
        total += value
    return total
