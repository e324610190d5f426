"""OneSlackSSVM: the cache and the planes."""

import pytest
from tests.structured.cases import MODELS, samples
from tests.structured.learners.cases import letters, new

from widemargin.structured import (
    ChainCRF,
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
