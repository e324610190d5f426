"""KernelDiscriminantAnalysis beside the linear one and explicit features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, sparse
from sklearn.datasets import load_iris, make_circles
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from widemargin import KernelDiscriminantAnalysis, LinearDiscriminantAnalysis


def standard_iris():
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def explicit(X, y, ridge, priors, weight=None):
    """Scores and directions of linear discriminant analysis with a ridge, by its definition."""
    weight = np.ones(len(y)) if weight is None else weight
    labels = np.unique(y)
    means = np.array([np.average(X[y == k], axis=0, weights=weight[y == k]) for k in labels])
    centred = X - means[np.searchsorted(labels, y)]
    covariance = (centred * weight[:, np.newaxis]).T @ centred / weight.sum()
    covariance += ridge * np.trace(covariance) * np.eye(X.shape[1])
    slopes = linalg.solve(covariance, means.T)
    scores = X @ slopes - 0.5 * np.einsum("kj,jk->k", means, slopes) + np.log(priors)
    gaps = means - priors @ means
    values, vectors = linalg.eigh((gaps.T * priors) @ gaps, covariance)
    directions = vectors[:, ::-1][:, : len(labels) - 1]
    return scores, (X - priors @ means) @ directions, values[::-1]


def features(X, degree=2):
    """The images of the rows under (x'y + 1)^2."""
    products = np.einsum("ni,nj->nij", X, X)
    return np.column_stack([np.ones(len(X)), np.sqrt(2) * X, products.reshape(len(X), -1)])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_linear_kernel_gives_linear_analysis_with_a_ridge(weighted):
    X, y = standard_iris()
    weight = np.arange(150) % 3 + 1.0 if weighted else None
    priors = np.array([0.2, 0.3, 0.5])
    model = KernelDiscriminantAnalysis(kernel="linear", reg_param=0.02, priors=priors)
    model.fit(X, y, sample_weight=weight)
    scores, projected, values = explicit(X, y, 0.02, priors, weight)
    mine = model.decision_function(X)
    assert_allclose(mine - mine[:, :1], scores - scores[:, :1], rtol=1e-8, atol=1e-8)
    assert_allclose(np.abs(model.transform(X)), np.abs(projected), rtol=1e-8, atol=1e-8)
    assert_allclose(model.explained_variance_ratio_, values[:2] / values.sum(), rtol=1e-8)


def test_a_polynomial_kernel_is_linear_analysis_of_its_features():
    X, y = standard_iris()
    options = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 1.0}
    model = KernelDiscriminantAnalysis(reg_param=1e-3, **options).fit(X, y)
    scores, projected, _ = explicit(features(X), y, 1e-3, np.full(3, 1 / 3))
    mine = model.decision_function(X)
    assert_allclose(mine - mine[:, :1], scores - scores[:, :1], rtol=1e-6, atol=1e-6)
    assert_allclose(np.abs(model.transform(X)), np.abs(projected), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("rbf", lambda X, Y: rbf_kernel(X, Y, gamma=0.4)),
        ("laplacian", lambda X, Y: laplacian_kernel(X, Y, gamma=0.4)),
        ("poly", lambda X, Y: polynomial_kernel(X, Y, degree=2, gamma=0.4, coef0=1.0)),
    ],
)
def test_a_named_kernel_equals_its_precomputed_matrix(name, kernel):
    X, y = standard_iris()
    weight = np.arange(150) % 3.0
    options = {"gamma": 0.4, "degree": 2, "coef0": 1.0}
    named = KernelDiscriminantAnalysis(kernel=name, **options).fit(X, y, sample_weight=weight)
    given = KernelDiscriminantAnalysis(kernel="precomputed")
    given.fit(kernel(X, X), y, sample_weight=weight)
    new = X[::7] + 0.1
    expected = given.predict_proba(kernel(new, X))
    assert_allclose(named.predict_proba(new), expected, atol=1e-7)
    assert_allclose(named.transform(new), given.transform(kernel(new, X)), rtol=1e-6, atol=1e-7)


def test_rings_are_told_apart():
    X, y = make_circles(300, factor=0.5, noise=0.08, random_state=0)
    train, test = slice(0, 200), slice(200, 300)
    model = KernelDiscriminantAnalysis().fit(X[train], y[train])
    assert model.score(X[test], y[test]) > 0.97
    assert LinearDiscriminantAnalysis().fit(X[train], y[train]).score(X[test], y[test]) < 0.7
    assert model.transform(X).shape == (300, 1)
    assert_array_equal(model.decision_function(X) > 0, model.predict(X) == 1)


def test_sparse_rows_are_kept_sparse():
    X, y = standard_iris()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    model = KernelDiscriminantAnalysis().fit(sparse.csr_array(X), y)
    assert sparse.issparse(model.X_fit_)
    dense = KernelDiscriminantAnalysis().fit(X, y)
    assert_allclose(model.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-8)


def test_components_are_the_leading_ones():
    X, y = standard_iris()
    one = KernelDiscriminantAnalysis(n_components=1).fit(X, y)
    two = KernelDiscriminantAnalysis().fit(X, y)
    assert_array_equal(one.transform(X), two.transform(X)[:, :1])
    assert_array_equal(one.predict(X), two.predict(X))
    assert_array_equal(one.get_feature_names_out(), ["kerneldiscriminantanalysis0"])
    with pytest.raises(ValueError, match="n_components cannot be larger than n_classes - 1 = 2"):
        KernelDiscriminantAnalysis(n_components=3).fit(X, y)


def test_an_indefinite_kernel_is_refused():
    X, y = standard_iris()
    matrix = X @ X.T
    with pytest.raises(ValueError, match="positive semidefinite"):
        KernelDiscriminantAnalysis(kernel="precomputed").fit(-matrix + 0.5 * np.eye(150), y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_offset_of_a_million_changes_nothing(kernel):
    X, y = load_iris(return_X_y=True)
    X = np.round(X * 2**12) / 2**12  # so that the offset rounds nothing away
    near, far = (
        KernelDiscriminantAnalysis(kernel=kernel, gamma=0.3).fit(X + offset, y)
        for offset in (0.0, 1e6)
    )
    assert_allclose(far.predict_proba(X + 1e6), near.predict_proba(X), rtol=0, atol=1e-6)
    assert_allclose(far.transform(X + 1e6), near.transform(X), rtol=0, atol=1e-6)
    assert_allclose(far.predict_proba(sparse.csr_array(X + 1e6)), far.predict_proba(X + 1e6))


def test_directions_have_one_sign_whatever_the_order_of_rows():
    X, y = load_iris(return_X_y=True)
    rng = np.random.default_rng(0)
    for keep in (y < 3, y < 2):
        rows, labels = X[keep], y[keep]
        expected = KernelDiscriminantAnalysis().fit(rows, labels).transform(X)
        for _ in range(5):
            order = rng.permutation(len(rows))
            model = KernelDiscriminantAnalysis().fit(rows[order], labels[order])
            assert_allclose(model.transform(X), expected, atol=1e-6)
