"""Kernel of the privileged features: in training, and for functions of them in prediction."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.matmul import tiled_multiply, tiled_product
from widemargin._base.sklearn_compat import num_samples
from widemargin.kernels import KernelGram, MatrixGram
from widemargin.kernels.expansion import KernelExpansion
from widemargin.kernels.parameters import KernelParameters
from widemargin.privileged.features import PrivilegedFeatures, PrivilegedInput, check_numeric
from widemargin.svm.training import Training, prepare_training


class FitData:
    """Validated arguments of a fit, with encoded targets and the parameters of both kernels."""

    def __init__(self, estimator: Any, X: Any, y: Any, privileged: Any, weight: Any, warn=True):
        self.X, self.y = X, y
        self.privileged: PrivilegedInput | None = privileged
        self.training = prepare_training(estimator, X, y, weight)
        self.kernel: PrivilegedKernel | None = None
        if privileged is not None:
            self.kernel = PrivilegedKernel(estimator, privileged, self.training, warn)

    @property
    def n_problems(self) -> int:
        """Number of binary subproblems."""
        return self.training.n_problems


class PrivilegedKernel:
    """Kernel of the privileged features on the training samples.

    Attributes
    ----------
    parameters : KernelParameters
        With gamma resolved.
    features : PrivilegedFeatures or None
        Fitted preprocessing; None for a callable or precomputed kernel.
    Z : ndarray or CSR matrix
        Preprocessed features of the samples of positive weight; for a callable kernel, the
        features of all samples as passed to fit.
    gram : KernelGram or MatrixGram
        Gram matrix of the samples of positive weight.
    order : ndarray
        Indices of these samples.
    """

    def __init__(self, estimator: Any, privileged: PrivilegedInput, training: Training, warn: bool):
        parameters, order = KernelParameters.of(estimator, "privileged_"), training.order
        self.features: PrivilegedFeatures | None = None
        values, pairwise = privileged.values, parameters.is_pairwise
        if callable(parameters.kernel):
            values = privileged.original
        elif not pairwise:
            self.features, transformer = PrivilegedFeatures(), estimator.privileged_transformer
            values = self.features.fit_transform(privileged, transformer, order, warn)
        self.parameters = parameters.resolve(values, order, training.weight)
        try:
            self.gram: KernelGram | MatrixGram = self.parameters.gram(values, order)
        except ValueError as error:
            if pairwise:
                raise ValueError(f"privileged is not a valid kernel matrix: {error}") from error
            raise ValueError(
                "privileged contains values that are too large for privileged_kernel. Scale them, "
                "for example with privileged_transformer=StandardScaler()."
            ) from error
        self.Z, self.order = values if pairwise else values[order], order

    @property
    def n_features(self) -> int:
        """Number of features of a linear kernel, number of samples for other kernels."""
        return self.Z.shape[1] if self.parameters.kernel == "linear" else self.gram.size

    @property
    def low_rank(self) -> bool:
        """Whether the kernel is linear with fewer features than samples."""
        return self.n_features < self.gram.size

    def from_duals(self, duals: Any, intercept: np.ndarray) -> "PrivilegedFunctions":
        """Return the functions with the given weights of the kernel values."""
        duals = np.vstack(duals)
        if self.parameters.is_pairwise:  # kernel values are against all training samples
            spread = np.zeros((len(duals), num_samples(self.Z)))
            spread[:, self.order] = duals
            duals = spread
        vectors = None if self.parameters.kernel == "precomputed" else self.Z
        expansion = KernelExpansion(self.parameters, vectors, duals, intercept)
        return PrivilegedFunctions(self.parameters.kernel, self.features, intercept, expansion)


@dataclass(frozen=True)
class PrivilegedFunctions:
    """Fitted functions of the privileged features: an expansion, or weights of the features."""

    kernel: Any
    features: PrivilegedFeatures | None
    intercept: np.ndarray
    expansion: KernelExpansion | None
    weights: np.ndarray | None = None

    def evaluate(self, Z: Any) -> np.ndarray:
        """Compute the values of all functions for other samples."""
        if self.features is not None:
            Z = self.features.transform(Z)
        if self.expansion is None:
            assert self.weights is not None
            if sp.issparse(Z):
                return np.asarray(Z @ self.weights.T) + self.intercept
            return tiled_multiply(np.ascontiguousarray(Z), self.weights.T) + self.intercept
        if self.kernel == "precomputed":
            Z = check_numeric(Z)
            n_samples = self.expansion.coefficients.shape[1]
            if Z.shape[1] != n_samples:
                raise ValueError(
                    f"privileged must contain the kernel values against all {n_samples} training "
                    f"samples, got {Z.shape[1]} columns."
                )
            Z = Z.toarray() if sp.issparse(Z) else Z
        return self.expansion.evaluate(Z)

    @property
    def coef(self) -> np.ndarray:
        """Weights of the features, for a linear kernel."""
        if self.weights is not None:
            return self.weights
        assert self.expansion is not None
        duals, Z = self.expansion.coefficients, self.expansion.vectors
        if sp.issparse(Z):
            return np.asarray(duals @ Z)
        return tiled_product(duals, np.ascontiguousarray(Z.T))
