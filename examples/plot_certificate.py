"""
Duality gap of a fit (SVC)
==========================

A fitted model reports how far it is from the optimum, without knowing the optimum: `dual_gap_` is a
bound. Here fits are stopped early, and the bound is compared with the true distance, which is known
from a fit that converged.
"""

import warnings

import numpy as np
from matplotlib import pyplot
from sklearn.exceptions import ConvergenceWarning

from widemargin import SVC
from widemargin.datasets import load_satimage

X, y = load_satimage(subset="train", return_X_y=True)
X, y = X[:2500], y[:2500] == 3

finished = SVC(C=100).fit(X, y)
print(f"finished: objective {finished.objective_[0]:.6f}, gap {finished.dual_gap_[0]:.0e}")

# %%
# A fit that is stopped before convergence warns. Here that is intended.

warnings.simplefilter("ignore", ConvergenceWarning)

limits = np.geomspace(100, 10_000, 40).astype(int)
stopped = [SVC(C=100, max_iter=limit).fit(X, y) for limit in limits]
bound = np.array([model.dual_gap_[0] for model in stopped])
truth = np.array([1 - finished.objective_[0] / model.objective_[0] for model in stopped])

# %%
# The true distance never exceeds the duality gap, and the gap is tight: a little above the true
# distance at first, almost equal to it later.

figure, ax = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
ax.fill_between(limits, bound, 1e-9, color="#0072b2", alpha=0.12, linewidth=0)
ax.plot(limits, bound, color="#0072b2", label="bound: dual_gap_")
ax.plot(limits, truth, ".", color="#d55e00", label="true distance from the optimum")
ax.set(xscale="log", yscale="log", xlim=limits[[0, -1]], ylim=(bound.min() / 3, 2))
ax.set(xlabel="iterations allowed (max_iter)", ylabel="relative distance")
ax.set_title("Distance from the optimum of a fit that was stopped")
ax.legend(loc="lower left")
print(f"the bound is at most {(bound / truth).max():.1f} times the true distance")
