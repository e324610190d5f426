"""Arrays of other libraries than NumPy, where scikit-learn's array API dispatch is enabled."""

from typing import Any

import numpy as np

from widemargin._base.sklearn_compat import device, get_namespace, move_to


def foreign_namespace(X: Any) -> Any:
    """Return the namespace of an array that is not NumPy's if dispatch is enabled, else None."""
    if isinstance(X, np.ndarray) or not hasattr(X, "dtype"):
        return None
    xp, is_array_api = get_namespace(X)
    return xp if is_array_api else None


def float_types(X: Any) -> list:
    """Return the types of numbers that need no conversion."""
    xp = foreign_namespace(X) or np
    return [xp.float64, xp.float32]


def empty_like(X: Any) -> Any:
    """Return an empty array with the namespace, device and floating-point type for results on X."""
    if foreign_namespace(X) is not None:
        return X[:0, :]
    return np.empty((0, X.shape[1]), dtype=np.float32 if X.dtype == np.float32 else np.float64)


def to_type_of(value: Any, template: Any) -> Any:
    """Convert a NumPy array of floats to the namespace and type of the template, if it is one."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    if foreign_namespace(template) is None:
        return value.astype(template.dtype, copy=False)
    return to_namespace_of(value, template, template.dtype)


def to_namespace_of(values: np.ndarray, X: Any, dtype: Any = None) -> Any:
    """Move a NumPy array to the namespace and the device of X."""
    xp = foreign_namespace(X)
    return values if xp is None else xp.asarray(values, dtype=dtype, device=device(X))


def to_numpy(array: Any) -> Any:
    """Move an array of another namespace to NumPy; return other objects unchanged."""
    if array is None or foreign_namespace(array) is None:
        return array
    return move_to(array, xp=np, device="cpu")
