"""The interface of oracles, and the oracle that calls the methods of any model.

With phi the joint feature and y_i the true output of sample i,

    H_i(w) = max_y loss(y_i, y) + w . phi(x_i, y)  -  w . phi(x_i, y_i)

An oracle finds a maximizer y and returns its loss, the slack H_i and phi(x_i, y_i) - phi(x_i, y),
the negative of a subgradient of H_i. `PlainOracle` calls the methods of a model, one sample at a
time. `GraphOracle` works on flat arrays in compiled code.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from widemargin._base.options import oracle_options as options
from widemargin._base.threads import for_each

# Labels, losses, slacks and bounds of a chunk of samples.
Chunk = tuple[list, np.ndarray, np.ndarray, np.ndarray]


class Violations(NamedTuple):
    """Results of loss-augmented inference on several samples.

    Attributes
    ----------
    labels : list
        The maximizers in the form of the oracle; its method `outputs` makes outputs of them.
    losses : ndarray of shape (n,)
        Losses of the maximizers.
    slacks : ndarray of shape (n,)
        Loss plus score of the maximizer minus the score of the true output.
    bounds : ndarray of shape (n,)
        Upper bounds on H, equal to the slacks where inference is exact.
    difference : ndarray of shape (size,) or (n, size)
        Joint feature of the true output minus that of the maximizer: the weighted sum, or one row
        per sample.
    """

    labels: list
    losses: np.ndarray
    slacks: np.ndarray
    bounds: np.ndarray
    difference: np.ndarray


class Decoded(NamedTuple):
    """Results of inference on all samples.

    Attributes
    ----------
    labels : list
        Labels of each sample, or fractional beliefs of nodes and edges.
    energies : ndarray of shape (n_samples,)
        Negative scores.
    bounds : ndarray of shape (n_samples,)
        Lower bounds on the energies.
    exact : bool
        Whether all labels have the least energy.
    methods : set of str
        Inference methods that were used.
    """

    labels: list
    energies: np.ndarray
    bounds: np.ndarray
    exact: bool
    methods: set


class StructuredOracle:
    """Base class of oracles: calls `solve_chunk` for chunks of samples, in threads.

    Attributes
    ----------
    n_samples : int
        Number of samples.
    size : int
        Number of weights.
    threads : int or None
        Number of threads; None for as many as available.
    """

    n_samples: int
    size: int
    threads: int | None

    def solve_chunk(
        self, w: np.ndarray, samples: np.ndarray, weight: np.ndarray, extra: Any, difference: Any
    ) -> Chunk:
        """Solve loss-augmented inference for some samples; the method a new oracle must define.

        Parameters
        ----------
        w : ndarray of shape (size,)
            Weights, in the order of the oracle.
        samples : ndarray of int
            The samples.
        weight : ndarray of shape (len(samples),)
            Factors of the samples in ``difference``.
        extra : list of ndarray or None
            As in `violations`.
        difference : ndarray of shape (len(samples), size) or (1, size)
            np.ndarray to which the differences are added, each to its row or all to the only one.

        Returns
        -------
        labels : list
        losses, slacks, bounds : ndarray of shape (len(samples),)
            As in `Violations`.
        """
        raise NotImplementedError

    def violations(
        self, w: np.ndarray, samples: Any = None, weight: Any = None, extra: Any = None,
        rows: bool = False,
    ) -> Violations:  # fmt: skip
        """Solve loss-augmented inference for several samples.

        Parameters
        ----------
        w : ndarray of shape (size,)
            Weights, in the order of the oracle.
        samples : array-like of int, default=None
            The samples; all by default.
        weight : array-like of shape (len(samples),), default=None
            Factors of the samples in the sum of the differences; 1 by default.
        extra : list of ndarray, default=None
            For each of ``samples`` terms of shape (n_parts, n_states) that are added to the scores
            of the states of its parts.
        rows : bool, default=False
            Whether to return one difference per sample in place of their sum.

        Returns
        -------
        Violations
        """
        samples = np.arange(self.n_samples) if samples is None else np.asarray(samples)
        weight = np.ones(len(samples)) if weight is None else np.asarray(weight, dtype=float)
        # Sums are made chunk by chunk, in this order, for any number of threads.
        most = max(1, min(options.most_chunks, int(options.chunk_numbers / self.size)))
        size = max(options.chunk_samples, -(-len(samples) // most))
        chunks = [slice(k, min(k + size, len(samples))) for k in range(0, len(samples), size)]
        difference = np.zeros((len(samples) if rows else len(chunks), self.size))

        def work(number: int) -> tuple:
            chunk = chunks[number]
            target = difference[chunk] if rows else difference[number : number + 1]
            added = None if extra is None else extra[chunk]
            return self.solve_chunk(w, samples[chunk], weight[chunk], added, target)

        results = for_each(work, range(len(chunks)), self.threads)
        losses, slacks, bounds = (
            np.concatenate([chunk[k] for chunk in results] or [np.empty(0)]) for k in (1, 2, 3)
        )
        labels = [label for chunk in results for label in chunk[0]]
        total = difference if rows else difference.sum(axis=0)
        return Violations(labels, losses, slacks, bounds, total)

    def violation(self, i: Any, w: Any, out: np.ndarray, extra: Any = None) -> tuple[float, float]:
        """Write the difference of sample ``i`` to ``out``; return its loss and slack."""
        out[:] = 0.0
        added = None if extra is None else [extra]
        one = np.array([i]), np.ones(1)
        _, losses, slacks, _ = self.solve_chunk(w, *one, added, out[np.newaxis])
        return losses[0], slacks[0]

    def from_model_order(self, w: np.ndarray) -> np.ndarray:
        """Return weights in the order of the oracle, from the order of the model."""
        return np.array(w, dtype=float)

    def to_model_order(self, w: np.ndarray) -> np.ndarray:
        """Return weights in the order of the model, from the order of the oracle."""
        return np.array(w, dtype=float)


class PlainOracle(StructuredOracle):
    """Oracle that calls the methods of a model, one sample at a time.

    Parameters
    ----------
    model : StructuredModel
        An initialized model.
    X, Y : sequence
        Inputs and outputs.
    threads : int, default=None
        Number of threads that call the model at the same time; None for one.

    Attributes
    ----------
    exact : bool
        Whether slacks are used as bounds: the inference of the model maximizes its loss, and is
        assumed to be exact.
    """

    def __init__(self, model: Any, X: Sequence, Y: Sequence, threads: int | None = None) -> None:
        self.model, self.X, self.Y = model, X, Y
        self.threads = 1 if threads is None else threads
        self.n_samples, self.size = len(Y), model.size_joint_feature
        self.exact = model.maximizes_loss()

    @cached_property
    def true_features(self) -> list[np.ndarray]:
        """Joint features of the samples with their true outputs."""
        return [self.model.joint_feature(x, y) for x, y in zip(self.X, self.Y, strict=True)]

    def solve_chunk(
        self, w: np.ndarray, samples: np.ndarray, weight: np.ndarray, extra: Any, difference: Any
    ) -> Chunk:
        labels, (losses, slacks) = [], np.empty((2, len(samples)))
        for k, i in enumerate(samples):
            x, truth, bonus = self.X[i], self.Y[i], 0.0
            if extra is None:
                y = self.model.loss_augmented_inference(x, truth, w)
            else:
                y = self.model.loss_augmented_inference(x, truth, w, extra=extra[k])
                nodes = np.arange(len(extra[k]))
                bonus = float(extra[k][nodes, self.model.states(y)].sum())
                bonus -= float(extra[k][nodes, self.model.states(truth)].sum())
            change = self.true_features[i] - self.model.joint_feature(x, y)
            loss = float(self.model.loss(truth, y))
            slack = loss - float(w @ change) + bonus
            if slack < 0.0 and not self.exact:
                y, change, loss, slack = truth, np.zeros_like(change), 0.0, 0.0
            labels.append(y)
            losses[k], slacks[k] = loss, slack
            difference[min(k, len(difference) - 1)] += weight[k] * change
        return labels, losses, slacks, slacks if self.exact else np.full(len(slacks), np.inf)

    def mistakes(
        self, w: np.ndarray, samples: np.ndarray, weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return the loss of predictions, and the weighted sum of differences from the truth."""
        total, difference = 0.0, np.zeros(self.size)
        for i, factor in zip(samples, weight, strict=True):
            y = self.model.inference(self.X[i], w)
            loss = float(self.model.loss(self.Y[i], y))
            if loss > 0.0:
                change = self.true_features[i] - self.model.joint_feature(self.X[i], y)
                difference += factor * change
            total += loss
        return total, difference

    def evaluate(self, labels: list, w: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return losses and slacks of given labels of all samples, and the sum of differences."""
        difference, losses, slacks = np.zeros(self.size), [], []
        for i, y in enumerate(labels):
            change = self.true_features[i] - self.model.joint_feature(self.X[i], y)
            losses.append(float(self.model.loss(self.Y[i], y)))
            slacks.append(losses[-1] - float(w @ change))
            difference += weight[i] * change
        return np.array(losses), np.array(slacks), difference

    def true_joint_features(self) -> np.ndarray:
        """Return the joint features of the samples with their true outputs, one per row."""
        return np.array(self.true_features)

    def best_states(self, w: np.ndarray) -> list[np.ndarray]:
        """Return the states of the parts of the predicted output of each sample."""
        return [self.model.states(self.model.inference(x, w)) for x in self.X]

    def task_losses(self, w: np.ndarray) -> np.ndarray:
        """Return the losses of the predicted outputs of all samples."""
        outputs = [self.model.inference(x, w) for x in self.X]
        return np.array(
            [self.model.loss(y, y_hat) for y, y_hat in zip(self.Y, outputs, strict=True)]
        )

    def outputs(self, labels: list) -> list:
        """Return outputs of the model, from labels that the oracle has returned."""
        return list(labels)

    def problem_data(self) -> list:
        """Return what identifies the training problem: inputs, outputs and joint features."""
        return [self.X, self.Y, self.true_features]
