"""Mixed slack: equal to an exact QP, to SVM2+ at ridge 0, and to a plain SVM at infinity."""

import clarabel
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import PrivilegedSVC, PrivilegedSVCCV


def data(n=50, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
    score = X[:, 0] + Z[:, 0] + 0.5 * rng.standard_normal(n)
    y = np.argsort(np.argsort(score)) * n_classes // n
    Z[:, 1] = 0.1 * Z[:, 1] + np.maximum(0.0, 1.0 - np.where(y > 0, 1.0, -1.0) * X[:, 0])
    return X, Z, y


def exact(X, Z, y, C, penalty, ridge, weight):
    """Solve the primal over w, b, v (with a constant feature) and the free slack s."""
    n, d = X.shape
    sign, Z = np.where(y == 1, 1.0, -1.0), np.hstack([Z, np.ones((n, 1))])
    k = Z.shape[1]
    slack = np.hstack([np.zeros((n, d + 1)), Z, np.eye(n)])
    P = C * slack.T @ (weight[:, None] * slack)
    P[:d, :d] += np.eye(d)
    P[d + 1 : d + 1 + k, d + 1 : d + 1 + k] += penalty * np.eye(k)
    P[d + 1 + k :, d + 1 + k :] += penalty / ridge * np.diag(weight)
    margins = slack + np.hstack([sign[:, None] * X, sign[:, None], np.zeros((n, k + n))])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solution = clarabel.DefaultSolver(
        sparse.csc_array(np.triu(P)), np.zeros(len(P)), sparse.csc_array(-margins), -np.ones(n),
        [clarabel.NonnegativeConeT(n)], settings,
    ).solve()  # fmt: skip
    x = np.array(solution.x)
    return solution.obj_val, X @ x[:d] + x[d], slack @ x, Z @ x[d + 1 : d + 1 + k]


@pytest.mark.parametrize("ridge", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [50, 8])
def test_the_solution_is_that_of_an_exact_qp(ridge, weighted, n):
    X, Z, y = data(n)
    weight = 0.5 + np.arange(n) % 3 if weighted else np.ones(n)
    model = PrivilegedSVC(
        kernel="linear", C=2.0, privileged_penalty=0.5, slack_ridge=ridge, tol=1e-8
    ).fit(X, y, privileged=Z, sample_weight=weight)
    objective, values, slack, of_features = exact(X, Z, y, 2.0, 0.5, ridge, weight)
    assert_allclose(model.objective_, objective, rtol=1e-6)
    assert_allclose(model.decision_function(X), values, atol=1e-5)
    assert_allclose(model.slack_, slack, atol=1e-5)
    assert_allclose(model.slack(Z), of_features, atol=1e-5)


def test_a_kernel_plus_a_ridge_is_the_kernel_of_mixed_slack():
    X, Z, y = data()
    shared = {"C": 3.0, "privileged_penalty": 0.1, "tol": 1e-8}
    mixed = PrivilegedSVC(privileged_kernel="rbf", slack_ridge=0.7, **shared)
    mixed.fit(X, y, privileged=Z)
    gamma = 1.0 / (Z.shape[1] * Z.var())
    matrix = rbf_kernel(Z, gamma=gamma) + 0.7 * np.eye(len(Z))
    shared |= {"privileged_kernel": "precomputed", "slack_ridge": 0.0}
    summed = PrivilegedSVC(**shared).fit(X, y, privileged=matrix)
    assert_allclose(mixed.objective_, summed.objective_, rtol=1e-8)
    assert_allclose(mixed.decision_function(X), summed.decision_function(X), atol=1e-6)
    assert_allclose(mixed.slack_, summed.slack_, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_an_infinite_ridge_is_the_plain_svm(loss):
    X, Z, y = data(n_classes=3)
    shared = {"loss": loss, "C": 3.0, "tol": 1e-8}
    model = PrivilegedSVC(slack_ridge=np.inf, **shared).fit(X, y, privileged=Z)
    with pytest.warns(UserWarning, match="without privileged features"):
        plain = PrivilegedSVC(**shared).fit(X, y)
    assert_allclose(model.objective_, plain.objective_, rtol=1e-8)
    assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-6)
    assert_allclose(model.slack(Z), 0.0, atol=1e-12)
    sign = np.where(y[:, None] == model.classes_, 1.0, -1.0)
    missing = 1.0 - sign * model.decision_function(X)
    assert_allclose(model.slack_, np.maximum(0.0, missing), atol=1e-5)


def test_a_small_ridge_is_svm2_plus():
    X, Z, y = data()
    shared = {"kernel": "linear", "C": 2.0, "tol": 1e-8}
    model = PrivilegedSVC(slack_ridge=1e-9, **shared).fit(X, y, privileged=Z)
    without = PrivilegedSVC(slack_ridge=0.0, **shared).fit(X, y, privileged=Z)
    assert_allclose(model.decision_function(X), without.decision_function(X), atol=1e-4)


def test_mixed_slack_needs_the_squared_hinge_loss():
    X, Z, y = data()
    with pytest.raises(ValueError, match=r"slack_ridge must be 0 or np.inf with loss='hinge'"):
        PrivilegedSVC(loss="hinge", slack_ridge=1.0).fit(X, y, privileged=Z)
    with pytest.raises(ValueError, match=r"slack_ridges must be 0 or np.inf with loss='hinge'"):
        PrivilegedSVCCV(loss="hinge", slack_ridges=[1.0]).fit(X, y, privileged=Z)


def test_the_search_prefers_the_plain_svm_to_features_that_do_not_help():
    X, _, y = data(80)
    noise = np.random.default_rng(1).standard_normal((80, 3))
    with pytest.warns(UserWarning, match="privileged features are not used.*with them") as caught:
        model = PrivilegedSVCCV(cv=3).fit(X, y, privileged=noise)
    assert caught[0].filename == __file__
    assert model.slack_ridge_ == np.inf
    plain = model.scores_[:, 0, 2]
    assert model.best_score_ == plain.mean(axis=1).max()
    best = PrivilegedSVC(C=model.C_, slack_ridge=np.inf).fit(X, y, privileged=noise)
    assert_allclose(model.decision_function(X), best.decision_function(X), atol=1e-6)


def test_the_search_uses_features_that_help_clearly():
    grid = {"C": [1.0, 2.0], "privileged_penalty": [1.0], "slack_ridge": [0.0, np.inf]}
    plain = [0.70, 0.74, 0.72]
    scores = np.array([[[[0.78, 0.77, 0.80], plain]], [[[0.7, 0.7, 0.7], [0.7, 0.7, 0.7]]]])
    best = PrivilegedSVCCV()._best_parameters(scores, grid)
    assert best == {"C": 1.0, "privileged_penalty": 1.0, "slack_ridge": 0.0}
    # The mean is better still, by less than its standard error.
    scores[0, 0, 0] = [0.60, 0.90, 0.69]
    best = PrivilegedSVCCV()._best_parameters(scores, grid)
    assert best == {"C": 1.0, "privileged_penalty": 1.0, "slack_ridge": np.inf}


@pytest.mark.parametrize("bad", [[], [-1.0], ["a"], [np.nan]])
def test_ridges_that_are_no_costs_are_refused(bad):
    X, Z, y = data()
    with pytest.raises(ValueError, match="slack_ridges must contain non-negative numbers"):
        PrivilegedSVCCV(slack_ridges=bad).fit(X, y, privileged=Z)
