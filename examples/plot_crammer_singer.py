"""
Confidence of multi-class predictions (CrammerSingerSVC)
========================================================

Binary classifiers of each class against the rest have scores that are not comparable.
`CrammerSingerSVC` trains the functions of all classes together, so that the difference between the
two largest scores measures the confidence of a prediction. Samples with a small difference are the
ones that are often misclassified.
"""

import numpy as np
from matplotlib import pyplot

from widemargin import CrammerSingerSVC
from widemargin.datasets import load_satimage

X, y = load_satimage(subset="train", return_X_y=True)
X_test, y_test = load_satimage(subset="test", return_X_y=True)
X, y = X[::3], y[::3]

model = CrammerSingerSVC(kernel="rbf", C=10.0).fit(X, y)
print(f"accuracy {model.score(X_test, y_test):.3f}, relative gap {model.dual_gap_:.0e}")

# %%
# `top_two` predicts the two best classes of every sample, with their scores.

labels, scores = model.top_two(X_test)
lead = scores[:, 0] - scores[:, 1]
right = labels[:, 0] == y_test
second = labels[:, 1] == y_test
print(f"{second[~right].mean():.0%} of the misclassified samples have the second best class")

# %%
# Samples are sorted by the difference. The fewer of them are predicted, the better the accuracy.

order = np.argsort(-lead)
kept = np.arange(1, len(order) + 1)
accuracy = np.cumsum(right[order]) / kept
figure, ax = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
ax.plot(kept[50:] / len(order), accuracy[50:], color="#0072b2")
ax.set(xlabel="share of samples predicted, most confident first", ylabel="accuracy", xlim=(0, 1))
ax.set_title("Accuracy by confidence")
