"""
The path of a linear machine along C
====================================

`LinearSVCCV` solves the machines of every fold along increasing C, each from the solution before,
and keeps the scores of all of them. Here is what it saw on the rows of satellite images, and what
the certificate says about the machine it settled on.
"""

import numpy as np
from matplotlib import pyplot

from widemargin import LinearSVCCV
from widemargin.datasets import load_satimage

X, y = load_satimage(subset="train", return_X_y=True)

search = LinearSVCCV(Cs=np.geomspace(1e-4, 10.0, 11), cv=5).fit(X, y)
print(f"best C {search.C_:.3g}, accuracy {search.best_score_:.3f}")
print(f"largest relative gap of the final machines: {search.dual_gap_.max():.0e}")

# %%
# Every fold is a thin line; their mean decides.

mean = search.scores_.mean(axis=1)
figure, ax = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
ax.plot(search.Cs, search.scores_, color="#0072b2", alpha=0.25, linewidth=1)
ax.plot(search.Cs, mean, color="#0072b2", marker="o", label="mean over folds")
ax.axvline(search.C_, color="#d55e00", linestyle="--", label=f"best C = {search.C_:.3g}")
ax.set(xscale="log", xlabel="C", ylabel="accuracy on held-out rows")
ax.set_title("Accuracy along C, one class against the rest")
ax.legend(loc="lower right")
