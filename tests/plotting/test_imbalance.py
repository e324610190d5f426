"""Positions of the points and lines of ClassRecallDisplay."""

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.naive_bayes import GaussianNB

from widemargin.datasets import make_long_tail
from widemargin.plotting import ClassRecallDisplay, CodeMatrixDisplay


def test_points_are_recalls_over_counts_and_lines_their_means():
    y = np.repeat(["a", "b", "c"], 4)
    predicted = y.copy()
    predicted[5:8] = predicted[10:] = "a"
    counts = {"a": 200, "b": 10, "c": 5}
    display = ClassRecallDisplay.from_predictions(y, predicted, counts=counts, name="mine")
    assert display.points_.keys() == display.lines_.keys() == {"head", "tail"}
    np.testing.assert_allclose(display.points_["head"].get_offsets(), [[200, 1]])
    np.testing.assert_allclose(display.points_["tail"].get_offsets(), [[10, 0.25], [5, 0.5]])
    assert display.lines_["tail"].get_segments()[0][0, 1] == 0.375
    assert display.ax_.get_title() == "mine: balanced accuracy 0.58"


def test_the_predictions_of_an_estimator_are_plotted():
    X, y = make_long_tail(400, 4, imbalance=50, random_state=0)
    model = GaussianNB().fit(X, y)
    _, ax = pyplot.subplots()
    display = ClassRecallDisplay.from_estimator(model, X, y, ax=ax)
    assert display.ax_ is ax
    assert display.ax_.xaxis_inverted()
    assert display.ax_.get_title().startswith("GaussianNB: ")
    assert display.report.recall[0] == (model.predict(X[y == 0]) == 0).mean()


@pytest.mark.parametrize("kind", [ClassRecallDisplay, CodeMatrixDisplay])
def test_a_subclass_of_a_display_is_constructed_like_the_display(kind):
    class Own(kind):
        pass

    assert Own.__init__ is kind.__init__
