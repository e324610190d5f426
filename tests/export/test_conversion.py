"""Converted models predict the same in scikit-learn, and in ONNX Runtime to float32 precision."""

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import scipy.sparse as sp
import skl2onnx
import sklearn.discriminant_analysis
import sklearn.svm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.suites.registry import classification, two_classes

from widemargin import (
    SVC,
    CrammerSingerSVC,
    LinearDiscriminantAnalysis,
    LinearSVC,
    QuadraticDiscriminantAnalysis,
)
from widemargin.export import to_sklearn

MODELS = [
    SVC(C=10.0),
    SVC(kernel="linear", class_weight="balanced"),
    SVC(kernel="poly", degree=2, coef0=1.0, decision_function_shape="ovo"),
    SVC(kernel="sigmoid", gamma=0.1),
    SVC(class_weight="effective", break_ties=True),
    LinearSVC(),
    LinearSVC(loss="hinge", max_iter=100_000),
    LinearSVC(multi_class="crammer_singer", max_iter=100_000),
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto"),
    QuadraticDiscriminantAnalysis(),
    make_pipeline(StandardScaler(), SVC()),
    make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(solver="lsqr")),
]
DATA = {"two classes": two_classes, "three classes": classification}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_the_converted_model_predicts_the_same(model, data):
    X, y = DATA[data]()
    labels = np.array(["a", "b", "c"])[y]
    converted = to_sklearn(model.fit(X, labels))
    assert_allclose(converted.decision_function(X), model.decision_function(X), atol=1e-9)
    assert_array_equal(converted.predict(X), model.predict(X))
    last = converted[-1] if hasattr(converted, "steps") else converted
    assert type(last).__module__.startswith("sklearn.")


@pytest.mark.parametrize("data", DATA)
def test_sparse_and_precomputed_kernels(data):
    X, y = DATA[data]()
    sparse = sp.csr_matrix(X)
    model = SVC().fit(sparse, y)
    assert_allclose(
        to_sklearn(model).decision_function(sparse), model.decision_function(sparse), atol=1e-9
    )
    model = SVC(kernel="precomputed").fit(X @ X.T, y)
    assert_allclose(
        to_sklearn(model).decision_function(X @ X.T), model.decision_function(X @ X.T), atol=1e-9
    )


def test_names_of_features_are_kept():
    X, y = two_classes()
    table = pd.DataFrame(X, columns=list("abcde"))
    for model in (SVC(), LinearSVC()):
        converted = to_sklearn(model.fit(table, y))
        assert_array_equal(converted.feature_names_in_, list("abcde"))
        assert_array_equal(converted.predict(table), model.predict(table))


@pytest.mark.parametrize(
    "model",
    [CrammerSingerSVC(), SVC(kernel="laplacian"), SVC(multi_class="ovr"), SVC(kernel=np.dot)],
    ids=["Crammer-Singer", "laplacian", "one-vs-rest", "callable"],
)
def test_what_scikit_learn_does_not_have_is_refused(model):
    X, y = classification()
    if model.get_params()["kernel"] is np.dot:
        model.kernel = linear_kernel
    with pytest.raises(TypeError, match="scikit-learn"):
        to_sklearn(model.fit(X, y))


def linear_kernel(a, b):
    return a @ b.T


def test_an_unfitted_model_is_refused():
    with pytest.raises(NotFittedError):
        to_sklearn(SVC())


def run_onnx(model, X):
    """Return the outputs of a converted model in ONNX Runtime."""
    last = model[-1] if hasattr(model, "steps") else model
    linear = isinstance(last, sklearn.svm.LinearSVC)
    options = {id(last): {"raw_scores": True} if linear else {"zipmap": False}}
    onnx = skl2onnx.to_onnx(model, X[:1], options=options)
    session = onnxruntime.InferenceSession(onnx.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: X})


def expected_scores(model, X):
    """Return what skl2onnx puts beside the labels: probabilities, or else decision values."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    return model.decision_function(X)


@pytest.mark.parametrize(
    "model",
    [
        SVC(C=10.0),
        SVC(kernel="linear"),
        LinearSVC(),
        LinearDiscriminantAnalysis(),
        QuadraticDiscriminantAnalysis(),
        make_pipeline(StandardScaler(), SVC()),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:Attribute `prob:FutureWarning")  # skl2onnx reads it
def test_onnx_runtime_predicts_the_same(model):
    X, y = classification()
    X = X.astype(np.float32)
    model.fit(X, y)
    labels, scores = run_onnx(to_sklearn(model), X)
    assert_array_equal(labels.ravel(), model.predict(X))
    expected = expected_scores(model, X)
    assert_allclose(scores, expected, atol=1e-5 * max(1.0, np.abs(expected).max()))


def test_converted_classes_are_those_of_scikit_learn():
    X, y = classification()
    assert type(to_sklearn(SVC().fit(X, y))) is sklearn.svm.SVC
    assert type(to_sklearn(LinearSVC().fit(X, y))) is sklearn.svm.LinearSVC
    converted = to_sklearn(QuadraticDiscriminantAnalysis().fit(X, y))
    assert type(converted) is sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis
