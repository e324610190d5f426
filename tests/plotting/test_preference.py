"""PreferenceDisplay shows the history, the constraints and the threshold."""

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_score, recall_score

from widemargin import PreferenceClassifier
from widemargin.plotting import PreferenceDisplay


@pytest.fixture
def fitted():
    X, y = make_classification(400, 5, weights=[0.7], flip_y=0.1, random_state=0)
    model = PreferenceClassifier(LogisticRegression(), precision=0.8, margin=None, random_state=0)
    yield model.fit(X[:150], y[:150], X_unlabeled=X[150:300]), X[300:], y[300:]
    pyplot.close("all")


def test_rounds_are_those_of_the_history(fitted):
    model, _, _ = fitted
    display = PreferenceDisplay.from_estimator(model)
    assert len(display.axes_) == 3
    assert [bar.get_height() for bar in display.bars_] == model.history_["added"].tolist()
    for name in ("precision", "recall", "f1", "upper", "lower"):
        np.testing.assert_array_equal(display.lines_[name].get_ydata(), model.history_[name])
    best = 1 + np.flatnonzero(model.history_["best"])[-1]
    assert [mark.get_xdata()[0] for mark in display.marks_] == [best] * 3
    assert {name: line.get_ydata()[0] for name, line in display.bounds_.items()} == {
        "precision": 0.8
    }


@pytest.mark.parametrize("pos_label", [0, 1])
def test_samples_give_precision_and_recall_at_every_threshold(fitted, pos_label):
    model, X, y = fitted
    model.set_params(pos_label=pos_label).fit(X, y)
    display = PreferenceDisplay.from_estimator(model, X, y)
    sign = 1.0 if pos_label == 1 else -1.0
    scores = sign * model.decision_function(X) + model.threshold_
    for index in (0, 30, 70):
        threshold = display.lines_["recall"].get_xdata()[index]
        for name, measure in (
            ("precision", precision_score),
            ("recall", recall_score),
            ("f1", f1_score),
        ):
            plotted = display.lines_[name].get_ydata()[index]
            assert plotted == pytest.approx(measure(y == pos_label, scores > threshold))
    assert display.marks_[0].get_xdata()[0] == model.threshold_


def test_a_constraint_on_false_positives_is_plotted_with_its_metric(fitted):
    model, X, y = fitted
    display = PreferenceDisplay.from_estimator(model.set_constraints(false_positive_rate=0.1), X, y)
    assert set(display.lines_) == {"precision", "recall", "f1", "false_positive_rate"}
    assert display.bounds_["false_positive_rate"].get_ydata()[0] == 0.1


def test_given_axes_are_used(fitted):
    model, X, y = fitted
    figure, axes = pyplot.subplots(3)
    assert PreferenceDisplay.from_estimator(model, ax=axes).figure_ is figure
    _, ax = pyplot.subplots()
    assert PreferenceDisplay.from_estimator(model, X, y, ax=ax).axes_[0] is ax


def test_samples_need_labels_of_both_classes(fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match="X and y must be passed together"):
        PreferenceDisplay.from_estimator(model, X)
    with pytest.raises(ValueError, match=r"both classes \[0, 1\], got \[1\]"):
        PreferenceDisplay.from_estimator(model, X, np.ones_like(y))


def test_a_wrong_number_of_axes_is_refused(fitted):
    model, X, y = fitted
    axes = pyplot.subplots(2)[1]
    with pytest.raises(ValueError, match="PreferenceDisplay needs 3 matplotlib Axes, got 2"):
        PreferenceDisplay.from_estimator(model, ax=axes)
    with pytest.raises(ValueError, match="PreferenceDisplay needs one matplotlib Axes, got 2"):
        PreferenceDisplay.from_estimator(model, X, y, ax=axes)
