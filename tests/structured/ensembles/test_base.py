"""Every ensemble: all models, one sample, reproducible results, checks and warnings."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.estimator_checks import check_param_validation
from tests.structured.cases import MODELS, samples
from tests.structured.ensembles.cases import (
    ENSEMBLES,
    Stop,
    draw_chains,
    draw_samples,
    make_ensemble,
)
from tests.structured.models.test_models import OwnClasses

from widemargin.structured import (
    CoulombSSVM,
    MultiClassClf,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# All models with the three kinds of calls of an oracle: for sums, for single samples, with rewards.
# The others make the same calls: for them one model of each shape of output is enough.
PAIRS = [
    (kind, name)
    for kind in ENSEMBLES
    for name in MODELS
    if kind in ("all", "anchored", "diverse choice")
    or name in ("classes", "two classes", "all pairs of labels", "weighted chain", "grid")
]


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_every_ensemble_works_with_every_model(kind, name):
    model, X, Y = draw_samples(name, 4)
    ensemble = make_ensemble(kind, model).fit(X, Y)
    assert ensemble.W.shape == (3, ensemble.model_.size_joint_feature)
    assert np.isfinite(ensemble.W).all()
    proposals = ensemble.predict_all(X)
    for w, m in zip(ensemble.W, range(3), strict=True):
        for x, own in zip(X, proposals, strict=True):
            assert_array_equal(own[m], ensemble.model_.inference(x, w))
    for y, found in zip(Y, ensemble.predict(X), strict=True):
        assert np.shape(found) == np.shape(y)


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_one_training_example_is_enough(kind, name):
    model, draw_one = MODELS[name]
    X, Y = samples(draw_one, 1, seed=3)
    names = model.get_params().keys() & {"n_classes", "n_states"}
    ensemble = make_ensemble(kind, clone(model).set_params(**dict.fromkeys(names, 3))).fit(X, Y)
    assert np.isfinite(ensemble.W).all()
    assert 0.0 <= ensemble.pick_best_score(X, Y) <= 1.0


def test_a_user_defined_model_works(kind):
    X, y = load_iris(return_X_y=True)
    ensemble = make_ensemble(kind, OwnClasses()).fit(X[::10], y[::10])
    assert np.isfinite(ensemble.W).all()
    proposals = np.array(ensemble.predict_all(X))
    for own, w in zip(proposals.T, ensemble.W, strict=True):
        assert_array_equal(own, ensemble.model_.batch_inference(X, w))
    most = [np.bincount(own).max() for own in proposals]
    agreeing = np.sum(proposals == np.array(ensemble.predict(X))[:, np.newaxis], axis=1)
    assert_array_equal(agreeing, most)


def test_seeds_repeat_and_matter(kind):
    model, X, Y = draw_chains()
    first, again, other = (
        make_ensemble(kind, model, random_state=s).fit(X, Y).W for s in (1, 1, 2)
    )
    assert_array_equal(first, again)
    assert (first != other).any()


def test_weights_of_samples_are_costs(kind):
    if kind in ("best", "sampled", "stochastic"):
        pytest.skip("a sample of weight 2 is drawn once, two copies by themselves")
    model, X, Y = draw_chains()
    heavy = make_ensemble(kind, model, C=1.0).fit(X, Y, sample_weight=np.full(len(Y), 0.5))
    assert_array_equal(heavy.W, make_ensemble(kind, model, C=0.5).fit(X, Y).W)


def test_an_ensemble_survives_copies_and_pickles(kind):
    model, X, Y = draw_chains()
    ensemble = make_ensemble(kind, model).fit(X, Y)
    again = pickle.loads(pickle.dumps(ensemble))
    for a, b in zip(again.predict(X), ensemble.predict(X), strict=True):
        assert_array_equal(a, b)
    assert not hasattr(clone(ensemble), "W")


def test_parameters_are_checked(kind):
    check_param_validation(type(ENSEMBLES[kind]).__name__, make_ensemble(kind, MultiClassClf()))


def test_nothing_is_predicted_before_a_fit(kind):
    with pytest.raises(NotFittedError):
        make_ensemble(kind, MultiClassClf()).predict_all([[1.0]])


def test_inputs_and_outputs_must_be_equally_many(kind):
    model, X, Y = draw_chains()
    with pytest.raises(ValueError, match="X and Y must have equal lengths"):
        make_ensemble(kind, model).fit(X, Y[:-1])


@pytest.mark.parametrize("ask", ["score", "member_losses", "pick_best_score"])
def test_inputs_and_outputs_to_be_scored_must_be_equally_many(ask):
    model, X, Y = draw_chains()
    ensemble = make_ensemble("perturbed", model).fit(X, Y)
    for inputs, outputs in ((X, Y[:-1]), (X[:-1], Y)):
        with pytest.raises(ValueError, match="X and Y must have equal lengths"):
            getattr(ensemble, ask)(inputs, outputs)


def test_inputs_are_prepared_once_for_all_members(monkeypatch):
    model, X, Y = draw_chains()
    ensemble = make_ensemble("perturbed", model, spread=2.0, n_jobs=2).fit(X, Y)
    ready, made = type(model).oracle, []
    monkeypatch.setattr(
        type(model), "oracle", lambda *given: made.append(ready(*given)) or made[-1]
    )
    proposals = ensemble.predict_all(X)
    assert len(made) == 1
    energy = -sum(
        w @ ensemble.model_.joint_feature(x, y)
        for x, own in zip(X, proposals, strict=True)
        for w, y in zip(ensemble.W, own, strict=True)
    )
    found = ensemble.model_.last_inference_
    assert found.method == "max-product"
    assert found.exact
    assert_allclose([found.energy, found.bound], energy)


def test_callbacks_stop_the_single_ssvm(kind):
    if "choice" in kind:
        pytest.skip("it has none")
    model, X, Y = draw_chains()
    stop = Stop(after=1)
    ensemble = make_ensemble(kind, model, tol=1e-12, max_iter=100_000).set_callbacks(stop)
    with pytest.warns(ConvergenceWarning, match="The single structured SVM did not"):
        ensemble.fit(X, Y)
    assert ensemble.dual_gap_ > 1e-12
    assert ensemble.n_iter_ <= (10 if kind == "perturbed" else 1)


def test_picking_the_best_is_never_worse_than_any_member(kind):
    model, X, Y = draw_chains()
    ensemble = make_ensemble(kind, model).fit(X, Y)
    losses = ensemble.member_losses(X, Y)
    most = sum(map(len, Y))
    assert_allclose(ensemble.pick_best_score(X, Y), 1.0 - losses.min(axis=0).sum() / most)
    assert ensemble.pick_best_score(X, Y) >= 1.0 - losses.sum(axis=1).min() / most


def test_a_single_ssvm_that_stops_early_warns():
    model, X, Y = draw_chains()
    with pytest.warns(ConvergenceWarning, match="The single structured SVM did not"):
        CoulombSSVM(model, 2, max_iter=1, tol=1e-6, n_steps=1).fit(X, Y)


@pytest.mark.parametrize("kind", ["anchored", "multiple choice", "diverse choice"])
def test_members_that_stop_early_warn_once(kind):
    model, X, Y = draw_chains()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make_ensemble(kind, model, tol=1e-9, max_iter=3).fit(X, Y)
        make_ensemble(kind, model, tol=0.5, max_iter=1000).fit(X, Y)
    messages = [str(warning.message) for warning in caught if "members" in str(warning.message)]
    assert len(messages) == 1
    assert messages[0].startswith(
        "3 of 3 members did not reach a relative duality gap of tol=1e-09"
    )
    assert "within 3 passes" in messages[0]


def test_a_verbose_fit_prints_its_progress(capsys, kind):
    model, X, Y = draw_chains()
    make_ensemble(kind, model, verbose=True).fit(X, Y)
    assert f"[{type(ENSEMBLES[kind]).__name__}]" in capsys.readouterr().out
