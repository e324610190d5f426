"""Generator of imbalanced classes."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def make_long_tail(
    n_samples: int = 1000, n_classes: int = 10, *, imbalance: float = 100.0,
    profile: str = "exponential", n_features: int = 10, separation: float = 3.0,
    random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    r"""Generate Gaussian classes with a long-tailed distribution of class sizes.

    With an imbalance of r, the size of class j of K (from 0) is proportional to
    :math:`r^{-j / (K - 1)}` for the profile 'exponential', to :math:`(j + 1)^{-\log r / \log K}`
    for 'zipf' (a power law, with Zipf's exponent 1 for r = K), and for 'step' to 1 in the first
    half of the classes and 1 / r in the others. All classes have unit variance and random means.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of samples.
    n_classes : int, default=10
        Number of classes, at least 2.
    imbalance : float, default=100.0
        Size of the first class divided by the size of the last class.
    profile : {'exponential', 'zipf', 'step'}, default='exponential'
        Decrease of the class sizes.
    n_features : int, default=10
        Number of features.
    separation : float, default=3.0
        Expected distance between two class means.
    random_state : int, RandomState instance or None, default=None
        Seed of the means and samples.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Samples, in random order.
    y : ndarray of shape (n_samples,)
        Labels, sorted by class size with the most frequent class 0. Every class has at least one
        sample.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.datasets import make_long_tail
    >>> X, y = make_long_tail(n_samples=1110, n_classes=3, imbalance=100, random_state=0)
    >>> np.bincount(y)
    array([1000,  100,   10])
    >>> _, y = make_long_tail(2500, n_classes=4, imbalance=4, profile="zipf", random_state=0)
    >>> np.bincount(y)
    array([1200,  600,  400,  300])
    """
    if n_classes < 2 or n_samples < n_classes:
        raise ValueError(
            "n_classes must be at least 2 and n_samples at least n_classes, got "
            f"n_classes={n_classes!r}, n_samples={n_samples!r}."
        )
    if not 1.0 <= imbalance < np.inf:
        raise ValueError(f"imbalance must be a number of at least 1, got {imbalance!r}.")
    if profile not in ("exponential", "zipf", "step"):
        raise ValueError(f"profile must be 'exponential', 'zipf' or 'step', got {profile!r}.")
    random = check_random_state(random_state)
    exponent = np.arange(n_classes) / (n_classes - 1)
    if profile == "zipf":
        exponent = np.log(np.arange(1, n_classes + 1)) / np.log(n_classes)
    if profile == "step":
        exponent = (np.arange(n_classes) >= (n_classes + 1) // 2).astype(float)
    y = np.repeat(np.arange(n_classes), _round_sizes(imbalance**-exponent, n_samples))
    y = random.permutation(y)
    scale = separation / np.sqrt(2.0 * n_features)
    means = scale * random.standard_normal((n_classes, n_features))
    return means[y] + random.standard_normal((n_samples, n_features)), y


def _round_sizes(shares: np.ndarray, total: int) -> np.ndarray:
    """Return positive integers close to these proportions that sum to the total."""
    exact = shares / shares.sum() * total
    counts = np.floor(exact).astype(int)
    counts[np.argsort(counts - exact, kind="stable")[: total - counts.sum()]] += 1
    for empty in np.flatnonzero(counts == 0):
        counts[counts.argmax()] -= 1
        counts[empty] = 1
    return counts
