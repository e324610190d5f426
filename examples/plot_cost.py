"""
Regularization parameter C (SVC)
================================

The strength of the regularization is inversely proportional to `C`. A small C gives a wide margin
with many samples inside; a large C bends the boundary around single samples.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import make_moons

from widemargin import SVC
from widemargin.plotting import MarginDisplay

X, y = make_moons(150, noise=0.25, random_state=1)

figure, axes = pyplot.subplots(1, 3, figsize=(11, 4.2), sharey=True, layout="constrained")
for ax, C in zip(axes, [0.1, 1, 1000], strict=True):
    model = SVC(C=C, gamma=1).fit(X, y)
    MarginDisplay.from_estimator(model, X, y, ax=ax)
    ax.set_title(f"C = {C:g}: {model.n_support_.sum()} support vectors")
    ax.label_outer()
    legend = ax.get_legend()
    legend.remove()
figure.legend(handles=legend.legend_handles, loc="outside lower center", ncols=5)

# %%
# The darker regions are beyond the margin. Only the circled samples, on the margin or within it,
# are support vectors: without all other samples the model is the same.

model = SVC(C=1, gamma=1).fit(X, y)
kept = model.support_
alone = SVC(C=1, gamma=1).fit(X[kept], y[kept])
print(np.abs(model.decision_function(X) - alone.decision_function(X)).max())
