"""Decision values of machines that are sums over support vectors.

They are computed in blocks of rows over threads, and in float32 where training has found that this
gives the same scores well within `tol`.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from widemargin._base.threads import for_each
from widemargin._base.validation import canonical_csr, validate_predict

_PREDICT_ROWS = 512
_PREDICT_BYTES = 1 << 25
_SINGLE_SUPPORT = 1000
_SINGLE_SAMPLE = 256


class SupportScores:
    """The part of a kernel machine that gives scores, to be put before the class of the machine.

    It reads the fitted attributes of `SVC` and asks the machine for ``_reduction``, ``_rows_gram``
    and ``_call_kernel``.
    """

    _reduction: Any
    _rows_gram: Any
    _call_kernel: Any
    _n_support: np.ndarray
    _single: bool
    _sparse: bool
    _gamma: float
    _X_fit: Any
    _support_grams: dict
    kernel: Any
    tol: float
    classes_: np.ndarray
    support_: np.ndarray
    support_vectors_: Any
    dual_coef_: Any
    intercept_: np.ndarray
    n_support_: Any

    def _scores(self, X):
        """Decision values of all machines."""
        X = self._check_rows(X)
        return self._scores_in(np.float32 if self._single else np.float64, X)

    def _scores_in(self, dtype, X):
        """Decision values of checked rows, computed in float32 or float64."""
        kernel_values = self._kernel_against_support(dtype)
        reduction = self._reduction(len(self.classes_))
        dual_coef = self.dual_coef_.toarray() if self._sparse else self.dual_coef_
        step = max(1, min(_PREDICT_ROWS, _PREDICT_BYTES // (8 * max(len(self.support_), 1))))

        def block(start):
            values = kernel_values(X[start : start + step]).astype(np.float64, copy=False)
            return reduction.scores(values, dual_coef, self.n_support_)

        scores = for_each(block, range(0, X.shape[0], step))
        return np.concatenate(scores) + self.intercept_

    def _single_is_enough(self):
        """Whether float32 gives the scores of a sample of support vectors well within tol."""
        if callable(self.kernel) or self.kernel == "precomputed":
            return False
        if len(self.support_) < _SINGLE_SUPPORT:
            return False
        if not self._support_gram(np.float64).fits_single():
            return False
        sample = self.support_vectors_[:: max(1, len(self.support_) // _SINGLE_SAMPLE)]
        single, double = (self._scores_in(dtype, sample) for dtype in (np.float32, np.float64))
        return bool(np.abs(single - double).max() <= 0.1 * self.tol)

    def _check_rows(self, X):
        check_is_fitted(self)
        if len(self.support_) != self._n_support.sum():
            raise ValueError(f"The internal representation of {type(self).__name__} was altered.")
        if callable(self.kernel):
            return self._call_kernel(X, self._X_fit)
        X = validate_predict(self, X)
        if self._sparse:
            return canonical_csr(X if sp.issparse(X) else type(self.support_vectors_)(X))
        if sp.issparse(X):
            raise ValueError(
                f"X must be dense: cannot use sparse input in {type(self).__name__!r} trained on "
                "dense data. Use X.toarray()."
            )
        return X

    def _kernel_against_support(self, dtype):
        """A function from checked rows to their kernel values against the support vectors."""
        if callable(self.kernel) or self.kernel == "precomputed":
            return lambda X: np.ascontiguousarray(X[:, self.support_])
        double = self._support_gram(np.float64)
        if dtype == np.float64:
            return double.against
        single = self._support_gram(np.float32)

        def values(X):
            # float32 was tried on support vectors: rows far beyond them are left to float64.
            far = double.are_far(X)
            if not far.any():
                return single.against(X)
            out = np.empty((X.shape[0], double.size))
            out[~far], out[far] = single.against(X[~far]), double.against(X[far])
            return out

        return values

    def _support_gram(self, dtype):
        """The support vectors, made ready for kernel values once."""
        grams = self._support_grams
        if dtype not in grams:
            if dtype == np.float64:
                grams[dtype] = self._rows_gram(self.support_vectors_, self._gamma)
            else:
                grams[dtype] = self._support_gram(np.float64).single(_PREDICT_BYTES)
        return grams[dtype]
