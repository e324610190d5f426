"""CoulombSSVM: its objective, its limits, and the assignment of samples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from tests.structured.cases import MODELS, exact_objective, samples
from tests.structured.ensembles.cases import Stop, draw_chains, draw_samples, make_ensemble

from widemargin.solvers.structured.coulomb import (
    CoulombState,
    coulomb_energy,
    coulomb_forces,
)
from widemargin.structured import (
    ChainCRF,
    CoulombSSVM,
    FrankWolfeSSVM,
    MultiClassClf,
    PerturbedSSVM,
)
from widemargin.structured.ensembles.assignment import assign_by_loss
from widemargin.structured.oracles import PlainOracle

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("solver", ["subgradient", "anchored"])
def test_the_single_ssvm_can_stay_the_first_member(solver):
    model, X, Y = draw_chains()
    ensemble = CoulombSSVM(model, 3, solver=solver, C=0.5, n_steps=5, keep_single=True).fit(X, Y)
    assert_array_equal(ensemble.W[0], ensemble.w)
    assert (np.linalg.norm(ensemble.W[1:] - ensemble.w, axis=1) > 0.1).all()
    single = FrankWolfeSSVM(clone(model), C=0.5, tol=0.01).fit(X, Y)
    assert ensemble.pick_best_score(X, Y) >= single.score(X, Y) - 0.02


@pytest.mark.parametrize("kind", ["all", "stochastic", "anchored"])
def test_callbacks_stop_members_that_repel_each_other(kind):
    model, X, Y = draw_chains()
    # One slice is the single SSVM.
    ensemble = (
        make_ensemble(kind, model, tol=0.5, n_steps=1000).set_callbacks(Stop(after=4)).fit(X, Y)
    )
    assert ensemble.n_iter_ == 3
    assert ensemble.history_["iteration"][-1] == 3


@pytest.mark.parametrize("solver", ["subgradient", "anchored"])
@pytest.mark.parametrize("name", ["classes", "chain", "grid"])
def test_without_repulsion_every_member_is_the_single_ssvm(solver, name):
    model, X, Y = draw_samples(name)
    ensemble = CoulombSSVM(model, 3, alpha=0.0, solver=solver, C=0.5, tol=1e-3).fit(X, Y)
    single = FrankWolfeSSVM(clone(model), C=0.5, tol=1e-3).fit(X, Y)
    assert_array_equal(ensemble.W, np.tile(ensemble.w, (3, 1)))
    assert_allclose(ensemble.objective_, 3 * single.objective_, rtol=2e-3)
    assert_allclose(ensemble.w, single.w, atol=0.05 * np.linalg.norm(single.w))


def test_the_default_repulsion_is_the_objective_of_the_single_ssvm_per_ten_weights():
    model, X, Y = draw_chains()
    ensemble = CoulombSSVM(model, 3, C=0.5, n_steps=5).fit(X, Y)
    own = 0.5 * ensemble.w @ ensemble.w
    own += 0.5 * np.sum(PlainOracle(ensemble.model_, X, Y).violations(ensemble.w).slacks)
    assert len(ensemble.w) > 10
    assert_allclose(ensemble.alpha_, own * 10 / len(ensemble.w))
    # Members with samples of their own differ already.
    assigned = ensemble.set_params(assignment="best").fit(X, Y)
    assert_allclose(assigned.alpha_, own / len(ensemble.w))


def test_the_default_repulsion_of_few_weights_is_the_whole_objective():
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


def test_one_member_is_the_single_ssvm():
    model, X, Y = draw_chains()
    ensemble = CoulombSSVM(model, 1, alpha=5.0).fit(X, Y)
    assert_array_equal(ensemble.W[0], ensemble.w)


def model_order(ensemble, samples_of):
    """The samples that were assigned when the weights were those that are returned."""
    W = np.sort(ensemble.W, axis=1)
    return next(own for then, own in reversed(samples_of) if np.allclose(np.sort(then), W))


@pytest.mark.parametrize("kind", ["all", "best", "sampled", "stochastic", "anchored"])
def test_the_objective_is_energy_and_risk_of_what_is_returned(kind, monkeypatch):
    model, X, Y = draw_chains()
    samples_of = []
    assigned = CoulombState.assigned
    monkeypatch.setattr(
        CoulombState,
        "assigned",
        lambda self: samples_of.append((self.W.copy(), assigned(self))) or samples_of[-1][1],
    )
    ensemble = make_ensemble(kind, model, n_steps=20).fit(X, Y)
    oracle = PlainOracle(ensemble.model_, X, Y)
    # Each member counts the samples that were assigned to it, so often that members count as many
    # as there are in all, on average. One random sample is too few to compare iterates by.
    whole = [np.arange(len(X))] * 3
    found = whole if kind == "stochastic" else model_order(ensemble, samples_of)
    slacks = [
        np.sum(oracle.violations(w, own).slacks) for w, own in zip(ensemble.W, found, strict=True)
    ]
    repeats = 3 * len(X) / sum(map(len, found))
    risk = 0.5 * np.sum(ensemble.W**2) + ensemble.C * repeats * sum(slacks)
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
    model, X, Y = draw_chains()
    ensemble = make_ensemble(kind, model, n_steps=20).fit(X, Y)
    curves = ensemble.history_
    assert ensemble.objective_ < 0.9 * curves["objective"][0]
    assert ensemble.energy_ < 0.9 * curves["energy"][0]
    if kind in ("all", "anchored"):
        # Members part, for which each of them pays with more than the least risk there is.
        least = FrankWolfeSSVM(clone(model), C=0.5).fit(X, Y).objective_
        assert ensemble.objective_ - ensemble.alpha_ * ensemble.energy_ > 3 * least


def draw_groups(n, seed):
    """Sequences whose labels follow one of three directions, which the features do not name."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(8, 3)) for _ in range(n)]
    return X, [(x[:, i % 3] > 0.0).astype(int) for i, x in enumerate(X)]


@pytest.mark.parametrize("options", [{}, {"cluster_steps": 20}, {"start": "random"}])
@pytest.mark.parametrize(("assignment", "share"), [("best", 0.5), ("sampled", 0.9)])
def test_members_that_specialize_beat_the_start(assignment, share, options):
    X, Y = draw_groups(45, 0)
    new_X, new_Y = draw_groups(90, 1)
    common = {"C": 0.1, "tol": 0.02, "random_state": 0}
    ensemble = CoulombSSVM(
        ChainCRF(), 3, 0.1, assignment=assignment, n_steps=150, **common, **options
    ).fit(X, Y)
    start = PerturbedSSVM(ChainCRF(), 3, 0.1, directions="outputs", **common).fit(X, Y)
    error = 1.0 - ensemble.pick_best_score(new_X, new_Y)
    assert error < share * (1.0 - start.pick_best_score(new_X, new_Y))
    # The start is not what is returned.
    assert ensemble.history_["objective"].argmin() > 0
    assert ensemble.energy_ < 0.5 * coulomb_energy(start.W)


@pytest.mark.parametrize("solver", ["subgradient", "anchored"])
def test_clusters_are_assigned_in_the_first_steps_only(monkeypatch, solver):
    X, Y = draw_groups(30, 0)
    found = {}
    assigned = CoulombState.assigned

    def record(self):
        own = assigned(self)
        found.setdefault(self.iterations, []).append([list(samples) for samples in own])
        return own

    monkeypatch.setattr(CoulombState, "assigned", record)
    CoulombSSVM(
        ChainCRF(), 3, assignment="best", solver=solver, cluster_steps=4, n_steps=6, C=0.1, tol=0.1
    ).fit(X, Y)
    assert len(found) > 4
    for step, assignments in found.items():
        for own in assignments:
            assert sum(map(len, own)) == 30
            assert (own == found[0][0]) == (step < 4)


def test_repulsion_drives_members_as_far_apart_as_the_risk_allows():
    model, X, Y = draw_chains()
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
    model, X, Y = draw_chains(6)

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


def shares(losses, best_only, n=4000):
    """How often each sample goes to each member."""
    oracle, random = Losses(losses), np.random.default_rng(0)
    W = np.arange(len(losses))[:, np.newaxis]
    counts = np.zeros(np.shape(losses))
    for _ in range(n):
        for m, own in enumerate(assign_by_loss(oracle, W, random, best_only)):
            counts[m, own] += 1
    assert (counts.sum(axis=0) == n).all()
    return counts / n


def test_samples_are_assigned_to_the_member_with_the_least_loss_and_ties_at_random():
    found = shares([[1, 0, 2], [0, 0, 2], [3, 1, 2]], best_only=True)
    assert_allclose(found, [[0, 0.5, 1 / 3], [1, 0.5, 1 / 3], [0, 0, 1 / 3]], atol=0.03)


def test_samples_are_drawn_for_members_by_one_minus_the_share_of_the_loss():
    found = shares([[1, 0, 0], [3, 0, 5], [0, 0, 5]], best_only=False)
    expected = [[3 / 8, 1 / 3, 1 / 2], [1 / 8, 1 / 3, 1 / 4], [1 / 2, 1 / 3, 1 / 4]]
    assert_allclose(found, expected, atol=0.03)


def test_a_single_member_gets_every_sample():
    for best_only in (True, False):
        assert_array_equal(shares([[0, 1, 7]], best_only, n=10), np.ones((1, 3)))


def test_a_search_chooses_the_repulsion_by_the_best_pick():
    model, X, Y = draw_chains(30)
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


def test_chains_with_few_labels_seen():
    X, Y = samples(MODELS["chain"][1], 5)
    ensemble = CoulombSSVM(ChainCRF(n_states=5), 2, n_steps=3, C=0.1, tol=0.1).fit(X, Y)
    assert ensemble.W.shape[1] == 5 * 4 + 25
