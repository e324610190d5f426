"""
Does privileged information help?
=================================

`PrivilegedSVC` lets columns that only the training rows have say which of them are hard. Whether
that helps depends on what they say. In the first set below they tell how far noise has put the
label of a row off: such rows are known, and need not be fitted. In the second they are a noisy copy
of X, which says nothing about slack: the machine then does worse than without, and its warning that
the function is 0 (left out below) says so.

The test rows are the judge, and so are two controls that cost nothing: the same columns shuffled
over the rows, and none at all. Where the shuffled columns do as well, it is not what the columns
say that helps.
"""

# %%
# Both sets have few training rows, and a linear rule blurred by noise.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from widemargin import PrivilegedSVC
from widemargin.plotting import SlackDisplay


def blurred(rng, n, telling):
    X = rng.normal(size=(n, 10))
    noise = 2.0 * rng.normal(size=n) * (rng.random(n) < 0.5)
    score = X[:, 0] + X[:, 1]
    y = np.where(score + noise > 0, 1, -1)
    # How far the row is from the side that its label says, or a copy of two columns.
    missing = np.maximum(0.0, 1.0 - y * score)[:, np.newaxis]
    return X, np.sign(score), y, missing if telling else X[:, :2] + rng.normal(size=(n, 2))


# %%
# Every machine is trained on 60 rows and judged on the rule itself, over 20 draws.

SETS = {"columns that know the noise": True, "columns that copy X": False}
accuracy = {}
for title, telling in SETS.items():
    rows = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, _, y, Z = blurred(rng, 60, telling)
        X_test, truth, _, _ = blurred(rng, 2000, telling)
        shuffled = Z[rng.permutation(len(Z))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            rows.append(
                [
                    PrivilegedSVC(kernel="linear", privileged_penalty=0.01)
                    .fit(X, y, privileged=columns)
                    .score(X_test, truth)
                    for columns in (None, Z, shuffled)
                ]
            )
    accuracy[title] = np.array(rows)

for title, rows in accuracy.items():
    plain, informed, control = rows.mean(axis=0)
    wins = np.mean(rows[:, 1] > np.maximum(rows[:, 0], rows[:, 2]))
    print(f"{title}: without {plain:.3f}, with {informed:.3f}, shuffled {control:.3f};", end=" ")
    print(f"better than both in {wins:.0%} of the draws")

# %%
# How to tell: the gain is there in every draw, it is gone when the columns are shuffled, and the
# slack that was learned follows them.

fig, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained", width_ratios=[1, 1.3])
for (left, right), (title, telling) in zip(axes, SETS.items(), strict=True):
    left.axhline(0, color="0.6", linewidth=0.8)
    for k, (name, column) in enumerate({"as they are": 1, "shuffled": 2}.items()):
        gain = accuracy[title][:, column] - accuracy[title][:, 0]
        left.boxplot(gain, positions=[k], widths=0.5, tick_labels=[name])
    left.set(title=title, ylabel="gain in accuracy over no columns")
    X, _, y, Z = blurred(np.random.default_rng(0), 60, telling)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = PrivilegedSVC(kernel="linear", privileged_penalty=0.01).fit(X, y, privileged=Z)
    SlackDisplay.from_estimator(model, Z, y, ax=right)
    right.set(title="slack that was learned")
plt.show()
