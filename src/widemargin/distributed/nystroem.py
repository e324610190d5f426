"""A kernel approximated by Nystroem features, and LinearSVC on these.

The samples that the features are built on are drawn at random from all partitions; they are all
that leaves its partition. As many others estimate the share of the trace of the kernel matrix that
the features leave out:

    error = sum_i (k(x_i, x_i) - ||phi(x_i)||^2) / sum_i k(x_i, x_i)

It is 0 for an exact representation and 1 for none. The difference is never negative, and its
trace bounds the spectral norm of the error of the kernel matrix.
"""

from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from widemargin._base.options import distributed_options as options
from widemargin._base.sklearn_compat import kernel_arguments
from widemargin.distributed import linear_svc
from widemargin.distributed.partitions import fetch, task
from widemargin.svm.linear_svc import LinearSVC


def is_nystroem_svc(model: Any) -> bool:
    """Return whether an estimator is a pipeline of `Nystroem` and `LinearSVC`."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else []
    return len(steps) == 2 and isinstance(steps[0], Nystroem) and isinstance(steps[1], LinearSVC)


def fit(
    pipeline: Any, blocks: list[tuple], gap_tol: float, max_rounds: int
) -> tuple[Any, dict, tuple[float, float]]:
    """Return the fitted pipeline, the history, and the error of the kernel with its deviation."""
    (first, nystroem), (last, classifier) = pipeline.steps
    basis, others = _draw(blocks, nystroem)
    features = clone(nystroem).set_params(n_components=min(nystroem.n_components, _size(basis)))
    features.fit(basis)
    error = _error(features, others)
    shared = task(clone_fitted, features)
    images = [(task(_transform, shared, X), y, weight) for X, y, weight in blocks]
    fitted, history = linear_svc.fit_blocks(classifier, images, gap_tol, max_rounds)
    return Pipeline([(first, features), (last, fitted)]), history, error


def clone_fitted(features: Any) -> Any:
    """Return the features: a task whose result stays on the workers."""
    return features


def _draw(blocks: list[tuple], nystroem: Any) -> tuple[Any, Any]:
    """Return random samples for the basis, and others."""
    sizes = fetch(*(task(_size, X) for X, _, _ in blocks))
    random, total = check_random_state(nystroem.random_state), sum(sizes)
    if not total:
        raise ValueError("X must have at least one sample, got empty blocks only.")
    wanted = min(total, nystroem.n_components)
    chosen = random.permutation(total)[: wanted + options.error_samples]
    ends = np.cumsum([0, *sizes])
    samples = []
    for numbers in (chosen[:wanted], chosen[wanted:]):
        numbers = np.sort(numbers)
        cuts = np.split(numbers, np.searchsorted(numbers, ends[1:-1]))
        rows = [
            task(_take, X, cut - start)
            for (X, _, _), cut, start in zip(blocks, cuts, ends[:-1], strict=True)
            if len(cut)
        ]
        samples.append(_stack(fetch(*rows)))
    return samples[0], samples[1]


def _size(X: Any) -> int:
    return int(X.shape[0])


def _take(X: Any, rows: np.ndarray) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _stack(blocks: tuple) -> Any:
    if not blocks:
        return None
    if hasattr(blocks[0], "iloc"):
        return pd.concat(blocks)
    return sp.vstack(blocks).tocsr() if sp.issparse(blocks[0]) else np.concatenate(blocks)


def _transform(features: Any, X: Any) -> np.ndarray:
    if X.shape[0]:
        return features.transform(X)
    return np.empty((0, len(features.components_)))


def _error(features: Any, X: Any) -> tuple[float, float]:
    """Return the share of the trace that is left out, and its standard deviation."""
    if X is None:  # all samples are in the basis: the features are exact
        return 0.0, 0.0
    keywords = kernel_arguments(features)
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    full = pairwise_kernels(values, metric=features.kernel, filter_params=True, **keywords)
    diagonal = full.diagonal()
    lost = np.maximum(diagonal - np.sum(features.transform(X) ** 2, axis=1), 0.0)
    share = float(lost.sum() / diagonal.sum())
    spread = lost - share * diagonal
    return share, float(np.sqrt(np.sum(spread**2)) / diagonal.sum())
