r"""
Kernel approximation with a bound on the loss (Nystroem)
========================================================

The training time of an exact kernel SVM grows about quadratically with the number of samples. For
hundreds of thousands of samples, a kernel approximation is faster: choose some samples as
landmarks, describe each sample by its kernel values against them
(`sklearn.kernel_approximation.Nystroem`), and train a linear SVM on these features. How much is
lost?

The function f of the linear SVM is also a candidate of the exact problem: a sum of kernels at the
landmarks, with a norm of at most that of the linear weights w. So its objective over all n samples,

.. math::

    P(f) = \tfrac12 \|w\|^2 + C \sum_{i=1}^n \max(0, 1 - y_i f(x_i)),

is no lower than the exact optimum :math:`P^*`. For a lower bound, draw a random subset S of m
samples and weight each by n/m:

.. math::

    P_S(f) = \tfrac12 \|f\|^2 + C \tfrac nm \sum_{i \in S} \max(0, 1 - y_i f(x_i)).

On average over subsets this is P(f), and the average of its minimum :math:`P_S^*` is no higher than
:math:`P^*`, since each subset has its own minimizer (Mak, Morton and Wood, 1999). Hence, on
average,

.. math::

    P(f) - P^* \le P_S(f) - P_S^*

and the right side needs an exact fit to a subset only. Its own duality gap is part of the bound:
the dual value `objective_ * (1 - dual_gap_)` replaces the minimum.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.kernel_approximation import Nystroem

from widemargin import SVC, LinearSVC

rng = np.random.default_rng(0)
n = 100_000
X = rng.uniform(-1, 1, (n, 2))
chance = 1 / (1 + np.exp(-8 * np.sin(5 * X[:, 0]) * np.sin(5 * X[:, 1])))
y = np.where(rng.random(n) < chance, 1, -1)
C, gamma = 1000 / n, 4.0

# %%
# The exact fits to subsets do not depend on the approximation.


def optimum(subset):
    """Return a lower bound of the optimum on a subset."""
    model = SVC(C=C * n / len(subset), gamma=gamma).fit(X[subset], y[subset])
    return model.objective_[0] * (1 - model.dual_gap_[0])


sizes = (1000, 4000)
subsets = {m: [rng.choice(n, m, replace=False) for _ in range(5)] for m in sizes}
optima = {m: [optimum(subset) for subset in subsets[m]] for m in sizes}

# %%
# The approximations use more and more landmarks. The bound is the mean over the subsets; its
# standard error is shown too.


def objective(norm, loss):
    return norm / 2 + C * n * loss.mean()


landmarks = np.array([10, 20, 40, 80, 160])
bound, error = ({m: [] for m in sizes} for _ in range(2))
for count in landmarks:
    features = Nystroem(gamma=gamma, n_components=count, random_state=0).fit_transform(X)
    linear = LinearSVC(C=C, loss="hinge", tol=0.01).fit(features, y)
    norm = (linear.coef_**2).sum()
    loss = np.maximum(0, 1 - y * linear.decision_function(features))
    reached = objective(norm, loss)
    for m in sizes:
        gaps = [
            objective(norm, loss[subset]) - least
            for subset, least in zip(subsets[m], optima[m], strict=True)
        ]
        bound[m].append(np.mean(gaps) / reached)
        error[m].append(np.std(gaps, ddof=1) / np.sqrt(len(gaps)) / reached)
    print(
        f"{count:4} landmarks: objective {reached:6.2f}, of which at most {bound[4000][-1]:6.2%} "
        f"(+- {error[4000][-1]:.2%}) is too much"
    )

# %%
# With few landmarks most of the bound is the loss of the approximation, which decreases with their
# number. The rest comes from the subset: a small one can be fitted more closely than all samples.

figure, ax = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
for m, color in zip(sizes, ("#d55e00", "#0072b2"), strict=True):
    label = f"from subsets of {m:,} samples"
    ax.errorbar(landmarks, bound[m], 2 * np.array(error[m]), fmt="o-", color=color, label=label)
ax.set(xscale="log", yscale="log", xticks=landmarks, xticklabels=landmarks)
ax.minorticks_off()
ax.set(xlabel="landmarks", ylabel="bound on the excess, relative")
ax.set_title(f"Bound on the distance from the exact optimum on {n:,} samples")
ax.legend()

# %%
# .. rubric:: References
#
# W.-K. Mak, D. P. Morton and R. K. Wood (1999). Monte Carlo bounding techniques for determining
# solution quality in stochastic programs. Operations Research Letters 24, 47-56.
#
# C. K. I. Williams and M. Seeger (2001). Using the Nyström method to speed up kernel machines.
# Advances in Neural Information Processing Systems 13.
