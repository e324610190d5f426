"""Decoding of binary decisions into classes: agreement, loss, probabilities."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.linalg import norm
from scipy.special import logsumexp

from widemargin._base.matmul import tiled_multiply
from widemargin._base.numeric import TINY
from widemargin._base.options import code_matrix_options as options
from widemargin._base.threads import single_threaded_blas

LOSSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "hinge": lambda t: np.maximum(0.0, 1.0 - t),
    "squared_hinge": lambda t: np.maximum(0.0, 1.0 - t) ** 2,
    "logistic": lambda t: np.logaddexp(0.0, -t),
    "linear": lambda t: -t,
}


def agreement(scores: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return the number of binary decisions that agree with each code word.

    Those of subproblems without the class count half. If all rows have the same number of zeros,
    as in one-vs-one, these are votes.
    """
    signs = np.where(scores > 0, 1.0, -1.0)
    return 0.5 * (tiled_multiply(signs, matrix.T) + np.abs(matrix).sum(axis=1).max())


def smallest_step(matrix: np.ndarray) -> float:
    """Return the smallest nonzero difference between values of `agreement`."""
    odd = np.abs(matrix).sum(axis=1) % 2
    return 1.0 if (odd == odd[0]).all() else 0.5


def total_loss(scores: np.ndarray, matrix: np.ndarray, loss: str) -> np.ndarray:
    """Return the loss of each code word, summed over the binary subproblems."""
    function = LOSSES[loss]
    losses = np.hstack([function(scores), function(-scores)])
    total = tiled_multiply(losses, np.vstack([(matrix > 0).T, (matrix < 0).T]).astype(np.float64))
    return total + function(np.zeros(())) * (matrix == 0).sum(axis=1)


def couple(positive: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return class probabilities by maximum likelihood in the Bradley-Terry model.

    ``positive`` holds the probabilities of the binary classifiers. An iteration maximizes a lower
    bound of the likelihood that is tight at its start (MM), so that the likelihood never decreases.
    Two iterations are followed by an extrapolation (SQUAREM, Varadhan and Roland 2008), which is
    accepted if it increases the likelihood further.
    """
    log_p = np.zeros((len(positive), len(matrix)))
    remaining = np.arange(len(positive))
    with single_threaded_blas():
        for _ in range(options.coupling_iterations):
            model = _BradleyTerry(positive[remaining], matrix)
            start = log_p[remaining]
            first = model.step(start)
            second = model.step(first)
            curvature = (second - first) - (first - start)
            length = norm(first - start, axis=1, keepdims=True)
            length = length / np.maximum(norm(curvature, axis=1, keepdims=True), TINY)
            length = np.clip(length, 1.0, options.longest_extrapolation)
            far = model.step(start + 2.0 * length * (first - start) + length**2 * curvature)
            better = model.log_likelihood(far) > model.log_likelihood(second)
            log_p[remaining] = np.where(better[:, np.newaxis], far, second)
            change = np.abs(np.exp(second) - np.exp(first)).max(axis=1)
            remaining = remaining[change > options.coupling_tol]
            if not len(remaining):
                break
    return np.exp(log_p)


@dataclass(frozen=True)
class _BradleyTerry:
    """The likelihood of binary probabilities, given log-probabilities of classes."""

    positive: np.ndarray
    matrix: np.ndarray

    def step(self, log_p: np.ndarray) -> np.ndarray:
        plus, minus, total = self._sums(log_p)
        gain = (self.positive / plus) @ (self.matrix > 0).T
        gain = gain + ((1.0 - self.positive) / minus) @ (self.matrix < 0).T
        shared = (1.0 / total) @ (self.matrix != 0).T
        log_p = log_p + np.log(np.maximum(gain, TINY)) - np.log(shared)
        return np.maximum(log_p - logsumexp(log_p, axis=1, keepdims=True), options.smallest_log)

    def log_likelihood(self, log_p: np.ndarray) -> np.ndarray:
        plus, minus, total = self._sums(log_p)
        terms = self.positive * np.log(plus / total)
        return (terms + (1.0 - self.positive) * np.log(minus / total)).sum(axis=1)

    def _sums(self, log_p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Probabilities of the classes with +1 in each column, with -1, and of both."""
        p = np.exp(np.maximum(log_p, options.smallest_log))
        plus, minus = p @ (self.matrix > 0), p @ (self.matrix < 0)
        return plus, minus, plus + minus
