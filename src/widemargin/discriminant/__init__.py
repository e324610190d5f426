"""Discriminants: linear, quadratic and kernel, on statistics of the classes that can be merged."""

from widemargin.discriminant.kernel import KernelDiscriminantAnalysis
from widemargin.discriminant.linear import LinearDiscriminantAnalysis
from widemargin.discriminant.quadratic import QuadraticDiscriminantAnalysis

__all__ = [
    "KernelDiscriminantAnalysis",
    "LinearDiscriminantAnalysis",
    "QuadraticDiscriminantAnalysis",
]
