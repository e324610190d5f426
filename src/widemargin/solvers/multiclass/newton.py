"""Newton steps on the free variables of Crammer and Singer's machine (see `crammer_singer`).

A variable is free when it is not at its bound. In a row with several free classes F_i one of them,
r, gives what the others take, so that its variables keep their sum. With d_ik the change of the
others, the best one while all of them stay free solves the linear equations

    sum_jl k(x_i, x_j) <e_k - e_r(i), e_l - e_r(j)> d_jl = g_ir(i) - g_ik   for k in F_i, k != r(i)

Where the step leads out of the bounds it is cut, the variable that blocked it stays at its bound,
and the next step is about the others. Where the matrix is singular and the equations contradict
each other the dual rises along a direction that the matrix does not see: that one is followed to
the edge, which there always is.
"""

import numpy as np

from widemargin._base.options import newton_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.solvers.free_set_newton import longest_step, newton_direction

MOST_WORK = options.work


def free_rows(dual: np.ndarray, label: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """The rows that a leap is about: the first where they are too many, none if far too many."""
    spare = np.count_nonzero(dual < _upper(dual, label, cost), axis=1) - 1
    rows = np.flatnonzero(spare > 0)
    total = np.cumsum(spare[rows])
    return rows[(total <= options.most_free) & (total[-1:] <= 2 * options.most_free)]


def leap(square, label, margin, cost, dual, scores, most_work=MOST_WORK) -> bool:
    """Move ``dual``, of shape (n, n_classes), and ``scores``, its transpose's, in place.

    ``square`` is the Gram matrix of the rows, the constant feature included. Returns whether they
    were moved, which they are only to a better point.
    """
    n, n_classes = dual.shape
    rows, upper = np.arange(n), _upper(dual, label, cost)
    gradient = scores.T + margin[:, np.newaxis]
    gradient[rows, label] -= margin
    here, slope, work = dual.copy(), gradient.copy(), 0
    while work < most_work:
        free = here < upper
        giver = np.where(free, upper - here, -1.0).argmax(axis=1)
        free[rows, giver] = False
        row, taker = np.nonzero(free)
        m = len(row)
        if not 0 < m <= options.most_free:
            break
        step, endless = newton_direction(
            _matrix(square, row, taker, giver[row]),
            np.arange(m),
            slope[row, giver[row]] - slope[row, taker],
            False,
        )
        change = np.zeros_like(here)
        change[row, taker] = step
        change[rows, giver] = -change.sum(axis=1)
        length, blocking = longest_step(
            here.ravel(), change.ravel(), np.full(here.size, -np.inf), upper.ravel(), endless
        )
        if not np.isfinite(length):
            break
        here += length * change
        np.minimum(here, upper, out=here)
        if blocking >= 0:
            here.flat[blocking] = upper.flat[blocking]
        with single_threaded_blas():
            slope = gradient + square @ (here - dual)
        work += m**3 + n * n * n_classes
        if blocking < 0:
            break
    # The dual is quadratic: what it gains is what the mean of both slopes says.
    gain = -np.sum((here - dual) * (gradient + slope))
    if not gain > 0.0:
        return False
    scores += (slope - gradient).T
    dual[:] = here
    return True


def _upper(dual, label, cost):
    upper = np.zeros_like(dual)
    upper[np.arange(len(dual)), label] = cost
    return upper


def _matrix(square, row, taker, giver):
    """Second derivatives of the dual over the variables."""
    places = (taker[:, np.newaxis] == taker).astype(np.float64)
    places -= taker[:, np.newaxis] == giver
    places -= giver[:, np.newaxis] == taker
    places += giver[:, np.newaxis] == giver
    return np.ascontiguousarray(square[np.ix_(row, row)] * places)
