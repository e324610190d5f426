"""From a solution to ``tol`` to a solution to machine precision, for small problems.

Near the optimum the rows strictly inside their box stay inside it, and on them the optimality
conditions are linear equations:

    K_FF d + nu 1 = residual_F,   sum(d) = 0

One Newton step solves them. Where it leads out of the box the step is cut and the row that
blocked it is fixed there; where rows outside F turn out to violate, the solver goes on at a tenth
of the tolerance and the step is tried again.
"""

from collections.abc import Callable

import numpy as np

from widemargin._core.compiled import compiled

MOST_FREE = 300

_PRECISION = 1e-12
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
    scale = float(np.max(np.abs(linear), initial=0.0))
    scale = max(scale, float(np.max(np.abs(linear - residual), initial=0.0)))
    for round_ in range(_ROUNDS):
        if round_ and not descend(0.1**round_):
            return
        polished, rest = dual.copy(), residual.copy()
        left = _newton(matrix, linear, lower, upper, polished, rest, intercept, MOST_FREE)
        if left <= _PRECISION * scale:
            dual[:], residual[:] = polished, rest
            return


@compiled
def _newton(matrix, linear, lower, upper, dual, residual, intercept, most_free):
    """Newton steps on the free rows until none is cut; the violation that is left, or inf."""
    n = dual.shape[0]
    free = np.empty(min(n, most_free), np.int64)
    for _ in range(n):
        m = 0
        for k in range(n):
            if lower[k] < dual[k] < upper[k]:
                if m == most_free:
                    return np.inf
                free[m] = k
                m += 1
        if m == 0:
            break
        step = _free_step(matrix, free[:m], residual, intercept)
        length, blocking = 1.0, -1
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
    highest, lowest = -np.inf, np.inf
    for k in range(n):
        if dual[k] < upper[k]:
            highest = max(highest, residual[k])
        if dual[k] > lower[k]:
            lowest = min(lowest, residual[k])
    return highest - lowest if intercept else max(highest, -lowest, 0.0)


@compiled
def _free_step(matrix, free, residual, intercept):
    """d of the equations in the module's docstring; 0 for rows that depend on others before them.

    sum(d) = 0 lets a constant be added to the matrix without changing d; it carries the
    intercept's dimension, so that rows which differ from others only through it still count.
    """
    m = free.shape[0]
    shift = 0.0
    if intercept:
        for a in range(m):
            shift += matrix[free[a], free[a]] / m
    factor = np.empty((m, m))
    for a in range(m):
        for b in range(a + 1):
            factor[a, b] = matrix[free[a], free[b]] + shift
    column = np.empty(m)
    depends = np.zeros(m, np.bool_)
    for c in range(m):
        pivot = factor[c, c]
        if pivot <= 1e-11 * (matrix[free[c], free[c]] + shift):
            depends[c] = True
            factor[c:, c] = 0.0
            factor[c, c] = 1.0
            continue
        root = np.sqrt(pivot)
        factor[c, c] = root
        for a in range(c + 1, m):
            factor[a, c] /= root
            column[a] = factor[a, c]
        for a in range(c + 1, m):
            weight = column[a]
            for b in range(c + 1, a + 1):
                factor[a, b] -= weight * column[b]
    step = np.empty(m)
    ones = np.ones(m)
    for a in range(m):
        step[a] = residual[free[a]]
    for right in (step, ones):
        for a in range(m):
            if depends[a]:
                right[a] = 0.0
                continue
            total = right[a]
            for b in range(a):
                total -= factor[a, b] * right[b]
            right[a] = total / factor[a, a]
        for a in range(m - 1, -1, -1):
            right[a] /= factor[a, a]
            for b in range(a):
                right[b] -= factor[a, b] * right[a]
            if depends[a]:
                right[a] = 0.0
    if intercept:
        multiplier = step.sum() / ones.sum()
        for a in range(m):
            step[a] -= multiplier * ones[a]
    return step
