"""
What C does
===========

`C` is the price of a unit of slack. A low price buys a wide margin that many rows may enter; a high
one bends the boundary around every row.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import make_moons

from widemargin import SVC
from widemargin.plotting import MarginDisplay

X, y = make_moons(150, noise=0.25, random_state=1)

figure, axes = pyplot.subplots(1, 3, figsize=(11, 4.2), sharey=True, layout="constrained")
for ax, C in zip(axes, [0.1, 1, 1000], strict=True):
    machine = SVC(C=C, gamma=1).fit(X, y)
    MarginDisplay.from_estimator(machine, X, y, ax=ax)
    ax.set_title(f"C = {C:g}: {machine.n_support_.sum()} support vectors")
    ax.label_outer()
    legend = ax.get_legend()
    legend.remove()
figure.legend(handles=legend.legend_handles, loc="outside lower center", ncols=5)

# %%
# The darker parts lie beyond the margin. Only the ringed rows, on the margin or within it, hold the
# boundary in its place: without all the others the machine is the same.

machine = SVC(C=1, gamma=1).fit(X, y)
kept = machine.support_
alone = SVC(C=1, gamma=1).fit(X[kept], y[kept])
print(np.abs(machine.decision_function(X) - alone.decision_function(X)).max())
