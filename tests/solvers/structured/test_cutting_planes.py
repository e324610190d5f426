"""Cutting planes: the problem over the planes and the cache."""

import numpy as np
import pytest
from tests.structured.cases import MODELS, samples

from widemargin.solvers.structured.cutting_planes import CuttingPlanesState, simplex_ascent
from widemargin.structured import (
    ChainCRF,
)


@pytest.mark.parametrize("seed", range(20))
def test_the_small_problem_over_planes_is_solved_from_any_start(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    factor = rng.normal(size=(n, rng.integers(1, 6)))
    gram, linear = factor @ factor.T, rng.normal(size=n)
    weights = rng.dirichlet(np.ones(n))
    simplex_ascent(gram, linear, weights, 1e-10, 1_000_000)
    assert weights.min() >= 0.0
    assert weights.sum() == pytest.approx(1.0)
    gradient = linear - gram @ weights
    assert gradient.max() - gradient[weights > 0.0].min() <= 1e-8


@pytest.mark.parametrize("cache", [1, 3])
def test_a_cache_keeps_so_many_answers_and_no_more(cache):
    X, Y = samples(MODELS["chain"][1])
    model = ChainCRF()
    model.initialize(X, Y)
    state = CuttingPlanesState(model.oracle(X, Y), np.full(len(Y), 0.5), tol=1e-4, cache=cache)
    lengths = []
    while not state.advance():
        lengths.append(len(state.cached_labels))
    assert lengths[0] == 1
    assert max(lengths) == lengths[-1] == cache
    assert state.record.gap <= 1e-4
