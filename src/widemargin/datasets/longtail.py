"""Classes of very different sizes."""

import numpy as np
from sklearn.utils import check_random_state


def make_long_tail(
    n_samples=1000,
    n_classes=10,
    *,
    imbalance=100.0,
    profile="exponential",
    n_features=10,
    separation=3.0,
    random_state=None,
):
    r"""Gaussian classes, the first with many rows and the last with few.

    With an imbalance of r, class j of K (counted from 0) has a share proportional to
    :math:`r^{-j / (K - 1)}`, or 1 for the first half of the classes and 1 / r for the others. All
    classes have unit variance; their means are drawn at random.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    n_classes : int, default=10
        At least 2.
    imbalance : float, default=100.0
        How many times as frequent as the last class the first one is.
    profile : {'exponential', 'step'}, default='exponential'
        How class sizes fall off.
    n_features : int, default=10
        Number of features.
    separation : float, default=3.0
        Expected distance between two class means.
    random_state : int, RandomState instance or None, default=None
        Seed of means and rows.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Rows, in random order.
    y : ndarray of shape (n_samples,)
        Labels from 0, the most frequent, on; every class has at least one row.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.datasets import make_long_tail
    >>> X, y = make_long_tail(n_samples=1110, n_classes=3, imbalance=100, random_state=0)
    >>> np.bincount(y)
    array([1000,  100,   10])
    """
    if n_classes < 2 or n_samples < n_classes:
        raise ValueError(
            "n_classes must be at least 2 and n_samples at least n_classes, got "
            f"n_classes={n_classes!r}, n_samples={n_samples!r}."
        )
    if not 1.0 <= imbalance < np.inf:
        raise ValueError(f"imbalance must be a number of at least 1, got {imbalance!r}.")
    if profile not in ("exponential", "step"):
        raise ValueError(f"profile must be 'exponential' or 'step', got {profile!r}.")
    random = check_random_state(random_state)
    place = np.arange(n_classes) / (n_classes - 1)
    fall = place if profile == "exponential" else (np.arange(n_classes) >= (n_classes + 1) // 2)
    y = np.repeat(np.arange(n_classes), _whole(imbalance ** -fall.astype(float), n_samples))
    y = random.permutation(y)
    scale = separation / np.sqrt(2.0 * n_features)
    means = scale * random.standard_normal((n_classes, n_features))
    return means[y] + random.standard_normal((n_samples, n_features)), y


def _whole(shares, total):
    """Whole numbers in nearly these proportions, at least one each, that add up to the total."""
    exact = shares / shares.sum() * total
    counts = np.floor(exact).astype(int)
    counts[np.argsort(counts - exact, kind="stable")[: total - counts.sum()]] += 1
    for empty in np.flatnonzero(counts == 0):
        counts[counts.argmax()] -= 1
        counts[empty] = 1
    return counts
