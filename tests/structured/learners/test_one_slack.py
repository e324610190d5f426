"""OneSlackSSVM: the cache and the planes."""

import numpy as np
import pytest
from sklearn.base import clone
from tests.structured.cases import MODELS, samples
from tests.structured.learners.cases import letters, new

from widemargin.structured import (
    ChainCRF,
    GraphCRF,
    MultiClassClf,
    OneSlackSSVM,
)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_resumed_fit_with_a_cache_asks_anew_and_reaches_the_same(tmp_path):
    X, Y = samples(MODELS["chain"][1])
    file = tmp_path / "state"
    whole = new("one slack with cache", ChainCRF(), C=0.2).fit(X, Y)
    new("one slack with cache", ChainCRF(), C=0.2, max_iter=5, checkpoint=file).fit(X, Y)
    resumed = new("one slack with cache", ChainCRF(), C=0.2, checkpoint=file).fit(X, Y)
    # Without answers the first round after the fifth must ask.
    assert 6 in resumed.history_["iteration"]
    assert resumed.dual_gap_ <= resumed.tol
    assert resumed.objective_ == pytest.approx(whole.objective_, rel=2 * whole.tol)


def test_idle_planes_are_dropped():
    X, Y = samples(MODELS["chain"][1])
    patient = OneSlackSSVM(ChainCRF(), C=0.5, tol=1e-4, warm_start=True).fit(X, Y)
    hasty = OneSlackSSVM(ChainCRF(), C=0.5, tol=1e-4, warm_start=True, inactive_window=2).fit(X, Y)
    assert hasty.objective_ == pytest.approx(patient.objective_, rel=2e-4)
    assert len(hasty._previous["planes"]) < len(patient._previous["planes"])


@pytest.mark.large
def test_a_cache_asks_less_often():
    X, Y = letters(20)
    plain = OneSlackSSVM(ChainCRF(), C=0.1, tol=0.02).fit(X, Y)
    cached = OneSlackSSVM(ChainCRF(), C=0.1, tol=0.02, inference_cache=10).fit(X, Y)
    assert len(cached.gap_curve_) < len(plain.gap_curve_)
    assert cached.objective_ == pytest.approx(plain.objective_, rel=0.03)


@pytest.mark.parametrize("rounds", [None, 4, 12])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_training_switches_to_exact_inference_and_reaches_its_optimum(tmp_path, rounds):
    X, Y = samples(MODELS["graph"][1])
    exact = OneSlackSSVM(GraphCRF(inference_method="enumerate"), C=0.5, tol=1e-4).fit(X, Y)
    learner = OneSlackSSVM(
        GraphCRF(inference_method="unary"), C=0.5, tol=1e-4, inference_cache=3,
        switch_to="enumerate", checkpoint=tmp_path / "state",
    )  # fmt: skip
    if rounds is not None:  # and the checkpoint is from before or after the switch
        clone(learner).set_params(max_iter=rounds).fit(X, Y)
    learner.fit(X, Y)
    assert learner.dual_gap_ <= 1e-4
    assert learner.objective_ == pytest.approx(exact.objective_, rel=2e-4)
    assert learner.model_.inference_method == "enumerate"
    assert learner.model.inference_method == "unary"


def test_models_without_methods_of_inference_cannot_switch():
    with pytest.raises(TypeError, match="switch_to requires a model with inference methods"):
        OneSlackSSVM(MultiClassClf(), switch_to="lp").fit(np.eye(2), [0, 1])
    with pytest.raises(ValueError, match="inference_method must be one of"):
        OneSlackSSVM(ChainCRF(), switch_to="exact").fit([np.eye(2)], [[0, 1]])
