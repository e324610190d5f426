"""Ensembles: every model, one example, repeatable; what is done with proposals."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_param_validation
from tests.structured.cases import MODELS, all_outputs, exact_objective, samples
from tests.structured.models.test_models import OwnClasses

from widemargin.solvers.structured.coulomb import coulomb_forces
from widemargin.structured import (
    ChainCRF,
    CoulombSSVM,
    DiverseMultipleChoiceSSVM,
    FrankWolfeSSVM,
    GridCRF,
    MultiClassClf,
    MultipleChoiceSSVM,
    PerturbedSSVM,
    batch_diverse_predictions,
    diverse_predictions,
)
from widemargin.structured.ensembles.coulomb import _by_loss
from widemargin.structured.ensembles.voting import consensus, disagreement
from widemargin.structured.oracles import PlainOracle

FEW = {"C": 0.5, "tol": 0.1, "random_state": 0}
ENSEMBLES = {
    "all": CoulombSSVM(None, 3, n_steps=6, **FEW),
    "best": CoulombSSVM(None, 3, assignment="best", n_steps=6, **FEW),
    "sampled": CoulombSSVM(None, 3, assignment="sampled", n_steps=6, **FEW),
    "stochastic": CoulombSSVM(None, 3, assignment="stochastic", n_steps=6, **FEW),
    "anchored": CoulombSSVM(None, 3, solver="anchored", n_steps=2, **FEW),
    "multiple choice": MultipleChoiceSSVM(None, 3, n_rounds=2, **FEW),
    "diverse choice": DiverseMultipleChoiceSSVM(None, 3, n_rounds=2, **FEW),
    "perturbed": PerturbedSSVM(None, 3, **FEW),
}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=ENSEMBLES, ids=str)
def kind(request):
    return request.param


def new(kind, model, **parameters):
    return clone(ENSEMBLES[kind].set_params(model=clone(model))).set_params(**parameters)


def drawn(name, n=6, seed=0):
    model, draw_one = MODELS[name]
    return clone(model), *samples(draw_one, n, seed)


def words(n=12):
    return drawn("chain", n)


# All models with the three ways that ask an oracle: for sums, for single samples, for paid ones.
# Others ask in the same words: for them one model of each shape of output will do.
PAIRS = [
    (kind, name)
    for kind in ENSEMBLES
    for name in MODELS
    if kind in ("all", "anchored", "diverse choice")
    or name in ("classes", "two classes", "all pairs of labels", "weighted chain", "grid")
]


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_every_ensemble_works_with_every_model(kind, name):
    model, X, Y = drawn(name, 4)
    ensemble = new(kind, model).fit(X, Y)
    assert ensemble.W.shape == (3, ensemble.model_.size_joint_feature)
    assert np.isfinite(ensemble.W).all()
    proposals = ensemble.predict_all(X)
    for w, m in zip(ensemble.W, range(3), strict=True):
        for x, own in zip(X, proposals, strict=True):
            assert_array_equal(own[m], ensemble.model_.inference(x, w))
    for y, found in zip(Y, ensemble.predict(X), strict=True):
        assert np.shape(found) == np.shape(y)


@pytest.mark.parametrize("solver", ["subgradient", "anchored"])
def test_the_single_machine_can_stay_the_first_member(solver):
    model, X, Y = words()
    ensemble = CoulombSSVM(model, 3, solver=solver, C=0.5, n_steps=5, keep_single=True).fit(X, Y)
    assert_array_equal(ensemble.W[0], ensemble.w)
    assert (np.linalg.norm(ensemble.W[1:] - ensemble.w, axis=1) > 0.1).all()
    single = FrankWolfeSSVM(clone(model), C=0.5, tol=0.01).fit(X, Y)
    assert ensemble.pick_best_score(X, Y) >= single.score(X, Y) - 0.02


def test_perturbations_of_outputs_change_outputs_and_nothing_else():
    X, y = load_iris(return_X_y=True)
    ensemble = PerturbedSSVM(MultiClassClf(), 3, directions="outputs", C=0.1).fit(X, y)
    scale = np.abs(ensemble.W).max()
    assert_allclose(ensemble.W.reshape(3, 3, -1).sum(axis=1) / scale, 0.0, atol=1e-9)
    assert_allclose(np.linalg.norm(ensemble.W, axis=1), np.linalg.norm(ensemble.w))


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_one_training_example_is_enough(kind, name):
    model, draw_one = MODELS[name]
    X, Y = samples(draw_one, 1, seed=3)
    names = model.get_params().keys() & {"n_classes", "n_states"}
    ensemble = new(kind, clone(model).set_params(**dict.fromkeys(names, 3))).fit(X, Y)
    assert np.isfinite(ensemble.W).all()
    assert 0.0 <= ensemble.pick_best_score(X, Y) <= 1.0


def test_a_model_of_the_users_works(kind):
    X, y = load_iris(return_X_y=True)
    ensemble = new(kind, OwnClasses()).fit(X[::10], y[::10])
    assert np.isfinite(ensemble.W).all()
    proposals = np.array(ensemble.predict_all(X))
    for own, w in zip(proposals.T, ensemble.W, strict=True):
        assert_array_equal(own, ensemble.model_.batch_inference(X, w))
    most = [np.bincount(own).max() for own in proposals]
    agreeing = np.sum(proposals == np.array(ensemble.predict(X))[:, np.newaxis], axis=1)
    assert_array_equal(agreeing, most)


def test_seeds_repeat_and_matter(kind):
    model, X, Y = words()
    first, again, other = (new(kind, model, random_state=s).fit(X, Y).W for s in (1, 1, 2))
    assert_array_equal(first, again)
    assert (first != other).any()


def test_weights_of_samples_are_costs(kind):
    if kind in ("best", "sampled", "stochastic"):
        pytest.skip("a sample of weight 2 is drawn once, two copies by themselves")
    model, X, Y = words()
    heavy = new(kind, model, C=1.0).fit(X, Y, sample_weight=np.full(len(Y), 0.5))
    assert_array_equal(heavy.W, new(kind, model, C=0.5).fit(X, Y).W)


def test_an_ensemble_survives_copies_and_pickles(kind):
    model, X, Y = words()
    ensemble = new(kind, model).fit(X, Y)
    again = pickle.loads(pickle.dumps(ensemble))
    for a, b in zip(again.predict(X), ensemble.predict(X), strict=True):
        assert_array_equal(a, b)
    assert not hasattr(clone(ensemble), "W")


def test_parameters_are_checked(kind):
    check_param_validation(type(ENSEMBLES[kind]).__name__, new(kind, MultiClassClf()))


def test_nothing_is_predicted_before_a_fit(kind):
    with pytest.raises(NotFittedError):
        new(kind, MultiClassClf()).predict_all([[1.0]])


def test_inputs_and_outputs_must_be_equally_many(kind):
    model, X, Y = words()
    with pytest.raises(ValueError, match="X and Y must have equal lengths"):
        new(kind, model).fit(X, Y[:-1])


@pytest.mark.parametrize("ask", ["score", "member_losses", "pick_best_score"])
def test_inputs_and_outputs_to_be_scored_must_be_equally_many(ask):
    model, X, Y = words()
    ensemble = new("perturbed", model).fit(X, Y)
    for inputs, outputs in ((X, Y[:-1]), (X[:-1], Y)):
        with pytest.raises(ValueError, match="X and Y must have equal lengths"):
            getattr(ensemble, ask)(inputs, outputs)


def test_proposals_are_made_from_inputs_that_are_made_ready_once(monkeypatch):
    model, X, Y = words()
    ensemble = new("perturbed", model, spread=2.0, n_jobs=2).fit(X, Y)
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
    told = ensemble.model_.last_inference_
    assert told.method == "max-product"
    assert told.exact
    assert_allclose([told.energy, told.bound], energy)


class Stop:
    """A callback that asks for an end after some slices of work."""

    def __init__(self, after):
        self.after, self.slices = after, 0

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.slices += context.task_name == "slice"
        return self.slices >= self.after

    def teardown(self, estimator, context):
        pass


def test_callbacks_stop_the_single_machine(kind):
    if "choice" in kind:
        pytest.skip("it has none")
    model, X, Y = words()
    stop = Stop(after=1)
    ensemble = new(kind, model, tol=1e-12, max_iter=100_000).set_callbacks(stop)
    with pytest.warns(ConvergenceWarning, match="The single machine stopped"):
        ensemble.fit(X, Y)
    assert ensemble.dual_gap_ > 1e-12
    assert ensemble.n_iter_ <= (10 if kind == "perturbed" else 1)


@pytest.mark.parametrize("kind", ["all", "stochastic", "anchored"])
def test_callbacks_stop_members_that_repel_each_other(kind):
    model, X, Y = words()
    # One slice is the single machine.
    ensemble = new(kind, model, tol=0.5, n_steps=1000).set_callbacks(Stop(after=4)).fit(X, Y)
    assert ensemble.n_iter_ == 3
    assert ensemble.history_["iteration"][-1] == 3


def test_callbacks_stop_rounds_of_multiple_choice():
    model, X, Y = words()
    for kind, rounds in (("multiple choice", 1), ("diverse choice", 2)):
        ensemble = new(kind, model, n_rounds=1000).set_callbacks(Stop(after=rounds)).fit(X, Y)
        assert ensemble.n_iter_ == len(ensemble.history_["objective"]) == rounds


@pytest.mark.parametrize("solver", ["subgradient", "anchored"])
@pytest.mark.parametrize("name", ["classes", "chain", "grid"])
def test_without_repulsion_every_member_is_the_single_machine(solver, name):
    model, X, Y = drawn(name)
    ensemble = CoulombSSVM(model, 3, alpha=0.0, solver=solver, C=0.5, tol=1e-3).fit(X, Y)
    single = FrankWolfeSSVM(clone(model), C=0.5, tol=1e-3).fit(X, Y)
    assert_array_equal(ensemble.W, np.tile(ensemble.w, (3, 1)))
    assert_allclose(ensemble.objective_, 3 * single.objective_, rtol=2e-3)
    assert_allclose(ensemble.w, single.w, atol=0.05 * np.linalg.norm(single.w))


def test_repulsion_is_as_strong_as_the_objective_of_the_single_machine_over_tens_of_weights():
    model, X, Y = words()
    ensemble = CoulombSSVM(model, 3, C=0.5, n_steps=5).fit(X, Y)
    own = 0.5 * ensemble.w @ ensemble.w
    own += 0.5 * np.sum(PlainOracle(ensemble.model_, X, Y).violations(ensemble.w).slacks)
    assert len(ensemble.w) > 10
    assert_allclose(ensemble.alpha_, own * 10 / len(ensemble.w))


def test_few_weights_are_repelled_by_the_whole_objective():
    ensemble = CoulombSSVM(MultiClassClf(), 3, n_steps=5).fit(np.eye(2), [0, 1])
    slacks = PlainOracle(ensemble.model_, np.eye(2), [0, 1]).violations(ensemble.w).slacks
    assert_allclose(ensemble.alpha_, 0.5 * ensemble.w @ ensemble.w + np.sum(slacks))


def test_members_differ_only_where_outputs_do():
    # A number added to the weights of all classes changes no output.
    X, y = load_iris(return_X_y=True)
    for solver in ("subgradient", "anchored"):
        ensemble = CoulombSSVM(MultiClassClf(), 4, solver=solver, C=0.1, n_steps=5)
        ensemble.fit(X[::5], y[::5])
        scale = np.abs(ensemble.W).max()
        assert_allclose(ensemble.W.reshape(4, 3, -1).sum(axis=1) / scale, 0.0, atol=1e-9)


def test_one_member_is_the_single_machine():
    model, X, Y = words()
    ensemble = CoulombSSVM(model, 1, alpha=5.0).fit(X, Y)
    assert_array_equal(ensemble.W[0], ensemble.w)


@pytest.mark.parametrize("kind", ["all", "best", "sampled", "stochastic", "anchored"])
def test_the_objective_is_energy_and_risk_of_what_is_returned(kind):
    model, X, Y = words()
    ensemble = new(kind, model, n_steps=20).fit(X, Y)
    oracle = PlainOracle(ensemble.model_, X, Y)
    risk = sum(0.5 * w @ w + ensemble.C * np.sum(oracle.violations(w).slacks) for w in ensemble.W)
    U = ensemble.W / np.linalg.norm(ensemble.W, axis=1, keepdims=True)
    energy = sum(1.0 / np.linalg.norm(U[i] - U[j]) for i in range(3) for j in range(i))
    assert_allclose(ensemble.energy_, energy)
    assert_allclose(ensemble.objective_, ensemble.alpha_ * energy + risk)
    assert ensemble.objective_ == ensemble.history_["objective"].min()
    steps = ensemble.history_["iteration"]
    assert steps[0] == 0
    assert steps[-1] == ensemble.n_iter_
    assert (np.diff(steps) > 0).all()


@pytest.mark.parametrize("kind", ["all", "best", "sampled", "stochastic", "anchored"])
def test_repulsion_lowers_the_objective_below_that_of_the_start(kind):
    model, X, Y = words()
    ensemble = new(kind, model, n_steps=20).fit(X, Y)
    curves = ensemble.history_
    assert ensemble.objective_ < 0.9 * curves["objective"][0]
    # Members part, for which each of them pays with more than the least risk there is.
    assert ensemble.energy_ < 0.9 * curves["energy"][0]
    least = FrankWolfeSSVM(clone(model), C=0.5).fit(X, Y).objective_
    assert ensemble.objective_ - ensemble.alpha_ * ensemble.energy_ > 3 * least


def test_repulsion_drives_members_as_far_apart_as_the_risk_allows():
    model, X, Y = words()
    weak, strong = (
        CoulombSSVM(clone(model), 3, alpha, solver="anchored", C=0.5, random_state=0).fit(X, Y)
        for alpha in (0.1, 1e4)
    )
    assert strong.energy_ < weak.energy_
    # Three charges alone on a sphere are a triangle: three pairs at a distance of sqrt(3).
    assert_allclose(strong.energy_, np.sqrt(3.0), rtol=0.02)


@pytest.mark.large
def test_anchored_rounds_end_near_a_stationary_point():
    # There every member solves its own convex problem, with the force on it held fixed.
    model, X, Y = words(6)

    def missing(n_steps):
        ensemble = CoulombSSVM(
            clone(model), 3, alpha=1.0, solver="anchored", C=0.5, tol=1e-4, n_steps=n_steps
        ).fit(X, Y)
        norms = np.linalg.norm(ensemble.W, axis=1, keepdims=True)
        U = ensemble.W / norms
        forces = coulomb_forces(U)
        forces -= U * np.sum(U * forces, axis=1, keepdims=True)
        oracle, found = PlainOracle(ensemble.model_, X, Y), []
        for w, force in zip(ensemble.W, ensemble.alpha_ * forces / norms, strict=True):
            mine = 0.5 * np.sum((w - force) ** 2) + 0.5 * np.sum(oracle.violations(w).slacks)
            found.append(mine / exact_objective(ensemble.model_, X, Y, 0.5, anchor=force) - 1.0)
        return max(found), ensemble.n_iter_

    assert missing(1)[0] > 0.1
    left, rounds = missing(100)
    assert left < 0.01
    assert rounds < 100


class Losses:
    """Members with given losses."""

    threads = 1

    def __init__(self, losses):
        self.losses = np.asarray(losses, dtype=float)

    def task_losses(self, w):
        return self.losses[int(w[0])]


def shares(losses, best_alone, n=4000):
    """How often each sample goes to each member."""
    oracle, random = Losses(losses), np.random.default_rng(0)
    W = np.arange(len(losses))[:, np.newaxis]
    counts = np.zeros(np.shape(losses))
    for _ in range(n):
        for m, own in enumerate(_by_loss(oracle, W, random, best_alone)):
            counts[m, own] += 1
    assert (counts.sum(axis=0) == n).all()
    return counts / n


def test_samples_go_to_the_member_with_the_least_loss_and_ties_to_any():
    found = shares([[1, 0, 2], [0, 0, 2], [3, 1, 2]], best_alone=True)
    assert_allclose(found, [[0, 0.5, 1 / 3], [1, 0.5, 1 / 3], [0, 0, 1 / 3]], atol=0.03)


def test_samples_are_drawn_for_members_by_one_minus_the_share_of_the_loss():
    found = shares([[1, 0, 0], [3, 0, 5], [0, 0, 5]], best_alone=False)
    expected = [[3 / 8, 1 / 3, 1 / 2], [1 / 8, 1 / 3, 1 / 4], [1 / 2, 1 / 3, 1 / 4]]
    assert_allclose(found, expected, atol=0.03)


def test_a_single_member_gets_every_sample():
    for best_alone in (True, False):
        assert_array_equal(shares([[0, 1, 7]], best_alone, n=10), np.ones((1, 3)))


def test_choice_without_diversity_is_multiple_choice():
    model, X, Y = words()
    plain = MultipleChoiceSSVM(clone(model), 3, C=0.5, n_rounds=3).fit(X, Y)
    diverse = DiverseMultipleChoiceSSVM(clone(model), 3, 0.0, C=0.5, n_rounds=3).fit(X, Y)
    assert_array_equal(plain.W, diverse.W)


def test_multiple_choice_counts_each_sample_for_its_best_member():
    model, X, Y = words()
    ensemble = MultipleChoiceSSVM(model, 3, C=0.5, tol=1e-3, max_iter=1000).fit(X, Y)
    oracle = PlainOracle(ensemble.model_, X, Y)
    slacks = np.array([oracle.violations(w).slacks for w in ensemble.W])
    assert_array_equal(ensemble.assignment_, slacks.argmin(axis=0))
    value = 0.5 * np.sum(ensemble.W**2) + 0.5 * slacks.min(axis=0).sum()
    assert_allclose(ensemble.objective_, value)
    # Given who counts for whom, every member is the machine of its own samples.
    for m, w in enumerate(ensemble.W):
        own = np.flatnonzero(ensemble.assignment_ == m)
        if len(own):
            alone = FrankWolfeSSVM(clone(model), C=0.5, tol=1e-3, max_iter=1000)
            alone.set_params(model__n_states=3).fit([X[i] for i in own], [Y[i] for i in own])
            mine = 0.5 * w @ w + 0.5 * slacks[m, own].sum()
            assert_allclose(mine, alone.objective_, rtol=3e-3)


def test_members_that_are_paid_for_differing_differ_more():
    model, X, Y = words(30)
    apart = []
    for diversity in (0.0, 2.0):
        ensemble = DiverseMultipleChoiceSSVM(clone(model), 3, diversity, C=1.0, n_rounds=4)
        apart.append(np.mean(np.concatenate(ensemble.fit(X, Y).disagreement(X))))
    assert apart[1] > apart[0]


def test_perturbed_members_keep_the_norm_and_the_first_is_the_machine():
    model, X, Y = words()
    ensemble = PerturbedSSVM(model, 4, spread=0.7, C=0.5).fit(X, Y)
    norm = np.linalg.norm(ensemble.w)
    assert_allclose(np.linalg.norm(ensemble.W, axis=1), norm)
    assert_allclose(ensemble.W[0], ensemble.w)
    cosines = ensemble.W[1:] @ ensemble.w / norm**2
    assert (cosines < 1.0 - 1e-3).all()


@pytest.mark.parametrize("name", MODELS)
def test_diverse_predictions_are_the_best_outputs_at_each_turn(name):
    model, X, Y = drawn(name, 2)
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


def test_diverse_predictions_of_a_model_of_the_users():
    X, y = load_iris(return_X_y=True)
    learner = FrankWolfeSSVM(OwnClasses(), C=0.1, tol=0.1).fit(X, y)
    found = np.array(batch_diverse_predictions(learner.model_, learner.w, X[:5], 3, 1e6))
    assert_array_equal(np.sort(found, axis=1), np.tile(np.arange(3), (5, 1)))


def test_members_that_speak_in_turn_are_paid_for_differing():
    model, X, Y = words()
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
    with pytest.raises(ValueError, match="diversity must be at least 0, got -1"):
        ensemble.predict_all(X, diversity=-1)


def test_one_machine_in_turn_is_the_same_as_equal_members_in_turn():
    model, X, Y = words()
    ensemble = PerturbedSSVM(model, 3, spread=0.0, C=0.5).fit(X, Y)
    single = batch_diverse_predictions(ensemble.model_, ensemble.w, X, 3, diversity=0.4)
    for own, other in zip(ensemble.predict_all(X, diversity=0.4), single, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(own, other, strict=True))


def test_diverse_predictions_refuse_what_makes_no_sense():
    model = MultiClassClf(n_features=1, n_classes=2)
    with pytest.raises(ValueError, match="M must be at least 1, got 0"):
        diverse_predictions(model, np.zeros(2), [1.0], 0)
    with pytest.raises(ValueError, match="diversity must be at least 0, got -1"):
        diverse_predictions(model, np.zeros(2), [1.0], 2, diversity=-1)


def test_the_consensus_is_what_most_members_say_and_ties_go_to_the_earliest():
    assert_array_equal(consensus([[2, 0, 1], [0, 0, 2], [1, 3, 2]]), [2, 0, 2])
    assert consensus([1, 2, 2]) == 2


def test_disagreement_is_the_share_of_pairs_that_differ():
    assert_allclose(disagreement([[1, 1, 1], [1, 2, 2], [1, 2, 3]]), [0, 2 / 3, 1])
    assert_array_equal(disagreement([[1, 2]]), [0, 0])


def test_outputs_without_parts_have_no_consensus():
    with pytest.raises(ValueError, match="Outputs can only be compared part by part"):
        consensus(["tree", "other"])


def test_picking_the_best_is_never_worse_than_any_member(kind):
    model, X, Y = words()
    ensemble = new(kind, model).fit(X, Y)
    losses = ensemble.member_losses(X, Y)
    most = sum(map(len, Y))
    assert_allclose(ensemble.pick_best_score(X, Y), 1.0 - losses.min(axis=0).sum() / most)
    assert ensemble.pick_best_score(X, Y) >= 1.0 - losses.sum(axis=1).min() / most


def test_a_reranker_learns_which_member_to_trust():
    # Two members always say the same wrong thing and one is right: the consensus is wrong.
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


def test_a_search_chooses_the_repulsion_by_the_best_pick():
    model, X, Y = words(30)
    model.set_params(n_states=3)

    def pick_best(estimator, X, Y):
        return estimator.pick_best_score(X, Y)

    search = GridSearchCV(
        CoulombSSVM(model, 3, n_steps=10, C=0.5, tol=0.1),
        {"alpha": [0.0, 3.0]},
        scoring=pick_best,
        cv=2,
        error_score="raise",
    ).fit(X, Y)
    scores = search.cv_results_["mean_test_score"]
    assert scores[1] >= scores[0]


def test_a_single_machine_that_stops_early_warns():
    model, X, Y = words()
    with pytest.warns(ConvergenceWarning, match="The single machine stopped"):
        CoulombSSVM(model, 2, max_iter=1, tol=1e-6, n_steps=1).fit(X, Y)


@pytest.mark.parametrize("kind", ["anchored", "multiple choice", "diverse choice"])
def test_members_that_stop_early_warn_once(kind):
    model, X, Y = words()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        new(kind, model, tol=1e-9, max_iter=3).fit(X, Y)
        new(kind, model, tol=0.5, max_iter=1000).fit(X, Y)
    told = [str(warning.message) for warning in told if "members" in str(warning.message)]
    assert len(told) == 1
    assert told[0].startswith(
        "3 of 3 members stopped before their relative gap was below tol=1e-09"
    )
    assert "after 3 passes" in told[0]


def test_a_fit_tells_how_it_gets_on(capsys, kind):
    model, X, Y = words()
    new(kind, model, verbose=True).fit(X, Y)
    assert f"[{type(ENSEMBLES[kind]).__name__}]" in capsys.readouterr().out


def test_disagreement_has_the_shape_of_the_outputs():
    _, X, Y = drawn("grid", 4)
    ensemble = CoulombSSVM(GridCRF(), 2, n_steps=3, C=0.1, tol=0.1).fit(X, Y)
    assert [part.shape for part in ensemble.disagreement(X)] == [y.shape for y in Y]


def test_chains_with_few_labels_seen():
    X, Y = samples(MODELS["chain"][1], 5)
    ensemble = CoulombSSVM(ChainCRF(n_states=5), 2, n_steps=3, C=0.1, tol=0.1).fit(X, Y)
    assert ensemble.W.shape[1] == 5 * 4 + 25
