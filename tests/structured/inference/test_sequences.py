"""Marginals, n best labelings and forbidden transitions, by brute force."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from tests.solvers.structured.test_frank_wolfe import FORESTS
from tests.structured.cases import MODELS, all_outputs, chain_sample, exact_objective, samples
from tests.structured.learners.cases import LEARNERS, new

from widemargin.structured import (
    ChainCRF,
    CoulombSSVM,
    FrankWolfeSSVM,
    GridCRF,
    StructuredPerceptron,
)

ALLOWED = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)
STARTS = np.array([True, False, True])


def is_allowed(y):
    return STARTS[y[0]] and ALLOWED[y[:-1], y[1:]].all()


def allowed_samples(n=8, seed=0):
    rng = np.random.default_rng(seed)
    pairs = []
    while len(pairs) < n:
        x, y = chain_sample(rng)
        if is_allowed(y):
            pairs.append((x, y))
    return [x for x, _ in pairs], [y for _, y in pairs]


def masked(**parameters):
    return ChainCRF(transitions=ALLOWED, start_states=STARTS, n_states=3, **parameters)


def exact_masked_objective(model, X, Y, C, monkeypatch):
    everything = all_outputs

    def only_allowed(model, y):
        return [own for own in everything(model, y) if is_allowed(own)]

    monkeypatch.setattr("tests.structured.cases.all_outputs", only_allowed)
    return exact_objective(model, X, Y, C)


def weights(model, seed=0):
    return np.random.default_rng(seed).normal(size=model.size_joint_feature)


def scored(model, x, w, outputs):
    return np.array([w @ model.joint_feature(x, y) for y in outputs])


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("name", FORESTS)
def test_marginals_are_sums_over_all_outputs(name, temperature):
    model, draw_one = FORESTS[name]
    model = clone(model)
    X, Y = samples(draw_one)
    model.initialize(X, Y)
    w = weights(model)
    found = model.batch_marginals(X, w, temperature)
    for x, y, own in zip(X, Y, found, strict=True):
        states = np.array([model.states(output) for output in every_output(model, y)])
        scores = scored(model, x, w, every_output(model, y)) / temperature
        share = np.exp(scores - scores.max())
        share /= share.sum()
        expected = [
            [share[states[:, v] == s].sum() for s in range(own.shape[1])] for v in range(len(own))
        ]
        assert_allclose(own, expected, atol=1e-12)


def every_output(model, y):
    if np.ndim(y) == 0:
        return all_outputs(model, y)
    return [np.array(own) for own in product(range(model.n_states), repeat=len(y))]


@pytest.mark.parametrize("model", [ChainCRF(n_states=3), masked()], ids=["free", "masked"])
def test_n_best_outputs_are_those_of_enumeration(model):
    X, Y = allowed_samples()
    model = clone(model)
    model.initialize(X, Y)
    w = weights(model)
    for x, y in zip(X, Y, strict=True):
        outputs = every_output(model, y)
        if model.transitions is not None:
            outputs = [own for own in outputs if is_allowed(own)]
        scores = np.sort(scored(model, x, w, outputs))[::-1]
        found, best = model.n_best(x, w, 7)
        assert len(found) == min(7, len(outputs))
        assert_allclose(best, scores[:7])
        assert_allclose(scored(model, x, w, found), best)
        assert len({tuple(own) for own in found}) == len(found)
        assert_array_equal(found[0], model.inference(x, w))


def test_masked_inference_and_marginals_are_those_of_allowed_outputs():
    X, Y = allowed_samples()
    model = masked()
    model.initialize(X, Y)
    w = weights(model)
    batch, marginals = model.batch_inference(X, w), model.batch_marginals(X, w)
    for x, y, labels, own in zip(X, Y, batch, marginals, strict=True):
        outputs = [output for output in every_output(model, y) if is_allowed(output)]
        scores = scored(model, x, w, outputs)
        assert_array_equal(labels, outputs[scores.argmax()])
        assert_array_equal(model.inference(x, w), labels)
        augmented = scores + [model.loss(y, output) for output in outputs]
        worst = model.loss_augmented_inference(x, y, w)
        reached = w @ model.joint_feature(x, worst) + model.loss(y, worst)
        assert reached == pytest.approx(augmented.max())
        share = np.exp(scores - scores.max())
        first = [share[[o[0] == s for o in outputs]].sum() / share.sum() for s in range(3)]
        assert_allclose(own[0], first, atol=1e-12)
        assert_allclose(own.sum(axis=1), 1.0)


@pytest.mark.parametrize("learner", LEARNERS)
def test_masked_learners_reach_the_optimum_over_allowed_outputs(learner, monkeypatch):
    X, Y = allowed_samples(6)
    fitted = new(learner, masked(), C=0.3).fit(X, Y)
    best = exact_masked_objective(fitted.model_, X, Y, 0.3, monkeypatch)
    assert fitted.dual_gap_ <= fitted.tol
    assert best - 1e-6 <= fitted.objective_ <= best / (1.0 - fitted.dual_gap_) + 1e-6
    assert all(is_allowed(y) for y in fitted.predict(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_masks_hold_for_the_perceptron_and_for_ensembles():
    X, Y = allowed_samples(20)
    perceptron = StructuredPerceptron(masked(), max_iter=5).fit(X, Y)
    assert all(is_allowed(y) for y in perceptron.predict(X))
    ensemble = CoulombSSVM(masked(), 3, C=0.5, n_steps=5, tol=0.1).fit(X, Y)
    assert all(is_allowed(y) for outputs in ensemble.predict_all(X) for y in outputs)


BIO = ["B-X", "B-Y", "I-X", "I-Y", "O"]


def test_bio_labels_follow_their_rule():
    rng = np.random.default_rng(0)
    Y = [["O", "B-X", "I-X", "B-Y"], ["B-Y", "I-Y", "I-Y", "O"]] * 5
    X = [rng.normal(size=(4, 3)) for _ in Y]
    learner = FrankWolfeSSVM(ChainCRF(transitions="bio"), C=0.01, tol=0.1).fit(X, Y)
    assert learner.model_.state_labels().tolist() == BIO
    outputs = learner.predict([rng.normal(size=(30, 3)) for _ in range(20)])
    assert len({label for y in outputs for label in y}) == 5
    for y in outputs:
        for last, label in zip(["O", *y], y, strict=False):
            assert not label.startswith("I-") or last[2:] == label[2:]
    plain = FrankWolfeSSVM(ChainCRF(), C=0.01, tol=0.1).fit(X, Y)
    marginals, free = learner.predict_marginals(X), plain.predict_marginals(X, temperature=2.0)
    assert_array_equal(marginals[0][0, [2, 3]], 0.0)
    assert (free[0][0, [2, 3]] > 0.0).all()
    (found, scores), *_ = learner.predict_n_best(X[:1], 3)
    assert_array_equal(found[0], learner.predict(X[:1])[0])
    assert (np.diff(scores) <= 0.0).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"transitions": "iob"}, "transitions must be an array of bool, or 'bio'"),
        ({"transitions": "bio"}, "'bio' for outputs of strings"),
        ({"transitions": np.ones((2, 3))}, r"transitions must be an array of bool of shape \(3, 3"),
        ({"start_states": [True]}, r"start_states must be an array of bool of shape \(3,"),
        ({"transitions": np.zeros((3, 3), bool)}, "allow sequences of any length"),
        ({"start_states": [0, 0, 1]}, r"Y\[\d+\] has label '\d' after 'the start'"),
        ({"transitions": np.eye(3, dtype=bool)}, r"Y\[\d+\] has label '\d' after '\d'"),
        (
            {"transitions": ALLOWED, "inference_method": "trws"},
            "inference_method must be 'auto' or 'max-product' with transitions",
        ),
    ],
)
def test_masks_that_make_no_sense_are_refused(parameters, message):
    X, Y = samples(MODELS["chain"][1])
    with pytest.raises(ValueError, match=message):
        FrankWolfeSSVM(ChainCRF(**parameters)).fit(X, Y)


def test_what_needs_a_chain_says_so():
    X, Y = samples(MODELS["grid"][1])
    learner = FrankWolfeSSVM(GridCRF(), C=0.1, tol=0.5).fit(X, Y)
    with pytest.raises(ValueError, match="graphs have no cycles"):
        learner.predict_marginals(X)
    with pytest.raises(TypeError, match="GridCRF has no method n_best"):
        learner.predict_n_best(X)
    chain = FrankWolfeSSVM(ChainCRF(), tol=0.5).fit(*samples(MODELS["chain"][1]))
    with pytest.raises(ValueError, match="temperature must be positive"):
        chain.predict_marginals([np.ones((2, 4))], temperature=0.0)
    with pytest.raises(ValueError, match="n_best must be at least 1"):
        chain.predict_n_best([np.ones((2, 4))], 0)
    assert chain.predict_marginals([]) == chain.predict_n_best([]) == []


@pytest.mark.parametrize("n_best", [2.5, "3", None])
def test_the_number_of_best_outputs_is_an_integer(n_best):
    chain = FrankWolfeSSVM(ChainCRF(), tol=0.5).fit(*samples(MODELS["chain"][1]))
    with pytest.raises(ValueError, match="n_best must be at least 1 and an integer"):
        chain.predict_n_best([np.ones((2, 4))], n_best)


def test_no_more_outputs_are_listed_than_there_are():
    chain = FrankWolfeSSVM(ChainCRF(), tol=0.5).fit(*samples(MODELS["chain"][1]))
    outputs, scores = chain.predict_n_best([np.ones((2, 4))], 10**12)[0]
    assert len({tuple(y) for y in outputs}) == len(scores) == 9


def test_inputs_without_nodes_have_no_labels_under_masks():
    model = ChainCRF(n_states=3, n_features=4, transitions=ALLOWED, start_states=[1, 0, 1])
    w, empty = np.arange(model.size_joint_feature, dtype=float), np.empty((0, 4))
    assert len(model.inference(empty, w)) == len(model.batch_inference([empty], w)[0]) == 0
    assert model.batch_marginals([empty], w)[0].shape == (0, 3)
    both = model.batch_marginals([empty, np.ones((2, 4))], w)
    assert_array_equal(both[1], model.batch_marginals([np.ones((2, 4))], w)[0])
