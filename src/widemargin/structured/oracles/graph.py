"""The oracle of conditional random fields: all samples in flat arrays, for compiled inference."""

from collections.abc import Callable
from typing import Any

import numpy as np

from widemargin._base.options import oracle_options as options
from widemargin._base.threads import for_each
from widemargin.structured.inference import graphs as flat
from widemargin.structured.inference.dispatch import infer, one_hot
from widemargin.structured.inference.search import score_of
from widemargin.structured.oracles.base import Chunk, Decoded, StructuredOracle


class GraphOracle(StructuredOracle):
    """Oracle of labeled graphs: exact on forests in one compiled call, by `infer` elsewhere.

    Parameters
    ----------
    graphs : Graphs
        The samples.
    joint : JointFeature
        How weights make scores.
    method : str
        Inference method.
    truth : ndarray of shape (n_nodes,), default=None
        True states of all nodes; 0 by default.
    cost : ndarray of shape (n_nodes,), default=None
        Loss of a wrong state; 0 by default.
    make_output : callable
        ``make_output(i, labels)`` returns the output of sample ``i``.
    threads : int, default=None
        Number of threads; None for as many as available.
    """

    def __init__(
        self, graphs: flat.Graphs, joint: Any, method: str, truth: np.ndarray | None = None,
        cost: np.ndarray | None = None, *, make_output: Callable, threads: int | None = None,
    ) -> None:  # fmt: skip
        self.graphs, self.joint, self.layout = graphs, joint, joint.layout
        self.method, self.make_output, self.threads = method, make_output, threads
        n_nodes = int(graphs.nodes[-1])
        self.truth = np.zeros(n_nodes, dtype=np.int64) if truth is None else truth
        self.cost = np.zeros(n_nodes) if cost is None else cost
        self.n_samples, self.size = len(graphs.nodes) - 1, joint.size
        self.is_forest = graphs.forest & (method in ("auto", "max-product"))
        self.no_extra = np.empty((0, self.layout.n_states))

    def from_model_order(self, w: np.ndarray) -> np.ndarray:
        return self.joint.to_flat_order(w)

    def to_model_order(self, w: np.ndarray) -> np.ndarray:
        return self.joint.from_flat_order(w)

    def run_pass(
        self, order: np.ndarray, state: Any, samples: Any = None, extra: Any = None
    ) -> bool:
        samples = np.arange(self.n_samples) if samples is None else samples
        if not self.is_forest[samples].all():
            return False
        added = self.no_extra if extra is None else np.concatenate(extra, dtype=float)
        nodes = np.diff(self.graphs.nodes)[samples]
        first = np.cumsum(nodes) - nodes
        work = self.size + self.layout.position.size + nodes.mean() * self.layout.n_states**2
        length = max(1, int(options.pass_operations / work))
        for start in range(0, len(order), length):  # interrupts are noticed between two calls
            piece = order[start : start + length]
            state.average_loss = flat.run_pass(
                self.graphs, self.layout, self.truth, self.cost, added, first, samples, piece,
                state.cost, state.line_search, state.averaging, state.steps, state.w, state.blocks,
                state.losses, state.average, state.average_loss,
            )  # fmt: skip
            state.steps += len(piece)
        return True

    def decode(self, w: np.ndarray, extra: Any = None, relaxed: bool = False) -> Decoded:
        """Find the best labels of all samples, without the loss.

        Parameters
        ----------
        w : ndarray of shape (size,)
            Weights, in the order of the oracle.
        extra : list of ndarray, default=None
            For each sample terms of shape (n_nodes, n_states) that are added to the scores.
        relaxed : bool, default=False
            Whether to return fractional beliefs where the method has them.

        Returns
        -------
        Decoded
        """
        scores, bounds = np.empty(self.n_samples), np.empty(self.n_samples)
        exact = np.ones(self.n_samples, dtype=bool)
        methods: list[set] = [set() for _ in range(self.n_samples)]
        labels = np.empty_like(self.truth)
        beliefs = {}
        extra = None if extra is None else self.check_extra(extra)
        stacked = self.no_extra if extra is None else np.concatenate(extra)

        def work(samples: np.ndarray) -> None:
            forests = samples[self.is_forest[samples]]
            if len(forests):
                flat.decode(self.graphs, self.layout, w, stacked, forests, labels, scores)
                bounds[forests] = scores[forests]
                methods[forests[0]].add("max-product")
            for i in samples[~self.is_forest[samples]]:
                unary, edges, pairwise = self.potentials(i, w)
                if extra is not None:
                    unary += extra[i]
                found = infer(unary, edges, pairwise, self.method)
                labels[self.nodes(i)] = found.labels
                scores[i], bounds[i], exact[i] = found.score, found.bound, found.exact
                methods[i].add(found.method)
                if relaxed and found.beliefs is not None:
                    beliefs[i] = found.beliefs

        size = max(1, min(options.smallest_chunk, -(-self.n_samples // options.most_chunks)))
        whole = np.arange(self.n_samples)
        for_each(work, [whole[k : k + size] for k in range(0, self.n_samples, size)], self.threads)
        found = [beliefs.get(i, labels[self.nodes(i)]) for i in whole]
        return Decoded(found, -scores, -bounds, bool(exact.all()), set().union(*methods))

    def loss_terms(self, extra: list[np.ndarray] | None = None) -> list[np.ndarray]:
        """Return the loss of each state of each node, plus ``extra``, for each sample."""
        losses = self.cost[:, np.newaxis] * (1.0 - np.eye(self.layout.n_states)[self.truth])
        if extra is not None:
            losses += np.concatenate(self.check_extra(extra))
        return [losses[self.nodes(i)] for i in range(self.n_samples)]

    def evaluate(
        self, labels: list, w: np.ndarray, weight: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return losses and slacks of given labels of all samples, and the sum of differences."""
        difference = np.zeros(self.size)
        if not any(isinstance(label, tuple) for label in labels):
            losses, slacks = np.empty(self.n_samples), np.empty(self.n_samples)
            flat.evaluate(
                self.graphs, self.layout, w, self.truth, self.cost, np.concatenate(labels),
                np.asarray(weight, dtype=float), losses, slacks, difference,
            )  # fmt: skip
            return losses, slacks, difference
        losses = np.array([self._loss(i, label) for i, label in enumerate(labels)])
        slacks, change = losses.copy(), np.zeros(self.size)
        for i, label in enumerate(labels):
            change[:] = 0.0
            self._add_difference(i, label, 1.0, change)
            slacks[i] -= float(w @ change)
            difference += weight[i] * change
        return losses, slacks, difference

    def true_joint_features(self) -> np.ndarray:
        """Return the joint features of the samples with their true outputs, one per row."""
        rows = np.zeros((self.n_samples, self.size))
        for i, row in enumerate(rows):
            self._add_beliefs(i, self._true_beliefs(i), 1.0, row)
        return rows

    def best_states(self, w: np.ndarray) -> list[np.ndarray]:
        """Return the states of the nodes of the predicted output of each sample."""
        return self.decode(w).labels

    def task_losses(self, w: np.ndarray) -> np.ndarray:
        """Return the losses of the predicted outputs of all samples."""
        return np.array([self._loss(i, states) for i, states in enumerate(self.best_states(w))])

    def outputs(self, labels: list, samples: Any = None) -> list:
        """Return outputs of the model, from labels that the oracle has returned."""
        samples = range(self.n_samples) if samples is None else samples
        return [self.make_output(i, label) for i, label in zip(samples, labels, strict=True)]

    def problem_data(self) -> list:
        """Return what identifies the training problem: the flat arrays."""
        return [*self.graphs, *self.layout, self.truth, self.cost]

    def check_extra(self, extra: Any) -> list[np.ndarray]:
        """Return terms for all samples as float64; compiled code does not check shapes."""
        extra = [np.asarray(terms, dtype=float) for terms in extra]
        expected = [(int(n), self.layout.n_states) for n in np.diff(self.graphs.nodes)]
        got = [terms.shape for terms in extra]
        if got != expected:
            pairs = zip(got, expected, strict=False)
            wrong = [pair for pair in pairs if pair[0] != pair[1]]
            raise ValueError(
                "extra must hold one array of shape (n_nodes, n_states) for each input, got "
                f"{len(got)} for {len(expected)} inputs"
                + (f", and {wrong[0][0]} in place of {wrong[0][1]}." if wrong else ".")
            )
        return extra

    def nodes(self, i: Any) -> slice:
        """Return the nodes of sample ``i``."""
        return slice(self.graphs.nodes[i], self.graphs.nodes[i + 1])

    def edges(self, i: Any) -> np.ndarray:
        """Return the edges of sample ``i``."""
        return self.graphs.edges[self.graphs.links[i] : self.graphs.links[i + 1]]

    def potentials(self, i: Any, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return unary potentials, edges and pairwise potentials of sample ``i``."""
        n_states, edges = self.layout.n_states, self.edges(i)
        unary = np.empty((self.graphs.nodes[i + 1] - self.graphs.nodes[i], n_states))
        pairwise = np.empty((len(edges), n_states, n_states))
        flat.potentials(self.graphs, self.layout, w, i, unary, pairwise)
        return unary, edges, pairwise

    def solve_chunk(
        self, w: np.ndarray, samples: np.ndarray, weight: np.ndarray, extra: Any, difference: Any
    ) -> Chunk:
        if self.is_forest[samples].all():
            return self._solve_forests(w, samples, weight, extra, difference)
        labels, losses, slacks, bounds = [], [], [], []
        for k, i in enumerate(samples):
            unary, edges, pairwise = self.potentials(i, w)
            if extra is not None:
                unary += extra[k]
            truth, cost = self.truth[self.nodes(i)], self.cost[self.nodes(i)]
            true_score = score_of(unary, edges, pairwise, truth)
            unary += cost[:, np.newaxis]
            unary[np.arange(len(truth)), truth] -= cost
            found = infer(unary, edges, pairwise, self.method)
            label = found.labels if found.beliefs is None else found.beliefs
            slack = (found.score if found.beliefs is None else found.bound) - true_score
            if slack < -options.slack_rounding * (1.0 + abs(true_score)):
                # Inference that is not exact may miss the true output, which has slack 0.
                label, slack = truth.copy(), 0.0
            labels.append(label)
            losses.append(self._loss(i, label))
            slacks.append(slack)
            bounds.append(found.bound - true_score)
            self._add_difference(i, label, weight[k], difference[min(k, len(difference) - 1)])
        return labels, np.array(losses), np.array(slacks), np.array(bounds)

    def _solve_forests(
        self, w: np.ndarray, samples: np.ndarray, weight: np.ndarray, extra: Any, difference: Any
    ) -> Chunk:
        stacked = self.no_extra
        if extra is not None:
            stacked = np.empty((len(self.truth), self.layout.n_states))
            for k, i in enumerate(samples):
                stacked[self.nodes(i)] = extra[k]
        # New arrays for each call: several threads may call at the same time.
        labels = np.empty(len(self.truth), dtype=np.int64)
        losses, slacks = np.empty(self.n_samples), np.empty(self.n_samples)
        flat.violations(
            self.graphs, self.layout, w, self.truth, self.cost, stacked, samples, weight, labels,
            losses, slacks, difference,
        )  # fmt: skip
        found = [labels[self.nodes(i)] for i in samples]
        return found, losses[samples], slacks[samples], slacks[samples]

    def _loss(self, i: Any, label: Any) -> float:
        truth, cost = self.truth[self.nodes(i)], self.cost[self.nodes(i)]
        if isinstance(label, tuple):
            return float(cost @ (1.0 - label[0][np.arange(len(truth)), truth]))
        return float(cost @ (label != truth))

    def _add_difference(self, i: Any, label: Any, weight: float, row: np.ndarray) -> None:
        if isinstance(label, tuple):
            self._add_beliefs(i, self._true_beliefs(i), weight, row)
            self._add_beliefs(i, label, -weight, row)
            return
        labels = np.empty_like(self.truth)
        labels[self.nodes(i)] = label
        flat.add_difference(self.graphs, self.layout, self.truth, labels, i, weight, row)

    def _true_beliefs(self, i: Any) -> tuple[np.ndarray, np.ndarray]:
        return one_hot(self.truth[self.nodes(i)], self.edges(i), self.layout.n_states)

    def _add_beliefs(self, i: Any, beliefs: Any, weight: float, row: np.ndarray) -> None:
        flat.add_marginals(self.graphs, self.layout, i, *beliefs, weight, row)
