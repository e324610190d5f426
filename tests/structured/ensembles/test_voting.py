"""Consensus, disagreement and the re-ranker."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from tests.structured.ensembles.cases import draw_samples

from widemargin.structured import (
    CoulombSSVM,
    GridCRF,
    MultiClassClf,
    PerturbedSSVM,
)
from widemargin.structured.ensembles.voting import consensus, disagreement

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_the_consensus_is_the_most_frequent_state_and_ties_go_to_the_first_member():
    assert_array_equal(consensus([[2, 0, 1], [0, 0, 2], [1, 3, 2]]), [2, 0, 2])
    assert consensus([1, 2, 2]) == 2


def test_disagreement_is_the_share_of_pairs_that_differ():
    assert_allclose(disagreement([[1, 1, 1], [1, 2, 2], [1, 2, 3]]), [0, 2 / 3, 1])
    assert_array_equal(disagreement([[1, 2]]), [0, 0])


def test_outputs_without_parts_have_no_consensus():
    with pytest.raises(ValueError, match="Outputs must be labels"):
        consensus([{"tree": 1}, {"other": 2}])


def test_a_reranker_learns_which_member_to_trust():
    # Two members always predict the same wrong class and one is right: the consensus is wrong.
    X, y = load_iris(return_X_y=True)
    ensemble = PerturbedSSVM(MultiClassClf(), 3, C=0.1, tol=0.05).fit(X, y)
    good = ensemble.w
    rolled = np.roll(good.reshape(3, -1), 1, axis=0).ravel()
    ensemble.W = np.array([rolled, good, rolled])
    before = ensemble.score(X[1::2], y[1::2])
    after = ensemble.fit_reranker(X[::2], y[::2]).score(X[1::2], y[1::2])
    assert before < 0.3
    assert after > 0.9
    assert ensemble.fit(X, y).reranker_ is None


def test_disagreement_has_the_shape_of_the_outputs():
    _, X, Y = draw_samples("grid", 4)
    ensemble = CoulombSSVM(GridCRF(), 2, n_steps=3, C=0.1, tol=0.1).fit(X, Y)
    assert [part.shape for part in ensemble.disagreement(X)] == [y.shape for y in Y]
