"""MarginDisplay: the fields it draws, and what it says when it cannot."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot
from sklearn.datasets import load_iris, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from widemargin import SVC
from widemargin.plotting import MarginDisplay


@pytest.fixture
def blobs():
    return make_blobs(60, centers=[[0, 0], [3, 1]], random_state=0)


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True)
    return X[:, :2], y


def grid_rows(display):
    return np.column_stack([display.xx0.ravel(), display.xx1.ravel()])


def test_with_two_classes_the_lead_is_the_decision_function(blobs):
    machine = SVC().fit(*blobs)
    display = MarginDisplay.from_estimator(machine, *blobs, grid_resolution=20)
    scores = machine.decision_function(grid_rows(display)).reshape(20, 20)
    np.testing.assert_allclose(display.lead, [-scores, scores])


@pytest.mark.parametrize("shape", ["ovo", "ovr"])
def test_one_vs_one_leader_is_the_predicted_class(iris, shape):
    machine = SVC(C=10, decision_function_shape=shape).fit(*iris)
    display = MarginDisplay.from_estimator(machine, *iris, grid_resolution=30)
    leads = display.lead.max(axis=0).ravel() > 0
    leader = display.lead.argmax(axis=0).ravel()
    assert leads.mean() > 0.9
    np.testing.assert_array_equal(
        machine.classes_[leader[leads]], machine.predict(grid_rows(display)[leads])
    )
    assert machine.decision_function_shape == shape


@pytest.mark.parametrize("machine", [SVC(multi_class="ovr"), LogisticRegression()])
def test_with_scores_per_class_one_class_leads_everywhere(iris, machine):
    display = MarginDisplay.from_estimator(machine.fit(*iris), *iris, grid_resolution=30)
    predicted = machine.predict(grid_rows(display)).reshape(30, 30)
    np.testing.assert_array_equal(display.lead.argmax(axis=0), predicted)
    assert (display.lead.max(axis=0) >= 0).all()


def test_rings_sit_on_the_support_vectors(blobs):
    machine = SVC(kernel="linear").fit(*blobs)
    display = MarginDisplay.from_estimator(machine, *blobs)
    np.testing.assert_allclose(display.rings_.get_offsets(), machine.support_vectors_)


def test_a_pipeline_is_drawn_in_the_units_of_its_input(blobs):
    X, y = blobs
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    display = MarginDisplay.from_estimator(pipeline, X, y, grid_resolution=20)
    np.testing.assert_allclose(display.rings_.get_offsets(), X[pipeline[-1].support_])
    assert display.xx0.min() < X[:, 0].min() < X[:, 0].max() < display.xx0.max()


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_name_the_axes(blobs, frame):
    X, y = blobs
    X = frame({"width": X[:, 0], "height": X[:, 1]})
    display = MarginDisplay.from_estimator(SVC().fit(X, y), X, y, grid_resolution=10)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("width", "height")


def test_the_legend_names_classes_support_vectors_and_lines(blobs):
    X, y = blobs
    names = np.array(["no", "yes"])[y]
    display = MarginDisplay.from_estimator(SVC().fit(X, names), X, names)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["no", "yes", "support vector", "boundary", "margin"]


def test_it_draws_into_given_axes_with_given_colors(blobs):
    _, ax = pyplot.subplots()
    display = MarginDisplay.from_estimator(
        SVC().fit(*blobs), *blobs, ax=ax, colors=["red", "blue"], legend=False
    )
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_legend() is None
    np.testing.assert_array_equal(display.points_[0].get_facecolor()[0], [1, 0, 0, 1])


def test_a_classifier_without_support_vectors_has_no_rings(blobs):
    display = MarginDisplay.from_estimator(LogisticRegression().fit(*blobs), *blobs)
    assert len(display.rings_.get_offsets()) == 0


def test_more_than_two_features_are_refused(iris):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="X must have 2 features to be plotted, got 4"):
        MarginDisplay.from_estimator(SVC().fit(X, y), X, y)


def test_other_rows_than_the_training_rows_are_refused(blobs):
    X, y = blobs
    with pytest.raises(ValueError, match="X must contain the 60 samples"):
        MarginDisplay.from_estimator(SVC().fit(X, y), X[:50], y[:50])


def test_too_few_colors_are_refused(blobs):
    with pytest.raises(ValueError, match=r"colors must contain one per class \(2\), got 1"):
        MarginDisplay.from_estimator(SVC().fit(*blobs), *blobs, colors=["red"])


def test_without_matplotlib_the_error_names_the_extra(blobs, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"widemargin\[plot\]"):
        MarginDisplay.from_estimator(SVC().fit(*blobs), *blobs)


def test_matplotlib_is_not_imported_before_something_is_drawn():
    check = "import sys, widemargin.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
