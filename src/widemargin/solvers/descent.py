"""The hinge solver's compiled steps: descent on a dense subproblem, and what goes with it.

All work in place on ``dual`` and ``residual`` = p - K dual, over the rows of a dense ``square`` of
the Gram matrix, whose ``diagonal`` is given apart. ``floor`` is the least curvature that a move is
credited with.
"""

import numpy as np

from widemargin._core.compiled import compiled


@compiled
def ends(dual, residual, lower, upper):
    """The highest residual of rows that can rise and the lowest of rows that can fall."""
    highest, lowest = -np.inf, np.inf
    for k in range(dual.shape[0]):
        if dual[k] < upper[k]:
            highest = max(highest, residual[k])
        if dual[k] > lower[k]:
            lowest = min(lowest, residual[k])
    return highest, lowest


@compiled
def descend_by_pairs(square, diagonal, lower, upper, dual, residual, tol, steps, floor):
    """Move pairs of dual variables against each other until none violates by tol."""
    n = dual.shape[0]
    i, highest = -1, -np.inf
    for k in range(n):
        if residual[k] >= highest and dual[k] < upper[k]:
            i, highest = k, residual[k]
    for step in range(steps):
        if i < 0:
            return step
        row = square[i]
        j, lowest, gain, curvature = -1, np.inf, 0.0, 1.0
        for k in range(n):
            if dual[k] > lower[k]:
                lowest = min(lowest, residual[k])
                slope = highest - residual[k]
                if slope > 0.0:
                    bend = diagonal[i] + diagonal[k] - 2.0 * row[k]
                    bend = bend if bend > floor else floor
                    if slope * slope * curvature >= gain * bend:
                        j, gain, curvature = k, slope * slope, bend
        if j < 0 or highest - lowest < tol:
            return step
        up, down = upper[i] - dual[i], dual[j] - lower[j]
        length = min((highest - residual[j]) / curvature, up, down)
        dual[i] = upper[i] if length == up else dual[i] + length
        dual[j] = lower[j] if length == down else dual[j] - length
        other = square[j]
        i, highest = -1, -np.inf
        for k in range(n):
            r = residual[k] - length * (row[k] - other[k])
            residual[k] = r
            if r >= highest and dual[k] < upper[k]:
                i, highest = k, r
    return steps


@compiled
def descend_freely(square, diagonal, lower, upper, dual, residual, tol, steps, floor):
    """Move dual variables that no equality ties together until none violates by tol.

    The row that gains most alone moves together with the one that gains most beside it: single
    moves crawl where rows are nearly parallel, as they are when a constant column stands in for
    the intercept.
    """
    n = dual.shape[0]
    for step in range(steps):
        i, gain, worst = -1, 0.0, 0.0
        for k in range(n):
            bend = max(diagonal[k], floor)
            move = min(max(residual[k] / bend, lower[k] - dual[k]), upper[k] - dual[k])
            if move != 0.0:
                worst = max(worst, abs(residual[k]))
                gained = move * (residual[k] - 0.5 * move * bend)
                if gained > gain:
                    i, gain = k, gained
        if i < 0 or worst < tol:
            return step
        row = square[i]
        bend = max(diagonal[i], floor)
        first = min(max(residual[i] / bend, lower[i] - dual[i]), upper[i] - dual[i])
        j, second = -1, 0.0
        for k in range(n):
            if k != i:
                determinant = max(bend * diagonal[k] - row[k] * row[k], floor * bend)
                move = (residual[k] * bend - residual[i] * row[k]) / determinant
                move = min(max(move, lower[k] - dual[k]), upper[k] - dual[k])
                own = (residual[i] - move * row[k]) / bend
                own = min(max(own, lower[i] - dual[i]), upper[i] - dual[i])
                gained = own * (residual[i] - 0.5 * own * bend - move * row[k])
                gained += move * (residual[k] - 0.5 * move * diagonal[k])
                if gained > gain:
                    j, gain, first, second = k, gained, own, move
        dual[i] = _moved(dual[i], first, lower[i], upper[i])
        for k in range(n):
            residual[k] -= first * row[k]
        if j >= 0:
            dual[j] = _moved(dual[j], second, lower[j], upper[j])
            other = square[j]
            for k in range(n):
                residual[k] -= second * other[k]
    return steps


@compiled
def _moved(value, move, lower, upper):
    """Landing exactly on a bound that was the reason to stop."""
    if move == upper - value:
        return upper
    if move == lower - value:
        return lower
    return value + move


@compiled
def square_of(rows, places, columns):
    """rows[places][:, columns] in float64."""
    out = np.empty((places.shape[0], columns.shape[0]))
    for a in range(places.shape[0]):
        row = rows[places[a]]
        for b in range(columns.shape[0]):
            out[a, b] = row[columns[b]]
    return out


@compiled
def carry_over(rows, positions, change, residual, first, last):
    """residual -= change' rows[positions], columns first to last."""
    last = min(last, residual.shape[0])
    part = residual[first:last]
    for a in range(positions.shape[0]):
        row = rows[positions[a], first:last]
        for k in range(part.shape[0]):
            part[k] -= change[a] * row[k]
