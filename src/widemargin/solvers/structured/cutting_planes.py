"""Cutting planes for the structured problem with one slack.

    min over w   1/2 ||w - anchor||^2  +  H(w),      H = sum_i cost_i H_i

(H_i is defined in `structured.problem`). Every round adds a plane b_k - w . g_k that touches H from
below, and solves the problem with H replaced by the maximum of the planes so far, the constant 0
among them. In the dual that is a small problem over the simplex,

    max over alpha >= 0, sum alpha = 1    c . alpha - 1/2 alpha' G alpha
    G_kl = g_k . g_l,   c_k = b_k - anchor . g_k,   w = anchor + sum_k alpha_k g_k

It is solved from the solution of the last round by moving weight between two planes at a time, as
in SMO: the plane with the largest gradient takes it from the one for which the gain of the pair is
largest. The Gram matrix and the gradient are kept and grow by one row per round. Planes that have
had no weight for long are dropped (Joachims, Finley and Yu, 2009).

With a cache, a round first makes a plane from earlier results of the oracle, for each sample the
one that violates most at the current weights, and calls the oracle only if that plane is not
violated enough. Only rounds that call the oracle are iterations.

References
----------
T. Joachims, T. Finley, C.-N. Yu: Cutting-plane training of structural SVMs. Machine Learning 2009.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from widemargin._base.jit import compiled, uncompiled
from widemargin._base.numeric import TINY
from widemargin._base.options import structured_solver_options as options
from widemargin.solvers.free_set_newton import free_set_newton
from widemargin.solvers.structured.problem import SolverState, StructuredSolution, dot, dots
from widemargin.solvers.structured.simplex import simplex_optimum


def planes_at_cost(previous: dict[str, Any], cost: np.ndarray) -> dict[str, Any]:
    """Return the planes of an earlier solution, to start from at another cost.

    There are none if the costs did not all change by the same factor: a plane would then not stay
    below the sum of the losses.
    """
    before = previous["cost"]
    if "planes" not in previous or not (cost.any() and before.any()):
        return {}
    scale = cost.sum() / before.sum()
    if not np.allclose(cost, scale * before, rtol=1e-12, atol=0.0):
        return {}
    # The first plane is the constant 0.
    return {name: scale * previous[name][1:] for name in ("planes", "offsets")}


@dataclass(kw_only=True)
class CuttingPlanesState(SolverState):
    """State of the cutting-plane method.

    Parameters
    ----------
    cache : int, default=0
        Number of results of the oracle to keep for each sample.
    cache_tol : float, default=0.1
        A plane from the cache is used if its violation is at least this fraction of that of the
        latest plane of the oracle.
    inactive_window : int, default=50
        Rounds without weight after which a plane is dropped; 0 for never.
    later_oracle : object, optional
        Oracle to continue with once the first one finds nothing more, such as one whose inference
        is exact. The planes of the first are below the objective of both.
    planes : ndarray of shape (n_planes, size), optional
        Planes to start from, without the constant 0; then the current ones, with it.
    offsets : ndarray of shape (n_planes,), optional
        Their constants.
    """

    cache: int = 0
    cache_tol: float = 0.1
    inactive_window: int = 50
    later_oracle: Any = None
    # The first plane is the constant 0: it is the slack of the constraint sum alpha <= 1.
    planes: Any = ()
    offsets: Any = ()
    # Inner products of the planes, their weights, and the rounds since these were positive.
    gram: np.ndarray = field(init=False)
    weights: np.ndarray = field(init=False)
    idle: np.ndarray = field(init=False)
    # Labels returned by the oracle, newest last; they are not part of a checkpoint.
    cached_labels: list = field(default_factory=list)
    last_violation: float = np.inf
    # Rounds since the last call of the oracle; these are not iterations.
    cached_rounds: int = 0
    # Whether the later oracle is the current one.
    switched: bool = False

    saved = (
        "w", "planes", "offsets", "gram", "weights", "idle", "iterations", "last_violation",
        "switched",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        planes, offsets = self.planes, self.offsets
        self.planes, self.offsets = np.zeros((1, self.oracle.size)), np.zeros(1)
        self.gram, self.weights = np.zeros((1, 1)), np.ones(1)
        self.idle = np.zeros(1, dtype=np.int64)
        for plane, offset in zip(planes, offsets, strict=True):
            self.add_plane(plane, float(offset))
        if len(planes):
            self.solve_planes()

    def warm_start(self) -> dict[str, Any]:
        return {"planes": self.planes, "offsets": self.offsets}

    def expected(self, saved: dict[str, Any]) -> dict[str, Any]:
        n = len(saved["offsets"])
        shapes: dict[str, tuple[int, ...]]
        shapes = {"planes": (n, self.oracle.size), "offsets": (n,), "gram": (n, n), "weights": (n,)}
        arrays = {name: np.broadcast_to(0.0, shape) for name, shape in shapes.items()}
        return {**super().expected(saved), **arrays, "idle": np.broadcast_to(0, n)}

    def iterate(self) -> None:
        cached = self._cached_plane()
        if cached is None:
            self.iterations, self.cached_rounds = self.iterations + 1, 0
            self._add_oracle_plane()
        else:
            self.cached_rounds += 1
            self.add_plane(*cached)
        self.solve_planes()
        # Inference that is not exact may find nothing that changes the weights, while its bounds
        # leave a gap.
        least = options.plane_tol * self.tol * self.record.level
        stalled = self.last_violation <= least and not self.is_bounded
        done = self.record.has_converged(self.tol) or stalled
        if done and self.later_oracle is not None and not self.switched:
            self._switch()
            done = False
        self.finished = done or self.iterations >= self.max_iter

    def resume(self, saved: dict[str, Any]) -> Self:
        super().resume(saved)
        if self.switched:
            self.oracle = self.later_oracle
        elif self.finished and self.later_oracle is not None:
            self._switch()
        return self

    def _switch(self) -> None:
        self.oracle, self.switched, self.finished = self.later_oracle, True, False
        # Objectives of inference that is not exact may be too low.
        self.record.objective = self.record.bound = np.inf
        self.last_violation = np.inf

    def finish(self) -> StructuredSolution:
        if not self.record.curves["iteration"]:
            self._add_oracle_plane()
        return self.record.solution(self.iterations, self.tol)

    def add_plane(self, plane: np.ndarray, offset: float) -> None:
        """Add a plane without weight."""
        self.planes = np.concatenate([self.planes, plane[np.newaxis]])
        self.offsets = np.append(self.offsets, offset)
        row = dots(self.planes, plane)
        gram = np.empty((len(row), len(row)))
        gram[:-1, :-1], gram[-1], gram[:, -1] = self.gram, row, row
        self.gram = gram
        self.weights, self.idle = np.append(self.weights, 0.0), np.append(self.idle, 0)

    def solve_planes(self) -> None:
        """Solve over the planes from the current solution; drop planes idle for long."""
        level = self.record.level
        scale = max(level if np.isfinite(level) else 1.0, TINY)
        tol = options.plane_tol * self.tol * scale
        if self.is_bounded:
            self._solve_bounded(tol)
        else:
            self._solve_simplex(self._linear(), tol)
        self.idle = np.where(self.weights > 0.0, 0, self.idle + 1)
        self.idle[0] = 0
        stays = self.idle < (self.inactive_window or np.inf)
        if not stays.all():
            self.planes, self.offsets = self.planes[stays], self.offsets[stays]
            self.gram = np.ascontiguousarray(self.gram[np.ix_(stays, stays)])
            self.weights, self.idle = self.weights[stays], self.idle[stays]
        self.w = self.project(self._sum_planes() + self.anchor)

    def _add_oracle_plane(self) -> None:
        """Add the plane that touches the objective at the current weights."""
        weights = self.weights
        dual = self._dual_objective(weights, self._linear())
        if self.is_bounded:
            dual = self.lower_bound(self._sum_planes(), float(self.offsets @ weights))
        violations = self.record_at(self.w, dual)
        offset = float(np.sum(self.cost * violations.losses))
        if self.cache:
            self.last_violation = self._violation(violations.difference, offset)
        self.add_plane(violations.difference, offset)
        if self.cache:
            self.cached_labels = [*self.cached_labels, violations.labels][-self.cache :]

    def _cached_plane(self) -> tuple[np.ndarray, float] | None:
        """Return the most violated plane of the cache, or None if it is not violated enough."""
        few = self.cached_rounds < options.cached_rounds
        if not (self.cached_labels and few and np.isfinite(self.last_violation)):
            return None
        evaluate, w, cost = self.oracle.evaluate, self.w, self.cost
        slacks = np.array([evaluate(labels, w, cost)[1] for labels in self.cached_labels])
        best = slacks.argmax(axis=0)
        labels = [self.cached_labels[k][i] for i, k in enumerate(best)]
        losses, _, difference = evaluate(labels, w, cost)
        offset = float(np.sum(cost * losses))
        least = max(self.cache_tol * self.last_violation, self.tol * self.record.level)
        return (difference, offset) if self._violation(difference, offset) > least else None

    def _violation(self, plane: np.ndarray, offset: float) -> float:
        """Return by how much a plane exceeds the others at the current weights."""
        highest = float(np.max(self.offsets - dots(self.planes, self.w)))
        return offset - dot(self.w, plane) - highest

    def _dual_objective(self, weights: np.ndarray, linear: np.ndarray) -> float:
        return float(linear @ weights - 0.5 * weights @ self.gram @ weights)

    def _sum_planes(self) -> np.ndarray:
        total = np.zeros(self.oracle.size)
        for k in np.flatnonzero(self.weights):
            total += self.weights[k] * self.planes[k]
        return total

    def _solve_simplex(self, linear: np.ndarray, tol: float) -> int:
        """Solve over the planes for given linear terms; return the number of moves of weight."""
        steps, ends = 0, (np.zeros(len(linear)), np.ones(len(linear)))
        while steps < options.plane_steps:
            limit = options.steps_per_plane * len(linear)
            moves = simplex_ascent(self.gram, linear, self.weights, tol, limit)
            steps += moves
            if moves < limit:
                return steps
            # Moves between two planes converge slowly where many are nearly parallel.
            weights, residual = self.weights.copy(), linear - (self.gram * self.weights).sum(axis=1)
            if free_set_newton(self.gram, linear, *ends, weights, residual, True) < np.inf:
                self.weights = np.maximum(weights, 0.0)
        optimum = simplex_optimum(self.gram, linear)
        self.weights = max(self.weights, optimum, key=lambda a: self._dual_objective(a, linear))
        return steps

    def _solve_bounded(self, tol: float) -> None:
        """Solve over the planes and the multipliers of the bounds in turn, each exactly."""
        for _ in range(options.bound_rounds):
            total = self._sum_planes() + self.anchor
            linear = self._linear(self.anchor + self.project(total) - total)
            if self._solve_simplex(linear, tol) == 0:
                break

    def _linear(self, center: np.ndarray | None = None) -> np.ndarray:
        """Return the linear terms for a center of the regularization, by default the anchor."""
        center = self.anchor if center is None else center
        if not center.any():
            return self.offsets
        return self.offsets - dots(self.planes, center)


@compiled(work=lambda gram, *rest: 500.0 * len(gram))
def simplex_ascent(
    gram: np.ndarray, linear: np.ndarray, weights: np.ndarray, tol: float, most_steps: int
) -> int:
    """Maximize linear . a - 1/2 a' gram a over the simplex, from ``weights`` and in place.

    Stops when no move of weight between two coordinates gains at a rate of more than ``tol``.
    Returns the number of moves.
    """
    n = len(weights)
    gradient = linear.copy()
    for k in range(n):
        if weights[k] != 0.0:
            for j in range(n):
                gradient[j] -= weights[k] * gram[k, j]
    for step in range(most_steps):
        first = gradient.argmax()
        second, moved, highest, worst = -1, 0.0, 0.0, 0.0
        for k in range(n):
            excess = gradient[first] - gradient[k]
            if weights[k] > 0.0 and excess > 0.0:
                worst = max(worst, excess)
                curvature = gram[first, first] + gram[k, k] - 2.0 * gram[first, k]
                # The gain of the pair, with the step limited to the weight of the second.
                step_size = weights[k]
                if curvature > 0.0:
                    step_size = min(step_size, excess / curvature)
                gain = step_size * (excess - 0.5 * step_size * curvature)
                if gain > highest:
                    second, moved, highest = k, step_size, gain
        if worst <= tol or second < 0:
            return step
        weights[second] -= moved
        weights[first] += moved
        for j in range(n):
            gradient[j] -= moved * (gram[first, j] - gram[second, j])
    return most_steps


@uncompiled(simplex_ascent)
def _simplex_ascent_by_vectors(
    gram: np.ndarray, linear: np.ndarray, weights: np.ndarray, tol: float, most_steps: int
) -> int:
    gradient, diagonal = linear.copy(), gram.diagonal()
    for k in np.flatnonzero(weights):
        gradient -= weights[k] * gram[k]
    for step in range(most_steps):
        first = gradient.argmax()
        excess = gradient[first] - gradient
        movable = (weights > 0.0) & (excess > 0.0)
        curvature = gram[first, first] + diagonal - 2.0 * gram[first]
        sizes = np.where(curvature > 0.0, np.minimum(weights, excess / curvature), weights)
        gains = np.where(movable, sizes * (excess - 0.5 * sizes * curvature), 0.0)
        second = gains.argmax()
        if excess.max(initial=0.0, where=movable) <= tol or not gains[second] > 0.0:
            return step
        moved = sizes[second]
        weights[second] -= moved
        weights[first] += moved
        gradient -= moved * (gram[first] - gram[second])
    return most_steps
