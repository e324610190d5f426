"""
Rescaling and long tails
========================

Where one class has twenty times the rows of the other, a classifier is right most of the time if
it never names the rare one. Three remedies are shown: margins by class, class weights and another
threshold; and with many classes, what happens from the head to the tail. A fourth, resampling, is
imbalanced-learn's: its pipelines take all estimators here.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.model_selection import train_test_split

from widemargin import SVC, RescaledClassifier, imbalance_report
from widemargin.datasets import make_long_tail
from widemargin.plotting import ClassRecallDisplay

# %%
# Two classes: the boundary of a plain machine lies far inside the rare class. Rescaling decides by
# p / (1 - p) > n+ / n- and moves it to where both classes are equally likely.

rng = np.random.default_rng(0)
y = np.repeat([0, 1], [600, 30])
X = rng.standard_normal((len(y), 2)) + 1.9 * np.outer(y, [1, 0.6])
weighted = SVC(kernel="linear", class_weight="balanced")
machines = {
    "plain": SVC(kernel="linear"),
    "margins by class": SVC(kernel="linear", class_margin="ldam"),
    "balanced weights": weighted,
    "rescaled": RescaledClassifier(weighted),
}
xx, yy = np.meshgrid(np.linspace(-4.2, 5, 100), np.linspace(-4.2, 4.5, 100))
figure, axes = pyplot.subplots(1, 4, figsize=(12, 3.6), sharey=True, layout="constrained")
for ax, (name, machine) in zip(axes, machines.items(), strict=True):
    machine.fit(X, y)
    regions = machine.predict(np.column_stack([xx.ravel(), yy.ravel()])).reshape(xx.shape)
    ax.contourf(xx, yy, regions, levels=[-0.5, 0.5, 1.5], colors=["#0072b2", "#d55e00"], alpha=0.2)
    for label, color in enumerate(["#0072b2", "#d55e00"]):
        ax.scatter(*X[y == label].T, s=8, color=color)
    report = imbalance_report(y, machine.predict(X))
    ax.set_title(f"{name}\nrecall {report.recall[0]:.2f} and {report.recall[1]:.2f}", fontsize=10)

# %%
# Many classes with a long tail: class j of K has a share that falls with the power j of a constant.
# A plain machine lives from the head; weights and rescaling give the tail its due, and the
# head pays for it. The test rows are balanced; the same seed and size give the same class means.

X, y = make_long_tail(4000, 20, imbalance=100, separation=3.5, random_state=0)
X_test, y_test = make_long_tail(4000, 20, imbalance=1, separation=3.5, random_state=0)
X, _, y, _ = train_test_split(X, y, train_size=0.5, stratify=y, random_state=0)
counts = np.bincount(y)
machines = {
    "plain": SVC(C=10),
    "effective": SVC(C=10, class_weight="effective"),
    "ldam": SVC(C=10, class_margin="ldam"),
    "rescaled": RescaledClassifier(SVC(C=10, class_weight="balanced")),
}
figure, axes = pyplot.subplots(2, 2, figsize=(10, 7), sharex=True, sharey=True)
for ax, (name, machine) in zip(axes.ravel(), machines.items(), strict=True):
    ClassRecallDisplay.from_estimator(
        machine.fit(X, y), X_test, y_test, counts=counts, name=name, ax=ax
    )
figure.tight_layout()

# %%
# The report tells the same in numbers.

decided = machines["rescaled"].predict(X_test)
print(imbalance_report(y_test, decided, counts=counts))
