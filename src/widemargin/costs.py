"""Who costs what: from C, class weights and sample weights to the cost of every row."""

import numpy as np
from sklearn.utils.class_weight import compute_class_weight


def class_weights(class_weight, classes, y, sample_weight=None) -> np.ndarray:
    """The weight of every class, in the order of ``classes``.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
    classes : ndarray of shape (n_classes,)
    y : ndarray of shape (n,)
        Labels.
    sample_weight : ndarray of shape (n,), optional
        "balanced" counts a row of weight k as k rows.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    if class_weight is None:
        return np.ones(len(classes))
    return compute_class_weight(class_weight, classes=classes, y=y, sample_weight=sample_weight)


def row_costs(C, codes, weight_of_class, sample_weight) -> np.ndarray:
    """C times the weight of each row's class times its own weight.

    Parameters
    ----------
    C : float
    codes : ndarray of shape (n,)
        Index of each row's class.
    weight_of_class : ndarray of shape (n_classes,)
    sample_weight : ndarray of shape (n,) or None

    Returns
    -------
    ndarray of shape (n,)
    """
    costs = C * weight_of_class[codes]
    return costs if sample_weight is None else costs * sample_weight
