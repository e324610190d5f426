"""ONNX graphs give the labels and scores of the estimators, in ONNX Runtime."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import widemargin
from widemargin import (
    SVC,
    CodeMatrixClassifier,
    CrammerSingerSVC,
    GatedStudents,
    GatedSVC,
    LinearDiscriminantAnalysis,
    LinearSVC,
    PreferenceClassifier,
    PreferenceSVC,
    PrivilegedSVC,
    QuadraticDiscriminantAnalysis,
    TransductiveSVC,
)
from widemargin.export import register_onnx_converters

onnxruntime = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*student.*:UserWarning"
)


@pytest.fixture(scope="module", autouse=True)
def _registered():
    register_onnx_converters()


def run(model, X):
    """Return labels and scores of ONNX Runtime."""
    onnx = skl2onnx.to_onnx(model, X[:1])
    session = onnxruntime.InferenceSession(
        onnx.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"X": X})


def samples(data, standardize=True):
    X, y = data(return_X_y=True)
    X = StandardScaler().fit_transform(X) if standardize else X
    return X.astype(np.float32), y


def compare(model, X, scores=None):
    """Compare labels and decision values, to 1e-5 of the largest one."""
    labels, found = run(model, X)
    expected = model.decision_function(X) if scores is None else scores
    expected = expected.reshape(len(X), -1)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    np.testing.assert_array_equal(labels, model.predict(X))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid", "laplacian"])
@pytest.mark.parametrize("data", [load_breast_cancer, load_wine])
def test_svc_of_all_kernels(kernel, data):
    X, y = samples(data)
    compare(SVC(kernel=kernel, coef0=0.5).fit(X, y), X)


@pytest.mark.parametrize(
    "options",
    [
        {"multi_class": "ovr"},
        {"decision_function_shape": "ovo"},
        {"break_ties": True},
        {"gamma": 1e3},  # no sample is near another
    ],
)
def test_svc_of_all_shapes_of_decisions(options):
    X, y = samples(load_wine)
    compare(SVC(**options).fit(X, y), X)


def test_unscaled_features_far_from_the_origin_lose_no_digits():
    X, y = load_iris(return_X_y=True)
    X = (X + 1000.0).astype(np.float32)
    compare(SVC(gamma=0.5).fit(X, y), X)


@pytest.mark.parametrize(
    "model",
    [LinearSVC(), CrammerSingerSVC(), CrammerSingerSVC(kernel="rbf")],
    ids=["linear", "joint linear", "joint rbf"],
)
@pytest.mark.parametrize("data", [load_breast_cancer, load_wine])
def test_other_support_vector_classifiers(model, data):
    X, y = samples(data)
    compare(model.fit(X, y), X)


@pytest.mark.parametrize(
    "model",
    [LinearDiscriminantAnalysis(), QuadraticDiscriminantAnalysis(shrinkage=0.1)],
    ids=["linear", "quadratic"],
)
@pytest.mark.parametrize("data", [load_breast_cancer, load_wine])
def test_discriminants_return_probabilities(model, data):
    X, y = samples(data)
    model.fit(X, y)
    compare(model, X, model.predict_proba(X))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_privileged_and_transductive_classifiers(kernel):
    X, y = samples(load_breast_cancer)
    compare(PrivilegedSVC(kernel=kernel).fit(X[:, 5:], y, privileged=X[:, :5]), X[:, 5:])
    compare(TransductiveSVC(kernel=kernel).fit(X[:100], y[:100], X_unlabeled=X[100:200]), X)


@pytest.mark.parametrize("pos_label", [0, 1])
def test_the_threshold_of_a_constraint_is_part_of_the_graph(pos_label):
    X, y = samples(load_breast_cancer)
    model = PreferenceSVC(precision=0.98, margin=None, pos_label=pos_label).fit(X[:300], y[:300])
    assert model.threshold_ != 0.0
    compare(model, X)


@pytest.mark.parametrize(
    "base",
    [
        LogisticRegression(),
        RandomForestClassifier(20, max_depth=3, random_state=0),
        LinearSVC(),
        LinearDiscriminantAnalysis(),
    ],
    ids=["scores", "probabilities", "ours", "ours with probabilities"],
)
def test_constrained_classifiers_with_any_base(base):
    X, y = samples(load_breast_cancer)
    model = PreferenceClassifier(base, recall=0.99, margin=None).fit(X[:300], y[:300])
    labels, scores = run(model, X)
    expected = model.decision_function(X)
    np.testing.assert_allclose(scores[:, 0], expected, rtol=1e-4, atol=1e-4)
    clear = np.abs(expected) > 1e-3
    np.testing.assert_array_equal(labels[clear], model.predict(X)[clear])


@pytest.mark.parametrize("code", ["ovr", "ovo", "dense", "sparse", "exhaustive"])
@pytest.mark.parametrize(
    "options",
    [{"loss": loss} for loss in ("hinge", "squared_hinge", "logistic", "linear")]
    + [{"decoding": "hamming"}],
    ids=lambda options: "-".join(options.values()),
)
def test_code_matrices_of_all_decodings(code, options):
    X, y = samples(load_wine)
    y = np.where(X[:, 0] > 1, 3, y)
    compare(CodeMatrixClassifier(SVC(), code=code, **options).fit(X, y), X)


@pytest.mark.parametrize("estimator", [LinearSVC(), LogisticRegression()], ids=["ours", "theirs"])
@pytest.mark.parametrize("data", [load_breast_cancer, load_wine])
def test_code_matrices_of_separate_classifiers(estimator, data):
    X, y = samples(data)
    compare(CodeMatrixClassifier(estimator, code="dense", loss="logistic").fit(X, y), X)


def test_merged_students():
    X, y = samples(load_wine)
    teacher = LinearSVC().fit(X, y)
    students = GatedStudents(teacher).fit(X, y)
    assert students.merged_
    compare(students, X)
    student = GatedSVC(1, teacher).fit(X, y)
    labels, scores = run(student, X)
    np.testing.assert_allclose(scores[:, 0], student.decision_function(X), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(labels, student.predict(X))


def test_samples_that_no_student_accepts_have_the_other_label():
    X, y = samples(load_wine)
    names = np.array(["red", "rose", "white"])[y]
    teacher = LinearSVC().fit(X, names)
    students = GatedStudents(teacher, targets=["red", "rose"], other="none").fit(X, names)
    compare(students, X)
    assert "none" in students.predict(X)


def test_distilled_students_of_landmarks():
    X, y = samples(load_wine)
    teacher = SVC().fit(X, y)
    students = GatedStudents(teacher, gate="distilled", features=20).fit(X, y)
    compare(students, X)


def test_students_that_need_their_teacher_are_refused():
    X, y = samples(load_wine)
    students = GatedStudents(SVC().fit(X, y)).fit(X, y)
    with pytest.raises(TypeError, match="needs the scores of its teacher"):
        run(students, X)


def test_a_pipeline_with_string_labels():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"], dtype=object)[y]
    model = make_pipeline(StandardScaler(), SVC()).fit(X, names)
    labels, scores = run(model, X.astype(np.float32))
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-4, atol=1e-4)
    assert (labels == model.predict(X)).mean() > 0.99


def test_sparse_training_samples():
    X, y = samples(load_wine)
    X = np.where(X > 1, X, 0)
    compare(SVC().fit(sp.csr_matrix(X), y), X)


def test_kernels_of_the_user_and_odd_labels_are_refused():
    X, y = samples(load_wine)
    with pytest.raises(TypeError, match="Use a named kernel"):
        run(SVC(kernel=lambda a, b: a @ b.T).fit(X, y), X)
    with pytest.raises(TypeError, match="integers or strings"):
        run(SVC().fit(X, np.array([0.0, 1.0, 2.0])[y]), X)


def test_without_skl2onnx_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r"widemargin\[onnx\]"):
        register_onnx_converters()
    assert hasattr(widemargin, "export")
