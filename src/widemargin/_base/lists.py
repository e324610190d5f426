"""Lists in place of arrays, for loops that run as plain Python.

Reading an entry of an array makes a NumPy scalar, whose arithmetic is slow; that of Python's
numbers has the same bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np


def run_on_lists(function: Callable, arguments: tuple) -> Any:
    """Return what a function returns on lists, and write what it changed to the arrays."""
    listed = tuple(map(_listed, arguments))
    result = function(*listed)
    for array, values in zip(arguments, listed, strict=True):
        if values is not array:
            after = np.array(values, dtype=array.dtype)
            # Arrays that are only read may be shared with other threads, or read-only.
            if after.tobytes() != array.tobytes():
                array[...] = after
    return result


def _listed(value: Any) -> Any:
    """Return a list for an array; numbers of 64 bits without sign need NumPy's arithmetic."""
    if not isinstance(value, np.ndarray) or value.dtype == np.uint64:
        return value
    return _Vector(value) if value.ndim == 1 else _Matrix(value)


class _Vector(list):
    """A list with a shape."""

    def __init__(self, array: np.ndarray) -> None:
        super().__init__(array.tolist())
        self.shape = array.shape


class _Matrix(list):
    """A list of rows that takes pairs of indices too."""

    def __init__(self, array: np.ndarray) -> None:
        super().__init__(array.tolist())
        self.shape = array.shape

    def __getitem__(self, index: Any) -> Any:
        if type(index) is tuple:
            return list.__getitem__(self, index[0])[index[1]]
        return list.__getitem__(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        list.__getitem__(self, index[0])[index[1]] = value
