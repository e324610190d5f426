"""Cutting planes for the structured problem with one slack for each sample.

    min over w   1/2 ||w - anchor||^2  +  sum_i cost_i H_i(w)

(H_i is defined in `structured.problem`). Every sample has a working set of planes b_k - w . g_k
that touch H_i from below, the constant 0 among them. Every round adds the plane at the current
weights to the set of each sample where it is above all others, and solves the problem with each H_i
replaced by the maximum of its planes. In the dual that is a problem over a product of simplices,

    max over alpha_i in the simplex    sum_i cost_i b_i . alpha_i  -  1/2 ||v||^2  -  anchor . v
    v = sum_i cost_i sum_k alpha_ik g_ik,   w = anchor + v

It is solved by sweeps over the samples, from the solution of the last round: with the other samples
fixed, that of one sample is the problem over planes of `structured.cutting_planes`. Bounds on the
weights are a further block, whose solution is a projection. Where the sweeps converge slowly, an
interior-point method solves over all planes. Planes that have had no weight for long are dropped
(Tsochantaridis et al., 2005; Joachims, Finley and Yu, 2009).

References
----------
I. Tsochantaridis, T. Joachims, T. Hofmann, Y. Altun: Large margin methods for structured and
interdependent output variables. JMLR 2005.
T. Joachims, T. Finley, C.-N. Yu: Cutting-plane training of structural SVMs. Machine Learning 2009.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.numeric import TINY
from widemargin._base.options import structured_solver_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.solvers.structured.cutting_planes import simplex_ascent
from widemargin.solvers.structured.problem import SolverState, StructuredSolution, bounds_of, dot
from widemargin.solvers.structured.simplex import simplex_optimum


@dataclass(kw_only=True)
class WorkingSetsState(SolverState):
    """State of the cutting-plane method with one slack for each sample.

    Parameters
    ----------
    batch_size : int, optional
        Number of samples after which the problem over the planes is solved; all by default.
    inactive_window : int, default=50
        Rounds without weight after which a plane is dropped; 0 for never.
    planes : ndarray of shape (n_planes, size), optional
        Planes of all samples, sample by sample; that of the constant 0 is the first of each.
    offsets, weights : ndarray of shape (n_planes,), optional
        Their constants and weights. The weights of a sample add up to 1.
    first : ndarray of shape (n_samples + 1,), optional
        The first plane of each sample, and the number of planes.
    """

    batch_size: int | None = None
    inactive_window: int = 50
    planes: Any = None
    offsets: Any = None
    weights: Any = None
    first: Any = None
    # Rounds since the weight of a plane was positive.
    idle: np.ndarray = field(init=False)
    # The sum v of the planes.
    total: np.ndarray = field(init=False)

    saved = ("w", "planes", "offsets", "weights", "first", "idle", "total", "iterations")

    def __post_init__(self) -> None:
        super().__post_init__()
        n = self.oracle.n_samples
        if self.planes is None:
            self.planes, self.offsets = np.zeros((n, self.oracle.size)), np.zeros(n)
            self.weights, self.first = np.ones(n), np.arange(n + 1)
        self.idle = np.zeros(len(self.offsets), dtype=np.int64)
        self.total = np.zeros(self.oracle.size)
        if len(self.offsets) > n:
            self._sum_planes()
            self.solve_planes()

    def warm_start(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("planes", "offsets", "weights", "first")}

    def expected(self, saved: dict[str, Any]) -> dict[str, Any]:
        n = len(saved["offsets"])
        if not _is_partition(saved["first"], self.oracle.n_samples, n):
            raise ValueError("the planes do not belong to the samples")
        return {
            **super().expected(saved),
            "planes": np.broadcast_to(0.0, (n, self.oracle.size)),
            **{name: np.broadcast_to(0.0, n) for name in ("offsets", "weights")},
            "idle": np.broadcast_to(0, n),
        }

    def iterate(self) -> None:
        self.iterations += 1
        n = self.oracle.n_samples
        size = n if self.batch_size is None else self.batch_size
        batches = [np.arange(n)[begin : begin + size] for begin in range(0, n, size)]
        is_stuck = True
        for batch in batches:
            violations = self.oracle.violations(self.w, samples=batch, rows=True)
            if len(batches) == 1:
                upper = bounds_of(
                    violations.slacks, violations.bounds, self.w, self.cost, self.anchor
                )
                self.record.add(self.iterations, self.w, *upper, self._lower())
            n_added = self._add_planes(batch, violations)
            moved = self.solve_planes(None if len(batches) == 1 else batch)
            is_stuck &= n_added == 0 and not moved
        if len(batches) > 1:
            is_stuck &= not self.solve_planes()
            self.record_at(self.w, self._lower())
        # Without new planes and moves of weight further rounds would be the same.
        converged = is_stuck or self.record.has_converged(self.tol)
        self.finished = converged or self.iterations >= self.max_iter

    def finish(self) -> StructuredSolution:
        if not self.record.curves["iteration"]:
            self.record_at(self.w, self._lower())
        return self.record.solution(self.iterations, self.tol)

    def solve_planes(self, samples: np.ndarray | None = None) -> bool:
        """Solve over the planes; return whether any weight moved.

        With ``samples``, the weights of the planes of other samples do not change. Without, planes
        idle for long are dropped.
        """
        chosen = np.full(len(self.cost), samples is None)
        chosen[[] if samples is None else samples] = True
        gram, begin = block_grams(self.planes, self.first, chosen)
        floor, ceiling = self.floor, self.ceiling
        if not self.is_bounded:
            floor, ceiling = (np.full(len(self.w), sign * np.inf) for sign in (-1, 1))
        # Samples that did not move in the last sweep are left out until no other moves.
        active, total = chosen.copy(), 0
        for _ in range(options.plane_sweeps):
            whole = np.array_equal(active, chosen)
            moves = sweep(
                gram, begin, self.planes, self.offsets, self.first, self.cost, self.anchor, floor,
                ceiling, self.weights, self.total, self.w, self._plane_tol(), options.plane_steps,
                active,
            )  # fmt: skip
            total += moves
            if moves == 0 and whole:
                break
            if moves == 0:
                active[:] = chosen
        else:
            if samples is None:
                self._solve_jointly()
        if samples is not None:
            return total > 0
        self.idle = np.where(self.weights > 0.0, 0, self.idle + 1)
        self.idle[self.first[:-1]] = 0
        if self.inactive_window and self.idle.max() >= self.inactive_window:
            self._select(self.idle < self.inactive_window)
        return total > 0

    def _solve_jointly(self) -> None:
        """Solve over all planes by an interior-point method if that is affordable."""
        count = np.diff(self.first)
        which = np.flatnonzero(np.repeat((count > 1) & (self.cost > 0.0), count))
        if self.is_bounded or len(which) > options.interior_planes:
            return
        sample = np.repeat(np.arange(len(count)), count)[which]
        scaled = self.cost[sample, np.newaxis] * self.planes[which]
        with single_threaded_blas():
            gram, linear = scaled @ scaled.T, self.cost[sample] * self.offsets[which]
            linear = linear - scaled @ self.anchor
        optimum = simplex_optimum(gram, linear, np.unique(sample, return_inverse=True)[1])
        before, lower = (self.weights, self.total, self.w), self._lower()
        self.weights = self.weights.copy()
        self.weights[which] = optimum
        self._sum_planes()
        if self._lower() < lower:
            self.weights, self.total, self.w = before

    def _sum_planes(self) -> None:
        """Compute the weights of the model from those of the planes."""
        self.total = np.zeros(self.oracle.size)
        shares = np.repeat(self.cost, np.diff(self.first)) * self.weights
        for k in np.flatnonzero(shares):
            self.total += shares[k] * self.planes[k]
        self.w = self.project(self.anchor + self.total)

    def _add_planes(self, batch: np.ndarray, violations: Any) -> int:
        """Add the planes that are violated enough; return their number."""
        least = highest_planes(self.planes, self.offsets, self.first, batch, self.w)
        new = self.cost[batch] * (violations.slacks - least) > self._plane_tol()
        # After the planes of their samples.
        at = self.first[batch[new] + 1]
        self.planes = np.insert(self.planes, at, violations.difference[new], axis=0)
        self.offsets = np.insert(self.offsets, at, violations.losses[new])
        self.weights, self.idle = np.insert(self.weights, at, 0.0), np.insert(self.idle, at, 0)
        grown = np.zeros(len(self.cost), dtype=np.int64)
        grown[batch[new]] = 1
        self.first = self.first + np.concatenate([[0], np.cumsum(grown)])
        return int(new.sum())

    def _select(self, stays: np.ndarray) -> None:
        """Drop all planes but some."""
        self.first = np.concatenate([[0], np.cumsum(stays)])[self.first]
        for name in ("planes", "offsets", "weights", "idle"):
            setattr(self, name, getattr(self, name)[stays])

    def _plane_tol(self) -> float:
        """Return the accuracy of the problem over the planes of one sample."""
        level, lower = self.record.level, self.record.dual
        if not np.isfinite(level):
            return options.plane_tol * self.tol / len(self.cost)
        # While the gap is large, an accurate solution over few planes is of no use.
        accuracy = max(options.plane_tol * self.tol * level, options.gap_share * (level - lower))
        return max(accuracy, TINY) / len(self.cost)

    def _lower(self) -> float:
        """Return the lower bound of the current weights of the planes."""
        shares = np.repeat(self.cost, np.diff(self.first)) * self.weights
        return self.lower_bound(self.total, float(np.sum(shares * self.offsets)))


def _is_partition(first: np.ndarray, n_samples: int, n_planes: int) -> bool:
    """Return whether every sample has planes."""
    ends = first.shape == (n_samples + 1,) and first[0] == 0 and first[-1] == n_planes
    return bool(ends and (np.diff(first) > 0).all())


@compiled
def highest_planes(
    planes: np.ndarray, offsets: np.ndarray, first: np.ndarray, samples: np.ndarray, w: np.ndarray
) -> np.ndarray:
    """Return the maximum of the planes of each of some samples at weights."""
    highest = np.zeros(len(samples))
    for j in range(len(samples)):
        for k in range(first[samples[j]] + 1, first[samples[j] + 1]):
            highest[j] = max(highest[j], offsets[k] - dot(w, planes[k]))
    return highest


@compiled
def block_grams(
    planes: np.ndarray, first: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the inner products of the planes of chosen samples, flat, and where each begins."""
    begin = np.zeros(len(first), dtype=np.int64)
    for i in range(len(first) - 1):
        begin[i + 1] = begin[i] + ((first[i + 1] - first[i]) ** 2 if chosen[i] else 0)
    gram = np.empty(begin[-1])
    for i in range(len(first) - 1):
        n = first[i + 1] - first[i] if chosen[i] else 0
        for a in range(n):
            for b in range(a + 1):
                product = dot(planes[first[i] + a], planes[first[i] + b])
                gram[begin[i] + a * n + b] = product
                gram[begin[i] + b * n + a] = product
    return gram, begin


@compiled
def sweep(
    gram: np.ndarray, begin: np.ndarray, planes: np.ndarray, offsets: np.ndarray, first: np.ndarray,
    cost: np.ndarray, anchor: np.ndarray, floor: np.ndarray, ceiling: np.ndarray,
    weights: np.ndarray, total: np.ndarray, w: np.ndarray, tol: float, most_steps: int,
    active: np.ndarray,
) -> int:  # fmt: skip
    """Solve over the planes of each active sample in turn, in place; return the number of moves.

    ``total`` is the sum of the planes, and ``w`` is anchor + total within the bounds.
    """
    moves = 0
    for i in range(len(cost)):
        n = first[i + 1] - first[i]
        if n == 1 or cost[i] == 0.0 or not active[i]:
            active[i] = False
            continue
        block = weights[first[i] : first[i + 1]]
        square = cost[i] ** 2 * gram[begin[i] : begin[i + 1]].reshape(n, n)
        linear, before = np.empty(n), block.copy()
        for k in range(n):
            linear[k] = cost[i] * (offsets[first[i] + k] - dot(w, planes[first[i] + k]))
            for j in range(n):
                linear[k] += square[k, j] * block[j]
        moved = simplex_ascent(square, linear, block, tol, most_steps)
        active[i] = moved > 0
        if moved == 0:
            continue
        moves += moved
        for k in range(1, n):
            change = cost[i] * (block[k] - before[k])
            if change != 0.0:
                total += change * planes[first[i] + k]
        for j in range(len(w)):
            w[j] = min(max(anchor[j] + total[j], floor[j]), ceiling[j])
    return moves
