"""What the benchmark of ill-conditioned problems computes itself is right."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer

from widemargin import SVC

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def hard(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import hard

    return hard


def fitted(**parameters):
    X, y = load_breast_cancer(return_X_y=True)
    X = np.round(1024.0 * X[:80, :4] / X[:80, :4].max(axis=0)) / 1024.0
    return SVC(**parameters).fit(X, y[:80]), X, y[:80]


@pytest.mark.parametrize(
    "parameters",
    [{"kernel": "linear"}, {"kernel": "poly", "coef0": 0.5}, {"kernel": "rbf", "gamma": 0.7}],
)
def test_certificates_of_well_conditioned_problems_are_those_of_the_fit(hard, parameters):
    model, X, y = fitted(**parameters)
    certificate = hard.rbf_certificate if model.kernel == "rbf" else hard.exact_certificate
    objective, gap = map(float, certificate(model, X, y))
    assert_allclose(objective, model.objective_, rtol=1e-12)
    assert_allclose(gap, model.dual_gap_, atol=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_an_offset_takes_no_digits_of_an_exact_certificate(hard, kernel):
    # With dual coefficients of sum 0, f moves by a constant. All numbers are exact in float64.
    model, X, y = fitted(kernel=kernel, degree=1, gamma=1.0)
    dual = np.round(model.dual_coef_ * 2.0**20) / 2.0**20
    dual[0, 0] -= dual.sum()
    model.dual_coef_, model.intercept_ = dual, np.round(model.intercept_ * 1024.0) / 1024.0
    near = hard.exact_certificate(model, X, y)
    model.intercept_ = model.intercept_ - (dual[0] @ X[model.support_]).sum() * 2.0**20
    assert hard.exact_certificate(model, X + 2.0**20, y) == near
