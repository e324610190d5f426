"""
Diverse ensemble from one training image (CoulombSSVM)
======================================================

In the one labeled image, discs differ from the background in two colors. In other images the light
is different, and only one of the colors or a mixture of both is informative: a single structured
SVM cannot know which. All members of a `CoulombSSVM` fit the training image, and repel each other.
For most new images one of them is close to the truth, and the best proposal has about half the
errors of the single structured SVM. Random perturbations, the control, have more. The task is
generated for this purpose: the light changes in the plane of the two colors, in which the members
differ. On real images the differences are smaller, see :doc:`../structured`.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from widemargin.plotting import BestMemberDisplay, PickBestDisplay, ProposalsDisplay
from widemargin.structured import CoulombSSVM, GridCRF, PerturbedSSVM


def picture(rng, angle, size=20):
    """Return noisy discs in colored light, and their labels; the third feature is constant."""
    rows, columns = np.indices((size, size))
    labels = np.zeros((size, size), dtype=int)
    for row, column, radius in rng.uniform([3, 3, 3], [size - 3, size - 3, 5], size=(3, 3)):
        labels[(rows - row) ** 2 + (columns - column) ** 2 < radius**2] = 1
    colors = 2.1 * np.multiply.outer(labels - 0.5, [np.cos(angle), np.sin(angle)])
    colors += rng.normal(size=colors.shape)
    return np.concatenate([colors, np.ones((size, size, 1))], axis=-1), labels


rng = np.random.default_rng(1)
x, y = picture(rng, np.pi / 4)
angles = np.linspace(-np.pi / 4, 3 * np.pi / 4, 30)
X, Y = zip(*[picture(rng, angle) for angle in angles], strict=True)

with warnings.catch_warnings(action="ignore"):
    coulomb = CoulombSSVM(GridCRF(), 6, solver="anchored", C=0.01).fit([x], [y])
    control = PerturbedSSVM(GridCRF(), 6, spread=0.7, C=0.01).fit([x], [y])

# %%
# Three new images, their true labels, and the six proposals with their errors. The best proposal
# is framed.

shown = [2, 14, 27]
images = [np.clip(0.5 + np.dstack([X[k][..., :2], 0 * X[k][..., 0]]) / 5, 0, 1) for k in shown]
ProposalsDisplay.from_estimator(
    coulomb, [X[k] for k in shown], [Y[k] for k in shown], images=images
)

# %%
# The error against the number of proposals, compared with the random control, and the share of
# images for which each member makes the best proposal: one of the six members never does.

_, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained")
PickBestDisplay.from_estimator(coulomb, X, Y, ax=left)
PickBestDisplay.from_estimator(control, X, Y, ax=middle)
BestMemberDisplay.from_estimator(coulomb, X, Y, ax=right)
middle.set_ylim(left.get_ylim())
left.set_title("members that repel each other")
middle.set_title("random perturbations")

# %%
# A single prediction: the consensus of the members, or the choice of a re-ranker fitted to held-out
# images.

print(f"single SSVM      {1 - PerturbedSSVM(GridCRF(), 1, C=0.01).fit([x], [y]).score(X, Y):.3f}")
print(f"best of six      {1 - coulomb.pick_best_score(X[1::2], Y[1::2]):.3f}")
print(f"consensus        {1 - coulomb.score(X[1::2], Y[1::2]):.3f}")
coulomb.fit_reranker(X[::2], Y[::2])
print(f"re-ranked        {1 - coulomb.score(X[1::2], Y[1::2]):.3f}")
plt.show()
