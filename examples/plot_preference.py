"""
Precision and recall constraints with few labels
================================================

At least nine of ten messages predicted as spam must be spam. `PreferenceSVC` takes such a
constraint: it chooses the threshold by cross-validation on the labeled samples, and trains on
unlabeled samples with confident predictions too, in several rounds.
"""

import warnings

import numpy as np
from matplotlib import pyplot
from sklearn.metrics import f1_score, precision_score, recall_score

from widemargin import SVC, PreferenceSVC, TransductiveSVC
from widemargin.plotting import PreferenceDisplay
from widemargin.semisupervised.thresholds import cross_fitted_threshold, labels_only


def messages(n, seed):
    """A quarter of the samples is positive; the classes overlap."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.25).astype(int)
    X = rng.standard_normal((n, 6))
    X[:, 0] += 2.0 * y
    X[:, 1] += 1.2 * y * np.sign(X[:, 2])
    return X, y


X, y = messages(600, seed=0)
X_unlabeled, _ = messages(1500, seed=1)
X_test, y_test = messages(20_000, seed=2)


def metrics_of(model):
    """Metrics of a classifier on new samples."""
    predicted = model.predict(X_test)
    measures = {"precision": precision_score, "recall": recall_score, "F1": f1_score}
    return ", ".join(f"{name} {of(y_test, predicted):.3f}" for name, of in measures.items())


model = PreferenceSVC(precision=0.9, gamma=0.1, random_state=0)
model.fit(X, y, X_unlabeled=X_unlabeled)
print(f"labels only:   {metrics_of(labels_only(SVC(gamma=0.1), X, y))}")
print(f"precision 0.9: {metrics_of(model)}")

# %%
# In the first round most unlabeled samples get a pseudo-label, later fewer and fewer. The model
# with the best metrics on the validation samples is used. Here it is the first: these classes
# overlap, and pseudo-labeled samples do not help. The last figure shows where they do.

PreferenceDisplay.from_estimator(model)

# %%
# Precision and recall on new samples, by threshold. The constraint is met where the blue line is
# above the dashed one. The gray line is the chosen threshold, at which the lower confidence limit
# of the precision on the validation samples meets the constraint (`margin`), so that it is met here
# too.

PreferenceDisplay.from_estimator(model, X_test, y_test)

# %%
# Other constraints need no training: `set_constraints` chooses another threshold.

print(f"recall 0.9:    {metrics_of(model.set_constraints(recall=0.9))}")
print(f"F2:            {metrics_of(model.set_constraints(beta=2.0))}")
print(f"1 FP = 5 FN:   {metrics_of(model.set_constraints(cost_ratio=5.0))}")

# %%
# A threshold that meets a constraint on some samples often misses it on new ones. With a
# `confidence`, a part of the labeled samples is used for calibration, and `guarantee_` reports
# whether the constraint holds on new samples with that probability and, if not, which bound is
# achievable. Here is how often recall 0.8 holds over forty draws of labels.

met = {None: [], 0.9: []}
refused = 0
for seed in range(40):
    samples, labels = messages(600, seed=100 + seed)
    for confidence, results in met.items():
        constrained = PreferenceSVC(
            recall=0.8, confidence=confidence, gamma=0.1, max_rounds=1, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            constrained.fit(samples, labels, X_unlabeled=X_unlabeled[:300])
        if confidence and not constrained.guarantee_.guaranteed:
            refused += 1
            continue
        results.append(recall_score(y_test[:5000], constrained.predict(X_test[:5000])))
for confidence, results in met.items():
    held = np.mean(np.array(results) >= 0.8)
    print(f"confidence {confidence}: held in {held:.0%} of {len(results)} draws")
print(f"not guaranteed in {refused} draws")
constrained = PreferenceSVC(precision=0.99, confidence=0.9, gamma=0.1, random_state=0)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    constrained.fit(X, y, X_unlabeled=X_unlabeled)
print(caught[0].message)

figure, ax = pyplot.subplots(figsize=(6.4, 3), layout="constrained")
for place, results in enumerate(met.values()):
    jitter = np.random.default_rng(0).uniform(-0.12, 0.12, len(results))
    ax.scatter(results, place + jitter, s=18, color=("#d55e00", "#0072b2")[place])
ax.axvline(0.8, linestyle="--", linewidth=1, color="0.3")
ax.set_yticks([0, 1], ["no guarantee", "confidence 0.9"])
ax.set(xlabel="recall on new samples (constraint: at least 0.8)", ylim=(-0.5, 1.5))

# %%
# Do the unlabeled samples help? If the classes form separate clusters and labels are few, they help
# much: the boundary between the clusters can be found without labels, by `TransductiveSVC`. If the
# classes overlap, the gain is due to the threshold, for which labeled samples are sufficient.


def two_clusters(n, seed, distance, features):
    """Two Gaussian classes; three in ten samples are positive."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.3).astype(int)
    samples = rng.standard_normal((n, features))
    samples[:, 0] += distance * (truth - 0.5)
    return samples, truth


counts = (30, 50, 100, 200)
figure, axes = pyplot.subplots(1, 2, figsize=(8, 3.4), sharey=True, layout="constrained")
for ax, (title, distance, features) in zip(
    axes, (("separate clusters", 4.0, 100), ("classes overlap", 1.8, 10)), strict=True
):
    found: dict = {}
    for count in counts:
        scores: dict = {}
        for seed in range(4):
            samples, truth = two_clusters(count + 1000 + 3000, seed, distance, features)
            labeled, unlabeled, new = np.split(np.arange(len(truth)), [count, count + 1000])
            data, parameters = (samples[labeled], truth[labeled]), {"kernel": "linear", "C": 0.1}
            constrained = PreferenceSVC(**parameters, random_state=seed)
            models = {
                "labels only": labels_only(SVC(**parameters), *data),
                "labels only, threshold": cross_fitted_threshold(
                    SVC(**parameters), *data, random_state=seed
                ),
                "PreferenceSVC": constrained.fit(*data, X_unlabeled=samples[unlabeled]),
                "TransductiveSVC": TransductiveSVC(**parameters).fit(
                    *data, X_unlabeled=samples[unlabeled]
                ),
            }
            for name, one in models.items():
                scores.setdefault(name, []).append(f1_score(truth[new], one.predict(samples[new])))
        for name, values in scores.items():
            found.setdefault(name, []).append(np.mean(values))
    colors = ("0.6", "#e69f00", "#0072b2", "#009e73")
    for (name, values), color in zip(found.items(), colors, strict=True):
        ax.plot(counts, values, "o-", color=color, label=name)
    ax.set(xscale="log", xlabel="labels", title=title)
    ax.set_xticks(counts, [str(count) for count in counts])
    ax.minorticks_off()
axes[0].set_ylabel("F1 on new samples")
axes[1].legend(fontsize="small")
