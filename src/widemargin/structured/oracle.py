"""Training samples as a learner sees them: what violates the margin most, for given weights.

With phi the joint feature and y_i the truth of sample i,

    H_i(w) = max_y loss(y_i, y) + w . phi(x_i, y)  -  w . phi(x_i, y_i)

An oracle finds a maximiser y and returns its loss, H_i (the slack), and phi(x_i, y_i) - phi(x_i,
y), which is minus a subgradient of H_i. `PlainOracle` asks the methods of any model. `GraphOracle`
works on flat arrays in compiled code. Both are asked in the same words.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np

from widemargin._base.threads import for_each
from widemargin.structured.inference import graphs as flat
from widemargin.structured.inference.dispatch import infer, one_hot
from widemargin.structured.inference.search import score_of

_SMALLEST_CHUNK = 32
_MOST_CHUNKS = 16
_WORK_OF_A_PIECE = 5e7  # a tenth of a second or so


class Violations(NamedTuple):
    """What an oracle found for some samples.

    Attributes
    ----------
    labels : list
        The maximisers, as the oracle keeps them; `outputs` of the oracle makes outputs of them.
    losses : ndarray of shape (n,)
    slacks : ndarray of shape (n,)
        Loss + score less the score of the truth.
    bounds : ndarray of shape (n,)
        Upper bounds on H: equal to the slacks where inference was exact.
    difference : ndarray of shape (size,) or (n, size)
        Joint feature of the truth less that of the maximiser: the weighted sum, or one row for each
        sample.
    """

    labels: list
    losses: np.ndarray
    slacks: np.ndarray
    bounds: np.ndarray
    difference: np.ndarray


class _Oracle:
    """What both oracles share: chunks of samples that do not depend on the number of threads."""

    n_samples: int
    size: int
    threads: int | None

    def violations(self, w, samples=None, weight=None, extra=None, rows=False):
        """Ask for many samples at once.

        Parameters
        ----------
        w : ndarray of shape (size,)
            Weights, in the oracle's order.
        samples : ndarray of int, default=None
            Which; all by default.
        weight : ndarray, default=None
            Factors of the samples in the sum of differences; 1 by default.
        extra : list of ndarray, default=None
            For each of ``samples`` what is added to the scores of the states of its parts, of shape
            (n_parts, n_states).
        rows : bool, default=False
            Return one difference for each sample in place of their sum.

        Returns
        -------
        Violations
        """
        samples = np.arange(self.n_samples) if samples is None else np.asarray(samples)
        weight = np.ones(len(samples)) if weight is None else np.asarray(weight, dtype=float)
        # Sums are made chunk by chunk, in this order, for any number of threads.
        size = max(_SMALLEST_CHUNK, -(-len(samples) // _MOST_CHUNKS))
        chunks = [slice(k, min(k + size, len(samples))) for k in range(0, len(samples), size)]
        difference = np.zeros((len(samples) if rows else len(chunks), self.size))

        def work(number):
            part = chunks[number]
            own = difference[part] if rows else difference[number : number + 1]
            added = None if extra is None else extra[part]
            return self.answer(w, samples[part], weight[part], added, own)

        found = for_each(work, range(len(chunks)), self.threads)
        return Violations(
            [label for part in found for label in part[0]],
            *(np.concatenate([part[k] for part in found] or [np.empty(0)]) for k in (1, 2, 3)),
            difference if rows else difference.sum(axis=0),
        )

    def sweep(self, order, state, samples=None, extra=None):
        """Make a pass of block-coordinate Frank-Wolfe in compiled code; False if there is none.

        Parameters
        ----------
        order : ndarray of int
            Of the blocks.
        state : BlocksState
            Of `widemargin.solvers.structured.frank_wolfe`; it is moved on.
        samples : ndarray of int, default=None
            Samples of the blocks; all by default.
        extra : list of ndarray, default=None
            For each block what the states of its sample gain, as in `violations`.
        """
        return False

    def answer(self, w, samples, weight, extra, difference):
        """Ask for some samples; the one method that an oracle of your own has to define.

        Parameters
        ----------
        w : ndarray of shape (size,)
            Weights, in the oracle's order.
        samples : sequence of int
            Which.
        weight : sequence of float
            Factor of each of them in ``difference``.
        extra : list of ndarray or None
            As in `violations`.
        difference : ndarray of shape (len(samples), size) or (1, size)
            To which differences are added, each to its row or all to the only one.

        Returns
        -------
        labels : list
        losses, slacks, bounds : ndarray of shape (len(samples),)
            As in `Violations`.
        """
        raise NotImplementedError


class PlainOracle(_Oracle):
    """The methods of a model, one sample at a time.

    Parameters
    ----------
    model : StructuredModel
    X, Y : sequence
    threads : int, default=None
        How many threads ask the model at once; one by default.

    Attributes
    ----------
    exact : bool
        Whether slacks are taken for H: the inference of a model counts as exact, if it is one for
        the loss of the model at all.
    """

    def __init__(self, model, X, Y, threads=None):
        self.model, self.X, self.Y = model, X, Y
        self.threads = 1 if threads is None else threads
        self.n_samples, self.size = len(Y), model.size_joint_feature
        self.exact = model._maximises_the_loss()

    def inward(self, w):
        """Weights in the oracle's order, from the model's."""
        return np.array(w, dtype=float)

    def outward(self, w):
        """Weights in the model's order, from the oracle's."""
        return np.array(w, dtype=float)

    @cached_property
    def true_features(self):
        return [self.model.joint_feature(x, y) for x, y in zip(self.X, self.Y, strict=True)]

    def violation(self, i, w, out, extra=None):
        """Write the difference of sample ``i`` and return its loss and slack."""
        out[:] = 0.0
        added = None if extra is None else [extra]
        _, losses, slacks, _ = self.answer(w, [i], [1.0], added, out[np.newaxis])
        return losses[0], slacks[0]

    def evaluate(self, labels, w, weight):
        """Losses and slacks of given labels of all samples, and the sum of their differences."""
        difference, losses, slacks = np.zeros(self.size), [], []
        for i, y in enumerate(labels):
            own = self.true_features[i] - self.model.joint_feature(self.X[i], y)
            losses.append(float(self.model.loss(self.Y[i], y)))
            slacks.append(losses[-1] - float(w @ own))
            difference += weight[i] * own
        return np.array(losses), np.array(slacks), difference

    def true_rows(self):
        """The joint features of all samples with their truth."""
        return np.array(self.true_features)

    def best_states(self, w):
        """The states of the parts of the best output of each sample."""
        return [self.model.states(self.model.inference(x, w)) for x in self.X]

    def task_losses(self, w):
        """Losses of the best outputs of all samples."""
        found = [self.model.inference(x, w) for x in self.X]
        return np.array([self.model.loss(y, y_hat) for y, y_hat in zip(self.Y, found, strict=True)])

    def outputs(self, labels, samples=None):
        """Outputs of the model, from labels that the oracle has returned."""
        del samples  # the labels are outputs already
        return list(labels)

    def answer(self, w, samples, weight, extra, difference):
        labels, losses, slacks = [], [], []
        for k, i in enumerate(samples):
            x, truth, bonus = self.X[i], self.Y[i], 0.0
            if extra is None:
                y = self.model.loss_augmented_inference(x, truth, w)
            else:
                y = self.model.loss_augmented_inference(x, truth, w, extra=extra[k])
                parts = np.arange(len(extra[k]))
                bonus = float(extra[k][parts, self.model.states(y)].sum())
                bonus -= float(extra[k][parts, self.model.states(truth)].sum())
            own = self.true_features[i] - self.model.joint_feature(x, y)
            loss = float(self.model.loss(truth, y))
            slack = loss - float(w @ own) + bonus
            if slack < 0.0 and not self.exact:
                y, own, loss, slack = truth, np.zeros_like(own), 0.0, 0.0
            labels.append(y)
            losses.append(loss)
            slacks.append(slack)
            difference[min(k, len(difference) - 1)] += weight[k] * own
        losses, slacks = np.array(losses), np.array(slacks)
        return labels, losses, slacks, slacks if self.exact else np.full(len(slacks), np.inf)


class GraphOracle(_Oracle):
    """Graphs in flat arrays; exact on forests in one compiled call, by `infer` elsewhere.

    Parameters
    ----------
    graphs : Graphs
    layout : Layout
    method : str
        Of inference.
    truth : ndarray of shape (n_nodes,), default=None
        True labels of all nodes; 0 by default.
    cost : ndarray of shape (n_nodes,), default=None
        Loss of a wrong label; 0 by default.
    inward, outward : callable
        Turn weights from the model's order into that of the flat arrays, and back.
    output : callable
        ``output(i, labels)`` makes an output of the model.
    threads : int, default=None
    """

    def __init__(
        self, graphs, layout, method, truth=None, cost=None, *, inward, outward, output,
        threads=None
    ):  # fmt: skip
        self.graphs, self.layout, self.method, self.threads = graphs, layout, method, threads
        self.inward, self.outward, self.output = inward, outward, output
        n_nodes = int(graphs.nodes[-1])
        self.truth = np.zeros(n_nodes, dtype=np.int64) if truth is None else truth
        self.cost = np.zeros(n_nodes) if cost is None else cost
        self.n_samples, self.size = len(graphs.nodes) - 1, layout.size
        self.by_forest = graphs.forest & (method in ("auto", "max-product"))
        self.nothing = np.empty((0, layout.n_states))
        self.one, self.singles = np.ones(1), np.arange(self.n_samples)[:, np.newaxis]

    def violation(self, i, w, out, extra=None):
        """Write the difference of sample ``i`` and return its loss and slack."""
        samples = self.singles[i]
        out[:] = 0.0
        if extra is not None or not self.by_forest[i]:
            added = None if extra is None else [extra]
            _, losses, slacks, _ = self.answer(w, samples, self.one, added, out[np.newaxis])
            return losses[0], slacks[0]
        labels, losses, slacks = self._room()
        flat.violations(
            self.graphs, self.layout, w, self.truth, self.cost, self.nothing, samples, self.one,
            labels, losses, slacks, out[np.newaxis],
        )  # fmt: skip
        return losses[i], slacks[i]

    def sweep(self, order, state, samples=None, extra=None):
        """Make a pass over the samples, if all of them are forests."""
        samples = np.arange(self.n_samples) if samples is None else samples
        if not self.by_forest[samples].all():
            return False
        gains = self.nothing if extra is None else np.concatenate(extra, dtype=float)
        nodes = np.diff(self.graphs.nodes)[samples]
        first = np.cumsum(nodes) - nodes
        work = self.size + self.layout.place.size + nodes.mean() * self.layout.n_states**2
        length = max(1, int(_WORK_OF_A_PIECE / work))
        for start in range(0, len(order), length):  # between pieces interrupts are heard
            piece = order[start : start + length]
            state.average_loss = flat.sweep(
                self.graphs, self.layout, self.truth, self.cost, gains, first, samples, piece,
                state.cost, state.line_search, state.averaging, state.steps, state.w, state.blocks,
                state.losses, state.average, state.average_loss,
            )  # fmt: skip
            state.steps += len(piece)
        return True

    def decode(self, w, extra=None, relaxed=False):
        """Best labels of all samples without loss, and what is known about them.

        Returns
        -------
        labels : list
            Fractional beliefs where they are asked for by ``relaxed`` and the method has them.
        energies, bounds : ndarray of shape (n_samples,)
            Minus the scores, and what no labels are below.
        exact : bool
        methods : set of str
        """
        scores, bounds = np.empty(self.n_samples), np.empty(self.n_samples)
        flags, methods = np.ones(self.n_samples, dtype=bool), [set() for _ in range(self.n_samples)]
        labels = np.empty_like(self.truth)
        beliefs = {}
        extra = None if extra is None else self.checked_extra(extra)
        stacked = self.nothing if extra is None else np.concatenate(extra)

        def work(samples):
            easy = samples[self.by_forest[samples]]
            if len(easy):
                flat.decode(self.graphs, self.layout, w, stacked, easy, labels, scores)
                bounds[easy] = scores[easy]
                methods[easy[0]].add("max-product")
            for i in samples[~self.by_forest[samples]]:
                unary, edges, pairwise = self.potentials(i, w)
                if extra is not None:
                    unary += extra[i]
                found = infer(unary, edges, pairwise, self.method)
                labels[self.nodes(i)] = found.labels
                scores[i], bounds[i], flags[i] = found.score, found.bound, found.exact
                methods[i].add(found.method)
                if relaxed and found.beliefs is not None:
                    beliefs[i] = found.beliefs

        size = max(1, min(_SMALLEST_CHUNK, -(-self.n_samples // _MOST_CHUNKS)))
        whole = np.arange(self.n_samples)
        for_each(work, [whole[k : k + size] for k in range(0, self.n_samples, size)], self.threads)
        answers = [beliefs.get(i, labels[self.nodes(i)]) for i in whole]
        return answers, -scores, -bounds, bool(flags.all()), set().union(*methods)

    def evaluate(self, labels, w, weight):
        """Losses and slacks of given labels of all samples, and the sum of their differences."""
        if not any(isinstance(answer, tuple) for answer in labels):
            _, losses, slacks = self._room()
            difference = np.zeros(self.size)
            flat.evaluate(
                self.graphs, self.layout, w, self.truth, self.cost, np.concatenate(labels),
                np.asarray(weight, dtype=float), losses, slacks, difference,
            )  # fmt: skip
            return losses, slacks, difference
        difference, losses, slacks = np.zeros(self.size), [], []
        own = np.zeros(self.size)
        for i, answer in enumerate(labels):
            own[:] = 0.0
            self._add_difference(i, answer, 1.0, own)
            losses.append(self._loss(i, answer))
            slacks.append(losses[-1] - float(w @ own))
            difference += weight[i] * own
        return np.array(losses), np.array(slacks), difference

    def true_rows(self):
        """The joint features of all samples with their truth."""
        rows = np.zeros((self.n_samples, self.size))
        for i, row in enumerate(rows):
            edges = self.graphs.edges[self.graphs.links[i] : self.graphs.links[i + 1]]
            beliefs = one_hot(self.truth[self.nodes(i)], edges, self.layout.n_states)
            flat.add_marginals(self.graphs, self.layout, i, *beliefs, 1.0, row)
        return rows

    def best_states(self, w):
        """The states of the nodes in the best output of each sample."""
        return self.decode(w)[0]

    def task_losses(self, w):
        """Losses of the best outputs of all samples."""
        found = self.best_states(w)
        return np.array([self._loss(i, states) for i, states in enumerate(found)])

    def outputs(self, labels, samples=None):
        """Outputs of the model, from labels that the oracle has returned."""
        samples = range(self.n_samples) if samples is None else samples
        return [self.output(i, answer) for i, answer in zip(samples, labels, strict=True)]

    def checked_extra(self, extra):
        """What is added to the scores of all samples; compiled code does not look at shapes."""
        extra = [np.asarray(own, dtype=float) for own in extra]
        wanted = [(int(n), self.layout.n_states) for n in np.diff(self.graphs.nodes)]
        got = [own.shape for own in extra]
        if got != wanted:
            wrong = [i for i, pair in enumerate(zip(got, wanted, strict=False)) if len({*pair}) > 1]
            raise ValueError(
                "extra must hold one array of shape (n_nodes, n_states) for each input, got "
                f"{len(got)} for {len(wanted)} inputs"
                + (f", and {got[wrong[0]]} in place of {wanted[wrong[0]]}." if wrong else ".")
            )
        return extra

    def nodes(self, i):
        """The nodes of sample ``i``."""
        return slice(self.graphs.nodes[i], self.graphs.nodes[i + 1])

    def potentials(self, i, w):
        """Unary potentials, edges and pairwise potentials of sample ``i``."""
        n_states = self.layout.n_states
        edges = self.graphs.edges[self.graphs.links[i] : self.graphs.links[i + 1]]
        unary = np.empty((self.graphs.nodes[i + 1] - self.graphs.nodes[i], n_states))
        pairwise = np.empty((len(edges), n_states, n_states))
        flat.potentials(self.graphs, self.layout, w, i, unary, pairwise)
        return unary, edges, pairwise

    def answer(self, w, samples, weight, extra, difference):
        if self.by_forest[samples].all():
            return self._forests(w, samples, weight, extra, difference)
        labels, losses, slacks, bounds = [], [], [], []
        for k, i in enumerate(samples):
            unary, edges, pairwise = self.potentials(i, w)
            if extra is not None:
                unary += extra[k]
            truth, cost = self.truth[self.nodes(i)], self.cost[self.nodes(i)]
            own = score_of(unary, edges, pairwise, truth)
            unary += cost[:, np.newaxis]
            unary[np.arange(len(truth)), truth] -= cost
            found = infer(unary, edges, pairwise, self.method)
            answer = found.labels if found.beliefs is None else found.beliefs
            slack = (found.score if found.beliefs is None else found.bound) - own
            if slack < -1e-9 * (1.0 + abs(own)):
                # Inference that is not exact may miss the truth itself, which has slack 0.
                answer, slack = truth.copy(), 0.0
            labels.append(answer)
            losses.append(self._loss(i, answer))
            slacks.append(slack)
            bounds.append(found.bound - own)
            row = difference[min(k, len(difference) - 1)]
            self._add_difference(i, answer, weight[k], row)
        return labels, np.array(losses), np.array(slacks), np.array(bounds)

    def _forests(self, w, samples, weight, extra, difference):
        stacked = self.nothing
        if extra is not None:
            stacked = np.empty((len(self.truth), self.layout.n_states))
            for k, i in enumerate(samples):
                stacked[self.nodes(i)] = extra[k]
        labels, losses, slacks = self._room()
        flat.violations(
            self.graphs, self.layout, w, self.truth, self.cost, stacked, samples, weight, labels,
            losses, slacks, difference,
        )  # fmt: skip
        found = [labels[self.nodes(i)] for i in samples]
        return found, losses[samples], slacks[samples], slacks[samples]

    def _room(self):
        """Where a call writes labels, losses and slacks; several threads may ask at once."""
        labels = np.empty(len(self.truth), dtype=np.int64)
        return labels, np.empty(self.n_samples), np.empty(self.n_samples)

    def _loss(self, i, answer):
        truth, cost = self.truth[self.nodes(i)], self.cost[self.nodes(i)]
        if isinstance(answer, tuple):
            return float(cost @ (1.0 - answer[0][np.arange(len(truth)), truth]))
        return float(cost @ (answer != truth))

    def _add_difference(self, i, answer, weight, row):
        if not isinstance(answer, tuple):
            labels = np.empty_like(self.truth)
            labels[self.nodes(i)] = answer
            flat.add_difference(self.graphs, self.layout, self.truth, labels, i, weight, row)
            return
        edges = self.graphs.edges[self.graphs.links[i] : self.graphs.links[i + 1]]
        beliefs = one_hot(self.truth[self.nodes(i)], edges, self.layout.n_states)
        flat.add_marginals(self.graphs, self.layout, i, *beliefs, weight, row)
        flat.add_marginals(self.graphs, self.layout, i, *answer, -weight, row)
