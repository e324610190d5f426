"""Scores of labels: the sums of the scores of the nodes on their paths, and a search for the best.

The score of a child is a negative power of the slack that it would have if it were right, or the
negative logistic loss (see `Scoring`). Weights are stored by node and feature, so that a sample
meets the weights of all children of a node at once. A block of samples walks down the tree level by
level; samples at the same node look its features up in a table if there are enough of them, and by
bisection otherwise. Sums are in the order of the features either way. The best nodes of a beam come
first, and those that cannot change the result any more are left out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.options import label_tree_options as options
from widemargin._base.threads import for_each
from widemargin.labeltree.node import NodeWeights
from widemargin.labeltree.partition import LabelTree
from widemargin.solvers.jit import row_arrays

# Losses whose negative values are the scores of children.
SQUARED_HINGE, HINGE, LOG, CRAMMER_SINGER = range(4)
KINDS = {
    "squared_hinge": SQUARED_HINGE,
    "hinge": HINGE,
    "log": LOG,
    "crammer_singer": CRAMMER_SINGER,
}


class Scoring(NamedTuple):
    """How the values of linear functions become scores of children.

    Attributes
    ----------
    kind : int
        One of `KINDS`. The slack is max(0, 1 - s) for the value s of a child, and for joint nodes
        for its difference to the best other child.
    exponent : int
        The score is -slack ** exponent. It is not used by the logistic loss.
    """

    kind: int
    exponent: int


_NO_WEIGHTS: Any = tuple(
    np.zeros(0, dtype) for dtype in (np.uint32, np.int64, np.uint8, np.float32)
)

# Powers of larger ones overflow: they count as this, which is far beyond any other.
_LARGEST_SLACK = 1e30


@dataclass(frozen=True)
class TreeWeights:
    """Weights of all nodes of a tree, by node and feature.

    Attributes
    ----------
    feature_start : ndarray of shape (n_nodes + 1,)
        The features of node k are ``features[feature_start[k] : feature_start[k + 1]]``.
    features : ndarray of uint32, or uint16 if that is enough
        Features with a weight, in increasing order within a node. ``n_features`` is the constant
        feature.
    entry_start : ndarray of uint32 (int64 if that is too small), shape (len(features) + 1,)
        The weights of feature position j are those from ``entry_start[j]`` on.
    child : ndarray of uint8, or uint16 if a node has more than 256 children
        Number of the child among those of its node.
    value : ndarray of float32
        Weight.
    """

    feature_start: np.ndarray
    features: np.ndarray
    entry_start: np.ndarray
    child: np.ndarray
    value: np.ndarray

    def arrays(self) -> tuple[np.ndarray, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))

    def check(self, tree: LabelTree, n_features: int) -> None:
        """Raise a ValueError unless these are weights of the nodes of a tree.

        Compiled code trusts the arrays. Those of a fit are right; those of a file may be anything.
        """
        index, child = (np.uint32, np.int64), (np.uint8, np.uint16)
        feature = (np.uint16, np.uint32)
        accepted: list[tuple] = [(np.int64,), feature, index, child, (np.float32,)]
        sound = (
            all(
                array.dtype in types and array.ndim == 1
                for array, types in zip(self.arrays(), accepted, strict=True)
            )
            and len(self.child) == len(self.value)
            and _are_starts(self.feature_start, tree.n_nodes, len(self.features))
            and _are_starts(self.entry_start, len(self.features), len(self.value))
            and bool(np.isfinite(self.value).all())
        )
        if sound:
            counts = np.diff(self.feature_start)
            node = np.repeat(np.arange(tree.n_nodes, dtype=np.int32), counts)
            increasing = np.diff(self.features.astype(np.int64)) > 0
            most = np.repeat(np.diff(tree.first_child)[node], np.diff(self.entry_start))
            sound = (
                bool((self.features <= n_features).all())
                and bool((increasing | (np.diff(node) > 0)).all())
                and bool((self.child < most).all())
            )
        if not sound:
            raise ValueError("The arrays of TreeWeights are not weights of this tree.")

    @classmethod
    def of(cls, nodes: Sequence[NodeWeights | None]) -> Self:
        """Join the weights of all nodes; labels, and nodes without weights yet, are None."""
        known = [node[:4] for node in nodes if node is not None] or [_NO_WEIGHTS]
        features, counts, child, value = map(np.concatenate, zip(*known, strict=True))
        sizes = [0 if node is None else len(node.features) for node in nodes]
        if features.max(initial=0) < 2**16:
            features = features.astype(np.uint16)
        starts = np.cumsum(np.concatenate([[0], counts]), dtype=np.int64)
        if len(value) < 2**32:
            starts = starts.astype(np.uint32)
        return cls(np.cumsum([0, *sizes], dtype=np.int64), features, starts, child, value)


def _are_starts(starts: np.ndarray, n: int, total: int) -> bool:
    """Return whether n parts of a list of this length start here, and the last one ends with it."""
    if len(starts) != n + 1 or starts[0] != 0 or starts[-1] != total:
        return False
    return bool((starts[:-1] <= starts[1:]).all())


def search(
    X: Any, tree: LabelTree, weights: TreeWeights, scoring: Scoring, beam: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k best labels of every sample found by a beam search, and their scores.

    Where fewer are found, -1 and negative infinity stand for the others.
    """
    n, beam = X.shape[0], min(beam, tree.n_inner)
    labels, scores = np.full((n, k), -1), np.full((n, k), -np.inf)
    most = beam * int(np.diff(tree.first_child).max())
    height = max(1, min(options.block_samples, options.score_entries // most))

    def walk(first: int) -> None:
        last = min(first + height, n)
        _walk(
            *row_arrays(X), first, last, X.shape[1], tree.first_child, tree.label,
            *weights.arrays(), *scoring, beam, labels, scores,
        )  # fmt: skip

    for_each(walk, range(0, n, height))
    return labels, scores


def score_labels(
    X: Any, tree: LabelTree, weights: TreeWeights, scoring: Scoring, labels: np.ndarray
) -> np.ndarray:
    """Return the scores of these labels, of shape (n_samples, len(labels)).

    Labels that are not in the tree have the score negative infinity.
    """
    column = np.full(int(max(tree.label.max(), labels.max())) + 1, -1)
    column[labels] = np.arange(len(labels))
    parents, wanted = tree.parents(), np.zeros(tree.n_nodes, bool)
    leaves = np.flatnonzero(tree.label >= 0)
    nodes = leaves[column[tree.label[leaves]] >= 0]
    while len(nodes):
        nodes = np.unique(parents[nodes[parents[nodes] >= 0]])
        wanted[nodes] = True
    inner = np.flatnonzero(wanted)
    n, height = X.shape[0], max(1, options.score_entries // (len(inner) + 1))
    scores = np.full((n, len(labels)), -np.inf)

    def score(first: int) -> None:
        last = min(first + height, n)
        _score_all(
            *row_arrays(X), first, last, X.shape[1], tree.first_child, tree.label,
            *weights.arrays(), *scoring, inner, column, scores,
        )  # fmt: skip

    for_each(score, range(0, n, height))
    return scores


def merge_trees(results: list[tuple[np.ndarray, np.ndarray]], k: int) -> tuple:
    """Return the k labels of the largest mean probability, where exp(score) is a probability."""
    if len(results) == 1:
        return results[0]
    labels = np.hstack([labels for labels, _ in results])
    scores = np.hstack([scores for _, scores in results])
    best, values = np.full((len(labels), k), -1), np.full((len(labels), k), -np.inf)
    _merge(labels, scores, len(results), best, values)
    return best, values


@compiled
def _merge(labels, scores, n_trees, best, values):
    for i in range(len(labels)):
        order = np.argsort(labels[i], kind="mergesort")
        t = 0
        while t < len(order):
            label, highest, end = labels[i, order[t]], -np.inf, t
            while end < len(order) and labels[i, order[end]] == label:
                highest = max(highest, scores[i, order[end]])
                end += 1
            if label >= 0:
                total = 0.0
                for s in range(t, end):
                    total += math.exp(scores[i, order[s]] - highest)
                _insert(best[i], values[i], label, highest + math.log(total / n_trees))
            t = end


@compiled(work=lambda *arguments: 10.0 * sum(map(np.size, arguments)))
def _score_all(
    data, indices, indptr, start, stop, n_features, first_child, label, feature_start, features,
    entry_start, child, value, kind, exponent, inner, column, scores,
):  # fmt: skip
    """Write the scores of the labels that have a column, for samples ``start`` to ``stop - 1``."""
    m = stop - start
    rank = np.full(len(label), -1)
    for t in range(len(inner)):
        rank[inner[t]] = t
    paths, rows = np.zeros((len(inner), m)), np.arange(start, stop)
    table = np.full(n_features if m > 1 else 0, -1, np.int32)
    for t in range(len(inner)):
        first, last = first_child[inner[t]], first_child[inner[t] + 1]
        edge_scores = np.zeros(m * (last - first))
        _score_pairs(
            data, indices, indptr, n_features, np.full(m, inner[t]), rows,
            np.arange(m + 1) * (last - first), feature_start, features, entry_start, child, value,
            kind, exponent, table, edge_scores,
        )  # fmt: skip
        for node in range(first, last):
            if label[node] >= 0 and column[label[node]] >= 0:
                for r in range(m):
                    at = r * (last - first) + node - first
                    scores[start + r, column[label[node]]] = paths[t, r] + edge_scores[at]
            elif label[node] < 0 and rank[node] >= 0:
                for r in range(m):
                    paths[rank[node], r] = (
                        paths[t, r] + edge_scores[r * (last - first) + node - first]
                    )


@compiled(work=lambda *arguments: 10.0 * sum(map(np.size, arguments)))
def _walk(
    data, indices, indptr, start, stop, n_features, first_child, label, feature_start, features,
    entry_start, child, value, kind, exponent, beam, labels, scores,
):  # fmt: skip
    """Walk samples ``start`` to ``stop - 1`` down the tree, and write their best labels."""
    m = stop - start
    nodes, paths = np.full((m, beam), -1), np.full((m, beam), -np.inf)
    next_nodes, next_paths = nodes.copy(), paths.copy()
    nodes[:, 0], paths[:, 0] = 0, 0.0
    table = np.full(n_features if m > 1 else 0, -1, np.int32)
    while np.any(nodes[:, 0] >= 0):
        next_nodes[:], next_paths[:] = -1, -np.inf
        begin, end = 0, 1
        while begin < beam:
            at, row, rank, offset = _pairs(
                nodes[:, begin:end], paths[:, begin:end], first_child, label, scores[start:stop],
                next_paths,
            )  # fmt: skip
            edge_scores = np.zeros(offset[len(at)])
            _score_pairs(
                data, indices, indptr, n_features, at, row + start, offset, feature_start,
                features, entry_start, child, value, kind, exponent, table, edge_scores,
            )  # fmt: skip
            for p in range(len(at)):
                r, first = row[p], first_child[at[p]]
                for c in range(offset[p + 1] - offset[p]):
                    path = paths[r, begin + rank[p]] + edge_scores[offset[p] + c]
                    if label[first + c] >= 0:
                        _insert(labels[start + r], scores[start + r], label[first + c], path)
                    else:
                        _insert(next_nodes[r], next_paths[r], first + c, path)
            begin, end = end, min(2 * end, beam)
        nodes, next_nodes = next_nodes, nodes
        paths, next_paths = next_paths, paths


@compiled
def _pairs(nodes, paths, first_child, label, scores, next_paths):
    """Return the pairs of a node and a sample that can change the result.

    Returns the nodes, the samples, the places of the nodes in the beam, and where the scores of
    each pair begin. Scores are at most 0, so that no score below a node exceeds that of its path: a
    node with a path worse than the last one of the best labels, or of the next beam, is left out.
    """
    count = nodes.size
    at, row, rank = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    offset = np.zeros(count + 1, np.int64)
    p = 0
    for r in range(nodes.shape[0]):
        worst_label, worst_node = scores[r, -1], next_paths[r, -1]
        for b in range(nodes.shape[1]):
            node = nodes[r, b]
            if node < 0 or paths[r, b] < worst_label:
                break
            first, last = first_child[node], first_child[node + 1]
            if paths[r, b] < worst_node and np.all(label[first:last] < 0):
                continue
            at[p], row[p], rank[p] = node, r, b
            offset[p + 1] = offset[p] + last - first
            p += 1
    return at[:p], row[:p], rank[:p], offset[: p + 1]


@compiled
def _score_pairs(
    data, indices, indptr, n_features, at, row, offset, feature_start, features, entry_start,
    child, value, kind, exponent, table, edge_scores,
):  # fmt: skip
    """Compute the scores of the children of all pairs, node after node."""
    order = np.argsort(at, kind="mergesort")
    begin = 0
    while begin < len(order):
        node, entries, end = at[order[begin]], np.int64(0), begin
        while end < len(order) and at[order[end]] == node:
            i = row[order[end]]
            entries += np.int64(indptr[i + 1]) - np.int64(indptr[i])
            end += 1
        first, last = feature_start[node], feature_start[node + 1]
        # The constant feature, the last one, is in no row.
        is_constant = last > first and features[last - 1] == n_features
        subset = features[first : last - 1 if is_constant else last]
        tabled = len(table) > 0 and 2 * len(subset) < entries * np.log2(len(subset) + 2.0)
        if tabled:
            for j in range(len(subset)):
                table[subset[j]] = j
        for t in range(begin, end):
            p = order[t]
            i, sums = row[p], edge_scores[offset[p] : offset[p + 1]]
            if is_constant:
                for e in range(entry_start[last - 1], entry_start[last]):
                    sums[child[e]] = value[e]
            for q in range(indptr[i], indptr[i + 1]):
                j = table[indices[q]] if tabled else _position(subset, indices[q])
                if j >= 0:
                    for e in range(entry_start[first + j], entry_start[first + j + 1]):
                        sums[child[e]] += data[q] * value[e]
            _negative_losses(sums, kind, exponent)
        if tabled:
            for j in range(len(subset)):
                table[subset[j]] = -1
        begin = end


@compiled
def _position(features, feature):
    """Return the position of a feature among sorted ones; -1 if it is not there."""
    j = np.searchsorted(features, feature)
    return j if j < len(features) and features[j] == feature else -1


@compiled
def _negative_losses(sums, kind, exponent):
    """Replace the values of linear functions by scores, which are at most 0."""
    best, second = -np.inf, -np.inf
    if kind == CRAMMER_SINGER:
        for s in sums:
            if s > best:
                best, second = s, best
            elif s > second:
                second = s
    for c in range(len(sums)):
        s = sums[c]
        if kind == LOG:
            sums[c] = min(s, 0.0) - math.log1p(math.exp(-abs(s)))
            continue
        if kind == CRAMMER_SINGER:
            s -= second if s == best else best
        slack = min(max(0.0, 1.0 - s), _LARGEST_SLACK)
        power = slack
        for _ in range(exponent - 1):
            power *= slack
        sums[c] = -power


@compiled
def _insert(items, values, item, value):
    """Insert an item into a list in decreasing order of values, if it is among the best."""
    t = len(items) - 1
    if value < values[t] or (value == values[t] and item > items[t]):
        return
    while t > 0 and (values[t - 1] < value or (values[t - 1] == value and items[t - 1] > item)):
        items[t], values[t] = items[t - 1], values[t - 1]
        t -= 1
    items[t], values[t] = item, value
