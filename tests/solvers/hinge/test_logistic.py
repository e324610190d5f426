"""Dual coordinate descent for logistic regression, compared with scikit-learn's solver."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from widemargin.solvers.hinge.logistic import logistic_steps
from widemargin.solvers.jit import random_state, row_arrays
from widemargin.solvers.states import CONVERGED


def solve(X, sign, cost, bias, tol=1e-9, max_iter=10_000):
    n = X.shape[0]
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel() + bias**2
    constants = np.column_stack([sign, norms, np.zeros(n), sign * cost])
    dual, weights, counts = np.empty(n), np.empty(X.shape[1] + 1), np.zeros(6, np.int64)
    order = np.arange(n, dtype=np.uint32)
    logistic_steps(
        *row_arrays(X), bias, constants, dual, weights, order, counts, random_state(0), tol,
        max_iter,
    )  # fmt: skip
    return dual, weights, counts


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_the_optimum_is_that_of_scikit_learn(C, bias):
    random = np.random.default_rng(0)
    X = sp.random_array((80, 12), density=0.4, rng=random, format="csr")
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    sign = np.where(random.random(80) < 0.2, 1.0, -1.0)
    weight = random.uniform(0.5, 2.0, size=80)
    dual, weights, counts = solve(X, sign, C * weight, bias)
    assert counts[CONVERGED] == 1
    assert ((dual > 0) & (dual < C * weight)).all()
    Z = np.hstack([X.toarray(), np.full((80, 1), bias)])
    exact = LogisticRegression(C=C, fit_intercept=False, tol=1e-12, solver="newton-cholesky")
    exact.fit(Z, sign, sample_weight=weight)
    np.testing.assert_allclose(weights, exact.coef_[0], atol=1e-6 * np.abs(weights).max())
    np.testing.assert_allclose(weights, Z.T @ (sign * dual), atol=1e-9)


def test_samples_without_features_and_the_limit_on_passes():
    X = sp.csr_array(
        (np.ones(1), np.array([0], np.int32), np.array([0, 1, 1], np.int32)), shape=(2, 1)
    )
    dual, _, counts = solve(X, np.array([1.0, -1.0]), np.ones(2), 0.0)
    assert counts[CONVERGED] == 1
    assert dual[1] == pytest.approx(0.5)
    *_, counts = solve(X, np.array([1.0, -1.0]), np.ones(2), 0.0, max_iter=1)
    assert counts[CONVERGED] == 0
