"""Generator of noisy labels whose noise is measured at training time."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def make_privileged(
    n_samples: int = 100, n_features: int = 10, *, noisy: float = 0.5, noise: float = 2.0,
    measurement: float = 0.3, random_state: Any = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    r"""Generate noisy labels and a privileged feature that measures how wrong each of them is.

    The true score of a sample is the sum of its first two features, all of which are standard
    normal. Gaussian noise is added to the scores of some samples before their signs become labels.
    The privileged feature is the slack of the label at the true score,
    :math:`\max(0, 1 - y_i t_i)` with labels of -1 and 1, plus an error of measurement.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_features : int, default=10
        Number of features, at least 2.
    noisy : float, default=0.5
        Probability that the score of a sample has noise, from 0 to 1.
    noise : float, default=2.0
        Standard deviation of this noise.
    measurement : float, default=0.3
        Standard deviation of the error with which the slack is measured.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Samples.
    y : ndarray of shape (n_samples,)
        Labels 0 and 1, some of which are wrong.
    privileged : ndarray of shape (n_samples, 1)
        The privileged feature.
    truth : ndarray of shape (n_samples,)
        The labels without noise, to evaluate with.

    Examples
    --------
    >>> from widemargin import SVC, PrivilegedSVC
    >>> from widemargin.datasets import make_privileged
    >>> X, y, privileged, truth = make_privileged(1000, random_state=0)
    >>> model = PrivilegedSVC(kernel="linear")
    >>> model = model.fit(X[:60], y[:60], privileged=privileged[:60])
    >>> plain = SVC(kernel="linear").fit(X[:60], y[:60])
    >>> model.score(X[60:], truth[60:]) > plain.score(X[60:], truth[60:])
    True
    """
    if n_features < 2:
        raise ValueError(f"n_features must be at least 2, got {n_features!r}.")
    if not 0.0 <= noisy <= 1.0:
        raise ValueError(f"noisy must be a number from 0 to 1, got {noisy!r}.")
    random = check_random_state(random_state)
    X = random.standard_normal((n_samples, n_features))
    score = X[:, :2].sum(axis=1)
    added = noise * random.standard_normal(n_samples) * (random.uniform(size=n_samples) < noisy)
    y = (score + added > 0.0).astype(int)
    slack = np.maximum(0.0, 1.0 - (2 * y - 1) * score)
    measured = slack + measurement * random.standard_normal(n_samples)
    return X, y, measured[:, np.newaxis], (score > 0.0).astype(int)
