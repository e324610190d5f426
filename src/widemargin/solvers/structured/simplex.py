"""A quadratic program over the simplex, by an interior-point method.

    max over a   linear' a - 1/2 a' G a    subject to   a >= 0,  sum(a) = 1

With multipliers z of a >= 0 and nu of the sum, a z = 0 and linear - G a + z = nu at the solution.
Moves between two coordinates solve ordinary programs faster, and converge slowly where G is
ill-conditioned: cutting planes of unscaled features.
"""

import numpy as np
from scipy import linalg

from widemargin._base.numeric import TINY
from widemargin._base.options import interior_point_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.solvers import interior_point


@interior_point.quiet
def simplex_optimum(gram: np.ndarray, linear: np.ndarray) -> np.ndarray:
    """Return the solution of the program, close to machine precision."""
    n = len(linear)
    # In units in which the largest entry of G is 1.
    unit = max(float(np.abs(gram).max()), TINY)
    gram, linear = gram / unit, linear / unit
    point, nu = np.full(n, 1.0 / n), float(linear.max())
    multipliers = np.full(n, 1.0 + float(np.abs(linear).max()))
    progress = interior_point.Progress(options.soft_precision, options.near)
    with single_threaded_blas():
        for _ in range(options.iterations):
            residual = linear - gram @ point + multipliers - nu
            scale = max(abs(float(linear @ point)), float(point @ gram @ point), TINY)
            distance = max(float(point @ multipliers), float(np.abs(residual).max())) / scale
            if progress.update(distance, point):
                break
            try:
                factor = interior_point.cholesky(gram + np.diag(multipliers / point))
            except (linalg.LinAlgError, ValueError):
                break
            point, multipliers, nu = _step(factor, residual, point, multipliers, nu)
    found = np.maximum(progress.point if progress.point is not None else point, 0.0)
    return found / found.sum()


def _step(
    factor: tuple, residual: np.ndarray, point: np.ndarray, multipliers: np.ndarray, nu: float
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the next point, multipliers and nu."""
    along = linalg.cho_solve(factor, np.ones(len(point)), check_finite=False)

    def direction(change: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        moved = linalg.cho_solve(factor, residual + change / point, check_finite=False)
        shift = float(moved.sum() + point.sum() - 1.0) / float(along.sum())
        moved = moved - shift * along
        return np.array(shift), moved, (change - multipliers * moved) / point

    shift, moved, changed, length = interior_point.predictor_corrector(
        direction, point, multipliers, len(point)
    )
    return point + length * moved, multipliers + length * changed, nu + length * float(shift)
