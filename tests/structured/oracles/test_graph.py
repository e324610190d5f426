"""The compiled oracle."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.structured.cases import MODELS, samples

from widemargin._base.options import oracle_options
from widemargin.solvers.structured.frank_wolfe import FrankWolfeState
from widemargin.structured import (
    GraphCRF,
    MultiClassClf,
)


@pytest.mark.parametrize(("work", "length"), [(1, 1), (3 * (12 + 9), 3), (1e9, 7)])
def test_a_compiled_pass_is_cut_where_its_work_would_take_long(work, length, monkeypatch):
    # Three classes and four features: 12 weights, and one node of three states.
    X, Y = samples(MODELS["classes"][1], n=7)
    model = MultiClassClf(n_classes=3)
    model.initialize(X, Y)
    oracle, lengths = model.oracle(X, Y), []

    def run_pass(*arguments):
        lengths.append(len(arguments[4]))
        return 0.0

    monkeypatch.setattr(oracle_options, "pass_operations", work)
    monkeypatch.setattr(oracle_options, "calls_per_vector", 0)
    passes = "widemargin.structured.oracles.graph.passes.frank_wolfe_pass"
    monkeypatch.setattr(passes, run_pass)
    oracle.frank_wolfe_pass(np.arange(7), FrankWolfeState(oracle, np.ones(7)))
    assert max(lengths) == length
    assert sum(lengths) == 7


def test_labels_and_beliefs_are_evaluated_side_by_side():
    X, Y = samples(MODELS["graph"][1])
    model = GraphCRF()
    model.initialize(X, Y)
    rng, n = np.random.default_rng(0), model.n_states
    w, weight = rng.normal(size=model.size_joint_feature), rng.random(len(Y))
    labels = [rng.permutation(y) for y in Y]
    nodes = rng.dirichlet(np.ones(n), size=len(Y[1]))
    across = rng.dirichlet(np.ones(n * n), size=len(X[1][1])).reshape(-1, n, n)
    labels[1] = nodes, across
    oracle = model.oracle(X, Y)
    losses, slacks, total = oracle.evaluate(labels, oracle.from_model_order(w), weight)
    changes = [
        model.joint_feature(x, y) - model.joint_feature(x, label)
        for x, y, label in zip(X, Y, labels, strict=True)
    ]
    assert losses[0] == model.loss(Y[0], labels[0])
    assert losses[1] == pytest.approx(len(Y[1]) - nodes[np.arange(len(Y[1])), Y[1]].sum())
    assert_allclose(slacks, losses - np.array(changes) @ w, atol=1e-10)
    assert_allclose(oracle.to_model_order(total), weight @ np.array(changes), atol=1e-10)
