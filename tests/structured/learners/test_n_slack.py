"""NSlackSSVM: working sets, batches, warm starts, and few calls of inference."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from tests.structured.cases import MODELS, exact_objective, samples

from widemargin.structured import ChainCRF, GraphCRF, MultiClassClf, NSlackSSVM, OneSlackSSVM


def test_idle_outputs_are_dropped():
    X, Y = samples(MODELS["chain"][1])
    patient = NSlackSSVM(ChainCRF(), C=5.0, tol=1e-4, warm_start=True, inactive_window=0).fit(X, Y)
    hasty = NSlackSSVM(ChainCRF(), C=5.0, tol=1e-4, warm_start=True, inactive_window=1).fit(X, Y)
    assert hasty.objective_ == pytest.approx(patient.objective_, rel=2e-4)
    assert len(hasty._previous["planes"]) < len(patient._previous["planes"])


def test_a_warm_start_takes_any_weights_of_samples():
    X, Y = samples(MODELS["chain"][1])
    weight = np.arange(len(Y), dtype=float)
    learner = NSlackSSVM(ChainCRF(), C=0.5, tol=1e-4, warm_start=True).fit(X, Y)
    cold = NSlackSSVM(ChainCRF(), C=0.2, tol=1e-4).fit(X, Y, sample_weight=weight)
    warm = learner.set_params(C=0.2).fit(X, Y, sample_weight=weight)
    best = exact_objective(cold.model_, X, Y, 0.2, weight)
    assert warm.objective_ == pytest.approx(best, rel=1e-4)
    assert warm.n_iter_ < cold.n_iter_


def test_unscaled_features_need_few_rounds():
    X, y = load_iris(return_X_y=True)
    learner = NSlackSSVM(MultiClassClf(), C=100.0, tol=1e-6).fit(X, y)
    assert learner.dual_gap_ <= 1e-6
    assert learner.n_iter_ <= 15
    other = OneSlackSSVM(MultiClassClf(), C=100.0, tol=1e-6).fit(X, y)
    assert learner.objective_ == pytest.approx(other.objective_, rel=2e-6)
    assert learner.n_iter_ < other.n_iter_


def test_inference_that_is_not_exact_ends_without_new_outputs():
    X, Y = samples(MODELS["graph"][1], n=5)
    model = GraphCRF(inference_method="icm")
    with pytest.warns(ConvergenceWarning, match="unknown because inference is not exact"):
        fitted = NSlackSSVM(model, C=0.5, tol=1e-9).fit(X, Y)
    assert np.isnan(fitted.dual_gap_)
    assert fitted.n_iter_ < fitted.max_iter


@pytest.mark.parametrize("batch_size", [-1, 1, 3, 100])
def test_batches_do_not_change_the_optimum(batch_size):
    X, Y = samples(MODELS["edge features"][1], n=7)
    fitted = NSlackSSVM(MODELS["edge features"][0], C=0.3, batch_size=batch_size).fit(X, Y)
    best = exact_objective(fitted.model_, X, Y, 0.3)
    assert best - 1e-6 <= fitted.objective_ <= best * 1.0011
