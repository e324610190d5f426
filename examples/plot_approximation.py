r"""
Many rows: features instead of a kernel, with a certificate
===========================================================

An exact kernel machine takes time that grows with about the square of the number of rows. For
hundreds of thousands of rows there is another way: choose some rows as landmarks, describe every
row by its kernel values against them (`sklearn.kernel_approximation.Nystroem`), and train a linear
machine on that. But how much is lost?

The linear machine's function f is one that the exact machine could have chosen, too: a sum of
kernels at the landmarks, with a norm of at most that of the linear weights w. So its objective over
all n rows,

.. math::

    P(f) = \tfrac12 \|w\|^2 + C \sum_{i=1}^n \max(0, 1 - y_i f(x_i)),

is no lower than the exact optimum :math:`P^*`. From the other side, take a random sample of m rows
and let each stand for n/m of them:

.. math::

    P_S(f) = \tfrac12 \|f\|^2 + C \tfrac nm \sum_{i \in S} \max(0, 1 - y_i f(x_i)).

On average over samples this is P(f), and the average of its minimum :math:`P_S^*` is no higher than
:math:`P^*`, since every sample may choose a function of its own (Mak, Morton and Wood, 1999).
Hence, on average,

.. math::

    P(f) - P^* \le P_S(f) - P_S^*

and the right side needs an exact machine on a sample only. Its own gap is part of the bound: the
dual value `objective_ * (1 - dual_gap_)` takes the place of the minimum.
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
# Exact machines on samples come first: they do not depend on the approximation.


def optimum(rows):
    """The lowest objective on a sample, from below."""
    machine = SVC(C=C * n / len(rows), gamma=gamma).fit(X[rows], y[rows])
    return machine.objective_[0] * (1 - machine.dual_gap_[0])


sizes = (1000, 4000)
samples = {m: [rng.choice(n, m, replace=False) for _ in range(5)] for m in sizes}
optima = {m: [optimum(rows) for rows in samples[m]] for m in sizes}

# %%
# Now the approximations, with more and more landmarks. The bound is the mean over the samples, and
# its standard error says how far to trust it.


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
            objective(norm, loss[rows]) - least
            for rows, least in zip(samples[m], optima[m], strict=True)
        ]
        bound[m].append(np.mean(gaps) / reached)
        error[m].append(np.std(gaps, ddof=1) / np.sqrt(len(gaps)) / reached)
    print(
        f"{count:4} landmarks: objective {reached:6.2f}, of which at most {bound[4000][-1]:6.2%} "
        f"(+- {error[4000][-1]:.2%}) is too much"
    )

# %%
# With few landmarks most of the bound is what the approximation loses; it falls as they become
# more. What remains is the price of the sample: a machine fits a small one more closely than it can
# fit all rows, a large one less so.

figure, ax = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
for m, color in zip(sizes, ("#d55e00", "#0072b2"), strict=True):
    label = f"from samples of {m:,} rows"
    ax.errorbar(landmarks, bound[m], 2 * np.array(error[m]), fmt="o-", color=color, label=label)
ax.set(xscale="log", yscale="log", xticks=landmarks, xticklabels=landmarks)
ax.minorticks_off()
ax.set(xlabel="landmarks", ylabel="bound on the excess, relative")
ax.set_title(f"How far from the exact machine on {n:,} rows, at most?")
ax.legend()

# %%
# .. rubric:: References
#
# W.-K. Mak, D. P. Morton and R. K. Wood (1999). Monte Carlo bounding techniques for determining
# solution quality in stochastic programs. Operations Research Letters 24, 47-56.
#
# C. K. I. Williams and M. Seeger (2001). Using the Nyström method to speed up kernel machines.
# Advances in Neural Information Processing Systems 13.
