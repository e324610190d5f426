"""The oracle of conditional random fields: all samples in flat arrays, for compiled inference."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from widemargin._base.options import oracle_options as options
from widemargin._base.threads import for_each
from widemargin.structured.inference import graphs as flat
from widemargin.structured.inference.dispatch import check_method, infer
from widemargin.structured.inference.potentials import Labeling, Potentials, one_hot
from widemargin.structured.oracles import passes
from widemargin.structured.oracles.base import Chunk, Decoded, StructuredOracle


class GraphOracle(StructuredOracle):
    """Oracle of labeled graphs: exact on forests in one compiled call, by `infer` elsewhere.

    Parameters
    ----------
    model : CRF
        A model whose sizes are known.
    samples : ParsedSamples
        Inputs and the states of outputs.
    threads : int, default=None
        Number of threads; None for as many as available.
    """

    def __init__(self, model: Any, samples: Any, threads: int | None = None) -> None:
        self.model, self.joint, self.threads = model, model.make_joint_feature(), threads
        self.inputs = [model.check_input(graph) for graph in samples.inputs]
        self.graphs, self.layout = self.joint.stack(self.inputs), self.joint.layout
        if samples.states is not None:
            pairs = enumerate(zip(self.inputs, samples.states, strict=True))
            truth = np.concatenate([model.check_states(*pair, f"Y[{i}]") for i, pair in pairs])
            cost = model.state_costs(truth)
            if samples.known is not None:
                cost = cost * np.concatenate(samples.known)
            self.graphs = self.graphs._replace(truth=truth, cost=cost)
        self.n_samples, self.size = len(self.inputs), self.joint.full_size
        self.groups = model.state_groups()
        # Compiled passes know neither groups of states nor states that are not allowed.
        self.is_plain = self.groups is None and all(graph.allowed is None for graph in self.inputs)
        self._set_method(model.inference_method)
        self.no_extra = np.empty((0, self.layout.n_states))
        if samples.states is not None:
            self._check_allowed()

    def with_method(self, method: Any) -> Any:
        """Return this oracle with another inference method."""
        other = copy.copy(self)
        other._set_method(method)
        return other

    def _set_method(self, method: Any) -> None:
        self.method = check_method(method)
        fast = self.is_plain and self.method in ("auto", "max-product")
        self.is_forest = self.graphs.forest & fast

    def from_model_order(self, w: np.ndarray) -> np.ndarray:
        return np.append(self.joint.check_weights(w), 0.0)[self.joint.order]

    def to_model_order(self, w: np.ndarray) -> np.ndarray:
        in_model_order = np.empty(self.joint.size + 1)
        in_model_order[self.joint.order] = w
        return in_model_order[:-1]

    def empty_blocks(self, samples: Any = None) -> tuple[np.ndarray, np.ndarray] | None:
        """Return dual blocks of zero for block-coordinate Frank-Wolfe in compiled code.

        Parameters
        ----------
        samples : ndarray of int, default=None
            Samples of the blocks; all by default.

        Returns
        -------
        blocks : ndarray of shape (n_nodes, n_states)
            For each node the shares of its states.
        pairs : ndarray of shape (n_blocks, n_pairwise_weights)
            Sums over the edges. Instead of both, None if not all samples are forests: then blocks
            are vectors of all weights.
        """
        samples = np.arange(self.n_samples) if samples is None else samples
        if not self.is_forest[samples].all():
            return None
        n_nodes = int(np.diff(self.graphs.nodes)[samples].sum())
        n_pairs = self.size - self.layout.n_unary
        return np.zeros((n_nodes, self.layout.n_states)), np.zeros((len(samples), n_pairs))

    def sum_blocks(
        self, blocks: np.ndarray, pairs: np.ndarray, cost: np.ndarray, samples: Any = None
    ) -> np.ndarray:
        """Return the sum of dual blocks as a vector of weights.

        Parameters
        ----------
        blocks, pairs : ndarray
            As in `empty_blocks`.
        cost : ndarray of shape (n_blocks,)
            Factors of the blocks.
        samples : ndarray of int, default=None
            Samples of the blocks; all by default.

        Returns
        -------
        total : ndarray of shape (size,)
            The sum, in the order of the oracle.
        """
        samples = np.arange(self.n_samples) if samples is None else samples
        total = np.zeros(self.size)
        passes.sum_blocks(
            self.graphs, self._first_rows(samples), samples, cost, blocks, pairs, total
        )
        return total

    def frank_wolfe_pass(
        self, order: np.ndarray, state: Any, samples: Any = None, extra: Any = None
    ) -> None:
        """Run a pass of block-coordinate Frank-Wolfe, with blocks of `empty_blocks`.

        Parameters
        ----------
        order : ndarray of int
            Order of the blocks.
        state : FrankWolfeState
            State that is updated.
        samples : ndarray of int, default=None
            Samples of the blocks; all by default.
        extra : list of ndarray, default=None
            For each block terms added to the scores of the states, as in `violations`.
        """
        samples = np.arange(self.n_samples) if samples is None else samples
        added = self.no_extra if extra is None else np.concatenate(extra, dtype=float)
        for piece in self._pieces(order, samples):
            state.average_loss = passes.frank_wolfe_pass(
                self.graphs, added, self._first_rows(samples), samples, piece, state.cost,
                state.line_search, state.averaging, state.steps, state.w, state.blocks, state.pairs,
                state.losses, state.average, state.average_loss,
            )  # fmt: skip
            state.steps += len(piece)

    def perceptron_pass(self, order: np.ndarray, state: Any) -> float | None:
        """Run a pass of perceptron steps; return the sum of losses, or None without forests.

        Parameters
        ----------
        order : ndarray of int
            Order of the samples.
        state : PerceptronState
            State that is updated.

        Returns
        -------
        loss : float or None
            Sum of the losses of the predictions; None if the solver has to call `mistakes`.
        """
        if not self.is_forest.all():
            return None
        total = 0.0
        for piece in self._pieces(order):
            total += passes.perceptron_pass(
                self.graphs, piece, state.cost, state.rate, state.steps, state.w, state.average
            )
            state.steps += len(piece)
        return total

    def subgradient_pass(
        self, order: np.ndarray, batch_size: int, state: Any, plane: np.ndarray
    ) -> float | None:
        """Run a pass of subgradient steps; return the loss of its plane, or None without forests.

        Parameters
        ----------
        order : ndarray of int
            Order of the samples.
        batch_size : int
            Samples per step.
        state : SubgradientState
            State that is updated.
        plane : ndarray of shape (size,)
            Receives the sum of the differences times costs.

        Returns
        -------
        loss : float or None
            Sum of losses times costs; None if the solver has to call `violations`.
        """
        if not self.is_forest.all():
            return None
        total, power = 0.0, {None: -1, "linear": 1, "squared": 2}[state.averaging]
        for piece in self._pieces(order, batch_size=batch_size):
            loss, state.average_weight = passes.subgradient_pass(
                self.graphs, piece, batch_size, self.n_samples, state.cost, state.schedule(), power,
                state.steps, options.smallest_scale, state.w, state.average, state.average_weight,
                plane,
            )  # fmt: skip
            total += loss
            state.steps += -(-len(piece) // batch_size)
        return total

    def _check_allowed(self) -> None:
        """Raise a ValueError if a true output contains what the model forbids."""
        barrier, truth = self.layout.barrier, self.graphs.truth
        if len(barrier) == 0:
            return
        for i in range(self.n_samples):
            states, edges = truth[self.nodes(i)], self.edges(i)
            wrong = [(s, t) for s, t in states[edges].tolist() if barrier[s, t] < 0.0]
            wrong += [(-1, s) for s in states[:1].tolist() if barrier[-1, s] < 0.0]
            if wrong:
                names = self.model.state_labels()
                pair = [str(names[s]) if s >= 0 else "the start" for s in wrong[0]]
                raise ValueError(
                    f"Y[{i}] has label {pair[1]!r} after {pair[0]!r}, which transitions or "
                    "start_states of the model forbid."
                )

    def _first_rows(self, samples: np.ndarray) -> np.ndarray:
        """Return the first row of each block, if the nodes of the samples follow each other."""
        nodes = np.diff(self.graphs.nodes)[samples]
        return np.cumsum(nodes) - nodes

    def _pieces(
        self, order: np.ndarray, samples: Any = None, batch_size: int = 1
    ) -> Iterator[np.ndarray]:
        """Return pieces of a pass, between which interrupts are noticed."""
        graphs, n_states = self.graphs, self.layout.n_states
        nodes = np.diff(graphs.nodes)
        count = nodes.mean() if samples is None else nodes[samples].mean()
        features = float((graphs.last - graphs.first).mean())
        work = count * (features * n_states + n_states**2) + self.layout.position.size
        # Every call also reads and writes all weights.
        operations = max(options.pass_operations, options.calls_per_vector * self.size)
        length = max(1, int(operations / work / batch_size)) * batch_size
        for start in range(0, len(order), length):
            yield order[start : start + length]

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
        scores, labels = np.empty(self.n_samples), np.empty_like(self.graphs.truth)
        inferred: dict[int, Labeling] = {}
        extra = None if extra is None else self.check_extra(extra)
        stacked = self.no_extra if extra is None else np.concatenate(extra)

        def work(samples: np.ndarray) -> None:
            forest = self.is_forest[samples]
            if forest.any():
                flat.decode(self.graphs, w, stacked, samples[forest], labels, scores)
            for i in samples[~forest]:
                added = None if extra is None else extra[i]
                inferred[i] = self._infer(self.potentials(i, w, added), i)

        size = max(1, min(options.chunk_samples, -(-self.n_samples // options.most_chunks)))
        whole = np.arange(self.n_samples)
        for_each(work, [whole[k : k + size] for k in range(0, self.n_samples, size)], self.threads)
        outputs: list = [labels[self.nodes(i)] for i in whole]
        bounds, exact = scores.copy(), all(labeling.exact for labeling in inferred.values())
        methods = {"max-product"} if self.is_forest.any() else set()
        for i, labeling in inferred.items():
            outputs[i] = (
                labeling.beliefs if relaxed and labeling.beliefs is not None else labeling.labels
            )
            scores[i], bounds[i] = labeling.score, labeling.bound
            methods.add(labeling.method)
        return Decoded(outputs, -scores, -bounds, exact, methods)

    def loss_terms(self, extra: list[np.ndarray] | None = None) -> list[np.ndarray]:
        """Return the loss of each state of each node, plus ``extra``, for each sample."""
        losses = np.zeros((len(self.graphs.truth), self.layout.n_states))
        add_node_losses(losses, self.graphs.truth, self.graphs.cost, self.groups)
        if extra is not None:
            losses += np.concatenate(self.check_extra(extra))
        return [losses[self.nodes(i)] for i in range(self.n_samples)]

    def mistakes(
        self, w: np.ndarray, samples: np.ndarray, weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Return the loss of predictions, and the weighted sum of differences from the truth."""
        labels = for_each(
            lambda i: self._infer(self.potentials(i, w), i).labels, samples, self.threads
        )
        total, difference = 0.0, np.zeros(self.size)
        for i, factor, label in zip(samples, weight, labels, strict=True):
            loss = node_loss(label, *self._truth(i), self.groups)
            if loss > 0.0:
                self._add_difference(i, label, factor, difference)
            total += loss
        return total, difference

    def evaluate(self, labels: list, w: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return losses and slacks of given labels of all samples, and the sum of differences."""
        weight, difference, states = np.asarray(weight, dtype=float), np.zeros(self.size), [*labels]
        slow = [
            i
            for i, label in enumerate(labels)
            if self.groups is not None or isinstance(label, tuple)
        ]
        for i in slow:  # the true states add nothing
            states[i] = self._truth(i)[0]
        stacked = np.concatenate(states)
        losses, slacks = flat.evaluate(self.graphs, w, stacked, weight, difference)
        change = np.empty(self.size)
        for i in slow:
            change[:] = 0.0
            self._add_difference(i, labels[i], 1.0, change)
            losses[i] = node_loss(labels[i], *self._truth(i), self.groups)
            slacks[i] = losses[i] - float(w @ change)
            difference += weight[i] * change
        return losses, slacks, difference

    def true_joint_features(self) -> sparse.csr_array:
        """Return the joint features of the samples with their true outputs, one per row."""
        graphs, layout = self.graphs, self.layout
        state, counts = graphs.truth, graphs.last - graphs.first
        node = np.repeat(np.arange(len(counts)), counts)
        k = np.arange(len(node)) - np.repeat(np.cumsum(counts) - counts - graphs.first, counts)
        column, value = graphs.column[k] + graphs.shift[node], graphs.value[k]
        if layout.shared:
            value = value * layout.signs[state[node]]
        else:
            column = column * layout.n_states + state[node]
        edge = np.repeat(np.arange(len(graphs.edges)), np.diff(graphs.edge_first))
        owner = np.repeat(np.arange(self.n_samples), np.diff(graphs.links))
        ends = state[graphs.edges + graphs.nodes[owner][:, np.newaxis]]
        pair = graphs.edge_index, ends[edge, 0], ends[edge, 1]
        owner_of_node = np.repeat(np.arange(self.n_samples), np.diff(graphs.nodes))
        rows = np.concatenate([owner_of_node[node], owner[edge]])
        columns = np.concatenate([column, layout.n_unary + layout.position[pair]])
        values = np.concatenate([value, graphs.edge_value * layout.factor[pair]])
        # scikit-learn accepts only 32-bit indices.
        index = sparse.get_index_dtype(maxval=max(self.size, self.n_samples, len(values)))
        at = rows.astype(index), columns.astype(index)
        return sparse.coo_array((values, at), shape=(self.n_samples, self.size)).tocsr()

    def best_states(self, w: np.ndarray) -> list[np.ndarray]:
        """Return the states of the nodes of the predicted output of each sample."""
        return self.decode(w).labels

    def task_losses(self, w: np.ndarray) -> np.ndarray:
        """Return the losses of the predicted outputs of all samples."""
        return self._losses(self.best_states(w))

    def outputs(self, labels: list) -> list:
        """Return outputs of the model, from labels of all samples."""
        pairs = zip(labels, self.inputs, strict=True)
        return [self.model.make_output(label, graph.output_shape) for label, graph in pairs]

    def problem_data(self) -> list:
        """Return what identifies the training problem: the flat arrays."""
        return [*self.graphs[1:], *self.layout]

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

    def potentials(self, i: Any, w: np.ndarray, extra: Any = None) -> Potentials:
        """Return the potentials of sample ``i``, with ``extra`` added to the unary ones."""
        unary, pairwise = flat.potentials(self.graphs, w, i)
        if extra is not None:
            unary += extra
        return Potentials(unary, self.edges(i), pairwise)

    def solve_chunk(
        self, w: np.ndarray, samples: np.ndarray, weight: np.ndarray, extra: Any, difference: Any
    ) -> Chunk:
        if self.is_forest[samples].all():
            return self._solve_forests(w, samples, weight, extra, difference)
        labels, (losses, slacks, bounds) = [], np.empty((3, len(samples)))
        for k, i in enumerate(samples):
            potentials = self.potentials(i, w, None if extra is None else extra[k])
            truth, cost = self._truth(i)
            true_score = potentials.score(truth)
            add_node_losses(potentials.unary, truth, cost, self.groups)
            labeling = self._infer(potentials, i)
            label = labeling.labels if labeling.beliefs is None else labeling.beliefs
            slack = (labeling.score if labeling.beliefs is None else labeling.bound) - true_score
            if slack < -options.slack_rounding * (1.0 + abs(true_score)):
                # Inference that is not exact may miss the true output, which has slack 0.
                label, slack = truth.copy(), 0.0
            labels.append(label)
            losses[k], slacks[k] = node_loss(label, truth, cost, self.groups), slack
            bounds[k] = labeling.bound - true_score
            self._add_difference(i, label, weight[k], difference[min(k, len(difference) - 1)])
        return labels, losses, slacks, bounds

    def _solve_forests(self, w, samples, weight, extra, difference) -> Chunk:
        stacked = self.no_extra
        if extra is not None:
            stacked = np.empty((len(self.graphs.truth), self.layout.n_states))
            for k, i in enumerate(samples):
                stacked[self.nodes(i)] = extra[k]
        violations = flat.violations(self.graphs, w, stacked, samples, weight, difference)
        labels, losses, slacks = violations
        return [labels[self.nodes(i)] for i in samples], losses, slacks, slacks

    def _losses(self, labels: list) -> np.ndarray:
        """Return the losses of labels of all samples."""
        pairs = enumerate(labels)
        return np.array([node_loss(label, *self._truth(i), self.groups) for i, label in pairs])

    def _infer(self, potentials: Potentials, i: Any) -> Labeling:
        return infer(potentials, self.method, self.inputs[i].allowed)

    def _truth(self, i: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the true states of the nodes of a sample, and the costs of wrong ones."""
        return self.graphs.truth[self.nodes(i)], self.graphs.cost[self.nodes(i)]

    def _add_difference(self, i: Any, label: Any, weight: float, row: np.ndarray) -> None:
        if isinstance(label, tuple):
            self._add_true_feature(i, weight, row)
            flat.add_marginals(self.graphs, i, *label, -weight, row)
            return
        labels = np.empty_like(self.graphs.truth)
        labels[self.nodes(i)] = label
        flat.add_difference(self.graphs, labels, i, weight, row)

    def _add_true_feature(self, i: Any, weight: float, row: np.ndarray) -> None:
        beliefs = one_hot(self._truth(i)[0], self.edges(i), self.layout.n_states)
        flat.add_marginals(self.graphs, i, *beliefs, weight, row)


def node_loss(label: Any, truth: np.ndarray, cost: np.ndarray, groups: Any = None) -> float:
    """Return the sum of costs of wrong nodes, from states or from beliefs of nodes and edges.

    States of the same one of ``groups`` are equally right; each state is a group by default.
    """
    if isinstance(label, tuple):
        right = label[0][np.arange(len(truth)), truth]
        if groups is not None:
            right = np.sum(label[0], axis=1, where=groups == groups[truth][:, np.newaxis])
        return float(cost @ (1.0 - right))
    if groups is not None:
        label, truth = groups[label], groups[truth]
    return float(cost @ (label != truth))


def add_node_losses(
    unary: np.ndarray, truth: np.ndarray, cost: np.ndarray, groups: Any = None
) -> None:
    """Add to unary potentials the loss of each state."""
    if groups is not None:
        unary += cost[:, np.newaxis] * (groups != groups[truth][:, np.newaxis])
        return
    unary += cost[:, np.newaxis]
    unary[np.arange(len(truth)), truth] -= cost
