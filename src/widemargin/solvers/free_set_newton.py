"""Newton's method on the free variables of a quadratic program with bounds.

    max over beta   p' beta - 1/2 beta' K beta,   lower <= beta <= upper,   sum(beta) = 0

(the sum only where there is an intercept). A variable is free when it is strictly between its
bounds. Near the optimum the set F of free variables no longer changes, and the optimality
conditions on it are linear equations in the step d:

    K_FF d + nu 1 = residual_F,   sum(d) = 0,   residual = p - K beta

One Newton step solves them exactly, however ill-conditioned K is, where updates of single
variables or pairs converge slowly. Three cases are handled:

- The step leaves the bounds. It is cut there, the variable that blocks it is fixed at its bound,
  and the next step is about the others.
- K_FF is singular and the equations are consistent. Dependent variables keep their values.
- K_FF is singular and the equations contradict each other. The dual rises without limit along a
  direction in the null space of K_FF, which is followed to the bounds.

`free_set_newton` is the whole method. Problems with other constraints use its parts:
`newton_direction` solves the equations, `longest_step` cuts the step (`multiclass.newton`,
`coupled.active_set`).
"""

import math

import numpy as np

from widemargin._base.jit import compiled, uncompiled
from widemargin._base.options import newton_options as options
from widemargin.solvers.hinge.pairs import residual_extremes
from widemargin.solvers.hinge.problem import NotSeparableError
from widemargin.solvers.jit import copy_entries

_WORK = options.work
_DEPENDENCE = options.dependence
_CONTRADICTION = options.contradiction


def free_set_newton(
    matrix: np.ndarray,
    linear: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    dual: np.ndarray,
    residual: np.ndarray,
    intercept: bool,
) -> float:
    """Take Newton steps in place if they improve the dual objective.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        Gram matrix K; only the rows of nonzero dual variables are read.
    linear : ndarray of shape (n,)
        p of the dual.
    lower, upper : ndarray of shape (n,)
        Bounds.
    dual, residual : ndarray of shape (n,)
        Solution to improve.
    intercept : bool
        Whether the dual variables have sum 0.

    Returns
    -------
    violation : float
        Violation of the optimality conditions, relative to the size of f and of the margins;
        infinite if no step was taken, because there are too many free variables or rounding made
        the objective worse.
    """
    violation = newton_update(
        matrix, linear, lower, upper, dual, residual, intercept, options.most_free
    )
    if violation == -np.inf:
        raise NotSeparableError
    return violation


def _newton_work(matrix, linear, lower, upper, dual, *rest):
    """Return the time of a few Newton steps in vector operations, in microseconds."""
    free = min(int(np.count_nonzero((lower < dual) & (dual < upper))), options.most_free)
    return 5.0 * (50.0 * free + 0.001 * free**3 + 3.0 * len(dual))


@compiled(work=_newton_work, cost=4.0)
def newton_update(matrix, linear, lower, upper, dual, residual, intercept, most_free):
    """Take Newton steps as `free_set_newton` does; -inf stands for a dual without bound."""
    new_dual, new_residual = dual.copy(), residual.copy()
    violation = _newton(matrix, linear, lower, upper, new_dual, new_residual, intercept, most_free)
    if -np.inf < violation < np.inf:
        copy_entries(new_dual, dual)
        copy_entries(new_residual, residual)
    return violation


@compiled
def _newton(matrix, linear, lower, upper, dual, residual, intercept, most_free):
    """Take Newton steps until none is cut; return the relative violation.

    It is inf with too many free variables or without a gain, -inf if the dual is unbounded.
    """
    n = dual.shape[0]
    value = _dual_objective(dual, linear, residual)
    free = np.empty(min(n, most_free), np.int64)
    work = _WORK
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
        index = free[:m]
        step, unbounded = newton_direction(matrix, index, residual, intercept)
        bounds = _take(lower, index), _take(upper, index)
        length, blocking = longest_step(_take(dual, index), step, bounds[0], bounds[1], unbounded)
        if length == np.inf:
            return -np.inf
        for a in range(m):
            dual[index[a]] += length * step[a]
        if blocking >= 0:
            k = index[blocking]
            dual[k] = upper[k] if step[blocking] > 0.0 else lower[k]
        _set_residual(matrix, linear, dual, residual)
        if blocking < 0:
            break
    if _dual_objective(dual, linear, residual) < value - 1e-14 * abs(value):
        return np.inf
    return _relative_violation(linear, lower, upper, dual, residual, intercept)


@compiled
def longest_step(values, step, lower, upper, unbounded):
    """Return the longest step within the bounds, and the variable that blocks a longer one.

    The length is at most 1 unless ``unbounded``; the variable is -1 where nothing blocks.
    """
    length, blocking = np.inf if unbounded else 1.0, -1
    for k in range(values.shape[0]):
        if step[k] > 0.0:
            longest = (upper[k] - values[k]) / step[k]
        elif step[k] < 0.0:
            longest = (lower[k] - values[k]) / step[k]
        else:
            continue
        if longest < length:
            length, blocking = longest, k
    return length, blocking


@compiled
def _relative_violation(linear, lower, upper, dual, residual, intercept):
    highest, lowest = residual_extremes(dual, residual, lower, upper)
    scale = _largest(linear, residual)
    return max(highest - lowest if intercept else max(highest, -lowest), 0.0) / scale


@compiled
def _largest(linear, residual):
    """Return the size of the margins and of f, which is more than 0."""
    scale = 1e-300
    for k in range(linear.shape[0]):
        scale = max(scale, abs(linear[k]), abs(linear[k] - residual[k]))
    return scale


@compiled
def _dual_objective(dual, linear, residual):
    """Return the dual objective, which is maximized."""
    total = 0.0
    for k in range(dual.shape[0]):
        total += 0.5 * dual[k] * (linear[k] + residual[k])
    return total


@compiled
def _set_residual(matrix, linear, dual, residual):
    """Set the residual to p - K beta."""
    n = dual.shape[0]
    for k in range(n):
        residual[k] = linear[k]
    for j in range(n):
        if dual[j] != 0.0:
            row = matrix[j]
            for k in range(n):
                residual[k] -= dual[j] * row[k]


@compiled
def _take(values, index):
    """Return values[index], of which numba would compile a general version."""
    taken = np.empty(index.shape[0])
    for a in range(index.shape[0]):
        taken[a] = values[index[a]]
    return taken


@compiled(work=lambda matrix, free, *rest: 40.0 * len(free) + 0.002 * len(free) ** 3)
def newton_direction(matrix, free, residual, intercept):
    """Return d of the equations in the module's docstring, and whether it has no natural length.

    A constant may be added to the matrix without changing a d of sum 0. It stands for the
    intercept, so that rows which differ from others only through it are not dependent.
    """
    m = free.shape[0]
    shift = 0.0
    if intercept:
        for a in range(m):
            shift += matrix[free[a], free[a]] / m
    factor, depends = _factorize(matrix, free, shift)
    step = _take(residual, free)
    worst, excess = -1, 0.0
    for a in range(m):
        excess = max(excess, abs(step[a]))
    excess *= _CONTRADICTION
    _solve_lower(factor, depends, step)
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
        ratio = _sum(step) / _sum(ones)
        for a in range(m):
            step[a] -= ratio * ones[a]
    return step, False


@compiled
def _sum(values):
    total = 0.0
    for value in values:
        total += value
    return total


@compiled
def _factorize(matrix, free, shift):
    """Return the Cholesky factor of K_FF, and which rows depend on those before them.

    A dependent row has its entries in the columns of the others and 0 in its own. Four columns are
    eliminated at a time, so that the part right of them is read and written once for all four.
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
        for c in range(4):
            for a in range(m):
                four[c, a] = 0.0
        for c in range(first, last):
            column = four[c - first]
            for a in range(c, m):
                entry = factor[a, c]
                for before in range(first, c):
                    entry -= factor[a, before] * factor[c, before]
                column[a] = entry
            pivot = column[c]
            depends[c] = pivot <= _DEPENDENCE * (matrix[free[c], free[c]] + shift)
            scale = 0.0 if depends[c] else 1.0 / math.sqrt(pivot)
            for a in range(c, m):
                column[a] *= scale
                factor[a, c] = column[a]
        for a in range(last, m):
            row = factor[a]
            w, x, y, z = four[0, a], four[1, a], four[2, a], four[3, a]
            for b in range(last, a + 1):
                row[b] -= w * four[0, b] + x * four[1, b] + (y * four[2, b] + z * four[3, b])
    return factor, depends


@compiled
def _solve_lower(factor, depends, right):
    """Substitute forward in place; a dependent row keeps the residual of its equation."""
    for a in range(right.shape[0]):
        total = right[a]
        for b in range(a):
            if not depends[b]:
                total -= factor[a, b] * right[b]
        right[a] = total if depends[a] else total / factor[a, a]


@compiled
def _solve_upper(factor, depends, right):
    """Substitute backward in place; dependent rows get 0."""
    for a in range(right.shape[0] - 1, -1, -1):
        right[a] = 0.0 if depends[a] else right[a] / factor[a, a]
        for b in range(a):
            right[b] -= factor[a, b] * right[a]


# The same in vector operations, which run until the functions above are compiled. The sums have the
# same order.


@uncompiled(_take)
def _take_by_vectors(values, index):
    return values[index]


@uncompiled(_largest)
def _largest_by_vectors(linear, residual):
    sizes = np.abs([linear, linear - residual])
    return np.fmax.reduce(sizes, axis=None, initial=1e-300)


@uncompiled(_dual_objective)
def _dual_objective_by_vectors(dual, linear, residual):
    return np.add.accumulate(np.append(0.0, 0.5 * dual * (linear + residual)))[-1]


@uncompiled(_sum)
def _sum_in_order(values):
    return np.add.accumulate(values)[-1]


@uncompiled(longest_step)
def _longest_step_by_vectors(values, step, lower, upper, unbounded):
    moves = (step > 0.0) | (step < 0.0)
    longest = np.full(len(values), np.inf)
    np.divide(np.where(step > 0.0, upper, lower) - values, step, out=longest, where=moves)
    longest[np.isnan(longest)] = np.inf
    length, blocking = np.inf if unbounded else 1.0, longest.argmin()
    return (longest[blocking], blocking) if longest[blocking] < length else (length, -1)


@uncompiled(_set_residual)
def _set_residual_by_vectors(matrix, linear, dual, residual):
    active = np.flatnonzero(dual)
    terms = np.vstack([linear, dual[active, np.newaxis] * matrix[active]])
    residual[:] = np.subtract.accumulate(terms)[-1]


@uncompiled(_factorize)
def _factorize_by_vectors(matrix, free, shift):
    m = free.shape[0]
    factor = matrix[free[:, np.newaxis], free] + shift  # nothing reads the upper triangle
    depends = np.zeros(m, np.bool_)
    smallest = (_DEPENDENCE * (matrix[free, free] + shift)).tolist()
    for first in range(0, m, 4):
        last = min(first + 4, m)
        for c in range(first, last):
            column = factor[c:, c]
            for before in range(first, c):
                column -= factor[c:, before] * factor[c, before]
            pivot = float(column[0])
            depends[c] = pivot <= smallest[c]
            column *= 0.0 if depends[c] else 1.0 / math.sqrt(pivot)
        if last < m:
            w, x, y, z = factor[last:, first:last].T
            change = np.multiply.outer(w, w) + np.multiply.outer(x, x)
            change += np.multiply.outer(y, y) + np.multiply.outer(z, z)
            factor[last:, last:] -= change
    return factor, depends


@uncompiled(_solve_lower)
def _solve_lower_by_vectors(factor, depends, right):
    diagonal = factor.diagonal()
    for b in np.flatnonzero(~depends).tolist():
        right[b] /= diagonal[b]
        right[b + 1 :] -= factor[b + 1 :, b] * right[b]


@uncompiled(_solve_upper)
def _solve_upper_by_vectors(factor, depends, right):
    diagonal = factor.diagonal()
    for a in range(right.shape[0] - 1, -1, -1):
        right[a] = 0.0 if depends[a] else right[a] / diagonal[a]
        right[:a] -= factor[a, :a] * right[a]
