"""SlackDisplay plots the slack."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import pyplot
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from widemargin import PrivilegedSVC
from widemargin.plotting import SlackDisplay


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


@pytest.fixture
def fitted():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(60, 2)), 0.01 * rng.normal(size=(60, 3))
    yes = X[:, 0] + rng.normal(size=60) > 0
    Z[:, 1] = np.maximum(0.0, -np.where(yes, 1, -1) * X[:, 0])
    y, frame = np.where(yes, "yes", "no"), pd.DataFrame(Z, columns=["a", "noise", "c"])
    return PrivilegedSVC(privileged_penalty=0.01).fit(X, y, privileged=frame), frame, y


def test_points_are_at_the_slack_of_their_samples(fitted):
    model, Z, y = fitted
    display = SlackDisplay.from_estimator(model, Z, y)
    assert display.ax_.get_xlabel() == "noise"
    for points, label in zip(display.points_, ["no", "yes"], strict=True):
        own = y == label
        expected = np.column_stack([Z["noise"][own], model.slack(Z)[own]])
        np.testing.assert_allclose(points.get_offsets(), expected)


def test_a_feature_is_chosen_by_name_or_index(fitted):
    model, Z, y = fitted
    _, ax = pyplot.subplots()
    display = SlackDisplay.from_estimator(model, Z, y, feature="c", ax=ax, legend=False)
    assert display.ax_ is ax
    assert ax.get_xlabel() == "c"
    assert ax.get_legend() is None
    numbered = SlackDisplay.from_estimator(model, Z.to_numpy(), y, feature=0)
    assert numbered.ax_.get_xlabel() == "privileged feature 0"


@pytest.mark.filterwarnings("ignore:The decision function")
def test_with_several_classes_each_sample_has_the_slack_of_its_own_class():
    rng = np.random.default_rng(1)
    X, Z, y = rng.normal(size=(60, 2)), rng.normal(size=(60, 2)), np.arange(60) % 3
    X[:, 0] += y
    model = PrivilegedSVC(privileged_penalty=0.01).fit(X, y, privileged=Z)
    display = SlackDisplay.from_estimator(model, Z, y)
    np.testing.assert_array_equal(display.slack, model.slack(Z)[np.arange(60), y])


@pytest.mark.parametrize("container", [pd.DataFrame, pl.DataFrame])
def test_frames_may_have_numbers_and_categories(container):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + rng.normal(size=60) > 0).astype(int)
    fog = np.where(np.where(y == 1, 1, -1) * X[:, 0] < 0, "fog", "sun")
    Z = container({"size": rng.normal(size=60), "weather": fog})
    numbers = make_column_transformer((OneHotEncoder(), ["weather"]), (StandardScaler(), ["size"]))
    model = PrivilegedSVC(privileged_transformer=numbers).fit(X, y, privileged=Z)
    display = SlackDisplay.from_estimator(model, Z, y)
    assert display.ax_.get_xlabel() == "weather"
    display.figure_.canvas.draw()
    ticks = {text.get_text() for text in display.ax_.get_xticklabels()}
    assert ticks == {"fog", "sun"}
    sizes = SlackDisplay.from_estimator(model, Z, y, feature="size")
    np.testing.assert_array_equal(sizes.values, Z["size"])
    with pytest.raises(
        ValueError, match=r"feature must be one of .*'size', 'weather'.*got 'height'"
    ):
        SlackDisplay.from_estimator(model, Z, y, feature="height")
