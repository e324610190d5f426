"""QuadraticDiscriminantAnalysis beside scikit-learn's and the density of Gaussians."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import LinAlgError
from scipy.stats import multivariate_normal
from sklearn import discriminant_analysis as peer
from sklearn.covariance import OAS, ShrunkCovariance
from sklearn.datasets import load_iris, load_wine

from widemargin import QuadraticDiscriminantAnalysis


def gaussians(n_rows=300, n_classes=3, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    X = rng.standard_normal((n_rows, n_features))
    turns = rng.standard_normal((n_classes, n_features, n_features))
    X = np.einsum("ni,nij->nj", X, turns[y])
    return X + rng.standard_normal((n_classes, n_features))[y], y


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("solver", ["auto", "gram", "svd", "eigen"])
def test_probabilities_are_those_of_the_peer(load, solver):
    X, y = load(return_X_y=True)
    ours = QuadraticDiscriminantAnalysis(solver=solver, store_covariance=True).fit(X, y)
    theirs = peer.QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-8)
    assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-8)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    for k in range(3):
        assert_allclose(ours.scalings_[k], theirs.scalings_[k], rtol=1e-7)
        scale = np.abs(theirs.covariance_[k]).max()
        assert_allclose(ours.covariance_[k], theirs.covariance_[k], atol=1e-12 * scale)


@pytest.mark.parametrize("shrinkage", [0.2, "auto"])
def test_shrunk_probabilities_are_those_of_the_peer(shrinkage):
    X, y = gaussians()
    theirs = peer.QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage).fit(X, y)
    for solver in ("gram", "eigen"):
        ours = QuadraticDiscriminantAnalysis(solver=solver, shrinkage=shrinkage).fit(X, y)
        assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-10)


def test_reg_param_is_that_of_the_peer():
    X, y = gaussians()
    theirs = peer.QuadraticDiscriminantAnalysis(reg_param=0.3).fit(X, y)
    for solver in ("gram", "svd"):
        ours = QuadraticDiscriminantAnalysis(solver=solver, reg_param=0.3).fit(X, y)
        assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-10)


def test_oas_shrinks_in_standard_units():
    X, y = gaussians()
    model = QuadraticDiscriminantAnalysis(shrinkage="oas", store_covariance=True).fit(X, y)
    for k in range(3):
        scale = X[y == k].std(axis=0)
        expected = OAS().fit(X[y == k] / scale).covariance_ * np.outer(scale, scale)
        assert_allclose(model.covariance_[k], expected)


@pytest.mark.parametrize("solver", ["gram", "svd"])
def test_scores_are_logarithms_of_densities_times_priors(solver):
    X, y = gaussians()
    priors = [0.2, 0.3, 0.5]
    options = {"solver": solver, "priors": priors, "covariance_divisor": "unbiased"}
    model = QuadraticDiscriminantAnalysis(**options).fit(X, y)
    expected = np.column_stack(
        [
            np.log(priors[k]) + multivariate_normal(rows.mean(axis=0), np.cov(rows.T)).logpdf(X)
            for k, rows in enumerate(X[y == k] for k in range(3))
        ]
    )
    constant = 2.0 * np.log(2.0 * np.pi)
    assert_allclose(model.decision_function(X), expected + constant, rtol=1e-9, atol=1e-9)


@settings(max_examples=15)
@given(
    cuts=st.lists(st.integers(1, 299), max_size=5),
    shrinkage=st.sampled_from([None, 0.2, "auto", "oas"]),
)
def test_any_chunking_gives_what_fit_gives(cuts, shrinkage):
    X, y = gaussians()
    whole = QuadraticDiscriminantAnalysis(shrinkage=shrinkage).fit(X, y)
    grown = QuadraticDiscriminantAnalysis(shrinkage=shrinkage)
    ends = [0, *sorted(set(cuts)), 300]
    for start, end in itertools.pairwise(ends):
        grown.partial_fit(sparse.csr_array(X[start:end]), y[start:end])
    assert_allclose(grown.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-9)


def test_two_estimators_merge():
    X, y = gaussians()
    whole = QuadraticDiscriminantAnalysis().fit(X, y)
    merged = QuadraticDiscriminantAnalysis().fit(X[:120], y[:120])
    merged.merge(QuadraticDiscriminantAnalysis().fit(X[120:], y[120:]))
    assert_allclose(merged.decision_function(X), whole.decision_function(X), rtol=1e-9)


def test_too_few_rows_are_told_when_the_answer_is_asked_for():
    X, y = gaussians()
    model = QuadraticDiscriminantAnalysis().partial_fit(X[:9], y[:9])
    with pytest.raises(LinAlgError, match=r"class 0 is not full rank.*shrinkage or reg_param"):
        model.predict(X)
    model.partial_fit(X[9:], y[9:])
    whole = QuadraticDiscriminantAnalysis().fit(X, y)
    assert_array_equal(model.predict(X), whole.predict(X))


def test_a_declared_class_without_rows_has_no_probability():
    X, y = gaussians()
    model = QuadraticDiscriminantAnalysis().partial_fit(X, y, classes=[0, 1, 2, 3])
    whole = QuadraticDiscriminantAnalysis().fit(X, y)
    assert_allclose(model.predict_proba(X)[:, :3], whole.predict_proba(X), atol=1e-12)
    assert_array_equal(model.predict_proba(X)[:, 3], 0.0)


@pytest.mark.parametrize("solver", ["gram", "svd"])
def test_an_offset_of_a_million_changes_nothing(solver):
    X, y = gaussians()
    X = np.round(X * 2**12) / 2**12  # so that the offset rounds nothing away
    near = QuadraticDiscriminantAnalysis(solver=solver).fit(X, y)
    far = QuadraticDiscriminantAnalysis(solver=solver).fit(X + 1e6, y)
    assert_allclose(far.predict_proba(X + 1e6), near.predict_proba(X), rtol=0, atol=1e-10)
    if solver != "svd":
        pieces = QuadraticDiscriminantAnalysis(solver=solver)
        for start in range(0, len(X), 7):
            pieces.partial_fit(X[start : start + 7] + 1e6, y[start : start + 7])
        assert_allclose(pieces.predict_proba(X + 1e6), near.predict_proba(X), rtol=0, atol=1e-10)


def test_weighted_rows_through_both_solvers_agree():
    X, y = gaussians()
    weight = np.arange(300) % 4.0
    gram, svd = (
        QuadraticDiscriminantAnalysis(solver=solver).fit(X, y, sample_weight=weight)
        for solver in ("gram", "svd")
    )
    assert_allclose(gram.predict_proba(X), svd.predict_proba(X), atol=1e-10)


def test_work_on_rows_takes_dense_rows_without_weights():
    X, y = gaussians()
    with pytest.raises(TypeError, match="X must be dense"):
        QuadraticDiscriminantAnalysis(solver="svd").fit(sparse.csr_array(X), y)
    model = QuadraticDiscriminantAnalysis(covariance_estimator=ShrunkCovariance(shrinkage=0.1))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, sample_weight=np.ones(300))
    expected = QuadraticDiscriminantAnalysis(shrinkage=0.1).fit(X, y)
    assert_allclose(model.fit(X, y).predict_proba(X), expected.predict_proba(X), atol=1e-10)


def test_unbiased_needs_weight_above_one():
    X, y = gaussians()
    with pytest.raises(ValueError, match="covariance_divisor='n'"):
        QuadraticDiscriminantAnalysis(covariance_divisor="unbiased").fit(
            X, y, sample_weight=np.full(300, 1e-3)
        )
