"""
Six proposals from one training image
=====================================

One labelled image says that discs differ from what is around them in two colours. In other images
the light is another, and only one of the colours tells, or a mixture of both: a single machine
cannot know which. The members of a `CoulombSSVM` all fit the one image, and keep away from each
other; for most new images one of them comes near, and somebody who picks it has about half the
errors of the single machine. Random perturbations of that machine, the control, do not get as far.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from widemargin.plotting import BestMemberDisplay, PickBestDisplay, ProposalsDisplay
from widemargin.structured import CoulombSSVM, GridCRF, PerturbedSSVM


def picture(rng, angle, size=20):
    """Discs in a light of some colour, under noise; the third feature is a constant."""
    rows, columns = np.indices((size, size))
    labels = np.zeros((size, size), dtype=int)
    for row, column, radius in rng.uniform([3, 3, 3], [size - 3, size - 3, 5], size=(3, 3)):
        labels[(rows - row) ** 2 + (columns - column) ** 2 < radius**2] = 1
    colours = 2.1 * np.multiply.outer(labels - 0.5, [np.cos(angle), np.sin(angle)])
    colours += rng.normal(size=colours.shape)
    return np.concatenate([colours, np.ones((size, size, 1))], axis=-1), labels


rng = np.random.default_rng(1)
x, y = picture(rng, np.pi / 4)
angles = np.linspace(-np.pi / 4, 3 * np.pi / 4, 30)
X, Y = zip(*[picture(rng, angle) for angle in angles], strict=True)

with warnings.catch_warnings(action="ignore"):
    coulomb = CoulombSSVM(GridCRF(), 6, solver="anchored", C=0.01).fit([x], [y])
    control = PerturbedSSVM(GridCRF(), 6, spread=0.7, C=0.01).fit([x], [y])

# %%
# Three new images, their true labels, and the six proposals with their errors. The best one is
# framed.

shown = [2, 14, 27]
images = [np.clip(0.5 + np.dstack([X[k][..., :2], 0 * X[k][..., 0]]) / 5, 0, 1) for k in shown]
ProposalsDisplay.from_estimator(
    coulomb, [X[k] for k in shown], [Y[k] for k in shown], images=images
)

# %%
# What each further proposal is worth, beside the random control, and who makes the best one: in
# these images one of the six members never does.

_, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
PickBestDisplay.from_estimator(coulomb, X, Y, ax=left)
PickBestDisplay.from_estimator(control, X, Y, ax=middle)
BestMemberDisplay.from_estimator(coulomb, X, Y, ax=right)
middle.set_ylim(left.get_ylim())
left.set_title("members that repel each other")
middle.set_title("random perturbations")

# %%
# One answer is asked for after all: that of most members, or of a re-ranker fitted on held-out
# images.

print(f"single machine   {1 - PerturbedSSVM(GridCRF(), 1, C=0.01).fit([x], [y]).score(X, Y):.3f}")
print(f"best of six      {1 - coulomb.pick_best_score(X[1::2], Y[1::2]):.3f}")
print(f"consensus        {1 - coulomb.score(X[1::2], Y[1::2]):.3f}")
coulomb.fit_reranker(X[::2], Y[::2])
print(f"re-ranked        {1 - coulomb.score(X[1::2], Y[1::2]):.3f}")
plt.show()
