"""Cutting planes for the structured problem with one slack.

    min over w   1/2 ||w - anchor||^2  +  H(w),      H = sum_i cost_i H_i

(`structured.problem` says what H_i is). Every round touches H from below by a plane
b_k - w . g_k, and solves the problem with the largest of the planes so far, the constant 0 among
them, in place of H. In the dual that is a small problem over the simplex,

    max over alpha >= 0, sum alpha = 1    c . alpha - 1/2 alpha' G alpha
    G_kl = g_k . g_l,   c_k = b_k - anchor . g_k,   w = anchor + sum_k alpha_k g_k

which is solved from where the last round left it, by moving weight between two planes at a time (as
in SMO): the plane that would gain most takes it from the one for which the gain of the pair is
greatest. Gram matrix and gradient are kept and grow by one row a round. Planes without weight for
long are dropped (Joachims, Finley and Yu, 2009).

With a cache, a round first puts together a plane from earlier answers of the oracle, for each
sample the one that now violates most, and asks the oracle only if that plane is not violated
enough.

References
----------
T. Joachims, T. Finley, C.-N. Yu: Cutting-plane training of structural SVMs. Machine Learning 2009.
"""

from dataclasses import dataclass, field

import numpy as np

from widemargin._base.jit import compiled
from widemargin.solvers.structured.problem import (
    Oracle,
    Record,
    StructuredSolution,
    dot,
    upper_bounds,
)

_MOST_STEPS = 1_000_000


@dataclass
class PlanesState:
    """Where the cutting-plane method stands: `numbers` is all that is needed to go on elsewhere."""

    oracle: Oracle
    cost: np.ndarray
    anchor: np.ndarray | None
    tol: float
    max_iter: int
    cache: int
    cache_tol: float
    patience: int
    w: np.ndarray
    # The first plane is the constant 0: it is the slack of the constraint sum alpha <= 1.
    planes: np.ndarray
    offsets: np.ndarray
    gram: np.ndarray
    weights: np.ndarray
    idle: np.ndarray
    record: Record
    iterations: int = 0
    finished: bool = False
    # Answers of the oracle, newest last; they are not part of a checkpoint.
    answers: list = field(default_factory=list)
    last_gain: float = np.inf

    def numbers(self) -> dict[str, object]:
        """The state as plain arrays and numbers, for a checkpoint."""
        names = ("w", "planes", "offsets", "gram", "weights", "idle", "iterations", "last_gain")
        plain = {name: getattr(self, name) for name in names}
        return {**plain, "record": self.record.numbers()}

    def resume(self, numbers: dict) -> "PlanesState":
        """Go on from the `numbers` of another state of the same problem."""
        numbers = dict(numbers)
        self.record = Record.of(numbers.pop("record"))
        for name, value in numbers.items():
            setattr(self, name, value)
        self.finished = self.record.settled(self.tol)
        return self


def start_planes(
    oracle: Oracle,
    cost: np.ndarray,
    *,
    anchor: np.ndarray | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    cache: int = 0,
    cache_tol: float = 0.1,
    patience: int = 50,
    planes: np.ndarray | None = None,
    offsets: np.ndarray | None = None,
) -> PlanesState:
    """A state at w = anchor, or at the optimum over given planes.

    Parameters
    ----------
    oracle : Oracle
        The samples.
    cost : ndarray of shape (n_samples,)
        At least 0.
    anchor : ndarray of shape (size,), optional
        What the weights are drawn to; 0 by default.
    tol : float, default=1e-3
        Relative duality gap at which to stop.
    max_iter : int, default=1000
        Most rounds.
    cache : int, default=0
        How many answers of the oracle to keep for each sample.
    cache_tol : float, default=0.1
        A plane made of kept answers counts if it is violated by so much of what the latest plane of
        the oracle was.
    patience : int, default=50
        Rounds without weight after which a plane is dropped.
    planes : ndarray of shape (n_planes, size), optional
        Known planes, but for the constant 0.
    offsets : ndarray of shape (n_planes,), optional
        Their constants.
    """
    size = oracle.size
    w = np.zeros(size) if anchor is None else np.array(anchor, dtype=float)
    state = PlanesState(
        oracle, np.asarray(cost, dtype=float), anchor, tol, max_iter, cache, cache_tol, patience, w,
        np.zeros((1, size)), np.zeros(1), np.zeros((1, 1)), np.ones(1),
        np.zeros(1, dtype=np.int64), Record(w.copy()),
    )  # fmt: skip
    if planes is not None and offsets is not None:
        for plane, offset in zip(planes, offsets, strict=True):
            _add_plane(state, plane, float(offset))
        _solve(state)
    return state


def advance_planes(state: PlanesState) -> bool:
    """Make a round; True when there is nothing more to do."""
    if state.finished or state.iterations >= state.max_iter:
        return True
    state.iterations += 1
    kept = _kept_plane(state)
    if kept is None:
        _ask(state)
    else:
        _add_plane(state, *kept)
    _solve(state)
    state.finished = state.record.settled(state.tol) or state.iterations >= state.max_iter
    return state.finished


def finish_planes(state: PlanesState) -> StructuredSolution:
    """The solution at the state."""
    if not state.record.curves["iteration"]:
        _ask(state)
    return state.record.solution(state.iterations, state.tol)


def _ask(state):
    """Add the plane that touches the objective at the current weights."""
    objective, bound, found = upper_bounds(state.oracle, state.w, state.cost, state.anchor)
    offset = float(np.sum(state.cost * found.losses))
    state.last_gain = offset - dot(state.w, found.difference) - _height(state)
    state.record.enter(state.iterations, state.w, objective, bound, _dual(state))
    _add_plane(state, found.difference, offset)
    if state.cache:
        state.answers = [*state.answers, found.labels][-state.cache :]


def _kept_plane(state):
    """The plane of the most violating kept answers, or None if it is not violated enough."""
    if not state.answers or not np.isfinite(state.last_gain):
        return None
    slacks = np.array([state.oracle.evaluate(a, state.w, state.cost)[1] for a in state.answers])
    best = slacks.argmax(axis=0)
    labels = [state.answers[k][i] for i, k in enumerate(best)]
    losses, _, difference = state.oracle.evaluate(labels, state.w, state.cost)
    offset = float(np.sum(state.cost * losses))
    gain = offset - dot(state.w, difference) - _height(state)
    least = max(state.cache_tol * state.last_gain, state.tol * state.record.level)
    return (difference, offset) if gain > least else None


def _height(state):
    """The largest of the planes at the current weights."""
    return max(
        offset - dot(state.w, g) for g, offset in zip(state.planes, state.offsets, strict=True)
    )


def _dual(state):
    weights = state.weights
    return float(_linear(state) @ weights - 0.5 * weights @ state.gram @ weights)


def _linear(state):
    if state.anchor is None:
        return state.offsets
    return state.offsets - np.array([dot(state.anchor, plane) for plane in state.planes])


def _add_plane(state, plane, offset):
    state.planes = np.concatenate([state.planes, plane[np.newaxis]])
    state.offsets = np.append(state.offsets, offset)
    row = np.array([dot(plane, other) for other in state.planes])
    gram = np.empty((len(row), len(row)))
    gram[:-1, :-1], gram[-1], gram[:, -1] = state.gram, row, row
    state.gram = gram
    state.weights, state.idle = np.append(state.weights, 0.0), np.append(state.idle, 0)


def _solve(state):
    """Solve over the planes from the current weights, and drop those that are idle for long."""
    linear = _linear(state)
    scale = max(state.record.level if np.isfinite(state.record.level) else 1.0, 1e-300)
    simplex_ascent(state.gram, linear, state.weights, 0.01 * state.tol * scale, _MOST_STEPS)
    state.idle = np.where(state.weights > 0.0, 0, state.idle + 1)
    state.idle[0] = 0
    stays = state.idle < state.patience
    if not stays.all():
        state.planes, state.offsets = state.planes[stays], state.offsets[stays]
        state.gram = np.ascontiguousarray(state.gram[np.ix_(stays, stays)])
        state.weights, state.idle = state.weights[stays], state.idle[stays]
    active = np.flatnonzero(state.weights)
    w = np.zeros(state.oracle.size) if state.anchor is None else state.anchor.copy()
    for k in active:
        w += state.weights[k] * state.planes[k]
    state.w = w


@compiled
def simplex_ascent(gram, linear, weights, tol, most_steps):
    """Maximise linear . a - 1/2 a' gram a over the simplex, from ``weights`` and in place.

    Ends when no move of weight between two coordinates gains at a rate of more than ``tol``, and
    returns the number of moves.
    """
    n = len(weights)
    gradient = linear.copy()
    for k in range(n):
        if weights[k] != 0.0:
            for j in range(n):
                gradient[j] -= weights[k] * gram[k, j]
    for step in range(most_steps):
        first = 0
        for k in range(1, n):
            if gradient[k] > gradient[first]:
                first = k
        second, highest, worst = -1, 0.0, 0.0
        for k in range(n):
            excess = gradient[first] - gradient[k]
            if weights[k] > 0.0 and excess > 0.0:
                worst = max(worst, excess)
                curvature = gram[first, first] + gram[k, k] - 2.0 * gram[first, k]
                # What the pair can gain, with the step cut at the weight there is.
                step_size = weights[k]
                if curvature > 0.0:
                    step_size = min(step_size, excess / curvature)
                gain = step_size * (excess - 0.5 * step_size * curvature)
                if gain > highest:
                    second, highest = k, gain
        if worst <= tol or second < 0:
            return step
        curvature = gram[first, first] + gram[second, second] - 2.0 * gram[first, second]
        excess = gradient[first] - gradient[second]
        moved = weights[second]
        if curvature > 0.0 and excess / curvature < moved:
            moved = excess / curvature
            weights[second] -= moved
        else:
            weights[second] = 0.0
        weights[first] += moved
        for j in range(n):
            gradient[j] -= moved * (gram[first, j] - gram[second, j])
    return most_steps
