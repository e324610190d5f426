"""How hard a row is for the teacher, and so how much a student pays for it.

With the teacher's scores S, the target y, the truth z = +1 or -1 and R, the best score of the other
classes, the difference

    delta = z (S^y - R) / |S^y|

is at least 0 where the teacher is right and at most 0 where it is wrong. The degree of difficulty

    d = (1 + decay) / 2 - (1 - decay) / 2 * clip(delta, -1, 1)

falls from 1 (the teacher is clearly wrong) to ``decay`` (clearly right). A row costs C / d: the
student pays more for the rows that the teacher finds easy.
"""

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length, column_or_1d


def difficulty_degrees(scores, y, target, decay=0.3, classes=None):
    """Degree of difficulty of every row for a teacher, from `decay` (easy) to 1 (hard).

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_classes)
        The teacher's scores. Columns of a frame that bear the labels may be in any order.
    y : array-like of shape (n_samples,)
        Labels, or with `classes` truth values: whether a row is of the target.
    target : label
        The class that is asked for.
    decay : float, default=0.3
        Degree of the easiest rows, between 0 and 1.
    classes : array-like of shape (n_classes,), default=None
        Labels of the columns of `scores`; the sorted labels in `y` when None.

    Returns
    -------
    degrees : ndarray of shape (n_samples,)
        In [`decay`, 1]. A row of degree d costs a student C / d.

    See Also
    --------
    GatedSVC : A student that pays by these degrees.

    Examples
    --------
    >>> from widemargin import difficulty_degrees
    >>> scores = [[2.0, -1.0], [0.5, 0.4], [1.0, 3.0]]
    >>> difficulty_degrees(scores, ["a", "a", "a"], target="a", decay=0.4, classes=["a", "b"])
    array([0.4 , 0.64, 1.  ])
    """
    if not 0.0 < decay < 1.0:
        raise ValueError(f"decay must be between 0 and 1, both excluded, got {decay!r}.")
    scores, column, truth = scored_rows(scores, y, target, classes)
    return source(scores, np.where(truth, 1.0, -1.0), column, decay)


def scored_rows(scores, y, target, classes):
    """Checked scores, the target's column of them, and whether rows are of the target."""
    names = column_names(scores)
    scores, y = check_scores(scores, "scores"), column_or_1d(without_missing(y))
    check_consistent_length(scores, y)
    classes = np.unique(y) if classes is None else np.asarray(classes)
    scores = in_order(scores, names, classes, "scores")
    column = column_of(target, classes, scores.shape[1])
    check_labels(y, classes)
    return scores, column, truth_of(y, classes, column)


def source(scores, truth, column, decay):
    """The degrees of the module's docstring; ``truth`` is +1 or -1."""
    own = scores[:, column]
    lead = truth * (own - best_rival(scores, column))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        delta = lead / np.abs(own)
    delta = np.where(lead == 0.0, 0.0, delta)
    return 0.5 * (1.0 + decay) - 0.5 * (1.0 - decay) * np.clip(delta, -1.0, 1.0)


def best_rival(scores, column):
    """R: the best score of the other classes."""
    return np.delete(scores, column, axis=1).max(axis=1)


def degrees_of(difficulty, scores, truth, column, decay):
    """The degrees of all rows by a named coding, none (all 1), or a callable."""
    if difficulty is None:
        return np.ones(len(scores))
    if not callable(difficulty):
        return CODINGS[difficulty](scores, truth, column, decay)
    degrees = column_or_1d(difficulty(scores, truth, column), dtype=np.float64)
    if len(degrees) != len(scores) or not np.all((degrees > 0.0) & (degrees < np.inf)):
        raise ValueError(
            f"difficulty must return one positive, finite degree for each of {len(scores)} rows, "
            f"got {len(degrees)} between {degrees.min(initial=np.inf)} and "
            f"{degrees.max(initial=-np.inf)}."
        )
    return degrees


def check_scores(scores, name="teacher_scores"):
    """Scores of the classes as an array: finite, with at least two columns."""
    return check_array(scores, dtype=np.float64, input_name=name, ensure_min_features=2)


def column_names(scores):
    """What the columns of a frame are called; None for what is no frame."""
    return list(scores.columns) if hasattr(scores, "columns") else None


def in_order(scores, names, classes, name="teacher_scores"):
    """Scores with the columns that bear labels in the order of the classes."""
    if names is None:
        return scores
    labels = classes.tolist()
    # Polars names columns by text only, and those without a name like this.
    if all(isinstance(column, str) for column in names):
        labels = [str(label) for label in labels]
    places = range(len(names))
    nameless = names == list(places) or names == [f"column_{k}" for k in places]
    named = len(names) == len(labels) and set(names) == set(labels)
    if names == labels or (nameless and not named):
        return scores
    if nameless or not named:
        raise ValueError(
            f"{name} must have columns that are named by the classes {labels} or not at all, got "
            f"{names}: rename them, or give an array with the columns in that order."
        )
    return scores[:, [names.index(label) for label in labels]]


def without_missing(y):
    """y with nullable truth values of pandas as plain ones: they would become numbers."""
    nullable = getattr(getattr(y, "dtype", None), "kind", None) == "b"
    return np.asarray(y, dtype=bool) if nullable else y


def are_truth_values(y, classes):
    """Whether y says of rows if they are of the target, in place of their labels."""
    return y.dtype.kind == "b" and classes.dtype.kind != "b"


def check_labels(y, classes):
    """Refuse labels that are none of the classes."""
    if are_truth_values(y, classes):
        return
    unknown = [plain(label) for label in np.unique(y) if place_of(label, classes) is None]
    if unknown:
        raise ValueError(
            f"y holds classes that are unknown to the teacher, {unknown}; it knows "
            f"{classes.tolist()}. For one target y may hold truth values, y == target."
        )


def truth_of(y, classes, column):
    """Whether rows are of a column's class, from their labels or from truth values."""
    if not are_truth_values(y, classes):
        return y == classes[column]
    if classes[column] == 0 and set(classes.tolist()) == {0, 1}:
        raise ValueError(
            "y holds truth values, and with classes 0 and 1 and target 0 it is not clear whether "
            "True means class 1 or that a row is of the target: give labels, 0 and 1."
        )
    return y


def column_of(target, classes, n_columns):
    """Which column of the scores is the target's."""
    if len(classes) != n_columns:
        raise ValueError(
            f"The teacher's scores have {n_columns} columns but there are {len(classes)} classes: "
            "give the labels of the columns as `classes`."
        )
    column = place_of(target, classes)
    if column is None:
        raise ValueError(
            f"target {plain(target)!r} is unknown to the teacher, whose classes are "
            f"{classes.tolist()}."
        )
    return column


def place_of(label, classes):
    """Where a label is among classes; None where it is not."""
    # Python takes True for 1: a truth value is no number, and a number is no truth value.
    comparable = isinstance(label, bool | np.bool_) == (classes.dtype.kind == "b")
    found = np.flatnonzero(classes == label) if np.ndim(label) == 0 else np.empty(0)
    known = len(found) == 1 and (comparable or classes.dtype.kind == "O")
    return int(found[0]) if known else None


def plain(label):
    """A label as Python has it."""
    return label.item() if isinstance(label, np.generic) else label


CODINGS = {"source": source}
