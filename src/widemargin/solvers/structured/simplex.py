"""A quadratic program over a product of simplices, by an interior-point method.

    max over a   linear' a - 1/2 a' G a    subject to   a >= 0,  sum(a) = 1 over each block

With multipliers z of a >= 0 and nu of the sums, a z = 0 and linear - G a + z = nu at the solution.
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
def simplex_optimum(
    gram: np.ndarray, linear: np.ndarray, block: np.ndarray | None = None
) -> np.ndarray:
    """Return the solution of the program, close to machine precision.

    ``block`` has the number of the block of each coordinate, from 0; there is one by default.
    """
    n = len(linear)
    block = np.zeros(n, dtype=np.int64) if block is None else block
    sums = np.eye(int(block.max()) + 1)[:, block]
    # In units in which the largest entry of G is 1.
    unit = max(float(np.abs(gram).max()), TINY)
    gram, linear = gram / unit, linear / unit
    point, nu = 1.0 / sums.sum(axis=1)[block], np.where(sums > 0, linear, -np.inf).max(axis=1)
    multipliers = np.full(n, 1.0 + float(np.abs(linear).max()))
    progress = interior_point.Progress(options.soft_precision, options.near)
    with single_threaded_blas():
        for _ in range(options.iterations):
            residual = linear - gram @ point + multipliers - nu[block]
            scale = max(abs(float(linear @ point)), float(point @ gram @ point), TINY)
            distance = max(float(point @ multipliers), float(np.abs(residual).max())) / scale
            if progress.update(distance, point):
                break
            try:
                factor = interior_point.cholesky(gram + np.diag(multipliers / point))
                point, multipliers, nu = _step(factor, sums, residual, point, multipliers, nu)
            except (linalg.LinAlgError, ValueError):
                break
    optimum = np.maximum(progress.point if progress.point is not None else point, 0.0)
    return optimum / np.bincount(block, optimum)[block]


def _step(
    factor: tuple, sums: np.ndarray, residual: np.ndarray, point: np.ndarray,
    multipliers: np.ndarray, nu: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Return the next point, multipliers and nu."""
    along = linalg.cho_solve(factor, sums.T, check_finite=False)
    schur = interior_point.cholesky(sums @ along)

    def direction(change: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        moved = linalg.cho_solve(factor, residual + change / point, check_finite=False)
        shift = linalg.cho_solve(schur, sums @ (moved + point) - 1.0, check_finite=False)
        moved = moved - along @ shift
        return shift, moved, (change - multipliers * moved) / point

    shift, moved, changed, length = interior_point.predictor_corrector(
        direction, point, multipliers, len(point)
    )
    return point + length * moved, multipliers + length * changed, nu + length * shift
