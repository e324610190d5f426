"""Kernels: kernel functions, Gram matrices, caches of kernel values and kernel expansions."""

from widemargin.kernels.cache import GramCache
from widemargin.kernels.functions import KERNEL_NAMES, KernelFunction, kernel_function
from widemargin.kernels.gram import Gram, KernelGram, MatrixGram

__all__ = [
    "KERNEL_NAMES",
    "Gram",
    "GramCache",
    "KernelFunction",
    "KernelGram",
    "MatrixGram",
    "kernel_function",
]
