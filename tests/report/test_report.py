"""Reports contain what the model and its predictions are, and nothing that runs from elsewhere."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_classification
from sklearn.metrics import precision_score, recall_score
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import (
    SVC,
    SVCCV,
    GatedStudents,
    GatedSVC,
    LabelTreeClassifier,
    LinearDiscriminantAnalysis,
    LinearSVC,
    PreferenceSVC,
    PrivilegedSVC,
)
from widemargin.datasets import load_letters, make_extreme_labels
from widemargin.report import Report, Section
from widemargin.report.charts import Chart
from widemargin.structured import ChainCRF, FrankWolfeSSVM, MultipleChoiceSSVM


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(scope="module")
def two_classes():
    return make_classification(600, weights=[0.7], class_sep=1.5, random_state=0)


def titles(report):
    return [section.title for section in report.sections]


def body(report, title):
    return next(section.body for section in report.sections if section.title == title)


def readout(report):
    """Return the numbers beside the slider."""
    found = re.findall(r'data-name="([^"]+)">([^<]+)<', body(report, "Decision threshold"))
    return {name: float(value.replace(",", "")) for name, value in found}


def test_every_section_of_a_classifier(iris):
    X, y = iris
    report = Report.from_estimator(SVC().fit(X[::2], y[::2]), X[1::2], y[1::2])
    assert titles(report) == [
        "Summary", "Data", "Method", "Certificate", "Confusion matrix", "Decision threshold",
        "Classes",
    ]  # fmt: skip
    assert "proven bound" in body(report, "Certificate")
    cells = re.findall(r'title="[^"]+">(\d+)</td>', body(report, "Confusion matrix"))
    assert sum(map(int, cells)) == 75
    assert body(report, "Decision threshold").count("<option") == 3


def test_without_samples_there_are_no_metrics(iris):
    report = Report.from_estimator(LinearSVC().fit(*iris))
    assert titles(report) == ["Summary", "Data", "Method", "Certificate"]
    assert "accuracy" not in report.to_html()


def test_pipelines_and_searches_are_opened(iris):
    X, y = iris
    pipeline = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis())
    search = GridSearchCV(pipeline, {"lineardiscriminantanalysis__tol": [1e-4, 1e-3]}, cv=2)
    report = Report.from_estimator(search.fit(X, y), X, y)
    assert report.title == "LinearDiscriminantAnalysis"
    assert "StandardScaler" in body(report, "Method")
    assert body(report, "Projection").count("<circle") == 150


def test_the_threshold_of_a_constrained_classifier_is_where_the_slider_starts(two_classes):
    X, y = two_classes
    model = PreferenceSVC(precision=0.8, confidence=0.8, random_state=0).fit(X[:300], y[:300])
    report = Report.from_estimator(model, X[300:], y[300:])
    predicted = model.predict(X[300:])
    numbers = readout(report)
    assert numbers["threshold"] == pytest.approx(model.threshold_, rel=1e-3)
    assert numbers["precision"] == pytest.approx(precision_score(y[300:], predicted), abs=6e-4)
    assert numbers["recall"] == pytest.approx(recall_score(y[300:], predicted), abs=6e-4)
    assert numbers["true positives"] + numbers["false positives"] == predicted.sum()
    assert "precision ≥ 0.8" in body(report, "Decision threshold")
    assert "confidence 0.8" in body(report, "Constraint and guarantee")
    assert "Rounds" not in [section.title for section in report.sections]


def test_rounds_of_self_training_are_shown(two_classes):
    X, y = two_classes
    model = PreferenceSVC(random_state=0).fit(X[:100], y[:100], X_unlabeled=X[100:300])
    assert len(model.history_["added"]) > 1
    assert "best round" in body(Report.from_estimator(model, X[300:], y[300:]), "Rounds")


def test_students_are_compared_with_their_teacher(iris):
    X, y = iris
    model = GatedStudents(LinearSVC().fit(X, y)).fit(X, y)
    table = body(Report.from_estimator(model, X, y), "Teacher and students")
    assert "microseconds per sample" in table
    assert table.count("<tr>") == 1 + 3 + 1 + 3
    saved = pickle.loads(pickle.dumps(model))  # without the teacher, which is merged
    table = body(Report.from_estimator(saved, X, y), "Teacher and students")
    assert "precision, student" in table
    assert "precision, teacher" not in table
    assert table.count("<tr>") == 1 + 3 + 1 + 2


def test_students_of_two_classes(iris):
    X, y = iris[0], iris[1] == "setosa"
    model = GatedStudents(LinearSVC().fit(X, y)).fit(X, y)
    table = body(Report.from_estimator(model, X, y), "Teacher and students")
    assert table.count("<tr>") == 1 + 2 + 1 + 3


def test_one_student_is_evaluated_on_labels(iris):
    X, y = iris
    model = GatedSVC("setosa", LinearSVC().fit(X, y)).fit(X, y)
    assert ">1.000<" in body(Report.from_estimator(model, X, y), "Summary")


def test_slack_is_drawn(two_classes):
    X, y = two_classes
    model = PrivilegedSVC(kernel="linear").fit(X[:100], y[:100], privileged=X[:100, :2])
    assert "on the decision boundary" in body(Report.from_estimator(model), "Learned slack")


@pytest.mark.parametrize("learner", [FrankWolfeSSVM, MultipleChoiceSSVM])
def test_structured_outputs_are_spelled(learner):
    letters = load_letters()
    X, Y = letters.data, letters.target
    model = learner(ChainCRF(), C=0.1, max_iter=5, tol=0.5).fit(X[:40], Y[:40])
    report = Report.from_estimator(model, X[40:60], Y[40:60], class_names=letters.target_names)
    assert f"{model.score(X[40:60], Y[40:60]):.3f}" in body(report, "Summary")
    words = {"".join(letters.target_names[y]) for y in Y[40:60]}
    assert any(word in body(report, "Structured predictions") for word in words)


def test_label_trees(iris):
    data = make_extreme_labels(300, 40, n_features=100, random_state=0)
    model = LabelTreeClassifier(n_trees=2).fit(data.X, data.Y)
    shown = body(Report.from_estimator(model, data.X, data.Y), "Label tree")
    assert "P@k" in shown
    assert shown.count("<tr>") == 1 + 2 + 1 + 3
    X, y = iris
    report = Report.from_estimator(LabelTreeClassifier().fit(X, y), X, y)
    assert {"Confusion matrix", "Label tree"} <= set(titles(report))


def test_models_without_scores_have_no_slider(iris):
    X, y = iris

    class Labels(KNeighborsClassifier):
        predict_proba = property()

    assert "Decision threshold" not in titles(Report.from_estimator(Labels().fit(X, y), X, y))
    report = Report.from_estimator(KNeighborsClassifier().fit(X, y), X, y)
    assert "Decision threshold" in titles(report)


def test_text_from_the_data_is_escaped(two_classes):
    X, y = two_classes
    hostile = "</script><script>alert(1)</script>"
    names = np.array([hostile, "<img src=x onerror=alert(2)>"])[y]
    model = SVC().fit(X[:100], names[:100])
    page = Report.from_estimator(
        model, X[100:], names[100:], title=hostile, notes={"<b>": "<i>"}
    ).to_html()
    assert hostile not in page
    assert "<img" not in page
    assert page.count("<script") == 2  # the data of the slider and the script of the page
    assert "&lt;b&gt;" in page


def test_the_page_needs_no_network(iris):
    X, y = iris
    page = Report.from_estimator(SVC().fit(X, y), X, y).to_html()
    assert re.findall(r"(?:https?:)?//\w|\bsrc=|@import|url\(", page) == []


def test_reports_are_saved_and_extended(iris, tmp_path):
    report = Report.from_estimator(SVC().fit(*iris))
    report.sections.append(Section("More", "<p>text</p>"))
    report.save(tmp_path / "report.html")
    assert "<h2>More</h2><p>text</p>" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_tables_with_an_index_of_their_own(iris):
    X, y = iris
    index = np.arange(150) + 1000
    frame, labels = pd.DataFrame(X, index=index), pd.Series(y, index=index)
    report = Report.from_estimator(SVC().fit(frame, labels), frame, labels)
    assert "Confusion matrix" in titles(report)


def test_labels_in_one_column(iris):
    X, y = iris
    model = SVC().fit(X, y)
    expected = Report.from_estimator(model, X, y).to_html()
    for column in (y[:, None], pd.DataFrame({"species": y})):
        assert Report.from_estimator(model, X, column).to_html() == expected


def test_selected_parameters_are_shown(iris):
    X, y = iris
    search = GridSearchCV(SVC(), {"C": [0.5, 2.0]}, cv=2).fit(X, y)
    for model in (search, SVCCV(Cs=[0.5, 2.0], cv=2).fit(X, y)):
        shown = body(Report.from_estimator(model), "Method")
        assert f"<dt>selected by cross-validation</dt><dd>C {model.best_params_['C']:g}" in shown


def test_parameters_that_the_signature_does_not_name(iris):
    class Loose(SVC):
        def __init__(self, **parameters):
            super().__init__(**parameters)

        def get_params(self, deep=True):
            return {"C": self.C}

    assert "C=1.0" in body(Report.from_estimator(Loose().fit(*iris)), "Method")


def test_values_that_are_not_finite_are_not_drawn():
    chart = Chart((0, 1), (0, 1), "x", "y", "Test").line([0, 0.5, 1], [0, np.nan, 1], dots=True)
    assert chart.html().count("<circle") == 2
    assert "nan" not in chart.html()


def test_wrong_arguments_are_refused(iris):
    X, y = iris
    model = SVC().fit(X, y)
    with pytest.raises(ValueError, match="X and y must be passed together"):
        Report.from_estimator(model, X)
    with pytest.raises(ValueError, match="X and y have no samples"):
        Report.from_estimator(model, X[:0], y[:0])
    with pytest.raises(ValueError, match="y has the label 'rose'"):
        Report.from_estimator(model, X[:2], ["rose", "setosa"])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        Report.from_estimator(model, X, y[:10])
    with pytest.raises(TypeError, match="estimator must be a fitted model with predict"):
        Report.from_estimator(StandardScaler().fit(X))
    with pytest.raises(ValueError, match="not fitted yet"):
        Report.from_estimator(SVC())
