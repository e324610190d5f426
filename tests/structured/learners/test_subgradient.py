"""SubgradientSSVM: its schedules and warm starts."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tests.structured.cases import MODELS, exact_objective, samples

from widemargin.structured import (
    ChainCRF,
    SubgradientSSVM,
)
from widemargin.structured.oracles import PlainOracle


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_descent_starts_from_old_weights_whatever_the_data():
    X, Y = samples(MODELS["chain"][1])
    fitted = SubgradientSSVM(
        ChainCRF(n_states=3), C=0.3, tol=0.02, warm_start=True, averaging="linear", shuffle=True
    ).fit(X, Y)
    old = fitted.w
    fitted.fit(X[:-1], Y[:-1])
    slacks = PlainOracle(fitted.model_, X[:-1], Y[:-1]).violations(old).slacks
    assert fitted.history_["iteration"][0] == 0
    assert fitted.objective_curve_[0] == pytest.approx(0.5 * old @ old + 0.3 * slacks.sum())
    # Another number of features: other weights, and a cold start.
    wide = [np.hstack([x, x]) for x in X]
    assert fitted.fit(wide, Y).history_["iteration"][0] > 0


@pytest.mark.parametrize(
    "options",
    [{"momentum": 0.5, "averaging": "linear"}, {"averaging": "squared"}, {"decay_t0": 50}],
)
def test_other_descents_come_near_the_optimum(options):
    X, Y = samples(MODELS["chain"][1])
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        learner = SubgradientSSVM(ChainCRF(), C=0.3, max_iter=2000, shuffle=True, **options)
        fitted = learner.fit(X, Y)
    assert fitted.objective_ == pytest.approx(exact_objective(fitted.model_, X, Y, 0.3), rel=0.05)
