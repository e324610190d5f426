"""Compiled steps of the hinge solver: pair updates on a dense subproblem.

All functions update ``dual`` and ``residual`` = p - K dual in place. ``matrix`` is a dense Gram
matrix whose ``diagonal`` is passed separately. Rows of it that are not ``filled`` are copied from
the ``samples`` of ``source``, or computed with ``gamma``, when they are needed (see
`kernels.dense`). ``floor`` is the smallest curvature along a pair.
"""

import numpy as np

from widemargin._base.jit import compiled, uncompiled
from widemargin.kernels.dense import filled_row, filled_row_by_vectors

_LARGEST = np.int64(np.iinfo(np.int64).max)
_SMALLEST = np.int64(np.iinfo(np.int64).min)
_ALL_BITS = np.int64(-1)  # a mask that keeps everything


def _vector_work(matrix, filled, source, samples, gamma, diagonal, lower, upper, dual, *rest):
    """Return the microseconds of the vector operations below, with ten updates per sample."""
    n, steps = dual.shape[0], rest[2]
    return (20.0 + 0.01 * n) * min(steps, 10 * n)


@compiled
def residual_extremes(dual, residual, lower, upper):
    """Return the highest residual that can rise and the lowest that can fall."""
    highest, lowest = -np.inf, np.inf
    for k in range(dual.shape[0]):
        if dual[k] < upper[k]:
            highest = max(highest, residual[k])
        if dual[k] > lower[k]:
            lowest = min(lowest, residual[k])
    return highest, lowest


@compiled(work=_vector_work)
def descend_with_intercept(
    matrix, filled, source, samples, gamma, diagonal, lower, upper, dual, residual, tol, steps,
    floor,
):  # fmt: skip
    """Move pairs of dual variables against each other until none violates by ``tol``.

    Returns the number of updates, at most ``steps``.
    """
    n = dual.shape[0]
    mask = _rank_mask(n)
    # Added to a residual, these rank samples last that cannot rise (fall).
    rising, falling = np.empty(n), np.empty(n)
    for k in range(n):
        rising[k] = 0.0 if dual[k] < upper[k] else -np.inf
        falling[k] = 0.0 if dual[k] > lower[k] else np.inf
    i, j = _extreme_positions(residual, rising, falling)
    for step in range(steps):
        highest, lowest = residual[i] + rising[i], residual[j] + falling[j]
        if not highest - lowest >= tol:
            # Ranks omit the last bits; convergence is decided by all of them.
            i, j = _extreme_positions(residual, rising, falling)
            highest, lowest = residual[i] + rising[i], residual[j] + falling[j]
            if not highest - lowest >= tol:
                return step
        row, k_ii, best = filled_row(matrix, filled, source, samples, gamma, i), diagonal[i], 0
        for k in range(n):
            slope = highest - (residual[k] + falling[k])
            slope = slope if slope > 0.0 else 0.0
            curvature = k_ii + diagonal[k] - 2.0 * row[k]
            curvature = curvature if curvature > floor else floor
            best = max(best, _rank(slope * slope / curvature, k, mask))
        j = best & ~mask if best & mask else j
        curvature = max(k_ii + diagonal[j] - 2.0 * row[j], floor)
        up, down = upper[i] - dual[i], dual[j] - lower[j]
        length = min((highest - residual[j]) / curvature, up, down)
        dual[i] = upper[i] if length == up else dual[i] + length
        dual[j] = lower[j] if length == down else dual[j] - length
        for k in (i, j):
            rising[k] = 0.0 if dual[k] < upper[k] else -np.inf
            falling[k] = 0.0 if dual[k] > lower[k] else np.inf
        other = filled_row(matrix, filled, source, samples, gamma, j)
        top, bottom = _SMALLEST, _LARGEST
        for k in range(n):
            r = residual[k] - length * (row[k] - other[k])
            residual[k] = r
            top = max(top, _rank(r + rising[k], k, mask))
            bottom = min(bottom, _rank(r + falling[k], k, mask))
        i, j = top & ~mask, bottom & ~mask
    return steps


@compiled(work=_vector_work)
def descend_without_intercept(
    matrix, filled, source, samples, gamma, diagonal, lower, upper, dual, residual, tol, steps,
    floor,
):  # fmt: skip
    """Move dual variables without an equality constraint until none violates by ``tol``.

    The variable with the largest gain moves together with the one that adds most to it: single
    updates converge slowly where samples are nearly parallel in the feature space, as they are
    with a constant feature in place of an intercept. Returns the number of updates.
    """
    n = dual.shape[0]
    mask = _rank_mask(n)
    for step in range(steps):
        best, worst = 0, 0
        for k in range(n):
            curvature = diagonal[k] if diagonal[k] > floor else floor
            move = _clipped(residual[k] / curvature, lower[k] - dual[k], upper[k] - dual[k])
            best = max(best, _rank(move * (residual[k] - 0.5 * move * curvature), k, mask))
            worst = max(worst, _rank(abs(residual[k]) if move != 0.0 else 0.0, 0, _ALL_BITS))
        if not best & mask or worst < _rank(tol, 0, _ALL_BITS):
            return step
        i = best & ~mask
        row, rest = filled_row(matrix, filled, source, samples, gamma, i), residual[i]
        curvature = diagonal[i] if diagonal[i] > floor else floor
        smallest, largest = lower[i] - dual[i], upper[i] - dual[i]
        for k in range(n):
            move_j, move_i = _pair_step(
                row[k], rest, curvature, smallest, largest,
                residual[k], diagonal[k], lower[k] - dual[k], upper[k] - dual[k], floor,
            )  # fmt: skip
            gained = move_i * (rest - 0.5 * move_i * curvature - move_j * row[k])
            gained += move_j * (residual[k] - 0.5 * move_j * diagonal[k])
            best = max(best, _rank(gained if gained > 0.0 and k != i else 0.0, k, mask))
        j = best & ~mask
        if j == i:
            move_j, move_i = 0.0, _clipped(rest / curvature, smallest, largest)
        else:
            move_j, move_i = _pair_step(
                row[j], rest, curvature, smallest, largest,
                residual[j], diagonal[j], lower[j] - dual[j], upper[j] - dual[j], floor,
            )  # fmt: skip
            dual[j] = _moved_within(dual[j], move_j, lower[j], upper[j])
        dual[i] = _moved_within(dual[i], move_i, lower[i], upper[i])
        other = filled_row(matrix, filled, source, samples, gamma, j)
        for k in range(n):
            residual[k] = residual[k] - move_i * row[k] - move_j * other[k]
    return steps


@compiled
def _pair_step(
    cross, rest, curvature, smallest, largest, other_rest, diagonal, lower, upper, floor
):
    """Return the step of one variable, and that of the first variable together with it."""
    determinant = curvature * diagonal - cross * cross
    determinant = determinant if determinant > floor * curvature else floor * curvature
    move = _clipped((other_rest * curvature - rest * cross) / determinant, lower, upper)
    return move, _clipped((rest - move * cross) / curvature, smallest, largest)


@compiled
def _clipped(value, lower, upper):
    value = value if value > lower else lower
    return value if value < upper else upper


@compiled
def _moved_within(value, move, lower, upper):
    """Return value + move, exactly at a bound that limits the move."""
    if move == upper - value:
        return upper
    if move == lower - value:
        return lower
    return value + move


@compiled(work=lambda rows, positions, columns: 0.01 * len(positions) * len(columns))
def gather_columns(rows, positions, columns):
    """Return rows[positions][:, columns] in float64."""
    out = np.empty((positions.shape[0], columns.shape[0]))
    for a in range(positions.shape[0]):
        row = rows[positions[a]]
        for b in range(columns.shape[0]):
            out[a, b] = row[columns[b]]
    return out


@compiled(work=lambda rows, positions, *rest: len(positions) * (2.0 + 0.002 * rows.shape[1]))
def subtract_columns(rows, positions, change, residual, first, last):
    """Compute residual -= change' rows[positions] in place, for columns first to last."""
    last = min(last, residual.shape[0])
    block = residual[first:last]
    for a in range(positions.shape[0]):
        row = rows[positions[a], first:last]
        for k in range(block.shape[0]):
            block[k] -= change[a] * row[k]


# A rank is an integer that sorts like a float; its last bits are replaced by the position of the
# float. The largest float and its position are then a maximum over integers, for which there are
# vector instructions and no special rules for nan.


@compiled
def _rank_mask(n):
    """Return the bits of a rank above those that n positions need."""
    mask = _ALL_BITS
    while ~mask < n - 1:
        mask <<= 1
    return mask


@compiled
def _rank(number, position, mask):
    bits = np.float64(number).view(np.int64)
    return ((bits ^ ((bits >> 63) & _LARGEST)) & mask) | position


@compiled
def _extreme_positions(residual, rising, falling):
    """Return the positions of the highest residual that can rise and lowest that can fall."""
    i, j = 0, 0
    for k in range(residual.shape[0]):
        if residual[k] + rising[k] >= residual[i] + rising[i]:
            i = k
        if residual[k] + falling[k] < residual[j] + falling[j]:
            j = k
    return i, j


# The same steps in vector operations, which run until the functions above are compiled.


@uncompiled(residual_extremes)
def _residual_extremes_by_vectors(dual, residual, lower, upper):
    highest = np.fmax.reduce(residual[dual < upper], initial=-np.inf)
    return highest, np.fmin.reduce(residual[dual > lower], initial=np.inf)


@uncompiled(_rank)
def _ranks(numbers, positions, mask):
    bits = np.asarray(numbers, dtype=np.float64).view(np.int64)
    return ((bits ^ ((bits >> 63) & _LARGEST)) & mask) | positions


@uncompiled(_extreme_positions)
def _extremes_by_vectors(residual, rising, falling):
    last = residual.shape[0] - 1
    return last - np.argmax((residual + rising)[::-1]), np.argmin(residual + falling)


@uncompiled(_clipped)
def _clipped_vectors(value, lower, upper):
    value = np.where(value > lower, value, lower)
    return np.where(value < upper, value, upper)


@uncompiled(descend_with_intercept)
def _descend_with_intercept_by_vectors(
    matrix, filled, source, samples, gamma, diagonal, lower, upper, dual, residual, tol, steps,
    floor,
):  # fmt: skip
    n = dual.shape[0]
    mask, positions = _rank_mask.__wrapped__(n), np.arange(n)
    rising = np.where(dual < upper, 0.0, -np.inf)
    falling = np.where(dual > lower, 0.0, np.inf)
    i, j = _extremes_by_vectors(residual, rising, falling)
    for step in range(steps):
        highest, lowest = residual[i] + rising[i], residual[j] + falling[j]
        if not highest - lowest >= tol:
            i, j = _extremes_by_vectors(residual, rising, falling)
            highest, lowest = residual[i] + rising[i], residual[j] + falling[j]
            if not highest - lowest >= tol:
                return step
        row, k_ii = filled_row_by_vectors(matrix, filled, source, samples, gamma, i), diagonal[i]
        slopes = highest - (residual + falling)
        slopes = np.where(slopes > 0.0, slopes, 0.0)
        curvatures = k_ii + diagonal - 2.0 * row
        curvatures = np.where(curvatures > floor, curvatures, floor)
        best = max(0, _ranks(slopes * slopes / curvatures, positions, mask).max())
        j = best & ~mask if best & mask else j
        up, down = upper[i] - dual[i], dual[j] - lower[j]
        length = min((highest - residual[j]) / curvatures[j], up, down)
        dual[i] = upper[i] if length == up else dual[i] + length
        dual[j] = lower[j] if length == down else dual[j] - length
        for k in (i, j):
            rising[k] = 0.0 if dual[k] < upper[k] else -np.inf
            falling[k] = 0.0 if dual[k] > lower[k] else np.inf
        other = filled_row_by_vectors(matrix, filled, source, samples, gamma, j)
        residual -= length * (row - other)
        i = _ranks(residual + rising, positions, mask).max() & ~mask
        j = _ranks(residual + falling, positions, mask).min() & ~mask
    return steps


@uncompiled(descend_without_intercept)
def _descend_without_intercept_by_vectors(
    matrix, filled, source, samples, gamma, diagonal, lower, upper, dual, residual, tol, steps,
    floor,
):  # fmt: skip
    n = dual.shape[0]
    mask, positions = _rank_mask.__wrapped__(n), np.arange(n)
    curvatures = np.where(diagonal > floor, diagonal, floor)
    for step in range(steps):
        below, above = lower - dual, upper - dual
        moves = _clipped_vectors(residual / curvatures, below, above)
        gains = moves * (residual - 0.5 * moves * curvatures)
        best = max(0, _ranks(gains, positions, mask).max())
        worst = np.where(moves != 0.0, np.abs(residual), 0.0).max()
        if not best & mask or _ranks(worst, 0, _ALL_BITS) < _ranks(tol, 0, _ALL_BITS):
            return step
        i = best & ~mask
        row = filled_row_by_vectors(matrix, filled, source, samples, gamma, i)
        rest, curvature = residual[i], curvatures[i]
        moves_j, moves_i = _pair_steps(
            row, rest, curvature, below[i], above[i], residual, diagonal, below, above, floor
        )
        gains = moves_i * (rest - 0.5 * moves_i * curvature - moves_j * row)
        gains += moves_j * (residual - 0.5 * moves_j * diagonal)
        gains[i] = 0.0
        best = max(best, _ranks(np.where(gains > 0.0, gains, 0.0), positions, mask).max())
        j = best & ~mask
        move_j, move_i = moves_j[j], moves_i[j]
        if j == i:
            move_j, move_i = 0.0, float(_clipped_vectors(rest / curvature, below[i], above[i]))
        else:
            dual[j] = _moved_within.__wrapped__(dual[j], move_j, lower[j], upper[j])
        dual[i] = _moved_within.__wrapped__(dual[i], move_i, lower[i], upper[i])
        other = filled_row_by_vectors(matrix, filled, source, samples, gamma, j)
        residual -= move_i * row
        residual -= move_j * other
    return steps


@uncompiled(_pair_step)
def _pair_steps(
    cross, rest, curvature, smallest, largest, other_rest, diagonal, lower, upper, floor
):
    determinant = curvature * diagonal - cross * cross
    determinant = np.where(determinant > floor * curvature, determinant, floor * curvature)
    move = _clipped_vectors((other_rest * curvature - rest * cross) / determinant, lower, upper)
    return move, _clipped_vectors((rest - move * cross) / curvature, smallest, largest)


@uncompiled(gather_columns)
def _gather_by_vectors(rows, positions, columns):
    return rows[positions[:, np.newaxis], columns].astype(np.float64)


@uncompiled(subtract_columns)
def _subtract_by_vectors(rows, positions, change, residual, first, last):
    for position, amount in zip(positions, change, strict=True):
        residual[first:last] -= amount * rows[position, first:last]
