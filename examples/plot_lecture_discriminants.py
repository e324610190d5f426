r"""
Linear discriminant analysis, step by step
==========================================

Which directions separate the classes, and which class does a new sample belong to? Linear
discriminant analysis answers both questions with the same two matrices, the scatter within classes
and the scatter between classes:

.. math::

    S_w = \sum_k \sum_{x \in k} (x - m_k)(x - m_k)^\top, \qquad
    S_b = \sum_k n_k (m_k - m)(m_k - m)^\top

This example starts with two classes and one direction, shows where the method fails, and continues
with many classes and imbalanced classes.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits, load_wine, make_circles
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from widemargin import (
    SVC,
    CodeMatrixClassifier,
    KernelDiscriminantAnalysis,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    RescaledClassifier,
    imbalance_report,
)
from widemargin.datasets import load_vowel, make_long_tail
from widemargin.plotting import (
    ClassRecallDisplay,
    CodeMatrixDisplay,
    DiscriminantDensityDisplay,
    DiscriminantProjectionDisplay,
    DiscriminantRegionDisplay,
)

rng = np.random.default_rng(0)
BLUE, RED = "#0072b2", "#d55e00"

# %%
# The difference of means, and Fisher's direction
# -----------------------------------------------
#
# The simplest direction is the difference of the class means. It ignores the covariance of the
# classes: along it they may overlap although they hardly do along another one. Fisher's direction
#
# .. math:: w \propto S_w^{-1} (m_1 - m_0)
#
# maximizes the distance of the projected means relative to the spread within classes.

y = np.repeat([0, 1], 150)
X = rng.standard_normal((300, 2)) @ [[2.0, 1.6], [0.0, 0.7]] + np.where(y, 1, -1)[:, None] * [
    1.2,
    0,
]

model = LinearDiscriminantAnalysis().fit(X, y)
gap = model.means_[1] - model.means_[0]
directions = {"difference of means": gap, "Fisher": model.scalings_[:, 0]}

figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for k, color in enumerate([BLUE, RED]):
    axes[0].scatter(*X[y == k].T, s=10, color=color, alpha=0.6)
for (name, w), style in zip(directions.items(), [":", "-"], strict=True):
    unit = w / np.linalg.norm(w)
    axes[0].axline(X.mean(axis=0), X.mean(axis=0) + unit, color="0.2", linestyle=style, label=name)
axes[0].legend(fontsize="small")
axes[0].set(aspect="equal", title="two classes, two directions", xlim=(-7, 7), ylim=(-6, 6))
for ax, (name, w) in zip(axes[1:], directions.items(), strict=True):
    along = X @ w / np.linalg.norm(w)
    for k, color in enumerate([BLUE, RED]):
        ax.hist(along[y == k], bins=30, color=color, alpha=0.5)
    middle = (along[y == 0].mean() + along[y == 1].mean()) / 2
    wrong = np.mean((along > middle) != y)
    ax.set(title=f"{name}: {wrong:.0%} on the wrong side", xlabel="along the direction")
    ax.axvline(middle, color="0.2", linestyle="--")

# %%
# Eigenvectors, and at most C - 1 of them
# ---------------------------------------
#
# With more classes the directions solve :math:`S_b w = \lambda S_w w`. The means of C classes lie
# in a plane of C - 1 dimensions, so no more eigenvalues are positive: 13 measurements of three
# wines become two, and nothing that separates the means is lost.

wine = load_wine()
model = LinearDiscriminantAnalysis(store_covariance=True).fit(wine.data, wine.target)
figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=[2, 1])
DiscriminantProjectionDisplay.from_estimator(model, wine.data, wine.target, ax=axes[0])
axes[0].set_title("13 features, two directions")

gaps = model.means_ - model.xbar_
between = (gaps.T * model.priors_) @ gaps
values = np.sort(np.linalg.eigvals(np.linalg.solve(model.covariance_, between)).real)[::-1]
axes[1].bar(np.arange(1, 14), values, color=BLUE)
axes[1].set(title="eigenvalues", xlabel="direction", xticks=range(1, 14, 2))
print(f"directions that separate the means: {model.between_rank_}")

# %%
# There are two similar objectives. The eigenproblem maximizes the trace of a ratio,
# :math:`\operatorname{tr}((W^\top S_w W)^{-1} W^\top S_b W)`; its directions are not orthogonal.
# The ratio of traces, :math:`\operatorname{tr}(W^\top S_b W) / \operatorname{tr}(W^\top S_w W)`
# over orthonormal :math:`W`, is another problem with another optimum. They can be compared after
# the directions of the first are made orthonormal:


def ratio_of_traces(W):
    Q, _ = np.linalg.qr(W)
    return np.trace(Q.T @ between @ Q) / np.trace(Q.T @ model.covariance_ @ Q)


other = LinearDiscriminantAnalysis(objective="trace_ratio").fit(wine.data, wine.target)
print(f"ratio of traces by the eigenproblem: {ratio_of_traces(model.scalings_):.3f}")
print(f"at its own optimum, in {other.n_iter_} steps:     {other.objective_:.3f}")

# %%
# Singular scatter matrices
# -------------------------
#
# With fewer samples than features there are directions without variance: :math:`S_w` is singular.
# The singular value decomposition writes the samples, centered by class, as a sum of terms of
# decreasing size. Without the terms of size zero, in the closest matrix of lower rank,
# :math:`S_w` is invertible. Omitting small terms as well (`tol`), or shrinking the covariance
# towards a multiple of the identity (`shrinkage`), avoids the division of noise by small numbers.

digits = load_digits()
X_train, X_test, y_train, y_test = train_test_split(
    digits.data, digits.target, train_size=100, stratify=digits.target, random_state=0
)
centered = X_train - np.array([X_train[y_train == k].mean(axis=0) for k in range(10)])[y_train]
deviations = centered.std(axis=0)
singular = np.linalg.svd(centered / np.where(deviations > 0, deviations, 1) / 10, compute_uv=False)

tolerances = np.geomspace(1e-4, 1.5, 25)
cut = [LinearDiscriminantAnalysis(tol=tol).fit(X_train, y_train) for tol in tolerances]
shrunk = LinearDiscriminantAnalysis(shrinkage="oas").fit(X_train, y_train)

figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
axes[0].semilogy(np.arange(1, 65), singular.clip(min=1e-6), ".", color=BLUE)
axes[0].set(
    title=f"100 digits of 64 pixels: rank {cut[0].within_rank_}",
    xlabel="singular value",
    ylim=(1e-3, 5),
)
axes[1].plot(
    [one.within_rank_ for one in cut], [one.score(X_test, y_test) for one in cut], ".-", color=BLUE,
    label="singular values above tol",
)  # fmt: skip
axes[1].axhline(shrunk.score(X_test, y_test), color=RED, linestyle="--", label="shrinkage='oas'")
axes[1].set(title="accuracy on 1,697 other digits", xlabel="rank kept")
axes[1].legend(fontsize="small")

# %%
# Bayes' rule
# -----------
#
# For Gaussian classes with one covariance matrix Bayes' rule is linear. With one feature, means of
# -1.5 and 1.5 and variance 1, the boundary is in the middle if the classes are equally probable;
# with priors of 0.3 and 0.7 it moves by :math:`\log(7/3)/3 \approx 0.28` into the rarer class.

y = np.repeat([0, 1], 1000)
x = (np.where(y, 1.5, -1.5) + rng.standard_normal(2000))[:, np.newaxis]
figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.4), sharey=True, layout="constrained")
for ax, priors in zip(axes, [[0.5, 0.5], [0.3, 0.7]], strict=True):
    model = LinearDiscriminantAnalysis(priors=priors, covariance_divisor="unbiased").fit(x, y)
    display = DiscriminantDensityDisplay.from_estimator(model, x, y, ax=ax)
    ax.set_title(f"boundary at {display.boundaries[0]:.2f}")

# %%
# Three classes on two features with equal priors: the boundaries are lines that meet where all
# three are equally probable. The dashed lines are the boundaries of Bayes' rule for the true means
# and the true covariance matrix, which are known here: no classifier is better.

y = np.repeat([0, 1, 2], 100)
means = np.array([[-2.0, 0.0], [2.0, 0.3], [0.3, 3.0]])
mixing = np.array([[1.1, 0.4], [0.0, 0.9]])
X = rng.standard_normal((300, 2)) @ mixing + means[y]
figure, ax = pyplot.subplots(figsize=(6, 4.4), layout="constrained")
model = LinearDiscriminantAnalysis(priors=[1 / 3, 1 / 3, 1 / 3]).fit(X, y)
DiscriminantRegionDisplay.from_estimator(model, X, y, ax=ax)
weights = np.linalg.solve(mixing.T @ mixing, means.T)


def log_posterior(samples):
    """True log-posteriors of the classes, up to a constant."""
    return samples @ weights - 0.5 * np.sum(means.T * weights, axis=0)


limits = ax.get_xlim(), ax.get_ylim()
grid = np.meshgrid(*(np.linspace(*limit, 300) for limit in limits))
true = log_posterior(np.stack([axis.ravel() for axis in grid], axis=1)).reshape(300, 300, 3)
for k in range(3):
    others = np.delete(true, k, axis=2).max(axis=2)
    ax.contour(*grid, true[:, :, k] - others, [0.0], colors="black", linestyles="dashed")
best = np.mean(log_posterior(X).argmax(axis=1) == y)
ax.set_title(f"accuracy {model.score(X, y):.2f}, of the true rule {best:.2f}")

# %%
# Comparison with logistic regression
# -----------------------------------
#
# Logistic regression has the same linear log-odds, but fits only the conditional distribution of
# the labels; discriminant analysis fits the joint distribution. If classes are nearly separable,
# the labels contain little information on the slope, and discriminant analysis needs far fewer
# samples, as long as the classes are roughly Gaussian and there are a few samples per feature (here
# five) to estimate the covariance.


def pairs(n, distance, seed):
    draw = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return draw.standard_normal((n, 5)) + distance / 2 * np.where(y, 1, -1)[:, None] * np.eye(5)[
        0
    ], y


figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
counts = [16, 24, 40, 80, 160, 320]
for ax, distance in zip(axes, [1.5, 4.0], strict=True):
    X_test, y_test = pairs(20_000, distance, seed=10**6)
    errors = {"linear discriminant": [], "logistic regression": []}
    for n in counts:
        for name, classifier in {
            "linear discriminant": LinearDiscriminantAnalysis(),
            "logistic regression": LogisticRegression(C=1e6, max_iter=1000),
        }.items():
            scores = [
                classifier.fit(*pairs(n, distance, seed)).score(X_test, y_test)
                for seed in range(12)
            ]
            errors[name].append(1 - np.mean(scores))
    for (name, values), color in zip(errors.items(), [BLUE, RED], strict=True):
        ax.semilogx(counts, values, ".-", color=color, label=name)
    ax.set(title=f"means {distance} deviations apart", xlabel="training samples", ylabel="error")
    ax.set_xticks(counts, counts)
    ax.minorticks_off()
    ax.legend(fontsize="small")

# %%
# The reason is in the parameters. On separated classes the likelihood of logistic regression
# increases with the length of the coefficients, so that only the regularization or the stopping
# rule ends their growth; those of discriminant analysis are functions of means and a covariance
# matrix. Here are the coefficients of the first two features in 40 draws of 40 samples with means
# 4 deviations apart. The true ones are 4 and 0.

figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for ax, (classifier, color) in zip(
    axes,
    [(LinearDiscriminantAnalysis(), BLUE), (LogisticRegression(C=1e6, max_iter=1000), RED)],
    strict=True,
):
    drawn = np.array([classifier.fit(*pairs(40, 4.0, seed)).coef_[0, :2] for seed in range(40)])
    ax.plot(drawn[:, 0], drawn[:, 1], ".", color=color)
    ax.plot(4.0, 0.0, "k+", markersize=12, label="true")
    median, largest = np.median(drawn[:, 0]), drawn[:, 0].max()
    ax.set(
        title=f"{type(classifier).__name__}: median {median:.1f}, largest {largest:.1f}",
        xlabel="coefficient of the first feature",
        ylabel="of the second",
    )
    ax.legend(fontsize="small")

# %%
# Classes that are not Gaussian
# -----------------------------
#
# A ring and a disc with the same center have equal means: no direction separates them. With a
# covariance matrix for each class (:class:`~widemargin.QuadraticDiscriminantAnalysis`) the boundary
# is quadratic; with a kernel (:class:`~widemargin.KernelDiscriminantAnalysis`) the classes need not
# be Gaussian.

rings = make_circles(300, factor=0.45, noise=0.12, random_state=0)
angle = rng.uniform(0, 2 * np.pi, 300)
petal = np.arange(300) % 2
radius = 1 + np.where(petal, 1, -1) * 0.55 * np.cos(3 * angle)
flower = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
flower += 0.12 * rng.standard_normal((300, 2))

figure, axes = pyplot.subplots(2, 3, figsize=(11, 7), layout="constrained")
classifiers = [
    LinearDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(shrinkage="oas"),
    KernelDiscriminantAnalysis(gamma=4),
]
for row, (X, y) in zip(axes, [rings, (flower, petal)], strict=True):
    for ax, classifier in zip(row, classifiers, strict=True):
        classifier.fit(X, y)
        DiscriminantRegionDisplay.from_estimator(classifier, X, y, ax=ax, legend=False)
        ax.set_title(f"{type(classifier).__name__}: {classifier.score(X, y):.2f}", fontsize=9)
        ax.label_outer()

# %%
# Incremental fits
# ----------------
#
# The model depends only on the counts, means and scatter matrices of the classes, which can be
# updated: `partial_fit` adds a batch of samples, `merge` combines two estimators.

halves = [
    LinearDiscriminantAnalysis().fit(wine.data[part::2], wine.target[part::2]) for part in (0, 1)
]
whole = LinearDiscriminantAnalysis().fit(wine.data, wine.target)
merged = halves[0].merge(halves[1])
print(f"largest difference: {np.abs(merged.coef_ - whole.coef_).max():.0e}")

# %%
# Multi-class classification with binary classifiers
# --------------------------------------------------
#
# Discriminant analysis supports many classes; many classifiers are binary. One-vs-one trains a
# binary classifier for each pair of classes, one-vs-rest one for each class. Both are code matrices
# with a row for each class and a column for each binary classifier. In error-correcting codes the
# classes differ in many columns, so that errors of single classifiers are corrected. For eleven
# vowels:

X, y = load_vowel(subset="train", return_X_y=True)
X_test, y_test = load_vowel(subset="test", return_X_y=True)
codes = {"one-vs-one": "ovo", "one-vs-rest": "ovr", "dense code": "dense", "sparse code": "sparse"}

figure, axes = pyplot.subplots(2, 2, figsize=(11, 5.4), layout="constrained")
for ax, (name, code) in zip(axes.ravel(), codes.items(), strict=True):
    many = CodeMatrixClassifier(SVC(C=10, gamma=1), code=code).fit(X, y)
    CodeMatrixDisplay(many.code_matrix_, minimum_distance=many.minimum_distance_).plot(ax=ax)
    ax.set_title(
        f"{name}: {many.code_matrix_.shape[1]} classifiers, "
        f"accuracy {many.score(X_test, y_test):.2f}"
    )

# %%
# Time, memory and the correction of errors: :ref:`sphx_glr_gallery_plot_multiclass.py`.
#
# Rescaling
# ---------
#
# With 600 samples of one class and 30 of the other, Bayes' rule rarely predicts the rare class. If
# both classes are equally important, predict the positive class if
# :math:`p / (1 - p) > n_+ / n_-` instead of 1: this is the boundary for equal priors.

y = np.repeat([0, 1], [600, 30])
X = rng.standard_normal((630, 2)) + 1.9 * np.outer(y, [1, 0.6])
figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.8), sharey=True, layout="constrained")
plain = LinearDiscriminantAnalysis()
for ax, (name, one) in zip(
    axes, {"as trained": plain, "rescaled": RescaledClassifier(plain)}.items(), strict=True
):
    DiscriminantRegionDisplay.from_estimator(one.fit(X, y), X, y, ax=ax, legend=False)
    recall = imbalance_report(y, one.predict_proba(X)).recall
    ax.set_title(f"{name}: recall {recall[0]:.2f} and {recall[1]:.2f}")

# %%
# Long tails
# ----------
#
# In a long-tailed distribution a few head classes have most of the samples, and many tail classes
# have few. A classifier has a high accuracy if it predicts only the head classes well: recall
# decreases with the number of training samples. Rescaling, by the same rule for each class,
# increases the recall of the tail and decreases that of the head.

X, y = make_long_tail(2000, 20, imbalance=100, separation=3.5, random_state=0)
X_test, y_test = make_long_tail(2000, 20, imbalance=1, separation=3.5, random_state=0)
counts = np.bincount(y)
figure, axes = pyplot.subplots(1, 2, figsize=(11, 3.8), sharey=True, layout="constrained")
for ax, (name, one) in zip(
    axes, {"as trained": plain, "rescaled": RescaledClassifier(plain)}.items(), strict=True
):
    ClassRecallDisplay.from_estimator(
        one.fit(X, y), X_test, y_test, counts=counts, name=name, ax=ax
    )

# %%
# Class weights, class-dependent margins and suitable metrics:
# :ref:`sphx_glr_gallery_plot_imbalance.py`.
