"""Learners against exact quadratic programs and each other; everything around a fit."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_param_validation
from tests.structured.cases import MODELS, exact_objective, samples
from tests.structured.learners.cases import LEARNERS, letters, new
from tests.structured.models.test_models import OwnClasses, OwnMistakes

from widemargin._base.checkpoint import CheckpointError
from widemargin.structured import (
    ChainCRF,
    FrankWolfeSSVM,
    GraphCRF,
    MultiClassClf,
    NSlackSSVM,
    OneSlackSSVM,
    StructuredModel,
    SubgradientSSVM,
)
from widemargin.structured.oracles import PlainOracle


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
    fitted = new(learner, model, C=0.3).fit(X, Y)
    best = exact_objective(fitted.model_, X, Y, 0.3)
    assert fitted.dual_gap_ <= fitted.tol
    assert best - 1e-6 <= fitted.objective_ <= best / (1.0 - fitted.dual_gap_) + 1e-6
    assert fitted.dual_objective_curve_[-1] <= best + 1e-6


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_samples_without_weight_need_no_bound(learner):
    X, Y = samples(MODELS["graph"][1], n=4)
    model = GraphCRF(inference_method="icm")
    fitted = new(learner, model, max_iter=3).fit(X, Y, sample_weight=[1.0, 0.0, 1.0, 1.0])
    assert np.isfinite(fitted.objective_)


@pytest.mark.parametrize("model", [MultiClassClf(), OwnClasses()], ids=["flat", "plain"])
def test_inputs_that_are_all_zero_cost_their_loss_and_no_certificate(learner, model):
    X, Y = samples(MODELS["classes"][1], n=5)
    X = [np.zeros(4), *X[1:]]
    fitted = new(learner, clone(model), C=0.3, tol=0.02).fit(X, Y)
    ours = MultiClassClf()
    ours.initialize(X, Y)
    best = exact_objective(ours, X, Y, 0.3)
    assert fitted.dual_gap_ <= 0.02
    assert best - 1e-6 <= fitted.objective_ <= best / (1.0 - fitted.dual_gap_) + 1e-6


def test_weights_of_samples_are_copies(learner):
    X, Y = samples(MODELS["chain"][1], n=5)
    weight = np.array([2.0, 0.0, 1.0, 3.0, 1.0])
    fitted = new(learner, ChainCRF(n_states=3)).fit(X, Y, sample_weight=weight)
    best = exact_objective(fitted.model_, X, Y, 1.0, weight)
    assert fitted.objective_ == pytest.approx(best, rel=1.5 * fitted.tol)
    copies = np.repeat(np.arange(5), weight.astype(int))
    again = new(learner, ChainCRF(n_states=3)).fit([X[i] for i in copies], [Y[i] for i in copies])
    assert again.objective_ == pytest.approx(best, rel=1.5 * fitted.tol)


def test_curves_end_where_the_fit_does(learner):
    X, Y = samples(MODELS["chain"][1])
    fitted = new(learner, ChainCRF()).fit(X, Y)
    assert fitted.gap_curve_[-1] == fitted.dual_gap_
    assert fitted.objective_curve_[-1] == fitted.objective_
    assert (np.diff(fitted.objective_curve_) <= 0.0).all()
    assert (np.diff(fitted.dual_objective_curve_) >= 0.0).all()
    assert (np.diff(fitted.timestamps_) >= 0.0).all()
    assert len(fitted.timestamps_) == len(fitted.objective_curve_) + 1  # the start
    assert fitted.history_["iteration"][-1] == fitted.n_iter_
    assert_array_equal(fitted.primal_objective_curve_, fitted.objective_curve_)


def test_the_objective_is_that_of_the_weights(learner):
    X, Y = samples(MODELS["graph"][1])
    fitted = new(learner, GraphCRF(), C=0.5).fit(X, Y)
    model, w = fitted.model_, fitted.w
    total = 0.5 * w @ w
    for x, y in zip(X, Y, strict=True):
        other = model.loss_augmented_inference(x, y, w)
        rise = w @ (model.joint_feature(x, other) - model.joint_feature(x, y))
        total += 0.5 * (model.loss(y, other) + rise)
    assert fitted.objective_ == pytest.approx(total)


@pytest.mark.large
def test_a_chain_reads_letters_better_than_it_guesses(learner):
    X, Y = letters(30)
    fitted = new(learner, ChainCRF(), C=0.1, tol=0.1, max_iter=500).fit(X, Y)
    assert fitted.score(X, Y) > 0.95
    assert fitted.predict(X)[0].shape == Y[0].shape


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_is_resumed_is_one_that_was_never_interrupted(learner, tmp_path):
    X, Y = samples(MODELS["chain"][1])
    parameters = {"tol": 1e-12, "C": 0.2, "random_state": 0}
    if "cache" in learner:
        pytest.skip("a resumed fit asks anew: see the next test")
    if "slack" not in learner:
        parameters["check_dual_every"] = 5
    half, end = (2, 4) if "n slacks" in learner else (5, 10)  # few rounds suffice
    whole = new(learner, ChainCRF(), max_iter=end, **parameters).fit(X, Y)
    file = tmp_path / "state"
    new(learner, ChainCRF(), max_iter=half, checkpoint=file, **parameters).fit(X, Y)
    resumed = new(learner, ChainCRF(), max_iter=end, checkpoint=file, **parameters).fit(X, Y)
    assert_array_equal(resumed.w, whole.w)
    assert resumed.n_iter_ == whole.n_iter_ == end
    assert_array_equal(resumed.objective_curve_, whole.objective_curve_)


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
    fitted = new(learner, ChainCRF(), checkpoint=tmp_path / place)
    with pytest.raises(CheckpointError, match=r"checkpoint=.* cannot be written"):
        fitted.fit(X, Y)
    assert vars(fitted.model) == vars(ChainCRF())


def test_a_checkpoint_that_fails_at_the_end_does_not_lose_the_fit(learner, tmp_path, monkeypatch):
    def full(*_):
        raise OSError("No space left on device")

    X, Y = samples(MODELS["chain"][1])
    plain = new(learner, ChainCRF(), C=0.1, tol=0.1).fit(X, Y)
    monkeypatch.setattr("widemargin._base.checkpoint.save_checkpoint", full)
    fitted = new(learner, ChainCRF(), C=0.1, tol=0.1, checkpoint=tmp_path / "state")
    with pytest.warns(RuntimeWarning, match="No space left"):
        fitted.fit(X, Y)
    assert_array_equal(fitted.w, plain.w)
    assert fitted.score(X, Y) == plain.score(X, Y)


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
    fitted = new(learner, ChainCRF(), warm_start=True, C=0.3).fit(X, Y)
    cold = fitted.objective_
    fitted.set_params(max_iter=1).fit(X, Y)
    assert fitted.objective_ <= cold * (1.0 + 2.0 * fitted.tol)
    fitted.set_params(max_iter=20_000, C=0.4).fit(X, Y)
    assert fitted.objective_ == pytest.approx(
        exact_objective(fitted.model_, X, Y, 0.4), rel=1.5 * fitted.tol
    )
    fitted.fit(X[:-1], Y[:-1])
    assert fitted.dual_gap_ <= fitted.tol


def test_a_warm_start_forgets_the_losses_of_other_class_weights(learner):
    X, Y = samples(MODELS["chain"][1])
    model = ChainCRF(class_weight=[1.0, 5.0, 1.0])
    fitted = new(learner, model, warm_start=True, C=0.3).fit(X, Y)
    fitted.set_params(model__class_weight=[1.0, 1.0, 1.0]).fit(X, Y)
    best = exact_objective(fitted.model_, X, Y, 0.3)
    assert fitted.dual_gap_ <= fitted.tol
    assert best - 1e-6 <= fitted.objective_ <= best / (1.0 - fitted.dual_gap_) + 1e-6
    assert fitted.dual_objective_curve_[-1] <= best + 1e-6


def test_a_limit_that_stops_the_fit_is_told(learner):
    X, Y = samples(MODELS["chain"][1])
    with pytest.warns(ConvergenceWarning, match=r"relative gap was below tol=1e-15 \(max_iter=2\)"):
        new(learner, ChainCRF(), max_iter=2, tol=1e-15).fit(X, Y)


class StopAfterTwo:
    """A callback that stops a fit after two passes or rounds."""

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


def test_callbacks_see_every_pass_and_may_stop_the_fit(learner):
    X, Y = samples(MODELS["chain"][1])
    stop = StopAfterTwo()
    with pytest.warns(ConvergenceWarning):
        fitted = new(learner, ChainCRF(), tol=1e-15).set_callbacks(stop).fit(X, Y)
    assert fitted.n_iter_ == 2
    assert stop.objectives[-1] == fitted.objective_


@pytest.mark.parametrize("method", ["icm", "alpha-expansion"])
def test_inexact_inference_without_a_bound_stops_without_a_certificate(learner, method):
    X, Y = samples(MODELS["graph"][1])
    with pytest.warns(ConvergenceWarning, match="inference is not exact and gives no bound"):
        fitted = new(learner, GraphCRF(inference_method=method), tol=0.02).fit(X, Y)
    assert np.isnan(fitted.dual_gap_)
    assert fitted.n_iter_ < 0.5 * fitted.max_iter
    if "cache" in learner:  # rounds that use it do not count
        assert len(fitted.gap_curve_) == fitted.n_iter_
    exact = new(learner, GraphCRF(), tol=0.02).fit(X, Y)
    found = PlainOracle(exact.model_, X, Y).violations(fitted.w).slacks.sum()
    assert 0.5 * fitted.w @ fitted.w + found <= 1.2 * exact.objective_


def test_models_of_two_methods_are_learnt(learner):
    X, Y = samples(MODELS["classes"][1])
    own = new(learner, OwnClasses(), C=0.3).fit(X, Y)
    ours = new(learner, MultiClassClf(), C=0.3).fit(X, Y)
    assert own.objective_ == pytest.approx(ours.objective_, rel=2.5 * own.tol)


def test_models_without_a_margin_learn_from_mistakes_and_have_no_certificate(learner):
    X, Y = samples(MODELS["classes"][1])
    with warnings.catch_warnings(action="ignore"):
        fitted = new(learner, OwnMistakes(), max_iter=50, C=10.0).fit(X, Y)
    assert fitted.score(X, Y) > 0.7
    assert np.isnan(fitted.dual_gap_)


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
        fitted = new(learner, model, max_iter=300).fit(X, Y)
    assert np.isnan(fitted.dual_gap_)
    assert np.isnan(fitted.gap_curve_).all()


def test_a_loss_with_its_own_inference_is_certified(learner):
    X, Y = samples(MODELS["classes"][1])
    fitted = new(learner, AugmentedDistance(), C=0.03).fit(X, Y)
    assert fitted.dual_gap_ <= fitted.tol
    ours = MultiClassClf()
    ours.initialize(X, Y)
    ours.loss = fitted.model_.loss
    best = exact_objective(ours, X, Y, 0.03)
    assert best - 1e-6 <= fitted.objective_ <= best / (1.0 - fitted.dual_gap_) + 1e-6


@pytest.mark.large
def test_a_search_sets_parameters_of_learner_and_model():
    X, Y = letters(20)
    grid = {"C": [0.001, 0.1], "model__directed": [True, False]}
    search = GridSearchCV(FrankWolfeSSVM(ChainCRF(n_states=26), tol=0.5), grid, cv=2).fit(X, Y)
    assert search.best_params_["C"] == 0.1
    assert search.score(X, Y) > 0.8


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


@pytest.mark.parametrize("library", [pd, pl])
def test_frames_are_arrays(library):
    X, y = load_iris(return_X_y=True)
    frame = library.DataFrame({str(k): column for k, column in enumerate(X.T)})
    ours = FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.1).fit(frame, library.Series(y))
    plain = FrankWolfeSSVM(MultiClassClf(), C=0.1, tol=0.1).fit(X, y)
    assert_array_equal(ours.w, plain.w)
    assert ours.score(frame, library.Series(y)) == plain.score(X, y)


@pytest.mark.parametrize(
    ("X", "Y", "weight", "message"),
    [
        ([np.ones((2, 2))], [[0, 1], [0, 1]], None, "inconsistent numbers of samples: 1 and 2"),
        ([], [], None, "at least one sample, got none"),
        ([np.ones((2, 2))], [np.array([0, 1])], [0.0], "[Ss]ample.weight"),
        ([np.ones((2, 2))], [np.array([0, 1])], [-1.0], "sample_weight"),
    ],
)
def test_bad_samples_are_refused(X, Y, weight, message):
    with pytest.raises(ValueError, match=message):
        FrankWolfeSSVM(ChainCRF()).fit(X, Y, sample_weight=weight)


def test_inputs_and_outputs_to_be_scored_must_be_equally_many():
    X, Y = samples(MODELS["chain"][1])
    fitted = FrankWolfeSSVM(ChainCRF(), tol=0.1).fit(X, Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples: 8 and 7"):
        fitted.score(X, Y[:-1])


@pytest.mark.parametrize(
    ("X", "Y"),
    [
        ([np.ones((2, 3)), np.ones((2, 4))], [np.array([0, 1])] * 2),
        ([np.ones((2, 3))] * 2, [np.array([0, 1]), np.array([0, -1])]),
        ([np.ones((2, 3)), np.full((2, 3), np.nan)], [np.array([0, 1])] * 2),
        ([np.ones((2, 3))] * 2, [np.array([0, 1]), np.array([0.5, 1.0])]),
        ([np.ones((2, 3))] * 2, [np.array([None, "b"], dtype=object)] * 2),
    ],
)
def test_a_fit_that_is_refused_leaves_no_trace(X, Y):
    fresh = FrankWolfeSSVM(ChainCRF())
    with pytest.raises(ValueError, match=r"(x|X|y|Y\[1\]) must (have|contain)"):
        fresh.fit(X, Y)
    assert repr(fresh.model) == repr(ChainCRF())
    assert vars(fresh.model) == vars(ChainCRF())
    fitted = FrankWolfeSSVM(ChainCRF(), tol=0.1).fit(*samples(MODELS["chain"][1]))
    known = samples(MODELS["chain"][1])[0]
    before = fitted.predict(known)
    with pytest.raises(ValueError, match=r"(x|X|y|Y\[1\]) must (have|contain)"):
        fitted.fit(X, Y)
    for own, other in zip(fitted.predict(known), before, strict=True):
        assert_array_equal(own, other)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_refused_checkpoint_leaves_the_model_as_it_was(tmp_path):
    X, Y = samples(MODELS["chain"][1])
    file = tmp_path / "state"
    fitted = FrankWolfeSSVM(ChainCRF(), max_iter=2, checkpoint=file).fit(X, Y)
    with pytest.raises(CheckpointError):
        fitted.fit([np.ones((2, 7))], [np.array([0, 1])])
    assert fitted.model_.n_features == 4
    assert len(fitted.predict(X)) == len(Y)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (FrankWolfeSSVM, ["batch_mode", "show_loss_every"]),
        (NSlackSSVM, ["check_constraints", "break_on_bad", "switch_to", "inactive_threshold"]),
        (OneSlackSSVM, ["check_constraints", "break_on_bad", "show_loss_every"]),
        (SubgradientSSVM, ["show_loss_every", "break_on_no_constraints"]),
    ],
)
def test_arguments_of_pystruct_without_effect_are_accepted_with_a_warning(kind, names):
    for name in names:
        with pytest.warns(UserWarning, match=rf"{kind.__name__} ignores {name}\. [A-Zi]"):
            learner = kind(ChainCRF(), 7, **{name: True})
        assert name not in learner.get_params()
        assert learner.max_iter == 7
        clone(learner)


def test_subclasses_may_have_arguments_with_names_of_pystruct():
    class Logged(FrankWolfeSSVM):
        def __init__(self, model, logger=None, switch_to=None):
            super().__init__(model)
            self.logger = logger
            self.switch_to = switch_to

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner = Logged(ChainCRF(), logger="name", switch_to="lp")
    assert (learner.logger, learner.switch_to) == ("name", "lp")


def test_arguments_of_pystruct_that_change_the_result_are_refused():
    with pytest.raises(TypeError, match=r"no argument 'rescale_C'\. Pass sample_weight="):
        MultiClassClf(rescale_C=True)
    with pytest.raises(TypeError, match="callbacks must be instances"):
        OneSlackSSVM(ChainCRF(), logger=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'magic'"):
        OneSlackSSVM(ChainCRF(), magic=True)


def test_no_inputs_have_no_outputs(learner):
    X, Y = samples(MODELS["chain"][1])
    fitted = new(learner, ChainCRF(), C=0.1, tol=0.1).fit(X, Y)
    assert fitted.predict([]) == []


def test_verbose_fits_print_their_gap(learner, capsys):
    X, Y = samples(MODELS["chain"][1])
    new(learner, ChainCRF(), verbose=True, tol=0.1).fit(X, Y)
    assert "relative gap" in capsys.readouterr().out


def test_every_parameter_is_validated(learner):
    fitted = LEARNERS[learner].set_params(model=MultiClassClf())
    check_param_validation(type(fitted).__name__, fitted)


def test_copies_predict_the_same(learner):
    X, Y = samples(MODELS["chain"][1])
    fitted = new(learner, ChainCRF(), C=0.1, tol=0.1).fit(X, Y)
    for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        for own, other in zip(again.predict(X), fitted.predict(X), strict=True):
            assert_array_equal(own, other)
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X)


@pytest.mark.large
def test_a_second_fit_on_other_data_is_as_the_first():
    first, second = letters(10), samples(MODELS["chain"][1])
    fitted = FrankWolfeSSVM(ChainCRF(), tol=0.1).fit(*first).fit(*second)
    assert_array_equal(fitted.w, FrankWolfeSSVM(ChainCRF(), tol=0.1).fit(*second).w)


@pytest.mark.parametrize("kind", [FrankWolfeSSVM, OneSlackSSVM, SubgradientSSVM])
def test_arguments_of_fit_are_named_where_they_are_refused(kind):
    X, y = [[1.0], [2.0]], [0, 1]
    with pytest.raises(ValueError, match=r"The 'n_jobs' parameter .* Got 0 instead"):
        kind(MultiClassClf(), n_jobs=0).fit(X, y)
    with pytest.raises(ValueError, match="X and Y must contain at least one sample"):
        kind(MultiClassClf()).fit([], [])
    with pytest.raises(ValueError, match="sample_weight must contain numbers"):
        kind(MultiClassClf()).fit(X, y, sample_weight="a")
