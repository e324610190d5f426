"""Kernel of the privileged features: in training, and for functions of them in prediction."""

import warnings
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
from widemargin.svm.training import Training


def validate_privileged(estimator: Any, privileged: Any, n_samples: int) -> PrivilegedInput | None:
    """Validate the privileged features of a fit; warn if there are none."""
    if privileged is None:
        warnings.warn(
            f"{type(estimator).__name__} was fitted without privileged features, which gives a "
            "plain SVM with the same loss. Pass privileged to fit.",
            UserWarning,
            stacklevel=5,
        )
        return None
    if num_samples(privileged) != n_samples:
        raise ValueError(
            f"privileged must have one row for each training sample, got {num_samples(privileged)} "
            f"rows, but X has {n_samples} samples."
        )
    return PrivilegedInput.validate(
        privileged, estimator.privileged_kernel, estimator.privileged_transformer
    )


def positive_weights(training: Training) -> np.ndarray:
    """Return the weights of the samples, with those of their classes; raise if one is 0."""
    weight = training.costs(1.0)
    if not (weight > 0.0).all():
        raise ValueError(
            "class_weight must be positive for every class. To leave out samples, remove them from "
            "X or set their sample_weight to 0."
        )
    return weight


@dataclass(frozen=True)
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
    n_samples : int
        Number of all samples.
    """

    parameters: KernelParameters
    features: PrivilegedFeatures | None
    Z: Any
    gram: KernelGram | MatrixGram
    order: np.ndarray
    n_samples: int

    @staticmethod
    def fit(
        estimator: Any, privileged: PrivilegedInput | None, training: Training, warn: bool = True
    ) -> "PrivilegedKernel | None":
        """Fit the preprocessing and compute gamma; None without privileged features."""
        if privileged is None:
            return None
        parameters, order = KernelParameters.of(estimator, "privileged_"), training.order
        features, values = None, privileged.values
        if callable(parameters.kernel):
            values = privileged.given
        elif not parameters.is_pairwise:
            transformer = estimator.privileged_transformer
            features, values = PrivilegedFeatures.fit(privileged, transformer, order, warn)
        parameters = parameters.resolve(values, order, training.weight)
        try:
            gram = parameters.gram(values, order)
        except ValueError as error:
            if parameters.is_pairwise:
                raise ValueError(f"privileged is not a valid kernel matrix: {error}") from error
            raise ValueError(
                "privileged contains values that are too large for privileged_kernel. Scale them, "
                "for example with privileged_transformer=StandardScaler()."
            ) from error
        Z = values if parameters.is_pairwise else values[order]
        return PrivilegedKernel(parameters, features, Z, gram, order, num_samples(values))

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
            spread = np.zeros((len(duals), self.n_samples))
            spread[:, self.order] = duals
            duals = spread
        vectors = None if self.parameters.kernel == "precomputed" else self.Z
        expansion = KernelExpansion(self.parameters, vectors, duals, intercept)
        return PrivilegedFunctions(self.parameters.kernel, self.features, intercept, expansion)

    def from_weights(self, coef: np.ndarray, intercept: np.ndarray) -> "PrivilegedFunctions":
        """Return the linear functions with the given weights of the features."""
        return PrivilegedFunctions("linear", self.features, intercept, None, coef)


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
