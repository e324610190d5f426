"""
Choosing C of a linear classifier by cross-validation (LinearSVCCV)
===================================================================

`LinearSVCCV` solves the binary subproblems of every fold for increasing C, each from the previous
solution, and keeps all scores. This example shows the scores on features of satellite images and
the duality gap of the final model.
"""

import numpy as np
from matplotlib import pyplot

from widemargin import LinearSVCCV
from widemargin.datasets import load_satimage

X, y = load_satimage(subset="train", return_X_y=True)

search = LinearSVCCV(Cs=np.geomspace(1e-4, 10.0, 11), cv=5).fit(X, y)
print(f"best C {search.C_:.3g}, accuracy {search.best_score_:.3f}")
print(f"largest relative duality gap of the final model: {search.dual_gap_.max():.0e}")

# %%
# The thin lines are the folds. The C with the best mean is chosen.

mean = search.scores_.mean(axis=1)
figure, ax = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
ax.plot(search.Cs, search.scores_, color="#0072b2", alpha=0.25, linewidth=1)
ax.plot(search.Cs, mean, color="#0072b2", marker="o", label="mean over folds")
ax.axvline(search.C_, color="#d55e00", linestyle="--", label=f"best C = {search.C_:.3g}")
ax.set(xscale="log", xlabel="C", ylabel="accuracy on held-out samples")
ax.set_title("Cross-validated accuracy by C (one-vs-rest)")
ax.legend(loc="lower right")
