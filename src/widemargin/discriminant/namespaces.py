"""Arrays of other libraries than NumPy, where scikit-learn's dispatch on them is on."""

import numpy as np

from widemargin._base.sklearn_compat import device, get_namespace, move_to


def foreign_namespace(X):
    """The namespace of an array that is not NumPy's where dispatch is on, else None."""
    if isinstance(X, np.ndarray) or not hasattr(X, "dtype"):
        return None
    xp, is_array_api = get_namespace(X)
    return xp if is_array_api else None


def float_types(X):
    """The types of numbers that are computed with as they are."""
    xp = foreign_namespace(X) or np
    return [xp.float64, xp.float32]


def like(X):
    """No rows, in the namespace, on the device and of the type of number of answers about X."""
    if foreign_namespace(X) is not None:
        return X[:0, :]
    return np.empty((0, X.shape[1]), dtype=np.float32 if X.dtype == np.float32 else np.float64)


def in_namespace(value, template):
    """An array of floats in the namespace and type of the template; other things as they are."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    xp = foreign_namespace(template)
    if xp is None:
        return value.astype(template.dtype, copy=False)
    return xp.asarray(value, dtype=template.dtype, device=device(template))


def beside(values, X, dtype=None):
    """NumPy's values in the namespace and on the device of X."""
    xp = foreign_namespace(X)
    return values if xp is None else xp.asarray(values, dtype=dtype, device=device(X))


def to_numpy(array):
    """An array as NumPy's, and whatever is none as it is."""
    if array is None or foreign_namespace(array) is None:
        return array
    return move_to(array, xp=np, device="cpu")
