"""Hypothesis strategies that draw hinge problems of every kind the library meets."""

import numpy as np
from hypothesis import strategies as st
from tests.oracles.hinge import Hinge


@st.composite
def hinge_problems(draw, kernels=("linear", "rbf", "poly"), decades=3, intercept=None):
    """Any solvable problem: overlapping with finite costs, separable with some or all infinite.

    Parameters
    ----------
    kernels : tuple of str
        Kernels to draw from.
    decades : int
        The data are scaled by 10**-decades to 10**decades.
    intercept : bool, optional
        With or without intercept; either when None.
    """
    intercept = draw(st.booleans()) if intercept is None else intercept
    hard = draw(st.sampled_from(["none", "none", "some", "all"]))
    X, sign = draw(_rows(hard != "none", intercept))
    gram = draw(_grams(X, kernels, decades))
    # Beyond 1e6 in the kernel's unit the rounding of beta' K beta alone hides 1e-6 of it.
    cost = np.minimum(draw(_costs(len(sign))), 1e6 / (np.diag(gram).max() or 1.0))
    if hard == "all":
        cost[:] = np.inf
    elif hard == "some":
        cost[:: draw(st.integers(1, 3))] = np.inf
    return Hinge(gram, sign, draw(_margins(sign)), cost, intercept)


@st.composite
def inseparable_hinge_problems(draw, kernels=("linear", "rbf", "poly"), decades=3):
    """Problems without a solution: two equal rows of infinite cost and opposite sign."""
    problem = draw(hinge_problems(kernels, decades))
    gram, sign, margin, cost, intercept = problem
    gram[1] = gram[0]
    gram[:, 1] = gram[:, 0]
    sign[:2] = 1.0, -1.0
    margin[:2] = 1.0
    cost[:2] = np.inf
    return Hinge(gram, sign, margin, cost, intercept)


@st.composite
def _rows(draw, separable, intercept):
    """Rows and signs, with duplicates, ties and constant columns now and then."""
    n_rows, n_columns = draw(st.integers(2, 40)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.standard_normal((n_rows, n_columns))
    if draw(st.booleans()):
        X = np.round(2 * X) / 2
    if draw(st.booleans()):
        copies = rng.integers(0, n_rows, size=(2, n_rows // 3))
        X[copies[0]] = X[copies[1]]
    direction = rng.standard_normal(n_columns)
    direction /= np.linalg.norm(direction)
    height = X @ direction
    sign = np.where(height > (np.median(height) if intercept else 0.0), 1.0, -1.0)
    if separable:
        X += 0.2 * sign[:, None] * direction
    else:
        sign[rng.random(n_rows) < draw(st.sampled_from([0.0, 0.1, 0.5]))] *= -1.0
    if intercept and abs(sign.sum()) == n_rows:
        # Equal rows all lie on one side: the outermost moves over.
        outermost = np.argmax(-sign * height)
        X[outermost] -= 0.4 * sign[outermost] * direction
        sign[outermost] *= -1.0
    if draw(st.booleans()):
        X = np.column_stack([X, np.full(n_rows, draw(st.sampled_from([0.0, 1.0, 30.0])))])
    return X, sign


@st.composite
def _costs(draw, n_rows):
    costs = np.full(n_rows, 10.0 ** draw(st.integers(-3, 3)))
    if draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        costs *= 10.0 ** rng.uniform(-1, 1, n_rows)
    return costs


@st.composite
def _margins(draw, sign):
    kind = draw(st.sampled_from(["one", "by class", "any", "whole"]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind == "one":
        return np.ones(len(sign))
    if kind == "by class":
        return np.where(sign > 0, 1.0, 0.3)
    if kind == "any":
        return rng.uniform(-0.5, 1.5, len(sign))
    return rng.integers(-1, 3, len(sign)).astype(float)


@st.composite
def _grams(draw, X, kernels, decades):
    kernel = draw(st.sampled_from(kernels))
    scale = 10.0 ** draw(st.integers(-decades, decades))
    gamma = draw(st.sampled_from([0.1, 1.0, 10.0])) / (X.shape[1] * (X.var() or 1.0))
    if kernel == "linear":
        gram = X @ X.T
    elif kernel == "poly":
        gram = (gamma * (X @ X.T) + 1.0) ** draw(st.integers(2, 3))
    else:
        squares = (X**2).sum(axis=1)
        distances = np.maximum(0.0, squares[:, None] + squares - 2.0 * (X @ X.T))
        gram = np.exp(-gamma * distances)
    # A kernel's value has the square of the data's unit.
    return scale**2 * (gram + gram.T) / 2
