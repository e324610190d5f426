"""Code matrices: the classes of each binary subproblem, and their signs."""

from itertools import product
from math import ceil, log2
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state

from widemargin._base.options import code_matrix_options as options
from widemargin._base.threads import single_threaded_blas
from widemargin.svm.reduction import one_vs_rest

CODES = ("ovr", "ovo", "dense", "sparse", "exhaustive")


def code_matrix(name: str, n_classes: int, random_state: Any = None) -> tuple[np.ndarray, float]:
    r"""Return a code matrix by name, and its minimum distance.

    The rows of the matrix are the code words of the classes, its columns binary subproblems. The
    distance between two code words is the number of subproblems that separate the two classes; a
    subproblem that leaves one of them out counts half:

    .. math::

        \Delta(u, v) = \sum_s \tfrac12 (1 - u_s v_s)

    With a minimum distance of d, voting corrects any :math:`\lceil d / 2 \rceil - 1` wrong
    binary decisions.

    Parameters
    ----------
    name : {'ovr', 'ovo', 'dense', 'sparse', 'exhaustive'}
        - 'ovr': each class against the rest;
        - 'ovo': each pair of classes;
        - 'dense': :math:`\lceil 10 \log_2 K \rceil` random splits of the K classes into two;
        - 'sparse': :math:`\lceil 15 \log_2 K \rceil` random columns, half of their entries 0;
        - 'exhaustive': all :math:`2^{K - 1} - 1` splits, for at most 12 classes.

        Of many random matrices the one with the largest minimum distance is taken. If there are
        fewer distinct columns than that, all of them are used.
    n_classes : int
        At least 2.
    random_state : int, RandomState instance or None, default=None
        Seed of 'dense' and 'sparse'. If None, a fixed seed is used, so that results are
        reproducible.

    Returns
    -------
    matrix : ndarray of shape (n_classes, n_columns)
        Entries +1, -1 and 0. With two classes it is one column, positive for the second.
    minimum_distance : float
        Smallest distance between two code words.

    References
    ----------
    E. L. Allwein, R. E. Schapire and Y. Singer, Reducing Multiclass to Binary: A Unifying Approach
    for Margin Classifiers, JMLR 1, 2000.

    Examples
    --------
    >>> from widemargin import code_matrix
    >>> matrix, minimum_distance = code_matrix("ovo", 3)
    >>> matrix
    array([[-1, -1,  0],
           [ 1,  0, -1],
           [ 0,  1,  1]])
    >>> minimum_distance
    2.0
    >>> code_matrix("exhaustive", 5)[1]
    8.0
    """
    if name not in CODES:
        raise ValueError(f"name must be one of {', '.join(map(repr, CODES))}, got {name!r}.")
    if not isinstance(n_classes, Integral) or n_classes < 2:
        raise ValueError(f"n_classes must be an integer of at least 2, got {n_classes!r}.")
    random = check_random_state(0 if random_state is None else random_state)
    matrix = one_vs_rest(2) if n_classes == 2 else _build(name, n_classes, random)
    return matrix, minimum_distance(matrix)


def check_code(code: ArrayLike, classes: np.ndarray) -> np.ndarray:
    """Return a code matrix that a user has passed; raise a ValueError if it is not valid."""
    matrix = np.asarray(code)
    if matrix.ndim != 2 or len(matrix) != len(classes) or not matrix.shape[1]:
        raise ValueError(
            f"code must have one row for each of the {len(classes)} classes and at least one "
            f"column, got an array of shape {matrix.shape}."
        )
    if not np.isin(matrix, (-1, 0, 1)).all():
        raise ValueError("code must contain +1, -1 and 0 only.")
    matrix = matrix.astype(np.intp)
    one_sided = np.flatnonzero((matrix.max(axis=0) < 1) | (matrix.min(axis=0) > -1))
    if len(one_sided):
        raise ValueError(
            "code must have +1 and -1 in every column, but column "
            f"{one_sided[0]} has one of them only."
        )
    names = classes.tolist()
    unseen = np.flatnonzero(~matrix.any(axis=1))
    if len(unseen):
        raise ValueError(
            "code must have +1 or -1 in every row, but the row of the class "
            f"{names[unseen[0]]!r} has neither."
        )
    words, first = np.unique(matrix, axis=0, return_index=True)
    if len(words) < len(matrix):
        lost = np.setdiff1d(np.arange(len(matrix)), first)[0]
        raise ValueError(
            f"code must have distinct rows, but another class has that of {names[lost]!r}."
        )
    _, group = connected_components(_opposed(matrix))
    if group.any():
        raise ValueError(
            "code must compare all classes, directly or through others, but no chain of columns "
            f"leads from {names[0]!r} to {names[group.argmax()]!r}."
        )
    return matrix


def minimum_distance(matrix: np.ndarray) -> float:
    """Return the smallest distance between two code words, as defined in `code_matrix`."""
    words = matrix.astype(np.float64)
    distance = 0.5 * (matrix.shape[1] - words @ words.T)
    return float(distance[np.triu_indices(len(matrix), 1)].min())


def is_one_vs_rest(matrix: np.ndarray) -> bool:
    """Return whether column k is positive for class k and no other."""
    return np.array_equal(matrix, one_vs_rest(len(matrix)))


def one_vs_one(n_classes: int) -> np.ndarray:
    """Return a matrix with a column for each pair of classes, +1 for the second of the two."""
    first, second = np.triu_indices(n_classes, 1)
    classes = np.eye(n_classes, dtype=np.intp)
    return classes[:, second] - classes[:, first]


def _build(name: str, n_classes: int, random: Any) -> np.ndarray:
    """Return the code matrix of more than two classes."""
    if name == "ovr":
        return one_vs_rest(n_classes)
    if name == "ovo":
        return one_vs_one(n_classes)
    n_splits = 2 ** (n_classes - 1) - 1
    if name == "dense":
        return _random_columns(n_classes, (-1, 1), n_splits, ceil(10 * log2(n_classes)), random)
    if name == "sparse":
        possible = (3**n_classes - 2 ** (n_classes + 1) + 1) // 2
        n_columns = ceil(15 * log2(n_classes))
        return _random_columns(n_classes, (-1, 0, 0, 1), possible, n_columns, random)
    if n_classes > options.most_exhaustive:
        raise ValueError(
            f"name='exhaustive' is for at most {options.most_exhaustive} classes, got {n_classes}, "
            f"which would need {n_splits:,} binary subproblems. Use 'dense' or 'sparse'."
        )
    return _all_columns(n_classes, (-1, 1))


def _all_columns(n_classes: int, values: tuple[int, ...]) -> np.ndarray:
    """All columns with both signs, one of each column and its negative."""
    columns = np.array(list(product(sorted(set(values)), repeat=n_classes)), dtype=np.intp)
    return _distinct(columns).T


def _random_columns(
    n_classes: int, values: tuple[int, ...], possible: int, n_columns: int, random: Any
) -> np.ndarray:
    """Choose among all columns, or among many drawn at random; take all if there are too few."""
    n_columns = min(n_columns, possible)
    if possible <= options.most_enumerated:
        return _best_of(_all_columns(n_classes, values), n_columns, random)
    drawn = np.array(values)[random.randint(len(values), size=(20 * n_columns, n_classes))]
    return _best_of(_distinct(drawn).T, n_columns, random)


def _distinct(columns: np.ndarray) -> np.ndarray:
    """Those with both signs, negated if their last sign is -1, without repetition."""
    columns = columns[(columns.max(axis=1) == 1) & (columns.min(axis=1) == -1)]
    last = columns.shape[1] - 1 - np.argmax(columns[:, ::-1] != 0, axis=1)
    return np.unique(columns * columns[np.arange(len(columns)), last][:, np.newaxis], axis=0)


def _best_of(pool: np.ndarray, n_columns: int, random: Any) -> np.ndarray:
    """Of many choices of columns, that with the largest minimum distance between rows."""
    if pool.shape[1] == n_columns:
        return pool
    tries = options.trial_work // (len(pool) ** 2 * n_columns)
    tries = int(np.clip(tries, options.fewest_tries, options.tries))
    best, best_distance = pool[:, :n_columns], -1.0
    with single_threaded_blas():
        for _ in range(tries):
            matrix = pool[:, random.choice(pool.shape[1], n_columns, replace=False)]
            distance = minimum_distance(matrix)
            if distance > best_distance and _opposed(matrix).sum() == len(pool) * (len(pool) - 1):
                best, best_distance = matrix, distance
    return best


def _opposed(matrix: np.ndarray) -> np.ndarray:
    """Whether two classes have opposite signs in some column, for all pairs."""
    words = matrix.astype(np.float64)
    return np.abs(words) @ np.abs(words).T > words @ words.T
