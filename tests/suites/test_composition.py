"""Estimators work inside scikit-learn's meta-estimators."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.suites.registry import answers, each_case


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@each_case()
def test_a_pipeline_fits_on_transformed_rows(case):
    X, y = case.data()
    X = 3.0 * X + 1.0
    pipeline = make_pipeline(StandardScaler(), case.new()).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    assert_array_equal(answers(pipeline, X), answers(case.new().fit(scaled, y), scaled))


@each_case(lambda case: case.has("C"))
def test_a_grid_search_tells_parameters_apart(case):
    X, y = case.data()
    pairwise = X @ X.T if case.pairwise else X
    search = GridSearchCV(case.new(), {"C": [1e-4, 1.0]}, cv=3).fit(pairwise, y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] != scores[1]
    assert search.best_params_["C"] == [1e-4, 1.0][np.argmax(scores)]
    best = case.new(**search.best_params_).fit(pairwise, y)
    assert_array_equal(search.predict(pairwise), best.predict(pairwise))


@each_case(lambda case: case.weighted)
def test_a_pipeline_routes_weights(case, routing):
    X, y = case.data()
    weights = np.arange(len(y)) % 3 + 1.0
    estimator = case.new().set_fit_request(sample_weight=True)
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), estimator).fit(
        X, y, sample_weight=weights
    )
    scaled = StandardScaler().fit_transform(X)
    direct = case.new().fit(scaled, y, sample_weight=weights)
    assert_array_equal(answers(pipeline, X), answers(direct, scaled))


@each_case(lambda case: case.weighted)
def test_a_search_and_cross_validation_route_weights(case, routing):
    X, y = case.data()
    weights = np.arange(len(y)) % 3 + 1.0
    estimator = case.new().set_fit_request(sample_weight=True)
    estimator = estimator.set_score_request(sample_weight=True)
    grid = {"C": [0.1, 1.0]} if case.has("C") else {}
    search = GridSearchCV(estimator, grid, cv=3).fit(X, y, sample_weight=weights)
    direct = case.new(**search.best_params_).fit(X, y, sample_weight=weights)
    assert_array_equal(answers(search, X), answers(direct, X))

    split = [(np.arange(60), np.arange(60, 90))]
    result = cross_validate(estimator, X, y, cv=split, params={"sample_weight": weights})
    half = case.new().fit(X[:60], y[:60], sample_weight=weights[:60])
    assert result["test_score"] == [half.score(X[60:], y[60:], sample_weight=weights[60:])]
