"""StructuredPerceptron: its steps, its average, and what it shares with other learners."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from tests.solvers.structured.test_frank_wolfe import FORESTS
from tests.structured.cases import MODELS, samples
from tests.structured.models.test_models import OwnClasses

from widemargin._base.options import oracle_options
from widemargin.structured import ChainCRF, GridCRF, MultiClassClf, StructuredPerceptron


def simulate(model, X, Y, order_of_passes, weight, rate):
    """Weights after every step, by the methods of the model."""
    w, found = np.zeros(model.size_joint_feature), []
    for number, order in enumerate(order_of_passes):
        for i in order:
            y = model.inference(X[i], w)
            if model.loss(Y[i], y) > 0:
                change = model.joint_feature(X[i], Y[i]) - model.joint_feature(X[i], y)
                w = w + rate(number) * weight[i] * change
            found.append(w)
    return found


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("name", [*FORESTS, "graph", "directional grid"])
def test_weights_are_those_of_the_steps_one_by_one(name, average, monkeypatch):
    model, draw_one = copy.deepcopy({**MODELS, **FORESTS}[name])
    X, Y = samples(draw_one, n=8)
    weight = np.array([1.0, 2.0, 0.5, 1.0, 1.0, 3.0, 1.0, 1.0])
    monkeypatch.setattr(oracle_options, "pass_operations", 300)
    monkeypatch.setattr(oracle_options, "calls_per_vector", 0)
    learner = StructuredPerceptron(
        model, max_iter=3, shuffle=False, average=average, decay_exponent=-0.5, decay_t0=4
    ).fit(X, Y, sample_weight=weight)
    orders = [range(8)] * learner.n_iter_
    found = simulate(learner.model_, X, Y, orders, weight, lambda t: (4 + t) ** -0.5)
    expected = np.mean(found, axis=0) if average else found[-1]
    assert_allclose(learner.w, expected, rtol=1e-9, atol=1e-12)


def test_a_batch_is_one_step_for_all_samples():
    X, Y = samples(MODELS["chain"][1])
    learner = StructuredPerceptron(ChainCRF(), max_iter=1, batch=True, average=False).fit(X, Y)
    model, w = learner.model_, np.zeros(len(learner.w))
    total = sum(
        model.joint_feature(x, y) - model.joint_feature(x, model.inference(x, w))
        for x, y in zip(X, Y, strict=True)
    )
    assert_allclose(learner.w, total, atol=1e-12)


def test_samples_that_can_be_separated_end_in_a_pass_without_mistakes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    scores = X @ rng.normal(size=(3, 3))
    clear = np.diff(np.sort(scores, axis=1)[:, -2:]).ravel() > 0.5
    X, y = X[clear], scores[clear].argmax(axis=1)
    learner = StructuredPerceptron(MultiClassClf(), average=False).fit(X, y)
    assert learner.loss_curve_[-1] == 0.0
    assert learner.n_iter_ < 100
    assert learner.score(X, y) == 1.0


def test_models_of_users_are_trained_by_their_methods():
    X, Y = samples(MODELS["classes"][1], n=20)
    own, ours = (
        StructuredPerceptron(model, max_iter=4, average=True, shuffle=True).fit(X, Y)
        for model in (OwnClasses(), MultiClassClf())
    )
    assert_allclose(own.w, ours.w, atol=1e-10)


def test_samples_of_weight_zero_do_not_count():
    X, Y = samples(MODELS["chain"][1], n=6)
    weight = [1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    options = {"max_iter": 4, "average": True}
    learner = StructuredPerceptron(ChainCRF(n_states=3), **options).fit(X, Y, weight)
    rest = [0, 1, 3, 5]
    again = StructuredPerceptron(ChainCRF(n_states=3), **options)
    again.fit([X[i] for i in rest], [Y[i] for i in rest])
    assert_array_equal(learner.w, again.w)
    assert_array_equal(learner.loss_curve_, again.loss_curve_)


def test_sparse_features_give_the_weights_of_dense_ones():
    X, Y = samples(MODELS["chain"][1])
    dense, sparse = (
        StructuredPerceptron(ChainCRF(), max_iter=5, average=True, shuffle=True).fit(inputs, Y)
        for inputs in (X, [sp.csr_array(x) for x in X])
    )
    assert_array_equal(dense.w, sparse.w)


def test_a_resumed_fit_is_one_that_was_never_interrupted(tmp_path):
    X, Y = samples(MODELS["grid"][1])
    file = tmp_path / "state"
    options = {"average": True, "shuffle": True}
    whole = StructuredPerceptron(GridCRF(), max_iter=6, **options).fit(X, Y)
    options["checkpoint"] = file
    StructuredPerceptron(GridCRF(), max_iter=3, **options).fit(X, Y)
    resumed = StructuredPerceptron(GridCRF(), max_iter=6, **options).fit(X, Y)
    assert_array_equal(resumed.w, whole.w)
    assert resumed.n_iter_ == 6
    assert_array_equal(resumed.loss_curve_, whole.loss_curve_)


def test_it_has_no_objective_and_says_so(capsys):
    X, Y = samples(MODELS["chain"][1])
    learner = StructuredPerceptron(ChainCRF(), max_iter=2, verbose=True).fit(X, Y)
    assert not hasattr(learner, "objective_")
    assert not hasattr(learner, "objective_curve_")
    assert "pass 2, loss" in capsys.readouterr().out
    with pytest.raises(ValueError, match="Invalid parameter 'C'"):
        learner.set_params(C=1.0)


@pytest.mark.parametrize("kind", ["chain", "grid"])
def test_averages_begin_with_a_pass(kind):
    X, Y = samples(MODELS[kind][1])
    make = {"chain": ChainCRF, "grid": GridCRF}[kind]

    def fit(average, max_iter=4):
        return StructuredPerceptron(make(), max_iter=max_iter, average=average).fit(X, Y)

    whole, late = fit(True), fit(2)
    assert whole.n_iter_ == 4  # the samples are not separable in so few passes
    assert_array_equal(fit(0).w, whole.w)
    # The sum over all passes is that over the first two, plus that over the others.
    assert_allclose(4 * whole.w, 2 * fit(True, max_iter=2).w + 2 * late.w, atol=1e-12)
    assert_array_equal(fit(-1).w, fit(3).w)
    assert_array_equal(fit(7).w, whole.w)  # there is no such pass
    with pytest.raises(ValueError, match="average"):
        fit(-2)
