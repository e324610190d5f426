"""Fits on Dask collections equal fits of all samples at once; here in threads of this process."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning

import widemargin
from widemargin import (
    SVC,
    LinearDiscriminantAnalysis,
    LinearSVC,
    QuadraticDiscriminantAnalysis,
)
from widemargin._base.options import distributed_options

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

DaskEstimator = widemargin.distributed.DaskEstimator
LOSSES = ("hinge", "squared_hinge")


def digits(n=600, n_classes=10):
    X, y = load_digits(return_X_y=True)
    chosen = np.flatnonzero(y < n_classes)[:n]
    return X[chosen] / 16.0, y[chosen]


def blocks(*arrays, size=150):
    return [da.from_array(a, chunks=(size, *a.shape[1:])) for a in arrays]


def sparse_blocks(X, size=150):
    return da.concatenate([
        da.from_array(X[k : k + size].tocsr(), chunks=-1, asarray=False)
        for k in range(0, X.shape[0], size)
    ])  # fmt: skip


def weights(n):
    return np.random.default_rng(0).integers(0, 4, n).astype(float)


@pytest.mark.parametrize(
    "estimator",
    [
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(shrinkage="oas", solver="eigen"),
        QuadraticDiscriminantAnalysis(reg_param=0.1),
        QuadraticDiscriminantAnalysis(shrinkage="auto", tol=0.0),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_discriminants_equal_those_of_all_samples(estimator, weighted):
    X, y = digits()
    w = weights(len(y)) if weighted else None
    model = DaskEstimator(estimator).fit(*blocks(X, y), *(blocks(w) if weighted else ()))
    local = estimator.fit(X, y, w)
    scores = local.decision_function(X)
    assert type(model.estimator_) is type(estimator)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9 * abs(scores).max())


def test_discriminants_leave_out_classes_of_weight_zero():
    X, y = load_iris(return_X_y=True)
    w = (y != 1).astype(float)
    parts = blocks(X, y, w, size=30)
    model = DaskEstimator(LinearDiscriminantAnalysis()).fit(*parts)
    assert model.classes_.tolist() == [0, 2]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("size", [60, 300])
def test_linear_svc_has_the_objective_of_the_local_fit(loss, size):
    X, y = digits(400, 3)
    estimator = LinearSVC(loss=loss, tol=1e-8, max_iter=100_000, C=0.5)
    model = DaskEstimator(estimator, gap_tol=1e-6).fit(*blocks(X, y, size=size))
    local = estimator.fit(X, y)
    assert (model.dual_gap_ <= 1e-6).all()
    np.testing.assert_allclose(model.objective_, local.objective_, rtol=1e-6)
    np.testing.assert_allclose(model.coef_, local.coef_, atol=2e-2)


@pytest.mark.parametrize("loss", LOSSES)
def test_its_objective_and_gap_are_those_of_its_weights(loss):
    X, y = make_classification(300, 6, random_state=0)
    model = DaskEstimator(LinearSVC(loss=loss, C=0.3)).fit(*blocks(X, y, size=70))
    slack = np.maximum(0.0, 1.0 - (2 * y - 1) * model.decision_function(X))
    losses = slack if loss == "hinge" else slack**2
    norm = np.sum(model.coef_**2) + np.sum(model.intercept_**2)
    objective = 0.5 * norm + 0.3 * losses.sum()
    best = LinearSVC(loss=loss, C=0.3, tol=1e-9, max_iter=100_000).fit(X, y).objective_[0]
    assert model.objective_[0] == pytest.approx(objective, rel=1e-12)
    assert objective - best <= model.dual_gap_[0] * objective + 1e-9 * objective


@pytest.mark.parametrize("loss", LOSSES)
def test_many_sparse_features_are_solved_by_conjugate_gradients(loss, monkeypatch):
    monkeypatch.setattr(distributed_options, "direct_features", 50)
    random = np.random.default_rng(0)
    X = sp.random_array((160, 100), density=0.1, rng=random, format="csr")
    y = (X @ random.normal(size=100) > 0).astype(int)
    estimator = LinearSVC(loss=loss, tol=1e-8, max_iter=100_000, C=0.1)
    model = DaskEstimator(estimator, gap_tol=1e-4).fit(sparse_blocks(X, 80), *blocks(y, size=80))
    assert (model.dual_gap_ <= 1e-4).all()
    np.testing.assert_allclose(model.objective_, estimator.fit(X, y).objective_, rtol=1e-4)


def test_weights_margins_and_intercept_are_those_of_the_local_fit():
    X, y = digits(300)
    w = weights(300)
    y = np.array(list("abcdefghij"))[y]
    estimator = LinearSVC(
        class_weight="balanced", class_margin="ldam", intercept_scaling=3.0, tol=1e-9
    )
    model = DaskEstimator(estimator, gap_tol=1e-9).fit(*blocks(X, y, w, size=70))
    local = estimator.fit(X, y, w)
    np.testing.assert_allclose(model.objective_, local.objective_, rtol=1e-8)
    np.testing.assert_allclose(model.class_weight_, local.class_weight_)
    np.testing.assert_allclose(model.intercept_, local.intercept_, atol=1e-3)


def test_a_fit_repeats_its_bits():
    X, y = digits(300)
    first, second = (DaskEstimator(LinearSVC()).fit(*blocks(X, y)).coef_ for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_the_gap_of_the_history_never_increases():
    model = DaskEstimator(LinearSVC(loss="hinge")).fit(*blocks(*digits(300, 3)))
    gaps = model.history_["gap"]
    assert gaps.shape == (len(model.history_["round"]), 3)
    assert (np.diff(gaps, axis=0) <= 1e-15).all()
    assert set(model.history_["phase"]) == {"cocoa", "newton"}


def test_too_few_rounds_warn():
    with pytest.warns(ConvergenceWarning, match="max_rounds=3"):
        model = DaskEstimator(LinearSVC(), max_rounds=3).fit(*blocks(*digits(300)))
    assert (model.dual_gap_ > 1e-5).any()


def test_data_frames_keep_the_names_of_their_features():
    frame = load_iris(as_frame=True).frame
    table = dd.from_pandas(frame, npartitions=3)
    X, y = table.drop(columns="target"), table["target"]
    for estimator in (LinearSVC(), LinearDiscriminantAnalysis()):
        model = DaskEstimator(estimator).fit(X, y)
        assert model.feature_names_in_.tolist() == list(frame.columns[:-1])
        expected = model.estimator_.predict(frame.iloc[:, :-1])
        np.testing.assert_array_equal(model.predict(X).compute(), expected)
        assert model.score(X, y) == np.mean(expected == frame["target"])


def test_columns_in_several_blocks_and_other_blocks_of_labels_are_joined():
    X, y = digits(300)
    X, y = da.from_array(X, chunks=(100, 20)), da.from_array(y, chunks=60)
    model = DaskEstimator(LinearSVC()).fit(X, y)
    assert model.n_features_in_ == 64


def test_empty_blocks_are_left_out():
    X, y = digits(300)
    parts = [da.from_array(a, chunks=((100, 0, 200), *a.shape[1:])) for a in (X, y)]
    for estimator in (LinearSVC(), LinearDiscriminantAnalysis()):
        model = DaskEstimator(estimator).fit(*parts)
        assert len(model.classes_) == 10
        assert len(model.predict(parts[0]).compute()) == 300


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        (np.ones((4, 2)), np.arange(4), TypeError, "X must be a Dask collection"),
        (da.ones((4, 2)), np.arange(4), TypeError, "y must be a Dask collection"),
        (da.ones((4, 2)), da.zeros(4), ValueError, "at least two classes"),
        (da.ones((0, 2)), da.zeros(0), ValueError, "at least one sample"),
        (da.full((4, 2), np.nan), da.arange(4), ValueError, "NaN"),
        (da.ones((4, 2), chunks=2), da.arange(5, chunks=5), ValueError, "as many blocks as X"),
    ],
)
def test_bad_input_is_refused(X, y, error, message):
    with pytest.raises(error, match=message):
        DaskEstimator(LinearSVC()).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (SVC(), TypeError, "Nystroem"),
        (LinearSVC(multi_class="crammer_singer"), ValueError, "multi_class='ovr'"),
        (LinearSVC(checkpoint="file"), ValueError, "checkpoint is not supported"),
        (LinearDiscriminantAnalysis(solver="svd"), ValueError, "solver='gram'"),
    ],
)
def test_estimators_that_cannot_be_fitted_are_refused(estimator, error, message):
    with pytest.raises(error, match=message):
        DaskEstimator(estimator).fit(*blocks(*digits(300)))


def test_negative_weights_are_refused():
    X, y = digits(300)
    with pytest.raises(ValueError, match="must be non-negative, got -1"):
        DaskEstimator(LinearSVC()).fit(*blocks(X, y, np.full(300, -1.0)))
