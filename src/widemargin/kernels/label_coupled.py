"""Gram matrices with a part that the labels turn: k(x_i, x_j) + y_i y_j q_ij.

Slack that is a function of privileged columns adds such a part to the kernel, with q = factor
factor' positive semidefinite; slack that is free adds a diagonal one. Of the many problems of
one class against the rest only the signs y differ.
"""

from typing import Any

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.matmul import tiled_product
from widemargin.kernels.gram import _LARGEST_SINGLE, KernelGram, MatrixGram, _is_all


class PrivilegedGram:
    """k(x_i, x_j) + <factor_i, factor_j> + ridge_i [i = j], without a matrix of n x n.

    Parameters
    ----------
    gram : KernelGram or MatrixGram
    factor : ndarray of shape (n, r)
        Rows times their signs; r may be 0.
    ridge : ndarray of shape (n,), optional
    """

    def __init__(self, gram: KernelGram | MatrixGram, factor: np.ndarray, ridge=None):
        self.gram = gram
        self.factor = np.ascontiguousarray(factor)
        self.ridge = ridge
        self.size = self.most_rows = gram.size
        self.positive_semidefinite = gram.positive_semidefinite

    @property
    def X(self) -> Any:  # noqa: N802 - as in KernelGram
        """Rows whose dtype is that of the values."""
        return self.factor

    def is_finite(self) -> bool:
        """Whether all numbers are small enough."""
        return self.gram.is_finite() and bool(np.isfinite(self.factor).all())

    def fits_single(self) -> bool:
        """Whether float32 can hold all numbers."""
        return self.gram.fits_single() and bool(self.diagonal().max(initial=0.0) < _LARGEST_SINGLE)

    def diagonal(self) -> np.ndarray:
        diagonal = self.gram.diagonal() + np.einsum("ij,ij->i", self.factor, self.factor)
        return diagonal if self.ridge is None else diagonal + self.ridge

    def block(self, rows, columns=slice(None), out=None) -> np.ndarray:
        block = self.gram.block(rows, columns)
        if self.factor.shape[1]:
            own = self.factor if _is_all(rows) else np.ascontiguousarray(self.factor[rows])
            others = self.factor if _is_all(columns) else np.ascontiguousarray(self.factor[columns])
            block = block + tiled_product(own, others)
        if self.ridge is not None:
            index = np.arange(self.size)
            same = index[rows][:, None] == index[columns]
            block = block + np.where(same, self.ridge[columns], 0.0).astype(block.dtype)
        if out is None:
            return block
        out[...] = block
        return out

    def rows(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.block(index), np.arange(len(index))

    def narrow(self, index: np.ndarray) -> "PrivilegedGram":
        """The Gram matrix of the rows ``index``."""
        return self.subset(index)

    def sharpen(self) -> None:
        """Nothing to do: rows come in the dtype of the factor."""

    def subset(self, index: np.ndarray) -> "PrivilegedGram":
        """The Gram matrix of the rows ``index``."""
        ridge = None if self.ridge is None else self.ridge[index]
        return PrivilegedGram(self.gram.subset(index), self.factor[index], ridge)

    def single(self, dense_bytes: int) -> "PrivilegedGram":
        """The same in float32."""
        ridge = None if self.ridge is None else self.ridge.astype(np.float32)
        return PrivilegedGram(self.gram.single(dense_bytes), self.factor.astype(np.float32), ridge)


class SignedSum:
    """One matrix that is K + Q * yy' for one vector of signs y after another.

    Only the rows and columns of the fewer rows that change sides are written: with many classes
    the matrix of the next one costs next to nothing.

    Parameters
    ----------
    first : ndarray of shape (n, n)
        K.
    second : ndarray of shape (n, n)
        Q.
    positive_semidefinite : bool
        What is known of K.
    """

    def __init__(self, first: np.ndarray, second: np.ndarray, positive_semidefinite: bool):
        self._first = first
        self._second = second
        self._sum = first + second
        self._sign = np.ones(len(first))
        self._positive_semidefinite = positive_semidefinite

    def of(self, sign: np.ndarray) -> MatrixGram:
        """K + Q * yy' for the signs y, valid until the next ones are asked for."""
        turned = self._sign != sign
        if 2 * np.count_nonzero(turned) > len(turned):
            turned = ~turned
        self._sign = sign
        _write(self._first, self._second, sign, np.flatnonzero(turned), self._sum)
        return MatrixGram(self._sum, self._positive_semidefinite)


@compiled
def _write(first, second, sign, rows, out):
    """Entries of the sum in the given rows and columns."""
    for i in rows:
        for j in range(out.shape[1]):
            out[i, j] = first[i, j] + sign[i] * sign[j] * second[i, j]
    for j in range(out.shape[0]):
        for i in rows:
            out[j, i] = first[j, i] + sign[i] * sign[j] * second[j, i]
