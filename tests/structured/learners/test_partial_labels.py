"""Outputs with unknown labels: the objective by brute force, and labels that are found again."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.structured.cases import MODELS, samples

from widemargin.structured import (
    BinaryClf,
    ChainCRF,
    FrankWolfeSSVM,
    GraphCRF,
    LatentSSVM,
    MultiLabelClf,
    NSlackSSVM,
    OneSlackSSVM,
)
from widemargin.structured.models.partial import complete_output, known_labels


def hide(Y, share=0.4, seed=0):
    rng = np.random.default_rng(seed)
    hidden = [np.where(rng.random(np.shape(y)) < share, -1, y) for y in Y]
    hidden[0].ravel()[0] = np.ravel(Y[0])[0]
    return hidden


def objective(learner, X, Y, C):
    """The objective of the docstring, with all outputs of all samples enumerated."""
    model, w = learner.model_, learner.w
    total = 0.5 * w @ w
    for x, y in zip(X, Y, strict=True):
        known, flat = known_labels(y), np.ravel(y)
        outputs = [np.array(own) for own in product(range(model.n_states), repeat=len(flat))]
        scores = np.array([w @ model.joint_feature(x, own) for own in outputs])
        losses = np.array([np.sum((own != flat)[known]) for own in outputs])
        right = losses == 0
        total += C * (np.max(scores + losses) - np.max(scores[right]))
    return total


@pytest.mark.parametrize("kind", ["chain", "graph"])
@pytest.mark.parametrize("base", [FrankWolfeSSVM, OneSlackSSVM, NSlackSSVM])
def test_the_objective_is_that_of_brute_force_and_decreases(kind, base):
    X, Y = samples(MODELS[kind][1])
    Y = hide(Y)
    model = {"chain": ChainCRF, "graph": GraphCRF}[kind]
    learner = LatentSSVM(base(model(), C=0.5, tol=1e-3, max_iter=5000)).fit(X, Y)
    assert learner.objective_ == pytest.approx(objective(learner, X, Y, 0.5), rel=1e-9)
    assert (np.diff(learner.objective_curve_) < 0.0).all()
    for h, y in zip(learner.H_, Y, strict=True):
        known = known_labels(y)
        assert_array_equal(np.ravel(h)[known], np.ravel(y)[known])


def test_known_labels_give_the_plain_problem():
    X, Y = samples(MODELS["chain"][1])
    partial = LatentSSVM(OneSlackSSVM(ChainCRF(), C=0.5, tol=1e-6)).fit(X, Y)
    plain = OneSlackSSVM(ChainCRF(), C=0.5, tol=1e-6).fit(X, Y)
    assert partial.objective_ == pytest.approx(plain.objective_, rel=1e-5)
    assert partial.n_iter_ == 1
    assert partial.score(X, Y) == pytest.approx(plain.score(X, Y))


def test_a_completed_output_has_the_highest_score_of_its_labels():
    X, Y = samples(MODELS["chain"][1])
    model, rng = ChainCRF(), np.random.default_rng(0)
    model.initialize(X, Y)
    w = rng.normal(size=model.size_joint_feature)
    for x, y in zip(X, hide(Y), strict=True):
        found = complete_output(model, x, y, w)
        outputs = [np.array(own) for own in product(range(model.n_states), repeat=len(y))]
        fitting = [own for own in outputs if (own == y)[y >= 0].all()]
        best = max(w @ model.joint_feature(x, own) for own in fitting)
        assert w @ model.joint_feature(x, found) == pytest.approx(best)


def test_neighbors_label_nodes_that_features_do_not():
    # Two labels that stay: a node without label and features follows its neighbors.
    rng = np.random.default_rng(0)
    truth = [np.repeat(rng.permutation(["a", "b"]), 6) for _ in range(30)]
    X = [np.column_stack([y == "a", y == "b"]) + rng.normal(size=(12, 2)) for y in truth]
    Y = [np.where(rng.random(12) < 0.6, None, y) for y in truth]
    learner = LatentSSVM(FrankWolfeSSVM(ChainCRF(), C=1.0, tol=0.01)).fit(X, Y)
    assert learner.predict(X)[0].dtype.kind == "U"
    right = np.mean([np.asarray(h) == y for h, y in zip(learner.H_, truth, strict=True)])
    assert right > 0.9
    assert 0.8 < learner.score(X, Y) <= 1.0  # of known labels


def test_labels_of_a_sample_may_be_unknown():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    truth = (X @ rng.normal(size=(3, 2)) > 0).astype(int)
    Y = np.where(rng.random(truth.shape) < 0.3, -1, truth)
    learner = LatentSSVM(FrankWolfeSSVM(MultiLabelClf(edges="full"), C=1.0, tol=0.05)).fit(X, Y)
    assert np.mean(np.array(learner.predict(X)) == truth) > 0.9


def test_outputs_to_start_from_are_checked_and_used():
    X, Y = samples(MODELS["chain"][1])
    hidden = hide(Y)
    learner = LatentSSVM(OneSlackSSVM(ChainCRF(), C=0.5, tol=0.01))
    assert_array_equal(np.asarray(learner.fit(X, hidden, H_init=Y).H_init_[1]), Y[1])
    with pytest.raises(ValueError, match=r"H_init\[0\] must have the known labels of Y\[0\]"):
        learner.fit(X, hidden, H_init=[1 - np.minimum(Y[0], 1), *Y[1:]])


def test_what_cannot_be_trained_is_refused():
    X, Y = samples(MODELS["chain"][1])
    hidden = hide(Y)
    with pytest.raises(ValueError, match="LatentSSVM trains with unknown labels"):
        FrankWolfeSSVM(ChainCRF()).fit(X, hidden)
    with pytest.raises(ValueError, match="must contain known labels"):
        LatentSSVM(FrankWolfeSSVM(ChainCRF())).fit(X, [np.full(len(y), -1) for y in Y])
    with pytest.raises(ValueError, match="'balanced' is not defined"):
        LatentSSVM(FrankWolfeSSVM(ChainCRF(class_weight="balanced"))).fit(X, hidden)
    with pytest.raises(TypeError, match="BinaryClf cannot be trained with unknown labels"):
        LatentSSVM(FrankWolfeSSVM(BinaryClf())).fit(np.eye(2), [1, -1])
