"""Subgradient descent: compiled passes take the steps of batches one by one."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.solvers.structured.test_frank_wolfe import FORESTS
from tests.structured.cases import samples

from widemargin._base.options import oracle_options
from widemargin.solvers.structured.subgradient import SubgradientState


@pytest.mark.parametrize("schedule", [{}, {"rate": 1.0, "decay": 0.0}, {"rate": 0.5, "decay": 0.2}])
@pytest.mark.parametrize("averaging", ["linear", "squared", None])
@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("name", FORESTS)
def test_a_compiled_pass_makes_the_steps_of_batches_one_by_one(
    name, batch_size, averaging, schedule, monkeypatch
):
    X, Y = samples(FORESTS[name][1], n=9)
    model = copy.deepcopy(FORESTS[name][0])
    model.initialize(X, Y)
    monkeypatch.setattr(oracle_options, "pass_operations", 300)
    monkeypatch.setattr(oracle_options, "calls_per_vector", 0)
    states = []
    for compiled in (True, False):
        oracle = model.oracle(X, Y)
        if not compiled:
            monkeypatch.setattr(oracle, "subgradient_pass", lambda *_: None)
        state = SubgradientState(
            oracle, np.linspace(0.0, 1.0, 9), averaging=averaging, batch_size=batch_size,
            max_iter=5, **schedule,
        )  # fmt: skip
        while not state.advance():
            pass
        states.append(state)
    fast, slow = states
    assert fast.steps == slow.steps
    assert np.abs(fast.plane).max() > 0.0
    for part in ("w", "plane", "plane_loss", "average", "average_weight"):
        assert_allclose(getattr(fast, part), getattr(slow, part), rtol=1e-7, atol=1e-9)
