"""Partitions of labels: balanced, complete, and as close together as they should be."""

import heapq
from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from widemargin.labeltree.partition import LabelTree, balanced_tree, huffman_tree, random_tree


def features(n_labels, random_state=0):
    random = np.random.default_rng(random_state)
    return sp.csr_array(normalize(sp.random_array((n_labels, 50), density=0.1, rng=random)))


def groups(nested):
    """Return the arrays of labels that are the children of one node."""
    if isinstance(nested, np.ndarray):
        return [nested]
    return [group for child in nested for group in groups(child)]


def widest(nested):
    return 0 if isinstance(nested, np.ndarray) else max(len(nested), *map(widest, nested))


@pytest.mark.parametrize("n_labels", [1, 2, 7, 100, 333, 1000])
@pytest.mark.parametrize(("branching", "largest"), [(2, 5), (16, 10), (3, 100), (100, 2)])
def test_partitions_are_complete_and_balanced(n_labels, branching, largest):
    labels = np.arange(n_labels)
    for nested in (
        balanced_tree(features(n_labels), labels, branching, largest, 0),
        random_tree(labels, branching, largest, 0),
    ):
        found = groups(nested)
        sizes = np.array([len(group) for group in found])
        np.testing.assert_array_equal(np.sort(np.concatenate(found)), labels)
        assert sizes.max() <= largest
        assert widest(nested) <= branching
        assert sizes.max() - sizes.min() <= max(1, 0.5 * sizes.max())


def test_a_planted_hierarchy_is_recovered():
    random = np.random.default_rng(1)
    topics = np.arange(64) % 8
    # Topics share features with their siblings: more with closer ones.
    levels = [np.eye(2)[topics // 4], np.eye(4)[topics // 2], np.eye(8)[topics]]
    noise = 0.05 * random.random((64, 20))
    noisy = sp.csr_array(normalize(np.hstack([2.0 * levels[0], levels[1], levels[2], noise])))
    nested = balanced_tree(noisy, np.arange(64), 8, 8, 0)
    assert all(len(set(group % 8)) == 1 for group in groups(nested))


def test_numbers_of_nodes_lead_to_all_labels():
    tree = LabelTree.of([np.array([4, 2]), [np.array([0]), 3], 1])
    assert tree.label.tolist() == [-1, -1, -1, 1, 4, 2, -1, 3, 0]
    assert tree.parents().tolist() == [-1, 0, 0, 0, 1, 1, 2, 2, 6]
    assert tree.inner_nodes().tolist() == [0, 1, 2, 6]


@pytest.mark.parametrize("n_labels", [1, 2, 3, 10, 57])
@pytest.mark.parametrize("branching", [2, 3, 7])
def test_huffman_trees_have_the_shortest_mean_path(n_labels, branching):
    counts = np.random.default_rng(n_labels).integers(1, 50, size=n_labels)
    tree = LabelTree.of(huffman_tree(np.arange(n_labels), counts, branching))
    depth, parents = np.zeros(tree.n_nodes, int), tree.parents()
    for node in range(1, tree.n_nodes):
        depth[node] = depth[parents[node]] + 1
    leaves = np.flatnonzero(tree.label >= 0)
    found = np.sum(depth[leaves] * counts[tree.label[leaves]])
    assert found == max(shortest(counts.tolist(), branching), counts.sum())


def shortest(counts, branching):
    """Return the cost of Huffman's code, with labels that never occur to fill the first node."""
    while (len(counts) - 1) % (branching - 1):
        counts.append(0)
    tick, total = count(), 0
    heap = [(c, next(tick)) for c in counts]
    heapq.heapify(heap)
    while len(heap) > 1:
        merged = sum(heapq.heappop(heap)[0] for _ in range(branching))
        total += merged
        heapq.heappush(heap, (merged, next(tick)))
    return total


def test_nodes_with_children_are_counted():
    nested = [np.array([4, 2]), [np.array([0]), 3, np.array([5, 6])], 1]
    tree = LabelTree.of(nested)
    assert tree.n_inner == sum(np.diff(tree.first_child) > 0) == 5
    assert LabelTree.of(np.arange(3)).n_inner == 1


def test_nodes_with_too_many_children_are_refused():
    with pytest.raises(ValueError, match="at most 65535 children at a node, got 65536"):
        LabelTree.of(np.arange(65536))
