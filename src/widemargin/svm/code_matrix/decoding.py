"""From the answers of machines to classes: agreement, loss, probabilities."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from widemargin._base.matmul import tiled_multiply
from widemargin._base.threads import single_threaded_blas

_COUPLING_ROUNDS = 500
_COUPLING_TOL = 1e-8
_LONGEST_LEAP = 100.0
_LEAST_LOG = -50.0
_TINY = float(np.finfo(np.float64).tiny)

LOSSES = {
    "hinge": lambda t: np.maximum(0.0, 1.0 - t),
    "squared_hinge": lambda t: np.maximum(0.0, 1.0 - t) ** 2,
    "logistic": lambda t: np.logaddexp(0.0, -t),
    "linear": lambda t: -t,
}


def agreement(scores, matrix):
    """How many machines agree with each code word; those that do not see its class count half.

    With as many zeros in every row, as in one-vs-one, these are votes.
    """
    signs = np.where(scores > 0, 1.0, -1.0)
    return 0.5 * (tiled_multiply(signs, matrix.T) + np.abs(matrix).sum(axis=1).max())


def smallest_step(matrix):
    """By how much two numbers of agreeing machines differ at least."""
    odd = np.abs(matrix).sum(axis=1) % 2
    return 1.0 if (odd == odd[0]).all() else 0.5


def total_loss(scores, matrix, loss):
    """The loss of each code word, summed over the machines."""
    loss = LOSSES[loss]
    losses = np.hstack([loss(scores), loss(-scores)])
    total = tiled_multiply(losses, np.vstack([(matrix > 0).T, (matrix < 0).T]).astype(np.float64))
    return total + loss(np.zeros(())) * (matrix == 0).sum(axis=1)


def couple(positive, matrix):
    """Class probabilities that make the machines' most likely, in the Bradley-Terry model.

    A step maximises a lower bound of the likelihood that is tight where it starts, so that the
    likelihood never falls. Three steps are followed by a leap along their curve (Varadhan and
    Roland's), which counts if it brings the likelihood further.
    """
    model = _BradleyTerry(positive, matrix)
    log_p = np.zeros((len(positive), len(matrix)))
    going = np.arange(len(positive))
    with single_threaded_blas():
        for _ in range(_COUPLING_ROUNDS):
            rows = model.of(going)
            start = log_p[going]
            first = rows.step(start)
            second = rows.step(first)
            turn = (second - first) - (first - start)
            length = _norm(first - start) / np.maximum(_norm(turn), _TINY)
            length = np.clip(length, 1.0, _LONGEST_LEAP)
            leap = rows.step(start + 2.0 * length * (first - start) + length**2 * turn)
            further = rows.log_likelihood(leap) > rows.log_likelihood(second)
            log_p[going] = np.where(further[:, np.newaxis], leap, second)
            moved = np.abs(np.exp(second) - np.exp(first)).max(axis=1)
            going = going[moved > _COUPLING_TOL]
            if not len(going):
                break
    return np.exp(log_p)


@dataclass(frozen=True)
class _BradleyTerry:
    """How likely the answers of machines are, given log-probabilities of classes."""

    answers: np.ndarray
    matrix: np.ndarray

    def of(self, rows):
        return _BradleyTerry(self.answers[rows], self.matrix)

    def step(self, log_p):
        plus, minus, seen = self._masses(log_p)
        own, other = self.answers / plus, (1.0 - self.answers) / minus
        gain = own @ (self.matrix > 0).T + other @ (self.matrix < 0).T
        shared = (1.0 / seen) @ (self.matrix != 0).T
        log_p = log_p + np.log(np.maximum(gain, _TINY)) - np.log(shared)
        return np.maximum(log_p - logsumexp(log_p, axis=1, keepdims=True), _LEAST_LOG)

    def log_likelihood(self, log_p):
        plus, minus, seen = self._masses(log_p)
        terms = self.answers * np.log(plus / seen) + (1.0 - self.answers) * np.log(minus / seen)
        return terms.sum(axis=1)

    def _masses(self, log_p):
        p = np.exp(np.maximum(log_p, _LEAST_LOG))
        plus, minus = p @ (self.matrix > 0), p @ (self.matrix < 0)
        return plus, minus, plus + minus


def _norm(rows):
    return np.sqrt((rows**2).sum(axis=1, keepdims=True))
