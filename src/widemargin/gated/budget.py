"""Feature maps within a budget of time: the features of X, landmarks or random features.

The time of a prediction is measured, so that a budget is kept on the computer that fits, whatever
the teacher. The largest map of each kind is a candidate; folds choose among them.
"""

from time import perf_counter
from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler

from widemargin._base.options import gated_options as options
from widemargin._base.sklearn_compat import num_samples, safe_indexing
from widemargin.gated.distillation import landmark_map
from widemargin.gated.landmarks import inner_products, landmark_features
from widemargin.gated.teacher import validated_array
from widemargin.kernels.parameters import effective_gamma


def maps_within(budget: float, X: Any, values: Any) -> list[Any]:
    """Return the fitted maps whose predictions take at most ``budget`` microseconds per sample.

    Parameters
    ----------
    budget : float
        Microseconds per sample of a batch of ``options.timed_samples`` samples.
    X : DataFrame, ndarray or CSR matrix of shape (n_samples, n_features)
        Training samples.
    values : ndarray or CSR matrix of shape (n_samples, n_features)
        The same as an array.

    Returns
    -------
    maps : list of fitted transformer or None
        None is the identity.
    """
    index = np.arange(options.timed_samples) % num_samples(values)
    batch = safe_indexing(X, index)  # maps check the names of a DataFrame
    least = prediction_time(None, values[index])
    if least > budget:
        raise ValueError(
            f"budget must be at least {least:.2g} microseconds, the time of one product over "
            f"{values.shape[1]} features for each sample, got {budget:g}. Reduce the features."
        )
    maps: list[Any] = [None]
    for make in (landmark_map, random_map):
        best = None
        for size in options.map_sizes:
            features = make(size, X)
            if prediction_time(features, batch) > options.budget_share * budget:
                break
            best = features
        maps += [] if best is None else [best]
    return maps


def prediction_time(features: Any, batch: Any) -> float:
    """Return the microseconds per sample of a linear function of a map, the shortest of a few."""
    seconds = []
    for _ in range(options.timed_repeats):
        start = perf_counter()
        phi = batch if features is None else landmark_features(features, batch)
        phi = features.transform(batch) if phi is None else phi
        n_features = (phi if hasattr(phi, "shape") else phi.values).shape[1]
        inner_products(phi, np.ones((1, n_features)))
        seconds.append(perf_counter() - start)
    return 1e6 * min(seconds) / num_samples(batch)


def random_map(n_features: int, X: Any) -> RBFSampler:
    """Return random Fourier features of the rbf kernel."""
    gamma = effective_gamma("scale", validated_array(X), None)
    return RBFSampler(gamma=gamma, n_components=n_features, random_state=0).fit(X)
