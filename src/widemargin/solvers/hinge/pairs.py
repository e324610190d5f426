"""The hinge solver's compiled steps: descent on a dense subproblem, and what goes with it.

All work in place on ``dual`` and ``residual`` = p - K dual, over the rows of a dense ``square`` of
the Gram matrix, whose ``diagonal`` is given apart. Rows of it that are not ``known`` are copied
from the ``places`` of ``source`` when they are needed (see `kernels.square`). ``floor`` is the
least curvature that a move is credited with.
"""

import numpy as np

from widemargin._base.jit import compiled

_GREATEST = np.int64(np.iinfo(np.int64).max)
_LEAST = np.int64(np.iinfo(np.int64).min)
_EVERYTHING = np.int64(-1)


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
def descend_by_pairs(
    square, known, source, places, diagonal, lower, upper, dual, residual, tol, steps, floor
):
    """Move pairs of dual variables against each other until none violates by tol."""
    n = dual.shape[0]
    mask = _above_places(n)
    # What to add to a residual so that rows which cannot rise (fall) come last.
    rising, falling = np.empty(n), np.empty(n)
    for k in range(n):
        rising[k] = 0.0 if dual[k] < upper[k] else -np.inf
        falling[k] = 0.0 if dual[k] > lower[k] else np.inf
    i, j = _extremes(residual, rising, falling)
    for step in range(steps):
        highest, lowest = residual[i] + rising[i], residual[j] + falling[j]
        if not highest - lowest >= tol:
            # Ranks leave out the last digits; the end is told from all of them.
            i, j = _extremes(residual, rising, falling)
            highest, lowest = residual[i] + rising[i], residual[j] + falling[j]
            if not highest - lowest >= tol:
                return step
        row, own, best = _known_row(square, known, source, places, i), diagonal[i], 0
        for k in range(n):
            slope = highest - (residual[k] + falling[k])
            slope = slope if slope > 0.0 else 0.0
            bend = own + diagonal[k] - 2.0 * row[k]
            bend = bend if bend > floor else floor
            best = max(best, _rank(slope * slope / bend, k, mask))
        j = best & ~mask if best & mask else j
        bend = max(own + diagonal[j] - 2.0 * row[j], floor)
        up, down = upper[i] - dual[i], dual[j] - lower[j]
        length = min((highest - residual[j]) / bend, up, down)
        dual[i] = upper[i] if length == up else dual[i] + length
        dual[j] = lower[j] if length == down else dual[j] - length
        for k in (i, j):
            rising[k] = 0.0 if dual[k] < upper[k] else -np.inf
            falling[k] = 0.0 if dual[k] > lower[k] else np.inf
        other = _known_row(square, known, source, places, j)
        top, bottom = _LEAST, _GREATEST
        for k in range(n):
            r = residual[k] - length * (row[k] - other[k])
            residual[k] = r
            top = max(top, _rank(r + rising[k], k, mask))
            bottom = min(bottom, _rank(r + falling[k], k, mask))
        i, j = top & ~mask, bottom & ~mask
    return steps


@compiled
def descend_freely(
    square, known, source, places, diagonal, lower, upper, dual, residual, tol, steps, floor
):
    """Move dual variables that no equality ties together until none violates by tol.

    The row that gains most alone moves together with the one that gains most beside it: single
    moves crawl where rows are nearly parallel, as they are when a constant column stands in for
    the intercept.
    """
    n = dual.shape[0]
    mask = _above_places(n)
    for step in range(steps):
        best, worst = 0, 0
        for k in range(n):
            bend = diagonal[k] if diagonal[k] > floor else floor
            move = _clipped(residual[k] / bend, lower[k] - dual[k], upper[k] - dual[k])
            best = max(best, _rank(move * (residual[k] - 0.5 * move * bend), k, mask))
            worst = max(worst, _rank(abs(residual[k]) if move != 0.0 else 0.0, 0, _EVERYTHING))
        if not best & mask or worst < _rank(tol, 0, _EVERYTHING):
            return step
        i = best & ~mask
        row, rest = _known_row(square, known, source, places, i), residual[i]
        bend = diagonal[i] if diagonal[i] > floor else floor
        least, greatest = lower[i] - dual[i], upper[i] - dual[i]
        for k in range(n):
            move, own = _together(
                row[k], rest, bend, least, greatest,
                residual[k], diagonal[k], lower[k] - dual[k], upper[k] - dual[k], floor,
            )  # fmt: skip
            gained = own * (rest - 0.5 * own * bend - move * row[k])
            gained += move * (residual[k] - 0.5 * move * diagonal[k])
            best = max(best, _rank(gained if gained > 0.0 and k != i else 0.0, k, mask))
        j = best & ~mask
        if j == i:
            move, own = 0.0, _clipped(rest / bend, least, greatest)
        else:
            move, own = _together(
                row[j], rest, bend, least, greatest,
                residual[j], diagonal[j], lower[j] - dual[j], upper[j] - dual[j], floor,
            )  # fmt: skip
            dual[j] = _moved(dual[j], move, lower[j], upper[j])
        dual[i] = _moved(dual[i], own, lower[i], upper[i])
        other = _known_row(square, known, source, places, j)
        for k in range(n):
            residual[k] = residual[k] - own * row[k] - move * other[k]
    return steps


@compiled
def _known_row(square, known, source, places, i):
    row = square[i]
    if not known[i]:
        known[i] = True
        given = source[places[i]]
        for k in range(places.shape[0]):
            row[k] = given[places[k]]
    return row


@compiled
def _together(cross, rest, bend, least, greatest, other_rest, diagonal, lower, upper, floor):
    """How far a row moves beside another one, and that other one with it."""
    determinant = bend * diagonal - cross * cross
    determinant = determinant if determinant > floor * bend else floor * bend
    move = _clipped((other_rest * bend - rest * cross) / determinant, lower, upper)
    return move, _clipped((rest - move * cross) / bend, least, greatest)


@compiled
def _clipped(value, lower, upper):
    value = value if value > lower else lower
    return value if value < upper else upper


@compiled
def _moved(value, move, lower, upper):
    """Landing exactly on a bound that was the reason to stop."""
    if move == upper - value:
        return upper
    if move == lower - value:
        return lower
    return value + move


@compiled
def rows_between(rows, places, columns):
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


# A rank is an integer that sorts as a number does and ends in the place it was found at, instead of
# the number's last digits: the greatest number and its place are then a maximum over integers, for
# which there are vector instructions and no rules about rounding or nan.


@compiled
def _above_places(n):
    """The bits of a rank above those that n places need."""
    mask = _EVERYTHING
    while ~mask < n - 1:
        mask <<= 1
    return mask


@compiled
def _rank(number, place, mask):
    bits = np.float64(number).view(np.int64)
    return ((bits ^ ((bits >> 63) & _GREATEST)) & mask) | place


@compiled
def _extremes(residual, rising, falling):
    """Where the highest residual that can rise and the lowest that can fall are."""
    i, j = 0, 0
    for k in range(residual.shape[0]):
        if residual[k] + rising[k] >= residual[i] + rising[i]:
            i = k
        if residual[k] + falling[k] < residual[j] + falling[j]:
            j = k
    return i, j
