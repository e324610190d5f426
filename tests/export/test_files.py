"""Model files: every estimator comes back with the same bits, and nothing else comes in."""

import hashlib
import io
import json
import os
import pickle
import re
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import skops.io
from numpy.testing import assert_array_equal
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import linear_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tests.structured.cases import MODELS, samples
from tests.structured.ensembles.cases import ENSEMBLES, make_ensemble
from tests.suites.registry import CASES, answers, classification, each_case, two_classes

import widemargin
from widemargin import (
    SVC,
    GatedStudents,
    GatedSVC,
    LabelTreeClassifier,
    LinearSVC,
    PartiallyLabeledKFold,
    PreferenceSVC,
    RescaledClassifier,
    recall_at_precision_scorer,
)
from widemargin._base import sklearn_compat
from widemargin.export import ModelFileError, inspect, load, save, trusted_types
from widemargin.structured import (
    FrankWolfeSSVM,
    NodeTransformer,
    OneSlackSSVM,
    StructuredPerceptron,
    SubgradientSSVM,
)

FROZEN = Path(__file__).parent / "frozen"
# The subclasses and folds that the suites add, for tests only.
OF_TESTS = re.compile(r"tests\.suites\.\w+\.\w+")


def through_file(model, folder, **options):
    save(model, folder / "model.skops")
    return load(folder / "model.skops", **options)


@each_case(lambda case: True)
def test_a_loaded_estimator_predicts_the_same_bits(case, tmp_path):
    X, y = case.data()
    X = X @ X.T if case.pairwise else X
    model = case.new().fit(X, y)
    save(model, tmp_path / "model")
    of_tests = [t for t in inspect(tmp_path / "model").untrusted_types if OF_TESTS.fullmatch(t)]
    again = load(tmp_path / "model", trusted=of_tests)
    assert type(again) is type(model)
    assert repr(again.get_params()) == repr(model.get_params())
    assert_array_equal(answers(again, X), answers(model, X))
    assert vars(again).keys() == vars(model).keys()


def test_every_public_estimator_is_tried():
    tried = {type(case.estimator) for case in CASES} | {GatedSVC}
    tried |= {base for cls in tried for base in cls.__mro__}
    public = [getattr(widemargin, name) for name in widemargin._HOMES]
    estimators = {value for value in public if hasattr(value, "get_params")}
    assert estimators <= tried


@pytest.mark.parametrize(
    "learner", [FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM, StructuredPerceptron]
)
@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_structured_learner_predicts_the_same(name, learner, tmp_path):
    model, draw = MODELS[name]
    X, Y = samples(draw, 6)
    fitted = learner(model).set_params(max_iter=3)
    if "tol" in fitted.get_params():
        fitted.set_params(tol=10.0)
    fitted.fit(X, Y)
    again = through_file(fitted, tmp_path)
    for y, expected in zip(again.predict(X), fitted.predict(X), strict=True):
        assert_array_equal(y, expected)
    assert_array_equal(again.coef_, fitted.coef_)


@pytest.mark.parametrize("kind", ENSEMBLES)
def test_a_loaded_ensemble_predicts_the_same(kind, tmp_path):
    model, draw = MODELS["chain"]
    X, Y = samples(draw, 6)
    fitted = make_ensemble(kind, model).fit(X, Y)
    again = through_file(fitted, tmp_path)
    assert_array_equal(again.W, fitted.W)
    for y, expected in zip(again.predict(X), fitted.predict(X), strict=True):
        assert_array_equal(y, expected)


def test_a_loaded_node_transformer_transforms_the_same(tmp_path):
    X, Y = samples(MODELS["chain"][1], 6)
    model = make_pipeline(NodeTransformer(StandardScaler()), FrankWolfeSSVM(MODELS["chain"][0]))
    again = through_file(model.fit(X, Y), tmp_path)
    for y, expected in zip(again.predict(X), model.predict(X), strict=True):
        assert_array_equal(y, expected)


@pytest.mark.parametrize(
    "student",
    [
        GatedSVC(1),
        GatedSVC(1, LogisticRegression()),
        GatedSVC(1, make_pipeline(StandardScaler(), SVC()), kernel="rbf"),
        GatedStudents(make_pipeline(StandardScaler(), LogisticRegression())),
        GatedStudents(FrozenEstimator(SVC().fit(*classification()))),
        GatedStudents(LogisticRegression(), kernel="rbf"),
        GatedStudents(SVC(), gate="distilled", gate_strength=1.0, cv=3),
        GatedStudents(SVC(), gate="distilled", features=10, cv=3),
    ],
    ids=str,
)
def test_students_with_all_kinds_of_gates(student, tmp_path):
    X, y = classification()
    student.fit(X, y)
    assert_array_equal(answers(through_file(student, tmp_path), X), answers(student, X))


def test_a_guarantee_comes_back(tmp_path):
    X, y = two_classes(400)
    model = PreferenceSVC(precision=0.6, confidence=0.8, random_state=0).fit(X, y)
    again = through_file(model, tmp_path)
    assert again.guarantee_ == model.guarantee_
    again.set_constraints(precision=0.7)
    model.set_constraints(precision=0.7)
    assert again.threshold_ == model.threshold_


def mixed_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": np.where(rng.random(80) < 0.2, np.nan, rng.normal(40, 10, 80)),
            "city": rng.choice(["Rome", "Oslo", None], 80),
            "note": rng.choice(["good day", "bad day", "good night"], 80),
        }
    )
    return table, np.where(table["note"].str.startswith("good"), "yes", "no")


def mixed_pipeline():
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age"]),
            ("categories", OneHotEncoder(handle_unknown="ignore"), ["city"]),
            ("text", TfidfVectorizer(), "note"),
        ]
    )
    return make_pipeline(columns, LinearSVC())


def test_a_pipeline_over_a_mixed_table(tmp_path):
    table, y = mixed_table()
    model = mixed_pipeline().fit(table, y)
    again = through_file(model, tmp_path)
    assert_array_equal(again.decision_function(table), model.decision_function(table))
    found = inspect(tmp_path / "model.skops")
    assert found.feature_names == ["age", "city", "note"]
    assert found.classes == ["no", "yes"]


def test_a_search_and_sparse_support_vectors(tmp_path):
    X, y = classification()
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2).fit(sp.csr_matrix(X), y)
    again = through_file(search, tmp_path)
    assert_array_equal(again.decision_function(X), search.decision_function(X))


def logistic_scores(X):
    return LogisticRegression().fit(*classification()).predict_proba(X)


class Scores:
    """A teacher that is no estimator."""

    def predict_proba(self, X):
        return logistic_scores(X)


@pytest.mark.parametrize(
    ("teacher", "needed"),
    [(logistic_scores, ["logistic_scores"]), (Scores(), ["Scores", "Scores.predict_proba"])],
)
def test_teachers_that_are_not_estimators_are_loaded_if_they_are_trusted(teacher, needed, tmp_path):
    X, y = classification()
    model = GatedStudents(teacher).fit(X, y)
    save(model, tmp_path / "model")
    names = [f"{__name__}.{name}" for name in needed]
    assert inspect(tmp_path / "model").untrusted_types == names
    assert_array_equal(answers(load(tmp_path / "model", trusted=names), X), answers(model, X))


@pytest.mark.parametrize(
    "model",
    [
        GridSearchCV(PreferenceSVC(), {"C": [0.1, 1.0]}, cv=PartiallyLabeledKFold(2)),
        GridSearchCV(SVC(), {"C": [0.1, 1.0]}, scoring=recall_at_precision_scorer(0.5), cv=2),
        GridSearchCV(SVC(), {"C": [0.1, 1.0]}, scoring="roc_auc", cv=2),
        RescaledClassifier(SVC()),
    ],
    ids=lambda model: "".join(repr(model).split()),
)
def test_folds_scorers_and_calibration_need_no_trust(model, tmp_path):
    X, y = two_classes()
    again = through_file(model.fit(X, y), tmp_path)
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.score(X, y) == model.score(X, y)


def test_inspect_reads_the_description(tmp_path):
    X, y = two_classes()
    save(SVC(C=3.0).fit(X, y), tmp_path / "model", metadata={"target": "label"})
    found = inspect(tmp_path / "model")
    assert found.estimator == "widemargin.svm.svc.SVC"
    assert found.summary == "SVC(C=3.0)"
    assert found.versions["widemargin"] == widemargin.__version__
    assert (found.n_features, found.feature_names, found.classes) == (5, None, [0, 1])
    assert found.metadata == {"target": "label"}
    assert "widemargin.kernels.expansion.KernelExpansion" in found.types
    assert found.untrusted_types == []
    assert found.n_bytes == (tmp_path / "model").stat().st_size


def test_skops_itself_loads_model_files(tmp_path):
    X, y = two_classes()
    model = SVC().fit(X, y)
    save(model, tmp_path / "model.skops")
    again = skops.io.load(tmp_path / "model.skops", trusted=trusted_types())
    assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_all_trusted_types_exist():
    for name in trusted_types():
        module, _, last = name.rpartition(".")
        assert hasattr(__import__(module, fromlist=[last]), last)


class Doubled(StandardScaler):
    """A transformer that is nobody's but the user's."""

    def transform(self, X):
        return 2 * super().transform(X)


@pytest.mark.parametrize("trusted", [Doubled, f"{__name__}.Doubled"])
def test_types_of_others_are_loaded_if_they_are_trusted(trusted, tmp_path):
    X, y = two_classes()
    model = make_pipeline(Doubled(), SVC()).fit(X, y)
    save(model, tmp_path / "model")
    assert inspect(tmp_path / "model").untrusted_types == [f"{__name__}.Doubled"]
    with pytest.raises(ModelFileError, match=r"not trusted: .*\.Doubled\. If the file"):
        load(tmp_path / "model")
    again = load(tmp_path / "model", trusted=[trusted])
    assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_what_cannot_be_imported_is_not_saved(tmp_path):
    X, y = two_classes()
    model = SVC(kernel=lambda a, b: a @ b.T).fit(X, y)
    with pytest.raises(ModelFileError, match="<lambda> cannot be imported by name"):
        save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match="cannot be saved"):
        save(SVC(kernel=(x for x in ())), tmp_path / "model")
    with pytest.raises(TypeError, match="model must be an estimator"):
        save({"a": 1}, tmp_path / "model")
    with pytest.raises(TypeError, match="model must be an estimator"):
        save(SVC, tmp_path / "model")
    with pytest.raises(TypeError, match="metadata must contain what JSON can represent"):
        save(SVC(), tmp_path / "model", metadata={"a": object()})
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_version_warns(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sklearn_compat, "__version__", "0.0.1")
        save(SVC(), tmp_path / "model")
    with pytest.warns(UserWarning, match=r"saved by widemargin 0\.0\.1"):
        load(tmp_path / "model")


def test_without_skops_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r"pip install 'widemargin\[export\]'"):
        save(SVC(), tmp_path / "model")


@pytest.mark.parametrize("path", sorted(FROZEN.glob("*.skops")), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore:.*(saved by|unpickle)")
def test_files_of_earlier_formats_keep_loading(path):
    expected = inspect(path).metadata
    model = load(path)
    np.testing.assert_allclose(
        model.decision_function(np.array(expected["X"])), expected["scores"], rtol=1e-12
    )


def test_there_are_frozen_files_of_each_version():
    frozen = {path.stem.rpartition("-")[0] for path in FROZEN.glob("*.skops")}
    assert {"format1", "0.1.0"} <= frozen
    assert widemargin.__version__ in frozen or "dev" in widemargin.__version__


# Damaged and hostile files.


@pytest.fixture
def saved(tmp_path):
    X, y = two_classes(30)
    path = tmp_path / "model.skops"
    save(make_pipeline(StandardScaler(), SVC()).fit(sp.csr_matrix(X).toarray(), y), path)
    return path


def sealed(archive):
    """Return the bytes of an archive with a valid checksum, as an attacker can write it."""
    with zipfile.ZipFile(archive, "a") as appended:
        appended.comment = b"0" * 64
    content = archive.getvalue()[:-64]
    return content + hashlib.sha256(content).hexdigest().encode()


def rewritten(path, change, **options):
    """Write a model file with members changed by ``change(name, content)``."""
    archive = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(archive, "w", **options) as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    path.write_bytes(sealed(archive))


def with_schema(path, change):
    """Write a model file whose schema is changed by ``change(schema)``."""

    def changed(name, content):
        if name != "schema.json":
            return content
        schema = json.loads(content)
        return json.dumps(change(schema) or schema)

    rewritten(path, changed)


def node(loader, module, name, content=None, **rest):
    return {
        "__loader__": loader,
        "__module__": module,
        "__class__": name,
        "content": content,
        **rest,
    }


def test_every_truncated_file_is_refused(saved):
    content = saved.read_bytes()
    for length in [*range(200), *range(200, len(content), 97), len(content) - 1]:
        saved.write_bytes(content[:length])
        for read in (load, inspect):
            with pytest.raises(ModelFileError, match="checksum is wrong"):
                read(saved)


def test_every_altered_byte_is_refused(saved):
    content = saved.read_bytes()
    for position in np.random.default_rng(0).choice(len(content), 400, replace=False):
        altered = bytearray(content)
        altered[position] ^= 1 << int(position % 8)
        saved.write_bytes(altered)
        with pytest.raises(ModelFileError, match="checksum is wrong"):
            load(saved)


@pytest.mark.filterwarnings("ignore")  # of other versions: numbers may be altered as well
def test_altered_members_with_a_valid_checksum_raise_nothing_but_a_model_file_error(saved):
    content, rng = saved.read_bytes(), np.random.default_rng(1)
    refused = 0
    for _ in range(300):
        saved.write_bytes(content)

        def flip(name, member):
            if not member or (name != "schema.json" and rng.random() < 0.8):
                return member
            altered = bytearray(member)
            altered[rng.integers(len(altered))] ^= 1 << int(rng.integers(8))
            return bytes(altered)

        rewritten(saved, flip)
        try:
            load(saved)
        except ModelFileError:
            refused += 1
    assert refused > 100


OS_SYSTEM = {
    "function": node("FunctionNode", "os", "system"),
    "type": node("TypeNode", "subprocess", "Popen"),
    "object": node("ObjectNode", "subprocess", "Popen", None),
    "constructor": node(
        "ConstructorFromReduceNode",
        "os",
        "system",
        node("TupleNode", "builtins", "tuple", [node("JsonNode", "builtins", "str", '"touch x"')]),
    ),
    "builtin": node("FunctionNode", "builtins", "eval"),
    "keeper": node("ObjectNode", "widemargin._base.checkpoint", "CheckpointKeeper"),
    "function of widemargin": node("FunctionNode", "widemargin._base.checkpoint", "atomic_write"),
    "public function": node("FunctionNode", "widemargin.imbalance", "imbalance_report"),
    "module by another name": node("FunctionNode", "widemargin.export.files.os", "system"),
    "estimator of another module": node("ObjectNode", "widemargin.export.files", "SVC"),
    "method": node(
        "MethodNode",
        "widemargin.svm.svc",
        "SVC",
        {"obj": node("ObjectNode", "widemargin.svm.svc", "SVC"), "func": "fit"},
    ),
}


@pytest.mark.parametrize("kind", OS_SYSTEM)
def test_hostile_types_are_refused_before_anything_is_created(saved, kind):
    with_schema(saved, lambda schema: {**OS_SYSTEM[kind], "protocol": schema["protocol"]})
    with pytest.raises(ModelFileError, match="not trusted"):
        load(saved)


def test_a_pickle_is_not_a_model_file(saved):
    saved.write_bytes(pickle.dumps(SVC()))
    with pytest.raises(ModelFileError, match="not a model file"):
        load(saved)
    skops.io.dump(SVC(), saved)
    with pytest.raises(ModelFileError, match="not a model file"):
        load(saved)


def test_compressed_archives_are_refused(saved):
    rewritten(saved, lambda name, content: content, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(ModelFileError, match="compressed members"):
        load(saved)


@pytest.mark.parametrize("shape", [(10**13,), (2**62, 4), (-1,), (3, 10**7)])
def test_arrays_that_claim_more_than_the_file_contains_are_refused(saved, shape):
    header = io.BytesIO()
    description = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(header, description)
    claim = header.getvalue() + bytes(64)
    rewritten(saved, lambda name, content: claim if name.endswith(".npy") else content)
    with pytest.raises(ModelFileError, match="is damaged"):
        load(saved)


def test_pickles_within_a_model_file_are_refused(saved, tmp_path):
    class Touch:
        def __reduce__(self):
            return Path.touch, (tmp_path / "touched",)

    array = io.BytesIO()
    np.save(array, np.array([Touch()]), allow_pickle=True)
    for content in (array.getvalue(), pickle.dumps(Touch())):
        save(make_pipeline(StandardScaler(), SVC()).fit(*two_classes(30)), saved)
        rewritten(saved, lambda name, old, new=content: new if name.endswith(".npy") else old)
        with pytest.raises(ModelFileError, match="is damaged"):
            load(saved)
    assert not (tmp_path / "touched").exists()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_links_and_folders(saved, tmp_path):
    (tmp_path / "link").symlink_to(saved)
    assert load(tmp_path / "link").n_features_in_ == 5
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path / "loop", tmp_path):
        with pytest.raises(OSError, match=re.escape(str(path))):
            load(path)


def test_another_format_is_named(saved):
    def change(name, content):
        return content.replace(b"model 1", b"model 9") if name == "widemargin.json" else content

    rewritten(saved, change)
    with pytest.raises(ModelFileError, match="format 'widemargin model 9'"):
        load(saved)


def test_references_cannot_describe_more_than_the_file_contains(saved):
    def change(schema):
        inner = node("ListNode", "builtins", "list", [], __id__=0)
        for level in range(1, 60):
            again = {**inner, "content": []}
            inner = node("ListNode", "builtins", "list", [inner, again], __id__=level)
        return {**inner, "protocol": schema["protocol"]}

    with_schema(saved, change)
    with pytest.raises(ModelFileError, match="contradictory references"):
        load(saved)


def test_deep_nesting_is_refused(saved):
    deep = b'{"protocol": 2, "content": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    rewritten(saved, lambda name, content: deep if name == "schema.json" else content)
    with pytest.raises(ModelFileError, match="is damaged"):
        load(saved)


def test_sparse_indices_out_of_bounds_are_refused(tmp_path):
    X, y = two_classes(30)
    model = SVC().fit(sp.csr_matrix(X), y)
    model._expansion.vectors.indices[0] = 1000
    save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match="is damaged"):
        load(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"columns": lambda found: -found - 1}, "indices from 0 below 30"),
        ({"columns": lambda found: found + 1000}, "indices from 0 below 30"),
        ({"columns": lambda found: found[1:]}, "columns must hold"),
        ({"columns": lambda found: found + 0.5}, "columns must hold"),
        ({"coefficients": lambda found: found[:, 1:]}, "columns must hold"),
    ],
)
def test_indices_of_support_vectors_are_checked(tmp_path, change, reason):
    X, y = two_classes(30)
    model = SVC(kernel=linear_kernel).fit(X, y)
    for name, changed in change.items():
        setattr(model._expansion, name, changed(getattr(model._expansion, name)))
    save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match=f"is damaged.*{reason}"):
        load(tmp_path / "model", trusted=["sklearn.metrics.pairwise.linear_kernel"])


def test_as_many_coefficients_as_support_vectors_are_loaded(tmp_path):
    X, y = two_classes(30)
    model = SVC().fit(X, y)
    model._expansion.coefficients = model._expansion.coefficients[:, 1:]
    save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"is damaged.*vectors have"):
        load(tmp_path / "model")


# An array of a label tree, a position in it, and a value that compiled code must not meet.
HOSTILE_TREES = [
    ("trees_", "first_child", 0, 0),
    ("trees_", "first_child", 1, 1000),
    ("trees_", "first_child", -1, 1000),
    ("trees_", "label", -1, 1000),
    ("trees_", "label", -1, -1),
    ("trees_", "label", 0, 1),
    ("weights_", "feature_start", 0, -1),
    ("weights_", "feature_start", 1, 10**9),
    ("weights_", "features", 0, 1000),
    ("weights_", "features", 0, 4),
    ("weights_", "entry_start", 1, 10**9),
    ("weights_", "entry_start", -1, 10**9),
    ("weights_", "child", 0, 200),
    ("weights_", "value", 0, np.nan),
]


@pytest.mark.parametrize("fault", HOSTILE_TREES, ids=str)
def test_arrays_of_label_trees_that_would_crash_compiled_code_are_refused(fault, tmp_path):
    attribute, name, position, value = fault
    model = LabelTreeClassifier(branching=2, max_leaf_size=2, n_trees=2).fit(*classification())
    assert len(model.trees_[1].inner_nodes()) == 3
    getattr(getattr(model, attribute)[1], name)[position] = value
    save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"is damaged .*The arrays of"):
        load(tmp_path / "model")


@pytest.mark.parametrize("exponent", [0, 10**9, "4"])
def test_exponents_of_label_trees_that_fit_would_refuse_are_refused(exponent, tmp_path):
    model = LabelTreeClassifier().fit(*classification())
    model._exponent = exponent
    save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match="exponent of scores"):
        load(tmp_path / "model")


@pytest.mark.parametrize("name", ["first_child", "label"])
def test_arrays_of_label_trees_of_other_types_are_refused(name, tmp_path):
    model = LabelTreeClassifier().fit(*classification())
    for array in (
        getattr(model.trees_[0], name)[:-1],
        getattr(model.trees_[0], name).astype(float),
    ):
        model.trees_[0] = replace(model.trees_[0], **{name: array})
        save(model, tmp_path / "model")
        with pytest.raises(ModelFileError, match="is damaged"):
            load(tmp_path / "model")


def test_a_failed_save_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full_disk(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.replace", full_disk)
    with pytest.raises(OSError, match="no space"):
        save(SVC(), saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]
