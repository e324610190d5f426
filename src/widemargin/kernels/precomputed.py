"""What is looked at in a kernel matrix that somebody else has computed."""

import numpy as np

_SYMMETRIC = 1e-5
_LARGEST_FACTORED = 2000
_STRIPE = 512


def check_symmetric(matrix: np.ndarray, name: str) -> None:
    """Raise a ValueError unless the matrix is symmetric to about the precision of float32."""
    largest = max(float(matrix.max()), -float(matrix.min()))
    for start in range(0, len(matrix), _STRIPE):
        rows = slice(start, start + _STRIPE)
        difference = np.abs(matrix[rows] - matrix[:, rows].T)
        if difference.max() > _SYMMETRIC * largest:
            i, j = np.unravel_index(difference.argmax(), difference.shape)
            raise ValueError(
                f"{name} must be symmetric, got {matrix[start + i, j]:.6g} for a pair of rows and "
                f"{matrix[j, start + i]:.6g} for the same pair in the other order. A matrix K that "
                "is not can be replaced by (K + K.T) / 2."
            )


def is_positive_semidefinite(matrix: np.ndarray) -> bool:
    """Whether this can be shown at a price that does not matter beside the fit's."""
    if len(matrix) > _LARGEST_FACTORED:
        return False
    shift = 1e-10 * max(float(np.trace(matrix)), np.finfo(float).tiny)
    try:
        np.linalg.cholesky(matrix + shift / len(matrix) * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True
