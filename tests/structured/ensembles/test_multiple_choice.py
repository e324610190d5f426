"""Multiple choice learning: its objective, its stopping rule, and diversity."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tests.structured.ensembles.cases import Stop, draw_chains, make_ensemble

from widemargin.structured import (
    DiverseMultipleChoiceSSVM,
    FrankWolfeSSVM,
    MultipleChoiceSSVM,
)
from widemargin.structured.oracles import PlainOracle

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_callbacks_stop_rounds_of_multiple_choice():
    model, X, Y = draw_chains()
    for kind, rounds in (("multiple choice", 1), ("diverse choice", 2)):
        ensemble = (
            make_ensemble(kind, model, n_rounds=1000).set_callbacks(Stop(after=rounds)).fit(X, Y)
        )
        assert ensemble.n_iter_ == len(ensemble.history_["objective"]) == rounds


def test_choice_without_diversity_is_multiple_choice():
    model, X, Y = draw_chains()
    plain = MultipleChoiceSSVM(clone(model), 3, C=0.5, n_rounds=3).fit(X, Y)
    diverse = DiverseMultipleChoiceSSVM(clone(model), 3, 0.0, C=0.5, n_rounds=3).fit(X, Y)
    assert_array_equal(plain.W, diverse.W)


def test_multiple_choice_counts_each_sample_for_its_best_member():
    model, X, Y = draw_chains()
    ensemble = MultipleChoiceSSVM(model, 3, C=0.5, tol=1e-3, max_iter=1000).fit(X, Y)
    oracle = PlainOracle(ensemble.model_, X, Y)
    slacks = np.array([oracle.violations(w).slacks for w in ensemble.W])
    assert_array_equal(ensemble.assignment_, slacks.argmin(axis=0))
    value = 0.5 * np.sum(ensemble.W**2) + 0.5 * slacks.min(axis=0).sum()
    assert_allclose(ensemble.objective_, value)
    # Given the assignment, every member is the SSVM of its samples.
    for m, w in enumerate(ensemble.W):
        own = np.flatnonzero(ensemble.assignment_ == m)
        if len(own):
            alone = FrankWolfeSSVM(clone(model), C=0.5, tol=1e-3, max_iter=1000)
            alone.set_params(model__n_states=3).fit([X[i] for i in own], [Y[i] for i in own])
            mine = 0.5 * w @ w + 0.5 * slacks[m, own].sum()
            assert_allclose(mine, alone.objective_, rtol=3e-3)


def test_members_that_are_rewarded_for_differing_differ_more():
    model, X, Y = draw_chains(30)
    apart = []
    for diversity in (0.0, 2.0):
        ensemble = DiverseMultipleChoiceSSVM(clone(model), 3, diversity, C=1.0, n_rounds=4)
        apart.append(np.mean(np.concatenate(ensemble.fit(X, Y).disagreement(X))))
    assert apart[1] > apart[0]
