"""FrankWolfeSSVM: its options, and problems that others solve too."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.structured.cases import MODELS, exact_objective, samples
from tests.structured.learners.cases import new

from widemargin import CrammerSingerSVC
from widemargin.structured import (
    ChainCRF,
    FrankWolfeSSVM,
    GraphCRF,
    GridCRF,
    MultiClassClf,
    OneSlackSSVM,
)


def test_classes_are_learnt_as_crammer_and_singer_do():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.argmax(X @ rng.normal(size=(3, 3)) + 0.3 * rng.normal(size=(60, 3)), axis=1)
    fitted = FrankWolfeSSVM(MultiClassClf(), tol=1e-5, max_iter=20_000).fit(X, y)
    reference = CrammerSingerSVC(fit_intercept=False).fit(X, y)
    assert fitted.objective_ == pytest.approx(reference.objective_, rel=1e-4)
    assert_allclose(fitted.w.reshape(3, 3), reference.coef_, atol=0.02)


def test_relaxed_learning_is_certified():
    X, Y = samples(MODELS["graph"][1], n=4)
    fitted = FrankWolfeSSVM(GraphCRF(inference_method="lp"), C=0.1, tol=0.05).fit(X, Y)
    assert fitted.dual_gap_ <= 0.05
    cached = OneSlackSSVM(GraphCRF(inference_method="lp"), C=0.1, tol=0.05, inference_cache=3)
    assert cached.fit(X, Y).objective_ == pytest.approx(fitted.objective_, rel=0.06)


@pytest.mark.parametrize("options", [{"sample_method": "rnd"}, {"sample_method": "seq"}])
def test_other_orders_of_samples_reach_the_optimum_too(options):
    X, Y = samples(MODELS["chain"][1])
    fitted = new("frank-wolfe", ChainCRF(), C=0.3, **options).fit(X, Y)
    assert fitted.objective_ == pytest.approx(exact_objective(fitted.model_, X, Y, 0.3), rel=2e-3)


@pytest.mark.parametrize("options", [{"line_search": False}, {"do_averaging": False}])
def test_frank_wolfe_without_its_helps_still_converges(options):
    X, Y = samples(MODELS["chain"][1])
    fitted = new("frank-wolfe", ChainCRF(), C=0.3, tol=0.02, **options).fit(X, Y)
    assert fitted.objective_ == pytest.approx(exact_objective(fitted.model_, X, Y, 0.3), rel=0.03)


def test_grids_are_learnt():
    rng = np.random.default_rng(0)
    Y = [np.kron(rng.integers(2, size=(2, 2)), np.ones((3, 3), dtype=int)) for _ in range(8)]
    X = [np.stack([1 - y, y], axis=-1) + rng.normal(size=(6, 6, 2)) for y in Y]
    fitted = FrankWolfeSSVM(GridCRF(), C=0.1, tol=0.01).fit(X, Y)
    alone = np.mean([(x.argmax(axis=-1) == y).mean() for x, y in zip(X, Y, strict=True)])
    assert fitted.score(X, Y) > alone + 0.1


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_warm_start_of_classes_with_one_feature_keeps_the_bounds(C):
    # The shares of the states then have the shape of one weight vector per sample.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 1))
    y = (X[:, 0] + 0.5 * rng.normal(size=12) > 0).astype(int) + (rng.random(12) < 0.3)
    warm = FrankWolfeSSVM(MultiClassClf(), C=1.0 / C, warm_start=True).fit(X, y)
    warm.set_params(C=C).fit(X, y)
    best = exact_objective(warm.model_, X, y, C)
    assert best - 1e-6 <= warm.objective_ <= best / (1.0 - warm.dual_gap_) + 1e-6
    assert warm.dual_gap_ <= warm.tol
