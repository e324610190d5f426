"""
How exact is a fit?
===================

A fitted machine tells how far it is from the best, without knowing the best: `dual_gap_` bounds it.
Here a fit is stopped earlier and later, and the bound is compared with the truth, which a fit to a
gap of 1e-12 provides.
"""

import warnings

import numpy as np
from matplotlib import pyplot
from sklearn.exceptions import ConvergenceWarning

from widemargin import SVC
from widemargin.datasets import load_satimage

X, y = load_satimage(subset="train", return_X_y=True)
X, y = X[:1500], y[:1500] == 2

best = SVC(C=10, gap_tol=1e-12).fit(X, y).objective_[0]

# %%
# A fit that was stopped before it converged says so in a warning. It is what we want here.

warnings.simplefilter("ignore", ConvergenceWarning)

limits = np.unique(np.geomspace(30, 3000, 25).astype(int))
stopped = [SVC(C=10, max_iter=limit).fit(X, y) for limit in limits]
bound = np.array([machine.dual_gap_[0] for machine in stopped])
truth = np.array([1 - best / machine.objective_[0] for machine in stopped])

# %%
# The certificate never promises too much: the truth stays below the bound.

figure, ax = pyplot.subplots(figsize=(7, 4), layout="constrained")
ax.fill_between(limits, bound, 1e-16, color="#0072b2", alpha=0.12)
ax.plot(limits, bound, color="#0072b2", label="the certificate: dual_gap_")
ax.plot(
    limits, truth, ".", color="#d55e00", label="the truth: distance of the objective from the best"
)
ax.set(xscale="log", yscale="log", xlabel="iterations allowed", ylabel="relative distance")
ax.set(ylim=(1e-8, 2))
ax.legend()
