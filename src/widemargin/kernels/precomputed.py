"""Checks of kernel matrices that users have computed."""

import numpy as np

from widemargin._base.numeric import TINY
from widemargin._base.options import kernel_options as options


def check_symmetric(matrix: np.ndarray, name: str) -> None:
    """Raise a ValueError unless the matrix is symmetric to about the precision of float32."""
    largest = max(float(matrix.max()), -float(matrix.min()))
    for start in range(0, len(matrix), options.stripe):
        rows = slice(start, start + options.stripe)
        difference = np.abs(matrix[rows] - matrix[:, rows].T)
        if difference.max() > options.asymmetry * largest:
            i, j = np.unravel_index(difference.argmax(), difference.shape)
            raise ValueError(
                f"{name} must be symmetric, got {matrix[start + i, j]:.6g} for a pair of samples "
                f"and {matrix[j, start + i]:.6g} for the same pair in the other order. Use "
                "(K + K.T) / 2 in place of a matrix K that is not symmetric."
            )


def is_positive_semidefinite(matrix: np.ndarray) -> bool:
    """Return whether a Cholesky factorization, tried where it costs less than a fit, shows it."""
    if len(matrix) > options.largest_factored:
        return False
    shift = 1e-10 * max(float(np.trace(matrix)), TINY)
    try:
        np.linalg.cholesky(matrix + shift / len(matrix) * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True
