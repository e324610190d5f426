"""The displays of students show the numbers that they are made of."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.metrics import f1_score, roc_auc_score

from widemargin import difficulty_degrees
from widemargin.gated.comparison import StudentScores
from widemargin.plotting import DifficultyDisplay, StudentsDisplay


@pytest.fixture
def scored():
    rng = np.random.default_rng(0)
    y = np.array(["ant", "bee", "cat"])[np.arange(60) % 3]
    truth = (y[:, None] == np.unique(y)) * 2.0 - 1.0
    scores = {name: truth + s * rng.standard_normal((60, 3)) for name, s in [("A", 1), ("B", 3)]}
    yield scores, y
    pyplot.close("all")


def test_bars_are_the_metrics_of_every_class(scored):
    scores, y = scored
    display = StudentsDisplay.from_scores(scores, y)
    assert len(display.axes_) == 3
    assert len(display.bars_) == 6
    expected = [f1_score(y == c, scores["B"][:, k] >= 0) for k, c in enumerate(display.classes)]
    f_of_b = [bar.get_height() for bar in display.bars_[3]]
    np.testing.assert_allclose(f_of_b, expected)
    names = [text.get_text() for text in display.axes_[0].get_legend().get_texts()]
    assert names == ["A", "B"]


def test_the_roc_is_that_of_one_class(scored):
    scores, y = scored
    display = StudentsDisplay.from_scores(scores, y, roc_of="bee")
    area = roc_auc_score(y == "bee", scores["A"][:, 1])
    assert display.lines_[0].get_label() == f"A ({area:.3f})"
    assert display.axes_[0].get_title() == "class bee"
    with pytest.raises(ValueError, match=r"roc_of must be one of .* got 'dog'"):
        display.plot(roc_of="dog")


def test_a_class_without_samples_is_refused(scored):
    scores, y = scored
    with pytest.raises(ValueError, match="y must contain samples of class 'ant'"):
        StudentsDisplay.from_scores(scores, np.where(y == "ant", "bee", y), ["ant", "bee", "cat"])


def test_points_are_colored_by_degree(scored):
    scores, y = scored
    display = DifficultyDisplay.from_scores(scores["B"], y, "cat", decay=0.2)
    degrees = difficulty_degrees(scores["B"], y, "cat", 0.2)
    others, own = display.points_
    np.testing.assert_array_equal(own.get_array(), degrees[y == "cat"])
    np.testing.assert_array_equal(others.get_offsets()[:, 0], scores["B"][y != "cat", 2])
    assert display.ax_.get_xlabel() == "score of cat"


def test_points_are_distinguished_by_booleans_too(scored):
    scores, y = scored
    classes = ["ant", "bee", "cat"]
    by_label = DifficultyDisplay.from_scores(scores["B"], y, "cat", classes=classes)
    by_truth = DifficultyDisplay.from_scores(scores["B"], y == "cat", "cat", classes=classes)
    np.testing.assert_array_equal(by_truth.positive, by_label.positive)
    np.testing.assert_array_equal(by_truth.degrees, by_label.degrees)
    with pytest.raises(ValueError, match="unknown to the teacher"):
        DifficultyDisplay.from_scores(
            scores["B"], np.where(y == "ant", "dog", y), "cat", classes=classes
        )


def test_the_classes_of_a_comparison_are_drawn_in_its_order(scored):
    scores, y = scored
    few = StudentScores({"A": scores["A"][:, [0, 2]]}, np.array(["ant", "cat"]))
    display = StudentsDisplay.from_scores(few, y)
    assert display.classes.tolist() == ["ant", "cat"]
    with pytest.raises(ValueError, match="classes must be those of the columns of scores"):
        StudentsDisplay.from_scores(few, y, ["cat", "ant"])
    frame = {"A": pd.DataFrame(scores["A"][:, ::-1], columns=["cat", "bee", "ant"])}
    turned = StudentsDisplay.from_scores(frame, y)
    assert turned.metrics["A"] == StudentsDisplay.from_scores({"A": scores["A"]}, y).metrics["A"]


def test_axes_that_are_given_are_drawn_on(scored):
    scores, y = scored
    figure, axes = pyplot.subplots(3)
    assert StudentsDisplay.from_scores(scores, y, ax=axes).figure_ is figure
    figure, ax = pyplot.subplots()
    assert DifficultyDisplay.from_scores(scores["A"], y, "ant", ax=ax).ax_ is ax
