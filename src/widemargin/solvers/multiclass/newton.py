"""Newton steps on the free variables of the problem of Crammer and Singer (see `problem`).

A variable is free when it is not at its bound. In a sample with several free classes F_i one of
them, r, is the reference: it changes by minus the sum of the others, so that the variables keep
their sum. With d_ik the change of the others, the best one while all of them stay free solves

    sum_jl k(x_i, x_j) <e_k - e_r(i), e_l - e_r(j)> d_jl = g_ir(i) - g_ik   for k in F_i, k != r(i)

The cases of `free_set_newton` are handled as there: a step that leaves the bounds is cut, the
variable that blocks it is fixed, and a direction without curvature is followed to the bounds,
which there always are.
"""

import numpy as np

from widemargin._base.jit import compiled, uncompiled
from widemargin._base.options import newton_options as options
from widemargin.solvers.free_set_newton import longest_step, newton_direction
from widemargin.solvers.multiclass.problem import CrammerSingerProblem


def free_samples(problem: CrammerSingerProblem, dual: np.ndarray) -> np.ndarray:
    """Return samples with several free classes: the first if there are too many of them.

    With more than twice as many free variables as a Newton step may have, none are returned.
    """
    spare = (dual < problem.upper).sum(axis=1) - 1
    samples = np.flatnonzero(spare > 0)
    total = np.cumsum(spare[samples])
    return samples[(total <= options.most_free) & (total[-1:] <= 2 * options.most_free)]


def newton_step(
    problem: CrammerSingerProblem,
    matrix: np.ndarray,
    dual: np.ndarray,
    scores: np.ndarray,
    work: float = options.work,
) -> bool:
    """Take Newton steps in place if they improve the dual objective.

    Parameters
    ----------
    problem : CrammerSingerProblem
        The problem of the samples that may change.
    matrix : ndarray of shape (n, n)
        Their Gram matrix, including the constant feature.
    dual : ndarray of shape (n, n_classes)
        Dual variables, changed in place.
    scores : ndarray of shape (n_classes, n)
        Scores, changed in place.
    work : float, optional
        Multiplications after which no further step is taken.

    Returns
    -------
    improved : bool
    """
    gradient = np.ascontiguousarray(problem.gradients(scores).T)
    new_dual, slope = dual.copy(), gradient.copy()
    arrays = matrix, problem.upper, gradient, dual, new_dual, slope
    _take_steps(*arrays, options.most_free, float(work))
    # The dual is quadratic: its gain is the change times the mean of both slopes.
    gain = -np.sum((new_dual - dual) * (gradient + slope))
    if not gain > 0.0:
        return False
    scores += (slope - gradient).T
    dual[:] = new_dual
    return True


@compiled(cost=6.0)
def _take_steps(matrix, upper, gradient, dual, new_dual, slope, most_free, work):
    """Take Newton steps from ``dual`` until none is cut; write where they end, and its slope."""
    n, n_classes = dual.shape
    change, lowest = np.empty(dual.shape), np.full(dual.size, -np.inf)
    reference = np.empty(n, np.int64)
    sample, other = np.empty(most_free, np.int64), np.empty(most_free, np.int64)
    done = 0.0
    while done < work:
        m = _free_variables(upper, new_dual, reference, sample, other)
        if m == 0 or m > most_free:
            return
        residual = np.empty(m)
        for a in range(m):
            i = sample[a]
            residual[a] = slope[i, reference[i]] - slope[i, other[a]]
        second = _second_derivatives(matrix, sample[:m], other[:m], reference)
        step, unbounded = newton_direction(second, np.arange(m), residual, False)
        change[:] = 0.0
        for a in range(m):
            change[sample[a], other[a]] = step[a]
            change[sample[a], reference[sample[a]]] -= step[a]
        length, blocking = longest_step(
            new_dual.ravel(), change.ravel(), lowest, upper.ravel(), unbounded
        )
        if not length < np.inf:
            return
        _move(upper, new_dual, change, length, blocking, reference, sample[:m])
        _set_slope(matrix, gradient, dual, new_dual, slope)
        done += m**3 + n * n * n_classes
        if blocking < 0:
            return


@compiled
def _move(upper, dual, change, length, blocking, reference, sample):
    """Add the change times a length to the dual variables; the blocking one ends at its bound."""
    n, n_classes = dual.shape
    for i in range(n):
        for k in range(n_classes):
            moved = dual[i, k] + length * change[i, k]
            at_bound = i * n_classes + k == blocking or moved > upper[i, k]
            dual[i, k] = upper[i, k] if at_bound else moved
    # The sum is 0 to the last bit, so that samples leave the support vectors.
    for i in sample:
        k, total = reference[i], 0.0
        for c in range(n_classes):
            total += dual[i, c] if c != k else 0.0
        if i * n_classes + k != blocking:
            dual[i, k] = min(-total, upper[i, k])


@compiled
def _set_slope(matrix, gradient, dual, new_dual, slope):
    """Set the slope to that at ``new_dual``; the gradient is the slope at ``dual``."""
    n, n_classes = dual.shape
    for i in range(n):
        for k in range(n_classes):
            slope[i, k] = gradient[i, k]
    for j in range(n):
        for k in range(n_classes):
            moved = new_dual[j, k] - dual[j, k]
            if moved != 0.0:
                for i in range(n):
                    slope[i, k] += matrix[j, i] * moved


@compiled
def _free_variables(upper, dual, reference, sample, other):
    """Find the free variables apart from the references; return how many there are."""
    m = 0
    for i in range(dual.shape[0]):
        best, reference[i] = -1.0, 0
        for k in range(dual.shape[1]):
            if dual[i, k] < upper[i, k] and upper[i, k] - dual[i, k] > best:
                best, reference[i] = upper[i, k] - dual[i, k], k
        for k in range(dual.shape[1]):
            if k != reference[i] and dual[i, k] < upper[i, k]:
                if m < sample.shape[0]:
                    sample[m], other[m] = i, k
                m += 1
    return m


@compiled
def _second_derivatives(matrix, sample, other, reference):
    """Return the second derivatives of the dual over the free variables."""
    m = sample.shape[0]
    second = np.empty((m, m))
    for a in range(m):
        i, first = sample[a], reference[sample[a]]
        for b in range(m):
            last = reference[sample[b]]
            same = (other[a] == other[b]) - (other[a] == last) * 1.0
            same += (first == last) - (first == other[b]) * 1.0
            second[a, b] = matrix[i, sample[b]] * same
    return second


# The same in vector operations, which run until the functions above are compiled.


@uncompiled(_set_slope)
def _set_slope_by_vectors(matrix, gradient, dual, new_dual, slope):
    moved = new_dual - dual
    for k in range(dual.shape[1]):
        active = np.flatnonzero(moved[:, k])
        terms = np.vstack([gradient[:, k], matrix[active] * moved[active, k, np.newaxis]])
        slope[:, k] = np.add.accumulate(terms)[-1]


@uncompiled(_move)
def _move_by_vectors(upper, dual, change, length, blocking, reference, sample):
    moved = dual + length * change
    at_bound = moved > upper
    if blocking >= 0:
        at_bound.ravel()[blocking] = True
    dual[:] = np.where(at_bound, upper, moved)
    index = reference[sample]
    others = dual[sample]
    others[np.arange(len(sample)), index] = 0.0
    total = np.minimum(-np.add.accumulate(others, axis=1)[:, -1], upper[sample, index])
    current = dual[sample, index]
    blocked = sample * dual.shape[1] + index == blocking
    dual[sample, index] = np.where(blocked, current, total)


@uncompiled(_free_variables)
def _free_variables_by_vectors(upper, dual, reference, sample, other):
    room = upper - dual
    free = dual < upper
    reference[:] = np.where(free, room, -1.0).argmax(axis=1)
    free[np.arange(len(dual)), reference] = False
    samples, others = np.nonzero(free)
    m = min(len(samples), len(sample))
    sample[:m], other[:m] = samples[:m], others[:m]
    return len(samples)


@uncompiled(_second_derivatives)
def _second_derivatives_by_vectors(matrix, sample, other, reference):
    first, index = reference[sample], sample[:, np.newaxis]
    mine, ours = other[:, np.newaxis], first[:, np.newaxis]
    same = (mine == other) - (mine == first) * 1.0
    same += (ours == first) - (ours == other) * 1.0
    return matrix[index, sample] * same
