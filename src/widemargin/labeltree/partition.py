"""Partitions of the labels: trees whose leaves are the labels.

A partition is made as nested lists: a label is its number, any other node is the list of its
children, or the array of their numbers if all are labels. `LabelTree.of` numbers the nodes.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from widemargin._base.jit import compiled
from widemargin._base.options import label_tree_options as options
from widemargin._base.threads import for_each
from widemargin.labeltree.labels import numbers_of
from widemargin.labeltree.rows import gather_rows
from widemargin.solvers.jit import add_row, dot_row, random_below, random_state, row_arrays

# Children of a node are numbered in 16 bits.
_MOST_CHILDREN = 65535


@dataclass(frozen=True)
class LabelTree:
    """A tree over labels, with its nodes numbered level by level from the root, which is 0.

    Attributes
    ----------
    first_child : ndarray of shape (n_nodes + 1,)
        The children of node k are ``first_child[k]`` to ``first_child[k + 1] - 1``. A label has
        none.
    label : ndarray of shape (n_nodes,)
        Numbers of the labels; -1 for other nodes.
    """

    first_child: np.ndarray
    label: np.ndarray

    @classmethod
    def of(cls, nested: Any) -> Self:
        """Number the nodes of a nested list."""
        labels, sizes, level = [], [], [nested]
        while level:
            following: list = []
            for node in level:
                is_label = isinstance(node, int)
                labels.append(node if is_label else -1)
                sizes.append(0 if is_label else len(node))
                if not is_label:
                    following.extend(node.tolist() if isinstance(node, np.ndarray) else node)
            level = following
        if max(sizes) > _MOST_CHILDREN:
            raise ValueError(
                f"partition must have at most {_MOST_CHILDREN} children at a node, got "
                f"{max(sizes)}."
            )
        first = np.cumsum([1, *sizes], dtype=np.int64)
        return cls(first, np.array(labels, np.int64))

    @property
    def n_nodes(self) -> int:
        return len(self.label)

    def parents(self) -> np.ndarray:
        """Return the parent of every node; that of the root is -1."""
        return np.append(-1, np.repeat(np.arange(self.n_nodes), np.diff(self.first_child)))

    @property
    def n_inner(self) -> int:
        """Number of nodes with children: no beam needs to be wider."""
        return int(np.count_nonzero(self.label < 0))

    def check(self, n_labels: int) -> None:
        """Raise a ValueError unless this is a tree over some of the labels.

        Compiled code trusts the arrays. Those of a fit are right; those of a file may be anything.
        """
        first, label, sizes = self.first_child, self.label, np.diff(self.first_child)
        leaf = sizes == 0
        sound = (
            first.dtype == label.dtype == np.int64
            and first.ndim == label.ndim == 1
            and len(first) == len(label) + 1 > 2
            and first[0] == 1
            and first[-1] == len(label)
            and 0 <= sizes.min() <= sizes.max() <= _MOST_CHILDREN
            and (first[:-1] > np.arange(len(label)))[~leaf].all()
            and (label[~leaf] == -1).all()
            and 0 <= label[leaf].min() <= label.max() < n_labels
        )
        if not sound:
            raise ValueError("The arrays of a LabelTree are not those of a tree.")

    def inner_nodes(self) -> np.ndarray:
        """Return the nodes that have children."""
        return np.flatnonzero(np.diff(self.first_child))


def balanced_tree(
    features: Any, labels: np.ndarray, branching: int, largest: int, seed: int
) -> Any:
    """Partition labels by balanced spherical 2-means, level by level.

    Parameters
    ----------
    features : CSR matrix of shape (n_labels, d)
        Rows of norm 1, or 0.
    labels : ndarray
        Rows to partition.
    branching : int
        Most children of a node whose children are not all labels.
    largest : int
        Most labels of a node whose children are labels.
    seed : int

    Returns
    -------
    nested : list or ndarray
    """
    return _subdivide([labels], branching, largest, _MeansSplit(features, seed))[0]


def random_tree(labels: np.ndarray, branching: int, largest: int, seed: int) -> Any:
    """Partition labels at random into parts of equal size."""
    shuffled = np.random.default_rng(seed).permutation(labels)
    return _subdivide([shuffled], branching, largest, lambda group, size, _: _cut(group, size))[0]


def huffman_tree(labels: np.ndarray, counts: np.ndarray, branching: int) -> Any:
    """Return the tree of shortest mean path for labels that occur this often."""
    heap: list = [(int(counts[label]), int(label), int(label)) for label in labels]
    if len(heap) == 1:
        return labels
    # The first node takes what leaves full nodes for all the others.
    width = (len(heap) - 2) % (branching - 1) + 2
    heapq.heapify(heap)
    while len(heap) > 1:
        group = [heapq.heappop(heap) for _ in range(width)]
        # Ties are broken by the smallest label below a node.
        total, first = sum(entry[0] for entry in group), min(entry[1] for entry in group)
        heapq.heappush(heap, (total, first, [entry[2] for entry in group]))
        width = branching
    return heap[0][2]


def encode_nested(nested: list, classes: np.ndarray, counts: np.ndarray) -> Any:
    """Return a tree of labels as one of their numbers, without labels that have no sample."""
    try:
        leaves = np.array(list(_leaves(nested)))
    except RecursionError:
        raise ValueError(
            "partition must be a nested list of labels, got one that is nested too deeply, or that "
            "contains itself."
        ) from None
    numbers = numbers_of(leaves, classes, "partition")
    occurrences = np.bincount(numbers, minlength=len(classes))
    wrong = np.flatnonzero((occurrences > 1) | ((occurrences == 0) & (counts > 0)))
    if len(wrong):
        problem = "missing" if occurrences[wrong[0]] == 0 else "repeated"
        raise ValueError(
            "partition must contain every label that has a training sample once; "
            f"{classes.tolist()[wrong[0]]!r} is {problem}."
        )
    return _renumber(nested, iter(numbers.tolist()), counts)


def _leaves(nested: list) -> Iterator[Any]:
    for node in nested:
        if isinstance(node, list):
            yield from _leaves(node)
        elif isinstance(node, tuple | set | dict | np.ndarray):
            raise ValueError(
                f"partition must be a nested list of labels, got a {type(node).__name__} in it. "
                "Use lists for all nodes."
            )
        else:
            yield node


def _renumber(nested: list, numbers: Iterator[int], counts: np.ndarray) -> list:
    """Replace labels by numbers; leave out those without a sample, and nodes without a label."""
    children: list = []
    for node in nested:
        if isinstance(node, list):
            children += [below] if (below := _renumber(node, numbers, counts)) else []
        elif counts[number := next(numbers)] > 0:
            children.append(number)
    return children


class _MeansSplit:
    """Split a group of labels in two of given sizes, by balanced spherical 2-means."""

    def __init__(self, features: Any, seed: int) -> None:
        self.arrays, self.n_features = row_arrays(features), features.shape[1]
        self.seed = seed

    def __call__(self, group: np.ndarray, size: int, position: int) -> tuple:
        random = random_state(self.seed + position)
        first = _split_in_two(
            *self.arrays, group, self.n_features, size, options.split_iterations, random
        )
        return group[first], group[~first]


def _cut(group: np.ndarray, size: int) -> tuple:
    return group[:size], group[size:]


def _subdivide(groups: list, branching: int, largest: int, split: Any) -> list:
    """Return a nested list for every group of labels."""
    # Each entry is a subgroup, and the number of subgroups into which it is yet to be split.
    needed = [-(-len(group) // largest) for group in groups]
    if max(needed) == 1:
        return groups
    level = [[(group, min(branching, n))] for group, n in zip(groups, needed, strict=True)]
    while any(count > 1 for entries in level for _, count in entries):
        pending = [entry for entries in level for entry in entries]
        positions = enumerate(pending)
        halves = iter(for_each(lambda item: _halve(item[1], split, item[0]), positions))
        level = [[half for _ in entries for half in next(halves)] for entries in level]
    divided = [[group for group, _ in entries] for entries in level]
    built = iter(
        _subdivide([subgroup for group in divided for subgroup in group], branching, largest, split)
    )
    nested = [[next(built) for _ in group] for group in divided]
    return [n[0] if len(n) == 1 else n for n in nested]


def _halve(entry: tuple[np.ndarray, int], split: Any, position: int) -> list:
    group, count = entry
    if count == 1:
        return [(group, 1)]
    half = count // 2
    first, second = split(group, len(group) * half // count, position)
    return [(first, half), (second, count - half)]


@compiled(work=lambda *arguments: 100.0 * arguments[0].size)
def _split_in_two(data, indices, indptr, members, n_features, size, iterations, random):
    """Return which members are in the first of two clusters, which has ``size`` of them."""
    data, indices, indptr, features = gather_rows(data, indices, indptr, members, n_features)
    n = len(members)
    first, second = np.zeros(len(features) + 1), np.zeros(len(features) + 1)
    scores, lanes = np.empty(n), np.empty(16)
    chosen, before = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    # The start: a random member, and the one that is least similar to it.
    add_row(data, indices, indptr, random_below(random, n), 1.0, first)
    for i in range(n):
        scores[i] = dot_row(data, indices, indptr, i, first, lanes)
    add_row(data, indices, indptr, np.argmin(scores), 1.0, second)
    for _ in range(iterations):
        scale = _norm(first), _norm(second)
        for k in range(len(first)):
            first[k] = first[k] / scale[0] - second[k] / scale[1]
        for i in range(n):
            scores[i] = -dot_row(data, indices, indptr, i, first, lanes)
        order = np.argsort(scores, kind="mergesort")
        chosen[:] = False
        chosen[order[:size]] = True
        if np.all(chosen == before):
            break
        before[:] = chosen
        first[:] = 0.0
        second[:] = 0.0
        for i in range(n):
            add_row(data, indices, indptr, i, 1.0, first if chosen[i] else second)
    return chosen


@compiled
def _norm(vector):
    total = 0.0
    for value in vector:
        total += value * value
    return np.sqrt(total) if total > 0.0 else 1.0
