"""Early exit: decide by the teacher itself whether samples belong to one class."""

from typing import Any

import numpy as np
from sklearn.utils import indexable
from sklearn.utils.validation import check_is_fitted

from widemargin._base.sklearn_compat import safe_indexing
from widemargin.gated.labels import target_column
from widemargin.gated.teacher import (
    TeacherGate,
    final_estimator,
    linear_coefficients,
    make_gate,
    separate_values,
    teacher_classes,
)
from widemargin.svm.scores import tie_tolerance


def early_exit_predict(
    teacher: Any, X: Any, target: Any, *, return_counts: bool = False
) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
    """Predict whether samples belong to one class, computing scores only until that is decided.

    The score of the target class is computed first, then those of the other classes one by one, for
    the samples that no class has taken from the target class yet. This is the baseline for
    students: a sample of the target class needs all scores, one of another class about half of
    them.

    Parameters
    ----------
    teacher : fitted estimator
        Classifier as in `GatedSVC`. One that cannot compute the score of a single class predicts
        with all scores. The coefficients of a linear estimator other than `CrammerSingerSVC` and
        `LinearSVC` are first verified on 16 samples, which `counts` does not include.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Samples.
    target : label
        Target class.
    return_counts : bool, default=False
        Whether to return the number of scores computed.

    Returns
    -------
    y : ndarray of bool of shape (n_samples,)
        True where the teacher predicts the target class.
    counts : ndarray of shape (n_samples,)
        Number of scores computed for each sample. Only returned if `return_counts` is True.

    See Also
    --------
    GatedSVC : Student, which needs at most one score.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import CrammerSingerSVC, early_exit_predict
    >>> X, y = load_iris(return_X_y=True)
    >>> teacher = CrammerSingerSVC().fit(X, y)
    >>> predicted = early_exit_predict(teacher, X, target=1)
    >>> bool((predicted == (teacher.predict(X) == 1)).all())
    True
    """
    check_is_fitted(teacher)
    classes = teacher_classes(teacher)
    column = target_column(target, classes, len(classes))
    (X,) = indexable(X)
    functions = linear_coefficients(teacher, X)
    gates = [make_gate(teacher, functions, [k]) for k in range(len(classes))]
    if isinstance(gates[column], TeacherGate):
        predicted = np.asarray(teacher.predict(X)) == classes[column]
        counts = np.full(len(predicted), len(classes))
    else:
        values = separate_values(teacher, functions, X)
        tolerance = tie_tolerance(final_estimator(teacher), values)
        predicted, counts = _eliminate(gates, column, X, values, tolerance)
    return (predicted, counts) if return_counts else predicted


def _eliminate(gates: list, column: int, X: Any, values: Any, tolerance: Any) -> tuple:
    """Compute scores class by class until it is decided which samples belong to the column's.

    A class is predicted if its score is within the tolerance of the largest, and that of no class
    before it is.
    """
    target = gates[column](X, values)[:, 0]
    tolerance = np.broadcast_to(tolerance, len(target))
    # The largest score so far, and the largest of the classes before the target.
    largest, before = target.copy(), np.full(len(target), -np.inf)
    counts = np.ones(len(target), dtype=int)
    left = np.arange(len(target))
    for k, gate in enumerate(gates):
        if k == column or not len(left):
            continue
        rows = None if values is None else values[left]
        scores = gate(safe_indexing(X, left) if rows is None else rows, rows)[:, 0]
        counts[left] += 1
        largest[left] = np.maximum(largest[left], scores)
        if k < column:
            before[left] = np.maximum(before[left], scores)
        tied = target >= largest - tolerance
        left = left[tied[left] & (before[left] < target[left])]
    predicted = np.zeros(len(target), dtype=bool)
    predicted[left] = (before < largest - tolerance)[left]
    return predicted, counts
