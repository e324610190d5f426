"""Kernel parameters: what the kernel arguments of an estimator mean."""

from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from widemargin._base.numeric import TINY
from widemargin._base.options import kernel_options as options
from widemargin._base.sklearn_compat import Interval, StrOptions, num_samples
from widemargin.kernels.functions import KERNELS, KernelFunction, PlusOne, kernel_function
from widemargin.kernels.gram import KernelGram, MatrixGram


def kernel_constraints(prefix: str = "", pairwise: bool = True) -> dict[str, list]:
    """Return the constraints of the kernel parameters of an estimator.

    Parameters
    ----------
    prefix : str, default=""
        Of the names of the parameters.
    pairwise : bool, default=True
        Whether the kernel may be "precomputed" or a callable.

    Returns
    -------
    dict
        A part of ``_parameter_constraints``.
    """
    names: ChainMap = ChainMap({"precomputed": None} if pairwise else {}, KERNELS)
    constraints = {
        "kernel": [StrOptions(names.keys()), *([callable] if pairwise else [])],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
    }
    return {prefix + name: constraint for name, constraint in constraints.items()}


@dataclass(frozen=True)
class KernelParameters:
    """The kernel of an estimator: a kernel function and its parameters.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        Name of a kernel function, "precomputed", or a callable that maps two sets of samples to
        the matrix of kernel values between them.
    gamma : {"scale", "auto"} or float, default="scale"
        Kernel coefficient. `resolve` replaces a string by the number that it means.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=0.0
        Independent term of the polynomial and sigmoid kernels.
    add_constant : bool, default=False
        Whether to use k(x, y) + 1, the kernel of the features and a constant one.
    center : bool, default=False
        Whether to subtract the mean of the vectors from dense samples.
    """

    kernel: str | Callable = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    add_constant: bool = False
    center: bool = False

    @classmethod
    def of(cls, estimator: Any, prefix: str = "", **others: Any) -> Self:
        """Return the kernel parameters of an estimator, whose names may have a prefix."""
        names = ("kernel", "gamma", "degree", "coef0")
        return cls(*[getattr(estimator, prefix + name) for name in names], **others)

    @property
    def is_pairwise(self) -> bool:
        """Whether kernel values are computed by the user: a callable or "precomputed"."""
        return callable(self.kernel) or self.kernel == "precomputed"

    @property
    def function(self) -> KernelFunction:
        """The kernel function of a named kernel."""
        function = kernel_function(self.kernel, self.gamma, self.degree, self.coef0)  # type: ignore[arg-type]
        return PlusOne(function) if self.add_constant else function

    @property
    def positive_semidefinite(self) -> bool:
        """Whether the kernel is known to be positive semidefinite, whatever the samples are."""
        return not self.is_pairwise and self.function.positive_semidefinite

    def resolve(self, X: Any, samples: Any = None, weight: np.ndarray | None = None) -> Self:
        """Return the same parameters with gamma as a number.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features)
            Training samples.
        samples : index array, optional
            The samples that gamma is computed from. By default (or for a slice), all.
        weight : ndarray, optional
            Positive weights of these samples.

        Returns
        -------
        KernelParameters
        """
        if self.is_pairwise or not KERNELS[self.kernel].uses_gamma:  # type: ignore[index]
            return replace(self, gamma=0.0)
        if isinstance(samples, np.ndarray) and not isinstance(self.gamma, Real):
            X = X[samples]
        return replace(self, gamma=effective_gamma(self.gamma, X, weight))

    def gram(self, X: Any, order: np.ndarray | None = None) -> KernelGram | MatrixGram:
        """Return the Gram matrix of training samples, checked for finite and symmetric values.

        Parameters
        ----------
        X : ndarray or CSR matrix, or what a callable kernel takes
            Training samples, or the kernel matrix between them for "precomputed".
        order : ndarray, optional
            Which samples, in which order; all by default.

        Returns
        -------
        KernelGram or MatrixGram
            The latter for a precomputed or callable kernel.
        """
        gram: KernelGram | MatrixGram
        if order is not None and np.array_equal(order, np.arange(num_samples(X))):
            order = None
        if self.is_pairwise:
            matrix = self.call(X, X) if callable(self.kernel) else X
            matrix = matrix if order is None else matrix[np.ix_(order, order)]
            check_symmetric(matrix, "kernel's matrix" if callable(self.kernel) else "X")
            gram = MatrixGram(matrix, positive_semidefinite=is_positive_semidefinite(matrix))
        else:
            gram = self.gram_of_vectors(X if order is None else X[order])
        if not gram.is_finite():
            raise ValueError(
                "The dual coefficients or intercepts are not finite: X contains values that are "
                "too large for the kernel. Preprocess X, for example with StandardScaler."
            )
        return gram

    def gram_of_vectors(self, vectors: Any) -> KernelGram:
        """Return the Gram matrix of vectors for a named kernel, without checks."""
        return KernelGram(self.function, vectors, center=self.center)

    def call(self, X: Any, Y: Any) -> np.ndarray:
        """Return the values of a callable kernel between two sets of samples, checked."""
        if not num_samples(X):
            raise ValueError("X must contain at least one sample, got 0 sample(s).")
        values = self.kernel(X, Y)  # type: ignore[operator]
        values = values.toarray() if sp.issparse(values) else np.asarray(values)
        expected = num_samples(X), num_samples(Y)
        if values.shape != expected:
            raise ValueError(
                f"kernel must return one value for each pair of samples, an array of shape "
                f"{expected}, got an array of shape {values.shape}."
            )
        if values.dtype.kind == "c":
            raise ValueError("kernel must return real numbers, got complex numbers.")
        values = np.ascontiguousarray(values, dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError("kernel must return finite values, got inf or nan.")
        return values


def effective_gamma(gamma: float | str, X: Any, weight: np.ndarray | None = None) -> float:
    """Return gamma as a number.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float
        "scale" is ``1 / (n_features * X.var())`` with samples counted by their weights, "auto" is
        ``1 / n_features``.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    weight : ndarray of shape (n_samples,), optional
        Positive.

    Returns
    -------
    float
    """
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma != "scale":
        return float(gamma)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        variance = _variance(X, weight)
        scale = 1.0 / (X.shape[1] * variance) if variance != 0.0 else 1.0
    if not 0.0 < scale < np.inf:
        raise ValueError(
            "The dual coefficients or intercepts are not finite: gamma='scale' cannot be computed "
            f"from X, whose values have a variance of {variance:.3g}. Preprocess X, for example "
            "with StandardScaler, or set gamma to a number."
        )
    return scale


def _variance(X: Any, weight: np.ndarray | None) -> float:
    """The variance of all values, in two passes: no digits are lost to a common offset."""
    if weight is None and not sp.issparse(X):
        return float(X.var())
    if weight is not None:
        weight = weight / weight.max()
    mean = np.average(np.asarray(X.mean(axis=1)).ravel(), weights=weight)
    if not sp.issparse(X):
        return float(np.average(((X - mean) ** 2).mean(axis=1), weights=weight))
    squares = X.copy()
    squares.data = (X.data - mean) ** 2
    zeros = X.shape[1] - np.diff(X.indptr)
    sums = np.asarray(squares.sum(axis=1)).ravel() + zeros * mean**2
    return float(np.average(sums / X.shape[1], weights=weight))


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
    shift = options.definite_shift * max(float(np.trace(matrix)), TINY)
    try:
        np.linalg.cholesky(matrix + shift / len(matrix) * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True
