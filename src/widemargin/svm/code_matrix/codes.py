"""Code matrices: which machine sees which classes, and with which signs."""

from itertools import combinations, product
from math import ceil, log2
from numbers import Integral

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.utils import check_random_state

from widemargin._base.threads import single_threaded_blas

CODES = ("ovr", "ovo", "dense", "sparse", "exhaustive")
_MOST_EXHAUSTIVE = 12
_ENUMERATED = 4096
_TRIES = 200
_TRIAL_WORK = 50_000_000


def code_matrix(name, n_classes, random_state=None):
    r"""A code matrix by name, and its minimum distance.

    The distance between two code words is the number of machines that decide differently about
    them, where one that does not see one of the two classes counts half:

    .. math::

        \Delta(u, v) = \sum_s \tfrac12 (1 - u_s v_s)

    With a minimum distance of d, voting survives any :math:`\lceil d / 2 \rceil - 1` wrong
    machines.

    Parameters
    ----------
    name : {'ovr', 'ovo', 'dense', 'sparse', 'exhaustive'}
        - 'ovr': a machine for every class against the rest;
        - 'ovo': a machine for every pair of classes;
        - 'dense': :math:`\lceil 10 \log_2 K \rceil` random splits of the K classes into two;
        - 'sparse': :math:`\lceil 15 \log_2 K \rceil` random columns, half of their entries 0;
        - 'exhaustive': all :math:`2^{K - 1} - 1` splits, for at most 12 classes.

        Of many random matrices the one with the largest minimum distance is taken. For few classes
        there are fewer different columns than that, which are then all there.
    n_classes : int
        At least 2.
    random_state : int, RandomState instance or None, default=None
        Seed of 'dense' and 'sparse'. None is a fixed seed too: a fit can be repeated.

    Returns
    -------
    matrix : ndarray of shape (n_classes, n_machines)
        Of +1, -1 and 0. With two classes it is one column, positive for the second.
    minimum_distance : float
        The smallest distance between two code words.

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
        raise ValueError(f"n_classes must be a whole number of at least 2, got {n_classes!r}.")
    random = check_random_state(0 if random_state is None else random_state)
    matrix = np.array([[-1], [1]]) if n_classes == 2 else _BUILDERS[name](n_classes, random)
    return matrix, minimum_distance(matrix)


def check_code(code, classes):
    """A code matrix that a user has given, or a ValueError that tells what is wrong with it."""
    matrix = np.asarray(code)
    if matrix.ndim != 2 or len(matrix) != len(classes) or not matrix.shape[1]:
        raise ValueError(
            f"code must have one row for each of the {len(classes)} classes and a column for each "
            f"machine, got an array of shape {matrix.shape}."
        )
    if not np.isin(matrix, (-1, 0, 1)).all():
        raise ValueError("code must hold +1, -1 and 0 only.")
    matrix = matrix.astype(np.intp)
    one_sided = np.flatnonzero((matrix.max(axis=0) < 1) | (matrix.min(axis=0) > -1))
    if len(one_sided):
        raise ValueError(
            "code must have +1 and -1 in every column: its machine has nothing to tell apart in "
            f"column {one_sided[0]}."
        )
    names = classes.tolist()
    unseen = np.flatnonzero(~matrix.any(axis=1))
    if len(unseen):
        raise ValueError(
            f"code must have a sign in every row: no machine sees the class {names[unseen[0]]!r}."
        )
    words, first = np.unique(matrix, axis=0, return_index=True)
    if len(words) < len(matrix):
        lost = np.setdiff1d(np.arange(len(matrix)), first)[0]
        raise ValueError(
            f"code must have different rows: another class has the code word of {names[lost]!r}."
        )
    _, group = connected_components(_opposed(matrix))
    if group.any():
        raise ValueError(
            "code must compare all classes, directly or by way of others: no chain of machines "
            f"leads from {names[0]!r} to {names[group.argmax()]!r}."
        )
    return matrix


def minimum_distance(matrix):
    """The smallest distance between two code words, as told in `code_matrix`."""
    words = matrix.astype(np.float64)
    distance = 0.5 * (matrix.shape[1] - words @ words.T)
    return float(distance[np.triu_indices(len(matrix), 1)].min())


def is_one_vs_rest(matrix):
    """Whether each machine is positive for the class of its own number and no other."""
    return np.array_equal(matrix, one_vs_rest(len(matrix)))


def one_vs_rest(n_classes, random=None):
    """A column for every class, +1 for it."""
    return 2 * np.eye(n_classes, dtype=np.intp) - 1


def one_vs_one(n_classes, random=None):
    """A column for every pair of classes, +1 for the second of the two."""
    pairs = list(combinations(range(n_classes), 2))
    matrix = np.zeros((n_classes, len(pairs)), dtype=np.intp)
    for column, (first, second) in enumerate(pairs):
        matrix[first, column], matrix[second, column] = -1, 1
    return matrix


def _exhaustive(n_classes, random=None):
    if n_classes > _MOST_EXHAUSTIVE:
        raise ValueError(
            f"name='exhaustive' is for at most {_MOST_EXHAUSTIVE} classes, got {n_classes}, which "
            f"would take {2 ** (n_classes - 1) - 1:,} machines: use 'dense' or 'sparse'."
        )
    return _all_columns(n_classes, (-1, 1))


def _dense(n_classes, random):
    possible = 2 ** (n_classes - 1) - 1
    n_columns = min(ceil(10 * log2(n_classes)), possible)
    return _best_of(_pool(n_classes, (-1, 1), possible, n_columns, random), n_columns, random)


def _sparse(n_classes, random):
    possible = (3**n_classes - 2 ** (n_classes + 1) + 1) // 2
    n_columns = min(ceil(15 * log2(n_classes)), possible)
    return _best_of(_pool(n_classes, (-1, 0, 0, 1), possible, n_columns, random), n_columns, random)


_BUILDERS = {
    "ovr": one_vs_rest,
    "ovo": one_vs_one,
    "dense": _dense,
    "sparse": _sparse,
    "exhaustive": _exhaustive,
}


def _all_columns(n_classes, values):
    """All columns with both signs, one of each column and its negative."""
    columns = np.array(list(product(sorted(set(values)), repeat=n_classes)), dtype=np.intp)
    return _distinct(columns).T


def _pool(n_classes, values, possible, n_columns, random):
    """Different columns to choose from: all there are, or many drawn at random."""
    if possible <= _ENUMERATED:
        return _all_columns(n_classes, values)
    drawn = np.array(values)[random.randint(len(values), size=(20 * n_columns, n_classes))]
    return _distinct(drawn).T


def _distinct(columns):
    """Those with both signs, turned so that the last sign is +1, without repetition."""
    columns = columns[(columns.max(axis=1) == 1) & (columns.min(axis=1) == -1)]
    last = columns.shape[1] - 1 - np.argmax(columns[:, ::-1] != 0, axis=1)
    return np.unique(columns * columns[np.arange(len(columns)), last][:, np.newaxis], axis=0)


def _best_of(pool, n_columns, random):
    """Of many choices of columns, that with the largest minimum distance between separate rows."""
    if pool.shape[1] == n_columns:
        return pool
    tries = int(np.clip(_TRIAL_WORK // (len(pool) ** 2 * n_columns), 10, _TRIES))
    best, best_distance = pool[:, :n_columns], -1.0
    with single_threaded_blas():
        for _ in range(tries):
            matrix = pool[:, random.choice(pool.shape[1], n_columns, replace=False)]
            distance = minimum_distance(matrix)
            if distance > best_distance and _opposed(matrix).sum() == len(pool) * (len(pool) - 1):
                best, best_distance = matrix, distance
    return best


def _opposed(matrix):
    """Whether two classes have opposite signs in some column, for all pairs."""
    words = matrix.astype(np.float64)
    return np.abs(words) @ np.abs(words).T > words @ words.T
