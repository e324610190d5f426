"""Updates of few variables of the coupled problem, chosen by the second-order rule.

Three kinds of moves keep both sums (see `problem` for the kinds and their relation):

- a pair: two variables of one kind, moved against each other;
- a triple: one variable of each kind, moved by a multiple of the relation;
- an exchange, in problems that have it: two samples move their g against each other while each
  keeps its h, by exchanging its first two variables.

Every feasible direction is a sum of pairs and triples. Exchanges are not needed, but without them
steps are short where M is large: on the text data of `benchmarks/privileged.py` SVM1+ takes 3 times
as long. The move with the largest gain of all is made.
"""

from collections import namedtuple

import numpy as np

from widemargin._base.jit import compiled

# What moves read of the problem, and the point and its functions, which they change.
Arrays = namedtuple(
    "Arrays",
    "first, second, first_diagonal, second_diagonal, kind, lower, upper, linear, directions, "
    "relation, point, f, e",
)

# Places of moves in the array of gains: an exchange, pairs of each kind, triples in both senses.
_EXCHANGE, _PAIR, _, _, _TRIPLE, _, _END = range(7)


@compiled(work=lambda arrays, *rest: 10.0 * arrays.point.size * min(rest[2], len(arrays.f)))
def update_pairs(arrays, exchange, tol, steps, floor):
    """Update pairs, triples and exchanges until none violates its condition by tol.

    Return the number of updates and the violation. No move has a curvature below ``floor``.
    """
    residual, gain = np.empty(arrays.point.shape), np.zeros(_END)
    value, at = np.empty((2, 3)), np.zeros((2, 3, 2), np.int64)
    partner = np.zeros((3, 2), np.int64)
    move, members = np.zeros(3), np.zeros((3, 2), np.int64)
    size, worst = 0.0, 0.0
    for number in range(arrays.relation.shape[0]):
        size += 0.5 * abs(arrays.relation[number])
    i = j = 0
    for step in range(steps):
        worst = 0.0
        _set_extremes(arrays, residual, value, at)
        for number in range(3):
            worst = max(worst, value[0, number] - value[1, number])
        for direction in range(2):
            slope = _set_triple(arrays, value, at, direction, move, members)
            worst = max(worst, slope / size)
            curvature = max(_curvature(arrays, move, members), floor)
            gain[_TRIPLE + direction] = slope * slope / curvature if slope > 0.0 else 0.0
        if exchange:
            i, j, gain[_EXCHANGE], violation = _best_exchange(arrays, residual, floor)
            worst = max(worst, violation)
        if worst < tol:
            return step, worst
        _set_partners(arrays, residual, value, at, gain[_PAIR:_TRIPLE], partner, floor)
        best = np.argmax(gain)
        if gain[best] <= 0.0:
            return step, worst
        if best == _EXCHANGE:
            _exchange(arrays, i, j, residual, floor)
        elif best < _TRIPLE:
            kind = best - _PAIR
            _move_pair(arrays, kind, at[0, kind], partner[kind], residual, floor)
        else:
            slope = _set_triple(arrays, value, at, best - _TRIPLE, move, members)
            curvature = max(_curvature(arrays, move, members), floor)
            _move_triple(arrays, move, members, slope / curvature)
    return steps, worst


@compiled
def _set_extremes(arrays, residual, value, at):
    """Set residuals, and of each kind the highest that may rise and the lowest that may fall."""
    point, directions = arrays.point, arrays.directions
    value[0], value[1] = -np.inf, np.inf
    for q in range(point.shape[0]):
        for i in range(point.shape[1]):
            number = arrays.kind[q, i]
            f, e = directions[number, 0] * arrays.f[i], directions[number, 1] * arrays.e[i]
            r = arrays.linear[q, i] - f - e
            residual[q, i] = r
            if r > value[0, number] and point[q, i] < arrays.upper[q, i]:
                value[0, number] = r
                at[0, number, 0], at[0, number, 1] = q, i
            if r < value[1, number] and point[q, i] > arrays.lower[q, i]:
                value[1, number] = r
                at[1, number, 0], at[1, number, 1] = q, i


@compiled
def _set_partners(arrays, residual, value, at, gain, partner, floor):
    """For the highest variable of every kind, the one of its kind beside which it gains most."""
    first_diagonal, second_diagonal = arrays.first_diagonal, arrays.second_diagonal
    gain[:] = 0.0
    for q in range(residual.shape[0]):
        for i in range(residual.shape[1]):
            number = arrays.kind[q, i]
            slope = value[0, number] - residual[q, i]
            if slope > 0.0 and arrays.point[q, i] > arrays.lower[q, i]:
                k = at[0, number, 1]
                u, w = arrays.directions[number, 0], arrays.directions[number, 1]
                curvature = 0.0
                if u != 0.0:
                    distance = first_diagonal[k] + first_diagonal[i] - 2.0 * arrays.first[k, i]
                    curvature += u * u * distance
                if w != 0.0:
                    distance = second_diagonal[k] + second_diagonal[i] - 2.0 * arrays.second[k, i]
                    curvature += w * w * distance
                curvature = curvature if curvature > floor else floor
                if slope * slope > gain[number] * curvature:
                    gain[number] = slope * slope / curvature
                    partner[number, 0], partner[number, 1] = q, i


@compiled
def _set_triple(arrays, value, at, direction, move, members):
    """Set the variables of the best triple in a direction, and the changes for a step of length 1.

    Return the derivative of the dual objective along it.
    """
    slope = 0.0
    for number in range(3):
        move[number] = arrays.relation[number] if direction == 0 else -arrays.relation[number]
        side = 0 if move[number] > 0.0 else 1
        members[number] = at[side, number]
        slope += move[number] * value[side, number]
    return slope


@compiled
def _curvature(arrays, move, members):
    total = 0.0
    for a in range(3):
        for b in range(3):
            i, j = members[a, 1], members[b, 1]
            first = arrays.directions[a, 0] * arrays.directions[b, 0] * arrays.first[i, j]
            second = arrays.directions[a, 1] * arrays.directions[b, 1] * arrays.second[i, j]
            total += move[a] * move[b] * (first + second)
    return total


@compiled
def _move_pair(arrays, number, i, j, residual, floor):
    """Raise variable i and lower variable j of one kind."""
    lower, upper, point = arrays.lower, arrays.upper, arrays.point
    p, a, q, b = i[0], i[1], j[0], j[1]
    u, w = arrays.directions[number, 0], arrays.directions[number, 1]
    curvature = u * u * _squared_distance(arrays.first, a, b)
    curvature += w * w * _squared_distance(arrays.second, a, b)
    up, down = upper[p, a] - point[p, a], point[q, b] - lower[q, b]
    length = min((residual[p, a] - residual[q, b]) / max(curvature, floor), up, down)
    point[p, a] = upper[p, a] if length == up else point[p, a] + length
    point[q, b] = lower[q, b] if length == down else point[q, b] - length
    _add_difference(arrays.f, arrays.first, a, b, u * length)
    _add_difference(arrays.e, arrays.second, a, b, w * length)


@compiled
def _move_triple(arrays, move, members, length):
    """Move one variable of each kind, as far as the bounds permit."""
    blocking = -1
    for number in range(3):
        q, i = members[number, 0], members[number, 1]
        end = arrays.upper[q, i] if move[number] > 0.0 else arrays.lower[q, i]
        longest = (end - arrays.point[q, i]) / move[number]
        if longest <= length:
            length, blocking = longest, number
    for number in range(3):
        q, i = members[number, 0], members[number, 1]
        arrays.point[q, i] += length * move[number]
        if number == blocking:
            end = arrays.upper[q, i] if move[number] > 0.0 else arrays.lower[q, i]
            arrays.point[q, i] = end
        u, w = arrays.directions[number, 0], arrays.directions[number, 1]
        _add_row(arrays.f, arrays.first, i, u * length * move[number])
        _add_row(arrays.e, arrays.second, i, w * length * move[number])


@compiled
def _best_exchange(arrays, residual, floor):
    """Find the two samples that gain most by moving their g against each other at the same h.

    Return the samples, the gain and the violation. Raising g exchanges the second variable for the
    first one where the u of the first is positive, else the first for the second.
    """
    point, diagonal = arrays.point, arrays.first_diagonal
    highest, i = -np.inf, -1
    for k in range(point.shape[1]):
        u = arrays.directions[arrays.kind[0, k], 0]
        r = u * (residual[0, k] - residual[1, k])
        if r > highest and (point[1, k] if u > 0.0 else point[0, k]) > 0.0:
            highest, i = r, k
    lowest, gain, j = np.inf, 0.0, -1
    if i < 0:
        return i, j, gain, 0.0
    row = arrays.first[i]
    for k in range(point.shape[1]):
        u = arrays.directions[arrays.kind[0, k], 0]
        if (point[0, k] if u > 0.0 else point[1, k]) > 0.0:
            r = u * (residual[0, k] - residual[1, k])
            lowest = min(lowest, r)
            slope = highest - r
            if slope > 0.0:
                curvature = max(diagonal[i] + diagonal[k] - 2.0 * row[k], floor)
                if slope * slope > gain * curvature:
                    gain, j = slope * slope / curvature, k
    return i, j, gain, max(highest - lowest, 0.0)


@compiled
def _exchange(arrays, i, j, residual, floor):
    """Raise the g of sample i and lower that of sample j."""
    point = arrays.point
    up, down = arrays.directions[arrays.kind[0, i], 0], arrays.directions[arrays.kind[0, j], 0]
    slope = up * (residual[0, i] - residual[1, i]) - down * (residual[0, j] - residual[1, j])
    length = slope / max(_squared_distance(arrays.first, i, j), floor)
    length = min(length, point[1 if up > 0.0 else 0, i], point[0 if down > 0.0 else 1, j])
    point[0, i] += up * length
    point[1, i] -= up * length
    point[0, j] -= down * length
    point[1, j] += down * length
    _add_difference(arrays.f, arrays.first, i, j, length)


@compiled
def _squared_distance(matrix, i, j):
    return matrix[i, i] + matrix[j, j] - 2.0 * matrix[i, j]


@compiled
def _add_difference(values, matrix, i, j, factor):
    if factor != 0.0:
        for k in range(values.shape[0]):
            values[k] += factor * (matrix[i, k] - matrix[j, k])


@compiled
def _add_row(values, matrix, i, factor):
    if factor != 0.0:
        for k in range(values.shape[0]):
            values[k] += factor * matrix[i, k]
