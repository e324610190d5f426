"""Training of all nodes of all trees: in threads, with progress."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from widemargin._base.checkpoint import CheckpointJournal
from widemargin._base.threads import for_each
from widemargin.labeltree.beam import TreeWeights
from widemargin.labeltree.node import NodeSolver, NodeWeights, reaching_samples
from widemargin.labeltree.partition import LabelTree


class TreeTraining:
    """Training of trees, one after the other.

    Parameters
    ----------
    solver : NodeSolver
    trees : list of LabelTree
    labels : CSR matrix of shape (n_samples, n_labels)
    journal : CheckpointJournal
        Nodes in it are not trained again.
    """

    def __init__(
        self, solver: NodeSolver, trees: list[LabelTree], labels: Any, journal: CheckpointJournal
    ) -> None:
        self.solver, self.trees, self.labels, self.journal = solver, trees, labels, journal
        self.nodes: list[list[NodeWeights | None]] = [[None] * tree.n_nodes for tree in trees]
        for record in journal.load():
            tree, node = record.pop("tree"), record.pop("node")
            self.nodes[int(tree)][int(node)] = NodeWeights(**record)

    def run(self, progress: Any, attributes: Callable[[], dict[str, Any]]) -> None:
        """Train all nodes, each as a task of the callbacks."""
        first_task = 0
        for number, (tree, nodes) in enumerate(zip(self.trees, self.nodes, strict=True)):
            reach = reaching_samples(tree, self.labels)
            inner = tree.inner_nodes()
            tasks = dict(
                zip(inner.tolist(), range(first_task, first_task + len(inner)), strict=True)
            )
            first_task += len(inner)

            def train(node: int) -> None:
                with progress.task(tasks[node], attributes, "node") as stop:  # noqa: B023
                    if nodes[node] is None and not (progress.active and stop()):  # noqa: B023
                        weights = self.solver.train(tree, reach, node)  # noqa: B023
                        nodes[node] = weights  # noqa: B023
                        key = {"tree": np.array(number), "node": np.array(node)}  # noqa: B023
                        self.journal.append(key | weights._asdict())

            sizes = np.diff(reach.indptr)[inner]
            large = np.array([self.solver.shares_children(size) for size in sizes], bool)
            for node in inner[large]:
                train(int(node))
            for_each(train, inner[~large].tolist())

    def weights(self) -> list[TreeWeights]:
        """Return the weights of the nodes that are trained."""
        return [TreeWeights.of(nodes) for nodes in self.nodes]

    def most_passes(self) -> int:
        return int(max((node.passes.max() for node in self._trained()), default=0))

    def report_convergence(self, stopped: bool) -> None:
        """Warn if the solver did not converge in some nodes."""
        converged = [node.converged for node in self._trained()]
        failed = sum(int(np.sum(~each)) for each in converged)
        total = sum(len(each) for each in converged)
        if stopped:
            message = "A callback stopped the fit: some nodes have no weights."
        elif failed:
            message = (
                f"The solver stopped before reaching tol in {failed} of {total} classifiers "
                f"(max_iter={self.solver.max_iter}). Increase max_iter, or scale the samples to "
                "norm 1."
            )
        else:
            return
        warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def _trained(self) -> list[NodeWeights]:
        return [node for nodes in self.nodes for node in nodes if node is not None]
