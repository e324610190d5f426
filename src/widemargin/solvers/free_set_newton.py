"""From a solution to ``tol`` to a solution to machine precision, for small problems.

Near the optimum the rows strictly inside their box stay inside it, and on them the optimality
conditions are linear equations:

    K_FF d + nu 1 = residual_F,   sum(d) = 0

One Newton step solves them. Where it leads out of the box the step is cut and the row that
blocked it is fixed there. Where K_FF is singular and the equations contradict each other, the
dual rises for ever along a direction that K_FF does not see: that one is followed to the edge of
the box. Where rows outside F turn out to violate, the solver goes on at a tenth of the tolerance
and the step is tried again.
"""

from collections.abc import Callable

import numpy as np

from widemargin._base.jit import compiled
from widemargin.solvers.hinge.problem import NotSeparableError

MOST_FREE = 300

_PRECISION = 1e-12
_DEPENDENT = 1e-11
_CONTRADICTION = 1e-8
_MOST_WORK = 200_000_000
_ROUNDS = 8


def polish(
    matrix: np.ndarray,
    linear: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    dual: np.ndarray,
    residual: np.ndarray,
    intercept: bool,
    descend: Callable[[float], bool],
) -> None:
    """Bring ``dual`` and ``residual`` to machine precision in place, or leave a solution to tol.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        The Gram matrix.
    linear : ndarray of shape (n,)
        p of the dual.
    lower, upper : ndarray of shape (n,)
        Its box.
    dual, residual : ndarray of shape (n,)
        The solution to improve.
    intercept : bool
    descend : callable
        ``descend(factor)`` works on ``dual`` and ``residual`` in place until they meet the
        solver's tolerance times ``factor``; False when it could not.
    """
    for round_ in range(_ROUNDS):
        if round_ and not descend(0.1**round_):
            return
        if leap(matrix, linear, lower, upper, dual, residual, intercept) <= _PRECISION:
            return


def leap(matrix, linear, lower, upper, dual, residual, intercept) -> float:
    """Take Newton steps in place if they lead to a better point; the violation that is left.

    Parameters are those of `polish`. The violation is relative to the size of f and of the
    margins, and infinite if no step was taken: there are more than `MOST_FREE` free rows, or
    rounding made it worse.
    """
    farther, rest = dual.copy(), residual.copy()
    left = _newton(matrix, linear, lower, upper, farther, rest, intercept, MOST_FREE)
    if left == -np.inf:
        raise NotSeparableError
    if left < np.inf:
        dual[:], residual[:] = farther, rest
    return left


@compiled
def _newton(matrix, linear, lower, upper, dual, residual, intercept, most_free):
    """Newton steps on the free rows until none is cut; the relative violation that is left.

    inf when there are too many free rows or nothing is gained, -inf when the dual has no maximum.
    """
    n = dual.shape[0]
    value = _value(dual, linear, residual)
    free = np.empty(min(n, most_free), np.int64)
    work = _MOST_WORK
    while work > 0:
        m = 0
        for k in range(n):
            if lower[k] < dual[k] < upper[k]:
                if m == most_free:
                    return np.inf
                free[m] = k
                m += 1
        if m == 0:
            break
        work -= m * m * m + n * n
        step, endless = free_step(matrix, free[:m], residual, intercept)
        length, blocking = np.inf if endless else 1.0, -1
        for a in range(m):
            k = free[a]
            if step[a] > 0.0:
                room = (upper[k] - dual[k]) / step[a]
            elif step[a] < 0.0:
                room = (lower[k] - dual[k]) / step[a]
            else:
                continue
            if room < length:
                length, blocking = room, a
        if length == np.inf:
            return -np.inf
        for a in range(m):
            dual[free[a]] += length * step[a]
        if blocking >= 0:
            k = free[blocking]
            dual[k] = upper[k] if step[blocking] > 0.0 else lower[k]
        for k in range(n):
            residual[k] = linear[k]
        for j in range(n):
            if dual[j] != 0.0:
                for k in range(n):
                    residual[k] -= dual[j] * matrix[j, k]
        if blocking < 0:
            break
    if _value(dual, linear, residual) < value - 1e-14 * abs(value):
        return np.inf
    highest, lowest, scale = -np.inf, np.inf, 1e-300
    for k in range(n):
        scale = max(scale, abs(linear[k]), abs(linear[k] - residual[k]))
        if dual[k] < upper[k]:
            highest = max(highest, residual[k])
        if dual[k] > lower[k]:
            lowest = min(lowest, residual[k])
    return max(highest - lowest if intercept else max(highest, -lowest), 0.0) / scale


@compiled
def _value(dual, linear, residual):
    """The dual objective, to be maximised."""
    total = 0.0
    for k in range(dual.shape[0]):
        total += 0.5 * dual[k] * (linear[k] + residual[k])
    return total


@compiled
def free_step(matrix, free, residual, intercept):
    """d of the equations in the module's docstring, and whether it is a direction without end.

    sum(d) = 0 lets a constant be added to the matrix without changing d; it carries the
    intercept's dimension, so that rows which differ from others only through it still count.
    """
    m = free.shape[0]
    shift = 0.0
    if intercept:
        for a in range(m):
            shift += matrix[free[a], free[a]] / m
    factor, depends = _factorise(matrix, free, shift)
    step = np.empty(m)
    largest = 0.0
    for a in range(m):
        step[a] = residual[free[a]]
        largest = max(largest, abs(step[a]))
    _solve_lower(factor, depends, step)
    worst, excess = -1, _CONTRADICTION * largest
    for a in range(m):
        if depends[a] and abs(step[a]) > excess:
            worst, excess = a, abs(step[a])
    if worst >= 0:
        sign = 1.0 if step[worst] > 0.0 else -1.0
        for a in range(m):
            step[a] = -sign * factor[worst, a] if a < worst else 0.0
        _solve_upper(factor, depends, step)
        step[worst] = sign
        return step, True
    _solve_upper(factor, depends, step)
    if intercept:
        ones = np.ones(m)
        _solve_lower(factor, depends, ones)
        _solve_upper(factor, depends, ones)
        multiplier = step.sum() / ones.sum()
        for a in range(m):
            step[a] -= multiplier * ones[a]
    return step, False


@compiled
def _factorise(matrix, free, shift):
    """Cholesky factor of the free rows' matrix; rows that depend on those before them are marked.

    A marked row keeps its entries in the columns of the others and has nothing in its own. Columns
    are taken by fours, so that what is right of them is read and written once for all four.
    """
    m = free.shape[0]
    factor = np.zeros((m, m))
    for a in range(m):
        row = matrix[free[a]]
        for b in range(a + 1):
            factor[a, b] = row[free[b]] + shift
    four = np.zeros((4, m))
    depends = np.zeros(m, np.bool_)
    for first in range(0, m, 4):
        last = min(first + 4, m)
        four[:] = 0.0
        for c in range(first, last):
            own = four[c - first]
            for a in range(c, m):
                entry = factor[a, c]
                for before in range(first, c):
                    entry -= factor[a, before] * factor[c, before]
                own[a] = entry
            pivot = own[c]
            depends[c] = pivot <= _DEPENDENT * (matrix[free[c], free[c]] + shift)
            scale = 0.0 if depends[c] else 1.0 / np.sqrt(pivot)
            for a in range(c, m):
                own[a] *= scale
                factor[a, c] = own[a]
        for a in range(last, m):
            row = factor[a]
            w, x, y, z = four[0, a], four[1, a], four[2, a], four[3, a]
            for b in range(last, a + 1):
                row[b] -= w * four[0, b] + x * four[1, b] + (y * four[2, b] + z * four[3, b])
    return factor, depends


@compiled
def _solve_lower(factor, depends, right):
    """Forward substitution in place; a marked row keeps what the others leave unexplained."""
    for a in range(right.shape[0]):
        total = right[a]
        for b in range(a):
            if not depends[b]:
                total -= factor[a, b] * right[b]
        right[a] = total if depends[a] else total / factor[a, a]


@compiled
def _solve_upper(factor, depends, right):
    """Backward substitution in place; marked rows get 0."""
    for a in range(right.shape[0] - 1, -1, -1):
        right[a] = 0.0 if depends[a] else right[a] / factor[a, a]
        for b in range(a):
            right[b] -= factor[a, b] * right[a]
