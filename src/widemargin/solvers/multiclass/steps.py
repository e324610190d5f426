"""Compiled steps for the problem of Crammer and Singer (see `problem`).

`sweep` passes over the rows of a matrix and keeps the weights of linear functions;
`optimize_batch` optimizes a batch of samples with a given Gram matrix and keeps their scores. The
step of a sample is the same in both.
"""

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.options import crammer_singer_options as options
from widemargin.solvers.jit import column_of, draw, row_ends
from widemargin.solvers.states import ACTIVE, CONVERGED, FINISHED, PASSES, POSITION

# Further entries of the counts of `PassState`, and entries of the levels.
FULL = POSITION + 1
WORST, LOOSE = range(2)

_SKIPPED, _BATCH_SKIPPED = options.skipped_share, options.batch_skipped_share


def _sweep_work(data, *rest):
    """Return the time of a few passes as plain Python."""
    n, n_classes = rest[7].shape
    return min(rest[-1], 5 * n) * (20.0 + n_classes * (5.0 + 0.5 * data.size / n))


@compiled(work=_sweep_work, cost=3.0, lists=True)
def sweep(
    data, indices, indptr, bias, label, margin, cost, norms, dual, weights, order, classes,
    active_classes, counts, levels, random, tol, max_iter, steps,
):  # fmt: skip
    """Optimize one sample after another until the end or ``steps``; return the steps taken."""
    n, n_classes = dual.shape
    gradient, change = np.empty(n_classes), np.empty(n_classes)
    moved = np.empty(n_classes, np.uint32)
    for done in range(steps):
        if counts[POSITION] == counts[ACTIVE]:
            counts[PASSES] += 1
            counts[POSITION] = 0
            if levels[WORST] <= max(levels[LOOSE], tol):
                if levels[WORST] <= tol and counts[FULL] == 1:
                    counts[FINISHED] = counts[CONVERGED] = 1
                    levels[WORST] = 0.0
                    return done
                counts[ACTIVE], counts[FULL] = n, 1
                for i in range(n):
                    active_classes[i] = n_classes
                levels[LOOSE] = max(0.5 * levels[LOOSE], tol)
            else:
                counts[FULL] = 0
            levels[WORST] = 0.0
        if counts[PASSES] >= max_iter:
            counts[FINISHED] = 1
            return done
        position, active = counts[POSITION], counts[ACTIVE]
        i = draw(order, position, active, random)
        members, target, mine = classes[i], label[i], dual[i]
        m = active_classes[i]
        _compute_gradient(
            data, indices, indptr, i, bias, target, margin[i], members, m, weights, gradient
        )
        highest, lowest = _extremes(gradient, mine, target, cost[i], members, m)
        m = _count_active(gradient, mine, target, cost[i], members, m, lowest)
        active_classes[i] = m
        if m <= 1:
            counts[ACTIVE] -= 1
            order[position] = order[counts[ACTIVE]]
            order[counts[ACTIVE]] = i
            continue
        counts[POSITION] += 1
        levels[WORST] = max(levels[WORST], highest - lowest)
        if highest - lowest > _SKIPPED * tol:
            _optimize_sample(gradient, mine, target, cost[i], norms[i], members, m, change)
            _update_weights(data, indices, indptr, i, bias, members, m, change, weights, moved)
    return steps


@compiled(work=lambda matrix, *rest: 5.0 * rest[4].size * (20.0 + len(matrix)))
def optimize_batch(matrix, label, margin, cost, norms, dual, scores, random, tol, passes):
    """Optimize the samples of a batch; return whether no violation exceeds tol in the end.

    Samples found optimal are left out from then on.
    """
    n, n_classes = dual.shape
    active = n
    gradient, change = np.empty(n_classes), np.empty(n_classes)
    members, order = np.arange(n_classes), np.arange(n)
    for _ in range(passes):
        worst, position = 0.0, 0
        while position < active:
            i = draw(order, position, active, random)
            target, mine = label[i], dual[i]
            for k in range(n_classes):
                gradient[k] = scores[k, i] + (0.0 if k == target else margin[i])
            highest, lowest = _extremes(gradient, mine, target, cost[i], members, n_classes)
            if highest <= lowest:
                active -= 1
                order[position] = order[active]
                order[active] = i
                continue
            position += 1
            worst = max(worst, highest - lowest)
            if highest - lowest > _BATCH_SKIPPED * tol:
                _optimize_sample(
                    gradient, mine, target, cost[i], norms[i], members, n_classes, change
                )
                row = matrix[i]
                for k in range(n_classes):
                    if change[k] != 0.0:
                        line, amount = scores[k], change[k]
                        for j in range(n):
                            line[j] += amount * row[j]
        if worst <= tol:
            return True
    return False


@compiled
def _extremes(gradient, mine, target, cost, members, m):
    """Return the greatest g of all active classes, and the least of those not at their bound."""
    highest, lowest = -np.inf, np.inf
    for t in range(m):
        k = members[t]
        highest = max(highest, gradient[k])
        if mine[k] < (cost if k == target else 0.0):
            lowest = min(lowest, gradient[k])
    return highest, lowest


@compiled
def _count_active(gradient, mine, target, cost, members, m, lowest):
    """Move classes held at their bounds behind the active ones; return how many are active."""
    t = 0
    while t < m:
        k = members[t]
        if gradient[k] < lowest and mine[k] == (cost if k == target else 0.0):
            m -= 1
            members[t] = members[m]
            members[m] = k
        else:
            t += 1
    return m


@compiled
def _optimize_sample(gradient, mine, target, cost, norm, members, m, change):
    """Set the dual variables of a sample to their optimal values; store their ``change``.

    The level is found by dropping classes that do not reach it until all that are left do.
    """
    curvature = norm if norm > 0.0 else 1.0
    for t in range(m):
        k = members[t]
        bound = cost if k == target else 0.0
        change[k] = gradient[k] + curvature * (bound - mine[k])
    level, reaching = -np.inf, m + 1
    while True:
        total, count = -curvature * cost, 0
        for t in range(m):
            top = change[members[t]]
            if top > level:
                total += top
                count += 1
        if count >= reaching or count == 0:  # rounding may bring a dropped class back
            break
        level, reaching = total / count, count
    for t in range(m):
        k = members[t]
        bound = cost if k == target else 0.0
        new = bound - max(0.0, change[k] - level) / curvature
        change[k] = new - mine[k]
        mine[k] = new


@compiled
def _compute_gradient(
    data, indices, indptr, i, bias, target, margin, members, m, weights, gradient
):
    """Compute g of the active classes of sample i: of all if most are active, else by fours."""
    n_classes = gradient.shape[0]
    constant = weights.shape[0] - 1
    first, last = row_ends(indices, indptr, i, constant)
    if 2 * m > n_classes:
        for k in range(n_classes):
            gradient[k] = margin + bias * weights[constant, k]
        for p in range(first, last - 1, 2):
            value, other = data[p], data[p + 1]
            line = weights[column_of(indices, p, first)]
            next_line = weights[column_of(indices, p + 1, first)]
            for k in range(n_classes):
                gradient[k] += value * line[k] + other * next_line[k]
        if (last - first) % 2 == 1:
            value, line = data[last - 1], weights[column_of(indices, last - 1, first)]
            for k in range(n_classes):
                gradient[k] += value * line[k]
    else:
        for t in range(0, m, 4):
            # Where there are fewer than four left, the last one is taken several times.
            a, b = members[t], members[min(t + 1, m - 1)]
            c, d = members[min(t + 2, m - 1)], members[min(t + 3, m - 1)]
            at_a, at_b, at_c, at_d = 0.0, 0.0, 0.0, 0.0
            for p in range(first, last):
                value, line = data[p], weights[column_of(indices, p, first)]
                at_a += value * line[a]
                at_b += value * line[b]
                at_c += value * line[c]
                at_d += value * line[d]
            gradient[a] = margin + bias * weights[constant, a] + at_a
            gradient[b] = margin + bias * weights[constant, b] + at_b
            gradient[c] = margin + bias * weights[constant, c] + at_c
            gradient[d] = margin + bias * weights[constant, d] + at_d
    gradient[target] -= margin


@compiled
def _update_weights(data, indices, indptr, i, bias, members, m, change, weights, moved):
    """Update the weights for a change of the dual variables of sample i, two classes at a time."""
    constant = weights.shape[0] - 1
    first, last = row_ends(indices, indptr, i, constant)
    count = 0
    for t in range(m):
        k = members[t]
        if change[k] != 0.0:
            moved[count] = k
            count += 1
            weights[constant, k] += bias * change[k]
    for t in range(0, count - 1, 2):
        a, b = moved[t], moved[t + 1]
        by_a, by_b = change[a], change[b]
        for p in range(first, last):
            value, line = data[p], weights[column_of(indices, p, first)]
            line[a] += value * by_a
            line[b] += value * by_b
    if count % 2 == 1:
        a = moved[count - 1]
        by_a = change[a]
        for p in range(first, last):
            weights[column_of(indices, p, first), a] += data[p] * by_a
