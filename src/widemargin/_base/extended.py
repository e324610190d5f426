"""Sums and products with twice the digits of float64.

A number is a pair of float64: a value and its rounding error (T. J. Dekker: A floating-point
technique for extending the available precision. Numerische Mathematik 1971). Whole arrays are
computed at a time, element by element, so that the bits do not depend on the processor.
Certificates use this where sums cancel.
"""

import numpy as np

from widemargin._base.numeric import EPSILON
from widemargin._base.options import kernel_options as options

Pair = tuple[np.ndarray, np.ndarray]
"""Values, and their rounding errors."""

# Splits the 53 bits of a float64 into halves whose products are exact.
_SPLIT = float(2**27 + 1)


def two_sum(first: np.ndarray, second: np.ndarray) -> Pair:
    """Return the sum of two float64, and its rounding error."""
    total = first + second
    rounded = total - first
    return total, (first - (total - rounded)) + (second - rounded)


def two_product(first: np.ndarray, second: np.ndarray) -> Pair:
    """Return the product of two float64, and its rounding error."""
    product = first * second
    (a, b), (c, d) = _halves(first), _halves(second)
    return product, ((a * c - product) + a * d + b * c) + b * d


def add(first: Pair, second: Pair) -> Pair:
    """Return the sum of two pairs."""
    total, rest = two_sum(first[0], second[0])
    return _normalized(total, rest + (first[1] + second[1]))


def multiply(first: Pair, second: Pair) -> Pair:
    """Return the product of two pairs."""
    product, rest = two_product(first[0], second[0])
    return _normalized(product, rest + (first[0] * second[1] + first[1] * second[0]))


def power(base: Pair, exponent: int) -> Pair:
    """Return a pair to the power of a non-negative integer."""
    result = np.ones_like(base[0]), np.zeros_like(base[0])
    for bit in f"{exponent:b}":
        result = multiply(result, result)
        result = multiply(result, base) if bit == "1" else result
    return result


def weighted_sum(values: Pair, weights: Pair) -> Pair:
    """Return the sums of products along the last axis; ``weights`` are broadcast."""
    total, rest = multiply(values, weights)
    while total.shape[-1] > 1:
        middle = total.shape[-1] // 2
        first, second = slice(middle), slice(middle, 2 * middle)
        sums = add((total[..., first], rest[..., first]), (total[..., second], rest[..., second]))
        total = np.concatenate([sums[0], total[..., 2 * middle :]], axis=-1)
        rest = np.concatenate([sums[1], rest[..., 2 * middle :]], axis=-1)
    return total.sum(axis=-1), rest.sum(axis=-1)


def matrix_product(matrix: Pair, weights: Pair) -> Pair:
    """Return the products of the rows of a matrix with a vector, some rows at a time."""
    height = max(1, options.exact_entries // max(1, matrix[0].shape[1]))
    slices = [slice(start, start + height) for start in range(0, len(matrix[0]), height)]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        sums = [weighted_sum((matrix[0][rows], matrix[1][rows]), weights) for rows in slices]
    return np.concatenate([s[0] for s in sums]), np.concatenate([s[1] for s in sums])


def rounding(terms: int) -> float:
    """Return a bound of the relative error of a sum of so many terms, in their sizes."""
    return 8.0 * (terms + 1) * EPSILON * EPSILON


def exact(values: np.ndarray) -> Pair:
    """Return float64 as pairs."""
    return values, np.zeros_like(values)


def _normalized(value: np.ndarray, rest: np.ndarray) -> Pair:
    total = value + rest
    return total, rest - (total - value)


def _halves(values: np.ndarray) -> Pair:
    scaled = _SPLIT * values
    high = scaled - (scaled - values)
    return high, values - high
