"""
How exact is a fit?
===================

A fitted machine tells how far it is from the best, without knowing the best: `dual_gap_` bounds it.
Here fits are stopped earlier and later, and the bound is compared with the truth, which is known
from a fit that was allowed to finish.
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
# A fit that is stopped before it converged warns. Here that is on purpose.

warnings.simplefilter("ignore", ConvergenceWarning)

limits = np.geomspace(100, 10_000, 40).astype(int)
stopped = [SVC(C=100, max_iter=limit).fit(X, y) for limit in limits]
bound = np.array([machine.dual_gap_[0] for machine in stopped])
truth = np.array([1 - finished.objective_[0] / machine.objective_[0] for machine in stopped])

# %%
# The certificate never promises too much: the truth stays below it. And it gives little away: early
# on it is a little above the truth, later the two can hardly be told apart.

figure, ax = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
ax.fill_between(limits, bound, 1e-9, color="#0072b2", alpha=0.12, linewidth=0)
ax.plot(limits, bound, color="#0072b2", label="certificate: dual_gap_")
ax.plot(limits, truth, ".", color="#d55e00", label="truth: distance from the best objective")
ax.set(xscale="log", yscale="log", xlim=limits[[0, -1]], ylim=(bound.min() / 3, 2))
ax.set(xlabel="iterations allowed (max_iter)", ylabel="relative distance")
ax.set_title("How far from the best is a fit that was stopped?")
ax.legend(loc="lower left")
print(f"the certificate is at most {(bound / truth).max():.1f} times the truth")
