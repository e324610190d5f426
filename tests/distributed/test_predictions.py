"""Predictions on Dask collections: lazy, blockwise, equal to those on all samples."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline

import widemargin
from widemargin import SVC, LinearDiscriminantAnalysis, LinearSVC

da = pytest.importorskip("dask.array")
bag = pytest.importorskip("dask.bag")
dd = pytest.importorskip("dask.dataframe")

DaskEstimator = widemargin.distributed.DaskEstimator
METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba", "transform")


def iris(n_classes=3):
    X, y = load_iris(return_X_y=True)
    return X[y < n_classes], y[y < n_classes]


@pytest.mark.parametrize(
    "estimator",
    [SVC(), LinearSVC(), LinearDiscriminantAnalysis(), widemargin.KernelDiscriminantAnalysis(),
     widemargin.QuadraticDiscriminantAnalysis(), widemargin.CrammerSingerSVC(),
     widemargin.GatedStudents(SVC()), widemargin.LabelTreeClassifier(loss="log"),
     widemargin.CodeMatrixClassifier(SVC())],
    ids=lambda estimator: type(estimator).__name__,
)  # fmt: skip
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_method_equals_that_on_all_samples(estimator, n_classes):
    X, y = iris(n_classes)
    model = clone(estimator).fit(X, y)
    lazy = DaskEstimator(model)
    tried = 0
    for method in METHODS:
        assert hasattr(lazy, method) == hasattr(model, method)
        if hasattr(model, method):
            result = getattr(lazy, method)(da.from_array(X, chunks=(33, 2)))
            expected = getattr(model, method)(X)
            assert isinstance(result, da.Array)
            assert result.shape == expected.shape
            assert result.dtype == expected.dtype
            np.testing.assert_allclose(result.compute(), expected, rtol=1e-12, atol=1e-12)
            tried += 1
    assert tried


def test_nothing_is_computed_before_it_is_wanted():
    def fail(block):
        raise AssertionError

    X, y = iris()
    samples = da.from_array(X, chunks=(50, 4)).map_blocks(fail, meta=X[:0])
    labels = DaskEstimator(SVC().fit(X, y)).predict(samples)
    with pytest.raises(AssertionError):
        labels.compute()


def test_sparse_blocks_and_data_frames():
    X, y = iris()
    model = LinearSVC().fit(X, y)
    blocks = da.from_array(sp.csr_array(X), chunks=-1, asarray=False)
    np.testing.assert_array_equal(DaskEstimator(model).predict(blocks), model.predict(X))
    frame = load_iris(as_frame=True).data
    model = LinearSVC().fit(frame, y)
    table = dd.from_pandas(frame, npartitions=4)
    np.testing.assert_array_equal(DaskEstimator(model).predict(table), model.predict(frame))


def test_bags_of_texts():
    texts = ["a graph", "a flower", "graph search", "garden flower"]
    model = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(texts, ["math", "art", "math", "art"])
    result = DaskEstimator(model).predict(bag.from_sequence(texts * 3, npartitions=5))
    assert isinstance(result, bag.Bag)
    assert result.compute() == model.predict(texts * 3).tolist()


def test_other_data_are_passed_on():
    X, y = iris()
    model = SVC().fit(X, y)
    np.testing.assert_array_equal(DaskEstimator(model).predict(X), model.predict(X))


def test_an_estimator_that_is_not_fitted_cannot_predict():
    X, _ = iris()
    with pytest.raises(NotFittedError):
        DaskEstimator(SVC()).predict(da.from_array(X))


def test_a_pipeline_of_nystroem_features():
    X, y = iris()
    pipeline = make_pipeline(Nystroem(n_components=40, random_state=0), LinearSVC(loss="hinge"))
    parts = [da.from_array(part, chunks=(50, *part.shape[1:])) for part in (X, y)]
    model = DaskEstimator(pipeline).fit(*parts)
    features = model.estimator_[0]
    local = LinearSVC(loss="hinge", tol=1e-7, max_iter=100_000).fit(features.transform(X), y)
    np.testing.assert_allclose(model.estimator_[1].objective_, local.objective_, rtol=1e-5)
    np.testing.assert_array_equal(model.predict(parts[0]), model.estimator_.predict(X))
    assert 0.0 < model.approximation_error_ < 0.1


def test_the_error_of_a_kernel_is_that_of_its_trace():
    X, y = iris()
    parts = [da.from_array(part, chunks=(50, *part.shape[1:])) for part in (X, y)]
    errors = []
    for size in (2, 10, 150):
        pipeline = make_pipeline(Nystroem(n_components=size, random_state=0), LinearSVC())
        model = DaskEstimator(pipeline).fit(*parts)
        basis = model.estimator_[0].components_
        others = X[~(X[:, np.newaxis] == basis).all(axis=2).any(axis=1)]
        if len(others):
            lost = 1.0 - np.sum(model.estimator_[0].transform(others) ** 2, axis=1)
            deviation = abs(model.approximation_error_ - lost.mean())
            assert deviation <= 4.0 * model.approximation_error_std_ + 1e-3
        errors.append(model.approximation_error_)
    assert errors[0] > errors[1] > errors[2] == 0.0
