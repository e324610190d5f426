"""Degrees of difficulty: how hard a sample is for the teacher, and so how much it costs a student.

With the teacher's scores S, the target class y, z = +1 for samples of the target class and -1 for
all others, and R the largest score of the other classes, the relative margin

    delta = z (S^y - R) / |S^y|

is non-negative where the teacher is right and non-positive where it is wrong. The degree of
difficulty

    d = (1 + decay) / 2 - (1 - decay) / 2 * clip(delta, -1, 1)

decreases from 1 (the teacher is clearly wrong) to ``decay`` (clearly right). A sample costs C / d:
the student pays more for samples that are easy for the teacher.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import column_or_1d

from widemargin._base.docs import shared_docs
from widemargin.gated.labels import label_scores


@shared_docs
def difficulty_degrees(
    scores: Any, y: ArrayLike, target: Any, decay: float = 0.3, classes: ArrayLike | None = None
) -> np.ndarray:
    """Compute the degree of difficulty of samples for a teacher.

    Parameters
    ----------
    scores : array-like of shape (n_samples, n_classes)
        Scores of the teacher. The columns of a DataFrame may be named by the class labels, in any
        order.
    <<y_or_booleans>>
    target : label
        Target class.
    decay : float, default=0.3
        Degree of the easiest samples, in (0, 1).
    <<score_classes>>

    Returns
    -------
    degrees : ndarray of shape (n_samples,)
        Degrees in [`decay`, 1], from easy to hard. A sample of degree d costs a student C / d.

    See Also
    --------
    GatedSVC : Student whose training samples are weighted by these degrees.

    Examples
    --------
    >>> from widemargin import difficulty_degrees
    >>> scores = [[2.0, -1.0], [0.5, 0.4], [1.0, 3.0]]
    >>> difficulty_degrees(scores, ["a", "a", "a"], target="a", decay=0.4, classes=["a", "b"])
    array([0.4 , 0.64, 1.  ])
    """
    check_decay(decay)
    return relative_margin_degrees(*label_scores(scores, y, target, classes), decay)


def check_decay(decay: float) -> None:
    """Raise a ValueError if decay is out of range."""
    if not 0.0 < decay < 1.0:
        raise ValueError(f"decay must be in (0, 1), got {decay!r}.")


def relative_margin_degrees(scores: Any, sign: Any, column: int, decay: float) -> np.ndarray:
    """Return the degrees of the module's docstring; ``sign`` is z."""
    target = scores[:, column]
    lead = sign * (target - largest_other_score(scores, column))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        delta = lead / np.abs(target)
    delta = np.where(lead == 0.0, 0.0, delta)
    return 0.5 * (1.0 + decay) - 0.5 * (1.0 - decay) * np.clip(delta, -1.0, 1.0)


def largest_other_score(scores: np.ndarray, column: int) -> np.ndarray:
    """Return R, the largest score of the other classes."""
    return np.delete(scores, column, axis=1).max(axis=1)


def sample_degrees(student: Any, scores: np.ndarray, sign: np.ndarray, column: int) -> np.ndarray:
    """Return the degrees of all samples by the ``difficulty`` of a student, all 1 for None."""
    difficulty = student.difficulty
    if difficulty is None:
        return np.ones(len(scores))
    if not callable(difficulty):
        return relative_margin_degrees(scores, sign, column, student.decay)
    degrees = column_or_1d(difficulty(scores, sign, column), dtype=np.float64)
    if len(degrees) != len(scores) or not np.all((degrees > 0.0) & (degrees < np.inf)):
        raise ValueError(
            f"difficulty must return a positive, finite degree for each of {len(scores)} samples, "
            f"got {len(degrees)} degrees between {degrees.min(initial=np.inf)} and "
            f"{degrees.max(initial=-np.inf)}."
        )
    return degrees
