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

from widemargin._base.options import newton_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.solvers.free_set_newton import longest_step, newton_direction
from widemargin.solvers.multiclass.problem import CrammerSingerProblem


def free_samples(problem: CrammerSingerProblem, dual: np.ndarray) -> np.ndarray:
    """Return samples with several free classes: the first if there are too many of them.

    With more than twice as many free variables as a Newton step may have, none are returned.
    """
    spare = np.count_nonzero(dual < problem.upper(), axis=1) - 1
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
    n, n_classes = dual.shape
    samples, upper = np.arange(n), problem.upper()
    gradient = np.ascontiguousarray(problem.gradients(scores).T)
    new_dual, slope, done = dual.copy(), gradient.copy(), 0
    while done < work:
        free = new_dual < upper
        reference = np.where(free, upper - new_dual, -1.0).argmax(axis=1)
        free[samples, reference] = False
        sample, other = np.nonzero(free)
        m = len(sample)
        if not 0 < m <= options.most_free:
            break
        second = _second_derivatives(matrix, sample, other, reference[sample])
        residual = slope[sample, reference[sample]] - slope[sample, other]
        step, unbounded = newton_direction(second, np.arange(m), residual, False)
        change = np.zeros_like(new_dual)
        change[sample, other] = step
        change[samples, reference] = -change.sum(axis=1)
        bounds = np.full(dual.size, -np.inf), upper.ravel()
        length, blocking = longest_step(new_dual.ravel(), change.ravel(), *bounds, unbounded)
        if not np.isfinite(length):
            break
        new_dual += length * change
        np.minimum(new_dual, upper, out=new_dual)
        if blocking >= 0:
            new_dual.flat[blocking] = upper.flat[blocking]
        with single_threaded_blas():
            slope = gradient + matrix @ (new_dual - dual)
        done += m**3 + n * n * n_classes
        if blocking < 0:
            break
    # The dual is quadratic: its gain is the change times the mean of both slopes.
    gain = -np.sum((new_dual - dual) * (gradient + slope))
    if not gain > 0.0:
        return False
    scores += (slope - gradient).T
    dual[:] = new_dual
    return True


def _second_derivatives(
    matrix: np.ndarray, sample: np.ndarray, other: np.ndarray, reference: np.ndarray
) -> np.ndarray:
    """Return the second derivatives of the dual over the free variables."""
    products = (other[:, np.newaxis] == other).astype(np.float64)
    products -= other[:, np.newaxis] == reference
    products -= reference[:, np.newaxis] == other
    products += reference[:, np.newaxis] == reference
    return np.ascontiguousarray(matrix[np.ix_(sample, sample)] * products)
