"""The displays of discriminants: the numbers they draw, and what they say when they cannot."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from sklearn import discriminant_analysis as peer
from sklearn.datasets import load_iris, make_circles
from sklearn.linear_model import LogisticRegression

from widemargin import (
    KernelDiscriminantAnalysis,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from widemargin.plotting import (
    DiscriminantDensityDisplay,
    DiscriminantProjectionDisplay,
    DiscriminantRegionDisplay,
)


@pytest.fixture
def iris():
    return load_iris(return_X_y=True)


def test_the_projection_shows_rows_means_and_ellipses_of_every_class(iris):
    X, y = iris
    model = LinearDiscriminantAnalysis().fit(X, y)
    display = DiscriminantProjectionDisplay.from_estimator(model, X, y)
    projected = model.transform(X)
    assert len(display.points_) == len(display.means_) == 3
    assert len(display.ellipses_) == 6
    for k in range(3):
        rows = projected[y == k]
        np.testing.assert_allclose(display.points_[k].get_offsets(), rows)
        np.testing.assert_allclose(display.means_[k].get_xydata()[0], rows.mean(axis=0))
        inner, outer = display.ellipses_[2 * k : 2 * k + 2]
        areas = [np.pi / 4 * ellipse.width * ellipse.height for ellipse in (inner, outer)]
        determinant = np.linalg.det(np.cov(rows.T, bias=True))
        np.testing.assert_allclose(areas, np.pi * np.sqrt(determinant) * np.array([1, 4]))
    assert "99 %" in display.ax_.get_xlabel()


def test_ellipses_lie_along_the_data():
    rng = np.random.default_rng(0)
    y = np.arange(4000) % 2
    X = rng.standard_normal((4000, 2)) * [3.0, 1.0] @ [[0.6, 0.8], [-0.8, 0.6]]
    display = DiscriminantRegionDisplay.from_estimator(
        QuadraticDiscriminantAnalysis().fit(X, y), X, y, grid_resolution=10
    )
    ellipse = display.ellipses_[0]
    expected = np.degrees(np.arctan2(0.8, 0.6))
    assert abs((ellipse.angle - expected + 90) % 180 - 90) < 3
    np.testing.assert_allclose([ellipse.width, ellipse.height], [6, 2], rtol=0.05)


def test_one_direction_is_drawn_as_histograms():
    X, y = make_circles(200, factor=0.4, noise=0.1, random_state=0)
    model = KernelDiscriminantAnalysis().fit(X, y)
    display = DiscriminantProjectionDisplay.from_estimator(model, X, y, legend=False)
    counts = [sum(bar.get_height() for bar in bars) for bars in display.points_]
    assert counts == [100, 100]
    assert display.ax_.get_legend() is None


def test_no_direction_cannot_be_drawn():
    X = np.tile(np.random.default_rng(0).standard_normal((20, 3)), (2, 1))
    y = np.repeat([0, 1], 20)
    with pytest.raises(ValueError, match="at least one direction"):
        DiscriminantProjectionDisplay.from_estimator(LinearDiscriminantAnalysis().fit(X, y), X, y)


@pytest.mark.parametrize(
    "model",
    [
        LinearDiscriminantAnalysis(),
        LinearDiscriminantAnalysis(store_covariance=True),
        QuadraticDiscriminantAnalysis(),
        KernelDiscriminantAnalysis(),
        LogisticRegression(),
    ],
    ids=str,
)
def test_regions_are_those_of_the_probabilities(iris, model):
    X, y = iris
    model = model.fit(X[:, :2], y)
    display = DiscriminantRegionDisplay.from_estimator(model, X[:, :2], y, grid_resolution=25)
    corners = np.column_stack([display.xx0.ravel(), display.xx1.ravel()])
    expected = model.predict_proba(corners).T.reshape(3, 25, 25)
    np.testing.assert_allclose(display.probabilities, expected)
    assert len(display.lines_) == 3
    gaussian = isinstance(model, (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis))
    assert len(display.ellipses_) == (6 if gaussian else 0)


LINEAR = [
    LinearDiscriminantAnalysis(),
    LinearDiscriminantAnalysis(priors=[0.2, 0.3, 0.5], store_covariance=True),
    LinearDiscriminantAnalysis(shrinkage=0.5, covariance_divisor="unbiased"),
    LinearDiscriminantAnalysis(objective="trace_ratio"),
    LinearDiscriminantAnalysis("svd"),
    LinearDiscriminantAnalysis("eigen", shrinkage="oas"),
    LinearDiscriminantAnalysis("eigen", objective="trace_ratio"),
    LinearDiscriminantAnalysis("lsqr", priors=[0.2, 0.3, 0.5]),
    peer.LinearDiscriminantAnalysis(),
    peer.LinearDiscriminantAnalysis("lsqr", shrinkage=0.5),
]


@pytest.mark.parametrize("model", LINEAR, ids=str)
def test_linear_ellipses_are_those_of_the_covariance_that_decides(iris, model):
    X, y = iris
    model = model.fit(X[:, :2], y)
    few = slice(None, None, 7)
    display = DiscriminantRegionDisplay.from_estimator(model, X[few, :2], y[few], grid_resolution=5)
    slopes = model.coef_ - model.coef_.mean(axis=0)
    gaps = model.means_ - model.means_.mean(axis=0)
    for k, (mean, covariance) in enumerate(display.gaussians):
        np.testing.assert_allclose(mean, model.means_[k])
        np.testing.assert_allclose(slopes @ covariance, gaps, atol=1e-9)


def test_two_classes_are_drawn_with_the_covariance_where_it_was_kept(iris):
    X, y = iris[0][:100, :2], iris[1][:100]
    for solver, kept in (("gram", 4), ("svd", 0)):
        model = LinearDiscriminantAnalysis(solver).fit(X, y)
        display = DiscriminantRegionDisplay.from_estimator(model, X, y, grid_resolution=5)
        assert len(display.ellipses_) == kept


def test_frames_name_the_axes(iris):
    X, y = iris
    frame = pd.DataFrame(X[:, :2], columns=["length", "width"])
    model = LinearDiscriminantAnalysis().fit(frame, y)
    display = DiscriminantRegionDisplay.from_estimator(model, frame, y, grid_resolution=5)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("length", "width")
    model = LinearDiscriminantAnalysis().fit(frame[["width"]], y)
    display = DiscriminantDensityDisplay.from_estimator(model, frame[["width"]])
    assert display.ax_.get_xlabel() == "width"


def test_regions_need_two_features(iris):
    X, y = iris
    model = LinearDiscriminantAnalysis().fit(X, y)
    with pytest.raises(ValueError, match="X must have 2 features"):
        DiscriminantRegionDisplay.from_estimator(model, X, y)


@pytest.mark.parametrize("priors", [[0.5, 0.5], [0.3, 0.7]])
@pytest.mark.parametrize("solver", ["gram", "lsqr"])
def test_the_boundary_of_the_lecture_is_where_the_densities_cross(priors, solver):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 500)
    X = (np.where(y, 1.5, -1.5) + rng.standard_normal(1000))[:, np.newaxis]
    model = LinearDiscriminantAnalysis(solver, priors=priors).fit(X, y)
    display = DiscriminantDensityDisplay.from_estimator(model, X, y)
    boundary = -model.intercept_[0] / model.coef_[0, 0]
    np.testing.assert_allclose(display.boundaries, [boundary])
    assert [line.get_xdata()[0] for line in display.lines_] == list(display.boundaries)
    areas = trapezoid(display.densities, display.grid)
    np.testing.assert_allclose(areas, priors, atol=2e-3)


def test_unequal_variances_have_two_boundaries():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 2000)
    X = (rng.standard_normal(4000) * np.where(y, 3.0, 1.0))[:, np.newaxis]
    model = QuadraticDiscriminantAnalysis().fit(X, y)
    display = DiscriminantDensityDisplay.from_estimator(model, X, y)
    assert len(display.boundaries) == 2
    odds = model.decision_function(display.boundaries[:, np.newaxis])
    np.testing.assert_allclose(odds, 0.0, atol=1e-9)


@pytest.mark.parametrize("priors", [[0.0, 1.0], [1.0, 0.0], None])
@pytest.mark.parametrize("means", [(-1.5, 1.5), (0.0, 0.0)])
def test_without_a_rival_there_is_no_boundary(priors, means):
    y = np.repeat([0, 1], 20)
    X = np.array(means)[y, np.newaxis] + np.tile([-1.0, 1.0], 20)[:, np.newaxis]
    model = LinearDiscriminantAnalysis(priors=priors).fit(X, y)
    display = DiscriminantDensityDisplay.from_estimator(model, X, y)
    crossings = priors is None and means[0] != means[1]
    assert len(display.boundaries) == (1 if crossings else 0)
    np.testing.assert_allclose(trapezoid(display.densities, display.grid), model.priors_, atol=2e-3)


def test_densities_need_one_feature_and_a_variance(iris):
    X, y = iris
    with pytest.raises(ValueError, match="X must have 1 feature"):
        DiscriminantDensityDisplay.from_estimator(LinearDiscriminantAnalysis().fit(X, y), X)
    X = np.tile([-1.0, 1.0], 6)[:, np.newaxis]
    model = LinearDiscriminantAnalysis("svd").fit(X, np.repeat([0, 1], 6))
    with pytest.raises(ValueError, match="store_covariance=True"):
        DiscriminantDensityDisplay.from_estimator(model, X)


def test_colors_are_one_for_each_class(iris):
    X, y = iris
    model = LinearDiscriminantAnalysis().fit(X, y)
    with pytest.raises(ValueError, match="colors must contain one per class"):
        DiscriminantProjectionDisplay.from_estimator(model, X, y, colors=["red"])
