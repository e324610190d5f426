"""The displays of structured learning."""

import sys

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from widemargin.datasets import load_letters
from widemargin.plotting import GridLabelDisplay, ObjectiveDisplay, WordDisplay
from widemargin.structured import FrankWolfeSSVM, MultiClassClf


@pytest.fixture(scope="module")
def learner():
    return FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.01).fit(*load_iris(return_X_y=True))


def test_the_curves_are_those_of_the_fit(learner):
    display = ObjectiveDisplay.from_estimator(learner)
    above, below = display.axes_
    for line, name in zip(above.get_lines(), ["objective", "dual_objective"], strict=True):
        np.testing.assert_array_equal(line.get_ydata(), learner.history_[name])
    np.testing.assert_array_equal(below.get_lines()[0].get_ydata(), learner.gap_curve_)
    assert below.get_yscale() == "log"
    assert above.get_title() == "FrankWolfeSSVM"


def test_curves_go_into_given_axes(learner):
    figure, axes = pyplot.subplots(2)
    assert ObjectiveDisplay.from_estimator(learner, axes=axes).figure_ is figure


def test_a_learner_without_a_fit_has_no_curves():
    with pytest.raises(NotFittedError):
        ObjectiveDisplay.from_estimator(FrankWolfeSSVM(MultiClassClf()))


def test_mistakes_are_shown_with_the_truth():
    letters = load_letters()
    X, Y = letters.data[:2], letters.target[:2]
    found = [Y[0], (Y[1] + np.eye(len(Y[1]), dtype=int)[2]) % 26]
    display = WordDisplay.from_predictions(X, Y, found)
    assert "".join(text.get_text() for text in display.texts_[0]) == "ommanding"
    wrong = display.texts_[1][2]
    assert wrong.get_text() == "n (m)"
    assert wrong.get_color() != display.texts_[1][1].get_color()
    assert len(display.axes_) == 2


def test_words_of_all_lengths_are_seen_whole():
    X, Y = load_letters(return_X_y=True)
    order = np.argsort([len(y) for y in Y])[[-1, 0]]
    words = [X[k] for k in order], [Y[k] for k in order]
    display = WordDisplay.from_predictions(*words, words[1])
    for ax, y in zip(display.axes_, words[1], strict=True):
        assert ax.get_xlim()[1] >= 9 * len(y) - 1


def test_words_must_fit_together():
    X, Y = load_letters(return_X_y=True)
    with pytest.raises(ValueError, match="equal lengths, got 2, 2 and 1"):
        WordDisplay.from_predictions(X[:2], Y[:2], Y[:1])
    with pytest.raises(ValueError, match="shape must be that of the 128 pixels"):
        WordDisplay.from_predictions(X[:2], Y[:2], Y[:2], shape=(8, 8))


def test_labels_are_measured_by_the_truth():
    truth = np.eye(4, dtype=int)
    display = GridLabelDisplay.from_labels(
        {"truth": truth, "found": 1 - truth}, image=np.zeros((4, 4, 3))
    )
    assert [ax.get_title() for ax in display.axes_] == ["input", "truth", "found, 0.0%"]
    np.testing.assert_array_equal(display.images_[1].get_array(), truth)


def test_labels_must_be_images():
    with pytest.raises(ValueError, match=r"labels\['flat'\] must have shape \(height, width\)"):
        GridLabelDisplay.from_labels({"flat": np.zeros(4)})


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"GridLabelDisplay.*widemargin\[plot\]"):
        GridLabelDisplay.from_labels({"truth": np.eye(2, dtype=int)})
