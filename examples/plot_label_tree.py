"""
A tree of labels and its beam search (LabelTreeClassifier)
==========================================================

`LabelTreeClassifier` predicts the labels of a document by walking down a tree: at each level, it
follows only the best nodes. This page draws the tree of a small collection, shows which nodes a
beam of two follows for one document, and what a wider beam gains.
"""

import numpy as np
from matplotlib import pyplot

from widemargin import LabelTreeClassifier, precision_at_k
from widemargin.datasets import make_extreme_labels

data = make_extreme_labels(6000, 128, n_features=400, words_per_sample=8, noise=0.5, random_state=0)
X, Y, X_test, Y_test = data.X[:4000], data.Y[:4000], data.X[4000:], data.Y[4000:]
model = LabelTreeClassifier(branching=4, max_leaf_size=8).fit(X, Y)
tree = model.trees_[0]
print(f"{len(tree.inner_nodes())} nodes, {len(model.weights_[0].value)} weights")

# %%
# The position of a node is the mean of those of the labels below it; labels are in the order of the
# tree.

parents = tree.parents()
level = np.zeros(tree.n_nodes, int)
for node in range(1, tree.n_nodes):
    level[node] = level[parents[node]] + 1
x = np.full(tree.n_nodes, np.nan)


def place(node, first):
    """Set the positions below a node, from ``first`` on; return the next free one."""
    children = range(tree.first_child[node], tree.first_child[node + 1])
    if not children:
        x[node] = first
        return first + 1
    for child in children:
        first = place(child, first)
    x[node] = x[children.start : children.stop].mean()
    return first


place(0, 0)

# %%
# The score of a node is the sum of the negative fourth powers of the slack on its path
# (`score_exponent`). A beam of width two keeps the two best nodes of each level. Its paths are
# drawn in color; true labels are marked.

number = 8
document, true = X_test[[number]].toarray()[0], set(Y_test[[number]].indices.tolist())
weights, path = model.weights_[0], np.zeros(tree.n_nodes)
for node in tree.inner_nodes():
    children = slice(tree.first_child[node], tree.first_child[node + 1])
    sums = np.zeros(children.stop - children.start)
    for j in range(weights.feature_start[node], weights.feature_start[node + 1]):
        entries = slice(weights.entry_start[j], weights.entry_start[j + 1])
        value = np.append(document, 1.0)[weights.features[j]]  # the last feature is constant
        sums[weights.child[entries]] += value * weights.value[entries]
    path[children] = path[node] - np.maximum(0.0, 1.0 - sums) ** 4

leaves = np.flatnonzero(tree.label >= 0)
beam, kept = [0], {0}
while beam:
    below = [c for n in beam for c in range(tree.first_child[n], tree.first_child[n + 1])]
    beam = sorted(below, key=lambda node: -path[node])[:2]
    kept |= set(beam)
figure, ax = pyplot.subplots(figsize=(9.0, 4.2), layout="constrained")
for node in range(1, tree.n_nodes):
    on_path = node in kept
    ax.plot(
        [x[node], x[parents[node]]],
        [-level[node], -level[parents[node]]],
        color="#d55e00" if on_path else "#bbbbbb",
        linewidth=2.2 if on_path else 0.6,
        zorder=2 if on_path else 1,
    )
marked = [node for node in leaves if tree.label[node] in true]
ax.scatter(x[marked], -level[marked], s=60, color="#0072b2", zorder=3, label="true label")
ax.set_title("What a beam of two follows for one document")
ax.set(xlabel="labels in the order of the tree", yticks=[])
ax.spines[["left", "top", "right"]].set_visible(False)
ax.legend(loc="upper right")

# %%
# Where the first levels are in doubt, a wider beam helps; beyond a few nodes it changes little.

widths = [1, 2, 3, 5, 10, 20, 40]
figure, ax = pyplot.subplots(figsize=(6.5, 3.6), layout="constrained")
found = {1: [], 5: []}
for width in widths:
    narrow = LabelTreeClassifier(branching=4, max_leaf_size=8, beam_width=width).fit(X, Y)
    labels, _ = narrow.predict_topk(X_test, 5)
    labels_one, _ = narrow.predict_topk(X_test, 1)
    found[1].append(precision_at_k(Y_test, labels_one, 1))
    found[5].append(precision_at_k(Y_test, labels, 5))
ax.plot(widths, found[1], marker="o", color="#0072b2", label="P@1")
ax.plot(widths, found[5], marker="s", color="#d55e00", label="P@5 (beam of at least 5)")
ax.set(xscale="log", xlabel="beam width", ylabel="precision")
ax.set_xticks(widths, [str(width) for width in widths])
ax.minorticks_off()
ax.legend()
