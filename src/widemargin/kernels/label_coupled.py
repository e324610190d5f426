r"""Gram matrices with a part that depends on the labels: k(x_i, x_j) + y_i y_j q_ij.

Slack that is a function of privileged features adds such a part to the kernel, with
:math:`Q = F F^\top` positive semidefinite; free slack of the squared hinge loss adds a diagonal
one. In one-vs-rest classification only the signs y differ between the subproblems.
"""

from typing import Any

import numpy as np

from widemargin._base.jit import compiled, uncompiled
from widemargin._base.matmul import tiled_product
from widemargin._base.numeric import EPSILON
from widemargin.kernels.gram import Gram, MatrixGram, fits_float32, is_everything


class PrivilegedGram(Gram):
    """k(x_i, x_j) + <factor_i, factor_j> + ridge_i [i = j], without a matrix of n x n.

    Parameters
    ----------
    gram : Gram
    factor : ndarray of shape (n, r)
        Rows times the signs of their samples; r may be 0.
    ridge : ndarray of shape (n,), optional
    """

    def __init__(self, gram: Gram, factor: np.ndarray, ridge: np.ndarray | None = None):
        self.gram = gram
        self.factor = np.ascontiguousarray(factor)
        self.ridge = ridge
        self.size, self.dtype = gram.size, factor.dtype
        self.positive_semidefinite = gram.positive_semidefinite

    def is_finite(self) -> bool:
        return self.gram.is_finite() and bool(np.isfinite(self.factor).all())

    def fits_float32(self) -> bool:
        return self.gram.fits_float32() and fits_float32(self.diagonal())

    def rounding(self) -> float:
        return self.gram.rounding()

    def diagonal(self) -> np.ndarray:
        diagonal = self.gram.diagonal() + np.einsum("ij,ij->i", self.factor, self.factor)
        return diagonal if self.ridge is None else diagonal + self.ridge

    def block(self, rows: Any, columns: Any = slice(None), out: Any = None) -> np.ndarray:
        block = self.gram.block(rows, columns)
        if self.factor.shape[1]:
            block = block + tiled_product(self._factor(rows), self._factor(columns))
        if self.ridge is not None:
            index = np.arange(self.size)
            same = index[rows][:, None] == index[columns]
            block = block + np.where(same, self.ridge[columns], 0.0).astype(block.dtype)
        if out is None:
            return block
        out[...] = block
        return out

    def subset(self, index: np.ndarray) -> "PrivilegedGram":
        ridge = None if self.ridge is None else self.ridge[index]
        return PrivilegedGram(self.gram.subset(index), self.factor[index], ridge)

    def as_float32(self, dense_bytes: int) -> "PrivilegedGram":
        ridge = None if self.ridge is None else self.ridge.astype(np.float32)
        gram = self.gram.as_float32(dense_bytes)
        return PrivilegedGram(gram, self.factor.astype(np.float32), ridge)

    def _factor(self, index: Any) -> np.ndarray:
        return self.factor if is_everything(index) else np.ascontiguousarray(self.factor[index])


class SignedSum:
    """The matrix K + Q * yy' for one vector of signs y after another, in the same memory.

    Only the rows and columns of the samples that change signs relative to the others are written:
    with many classes, few.

    Parameters
    ----------
    first : ndarray of shape (n, n)
        K.
    second : ndarray of shape (n, n)
        Q.
    positive_semidefinite : bool
        Whether K is known to be.
    """

    def __init__(self, first: np.ndarray, second: np.ndarray, positive_semidefinite: bool):
        self._first = first
        self._second = second
        self._sum = first + second
        self._sign = np.ones(len(first))
        self._positive_semidefinite = positive_semidefinite

    def of(self, sign: np.ndarray) -> MatrixGram:
        """Return K + Q * yy' for the signs y, valid until the next call."""
        changed = self._sign != sign
        if 2 * np.count_nonzero(changed) > len(changed):
            changed = ~changed
        self._sign = sign
        _write(self._first, self._second, sign, np.flatnonzero(changed), self._sum)
        return MatrixGram(self._sum, self._positive_semidefinite, EPSILON)


@compiled
def _write(first, second, sign, rows, out):
    """Write the entries of the sum in some rows and columns."""
    for i in rows:
        for j in range(out.shape[1]):
            out[i, j] = first[i, j] + sign[i] * sign[j] * second[i, j]
    for j in range(out.shape[0]):
        for i in rows:
            out[j, i] = first[j, i] + sign[i] * sign[j] * second[j, i]


# The same in vector operations, which run until the function above is compiled.


@uncompiled(_write)
def _write_by_vectors(first, second, sign, rows, out):
    signs = sign[rows, np.newaxis] * sign
    out[rows] = first[rows] + signs * second[rows]
    out[:, rows] = first[:, rows] + signs.T * second[:, rows]
