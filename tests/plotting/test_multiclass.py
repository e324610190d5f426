"""CodeMatrixDisplay: what it shows of a code matrix."""

import sys

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from widemargin import SVC, CodeMatrixClassifier, code_matrix
from widemargin.plotting import CodeMatrixDisplay


def test_the_picture_is_the_matrix_with_the_names_of_classes():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    model = CodeMatrixClassifier(SVC(), code="ovo").fit(X, names[y])
    display = CodeMatrixDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.image_.get_array(), model.code_matrix_)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == names.tolist()
    assert display.ax_.get_title() == "3 columns, minimum distance 2"


def test_colours_tell_the_signs_apart():
    display = CodeMatrixDisplay(code_matrix("sparse", 6)[0]).plot()
    shades = {tuple(display.image_.cmap(display.image_.norm(sign))) for sign in (-1, 0, 1)}
    assert len(shades) == 3
    assert display.ax_.get_title() == ""


def test_many_classes_are_not_named():
    display = CodeMatrixDisplay(code_matrix("ovr", 60)[0]).plot()
    assert len(display.ax_.get_yticks()) < 60


def test_it_draws_into_given_axes():
    _, ax = pyplot.subplots()
    assert CodeMatrixDisplay(code_matrix("ovo", 4)[0]).plot(ax=ax).ax_ is ax


def test_an_estimator_that_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        CodeMatrixDisplay.from_estimator(CodeMatrixClassifier(SVC()))


def test_without_matplotlib_the_error_names_the_display(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"CodeMatrixDisplay requires.*widemargin\[plot\]"):
        CodeMatrixDisplay(code_matrix("ovo", 3)[0]).plot()
