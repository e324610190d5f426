"""Decomposition for two kernel machines that are tied together row by row.

    min over s   1/2 g' K g + 1/2 h' M h - p' s
    subject to   lower <= s <= upper,   sum(g) = 0,   sum(h) = 0

Every variable s_v belongs to a row and to one of three lines, directions (u, w) of the plane: it
adds u s_v to the row's g and w s_v to its h (which starts from ``offset``). Any two of the lines
span the plane, and ``relation`` says how the third depends on them:

    sum_l relation_l (u_l, w_l) = 0

So there are three kinds of pairs and one kind of triple that keep both sums: two variables of one
line, moved against each other, and one variable of each line, moved by t * relation. Every
feasible direction is made of these. SVM1+ (`svm1plus`) and SVM-2K (`two_view`) are this problem.

With ``exchange`` there is a kind more, without which steps are short where M is large: two rows
move their g against each other while each keeps its h, by exchanging what its first two variables
hold.

Pairs are chosen by the second-order rule, the best of all kinds by what it gains. As soon as they
have cost what `two_kernels_interior` will cost, that one takes over: so both together take about
twice the time of the better one at most. At the end `active_set` gives the digits that are left,
if the problem is small.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from widemargin._base.callbacks import run_in_slices
from widemargin._base.jit import compiled
from widemargin._base.matmul import tiled_multiply
from widemargin.solvers.coupled import interior_point as interior
from widemargin.solvers.coupled.active_set import Settled, settle

_SLICE_WORK = 20_000_000
# Multiplications in matrices that take the time of one step of a pair, for each variable; and how
# many steps the interior-point method takes, about.
_PAIR_WORK = 100.0
_ROUNDS = 20
_MOST_STEPS = 10_000
_FLAT = 1e-12
_EPSILON = float(np.finfo(float).eps)
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class TwoKernelProblem:
    """Numbers that make the problem; variables stand in an array of (groups, n).

    Parameters
    ----------
    first, second : ndarray of shape (n, n)
        K and M.
    line : ndarray of shape (groups, n), int
        Which line each variable moves along.
    lower, upper, linear : ndarray of shape (groups, n)
        Its box and its p.
    lines : ndarray of shape (3, 2)
        (u, w) of the lines.
    relation : ndarray of shape (3,)
    offset : ndarray of shape (n,)
        h of s = 0.
    exchange : bool, default=False
        Whether the first two variables of a row differ by (1, 0) or (-1, 0) and hold at least 0.
    factor : ndarray of shape (n, r), optional
        Where M is factor factor' / penalty: with a small penalty the function that h stands for is
        better known through its weights in the factor's columns than through h.
    penalty : float, default=1.0
    """

    first: np.ndarray
    second: np.ndarray
    line: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    linear: np.ndarray
    lines: np.ndarray
    relation: np.ndarray
    offset: np.ndarray
    exchange: bool = False
    factor: np.ndarray | None = None
    penalty: float = 1.0

    def sides(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """g and h of a point."""
        u, w = self.lines[self.line].T
        return (u.T * point).sum(axis=0), self.offset + (w.T * point).sum(axis=0)


@dataclass(frozen=True)
class TwoKernelSolution:
    """What was found: the point, its g and h, and the two functions without their constants.

    ``weights`` are those of the second function in the factor's columns, where the solution is
    exact; ``constants`` are the multipliers of the two sums.
    """

    point: np.ndarray
    g: np.ndarray
    h: np.ndarray
    first: np.ndarray
    second: np.ndarray
    constants: np.ndarray
    weights: np.ndarray | None
    iterations: int
    converged: bool


@dataclass
class State:
    """Where the solver stands."""

    problem: TwoKernelProblem
    tol: float
    max_iter: int
    point: np.ndarray
    first: np.ndarray
    second: np.ndarray
    iterations: int = 0
    finished: bool = False
    converged: bool = False
    exact: Settled | None = None
    path: interior.Path | None = None
    until: int = field(init=False)
    """The number of iterations at which pairs have had their share."""
    last: bool = False
    """Whether there is nothing else to try then."""
    floor: float = field(init=False)

    def __post_init__(self) -> None:
        self.until = self.point.size
        largest = sum(float(np.abs(m.diagonal()).max()) for m in self._matrices())
        self.floor = max(_FLAT * largest, _TINY)

    def _matrices(self) -> tuple[np.ndarray, np.ndarray]:
        return self.problem.first, self.problem.second

    def refresh(self) -> None:
        """Compute the functions anew, free of what rounding has added up."""
        for function, matrix, side in zip(
            (self.first, self.second), self._matrices(), self.problem.sides(self.point), strict=True
        ):
            function[:] = tiled_multiply(matrix, side[:, np.newaxis])[:, 0]

    def value(self) -> float:
        """The dual's value, which rises."""
        g, h = self.problem.sides(self.point)
        norms = float(g @ self.first + h @ self.second)
        return float((self.problem.linear * self.point).sum()) - 0.5 * norms

    def rounding(self) -> float:
        """Violations below this are rounding errors of the functions."""
        sides = self.problem.sides(self.point)
        return sum(
            4.0 * _EPSILON * float(np.abs(side).sum()) * float(np.abs(m.diagonal()).max())
            for side, m in zip(sides, self._matrices(), strict=True)
        )


def solve_two_kernels(
    problem: TwoKernelProblem,
    point: np.ndarray,
    *,
    tol: float = 1e-3,
    max_iter: int = -1,
    report: Callable[[State], bool] | None = None,
) -> TwoKernelSolution:
    """Solve the problem from a feasible point.

    Parameters
    ----------
    problem : TwoKernelProblem
    point : ndarray of shape (groups, n)
        In its box and with both sums 0.
    tol : float, default=1e-3
        Largest violation of the optimality conditions.
    max_iter : int, default=-1
        Most updates of pairs and triples, and steps of the interior-point method, together. With
        -1 the end comes by itself: where a kernel is indefinite, so that there is no other method,
        after 10,000 updates for each variable, and where the other method fails after as many
        updates as all steps before.
    report : callable, optional
        Called with the state after every slice of work; True stops the solver.

    Returns
    -------
    TwoKernelSolution
    """
    state = start(problem, point, tol, max_iter)
    run_in_slices(advance, state, report)
    return finish(state)


def start(problem, point, tol=1e-3, max_iter=-1) -> State:
    """A state at a feasible point."""
    n = len(problem.first)
    state = State(problem, tol, max_iter, point.copy(), np.empty(n), np.empty(n))
    state.refresh()
    return state


def advance(state: State) -> bool:
    """Work for a fraction of a second; True when there is nothing more to do."""
    left = state.max_iter - state.iterations if state.max_iter >= 0 else _SLICE_WORK
    if state.finished or left <= 0:
        state.finished = True
    elif state.iterations < state.until:
        _move_pairs(state, min(left, _SLICE_WORK // state.point.size + 1))
    elif state.path is None and not state.last:
        _look_ahead(state)
    elif not state.last:
        _follow(state)
    else:
        state.finished = True
    return state.finished


def _move_pairs(state: State, steps: int) -> None:
    rounding = state.rounding()
    steps = min(steps, state.until - state.iterations)
    done, violation = _descend(*_arrays(state), max(state.tol, rounding), steps, state.floor)
    state.iterations += done
    if violation < state.tol:
        state.finished = state.converged = True
    elif done < steps:
        # No pair moves: what is left are rounding errors.
        state.until = state.iterations
    if state.iterations >= state.until:
        state.refresh()


def _look_ahead(state: State) -> None:
    """Settle how much longer pairs may take, by what the other way will cost."""
    state.path = interior.start(state.problem)
    size = state.point.size
    if state.path is None:
        state.until, state.last = _MOST_STEPS * size, True
    else:
        price = _ROUNDS * state.path.equations.work
        state.until = max(state.until, int(price / (_PAIR_WORK * size)))


def _follow(state: State) -> None:
    """Take a step of the other way; where it does not end well, pairs have their share again."""
    state.iterations += 1
    if state.path.advance():
        found = state.path.finish()
        before, value = state.point.copy(), state.value()
        state.point[:] = found.point
        state.refresh()
        if found.optimal and _makes(state, found):
            state.exact = found
            state.finished = state.converged = True
        elif state.value() < value:
            state.point[:] = before
            state.refresh()
        state.until, state.last = 2 * state.iterations, True


def _makes(state: State, found: Settled) -> bool:
    """Whether the point makes the functions that were found, and rounding has not lost them."""
    apart = float(np.abs(state.first - found.first).max())
    if found.weights is None:
        apart = max(apart, float(np.abs(state.second - found.second).max()))
    return apart < state.tol


def finish(state: State) -> TwoKernelSolution:
    """The solution at the state, exact where that is cheap."""
    exact = state.exact
    if state.converged or state.last:
        settled = settle(state.problem, state.point)
        exact = settled if settled is not None and settled.optimal else exact
    if exact is not None:
        g, h = state.problem.sides(exact.point)
        return TwoKernelSolution(
            exact.point, g, h, exact.first, exact.second, exact.constants, exact.weights,
            state.iterations, True,
        )  # fmt: skip
    state.refresh()
    g, h = state.problem.sides(state.point)
    return TwoKernelSolution(
        state.point, g, h, state.first, state.second, _constants(state), None,
        state.iterations, state.converged,
    )  # fmt: skip


def _constants(state: State) -> np.ndarray:
    """The multipliers of the sums: free variables meet them on average.

    A line without free variables leaves an interval, which counts for little.
    """
    problem, point = state.problem, state.point
    u, w = np.moveaxis(problem.lines[problem.line], -1, 0)
    residual = problem.linear - u * state.first - w * state.second
    rising, falling = point < problem.upper, point > problem.lower
    rows, values = [], []
    for number, direction in enumerate(problem.lines):
        own = problem.line == number
        free = own & rising & falling
        if free.any():
            value, weight = residual[free].mean(), np.sqrt(np.count_nonzero(free))
        else:
            least = residual[own & rising].max(initial=-np.inf)
            greatest = residual[own & falling].min(initial=np.inf)
            known = [end for end in (least, greatest) if np.isfinite(end)]
            if not known:
                continue
            value, weight = np.mean(known), 1e-4 if len(known) == 2 else 1e-8
        rows.append(weight * direction)
        values.append(weight * value)
    return np.linalg.lstsq(np.array(rows), np.array(values), rcond=1e-14)[0]


def _arrays(state: State) -> tuple:
    problem = state.problem
    return (
        problem.first, problem.second, problem.first.diagonal().copy(),
        problem.second.diagonal().copy(), problem.line, problem.lower, problem.upper,
        problem.linear, problem.lines, problem.relation, problem.exchange, state.point,
        state.first, state.second,
    )  # fmt: skip


@compiled
def _descend(
    first, second, f_diagonal, e_diagonal, line, lower, upper, linear, lines, relation, exchange,
    point, f, e, tol, steps, floor,
):  # fmt: skip
    """Move pairs and triples until none violates by tol; the steps done and the violation left."""
    groups, n = point.shape
    residual = np.empty((groups, n))
    value, at = np.empty((2, 3)), np.empty((2, 3, 2), np.int64)
    gain, partner = np.empty(3), np.empty((3, 2), np.int64)
    size = 0.5 * np.abs(relation).sum()
    move, members = np.zeros(3), np.zeros((3, 2), np.int64)
    worst = 0.0
    for step in range(steps):
        _extremes(line, lower, upper, linear, lines, point, f, e, residual, value, at)
        worst, best, kind = 0.0, 0.0, -1
        for number in range(3):
            worst = max(worst, value[0, number] - value[1, number])
        slopes = np.zeros(2)
        for direction in range(2):
            for number in range(3):
                side = 0 if (relation[number] > 0.0) == (direction == 0) else 1
                factor = relation[number] if direction == 0 else -relation[number]
                slopes[direction] += factor * value[side, number]
            worst = max(worst, slopes[direction] / size)
        if exchange:
            i, j, exchanged, short = _exchanging(
                first, f_diagonal, line, lines, residual, point, floor
            )
            worst = max(worst, short)
            if exchanged > best:
                best, kind = exchanged, 5
        if worst < tol:
            return step, worst
        _partners(
            first, second, f_diagonal, e_diagonal, line, lower, lines, point, residual, value, at,
            gain, partner, floor,
        )  # fmt: skip
        for number in range(3):
            if gain[number] > best:
                best, kind = gain[number], number
        for direction in range(2):
            if slopes[direction] > 0.0:
                _triple(relation, at, direction, move, members)
                bend = max(_curvature(first, second, lines, move, members), floor)
                if slopes[direction] ** 2 / bend > best:
                    best, kind = slopes[direction] ** 2 / bend, 3 + direction
        if kind < 0:
            return step, worst
        if kind == 5:
            _exchange(first, line, lines, i, j, residual, point, f, floor)
        elif kind < 3:
            one, other = at[0, kind], partner[kind]
            _move_pair(
                first, second, lower, upper, lines[kind], one, other, residual, point, f, e, floor
            )
        else:
            _triple(relation, at, kind - 3, move, members)
            bend = max(_curvature(first, second, lines, move, members), floor)
            length = slopes[kind - 3] / bend
            _move_triple(first, second, lower, upper, lines, move, members, length, point, f, e)
    return steps, worst


@compiled
def _extremes(line, lower, upper, linear, lines, point, f, e, residual, value, at):
    """Residuals, and for every line the highest of those that can rise and lowest that can fall."""
    groups, n = point.shape
    for number in range(3):
        value[0, number], value[1, number] = -np.inf, np.inf
    for q in range(groups):
        for i in range(n):
            number = line[q, i]
            r = linear[q, i] - lines[number, 0] * f[i] - lines[number, 1] * e[i]
            residual[q, i] = r
            if r > value[0, number] and point[q, i] < upper[q, i]:
                value[0, number] = r
                at[0, number, 0], at[0, number, 1] = q, i
            if r < value[1, number] and point[q, i] > lower[q, i]:
                value[1, number] = r
                at[1, number, 0], at[1, number, 1] = q, i


@compiled
def _partners(
    first, second, f_diagonal, e_diagonal, line, lower, lines, point, residual, value, at, gain,
    partner, floor,
):  # fmt: skip
    """For the highest variable of every line, the one of its line beside which it gains most."""
    groups, n = point.shape
    for number in range(3):
        gain[number] = 0.0
    for q in range(groups):
        for i in range(n):
            number = line[q, i]
            slope = value[0, number] - residual[q, i]
            if slope > 0.0 and point[q, i] > lower[q, i]:
                k = at[0, number, 1]
                u, w = lines[number, 0], lines[number, 1]
                bend = 0.0
                if u != 0.0:
                    bend += u * u * (f_diagonal[k] + f_diagonal[i] - 2.0 * first[k, i])
                if w != 0.0:
                    bend += w * w * (e_diagonal[k] + e_diagonal[i] - 2.0 * second[k, i])
                bend = bend if bend > floor else floor
                if slope * slope > gain[number] * bend:
                    gain[number] = slope * slope / bend
                    partner[number, 0], partner[number, 1] = q, i


@compiled
def _triple(relation, at, direction, move, members):
    """The variables of a triple and how far they go for a step of length 1."""
    for number in range(3):
        side = 0 if (relation[number] > 0.0) == (direction == 0) else 1
        move[number] = relation[number] if direction == 0 else -relation[number]
        members[number, 0], members[number, 1] = at[side, number, 0], at[side, number, 1]


@compiled
def _curvature(first, second, lines, move, members):
    total = 0.0
    for a in range(3):
        for b in range(3):
            i, j = members[a, 1], members[b, 1]
            bend = (
                lines[a, 0] * lines[b, 0] * first[i, j] + lines[a, 1] * lines[b, 1] * second[i, j]
            )
            total += move[a] * move[b] * bend
    return total


@compiled
def _move_pair(first, second, lower, upper, direction, i, j, residual, point, f, e, floor):
    """Raise variable i and lower variable j of one line."""
    a, b = i[1], j[1]
    u, w = direction[0], direction[1]
    bend = u * u * (first[a, a] + first[b, b] - 2.0 * first[a, b])
    bend += w * w * (second[a, a] + second[b, b] - 2.0 * second[a, b])
    up, down = upper[i[0], a] - point[i[0], a], point[j[0], b] - lower[j[0], b]
    length = (residual[i[0], a] - residual[j[0], b]) / max(bend, floor)
    length = min(length, up, down)
    point[i[0], a] = upper[i[0], a] if length == up else point[i[0], a] + length
    point[j[0], b] = lower[j[0], b] if length == down else point[j[0], b] - length
    if u != 0.0:
        for k in range(f.shape[0]):
            f[k] += u * length * (first[a, k] - first[b, k])
    if w != 0.0:
        for k in range(e.shape[0]):
            e[k] += w * length * (second[a, k] - second[b, k])


@compiled
def _move_triple(first, second, lower, upper, lines, move, members, length, point, f, e):
    """Move one variable of each line, as far as the boxes allow."""
    blocking = -1
    for number in range(3):
        q, i = members[number, 0], members[number, 1]
        end = upper[q, i] if move[number] > 0.0 else lower[q, i]
        room = (end - point[q, i]) / move[number]
        if room <= length:
            length, blocking = room, number
    for number in range(3):
        q, i = members[number, 0], members[number, 1]
        point[q, i] += length * move[number]
        if number == blocking:
            point[q, i] = upper[q, i] if move[number] > 0.0 else lower[q, i]
        u, w = lines[number, 0] * length * move[number], lines[number, 1] * length * move[number]
        if u != 0.0:
            for k in range(f.shape[0]):
                f[k] += u * first[i, k]
        if w != 0.0:
            for k in range(e.shape[0]):
                e[k] += w * second[i, k]


@compiled
def _exchanging(first, diagonal, line, lines, residual, point, floor):
    """The rows that gain most by moving their g against each other at the same h.

    Returns the rows, what they gain and by how much they violate. Raising g exchanges the second
    variable for the first where the first one's line leads up, else the first for the second.
    """
    n = point.shape[1]
    highest, i = -np.inf, -1
    for k in range(n):
        up = lines[line[0, k], 0]
        r = up * (residual[0, k] - residual[1, k])
        if r > highest and (point[1, k] if up > 0.0 else point[0, k]) > 0.0:
            highest, i = r, k
    lowest, gain, j = np.inf, 0.0, -1
    if i < 0:
        return i, j, gain, 0.0
    row = first[i]
    for k in range(n):
        up = lines[line[0, k], 0]
        if (point[0, k] if up > 0.0 else point[1, k]) > 0.0:
            r = up * (residual[0, k] - residual[1, k])
            lowest = min(lowest, r)
            slope = highest - r
            if slope > 0.0:
                bend = max(diagonal[i] + diagonal[k] - 2.0 * row[k], floor)
                if slope * slope > gain * bend:
                    gain, j = slope * slope / bend, k
    return i, j, gain, max(highest - lowest, 0.0)


@compiled
def _exchange(first, line, lines, i, j, residual, point, f, floor):
    """Raise the g of row i and lower that of row j."""
    slopes = np.empty(2)
    for a in range(2):
        k = i if a == 0 else j
        slopes[a] = lines[line[0, k], 0] * (residual[0, k] - residual[1, k])
    bend = max(first[i, i] + first[j, j] - 2.0 * first[i, j], floor)
    from_i = 1 if lines[line[0, i], 0] > 0.0 else 0
    from_j = 0 if lines[line[0, j], 0] > 0.0 else 1
    length = min((slopes[0] - slopes[1]) / bend, point[from_i, i], point[from_j, j])
    point[from_i, i] -= length
    point[1 - from_i, i] += length
    point[from_j, j] -= length
    point[1 - from_j, j] += length
    for k in range(f.shape[0]):
        f[k] += length * (first[i, k] - first[j, k])
