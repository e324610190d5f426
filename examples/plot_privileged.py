"""
Does privileged information help?
=================================

`PrivilegedSVC` uses features that are known for the training samples only to find out which of them
are difficult. Whether that helps depends on these features. In the first data set below they
measure how far noise has moved the label of a sample: such samples need not be fitted. In the
second they are a noisy copy of X, which is not informative about the slack: the model is then less
accurate than without them, and warns that its decision function is zero (not shown below).

The models are compared on test samples, with two controls that cost nothing: the same features
shuffled over the samples, and none at all. If the shuffled features are as good, the information in
them is not what helps.
"""

# %%
# Both data sets have few training samples, and a linear rule blurred by noise.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from widemargin import PrivilegedSVC
from widemargin.plotting import SlackDisplay


def blurred(rng, n, informative):
    X = rng.normal(size=(n, 10))
    noise = 2.0 * rng.normal(size=n) * (rng.random(n) < 0.5)
    score = X[:, 0] + X[:, 1]
    y = np.where(score + noise > 0, 1, -1)
    # By how much the sample misses the side of its label, or a copy of two features.
    missing = np.maximum(0.0, 1.0 - y * score)[:, np.newaxis]
    return X, np.sign(score), y, missing if informative else X[:, :2] + rng.normal(size=(n, 2))


# %%
# Every model is trained on 60 samples and tested on the rule itself, over 20 draws.

SETS = {"features that measure the noise": True, "features that copy X": False}
accuracy = {}
for title, informative in SETS.items():
    rows = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, _, y, Z = blurred(rng, 60, informative)
        X_test, truth, _, _ = blurred(rng, 2000, informative)
        shuffled = Z[rng.permutation(len(Z))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            rows.append(
                [
                    PrivilegedSVC(kernel="linear", privileged_penalty=0.01, slack_ridge=0.0)
                    .fit(X, y, privileged=privileged)
                    .score(X_test, truth)
                    for privileged in (None, Z, shuffled)
                ]
            )
    accuracy[title] = np.array(rows)

for title, rows in accuracy.items():
    plain, informed, control = rows.mean(axis=0)
    wins = np.mean(rows[:, 1] > np.maximum(rows[:, 0], rows[:, 2]))
    print(f"{title}: without {plain:.3f}, with {informed:.3f}, shuffled {control:.3f};", end=" ")
    print(f"better than both in {wins:.0%} of the draws")

# %%
# A real gain occurs in every draw, vanishes when the features are shuffled, and the fitted slack
# depends on the features.

fig, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained", width_ratios=[1, 1.3])
for (left, right), (title, informative) in zip(axes, SETS.items(), strict=True):
    left.axhline(0, color="0.6", linewidth=0.8)
    for k, (name, column) in enumerate({"as they are": 1, "shuffled": 2}.items()):
        gain = accuracy[title][:, column] - accuracy[title][:, 0]
        left.boxplot(gain, positions=[k], widths=0.5, tick_labels=[name])
    left.set(title=title, ylabel="gain in accuracy")
    X, _, y, Z = blurred(np.random.default_rng(0), 60, informative)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = PrivilegedSVC(kernel="linear", privileged_penalty=0.01, slack_ridge=0.0).fit(
            X, y, privileged=Z
        )
    SlackDisplay.from_estimator(model, Z, y, ax=right)
    right.set(title="fitted slack")
plt.show()
