"""
Rounds of self-training under a constraint
==========================================

How `PreferenceSVC` labels unlabeled samples: each round trains an SVM, chooses two thresholds on
the validation samples, and gives pseudo-labels to the unlabeled samples beyond them.
"""

import numpy as np
from matplotlib import pyplot

from widemargin import PreferenceSVC
from widemargin.semisupervised.constraints import Constraints, ScoredSamples, ThresholdCurve

BLUE, RED, GRAY = "#0072b2", "#d55e00", "0.75"

# %%
# Thresholds
# ----------
#
# Twenty positive and thirty negative validation samples by their scores. At threshold 0, the solid
# line, 14 of the positive samples are found (recall 0.7), and two negative ones are accepted with
# them (precision 14/16). With the constraint ``recall=0.9`` the upper threshold is lowered until
# it is met, and no farther. With ``precision=0.95`` it is raised instead. Without a constraint, the
# smaller of the two metrics is raised to the larger one, here the recall to 0.875 or more. The
# lower threshold, dotted, is the mean score of the negative samples. Unlabeled samples between the
# two thresholds get no pseudo-label in this round.

positive = np.concatenate([np.linspace(-1.2, -0.1, 6), np.linspace(0.15, 2.4, 14)])
negative = np.concatenate([np.linspace(-2.6, -0.15, 28), [0.1, 0.55]])
scores = np.concatenate([positive, negative])
validation = ScoredSamples(scores, np.arange(50) < 20)

figure, axes = pyplot.subplots(3, 1, figsize=(8, 5.4), sharex=True, layout="constrained")
for ax, bounds in zip(axes, [{"recall": 0.9}, {"precision": 0.95}, {}], strict=True):
    upper = Constraints(**bounds).adjusted_threshold(validation)
    ax.axvspan(upper, 2.6, color=RED, alpha=0.12)
    ax.axvspan(-2.8, min(negative.mean(), upper), color=BLUE, alpha=0.12)
    ax.plot(positive, np.full(20, 0.6), "+", color=RED, label="positive")
    ax.plot(negative, np.full(30, 0.4), "_", color=BLUE, label="negative")
    ax.axvline(0.0, color="black", linewidth=1)
    ax.axvline(upper, color="black", linestyle="--", linewidth=1)
    ax.axvline(negative.mean(), color="black", linestyle=":", linewidth=1)
    curve = ThresholdCurve(validation, [upper])
    wanted = ", ".join(f"{name} at least {bound}" for name, bound in bounds.items())
    ax.set_title(
        f"{wanted or 'no constraint'}: upper threshold {upper:.2f}, precision "
        f"{curve.precision[0]:.2f}, recall {curve.recall[0]:.2f}",
        fontsize="medium",
    )
    ax.set(ylim=(0.2, 0.8), xlim=(-2.8, 2.6), yticks=[])
axes[0].legend(fontsize="small", loc="upper left")
axes[-1].set_xlabel("score")

# %%
# Rounds
# ------
#
# Two moons, 40 labeled samples (circles) and 400 unlabeled ones. The first round has the labels
# only; every later one has the pseudo-labels of the rounds before, which are final with
# ``update="incremental"``. Samples without a pseudo-label are gray. The black line is the decision
# boundary at 0 of the best model so far, by its metrics on the validation samples.


def moons(n, seed):
    """Two half circles, with noise; three in ten samples are positive."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.3).astype(int)
    angle = np.pi * rng.random(n)
    sign = 1 - 2 * truth
    X = np.column_stack([np.cos(angle) * sign + truth, np.sin(angle) * sign + 0.5 * truth])
    return X + 0.22 * rng.standard_normal((n, 2)), truth


X, y = moons(40, seed=3)
U, _ = moons(400, seed=1)
parameters = {
    "precision": 0.8,
    "margin": None,
    "split": "holdout",
    "gamma": 1.0,
    "C": 10.0,
    "random_state": 0,
}
rounds = [PreferenceSVC(**parameters, max_rounds=k).fit(X, y, X_unlabeled=U) for k in (1, 2, 3)]
final = PreferenceSVC(**parameters).fit(X, y, X_unlabeled=U)

grid = np.meshgrid(np.linspace(-1.7, 2.7, 150), np.linspace(-1.3, 1.8, 150))
points = np.stack([axis.ravel() for axis in grid], axis=1)
figure, axes = pyplot.subplots(
    2, 2, figsize=(9, 6.4), sharex=True, sharey=True, layout="constrained"
)
titles = [
    "after round 1",
    "after round 2",
    "after round 3",
    f"after round {final.n_iter_}, the last",
]
for ax, title, model in zip(axes.ravel(), titles, [*rounds, final], strict=True):
    given = model.pseudo_labels_
    for label, color in ((0, GRAY), (-1, BLUE), (1, RED)):
        ax.plot(*U[given == label].T, ".", markersize=4, color=color)
    for label, color in ((0, BLUE), (1, RED)):
        ax.plot(*X[y == label].T, "o", markerfacecolor=color, markeredgecolor="black", markersize=6)
    ax.contour(*grid, model.score_samples(points).reshape(150, 150), [0.0], colors="black")
    ax.set_title(f"{title}: {np.count_nonzero(given)} pseudo-labels", fontsize="medium")

# %%
# Constraints and F1
# ------------------
#
# One model, and the precision, recall and F1 on 5,000 new samples for a range of constraints, each
# set by `set_constraints` without training. The dashed line is the constraint: the metric follows
# it from above where the constraint binds, and is larger where the best F1 meets it anyway.

X_new, y_new = moons(5000, seed=2)
X, y = moons(600, seed=4)
model = PreferenceSVC(gamma=1.0, C=10.0, random_state=0).fit(X, y, X_unlabeled=U)
figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, name in zip(axes, ("precision", "recall"), strict=True):
    bounds, found = np.linspace(0.6, 0.95, 25), []
    for bound in bounds:
        model.set_constraints(**{name: bound})
        samples = ScoredSamples(model.score_samples(X_new), y_new == 1)
        curve = ThresholdCurve(samples, [model.threshold_])
        found.append([curve.precision[0], curve.recall[0], curve.f_score()[0]])
    for metric, values, color in zip(
        ("precision", "recall", "F1"), np.transpose(found), (RED, BLUE, "black"), strict=True
    ):
        ax.plot(bounds, values, color=color, label=metric)
    ax.plot(bounds, bounds, linestyle="--", color="0.5", label="constraint")
    ax.set(xlabel=f"{name} at least")
axes[0].legend(fontsize="small")
