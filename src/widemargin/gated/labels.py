"""Class labels and the columns of scores: which column is whose, and which samples are positive."""

from typing import Any

import numpy as np
from sklearn.utils import check_array, check_consistent_length, column_or_1d


def label_scores(scores: Any, y: Any, target: Any, classes: Any) -> tuple[Any, np.ndarray, int]:
    """Validate scores and labels, and find the target class in both.

    Returns
    -------
    scores : ndarray of shape (n_samples, n_classes)
    sign : ndarray of shape (n_samples,)
        +1 for samples of the target class, -1 for all others.
    column : int
        Column of the target class.
    """
    values, y = check_scores(scores, "scores"), column_or_1d(numpy_booleans(y))
    check_consistent_length(values, y)
    classes = np.unique(y) if classes is None else np.asarray(classes)
    values = align_columns(values, scores, classes, "scores")
    column = target_column(target, classes, values.shape[1])
    check_labels(y, classes)
    return values, np.where(target_mask(y, classes, column), 1.0, -1.0), column


def check_scores(scores: Any, name: str = "teacher_scores") -> np.ndarray:
    """Return finite scores of at least two classes as a float64 array."""
    return check_array(scores, dtype=np.float64, input_name=name, ensure_min_features=2)


def align_columns(scores: Any, original: Any, classes: Any, name: str = "teacher_scores") -> Any:
    """Return scores in the order of the classes, which may name the columns of ``original``.

    ``original`` are the same scores as the user passed them. Only a DataFrame has names.
    """
    if not hasattr(original, "columns"):
        return scores
    names = list(original.columns)
    labels = classes.tolist()
    # The columns of polars are named by strings only, unnamed ones "column_0" and so on.
    if all(isinstance(column, str) for column in names):
        labels = [str(label) for label in labels]
    positions = range(len(names))
    unnamed = names == list(positions) or names == [f"column_{k}" for k in positions]
    named = len(names) == len(labels) and set(names) == set(labels)
    if names == labels or (unnamed and not named):
        return scores
    if unnamed or not named:
        raise ValueError(
            f"The columns of {name} must be named by the classes {labels} or not at all, got "
            f"{names}. Rename them, or pass an array with the columns in that order."
        )
    return scores[:, [names.index(label) for label in labels]]


def numpy_booleans(y: Any) -> Any:
    """Return pandas' nullable booleans as NumPy booleans, any other y as it is."""
    nullable = getattr(getattr(y, "dtype", None), "kind", None) == "b"
    return np.asarray(y, dtype=bool) if nullable else y


def is_boolean_target(y: np.ndarray, classes: np.ndarray) -> bool:
    """Return whether y states if a sample belongs to the target class, in place of its label."""
    return y.dtype.kind == "b" and classes.dtype.kind != "b"


def check_labels(y: np.ndarray, classes: np.ndarray) -> None:
    """Raise a ValueError for labels that are not among the classes."""
    if is_boolean_target(y, classes):
        return
    unknown = [python_label(label) for label in np.unique(y) if class_index(label, classes) is None]
    if unknown:
        raise ValueError(
            f"y contains classes that are unknown to the teacher: {unknown}. Its classes are "
            f"{classes.tolist()}. With a single target, y may contain booleans (y == target)."
        )


def target_mask(y: np.ndarray, classes: np.ndarray, column: int) -> np.ndarray:
    """Return which samples belong to the class of a column, from labels or booleans."""
    if not is_boolean_target(y, classes):
        return y == classes[column]
    if classes[column] == 0 and set(classes.tolist()) == {0, 1}:
        raise ValueError(
            "y contains booleans, which are ambiguous with classes 0 and 1 and target 0: True "
            "could mean class 1 or the target class. Pass the labels 0 and 1."
        )
    return y


def target_column(target: Any, classes: np.ndarray, n_columns: int) -> int:
    """Return the column of the target class in the scores."""
    if len(classes) != n_columns:
        raise ValueError(
            f"The teacher's scores have {n_columns} columns but there are {len(classes)} classes. "
            "Pass the labels of the columns as `classes`."
        )
    column = class_index(target, classes)
    if column is None:
        hint = ""
        if classes.dtype.kind == "b":
            hint = (
                " If y contains booleans (y == target), pass a fitted teacher, or set classes. "
                "Otherwise pass the class labels as y."
            )
        raise ValueError(
            f"target {python_label(target)!r} is unknown to the teacher, whose classes are "
            f"{classes.tolist()}.{hint}"
        )
    return column


def class_index(label: Any, classes: np.ndarray) -> int | None:
    """Return the index of a label among the classes, None for an unknown label."""
    # True == 1 in Python, but a boolean is not a numeric label, nor the reverse.
    comparable = isinstance(label, bool | np.bool_) == (classes.dtype.kind == "b")
    matches = np.flatnonzero(classes == label) if np.ndim(label) == 0 else np.empty(0)
    known = len(matches) == 1 and (comparable or classes.dtype.kind == "O")
    return int(matches[0]) if known else None


def python_label(label: Any) -> Any:
    """Return a NumPy scalar as a Python object, for messages and exports."""
    return label.item() if isinstance(label, np.generic) else label
