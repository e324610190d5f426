"""Ensembles of structured SVMs whose weight vectors repel each other.

    min over W   alpha * E(u_1, .., u_M)  +  sum_m [ 1/2 ||w_m||^2 + sum_k cost_k H_k(w_m) ]
    E = sum_{i < j} ||u_i - u_j||^-s,    u_m = w_m / ||w_m||

with H_k as in `structured.problem`. E is the energy of charges on a sphere, and the force on
member m is minus its gradient,

    F_m = sum_j s (u_m - u_j) / ||u_m - u_j||^(s + 2)

`advance_subgradient` takes a subgradient step of size eta_t = 1 / (t0 + t) on the problem of each
member and rotates the member by the force,

    w_m <- w_m - eta_t (w_m - N / n_m sum_{k of m} cost_k d_k)  +  ||w_m|| (P(u_m + eta_t alpha F_m)
    - u_m)

where P normalizes and n_m of N samples are assigned to the member. The rotation is a heuristic: it
does not depend on the norm of w_m, whereas the gradient of the energy in w_m has a factor
1 / ||w_m||. The iterate with the least objective is returned. There, too, a member counts only the
samples assigned to it, since members that specialize are worse on all others; each assigned sample
counts M N / sum_m n_m times, so that members have N samples on average. A factor of N / n_m for
each member would compare iterates by the slacks of the members with the fewest samples.

`advance_anchored` solves the condition for a stationary point: with the tangential force f_m =
alpha (F_m - u_m u_m . F_m) / ||w_m|| held fixed, w_m minimizes 1/2 ||w - f_m||^2 + sum_k cost_k
H_k(w), a convex problem. The step of all members towards its solution is halved until the objective
decreases, for which assigned samples have the same factor here as in the objective.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.numeric import TINY
from widemargin._base.options import coulomb_options
from widemargin._base.threads import for_each
from widemargin.solvers.structured.frank_wolfe import solve_frank_wolfe
from widemargin.solvers.structured.problem import OracleSubset

_SAVED = ("W", "best", "converged", "objective", "iterations")


def coulomb_energy(W: np.ndarray, exponent: float = 1.0) -> float:
    """Return the energy of the directions of weight vectors, each pair counted once."""
    return _repulsion(_directions(W)[0], exponent, coulomb_options.nearest)[0]


def coulomb_forces(U: np.ndarray, exponent: float = 1.0) -> np.ndarray:
    """Return minus the gradient of the energy in each of the unit vectors ``U``."""
    return _repulsion(np.asarray(U, dtype=float), exponent, coulomb_options.nearest)[1]


def rotation(W: np.ndarray, step: float, exponent: float = 1.0) -> np.ndarray:
    """Return the change of weights that rotates them by ``step`` times the force on them."""
    U, norms = _directions(W)
    target = U + step * coulomb_forces(U, exponent)
    return norms[:, np.newaxis] * (_directions(target)[0] - U)


@dataclass
class CoulombState:
    """State of the optimization of an ensemble.

    Attributes
    ----------
    oracle : PlainOracle, GraphOracle or OracleSubset
        The samples.
    cost : ndarray of shape (n_samples,)
        Costs of the slacks.
    alpha, exponent : float
        Strength and exponent of the repulsion.
    assign : callable
        ``assign(W, random)`` returns the samples that each member is trained on; None assigns all
        samples to every member.
    random : numpy.random.Generator
        Source of random numbers.
    W : ndarray of shape (n_members, size)
        Weights.
    max_iter : int
        Number of steps or rounds.
    check_every : int
        Subgradient steps between two evaluations of the objective.
    offset : float
        Offset t0 of the step sizes.
    fix_first : bool
        Whether the first member does not change.
    tol : float
        Relative duality gap of the convex problems of `advance_anchored`.
    passes : int
        Largest number of passes over the samples of these problems.
    bounds : dict of ndarray
        Bounds ``floor`` and ``ceiling`` on the weights; empty if there are none.
    clusters : sequence of ndarray
        The samples of each member in the first ``cluster_steps`` steps or rounds, instead of those
        that ``assign`` returns.
    cluster_steps : int
        Number of these steps or rounds.
    score_all : bool
        Whether the recorded objective counts all samples for every member, not the assigned ones:
        for assignments that are a random draw from all samples.
    best : ndarray of shape (n_members, size)
        Weights with the least objective so far.
    converged : ndarray of shape (n_members,)
        Whether the convex problems of the last anchored round were solved to ``tol``.
    """

    oracle: Any
    cost: np.ndarray
    alpha: float
    exponent: float
    assign: Callable[[np.ndarray, np.random.Generator], Sequence[np.ndarray]] | None
    random: np.random.Generator
    W: np.ndarray
    max_iter: int
    check_every: int
    offset: float
    fix_first: bool = False
    tol: float = 1e-3
    passes: int = 50
    bounds: dict[str, Any] = field(default_factory=dict)
    clusters: Sequence[np.ndarray] = ()
    cluster_steps: int = 0
    score_all: bool = False
    best: np.ndarray = field(init=False)
    converged: np.ndarray = field(init=False)
    objective: float = np.inf
    iterations: int = 0
    curves: dict[str, list] = field(
        default_factory=lambda: {name: [] for name in ("iteration", "objective", "energy", "risk")}
    )

    def __post_init__(self) -> None:
        self.best, self.converged = self.W.copy(), np.ones(len(self.W), dtype=bool)

    can_be_saved = True

    def numbers(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers, for a checkpoint."""
        plain = {name: getattr(self, name) for name in _SAVED}
        curves = {name: np.array(values) for name, values in self.curves.items()}
        return {**plain, "curves": curves, "random": self.random.bit_generator.state}

    def resume(self, saved: dict[str, Any]) -> None:
        """Continue from the `numbers` of another state of the same problem."""
        for name in _SAVED:
            setattr(self, name, saved[name])
        self.curves = {name: values.tolist() for name, values in saved["curves"].items()}
        self.random.bit_generator.state = saved["random"]

    def for_each_member(self, function: Callable[[int], Any]) -> list:
        """Return ``function(m)`` of all members, computed in the threads of the oracle."""
        return for_each(function, range(len(self.W)), getattr(self.oracle, "threads", 1))

    def assigned(self) -> Sequence[np.ndarray]:
        """Return the samples that each member is trained on."""
        if self.assign is None:
            return self.all_samples()
        if self.iterations < self.cluster_steps:
            return self.clusters
        return self.assign(self.W, self.random)

    def all_samples(self) -> Sequence[np.ndarray]:
        """Return all samples, for each member."""
        return [np.arange(len(self.cost))] * len(self.W)

    def evaluate(self, W: np.ndarray, assigned: Sequence) -> tuple[float, float, float]:
        """Return the objective, its energy and its risk on the assigned samples."""

        def slacks(m: int) -> np.ndarray:
            return self.oracle.violations(W[m], samples=assigned[m]).slacks

        return self.total(W, assigned, self.for_each_member(slacks))

    def total(
        self, W: np.ndarray, assigned: Sequence, slacks: Sequence
    ) -> tuple[float, float, float]:
        """Return the objective, its energy and its risk, from the slacks of assigned samples."""
        energy = coulomb_energy(W, self.exponent)
        losses = sum(
            float(np.sum(self.cost[samples] * slack))
            for samples, slack in zip(assigned, slacks, strict=True)
        )
        risk = 0.5 * float(np.sum(W**2)) + self.repeats(assigned) * losses
        return self.alpha * energy + risk, energy, risk

    def repeats(self, assigned: Sequence) -> float:
        """Return how often an assigned sample counts, so that members have N samples on average."""
        return len(self.W) * len(self.cost) / sum(map(len, assigned))

    def record_objective(self) -> None:
        """Evaluate and record the objective."""
        assigned = self.all_samples() if self.score_all else self.assigned()
        self.record(*self.evaluate(self.W, assigned)[1:])

    def record(self, energy: float, risk: float) -> None:
        """Record the objective of the current weights, and the weights if they are the best."""
        objective = self.alpha * energy + risk
        if objective < self.objective:
            self.objective, self.best = objective, self.W.copy()
        line = self.iterations, objective, energy, risk
        for name, value in zip(self.curves, line, strict=True):
            self.curves[name].append(value)


def advance_subgradient(state: CoulombState) -> bool:
    """Take a subgradient step with every member; return whether the optimization has ended."""
    assigned, W, cost = state.assigned(), state.W, state.cost

    def violations(m: int) -> Any:
        return state.oracle.violations(W[m], samples=assigned[m], weight=cost[assigned[m]])

    results = state.for_each_member(violations)
    if state.iterations % state.check_every == 0:
        if state.score_all:
            state.record_objective()
        else:
            state.record(*state.total(W, assigned, [result.slacks for result in results])[1:])
    eta = 1.0 / (state.offset + state.iterations)
    first = W[0].copy()
    change = rotation(W, eta * state.alpha, state.exponent)
    for m, result in enumerate(results):
        if len(assigned[m]):
            W[m] -= eta * (W[m] - len(cost) / len(assigned[m]) * result.difference)
    W += change
    if state.bounds:
        np.clip(W, state.bounds["floor"], state.bounds["ceiling"], out=W)
    if state.fix_first:
        W[0] = first
    state.iterations += 1
    last = state.iterations >= state.max_iter
    if last:
        state.record_objective()
    return last


def advance_anchored(state: CoulombState) -> bool:
    """Solve the problem of every member for fixed forces; return whether the rounds have ended."""
    assigned = state.assigned()
    forces = _tangential_forces(state)
    seeds = state.random.integers(np.iinfo(np.int32).max, size=len(state.W))

    def solve(m: int) -> np.ndarray:
        samples = assigned[m]
        if len(samples) == 0 or (state.fix_first and m == 0):
            return state.W[m]
        cost = state.cost[samples] * state.repeats(assigned)
        solution = solve_frank_wolfe(
            OracleSubset(state.oracle, samples), cost, anchor=forces[m], tol=state.tol,
            max_iter=state.passes, seed=int(seeds[m]), **state.bounds,
        )  # fmt: skip
        state.converged[m] = solution.converged
        return solution.w

    direction = np.array(state.for_each_member(solve)) - state.W
    if not state.curves["iteration"]:
        state.record_objective()
    before, step = state.evaluate(state.W, assigned)[0], 1.0
    shortest = coulomb_options.shortest_step
    # The risk is convex and the direction decreases the energy: a step short enough descends.
    while step > shortest and state.evaluate(state.W + step * direction, assigned)[0] >= before:
        step /= 2.0
    state.iterations += 1
    if step > shortest:
        state.W += step * direction
        state.record_objective()
    return state.iterations >= state.max_iter or step <= shortest


def best_weights(state: CoulombState) -> np.ndarray:
    """Return the weights with the least objective."""
    if not state.curves["iteration"] or state.curves["iteration"][-1] != state.iterations:
        state.record_objective()
    return state.best


@dataclass(frozen=True)
class CoulombSolution:
    """Result of the optimization.

    Attributes
    ----------
    W : ndarray of shape (n_members, size)
        Weights with the least objective.
    converged : ndarray of shape (n_members,)
        Whether the convex problems of the last anchored round were solved to their tolerance.
    iterations : int
        Steps or rounds.
    curves : dict of ndarray
        Iteration, objective, energy and risk, where they were evaluated.
    """

    W: np.ndarray
    converged: np.ndarray
    iterations: int
    curves: dict[str, np.ndarray]

    @classmethod
    def of(cls, state: CoulombState) -> Self:
        W = best_weights(state)
        curves = {name: np.array(values) for name, values in state.curves.items()}
        return cls(W, state.converged, state.iterations, curves)


def _tangential_forces(state: CoulombState) -> np.ndarray:
    U, norms = _directions(state.W)
    forces = coulomb_forces(U, state.exponent)
    # Along u the energy does not change: its gradient in w is tangential.
    forces -= U * np.sum(U * forces, axis=1, keepdims=True)
    forces *= state.alpha / norms[:, np.newaxis]
    return forces


def _directions(W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the unit vectors and the norms of weight vectors."""
    norms = np.maximum(np.sqrt(np.sum(W**2, axis=1)), TINY**0.5)
    return W / norms[:, np.newaxis], norms


@compiled
def _repulsion(U, exponent, nearest):
    """Return the energy of unit vectors, and the forces on them."""
    n, size = U.shape
    energy, forces = 0.0, np.zeros((n, size))
    for i in range(n):
        for j in range(i):
            square = 0.0
            for k in range(size):
                square += (U[i, k] - U[j, k]) ** 2
            distance = max(np.sqrt(square), nearest)
            energy += distance**-exponent
            strength = exponent * distance ** -(exponent + 2.0)
            for k in range(size):
                forces[i, k] += strength * (U[i, k] - U[j, k])
                forces[j, k] -= strength * (U[i, k] - U[j, k])
    return energy, forces
