"""Frank-Wolfe: the anchor, and one step for compiled passes and single calls."""

import copy
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from tests.structured.cases import MODELS, exact_objective, samples

from widemargin._base import jit
from widemargin._base.options import oracle_options
from widemargin.solvers.structured.frank_wolfe import FrankWolfeState, solve_frank_wolfe
from widemargin.solvers.structured.problem import OracleSubset
from widemargin.structured import (
    ChainCRF,
    EdgeFeatureGraphCRF,
)


def _advance(state):
    """Take steps until the solver stops, and return the state."""
    while not state.advance():
        pass
    return state


def test_an_anchor_draws_the_weights_to_itself():
    X, Y = samples(MODELS["chain"][1], n=5)
    model = ChainCRF()
    model.initialize(X, Y)
    oracle = model.oracle(X, Y)
    anchor = np.random.default_rng(0).normal(size=model.size_joint_feature)
    solution = solve_frank_wolfe(
        oracle, np.full(5, 0.2), anchor=oracle.from_model_order(anchor), tol=1e-4, max_iter=20_000
    )
    assert solution.converged
    best = exact_objective(model, X, Y, 0.2, anchor=anchor)
    assert solution.objective == pytest.approx(best, rel=2e-4)
    nothing = solve_frank_wolfe(
        oracle, np.zeros(5), anchor=oracle.from_model_order(anchor), max_iter=1
    )
    assert_allclose(oracle.to_model_order(nothing.w), anchor)


def tree_sample(rng):
    """A forest whose edges have features and go either way."""
    n_nodes = int(rng.integers(2, 7))
    pairs = [(int(rng.integers(v)), v)[:: rng.choice([-1, 1])] for v in range(1, n_nodes)]
    edges = np.array([pair for pair in pairs if rng.random() < 0.9], dtype=int).reshape(-1, 2)
    x = rng.normal(size=(n_nodes, 4)), edges, rng.normal(size=(len(edges), 3))
    return x, rng.integers(3, size=n_nodes)


TIED = EdgeFeatureGraphCRF(symmetric_edge_features=[0], antisymmetric_edge_features=[2])


FORESTS = {
    **{name: MODELS[name] for name in ("classes", "two classes", "tree of labels")},
    **{name: MODELS[name] for name in ("given pairs of labels", "weighted chain")},
    "tree with tied edge features": (TIED, tree_sample),
}


@pytest.mark.parametrize("paid", [False, True])
@pytest.mark.parametrize("line_search", [True, False])
@pytest.mark.parametrize("averaging", [True, False])
@pytest.mark.parametrize("name", FORESTS)
def test_a_compiled_pass_makes_the_steps_of_calls_one_by_one(
    name, averaging, line_search, paid, monkeypatch
):
    X, Y = samples(FORESTS[name][1], n=9)
    model = copy.deepcopy(FORESTS[name][0])
    model.initialize(X, Y)
    monkeypatch.setattr(oracle_options, "pass_operations", 300)
    chosen, cost = np.array([8, 1, 3, 2, 0, 6, 5]), np.linspace(0.0, 1.0, 7)
    states, extra = [], None
    if paid:
        rng, shapes = np.random.default_rng(2), np.diff(model.oracle(X, Y).graphs.nodes)[chosen]
        extra = [rng.normal(size=(n, model.oracle(X, Y).layout.n_states)) for n in shapes]
    for compiled in (True, False):
        oracle, asked = model.oracle(X, Y), []
        silent = "violation" if compiled else "empty_blocks"
        monkeypatch.setattr(oracle, silent, lambda *_, asked=asked: asked.append(_))
        states.append(
            FrankWolfeState(
                OracleSubset(oracle, chosen, extra), cost, averaging=averaging,
                line_search=line_search, max_iter=6,
            )
        )  # fmt: skip
        _advance(states[-1])
        assert len(asked) == (0 if compiled else 1)
        assert states[-1].implicit == compiled
    fast, slow = states
    assert fast.steps == slow.steps == 42
    assert np.abs(fast.w).max() > 0.0
    for part in ("w", "losses", "average", "average_loss"):
        assert_allclose(getattr(fast, part), getattr(slow, part), rtol=1e-9, atol=1e-12)
    for k in range(len(chosen)):
        only = np.where(np.arange(len(chosen)) == k, cost, 0.0)
        block = fast.oracle.sum_blocks(fast.blocks, fast.pairs, only)
        assert_allclose(block, slow.blocks[k], rtol=1e-9, atol=1e-12)


def test_memory_of_the_blocks_does_not_depend_on_the_number_of_features():
    rng = np.random.default_rng(0)
    X = [sp.random_array((5, 10_000), density=1e-3, rng=rng, format="csr") for _ in range(90)]
    Y = [rng.integers(4, size=5) for _ in X]
    oracle = ChainCRF().prepare(X, Y)
    with jit.eager():
        _advance(FrankWolfeState(oracle, np.ones(90), max_iter=3))  # compiling takes memory, too
        tracemalloc.start()
        state = _advance(FrankWolfeState(oracle, np.ones(90), max_iter=3))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 8 * 20 * oracle.size  # a block of weights for each sample has 90 times the size
    assert state.blocks.size + state.pairs.size == 90 * (5 * 4 + 16)
    assert state.record.dual > 0.0
