"""An exported student needs nothing but its numbers."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

from widemargin import CrammerSingerSVC, GatedSVC, StudentExport


@pytest.fixture(scope="module")
def merged(three, teacher):
    return GatedSVC("bee", teacher).fit(*three)


@pytest.fixture(scope="module")
def gated(three, kernel_teacher):
    return GatedSVC("bee", kernel_teacher).fit(*three)


def run(source):
    module = {}
    exec(source, module)
    return module


def test_the_source_of_a_merged_student_decides_as_it_does(three, merged):
    X, _ = three
    module = run(merged.export().to_python())
    assert module["TARGET"] == "bee"
    scores = [module["score"](row) for row in X.tolist()]
    assert_allclose(scores, merged.decision_function(X), atol=1e-12)
    assert [module["is_class"](row) for row in X.tolist()] == merged.predict(X).tolist()
    with pytest.raises(ValueError, match="x must contain 6 numbers, got 5"):
        module["score"]([0.0] * 5)


def test_the_source_of_a_gated_student_takes_the_teachers_score(three, gated, kernel_teacher):
    X, _ = three
    export = gated.export()
    assert export.needs_teacher
    is_class = export.to_function()
    gate = kernel_teacher.decision_function(X)[:, 1]
    found = [is_class(row, score) for row, score in zip(X.tolist(), gate.tolist(), strict=True)]
    assert found == gated.predict(X).tolist()


def test_the_source_imports_nothing(merged):
    assert "import" not in merged.export().to_python()


def test_arrays_are_the_students(three, merged):
    X, _ = three
    export = merged.export()
    assert_allclose(X @ export.coef + export.intercept, merged.decision_function(X), atol=1e-12)
    export.coef[:] = 0.0
    assert merged.coef_.any()


def test_json_keeps_every_digit(merged):
    export = merged.export()
    text = export.to_json()
    assert json.loads(text)["target"] == "bee"
    again = StudentExport.from_json(text)
    assert_array_equal(again.coef, export.coef)
    assert again.intercept == export.intercept
    assert again.to_python() == export.to_python()


def test_names_of_features_and_plain_labels_are_exported(three, teacher):
    X, y = three
    frame = pd.DataFrame(X, columns=list("abcdef"))
    codes = np.unique(y, return_inverse=True)[1]
    export = GatedSVC(np.int64(1)).fit(frame, codes).export()
    assert export.feature_names == list("abcdef")
    assert type(export.target) is int


def test_names_of_features_come_from_the_map_or_are_passed(three):
    X, y = three
    frame = pd.DataFrame(X, columns=list("abcdef"))
    squares = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    export = GatedSVC("bee", features=squares).fit(frame, y).export()
    assert export.feature_names[:7] == [*"abcdef", "a b"]
    teacher = make_pipeline(squares, StandardScaler(), CrammerSingerSVC())
    export = GatedSVC("bee", teacher, features="teacher").fit(frame, y).export()
    assert export.feature_names[-1] == "e f"
    assert GatedSVC("bee", features=5).fit(frame, y).export().feature_names[0] == "nystroem0"
    unnamed = GatedSVC("bee", features=FunctionTransformer(np.abs)).fit(X, y).export()
    assert unnamed.feature_names is None

    pipeline = make_pipeline(StandardScaler(), GatedSVC("bee")).fit(frame, y)
    assert pipeline[-1].export().feature_names is None
    export = pipeline[-1].export(feature_names=pipeline[:-1].get_feature_names_out())
    assert export.feature_names == list("abcdef")
    assert run(export.to_python())["FEATURE_NAMES"] == list("abcdef")
    with pytest.raises(ValueError, match="feature_names must be the names of 6 features, got 2"):
        pipeline[-1].export(feature_names=["a", "b"])


def test_words_are_the_names_of_a_text_pipeline():
    texts = ["good dog", "bad cat", "good cat", "bad dog"] * 5
    y = [0, 1, 0, 2] * 5
    teacher = make_pipeline(TfidfVectorizer(), CrammerSingerSVC())
    student = GatedSVC(0, teacher, features="teacher").fit(texts, y)
    assert student.merged_
    assert student.predict(["good bird", "bad bird"]).tolist() == [True, False]
    assert student.export().feature_names == ["bad", "cat", "dog", "good"]


def test_a_label_may_hold_anything(three):
    X, y = three
    label = 'a "bee",\n\'or\' """ two\\'
    y = np.where(y == "bee", label, y)
    student = GatedSVC(label).fit(X, y)
    export = StudentExport.from_json(student.export().to_json())
    assert run(export.to_python())["TARGET"] == label
    assert [export.to_function()(row) for row in X.tolist()] == student.predict(X).tolist()


def test_the_source_of_a_threshold_takes_the_teachers_score_and_no_numbers(three, kernel_teacher):
    X, y = three
    student = GatedSVC("bee", kernel_teacher, features="constant").fit(X, y)
    export = StudentExport.from_json(student.export().to_json())
    assert export.coef.shape == (0,)
    gate = kernel_teacher.decision_function(X)[:, 1]
    is_class = export.to_function()
    assert [is_class([], score) for score in gate.tolist()] == student.predict(X).tolist()


def test_a_kernel_student_cannot_be_exported(three, teacher):
    student = GatedSVC("bee", teacher, kernel="rbf").fit(*three)
    with pytest.raises(ValueError, match="Only linear students can be exported"):
        student.export()
