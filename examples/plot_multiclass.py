"""
One-vs-one, one-vs-rest and error-correcting codes (CodeMatrixClassifier)
=========================================================================

Binary classifiers solve multi-class problems by one subproblem for each pair of classes, for each
class against the rest, or for other splits of the classes. All of these are code matrices: a row
for each class, a column for each binary subproblem.
"""

from time import perf_counter

import numpy as np
from matplotlib import pyplot

from widemargin import SVC, CodeMatrixClassifier, code_matrix
from widemargin.datasets import load_vowel
from widemargin.plotting import CodeMatrixDisplay

X, y = load_vowel(subset="train", return_X_y=True)
X_test, y_test = load_vowel(subset="test", return_X_y=True)

# %%
# Blue classes are positive, orange ones negative, white ones left out. The more two rows differ,
# the more binary decisions may be wrong before one class is taken for the other.

names = ("ovr", "ovo", "dense", "sparse")
figure, axes = pyplot.subplots(
    4, 1, figsize=(7.5, 9), height_ratios=[1, 1, 1, 1], layout="constrained"
)
for ax, name in zip(axes, names, strict=True):
    matrix, minimum_distance = code_matrix(name, 8)
    CodeMatrixDisplay(matrix, minimum_distance=minimum_distance).plot(ax=ax)
    ax.set_title(f"{name}: {ax.get_title()}", fontsize="medium")

# %%
# One-vs-one has many subproblems with few samples each, one-vs-rest few subproblems with all
# samples. With a shared kernel cache their costs are similar, and in prediction the kernel values
# against all support vectors are computed once.


def measured(code, decoding):
    model = CodeMatrixClassifier(SVC(C=10, gamma=1), code=code, decoding=decoding)
    model.fit(X, y)
    start = perf_counter()
    model.fit(X, y)
    trained = perf_counter()
    accuracy = model.score(X_test, y_test)
    return model, trained - start, perf_counter() - trained, accuracy


results = {}
print("code     columns  train ms  test ms  by loss  by votes")
for code in names:
    model, train, test, by_loss = measured(code, "loss")
    by_votes = measured(code, "hamming")[3]
    results[code] = model, by_loss, by_votes
    columns = model.code_matrix_.shape[1]
    times = f"{1e3 * train:8.0f}  {1e3 * test:7.0f}"
    print(f"{code:6}  {columns:8}  {times}  {by_loss:7.3f}  {by_votes:8.3f}")

# %%
# A code corrects errors of its binary classifiers. Here some decisions are replaced by random ones.
# One-vs-rest cannot correct them: each class depends on a single classifier.

rng = np.random.default_rng(0)
shares = np.linspace(0, 0.4, 9)
figure, ax = pyplot.subplots(figsize=(7.5, 4.2), layout="constrained")
for code, (model, _, _) in results.items():
    scores = np.column_stack([binary.decision_function(X_test) for binary in model.estimators_])
    matrix = model.code_matrix_
    kept = []
    for share in shares:
        accuracy = []
        for _ in range(5):
            broken = rng.random(scores.shape) < share
            signs = np.where(broken, rng.choice([-1.0, 1.0], scores.shape), np.sign(scores))
            accuracy.append((model.classes_[(signs @ matrix.T).argmax(axis=1)] == y_test).mean())
        kept.append(np.mean(accuracy))
    ax.plot(100 * shares, kept, marker="o", label=f"{code}, {matrix.shape[1]} columns")
ax.set(xlabel="binary decisions replaced by random ones, %", ylabel="accuracy by votes")
ax.set_title("Codes correct errors")
ax.legend()
