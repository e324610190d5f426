"""LinearDiscriminantAnalysis beside scikit-learn's, closed forms and definitions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import linalg, sparse
from scipy.special import softmax
from sklearn import discriminant_analysis as peer
from sklearn.covariance import OAS, ShrunkCovariance
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import NotFittedError

from widemargin import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

SETS = [load_iris, load_wine, load_breast_cancer, load_digits]
ATTRIBUTES = ["means_", "priors_", "xbar_", "explained_variance_ratio_", "intercept_", "coef_"]


def gaussians(n_rows=300, n_classes=4, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    y = np.append(np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes))
    X = rng.standard_normal((n_rows, n_features)) @ rng.standard_normal((n_features, n_features))
    return X + 1.5 * rng.standard_normal((n_classes, n_features))[y], y


def scatters(X, y):
    """Within and between scatter over n, by their definitions."""
    mean, within, between = X.mean(axis=0), 0.0, 0.0
    for label in np.unique(y):
        rows = X[y == label]
        centred, gap = rows - rows.mean(axis=0), rows.mean(axis=0) - mean
        within = within + centred.T @ centred / len(X)
        between = between + len(rows) * np.outer(gap, gap) / len(X)
    return within, between


@pytest.mark.parametrize("load", SETS)
@pytest.mark.parametrize("solver", ["auto", "gram", "svd"])
def test_probabilities_are_those_of_the_peer(load, solver):
    X, y = load(return_X_y=True)
    ours = LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    theirs = peer.LinearDiscriminantAnalysis().fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-8)
    assert_array_equal(ours.predict(X), theirs.predict(X))
    for name in ATTRIBUTES:
        expected = getattr(theirs, name)
        scale = np.abs(expected).max()
        assert_allclose(getattr(ours, name), expected, rtol=0, atol=1e-8 * scale, err_msg=name)
    assert_allclose(
        np.abs(ours.transform(X)), np.abs(theirs.transform(X)), rtol=0, atol=1e-8 * len(X)
    )


@pytest.mark.parametrize("load", SETS[:3])
@pytest.mark.parametrize("shrinkage", [None, 0.0, 0.3, "auto"])
@pytest.mark.parametrize("priors", [None, "uneven"])
def test_shrunk_probabilities_are_those_of_the_peer(load, shrinkage, priors):
    X, y = load(return_X_y=True)
    X = X / X.std(axis=0)
    if priors == "uneven":
        priors = np.arange(1.0, y.max() + 2) / np.arange(1.0, y.max() + 2).sum()
    for solver in ("eigen", "lsqr"):
        options = {"solver": solver, "shrinkage": shrinkage, "priors": priors}
        ours = LinearDiscriminantAnalysis(**options).fit(X, y)
        theirs = peer.LinearDiscriminantAnalysis(**options).fit(X, y)
        assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-8)
        assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-9, atol=1e-12)
        if solver == "eigen":
            assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_)
    if priors is None:
        gram = LinearDiscriminantAnalysis(solver="gram", shrinkage=shrinkage).fit(X, y)
        assert_allclose(gram.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-8)


@pytest.mark.parametrize("noise", [1e-2, 1e-3, 3e-4])
def test_nearly_dependent_features_are_looked_at_twice(noise):
    X, y = gaussians()
    rng = np.random.default_rng(1)
    X = np.column_stack([X, X @ rng.standard_normal(6) + noise * rng.standard_normal(len(X))])
    theirs = peer.LinearDiscriminantAnalysis(tol=1e-8).fit(X, y)
    for container in (np.asarray, sparse.csr_array):
        ours = LinearDiscriminantAnalysis(solver="gram", tol=1e-8).fit(container(X), y)
        assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-8)
    single = LinearDiscriminantAnalysis(solver="gram", tol=1e-8).partial_fit(X, y)
    assert_allclose(single.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-4)
    unbiased = {"covariance_divisor": "unbiased", "tol": 1e-8}
    gram, svd = (
        LinearDiscriminantAnalysis(solver=solver, **unbiased).fit(X, y)
        for solver in ("gram", "svd")
    )
    assert_allclose(gram.predict_proba(X), svd.predict_proba(X), rtol=0, atol=1e-8)


def test_given_priors_are_used_as_the_peer_uses_them():
    X, y = gaussians()
    for solver in ("gram", "svd"):
        options = {"priors": [0.1, 0.2, 0.3, 0.4], "store_covariance": solver == "svd"}
        ours = LinearDiscriminantAnalysis(solver=solver, **options).fit(X, y)
        theirs = peer.LinearDiscriminantAnalysis(**options).fit(X, y)
        assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=0, atol=1e-10)
        if solver == "svd":
            assert_allclose(ours.covariance_, theirs.covariance_)


def test_oas_shrinks_each_class_in_standard_units():
    X, y = gaussians()
    model = LinearDiscriminantAnalysis(shrinkage="oas", store_covariance=True).fit(X, y)
    expected = 0.0
    for k in range(4):
        rows = X[y == k]
        scale = rows.std(axis=0)
        oas = OAS().fit(rows / scale)
        assert_allclose(model.shrinkage_[k], oas.shrinkage_)
        expected = expected + (y == k).mean() * oas.covariance_ * np.outer(scale, scale)
    assert_allclose(model.covariance_, expected)


@settings(max_examples=15)
@given(
    cuts=st.lists(st.integers(0, 300), max_size=6),
    shrinkage=st.sampled_from([None, 0.2, "auto", "oas"]),
    seed=st.integers(0, 50),
)
def test_any_chunking_gives_what_fit_gives(cuts, shrinkage, seed):
    X, y = gaussians(seed=seed)
    whole = LinearDiscriminantAnalysis(shrinkage=shrinkage).fit(X, y)
    grown = LinearDiscriminantAnalysis(shrinkage=shrinkage)
    halves = [LinearDiscriminantAnalysis(shrinkage=shrinkage) for _ in range(2)]
    ends = [0, *sorted(set(cuts) - {0, 300}), 300]
    for number, (start, end) in enumerate(itertools.pairwise(ends)):
        grown.partial_fit(X[start:end], y[start:end])
        halves[number % 2].partial_fit(X[start:end], y[start:end])
    merged = halves[0].merge(halves[1]) if len(ends) > 2 else grown
    for model in (grown, merged):
        assert_array_equal(model.classes_, whole.classes_)
        assert_allclose(model.predict_proba(X), whole.predict_proba(X), rtol=0, atol=1e-9)
        assert_allclose(model.decision_function(X), whole.decision_function(X), rtol=1e-9)
        assert_allclose(model.transform(X), whole.transform(X), rtol=0, atol=1e-9)


def test_rows_may_come_sorted_by_class():
    X, y = gaussians()
    model = LinearDiscriminantAnalysis()
    for k in range(4):
        model.partial_fit(X[y == k], y[y == k])
        if k == 0:
            with pytest.raises(ValueError, match="at least two classes"):
                model.predict(X)
    whole = LinearDiscriminantAnalysis().fit(X, y)
    assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-9)


def test_a_declared_class_without_rows_has_no_probability():
    X, y = gaussians()
    for declared in ([0, 1, 2, 3, 7], [-1, 0, 1, 2, 3]):
        model = LinearDiscriminantAnalysis().partial_fit(X, y, classes=declared)
        probabilities = model.predict_proba(X)
        absent = declared.index(7) if 7 in declared else declared.index(-1)
        assert_array_equal(probabilities[:, absent], 0.0)
        expected = LinearDiscriminantAnalysis().fit(X, y).predict_proba(X)
        assert_allclose(np.delete(probabilities, absent, axis=1), expected, atol=1e-12)
    pair = LinearDiscriminantAnalysis(priors=[0.5, 0.2, 0.3])
    pair.partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    assert_allclose(pair.priors_, [5 / 7, 2 / 7, 0.0])


def test_what_was_learned_does_not_change_under_its_holder():
    X, y = gaussians()
    model = LinearDiscriminantAnalysis().fit(X, y)
    means = model.means_
    before = means.copy()
    model.partial_fit(X + 1.0, y)
    assert_array_equal(means, before)
    assert_allclose(model.means_, before + 0.5)


def test_partial_fit_refuses_what_it_cannot_use():
    X, y = gaussians()
    model = LinearDiscriminantAnalysis().partial_fit(X, y, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match=r"y must contain only labels from classes=.*\[9\]"):
        model.partial_fit(X, np.full(len(y), 9))
    with pytest.raises(ValueError, match="classes must be passed in the first call"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="sample_weight must be non-negative, got"):
        model.partial_fit(X, y, sample_weight=-np.ones(len(y)))
    with pytest.raises(ValueError, match="X has 5 features"):
        model.partial_fit(X[:, 1:], y)
    with pytest.raises(AttributeError, match="partial_fit"):
        LinearDiscriminantAnalysis(solver="svd").partial_fit(X, y)
    with pytest.raises(ValueError, match="solver='gram'"):
        LinearDiscriminantAnalysis(solver="svd").fit(X, y).merge(model)


def test_merge_refuses_other_things():
    X, y = gaussians()
    model = LinearDiscriminantAnalysis().fit(X, y)
    with pytest.raises(TypeError, match="other must be a LinearDiscriminantAnalysis"):
        model.merge(peer.LinearDiscriminantAnalysis().fit(X, y))
    with pytest.raises(ValueError, match="6 features"):
        model.merge(LinearDiscriminantAnalysis().fit(X[:, 1:], y))
    with pytest.raises(ValueError, match="shrinkage"):
        model.merge(LinearDiscriminantAnalysis(shrinkage="oas").fit(X, y))
    with pytest.raises(NotFittedError):
        model.merge(LinearDiscriminantAnalysis())


def test_merging_brings_in_new_classes():
    X, y = gaussians()
    low, high = y < 2, y > 0
    model = LinearDiscriminantAnalysis().fit(X[low], y[low])
    model.merge(LinearDiscriminantAnalysis().fit(X[high], y[high]))
    both = np.concatenate([np.flatnonzero(low), np.flatnonzero(high)])
    whole = LinearDiscriminantAnalysis().fit(X[both], y[both])
    assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-10)


@pytest.mark.parametrize("solver", ["gram", "svd", "eigen", "lsqr"])
def test_an_offset_of_a_million_changes_nothing(solver):
    X, y = gaussians()
    X = np.round(X * 2**12) / 2**12  # so that the offset rounds nothing away
    near = LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    far = LinearDiscriminantAnalysis(solver=solver).fit(X + 1e6, y)
    assert_allclose(far.predict_proba(X + 1e6), near.predict_proba(X), rtol=0, atol=1e-11)
    half = np.where(np.arange(6) < 3, 1e6, 0.0)  # some features near zero, some far from it
    mixed = LinearDiscriminantAnalysis(solver=solver).fit(X + half, y)
    assert_allclose(
        mixed.predict_proba(sparse.csr_array(X + half)), near.predict_proba(X), rtol=0, atol=1e-11
    )
    published = (X + 1e6) @ far.coef_.T + far.intercept_
    assert_allclose(far.decision_function(X + 1e6), published, rtol=0, atol=1e-5)


def exact_probabilities(X, y):
    """Bayes' rule of classes of one covariance, in fractions up to the exponential."""
    rows = np.array([[Fraction(value) for value in row] for row in X.tolist()])
    means = np.array([rows[y == k].sum(axis=0) / Fraction(int(sum(y == k))) for k in np.unique(y)])
    centred = rows - means[y]
    system = np.hstack([centred.T @ centred / Fraction(len(y)), (means - means[0]).T])
    for i in range(len(system)):
        system[i] = system[i] / system[i, i]
        for j in range(len(system)):
            if j != i:
                system[j] = system[j] - system[j, i] * system[i]
    coef = system[:, len(system) :]
    middle = (means + means[0]) / 2
    scores = rows @ coef - (middle * coef.T).sum(axis=1)
    return softmax(scores.astype(float) + np.log(np.bincount(y)), axis=1)


@pytest.mark.parametrize("solver", ["gram", "svd", "eigen", "lsqr"])
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
def test_probabilities_are_those_of_exact_arithmetic_however_far_the_means(solver, offset):
    X, y = gaussians(n_rows=40)
    X = X[:, :3] + offset
    model = LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    exact = exact_probabilities(X, y)
    assert_allclose(model.predict_proba(X), exact, rtol=0, atol=1e-11)
    if solver != "svd":
        pieces = LinearDiscriminantAnalysis(solver=solver)
        for start in range(0, len(X), 3):
            pieces.partial_fit(X[start : start + 3], y[start : start + 3])
        assert_allclose(pieces.predict_proba(X), exact, rtol=0, atol=1e-11)


def test_two_classes_have_the_closed_form():
    X, y = gaussians(n_classes=2)
    for solver in ("gram", "svd", "eigen", "lsqr"):
        model = LinearDiscriminantAnalysis(solver=solver).fit(X, y)
        within, _ = scatters(X, y)
        gap = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
        direction = linalg.solve(within, gap)
        middle = (X[y == 1].mean(axis=0) + X[y == 0].mean(axis=0)) / 2
        odds = np.log((y == 1).sum() / (y == 0).sum())
        assert_allclose(model.coef_[0], direction, rtol=1e-9, atol=1e-12)
        assert_allclose(model.intercept_[0], odds - middle @ direction, rtol=1e-9)
        if solver == "gram":
            unit = direction / np.sqrt(direction @ within @ direction)
            assert_allclose(model.scalings_[:, 0], unit, rtol=1e-9, atol=1e-12)
            assert_allclose(model.objective_, y.var() * gap @ direction)


def test_directions_solve_the_generalised_eigenproblem():
    X, y = gaussians()
    within, between = scatters(X, y)
    values, _ = linalg.eigh(between, within)
    model = LinearDiscriminantAnalysis().fit(X, y)
    W = model.scalings_
    assert W.shape == (6, 3)
    assert model.between_rank_ == 3
    assert_allclose(W.T @ within @ W, np.eye(3), atol=1e-10)
    assert_allclose(between @ W, within @ W * values[:-4:-1], atol=1e-9)
    assert_allclose(model.objective_, values.sum())


def test_dependent_means_are_reported():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 4
    means = np.outer([0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 0.0, 0.0])
    noise = rng.standard_normal((100, 4))
    X = means[y] + np.repeat(noise, 4, axis=0)  # the same noise in every class
    model = LinearDiscriminantAnalysis().fit(X, y)
    assert model.between_rank_ == 1
    assert model.within_rank_ == 4
    assert model.transform(X).shape == (400, 1)


@pytest.mark.parametrize("solver", ["gram", "svd"])
def test_singular_scatter_is_reported_and_left_out(solver):
    X, y = gaussians()
    X = np.column_stack([X, X[:, 0] + X[:, 1], np.full(len(X), 3.0)])
    model = LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    theirs = peer.LinearDiscriminantAnalysis().fit(X, y)
    assert model.within_rank_ == 6
    assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-8)


def test_wide_data_go_through_the_singular_value_decomposition():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 200)), np.arange(30) % 3
    model = LinearDiscriminantAnalysis().fit(X, y)
    assert model.solver_ == "svd"
    assert model.within_rank_ == 27
    assert model.statistics_ is None
    theirs = peer.LinearDiscriminantAnalysis().fit(X, y)
    assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-8)
    assert LinearDiscriminantAnalysis(shrinkage="oas").fit(X, y).solver_ == "gram"


def test_the_unbiased_covariance_is_divided_by_rows_less_classes():
    X, y = gaussians()
    within, _ = scatters(X, y)
    expected = within * len(X) / (len(X) - 4)
    for solver in ("gram", "svd", "eigen", "lsqr"):
        options = {"covariance_divisor": "unbiased", "store_covariance": True}
        model = LinearDiscriminantAnalysis(solver=solver, **options).fit(X, y)
        assert_allclose(model.covariance_, expected, rtol=1e-9)
        gaps = model.means_[1:] - model.means_[0]
        slopes = model.coef_[1:] - model.coef_[0]
        assert_allclose(slopes, linalg.solve(expected, gaps.T).T, rtol=1e-7, atol=1e-10)


def trace_ratio(W, within, between):
    W, _ = np.linalg.qr(W)
    return np.trace(W.T @ between @ W) / np.trace(W.T @ within @ W)


@pytest.mark.parametrize("solver", ["gram", "eigen"])
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_the_trace_ratio_is_at_its_fixed_point(solver, n_components):
    X, y = gaussians()
    within, between = scatters(X, y)
    options = {"solver": solver, "n_components": n_components}
    model = LinearDiscriminantAnalysis(objective="trace_ratio", **options).fit(X, y)
    W, ratio = model.scalings_, model.objective_
    assert_allclose(W.T @ W, np.eye(n_components), atol=1e-12)
    assert_allclose(trace_ratio(W, within, between), ratio, rtol=1e-9)
    leading = np.linalg.eigvalsh(between - ratio * within)[-n_components:]
    assert abs(leading.sum()) < 1e-9 * np.trace(between)
    plain = LinearDiscriminantAnalysis(**options).fit(X, y)
    eigenproblem = trace_ratio(plain.scalings_[:, :n_components], within, between)
    assert ratio >= eigenproblem * (1.0 - 1e-12)
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert trace_ratio(rng.standard_normal((6, n_components)), within, between) < ratio
    assert model.explained_variance_ratio_.shape == (n_components,)
    assert_array_equal(model.predict(X), plain.predict(X))


def test_the_trace_ratio_keeps_to_directions_in_which_rows_vary():
    X, y = gaussians()
    X = np.column_stack([X, X[:, 0] - X[:, 1]])
    model = LinearDiscriminantAnalysis(objective="trace_ratio").fit(X, y)
    within, between = scatters(X, y)
    assert model.within_rank_ == 6
    plain = LinearDiscriminantAnalysis().fit(X, y)
    assert model.objective_ >= trace_ratio(plain.scalings_, within, between) - 1e-9


def test_the_trace_ratio_needs_a_solver_that_has_directions():
    X, y = gaussians()
    for solver in ("svd", "lsqr"):
        with pytest.raises(ValueError, match=r"trace_ratio.*gram"):
            LinearDiscriminantAnalysis(solver, objective="trace_ratio").fit(X, y)


def test_one_feature_has_its_boundary_where_the_densities_cross():
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.7).astype(int)
    X = (np.where(y, 1.5, -1.5) + rng.standard_normal(4000))[:, np.newaxis]
    for priors, expected in [([0.5, 0.5], 0.0), ([0.3, 0.7], -np.log(7 / 3) / 3)]:
        model = LinearDiscriminantAnalysis(priors=priors).fit(X, y)
        boundary = -model.intercept_[0] / model.coef_[0, 0]
        assert abs(boundary - expected) < 0.05
        low, high = model.means_[:, 0]
        variance = scatters(X, y)[0][0, 0]
        exact = (low + high) / 2 + np.log(priors[0] / priors[1]) * variance / (high - low)
        assert_allclose(boundary, exact, atol=1e-10)


def test_sparse_rows_in_pieces_equal_dense_ones():
    X, y = gaussians()
    X = np.where(np.abs(X) < 1, 0.0, X)
    dense = LinearDiscriminantAnalysis(shrinkage="auto").fit(X, y)
    grown = LinearDiscriminantAnalysis(shrinkage="auto")
    for start in range(0, 300, 64):
        grown.partial_fit(sparse.csr_array(X[start : start + 64]), y[start : start + 64])
    assert_allclose(grown.transform(sparse.csr_array(X)), dense.transform(X), atol=1e-9)
    assert_allclose(grown.predict_proba(sparse.csr_array(X)), dense.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("solver", ["svd", "eigen"])
def test_work_on_rows_takes_dense_rows_without_weights(solver):
    X, y = gaussians()
    estimator = ShrunkCovariance() if solver == "eigen" else None
    model = LinearDiscriminantAnalysis(solver, covariance_estimator=estimator)
    with pytest.raises(TypeError, match="X must be dense"):
        model.fit(sparse.csr_array(X), y)
    if solver == "eigen":
        with pytest.raises(ValueError, match="sample_weight"):
            model.fit(X, y, sample_weight=np.ones(len(y)))


def test_a_covariance_estimator_is_used_and_left_as_it_is():
    X, y = gaussians()
    estimator = ShrunkCovariance(shrinkage=0.3)
    model = LinearDiscriminantAnalysis(covariance_estimator=estimator).fit(X, y)
    assert model.solver_ == "eigen"
    assert not hasattr(estimator, "covariance_")
    shrunk = LinearDiscriminantAnalysis("eigen", shrinkage=0.3).fit(X, y)
    assert_allclose(model.predict_proba(X), shrunk.predict_proba(X), atol=1e-10)


def test_log_probabilities_stay_finite_where_probabilities_vanish():
    X, y = gaussians()
    for rows in (X, X[y < 2]):
        labels = y[: len(rows)] if rows is X else y[y < 2]
        model = LinearDiscriminantAnalysis().fit(rows, labels)
        logarithms = model.predict_log_proba(1e4 * X)
        assert np.isfinite(logarithms).all()
        assert logarithms.min() < -1e3
        assert_allclose(np.exp(logarithms), model.predict_proba(1e4 * X), atol=1e-12)


def test_bad_priors_are_refused():
    X, y = gaussians()
    with pytest.raises(ValueError, match="positive sum"):
        LinearDiscriminantAnalysis(priors=[0.0, 0.0, 0.0, 0.0]).fit(X, y)
    with pytest.raises(ValueError, match="one number for each of the 4 classes"):
        LinearDiscriminantAnalysis(priors=[0.5, 0.5]).fit(X, y)


def test_unbiased_needs_more_weight_than_classes():
    X, y = gaussians()
    with pytest.raises(ValueError, match="covariance_divisor='n'"):
        LinearDiscriminantAnalysis(covariance_divisor="unbiased").fit(
            X, y, sample_weight=np.full(len(y), 1e-3)
        )


@pytest.mark.parametrize("solver", ["gram", "lsqr", "eigen"])
def test_solvers_take_the_directions_that_few_rows_know(solver):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 100)) + 0.6 * rng.normal(size=(3, 100))[y]
    expected = LinearDiscriminantAnalysis(solver="svd").fit(X, y)
    model = LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    assert model.within_rank_ == expected.within_rank_ == 57
    rows = X[:30] + 0.3 * rng.normal(size=(30, 100))
    np.testing.assert_allclose(model.predict_proba(rows), expected.predict_proba(rows), atol=1e-6)


@pytest.mark.parametrize("options", [
    {"solver": "gram"}, {"solver": "svd"}, {"solver": "lsqr"}, {"solver": "eigen"},
    {"shrinkage": "oas"}, {"objective": "trace_ratio"},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("scale", [1.0, 1e8])
def test_columns_of_one_number_say_nothing(options, scale):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 4, 1000)
    X = rng.normal(size=(1000, 4)) + rng.normal(size=(4, 4))[y]
    constants = np.tile(scale * rng.normal(size=3), (1000, 1))
    model = LinearDiscriminantAnalysis(**options).fit(np.c_[X, constants], y)
    if "shrinkage" not in options:
        assert getattr(model, "within_rank_", 4) == 4
        expected = LinearDiscriminantAnalysis(**options).fit(X, y).predict_proba(X)
        assert_allclose(model.predict_proba(np.c_[X, constants]), expected, atol=1e-8)
    assert model.score(np.c_[X, constants], y) > 0.55


def test_directions_and_their_names_are_as_many_as_the_means_span():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 100)
    X = rng.normal(size=(400, 5)) + np.outer(3.0 * y, np.eye(5)[0])
    X -= np.array([X[y == k].mean(axis=0) for k in range(4)])[y]
    X[:, 0] += 3.0 * y
    model = LinearDiscriminantAnalysis().fit(X, y)
    assert model.between_rank_ == 1
    assert model.transform(X).shape[1] == len(model.get_feature_names_out()) == 1


@pytest.mark.parametrize("priors", [[np.nan, 0.5, 0.5], [np.inf, 0.5, 0.5], [0.0, 0.0, 0.0]])
def test_priors_that_are_no_numbers_are_refused_by_name(priors):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="priors must be non-negative and finite"):
        LinearDiscriminantAnalysis(priors=priors).fit(X, y)


@pytest.mark.parametrize("solver", ["gram", "svd", "eigen", "lsqr"])
@pytest.mark.parametrize("priors", [None, [0.5, 0.3, 0.2]])
def test_the_kept_covariance_is_the_peers_whatever_the_priors(solver, priors):
    X, y = load_iris(return_X_y=True)
    ours = LinearDiscriminantAnalysis(solver, priors=priors, store_covariance=True).fit(X, y)
    theirs = peer.LinearDiscriminantAnalysis(priors=priors, store_covariance=True).fit(X, y)
    assert_allclose(ours.covariance_, theirs.covariance_, rtol=1e-10)


@pytest.mark.parametrize("solver", ["gram", "svd", "eigen"])
def test_directions_face_the_class_that_is_farthest_out(solver):
    X, y = gaussians()
    for labels in (y, y % 2):
        model = LinearDiscriminantAnalysis(solver).fit(X, labels)
        means = model.means_ @ model.scalings_[:, : model.between_rank_]
        spread = means - means.mean(axis=0)
        farthest = np.abs(spread).argmax(axis=0) if labels is y else np.array([1])
        assert (spread[farthest, np.arange(spread.shape[1])] > 0).all()


@pytest.mark.parametrize("solver", ["gram", "svd", "eigen", "lsqr"])
def test_rows_that_are_all_the_same_say_nothing(solver):
    X, y = np.ones((10, 3)), np.arange(10) % 2
    model = LinearDiscriminantAnalysis(solver, priors=[0.4, 0.6]).fit(X, y)
    assert_allclose(model.predict_proba(X), np.tile([0.4, 0.6], (10, 1)))
    assert model.within_rank_ == 0
    if solver != "lsqr":
        assert model.transform(X).shape == (10, 0)


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
@pytest.mark.parametrize("change", [{"shrinkage": "auto"}, {"solver": "svd"}])
def test_parameters_set_after_partial_fit_change_no_prediction(kind, change):
    X, y = load_iris(return_X_y=True)
    expected = kind().partial_fit(X, y).predict_log_proba(X)
    model = kind().partial_fit(X, y).set_params(**change)
    assert_array_equal(model.predict_log_proba(X), expected)


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
def test_parameters_that_need_other_statistics_are_rejected_after_the_first_batch(kind):
    X, y = load_iris(return_X_y=True)
    model = kind().partial_fit(X, y).set_params(shrinkage="auto")
    with pytest.raises(ValueError, match="set them before the first partial_fit"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="set them before the first partial_fit"):
        model.merge(kind().partial_fit(X, y))
    model.set_params(shrinkage=0.1).partial_fit(X, y)
    whole = kind(shrinkage=0.1).fit(np.vstack([X, X]), np.append(y, y))
    assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
def test_before_the_second_class_comes_nothing_is_learnt(kind):
    X, y = load_iris(return_X_y=True)
    model = kind().partial_fit(X[:10], y[:10])
    assert not hasattr(model, "means_")
    with pytest.raises(ValueError, match="at least two classes, got 1"):
        model.predict(X)
    assert hasattr(model.partial_fit(X[10:], y[10:]), "means_")


@pytest.mark.parametrize("kind", [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis])
@pytest.mark.parametrize("text", [str, object])
def test_words_and_numbers_are_not_mixed_as_labels(kind, text):
    X, y = load_iris(return_X_y=True)
    words = y.astype(str).astype(text)
    with pytest.raises(ValueError, match="either strings or numbers"):
        kind().partial_fit(X, y).partial_fit(X, words)
    with pytest.raises(ValueError, match="either strings or numbers"):
        kind().fit(X, y).merge(kind().fit(X, words))
