"""
Imbalanced classes and long tails
=================================

If one class has twenty times the samples of the other, a classifier that never predicts the rare
class has a high accuracy. This example compares three remedies: class margins, class weights and
another threshold; and with many classes, their effect from the head to the tail. For a fourth,
resampling, use imbalanced-learn: its pipelines accept all estimators of this library.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.model_selection import train_test_split

from widemargin import SVC, RescaledClassifier, imbalance_report
from widemargin.datasets import make_long_tail
from widemargin.plotting import ClassRecallDisplay

# %%
# Two classes: the boundary of a plain SVM is far inside the rare class. Rescaling predicts the rare
# class if p / (1 - p) > n+ / n-, which moves the boundary to where both classes are equally likely.

rng = np.random.default_rng(0)
y = np.repeat([0, 1], [600, 30])
X = rng.standard_normal((len(y), 2)) + 1.9 * np.outer(y, [1, 0.6])
weighted = SVC(kernel="linear", class_weight="balanced")
models = {
    "plain": SVC(kernel="linear"),
    "class margins": SVC(kernel="linear", class_margin="ldam"),
    "balanced weights": weighted,
    "rescaled": RescaledClassifier(weighted),
}
xx, yy = np.meshgrid(np.linspace(-4.2, 5, 100), np.linspace(-4.2, 4.5, 100))
figure, axes = pyplot.subplots(1, 4, figsize=(12, 3.6), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y)
    regions = model.predict(np.column_stack([xx.ravel(), yy.ravel()])).reshape(xx.shape)
    ax.contourf(xx, yy, regions, levels=[-0.5, 0.5, 1.5], colors=["#0072b2", "#d55e00"], alpha=0.2)
    for label, color in enumerate(["#0072b2", "#d55e00"]):
        ax.scatter(*X[y == label].T, s=8, color=color)
    report = imbalance_report(y, model.predict(X))
    ax.set_title(f"{name}\nrecall {report.recall[0]:.2f} and {report.recall[1]:.2f}", fontsize=10)

# %%
# Many classes with a long tail: the frequency of class j is proportional to the j-th power of a
# constant. A plain SVM has a high recall in the head only. Class weights and rescaling increase the
# recall of the tail and decrease that of the head. The test samples are balanced; the same seed and
# size give the same class means.

X, y = make_long_tail(4000, 20, imbalance=100, separation=3.5, random_state=0)
X_test, y_test = make_long_tail(4000, 20, imbalance=1, separation=3.5, random_state=0)
X, _, y, _ = train_test_split(X, y, train_size=0.5, stratify=y, random_state=0)
counts = np.bincount(y)
models = {
    "plain": SVC(C=10),
    "effective": SVC(C=10, class_weight="effective"),
    "ldam": SVC(C=10, class_margin="ldam"),
    "rescaled": RescaledClassifier(SVC(C=10, class_weight="balanced")),
}
figure, axes = pyplot.subplots(2, 2, figsize=(10, 7), sharex=True, sharey=True)
for ax, (name, model) in zip(axes.ravel(), models.items(), strict=True):
    ClassRecallDisplay.from_estimator(
        model.fit(X, y), X_test, y_test, counts=counts, name=name, ax=ax
    )
figure.tight_layout()

# %%
# The report contains the same numbers.

predicted = models["rescaled"].predict(X_test)
print(imbalance_report(y_test, predicted, counts=counts))
