"""The compiled oracle."""

import numpy as np
import pytest
from tests.structured.cases import MODELS, samples

from widemargin._base.options import oracle_options
from widemargin.solvers.structured.frank_wolfe import FrankWolfeState
from widemargin.structured import (
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
