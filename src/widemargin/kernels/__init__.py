"""The kernel room: rows, diagonals and products of Gram matrices, and the memory they share."""

from widemargin.kernels.cache import GramCache
from widemargin.kernels.functions import KERNEL_NAMES, KernelFunction
from widemargin.kernels.gram import Gram, KernelGram, MatrixGram

__all__ = [
    "KERNEL_NAMES",
    "Gram",
    "GramCache",
    "KernelFunction",
    "KernelGram",
    "MatrixGram",
]
