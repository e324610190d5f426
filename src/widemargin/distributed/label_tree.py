"""Label trees on partitions: sums for the partition of the labels, the root by rounds, then nodes.

The sums of the samples of each label are added up over the partitions; one worker makes the trees
from them. All samples reach the root: its classifiers are those of `linear_svc.Run`, in rounds over
the partitions. Every child of the root is a call on some worker, to which each partition sends the
samples that reach it, and which trains all nodes below. No worker needs all samples.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from widemargin._base.checkpoint import CheckpointJournal
from widemargin._base.sklearn_compat import validate_parameters
from widemargin._base.validation import canonical_csr
from widemargin.distributed.cocoa import Joint
from widemargin.distributed.linear_svc import Run, check_no_checkpoint
from widemargin.distributed.partitions import (
    Block,
    Outline,
    combine,
    each,
    fetch,
    outline,
    set_features,
    split,
    stay,
    task,
    validate_block,
    validated,
    workers_of,
)
from widemargin.distributed.samples import LinearSamples
from widemargin.labeltree import labels as forms
from widemargin.labeltree.node import (
    NodeSolver,
    NodeWeights,
    reaching_samples,
    squares_of,
    thresholds_of,
)
from widemargin.labeltree.partition import LabelTree
from widemargin.labeltree.training import TreeTraining
from widemargin.labeltree.tree import label_sums
from widemargin.solvers.hinge.losses import LOSSES


class EncodedBlock(NamedTuple):
    """Samples of a partition, with a matrix of their labels, and their costs."""

    X: Any
    labels: Any
    weight: np.ndarray | None
    cost: np.ndarray


class Sums(NamedTuple):
    """Sums over samples: of each label, of each feature, and of all."""

    of_labels: Any
    counts: np.ndarray
    squares: np.ndarray
    entries: np.ndarray
    size: np.ndarray
    most_labels: int

    def plus(self, other: "Sums") -> "Sums":
        *sums, _ = (a + b for a, b in zip(self, other, strict=True))
        return Sums._make([*sums, max(self.most_labels, other.most_labels)])


class Summary(NamedTuple):
    """What a model has of the labels and samples of its fit, and what its solvers need of them."""

    classes: np.ndarray
    form: str
    dtype: Any
    mean_labels: float
    most_labels: int
    thresholds: np.ndarray


def fit(
    estimator: Any, X: Any, y: Any, sample_weight: Any, gap_tol: float, max_rounds: int
) -> tuple[Any, dict[str, np.ndarray]]:
    """Return a fitted clone, and the history of the rounds at the roots."""
    _check(estimator)
    form, dtype = forms.MULTICLASS, np.int64
    if y.ndim > 1:
        form, dtype = forms.SPARSE if sp.issparse(y._meta) else forms.INDICATOR, y.dtype
    check = validate_block if form == forms.MULTICLASS else _validate_indicator
    blocks, total = validated(
        estimator, split(X, y, sample_weight), check, outline if y.ndim == 1 else _outline
    )
    encode = partial(_encoded, C=float(estimator.C), classes=total.classes)
    encoded = stay(each(encode, workers_of(blocks), blocks))
    del blocks
    workers = workers_of(encoded)
    (sums,) = stay([combine(Sums.plus, each(_sums, workers, encoded))])
    trees, summary = fetch(
        task(_partition, clone(estimator), sums, total.classes),
        task(_summary, sums, total.classes, form, dtype, float(estimator.prune)),
    )
    solver = estimator._solver(sp.csr_array((1, total.n_features)), None)
    training = TreeTraining(solver, trees, None, CheckpointJournal(None, ""))
    history: dict[str, list] = {}
    for tree, nodes in zip(trees, training.nodes, strict=True):
        shared = task(_solver, tree, solver, summary.thresholds)
        samples = stay(each(_root_samples, workers, encoded, shared=[shared]))
        run = Run(samples, gap_tol, max_rounds, 0)
        run.descend(int(tree.first_child[1]) - 1, total.n_features)
        run.finish(total.n_features)
        below = [
            task(
                _subtree, shared, child, *each(_reaching, workers, encoded, shared=[shared, child])
            )
            for child in tree.inner_nodes().tolist()
            if 0 < child < tree.first_child[1]
        ]
        root, *subtrees = fetch(task(_root, shared, run.state, gap_tol), *below)
        nodes[0] = root
        for node, weights in (pair for pairs in subtrees for pair in pairs):
            nodes[node] = weights
        for name, values in run.history.items():
            history.setdefault(name, []).extend(values)
    fitted = clone(estimator)
    set_features(fitted, total)
    fitted.__dict__.update(fitted._attributes(training, summary))
    training.report_convergence(False)
    return fitted, {name: np.array(values) for name, values in history.items()}


def _check(estimator: Any) -> None:
    validate_parameters(estimator)
    check_no_checkpoint(estimator)
    if estimator.loss not in LOSSES:
        raise ValueError(
            f"loss must be one of {sorted(LOSSES)} on Dask collections, got {estimator.loss!r}."
        )
    if isinstance(estimator.partition, str) and estimator.partition in ("label_features", "both"):
        raise ValueError(
            "partition must not need label_features on Dask collections, got "
            f"{estimator.partition!r}. Use 'centroids'."
        )


def _validate_indicator(estimator: Any, X: Any, y: Any, weight: Any) -> Block | None:
    """Return the samples of positive weight with their indicators; None if there are none."""
    checked = validate_block(estimator, X, np.arange(X.shape[0]), weight)
    if checked is None:
        return None
    chosen = checked.y  # the numbers of the samples
    matrix = sp.csr_array(y, dtype=np.float32)[chosen]
    if matrix.nnz:
        matrix = forms.encode_indicator(matrix, checked.X).matrix
    return checked._replace(y=matrix)


def _outline(block: Block | None) -> Outline | None:
    """Return the outline of a block with an indicator matrix."""
    if block is None:
        return None
    matrix: Any = block.y
    n_samples, n_labels = matrix.shape
    counts = np.bincount(matrix.indices, minlength=n_labels).astype(float)
    return Outline(np.arange(n_labels), counts, block.X.shape[1], block.names, n_samples)


def _encoded(block: Block, C: float, classes: np.ndarray) -> EncodedBlock:
    """Return samples as CSR arrays, with a matrix of their labels."""
    labels = block.y
    if not sp.issparse(labels):
        labels = forms.encode_codes(classes, np.searchsorted(classes, labels)).matrix
    X = canonical_csr(sp.csr_array(block.X))
    cost = np.full(X.shape[0], C) if block.weight is None else C * block.weight
    return EncodedBlock(X, labels, block.weight, cost)


def _sums(block: EncodedBlock) -> Sums:
    counts = np.bincount(block.labels.indices, minlength=block.labels.shape[1])
    sizes = np.diff(block.labels.indptr)
    size = np.array([block.X.shape[0], block.X.nnz, block.labels.nnz, np.count_nonzero(sizes)])
    of_labels = label_sums(block.X, block.labels, block.weight)
    return Sums(of_labels, counts, *squares_of(block.X), size, int(sizes.max()))


def _partition(estimator: Any, sums: Sums, classes: np.ndarray) -> list[LabelTree]:
    return estimator._partition(classes, sums.counts, lambda: sums.of_labels, None)


def _summary(sums: Sums, classes: np.ndarray, form: str, dtype: Any, prune: float) -> Summary:
    n_samples, n_entries, n_labels, n_labeled = sums.size.tolist()
    if not n_labels:
        raise ValueError("y must contain at least one label, got an indicator matrix of zeros.")
    thresholds = thresholds_of(prune, n_samples, n_entries, sums.squares, sums.entries)
    return Summary(classes, form, dtype, n_labels / n_labeled, sums.most_labels, thresholds)


def _solver(
    tree: LabelTree, solver: NodeSolver, thresholds: np.ndarray
) -> tuple[LabelTree, NodeSolver]:
    """Return a tree and a solver, a task whose result stays on the workers.

    The thresholds are those of all samples, of which a worker does not have the values.
    """
    solver.__dict__["thresholds"] = thresholds
    return tree, solver


def _root_samples(block: EncodedBlock, shared: tuple) -> LinearSamples:
    """Return the samples of a partition with the children of the root that they reach."""
    tree, solver = shared
    reach = reaching_samples(tree, block.labels)[:, 1 : tree.first_child[1]]
    positive, ones = reach.toarray().T > 0.0, np.ones(len(block.cost))
    return LinearSamples.of(block.X, positive, block.cost, ones, LOSSES[solver.loss], solver.bias)


def _root(shared: tuple, joint: Joint, gap_tol: float) -> NodeWeights:
    """Return the pruned weights of the root, with the rounds as passes."""
    passes = np.full(len(joint.best), joint.rounds)
    return shared[1].stored(joint.best, passes, joint.gap <= gap_tol)


def _reaching(block: EncodedBlock, shared: tuple, child: int) -> EncodedBlock | None:
    """Return the samples that reach a child of the root; None if there are none."""
    reach = reaching_samples(shared[0], block.labels)
    rows = reach.indices[reach.indptr[child] : reach.indptr[child + 1]]
    if not len(rows):
        return None
    return EncodedBlock(block.X[rows], block.labels[rows], None, block.cost[rows])


def _subtree(
    shared: tuple, child: int, *blocks: EncodedBlock | None
) -> list[tuple[int, NodeWeights]]:
    """Train a child of the root and all nodes below it, on the samples that reach the child."""
    tree, solver = shared
    present = [block for block in blocks if block is not None]
    X = sp.vstack([block.X for block in present]).tocsr()
    trainer = replace(solver, X=canonical_csr(X), cost=np.concatenate([p.cost for p in present]))
    trainer.__dict__["thresholds"] = solver.thresholds
    reach = reaching_samples(tree, sp.vstack([block.labels for block in present]).tocsr())
    nodes, level = [], [child]
    while level:
        nodes += level
        level = [
            below
            for node in level
            for below in range(tree.first_child[node], tree.first_child[node + 1])
            if tree.label[below] < 0
        ]
    return [(node, trainer.train(tree, reach, node)) for node in nodes]
