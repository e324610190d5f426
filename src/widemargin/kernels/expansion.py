r"""Kernel expansions: sums of kernel values over support vectors.

.. math::

    f_k(x) = \sum_j c_{kj} \, k(x_j, x) + b_k

They are evaluated in blocks of samples over threads, and in float32 where a trial at the end of
training has shown that this gives the same values well within the tolerance of the fit.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base import extended
from widemargin._base.matmul import tiled_multiply
from widemargin._base.options import kernel_options as options
from widemargin._base.threads import for_each
from widemargin._base.validation import canonical_csr
from widemargin.kernels.gram import KernelGram
from widemargin.kernels.parameters import KernelParameters


def weighted_sums(values: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Return the sums of kernel values, a row of coefficients for each function."""
    return tiled_multiply(values, coefficients.T)


@dataclass(eq=False, repr=False)
class KernelExpansion:
    """Functions that are weighted sums of kernel values, for prediction.

    An expansion does not change once it is fitted, and may be evaluated from several threads. What
    it computes on first use (norms of the vectors) is not pickled.

    Parameters
    ----------
    parameters : KernelParameters
        With gamma resolved.
    vectors : ndarray or CSR matrix of shape (n_vectors, n_features), or None
        Support vectors. All training samples for a callable kernel, None for "precomputed".
    coefficients : ndarray of shape (n_functions, n_vectors)
        Weights of the kernel values, in the layout of `combine`.
    intercept : float or ndarray of shape (n_functions,), default=0.0
        Added to the sums.
    columns : index array of shape (n_vectors,), optional
        Indices of the vectors among the training samples, for a callable or precomputed kernel
        whose values are computed against all of them; all by default.
    combine : callable, default=weighted_sums
        ``combine(values, coefficients)`` returns the sums, given the kernel values of samples
        against the vectors. Must be picklable.
    float32 : bool, default=False
        Whether kernel values are computed in float32.
    """

    parameters: KernelParameters
    vectors: Any
    coefficients: np.ndarray
    intercept: float | np.ndarray = 0.0
    _: KW_ONLY
    columns: np.ndarray | None = None
    combine: Callable[[np.ndarray, np.ndarray], np.ndarray] = weighted_sums
    float32: bool = False

    @classmethod
    def from_dual(
        cls, parameters: KernelParameters, X: Any, dual: np.ndarray, intercept: float, tol: float
    ) -> "KernelExpansion":
        """Return the function of a binary problem over the samples X, by its signed dual variables.

        Parameters
        ----------
        parameters : KernelParameters
            Of a named kernel.
        X : ndarray or CSR matrix of shape (n_samples, n_features)
        dual : ndarray of shape (n_samples,)
        intercept : float
        tol : float
            Tolerance of the fit, for `use_float32_within`.

        Returns
        -------
        KernelExpansion
            Its vectors are the samples of nonzero dual variables, those of negative ones first.
        """
        support = np.concatenate([np.flatnonzero(dual < 0), np.flatnonzero(dual > 0)])
        expansion = cls(parameters, X[support], dual[support][np.newaxis], np.array([intercept]))
        expansion.use_float32_within(tol)
        return expansion

    def evaluate(self, X: Any) -> np.ndarray:
        """Compute the values of all functions.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features) or (n_samples, n_samples_fit)
            Validated samples, or their kernel values against the training samples for
            "precomputed".

        Returns
        -------
        values : ndarray of shape (n_samples, n_functions)
        """
        X = self._samples(X)
        if self.weights is not None:
            X = X.toarray() if sp.issparse(X) else X
            return tiled_multiply(X, self.weights) + self.intercept
        return self._evaluate(X, self.float32)

    def select(self, functions: Any) -> "KernelExpansion":
        """Return the expansion of some of the functions, with the vectors that they need."""
        if self.combine is not weighted_sums:
            raise ValueError("select needs a row of coefficients for each function.")
        coefficients = self.coefficients[functions]
        support = np.flatnonzero(coefficients.any(axis=0))
        support = support if len(support) else np.array([0])
        return replace(
            self,
            vectors=self.vectors if self.parameters.is_pairwise else self.vectors[support],
            coefficients=coefficients[:, support],
            intercept=np.broadcast_to(self.intercept, len(self.coefficients))[functions],
            columns=support if self.columns is None else self.columns[support],
        )

    def use_float32_within(self, tol: float) -> None:
        """Evaluate in float32 from now on if that changes the values by at most a tenth of tol.

        This is tried on a sample of the vectors. Called once, at the end of a fit.
        """
        if self.parameters.is_pairwise or self.vectors.shape[0] < options.float32_vectors:
            return
        if not self._exact.fits_float32():
            return
        sample = self.vectors[:: max(1, self.vectors.shape[0] // options.float32_sample)]
        error = np.abs(self._evaluate(sample, True) - self._evaluate(sample, False)).max()
        self.float32 = bool(error <= options.float32_share * tol)

    def check_loaded(self) -> None:
        """Raise a ValueError if the arrays do not fit together, as in a forged file."""
        n_vectors, columns = self.coefficients.shape[-1], self.columns
        end = np.inf
        if callable(self.parameters.kernel):
            end = np.shape(self.vectors)[0]
        if not self.parameters.is_pairwise and self.vectors.shape[0] != n_vectors:
            raise ValueError(f"{self.vectors.shape[0]} vectors have {n_vectors} coefficients.")
        if columns is None:
            return
        if columns.dtype.kind not in "iu" or columns.shape != (n_vectors,):
            raise ValueError(
                f"columns must hold {n_vectors} indices, got {columns.dtype} of shape "
                f"{columns.shape}."
            )
        if n_vectors and not 0 <= columns.min() <= columns.max() < end:
            raise ValueError(
                f"columns must hold indices from 0 below {end}, got {columns.min()} to "
                f"{columns.max()}."
            )

    def _samples(self, X):
        """Samples in the container of the vectors, or kernel values against training samples."""
        if callable(self.parameters.kernel):
            return self.parameters.call(X, self.vectors)
        if sp.issparse(self.vectors) and not sp.issparse(X):
            X = type(self.vectors)(X)
        return canonical_csr(X)

    def _evaluate(self, X, float32):
        n_vectors = self.coefficients.shape[1]
        step = max(1, min(options.block_samples, options.block_bytes // (8 * max(n_vectors, 1))))

        def block(start):
            values = self._kernel_values(X[start : start + step], float32)
            return self.combine(values.astype(np.float64, copy=False), self.coefficients)

        return np.concatenate(for_each(block, range(0, X.shape[0], step))) + self.intercept

    def _kernel_values(self, X, float32):
        """Kernel values of samples against the vectors."""
        if self.parameters.is_pairwise:
            return np.ascontiguousarray(X if self.columns is None else X[:, self.columns])
        if sp.issparse(X) and not sp.issparse(self.vectors):
            X = X.toarray()
        if not float32:
            return self._exact.cross_values(X)
        # float32 was tried on the vectors: samples far beyond them are left to float64.
        far = self._exact.are_far(X)
        if not far.any():
            return self._rounded.cross_values(X)
        out = np.empty((X.shape[0], self._exact.size))
        out[~far] = self._rounded.cross_values(X[~far])
        out[far] = self._exact.cross_values(X[far])
        return out

    @cached_property
    def weights(self) -> np.ndarray | None:
        """Weights of the features, for a linear kernel whose values lose digits to an offset.

        They are the sums of the vectors with twice the digits of float64; None where plain sums of
        kernel values are as accurate, or this takes too long.
        """
        if self.parameters.kernel != "linear" or self.parameters.add_constant:
            return None
        n_vectors, gram = self.coefficients.shape[1], self._exact.without_offset()
        if gram.offset is None or not n_vectors:
            return None
        step = max(1, options.exact_entries // n_vectors)
        units = (np.eye(min(step, n_vectors - i), n_vectors, i) for i in range(0, n_vectors, step))
        blocks = [sp.csr_array(self.combine(block, self.coefficients)) for block in units]
        coefficients = sp.vstack(blocks, format="csc")
        if coefficients.nnz * self.vectors.shape[1] > options.exact_sum_work:
            return None
        sums = []
        for span in map(slice, coefficients.indptr[:-1], coefficients.indptr[1:]):
            columns = self.vectors[coefficients.indices[span]].T
            pair = extended.exact(np.ascontiguousarray(columns))
            sums.append(extended.matrix_product(pair, extended.exact(coefficients.data[span]))[0])
        return np.ascontiguousarray(np.transpose(sums))

    @cached_property
    def _exact(self) -> KernelGram:
        """The vectors with their norms."""
        return self.parameters.gram_of_vectors(self.vectors)

    @cached_property
    def _rounded(self) -> KernelGram:
        """The same in float32."""
        return self._exact.as_float32(options.block_bytes)

    def __getstate__(self):
        computed = ("weights", "_exact", "_rounded")
        return {name: value for name, value in vars(self).items() if name not in computed}
