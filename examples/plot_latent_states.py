"""
Latent states: parts without labels
===================================

Crosses on a noisy background have one label. A model with one state per label can only learn that
neighbors tend to be equal. With two latent states of the label, `LatentSSVM` finds the parts of a
cross by itself, the center and the arms, and what may be next to what.
"""

import matplotlib.pyplot as plt

from widemargin.structured import LatentGridCRF, LatentSSVM, OneSlackSSVM
from widemargin.structured.datasets import generate_crosses

X, Y = generate_crosses(n_samples=20, noise=5, n_crosses=1, total_size=8)
train, test = slice(10), slice(10, None)

learners = {}
for n_states in (1, 2):
    model = LatentGridCRF(n_states_per_label=[1, n_states])
    base = OneSlackSSVM(model, C=10.0, tol=0.05, inference_cache=20)
    learners[n_states] = LatentSSVM(base).fit(X[train], Y[train])
    score = learners[n_states].score(X[test], Y[test])
    print(f"{n_states} state(s) of a cross: {score:.3f} of the pixels of other images")

# %%
# An image that was not used for training: its input, the predictions of both, and the states.
image = X[test][1:2]
panels = {
    "input": image[0].argmax(axis=2),
    "true labels": Y[test][1],
    "one state": learners[1].predict(image)[0],
    "two states": learners[2].predict(image)[0],
    "latent states": learners[2].predict_latent(image)[0],
}
figure, axes = plt.subplots(1, 5, figsize=(9, 2.2), layout="constrained")
for axis, (title, labels) in zip(axes, panels.items(), strict=True):
    axis.imshow(labels, vmin=0, vmax=2, cmap="viridis")
    axis.set(title=title, xticks=[], yticks=[])
plt.show()
