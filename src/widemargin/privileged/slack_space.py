"""Functions of the privileged features, in coordinates in which the cost of slack is diagonal.

Samples of weights w_i with privileged features z_i (and a constant feature 1, for slack without an
intercept) make a matrix A = W^1/2 Z = U S V'. In the coordinates t of v = V t

    C sum_i w_i (v.z_i)^2 + penalty |v|^2  =  sum_k (penalty + C S_k^2) t_k^2

for all C and penalties at once. With a kernel, A A' is decomposed instead. Neither depends on the
labels: one decomposition serves all classes.

Mixed slack v.z_i + s_i has a part that is free for every sample, at the price
(penalty / ridge) w_i s_i^2. It adds ``ridge`` to all S_k^2, those of functions that are 0 at all
samples included: Q is F F' plus the diagonal matrix of ridge / (penalty + C ridge) / w_i. An
infinite ridge leaves the latter alone, the slack of an SVM with the squared hinge loss.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg

from widemargin._base.numeric import EPSILON, TINY
from widemargin._base.options import privileged_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.kernels import KernelGram, MatrixGram


@dataclass(frozen=True)
class SlackSpace:
    """U and S of the module's docstring, and V where it was computed.

    ``root`` is the square root of the weights. The last row of V is that of the constant feature.
    """

    vectors: np.ndarray
    sizes: np.ndarray
    root: np.ndarray
    loadings: np.ndarray | None

    @staticmethod
    def of_features(Z: Any, weight: np.ndarray, constant: bool) -> "SlackSpace":
        """Return the space of linear functions of few features."""
        root = np.sqrt(weight)
        rows = Z.toarray() if sp.issparse(Z) else Z
        if constant:
            rows = np.hstack([rows, np.ones((len(rows), 1))])
        with single_threaded_blas():
            U, S, Vt = linalg.svd(root[:, np.newaxis] * rows, full_matrices=False)
        nonzero = S[0] * max(rows.shape) * EPSILON < S
        return SlackSpace(np.ascontiguousarray(U[:, nonzero]), S[nonzero], root, Vt[nonzero].T)

    @staticmethod
    def of_gram(
        gram: KernelGram | MatrixGram, weight: np.ndarray, constant: bool, same: np.ndarray
    ) -> "SlackSpace":
        """Return the space of functions of a kernel.

        ``same`` numbers the distinct samples: repeated ones count as one with the sum of their
        weights.
        """
        distinct = np.unique(same, return_index=True)[1]
        total = np.sqrt(np.bincount(same, weights=weight))
        matrix = gram.block(distinct, distinct) + float(constant)
        with single_threaded_blas():
            values, vectors = linalg.eigh(
                total[:, np.newaxis] * matrix * total, overwrite_a=True, check_finite=False
            )
        largest = max(float(values[-1]), TINY)
        if values[0] < -options.indefinite * largest:
            raise ValueError(
                "privileged_kernel must be positive semidefinite on the privileged features, got a "
                f"smallest eigenvalue of {values[0]:.3g} and a largest of {largest:.3g}. Use "
                "'linear', 'rbf' or 'laplacian'."
            )
        nonzero = values > largest * len(values) * EPSILON
        root = np.sqrt(weight)
        spread = (root / total[same])[:, np.newaxis] * vectors[same][:, nonzero]
        return SlackSpace(np.ascontiguousarray(spread), np.sqrt(values[nonzero]), root, None)

    def factor(self, C: float, penalty: float, ridge: float = 0.0) -> np.ndarray:
        """Return F of Q = F F' = Z (penalty I + C Z' W Z)^-1 Z', with a row for each sample."""
        if ridge == np.inf:
            return np.zeros((len(self.root), 0))
        both = penalty + C * (self.sizes**2 + ridge)
        scale = self.sizes * np.sqrt(penalty / (penalty + C * ridge) / both)
        return self.vectors * scale / self.root[:, np.newaxis]

    def diagonal(self, C: float, penalty: float, ridge: float) -> np.ndarray | None:
        """Return the diagonal part of Q, of the slack that is free for every sample."""
        if ridge == 0.0:
            return None
        return 1.0 / (penalty / ridge + C) / self.root**2

    def rows(self) -> np.ndarray:
        """Return the coordinates of the samples: a function t has the values ``rows() @ t``."""
        return self.vectors * self.sizes / self.root[:, np.newaxis]

    def coordinates(
        self, alphas: np.ndarray, C: float, penalty: float, ridge: float = 0.0
    ) -> np.ndarray:
        """Return t of v = (penalty I + C Z' W Z)^-1 Z' alpha, for every column alpha."""
        scale = self.sizes / (penalty + C * (self.sizes**2 + ridge))
        with single_threaded_blas():
            along = self.vectors.T @ (alphas / self.root[:, np.newaxis])
        return scale[:, np.newaxis] * along

    def values(self, coordinates: np.ndarray) -> np.ndarray:
        """Return the values at the samples of the functions whose t are the columns."""
        with single_threaded_blas():
            values = self.vectors @ (self.sizes[:, np.newaxis] * coordinates)
        return values / self.root[:, np.newaxis]

    def free_slack(self, alphas: np.ndarray, values: np.ndarray, costs: tuple) -> np.ndarray:
        """Return s for every column alpha, given the values of the functions t.

        ``costs`` are C, the penalty and the ridge.
        """
        diagonal = self.diagonal(*costs)
        if diagonal is None:
            return np.zeros(values.shape)
        weight = (self.root**2)[:, np.newaxis]
        return diagonal[:, np.newaxis] * (alphas - costs[0] * weight * values)

    def dual(self, coordinates: np.ndarray) -> np.ndarray:
        """Return gamma of v = Z' gamma, for every column t."""
        with single_threaded_blas():
            along = self.vectors @ (coordinates / self.sizes[:, np.newaxis])
        return self.root[:, np.newaxis] * along


def distinct_rows(Z: Any) -> np.ndarray:
    """Return the number of each row among the distinct rows."""
    if sp.issparse(Z):
        ends = zip(Z.indptr[:-1], Z.indptr[1:], strict=True)
        keys = [Z.indices[a:b].tobytes() + Z.data[a:b].tobytes() for a, b in ends]
    else:
        keys = [row.tobytes() for row in Z]
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys])
