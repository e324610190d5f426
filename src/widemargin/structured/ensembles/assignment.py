"""Assignment of samples to the members of an ensemble."""

from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from widemargin._base.options import multiple_choice_options
from widemargin._base.threads import for_each, single_threaded_blas


def assign_by_loss(oracle: Any, W: np.ndarray, random: Any, best_only: bool) -> list[np.ndarray]:
    """Assign each sample to one member: the best, or a random one."""
    losses = np.array(for_each(oracle.task_losses, W, oracle.threads))
    if best_only:
        share = (losses == losses.min(axis=0)).astype(float)
    else:
        total = losses.sum(axis=0)
        share = 1.0 - np.divide(losses, total, where=total > 0.0, out=np.zeros_like(losses))
        share = share if len(W) > 1 else np.ones_like(losses)
    ends = np.cumsum(share / share.sum(axis=0), axis=0)
    member = np.minimum((ends < random.random(losses.shape[1])).sum(axis=0), len(W) - 1)
    return samples_of_members(member, len(W))


def cluster_samples(oracle: Any, n_members: int, random: np.random.Generator) -> np.ndarray:
    """Return the member of each sample, by k-means on the joint features of the true outputs."""
    if oracle.n_samples <= n_members:
        return np.arange(oracle.n_samples)
    from sklearn.cluster import KMeans  # its import takes longer than a small fit

    features = normalize(oracle.true_joint_features())
    means = KMeans(
        n_members, n_init=multiple_choice_options.cluster_starts,
        random_state=int(random.integers(2**31)),
    )  # fmt: skip
    with single_threaded_blas():
        return means.fit_predict(features)


def samples_of_members(member: np.ndarray, n_members: int) -> list[np.ndarray]:
    """Return the samples of each member, from the member of each sample."""
    return [np.flatnonzero(member == m) for m in range(n_members)]
