"""Discriminant analysis: textbook figures on vowel, and closed forms for Gaussian classes."""

from collections.abc import Iterator

import numpy as np
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from widemargin import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, code_matrix
from widemargin.cli.reproduction.comparison import Claim, Comparison, Figure
from widemargin.cli.reproduction.data import split
from widemargin.datasets import load_satimage

# Error on training and test samples of vowel, as published.
PUBLISHED = {
    "linear regression of indicators (scikit-learn)": (0.48, 0.67),
    "linear discriminant analysis": (0.32, 0.56),
    "quadratic discriminant analysis": (0.01, 0.53),
    "logistic regression (scikit-learn)": (0.22, 0.51),
}

_CODES = ("ovr", "ovo", "exhaustive")


def compare(quick: bool) -> Iterator[Comparison]:
    """Compare textbook errors, closed forms and statements about discriminants and codes.

    Parameters
    ----------
    quick : bool
        Whether to draw fewer samples for the closed forms.

    Yields
    ------
    comparison : Comparison
    """
    yield _errors()
    yield _closed_forms(100_000 if quick else 2_000_000)
    yield _statements()


def _errors() -> Comparison:
    X, y, X_test, y_test = split("vowel")  # type: ignore[misc]
    models = (
        RidgeClassifier(alpha=1e-9),
        LinearDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(),
        LogisticRegression(C=np.inf, max_iter=10_000),
    )
    figures = []
    for (who, published), model in zip(PUBLISHED.items(), models, strict=True):
        model.fit(X, y)
        errors = [1.0 - model.score(A, b) for A, b in ((X, y), (X_test, y_test))]
        figures += [
            Figure(who, name, theirs, ours, 0.005, False)
            for name, theirs, ours in zip(("training", "test"), published, errors, strict=True)
        ]
    return Comparison(
        "Error on vowel",
        "The official split by speakers: 528 training and 462 test samples, default parameters.",
        "The data and their split are those of the book. Up to 0.005 counts as similar, since the "
        "book prints two digits.",
        figures,
    )


def _closed_forms(n_samples: int) -> Comparison:
    """Boundary and error of two Gaussian classes with means -1.5 and 1.5 and variance 1."""
    rng = np.random.default_rng(0)
    figures = []
    for share in (0.5, 0.3):
        y = (rng.random(n_samples) >= share).astype(int)
        X = (3.0 * y - 1.5 + rng.normal(size=n_samples)).reshape(-1, 1)
        model = LinearDiscriminantAnalysis().fit(X, y)
        boundary = -model.intercept_[0] / model.coef_[0, 0]
        exact = np.log(share / (1.0 - share)) / 3.0
        error = share * norm.cdf(-1.5 - exact) + (1.0 - share) * norm.cdf(exact - 1.5)
        row = f"prior {share:g} of the first class"
        figures.append(Figure(row, "boundary", exact, boundary, 0.02))
        figures.append(Figure(row, "error", error, 1.0 - model.score(X, y), 0.005, False))
    return Comparison(
        "Two Gaussian classes: closed form and estimate",
        f"Means -1.5 and 1.5, variance 1, {n_samples:,} generated samples. The boundary is at "
        "log(p / (1 - p)) / 3 for the prior p of the first class, and the error is Bayes' error.",
        "The lower figure of a cell is the closed form. What remains is the error of the estimate, "
        "which falls with the number of samples.",
        figures,
        digits=4,
    )


def _statements() -> Comparison:
    X, y = load_satimage(subset="train", return_X_y=True)
    model = LinearDiscriminantAnalysis().fit(X, y)
    n_classes, n_directions = len(model.classes_), model.transform(X[:1]).shape[1]
    counts = {name: code_matrix(name, n_classes)[0].shape[1] for name in _CODES}
    expected = dict(zip(_CODES, (6, 15, 31), strict=True))
    positive = y < 2
    ratio = LinearDiscriminantAnalysis(n_components=1).fit(X, positive)
    sides = [X[~positive], X[positive]]
    means = [side.mean(axis=0) for side in sides]
    covariance = sum(len(side) * np.cov(side.T, bias=True) for side in sides) / len(X)
    fisher = np.linalg.solve(covariance, means[1] - means[0])
    cosine = abs(fisher @ ratio.coef_[0]) / np.linalg.norm(fisher) / np.linalg.norm(ratio.coef_)
    return Comparison(
        "Statements",
        "On the training samples of satimage.",
        "These are identities, and hold up to rounding errors.",
        claims=[
            Claim(
                "There are at most C - 1 discriminant directions",
                n_directions == n_classes - 1,
                f"{n_directions} of {n_classes} classes",
            ),
            Claim(
                "With two classes the direction is that of the closed form",
                bool(cosine > 1.0 - 1e-8),
                f"cosine of the angle 1 - {max(0.0, 1.0 - cosine):.0e}",
            ),
            Claim(
                "One-vs-rest has C binary classifiers, one-vs-one C (C - 1) / 2, all splits "
                "2^(C - 1) - 1",
                counts == expected,
                ", ".join(f"{name} {count}" for name, count in counts.items()),
            ),
        ],
    )
