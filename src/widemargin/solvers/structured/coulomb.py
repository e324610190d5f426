"""Weights that repel each other: an ensemble of structured machines that differ in direction.

    min over W   alpha * E(u_1, .., u_M)  +  sum_m [ 1/2 ||w_m||^2 + sum_k cost_k H_k(w_m) ]
    E = sum_{i < j} ||u_i - u_j||^-s,    u_m = w_m / ||w_m||

(`structured.problem` says what H_k is). E is the energy of charges on a sphere, and the
force on member m is minus its gradient,

    F_m = sum_j s (u_m - u_j) / ||u_m - u_j||^(s + 2)

`advance_repelled` takes a subgradient step of size eta_t = 1 / (t0 + t) for each member's own
problem and turns the member by the force,

    w_m <- w_m - eta_t (w_m - N / n_m sum_{k of m} cost_k d_k)  +  ||w_m|| (P(u_m + eta_t alpha F_m)
    - u_m)

where P normalises and n_m of N samples are assigned to the member. The turn is a heuristic: it does
not depend on the norm of w_m, where the gradient of the energy in w_m has a factor 1 / ||w_m||. The
iterate with the least objective is kept.

`advance_anchored` solves the condition for a stationary point: with the tangential force f_m =
alpha (F_m - u_m u_m . F_m) / ||w_m|| held fixed, w_m minimises 1/2 ||w - f_m||^2 + sum_k cost_k
H_k(w), a convex problem. The step of all members towards its solution is halved until the objective
falls.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.threads import for_each
from widemargin.solvers.structured.frank_wolfe import solve_frank_wolfe
from widemargin.solvers.structured.problem import OracleSubset

NEAREST = 1e-6
"""Directions that are closer count as so far apart."""

_SHORTEST = 1e-9


def coulomb_energy(W: np.ndarray, exponent: float = 1.0) -> float:
    """The energy of the directions of weights, each pair counted once."""
    return _repulsion(_directions(W)[0], exponent)[0]


def coulomb_forces(U: np.ndarray, exponent: float = 1.0) -> np.ndarray:
    """Minus the gradient of the energy in each of the unit vectors ``U``."""
    return _repulsion(np.asarray(U, dtype=float), exponent)[1]


def turned(W: np.ndarray, push: float, exponent: float = 1.0) -> np.ndarray:
    """What is to be added to weights to turn them by ``push`` times the force on them."""
    U, norms = _directions(W)
    target = U + push * _repulsion(U, exponent)[1]
    return norms[:, np.newaxis] * (_directions(target)[0] - U)


@dataclass
class RepelledState:
    """Where the descent of an ensemble stands.

    Attributes
    ----------
    oracle : Oracle
        The samples.
    cost : ndarray of shape (n_samples,)
    alpha, exponent : float
        Strength and exponent of the repulsion.
    assign : callable
        ``assign(W, random)`` returns for each member the samples it learns from; None assigns all
        samples to every member.
    W : ndarray of shape (n_members, size)
        The weights.
    keep_first : bool
        Whether the first member stays where it is.
    best : ndarray of shape (n_members, size)
        Those with the least objective so far.
    converged : ndarray of shape (n_members,)
        Whether the convex problems of the last anchored round were solved to ``tol``.
    """

    oracle: Any
    cost: np.ndarray
    alpha: float
    exponent: float
    assign: Callable | None
    random: np.random.Generator
    W: np.ndarray
    max_iter: int
    check_every: int
    offset: float
    keep_first: bool = False
    tol: float = 1e-3
    passes: int = 50
    best: np.ndarray = field(init=False)
    converged: np.ndarray = field(init=False)
    objective: float = np.inf
    iterations: int = 0
    curves: dict[str, list] = field(
        default_factory=lambda: {name: [] for name in ("iteration", "objective", "energy", "risk")}
    )

    def __post_init__(self):
        self.best, self.converged = self.W.copy(), np.ones(len(self.W), dtype=bool)


def advance_repelled(state: RepelledState) -> bool:
    """Take a step with every member; True when there is nothing more to do."""
    if state.iterations >= state.max_iter:
        return True
    assigned = _assigned(state)
    found = for_each(lambda m: _violations(state, m, assigned[m]), _members(state), _threads(state))
    if state.iterations % state.check_every == 0:
        if state.assign is None:
            risks = [float(np.sum(state.cost * answer.slacks)) for answer in found]
            energy = coulomb_energy(state.W, state.exponent)
            _enter(state, energy, 0.5 * float(np.sum(state.W**2)) + sum(risks))
        else:
            _look(state)
    eta = 1.0 / (state.offset + state.iterations)
    first = state.W[0].copy()
    turn = turned(state.W, eta * state.alpha, state.exponent)
    for m, answer in enumerate(found):
        if answer is not None:
            share = len(state.cost) / len(assigned[m])
            state.W[m] -= eta * (state.W[m] - share * answer.difference)
    state.W += turn
    if state.keep_first:
        state.W[0] = first
    state.iterations += 1
    last = state.iterations >= state.max_iter
    if last:
        _look(state)
    return last


def advance_anchored(state: RepelledState) -> bool:
    """Solve the problem of every member for fixed forces; True when all is done."""
    if state.iterations >= state.max_iter:
        return True
    assigned = _assigned(state)
    U, norms = _directions(state.W)
    forces = _repulsion(U, state.exponent)[1]
    # Along u the energy does not change: its gradient in w is tangential.
    forces -= U * np.sum(U * forces, axis=1, keepdims=True)
    forces *= state.alpha / norms[:, np.newaxis]
    seeds = state.random.integers(np.iinfo(np.int32).max, size=len(U))

    def solved(m):
        samples = assigned[m]
        if len(samples) == 0 or (state.keep_first and m == 0):
            return state.W[m]
        cost = state.cost[samples] * (len(state.cost) / len(samples))
        oracle = OracleSubset(state.oracle, samples)
        found = solve_frank_wolfe(
            oracle, cost, anchor=forces[m], tol=state.tol, max_iter=state.passes, seed=int(seeds[m])
        )
        state.converged[m] = found.converged
        return found.w

    way = np.array(for_each(solved, _members(state), _threads(state))) - state.W
    if not state.curves["iteration"]:
        _look(state)
    before, step = _objective(state, state.W, assigned)[0], 1.0
    # The risk is convex, and the way leads down the energy: a step that is short enough descends.
    while step > _SHORTEST and _objective(state, state.W + step * way, assigned)[0] >= before:
        step /= 2.0
    state.iterations += 1
    if step > _SHORTEST:
        state.W += step * way
        _look(state)
    return state.iterations >= state.max_iter or step <= _SHORTEST


def finish_repelled(state: RepelledState) -> np.ndarray:
    """The weights with the least objective."""
    if not state.curves["iteration"] or state.curves["iteration"][-1] != state.iterations:
        _look(state)
    return state.best


def _members(state):
    return range(len(state.W))


def _threads(state):
    return getattr(state.oracle, "threads", 1)


def _assigned(state):
    if state.assign is None:
        return [np.arange(len(state.cost))] * len(state.W)
    return state.assign(state.W, state.random)


def _violations(state, m, samples):
    if len(samples) == 0:
        return None
    return state.oracle.violations(state.W[m], samples=samples, weight=state.cost[samples])


def _look(state):
    """Take note of the objective, with all samples for every member."""
    _enter(state, *_objective(state, state.W, None)[1:])


def _objective(state, W, assigned):
    """The objective, its energy and its risk, with the samples that are assigned."""

    def risk(m):
        if assigned is None:
            return float(np.sum(state.cost * state.oracle.violations(W[m]).slacks))
        samples = assigned[m]
        if len(samples) == 0:
            return 0.0
        slacks = state.oracle.violations(W[m], samples=samples).slacks
        return len(state.cost) / len(samples) * float(np.sum(state.cost[samples] * slacks))

    energy = coulomb_energy(W, state.exponent)
    total = 0.5 * float(np.sum(W**2)) + sum(for_each(risk, range(len(W)), _threads(state)))
    return state.alpha * energy + total, energy, total


def _enter(state, energy, risk):
    objective = state.alpha * energy + risk
    if objective < state.objective:
        state.objective, state.best = objective, state.W.copy()
    line = state.iterations, objective, energy, risk
    for name, value in zip(state.curves, line, strict=True):
        state.curves[name].append(value)


def _directions(W):
    norms = np.maximum(np.sqrt(np.sum(W**2, axis=1)), np.finfo(float).tiny ** 0.5)
    return W / norms[:, np.newaxis], norms


@compiled
def _repulsion(U, exponent):
    """The energy of unit vectors, and the forces on them."""
    n, size = U.shape
    energy, forces = 0.0, np.zeros((n, size))
    for i in range(n):
        for j in range(i):
            square = 0.0
            for k in range(size):
                square += (U[i, k] - U[j, k]) ** 2
            distance = max(np.sqrt(square), NEAREST)
            energy += distance**-exponent
            strength = exponent * distance ** -(exponent + 2.0)
            for k in range(size):
                forces[i, k] += strength * (U[i, k] - U[j, k])
                forces[j, k] -= strength * (U[i, k] - U[j, k])
    return energy, forces
