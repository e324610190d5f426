"""Functions of the privileged columns, in coordinates in which slack costs are diagonal.

Rows of weights w_i with privileged columns z_i (and a constant 1, for slack that has no constant
of its own) make a matrix A = W^1/2 Z = U S V'. In the coordinates t of v = V t

    C sum_i w_i (v.z_i)^2 + penalty |v|^2  =  sum_k (penalty + C S_k^2) t_k^2

for all C and penalties at once. With a kernel, A A' takes the place of A. Neither depends on
labels: one decomposition serves all classes.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy import linalg

from widemargin._base.threads import single_threaded_blas

_EPSILON = float(np.finfo(float).eps)
_INDEFINITE = 1e-8


@dataclass(frozen=True)
class SlackSpace:
    """U and S of the module's docstring, and V where it is at hand.

    ``root`` is the square root of the weights; the last row of V is that of the constant.
    """

    vectors: np.ndarray
    sizes: np.ndarray
    root: np.ndarray
    loadings: np.ndarray | None

    @staticmethod
    def of_columns(Z, weight, constant: bool) -> "SlackSpace":
        """The space of linear functions of few columns."""
        root = np.sqrt(weight)
        rows = Z.toarray() if sp.issparse(Z) else Z
        if constant:
            rows = np.hstack([rows, np.ones((len(rows), 1))])
        with single_threaded_blas():
            U, S, Vt = linalg.svd(root[:, np.newaxis] * rows, full_matrices=False)
        kept = S[0] * max(rows.shape) * _EPSILON < S
        return SlackSpace(np.ascontiguousarray(U[:, kept]), S[kept], root, Vt[kept].T)

    @staticmethod
    def of_gram(gram, weight, constant: bool, same: np.ndarray) -> "SlackSpace":
        """The space of functions with a kernel.

        ``same`` numbers the distinct rows: those that stand there several times count as one
        with the sum of their weights.
        """
        distinct = np.unique(same, return_index=True)[1]
        total = np.sqrt(np.bincount(same, weights=weight))
        matrix = gram.block(distinct, distinct) + float(constant)
        with single_threaded_blas():
            values, vectors = linalg.eigh(
                total[:, np.newaxis] * matrix * total, overwrite_a=True, check_finite=False
            )
        largest = max(float(values[-1]), np.finfo(float).tiny)
        if values[0] < -_INDEFINITE * largest:
            raise ValueError(
                "privileged_kernel must be positive semidefinite on the privileged columns; its "
                f"smallest eigenvalue is {values[0]:.3g}, its largest {largest:.3g}. Use 'linear', "
                "'rbf' or 'laplacian'."
            )
        kept = values > largest * len(values) * _EPSILON
        root = np.sqrt(weight)
        spread = (root / total[same])[:, np.newaxis] * vectors[same][:, kept]
        return SlackSpace(np.ascontiguousarray(spread), np.sqrt(values[kept]), root, None)

    def factor(self, C: float, penalty: float) -> np.ndarray:
        """F of Q = F F' = Z (penalty I + C Z' W Z)^-1 Z', a row for every row."""
        scale = self.sizes / np.sqrt(penalty + C * self.sizes**2)
        return self.vectors * scale / self.root[:, np.newaxis]

    def rows(self) -> np.ndarray:
        """Coordinates of the rows: the values of a function t at them are ``rows() @ t``."""
        return self.vectors * self.sizes / self.root[:, np.newaxis]

    def coordinates(self, alphas: np.ndarray, C: float, penalty: float) -> np.ndarray:
        """t of v = (penalty I + C Z' W Z)^-1 Z' alpha, for every column alpha."""
        scale = self.sizes / (penalty + C * self.sizes**2)
        with single_threaded_blas():
            along = self.vectors.T @ (alphas / self.root[:, np.newaxis])
        return scale[:, np.newaxis] * along

    def values(self, coordinates: np.ndarray) -> np.ndarray:
        """Values at the rows of the functions whose t are the columns."""
        with single_threaded_blas():
            values = self.vectors @ (self.sizes[:, np.newaxis] * coordinates)
        return values / self.root[:, np.newaxis]

    def dual(self, coordinates: np.ndarray) -> np.ndarray:
        """gamma of v = Z' gamma, for every column t."""
        with single_threaded_blas():
            along = self.vectors @ (coordinates / self.sizes[:, np.newaxis])
        return self.root[:, np.newaxis] * along


def distinct_rows(Z) -> np.ndarray:
    """For each row the number of the first row equal to it, counted without gaps."""
    if sp.issparse(Z):
        ends = zip(Z.indptr[:-1], Z.indptr[1:], strict=True)
        keys = [Z.indices[a:b].tobytes() + Z.data[a:b].tobytes() for a, b in ends]
    else:
        keys = [row.tobytes() for row in Z]
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])
