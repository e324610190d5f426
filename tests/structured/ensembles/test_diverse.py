"""Diverse predictions, compared with all outputs enumerated."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from tests.structured.cases import MODELS, all_outputs
from tests.structured.ensembles.cases import (
    draw_chains,
    draw_samples,
)
from tests.structured.models.test_models import OwnClasses

from widemargin.structured import (
    FrankWolfeSSVM,
    MultiClassClf,
    PerturbedSSVM,
    batch_diverse_predictions,
    diverse_predictions,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("name", MODELS)
def test_diverse_predictions_are_the_best_outputs_at_each_turn(name):
    model, X, Y = draw_samples(name, 2)
    model.initialize(X, Y)
    w = np.random.default_rng(1).normal(size=model.size_joint_feature)
    for x, y in zip(X, Y, strict=True):
        found = diverse_predictions(model, w, x, 3, diversity=0.7)
        for m, own in enumerate(found):

            def value(other, x=x, earlier=found[:m]):
                apart = sum(np.sum(np.asarray(other) != np.asarray(before)) for before in earlier)
                return w @ model.joint_feature(x, other) + 0.7 * apart

            assert_allclose(value(own), max(map(value, all_outputs(model, y))))
    for x, own in zip(X, batch_diverse_predictions(model, w, X, 3, diversity=0.7), strict=True):
        single = diverse_predictions(model, w, x, 3, diversity=0.7)
        assert all(np.array_equal(a, b) for a, b in zip(own, single, strict=True))


def test_diverse_predictions_of_a_user_defined_model():
    X, y = load_iris(return_X_y=True)
    learner = FrankWolfeSSVM(OwnClasses(), C=0.1, tol=0.1).fit(X, y)
    found = np.array(batch_diverse_predictions(learner.model_, learner.w, X[:5], 3, 1e6))
    assert_array_equal(np.sort(found, axis=1), np.tile(np.arange(3), (5, 1)))


def test_members_that_predict_in_sequence_are_rewarded_for_differing():
    model, X, Y = draw_chains()
    ensemble = PerturbedSSVM(model, 3, spread=0.7, C=0.5).fit(X, Y)
    model, w = ensemble.model_, ensemble.W
    for x, found in zip(X, ensemble.predict_all(X, diversity=0.4), strict=True):
        for m, own in enumerate(found):

            def value(other, x=x, m=m, earlier=found[:m]):
                apart = sum(np.sum(other != before) for before in earlier)
                return w[m] @ model.joint_feature(x, other) + 0.4 * apart

            assert_allclose(value(own), max(map(value, all_outputs(model, own))))
    losses = ensemble.member_losses(X, Y, diversity=0.4).min(axis=0).sum()
    share = 1.0 - losses / sum(map(len, Y))
    assert_allclose(ensemble.pick_best_score(X, Y, diversity=0.4), share)
    with pytest.raises(ValueError, match="diversity must be at least 0 and finite, got -1"):
        ensemble.predict_all(X, diversity=-1)


def test_one_ssvm_in_sequence_is_the_same_as_equal_members_in_sequence():
    model, X, Y = draw_chains()
    ensemble = PerturbedSSVM(model, 3, spread=0.0, C=0.5).fit(X, Y)
    single = batch_diverse_predictions(ensemble.model_, ensemble.w, X, 3, diversity=0.4)
    for own, other in zip(ensemble.predict_all(X, diversity=0.4), single, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(own, other, strict=True))


def test_diverse_predictions_reject_invalid_arguments():
    model = MultiClassClf(n_features=1, n_classes=2)
    with pytest.raises(ValueError, match="M must be at least 1, got 0"):
        diverse_predictions(model, np.zeros(2), [1.0], 0)
    with pytest.raises(ValueError, match="diversity must be at least 0 and finite, got -1"):
        diverse_predictions(model, np.zeros(2), [1.0], 2, diversity=-1)
