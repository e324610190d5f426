"""Updates of few variables of the coupled problem, chosen by the second-order rule.

Three kinds of moves keep both sums (see `problem` for the kinds and their relation):

- a pair: two variables of one kind, moved against each other;
- a triple: one variable of each kind, moved by a multiple of the relation;
- an exchange, in problems that have it: two samples move their g against each other while each
  keeps its h, by exchanging its first two variables.

Every feasible direction is a sum of pairs and triples. Exchanges are not needed, but without them
steps are short where M is large: on the text data of `benchmarks/privileged.py` SVM1+ takes 4 times
as long. The move with the largest gain of all is made.
"""

import numpy as np

from widemargin._base.jit import compiled

# Codes of moves: pairs of the three kinds, triples in both senses, exchanges.
*_PAIRS, _TRIPLE, _REVERSED_TRIPLE, _EXCHANGE = range(6)


@compiled
def update_pairs(
    first, second, f_diagonal, e_diagonal, kind, lower, upper, linear, directions, relation,
    exchange, point, f, e, tol, steps, floor,
):  # fmt: skip
    """Update pairs, triples and exchanges until none violates its condition by tol.

    Return the number of updates and the violation.
    """
    groups, n = point.shape
    residual = np.empty((groups, n))
    value, at = np.empty((2, 3)), np.empty((2, 3, 2), np.int64)
    gain, partner = np.empty(3), np.empty((3, 2), np.int64)
    size = 0.5 * np.abs(relation).sum()
    move, members = np.zeros(3), np.zeros((3, 2), np.int64)
    slopes, worst = np.zeros(2), 0.0
    for step in range(steps):
        _extremes(kind, lower, upper, linear, directions, point, f, e, residual, value, at)
        worst, best, chosen = 0.0, 0.0, -1
        for number in range(3):
            worst = max(worst, value[0, number] - value[1, number])
        _set_slopes(relation, value, slopes)
        worst = max(worst, slopes[0] / size, slopes[1] / size)
        if exchange:
            i, j, exchanged, short = _best_exchange(
                first, f_diagonal, kind, directions, residual, point, floor
            )
            worst = max(worst, short)
            if exchanged > best:
                best, chosen = exchanged, _EXCHANGE
        if worst < tol:
            return step, worst
        _partners(
            first, second, f_diagonal, e_diagonal, kind, lower, directions, point, residual, value,
            at, gain, partner, floor,
        )  # fmt: skip
        for number in range(3):
            if gain[number] > best:
                best, chosen = gain[number], number
        for direction in range(2):
            if slopes[direction] > 0.0:
                _set_triple(relation, at, direction, move, members)
                curvature = max(_curvature(first, second, directions, move, members), floor)
                if slopes[direction] ** 2 / curvature > best:
                    best, chosen = slopes[direction] ** 2 / curvature, _TRIPLE + direction
        if chosen < 0:
            return step, worst
        if chosen == _EXCHANGE:
            _exchange(first, kind, directions, i, j, residual, point, f, floor)
        elif chosen < _TRIPLE:
            one, other = at[0, chosen], partner[chosen]
            _move_pair(
                first, second, lower, upper, directions[chosen], one, other, residual, point, f, e,
                floor,
            )  # fmt: skip
        else:
            _set_triple(relation, at, chosen - _TRIPLE, move, members)
            curvature = max(_curvature(first, second, directions, move, members), floor)
            length = slopes[chosen - _TRIPLE] / curvature
            _move_triple(
                first, second, lower, upper, directions, move, members, length, point, f, e
            )
    return steps, worst


@compiled
def _extremes(kind, lower, upper, linear, directions, point, f, e, residual, value, at):
    """Compute residuals, and of each kind the highest that may rise and lowest that may fall."""
    groups, n = point.shape
    for number in range(3):
        value[0, number], value[1, number] = -np.inf, np.inf
    for q in range(groups):
        for i in range(n):
            number = kind[q, i]
            r = linear[q, i] - directions[number, 0] * f[i] - directions[number, 1] * e[i]
            residual[q, i] = r
            if r > value[0, number] and point[q, i] < upper[q, i]:
                value[0, number] = r
                at[0, number, 0], at[0, number, 1] = q, i
            if r < value[1, number] and point[q, i] > lower[q, i]:
                value[1, number] = r
                at[1, number, 0], at[1, number, 1] = q, i


@compiled
def _partners(
    first, second, f_diagonal, e_diagonal, kind, lower, directions, point, residual, value, at,
    gain, partner, floor,
):  # fmt: skip
    """For the highest variable of every kind, the one of its line beside which it gains most."""
    groups, n = point.shape
    for number in range(3):
        gain[number] = 0.0
    for q in range(groups):
        for i in range(n):
            number = kind[q, i]
            slope = value[0, number] - residual[q, i]
            if slope > 0.0 and point[q, i] > lower[q, i]:
                k = at[0, number, 1]
                u, w = directions[number, 0], directions[number, 1]
                curvature = 0.0
                if u != 0.0:
                    curvature += u * u * (f_diagonal[k] + f_diagonal[i] - 2.0 * first[k, i])
                if w != 0.0:
                    curvature += w * w * (e_diagonal[k] + e_diagonal[i] - 2.0 * second[k, i])
                curvature = curvature if curvature > floor else floor
                if slope * slope > gain[number] * curvature:
                    gain[number] = slope * slope / curvature
                    partner[number, 0], partner[number, 1] = q, i


@compiled
def _set_slopes(relation, value, slopes):
    """Set the derivatives of the dual objective along the best triple in both senses."""
    for direction in range(2):
        slopes[direction] = 0.0
        for number in range(3):
            side = 0 if (relation[number] > 0.0) == (direction == 0) else 1
            factor = relation[number] if direction == 0 else -relation[number]
            slopes[direction] += factor * value[side, number]


@compiled
def _set_triple(relation, at, direction, move, members):
    """Set the variables of a triple and their changes for a step of length 1."""
    for number in range(3):
        side = 0 if (relation[number] > 0.0) == (direction == 0) else 1
        move[number] = relation[number] if direction == 0 else -relation[number]
        members[number, 0], members[number, 1] = at[side, number, 0], at[side, number, 1]


@compiled
def _curvature(first, second, directions, move, members):
    total = 0.0
    for a in range(3):
        for b in range(3):
            i, j = members[a, 1], members[b, 1]
            curvature = (
                directions[a, 0] * directions[b, 0] * first[i, j]
                + directions[a, 1] * directions[b, 1] * second[i, j]
            )
            total += move[a] * move[b] * curvature
    return total


@compiled
def _move_pair(first, second, lower, upper, direction, i, j, residual, point, f, e, floor):
    """Raise variable i and lower variable j of one kind."""
    a, b = i[1], j[1]
    u, w = direction[0], direction[1]
    curvature = u * u * (first[a, a] + first[b, b] - 2.0 * first[a, b])
    curvature += w * w * (second[a, a] + second[b, b] - 2.0 * second[a, b])
    up, down = upper[i[0], a] - point[i[0], a], point[j[0], b] - lower[j[0], b]
    length = (residual[i[0], a] - residual[j[0], b]) / max(curvature, floor)
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
def _move_triple(first, second, lower, upper, directions, move, members, length, point, f, e):
    """Move one variable of each kind, as far as the boxes allow."""
    blocking = -1
    for number in range(3):
        q, i = members[number, 0], members[number, 1]
        end = upper[q, i] if move[number] > 0.0 else lower[q, i]
        longest = (end - point[q, i]) / move[number]
        if longest <= length:
            length, blocking = longest, number
    for number in range(3):
        q, i = members[number, 0], members[number, 1]
        point[q, i] += length * move[number]
        if number == blocking:
            point[q, i] = upper[q, i] if move[number] > 0.0 else lower[q, i]
        u, w = (
            directions[number, 0] * length * move[number],
            directions[number, 1] * length * move[number],
        )
        if u != 0.0:
            for k in range(f.shape[0]):
                f[k] += u * first[i, k]
        if w != 0.0:
            for k in range(e.shape[0]):
                e[k] += w * second[i, k]


@compiled
def _best_exchange(first, diagonal, kind, directions, residual, point, floor):
    """Find the two samples that gain most by moving their g against each other at the same h.

    Return the samples, the gain and the violation. Raising g exchanges the second variable for the
    first one where the u of the first is positive, else the first for the second.
    """
    n = point.shape[1]
    highest, i = -np.inf, -1
    for k in range(n):
        up = directions[kind[0, k], 0]
        r = up * (residual[0, k] - residual[1, k])
        if r > highest and (point[1, k] if up > 0.0 else point[0, k]) > 0.0:
            highest, i = r, k
    lowest, gain, j = np.inf, 0.0, -1
    if i < 0:
        return i, j, gain, 0.0
    row = first[i]
    for k in range(n):
        up = directions[kind[0, k], 0]
        if (point[0, k] if up > 0.0 else point[1, k]) > 0.0:
            r = up * (residual[0, k] - residual[1, k])
            lowest = min(lowest, r)
            slope = highest - r
            if slope > 0.0:
                curvature = max(diagonal[i] + diagonal[k] - 2.0 * row[k], floor)
                if slope * slope > gain * curvature:
                    gain, j = slope * slope / curvature, k
    return i, j, gain, max(highest - lowest, 0.0)


@compiled
def _exchange(first, kind, directions, i, j, residual, point, f, floor):
    """Raise the g of sample i and lower that of sample j."""
    slopes = np.empty(2)
    for a in range(2):
        k = i if a == 0 else j
        slopes[a] = directions[kind[0, k], 0] * (residual[0, k] - residual[1, k])
    curvature = max(first[i, i] + first[j, j] - 2.0 * first[i, j], floor)
    from_i = 1 if directions[kind[0, i], 0] > 0.0 else 0
    from_j = 0 if directions[kind[0, j], 0] > 0.0 else 1
    length = min((slopes[0] - slopes[1]) / curvature, point[from_i, i], point[from_j, j])
    point[from_i, i] -= length
    point[1 - from_i, i] += length
    point[from_j, j] -= length
    point[1 - from_j, j] += length
    for k in range(f.shape[0]):
        f[k] += length * (first[i, k] - first[j, k])
