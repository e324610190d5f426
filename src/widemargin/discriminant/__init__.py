"""Linear, quadratic and kernel discriminant analysis."""

from widemargin.discriminant.kernel import KernelDiscriminantAnalysis
from widemargin.discriminant.linear import LinearDiscriminantAnalysis
from widemargin.discriminant.quadratic import QuadraticDiscriminantAnalysis

__all__ = [
    "KernelDiscriminantAnalysis",
    "LinearDiscriminantAnalysis",
    "QuadraticDiscriminantAnalysis",
]
