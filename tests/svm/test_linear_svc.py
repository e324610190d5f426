"""LinearSVC as its user sees it, beside scikit-learn's and the exact optimum."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from tests.oracles.hinge import Hinge, solve_exactly
from tests.suites.callbacks import Recorder

from widemargin import LinearSVC, LinearSVCCV
from widemargin.datasets import load_satimage
from widemargin.solvers import states
from widemargin.solvers.hinge import dual_coordinate_descent

WAYS = [
    {"loss": "hinge"},
    {"loss": "squared_hinge", "dual": True},
    {"loss": "squared_hinge", "dual": False},
]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.fixture(scope="module")
def data():
    return make_classification(
        n_samples=800, n_features=60, n_informative=20, n_classes=4, flip_y=0.1, random_state=0
    )


def objectives(model, X, y, C=1.0):
    """The minimised value of every machine, from its weights."""
    signs = [np.where(y == c, 1.0, -1.0) for c in model.classes_]
    signs = signs[1:] if len(signs) == 2 else signs
    scores = X @ model.coef_.T + model.intercept_
    values = []
    for k, sign in enumerate(signs):
        slack = np.maximum(0.0, 1.0 - sign * scores[:, k])
        loss = np.sum(slack**2 if model.loss == "squared_hinge" else slack)
        norm = np.sum(model.coef_[k] ** 2) + (model.intercept_[k] / model.intercept_scaling) ** 2
        values.append(0.5 * norm + C * loss)
    return np.array(values)


class TestBesideScikitLearn:
    @pytest.mark.parametrize("way", WAYS, ids=str)
    def test_weights_are_the_same_at_tight_tolerance(self, iris, way):
        X, y = iris
        ours = LinearSVC(**way, tol=1e-10, max_iter=100_000).fit(X, y)
        theirs = svm.LinearSVC(**way, tol=1e-10, max_iter=1_000_000, random_state=0).fit(X, y)
        assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
        assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)
        assert_array_equal(ours.predict(X), theirs.predict(X))

    @pytest.mark.parametrize("way", WAYS, ids=str)
    @pytest.mark.parametrize("data", [load_digits, load_satimage])
    def test_objectives_on_real_data_are_the_same_or_better(self, way, data):
        X, y = data(return_X_y=True)[:2]
        X, y = X[:1500] / np.abs(X).max(), y[:1500]
        ours = LinearSVC(**way, tol=1e-7, max_iter=20_000).fit(X, y)
        theirs = svm.LinearSVC(**way, tol=1e-7, max_iter=100_000, random_state=0).fit(X, y)
        assert_allclose(objectives(theirs, X, y), ours.objective_, rtol=1e-6)
        assert (ours.dual_gap_ < 1e-6).all()

    def test_the_joint_problem_is_the_same(self, iris):
        X, y = iris
        ours = LinearSVC(multi_class="crammer_singer", max_iter=100_000).fit(X, y)
        theirs = svm.LinearSVC(multi_class="crammer_singer", tol=1e-8, max_iter=10**6).fit(X, y)
        assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
        assert ours.objective_.shape == (1,)

    def test_the_joint_problem_of_two_classes_has_one_function(self, cancer):
        X, y = cancer
        ours = LinearSVC(multi_class="crammer_singer", C=0.1, max_iter=100_000).fit(X, y)
        theirs = svm.LinearSVC(multi_class="crammer_singer", C=0.1, tol=1e-8, max_iter=10**6)
        theirs.fit(X, y)
        assert ours.coef_.shape == (1, X.shape[1])
        assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)

    def test_class_weights_and_intercepts_mean_the_same(self, cancer):
        X, y = cancer
        for parameters in (
            {"class_weight": "balanced"},
            {"class_weight": {0: 3.0}, "intercept_scaling": 5.0},
            {"fit_intercept": False, "C": 0.1},
        ):
            ours = LinearSVC(**parameters, tol=1e-10).fit(X, y)
            theirs = svm.LinearSVC(**parameters, dual=False, tol=1e-12, max_iter=10_000).fit(X, y)
            assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-4)

    def test_sparse_coefficients_answer_the_same(self, iris):
        X, y = iris
        model = LinearSVC().fit(X, y)
        expected = model.decision_function(X)
        assert sparse.issparse(model.sparsify().coef_)
        assert_array_equal(model.decision_function(X), expected)


class TestCertificate:
    @pytest.mark.parametrize("way", WAYS, ids=str)
    def test_the_objective_is_the_value_of_the_minimised_function(self, iris, way):
        X, y = iris
        model = LinearSVC(**way, C=2.0, intercept_scaling=3.0).fit(X, y)
        assert_allclose(model.objective_, objectives(model, X, y, C=2.0), rtol=1e-9)

    @pytest.mark.parametrize("way", WAYS, ids=str)
    def test_the_gap_is_negligible_on_small_data(self, iris, way):
        gap = LinearSVC(**way, max_iter=10_000).fit(*iris).dual_gap_
        assert gap.shape == (3,)
        assert (gap < 1e-9).all()

    @pytest.mark.parametrize("way", WAYS, ids=str)
    def test_the_gap_bounds_the_distance_of_a_stopped_fit(self, way):
        X, y = make_classification(n_samples=2000, n_features=30, flip_y=0.2, random_state=0)
        best = LinearSVC(**way, tol=1e-8, max_iter=100_000).fit(X, y)
        with pytest.warns(ConvergenceWarning, match=r"max_iter=1\).*gap"):
            stopped = LinearSVC(**way, max_iter=1, tol=1e-8).fit(X, y)
        distance = 1 - best.objective_[0] / stopped.objective_[0]
        assert stopped.n_iter_ == 1
        assert 1e-9 < distance <= stopped.dual_gap_[0]


class TestParameters:
    def test_the_l1_penalty_is_refused_with_a_way_out(self, iris):
        with pytest.raises(ValueError, match=r"penalty='l1'.*sklearn.svm.LinearSVC"):
            LinearSVC(penalty="l1", dual=False).fit(*iris)

    def test_the_hinge_has_no_primal_method(self, iris):
        with pytest.raises(ValueError, match=r"dual=False.*hinge.*Use"):
            LinearSVC(loss="hinge", dual=False).fit(*iris)

    def test_the_method_does_not_change_the_answer(self, cancer):
        X, y = cancer
        primal, dual = (
            LinearSVC(dual=way, tol=1e-8, max_iter=100_000).fit(X, y) for way in (False, True)
        )
        assert_allclose(primal.coef_, dual.coef_, atol=1e-6)

    def test_seeds_are_taken_as_in_scikit_learn(self):
        X, y = make_classification(n_samples=1000, n_features=40, flip_y=0.2, random_state=0)
        seeds = [None, 0, 1, np.random.RandomState(1)]
        coefs = []
        for seed in seeds:
            with pytest.warns(ConvergenceWarning):
                model = LinearSVC(loss="hinge", max_iter=3, random_state=seed).fit(X, y)
            coefs.append(model.coef_)
        assert_array_equal(coefs[0], coefs[1])
        assert np.abs(coefs[1] - coefs[2]).max() > 1e-6
        assert_array_equal(coefs[2], coefs[3])

    def test_verbose_prints_a_line_for_every_machine(self, iris, capsys):
        LinearSVC(verbose=1).fit(*iris)
        assert capsys.readouterr().out.count("[LinearSVC] subproblem") == 3


class TestMargins:
    @pytest.mark.parametrize("way", WAYS, ids=str)
    def test_margins_by_class_are_those_of_an_exact_solver(self, iris, way):
        X, y = iris
        margins = {0: 0.5, 2: 2.0}
        model = LinearSVC(**way, class_margin=margins, C=0.5, max_iter=100_000).fit(X, y)
        assert_allclose(model.class_margin_, [0.5, 1.0, 2.0])
        squared = way["loss"] == "squared_hinge"
        gram = X @ X.T + 1.0 + (np.eye(len(y)) if squared else 0.0)
        cost = np.full(len(y), np.inf if squared else 0.5)
        for k in range(3):
            sign = np.where(y == k, 1.0, -1.0)
            exact = solve_exactly(Hinge(gram, sign, model.class_margin_[y], cost, False))
            assert_allclose(model.objective_[k], exact.dual_objective, rtol=1e-6)
        assert (model.dual_gap_ < 1e-6).all()

    def test_rare_classes_may_ask_for_more(self):
        X, y = make_classification(
            n_samples=400, n_features=10, weights=[0.9], class_sep=0.5, random_state=0
        )
        plain, ldam = (LinearSVC(class_margin=margin).fit(X, y) for margin in (None, "ldam"))
        assert ldam.class_margin_[1] == 1.0 > ldam.class_margin_[0]
        assert ldam.predict(X).sum() > plain.predict(X).sum()
        with pytest.raises(ValueError, match="class_margin must be classes"):
            LinearSVC(class_margin={7: 1.0}).fit(X, y)

    @pytest.mark.parametrize("way", WAYS, ids=str)
    def test_margins_alike_are_a_change_of_scale(self, iris, way):
        X, y = iris
        wide = LinearSVC(**way, class_margin=dict.fromkeys(range(3), 2.0), max_iter=10_000)
        C = 0.5 if way["loss"] == "hinge" else 1.0
        plain = LinearSVC(**way, C=C, max_iter=10_000).fit(X, y)
        assert_allclose(wide.set_params(C=1.0).fit(X, y).coef_, 2.0 * plain.coef_, atol=1e-6)


class TestExtremes:
    @pytest.mark.large
    @pytest.mark.parametrize("name", ["wine", "cancer", "iris"])
    def test_the_joint_problem_converges_without_scaling(self, name):
        load = {"wine": load_wine, "cancer": load_breast_cancer, "iris": load_iris}[name]
        X, y = load(return_X_y=True)
        X = X * (1e4 if name == "iris" else 1.0)
        model = LinearSVC(multi_class="crammer_singer").fit(X, y)
        assert model.dual_gap_[0] < 1e-5

    def test_newton_tells_a_bound_even_when_it_stops_early(self):
        X, y = make_classification(n_samples=500, n_features=20, flip_y=0.3, random_state=0)
        best = LinearSVC(dual=False, tol=1e-10).fit(X, y).objective_[0]
        with pytest.warns(ConvergenceWarning):
            start = LinearSVC(dual=False, max_iter=0).fit(X, y)
        assert start.dual_gap_[0] <= 1.0
        assert 1.0 - best / start.objective_[0] <= start.dual_gap_[0]

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize(("scale", "C"), [(1e9, 1.0), (1.0, 1e100), (1e9, 1e50), (1e-9, 1.0)])
    def test_newton_survives_numbers_of_any_size(self, scale, C):
        X, y = load_iris(return_X_y=True)
        model = LinearSVC(dual=False, C=C).fit(scale * X, y)
        assert np.isfinite(model.coef_).all()
        assert ((model.dual_gap_ >= 0.0) & (model.dual_gap_ <= 1.0)).all()

    @pytest.mark.parametrize("way", WAYS, ids=str)
    def test_tiny_weights_do_not_spoil_the_bound(self, iris, way):
        X, y = iris
        weight = np.where(np.arange(len(y)) % 5 == 0, 1e-320, 1.0)
        model = LinearSVC(**way, max_iter=100_000).fit(X, y, sample_weight=weight)
        assert (model.dual_gap_ < 1e-6).all()


class TestWarmStart:
    @pytest.mark.parametrize("way", WAYS, ids=str)
    def test_the_second_fit_starts_where_the_first_ended(self, way):
        X, y = make_classification(n_samples=1500, n_features=30, flip_y=0.2, random_state=0)
        model = LinearSVC(**way, C=0.01, warm_start=True, max_iter=10_000).fit(X, y)
        first = model.n_iter_
        second = model.fit(X, y).n_iter_
        assert second <= 0.5 * first
        assert_allclose(model.set_params(C=0.02).fit(X, y).objective_[0],
                        LinearSVC(**way, C=0.02, max_iter=10_000).fit(X, y).objective_[0],
                        rtol=1e-3)  # fmt: skip

    @pytest.mark.parametrize("way", [*WAYS, {"multi_class": "crammer_singer"}], ids=str)
    def test_a_fit_that_a_callback_stopped_goes_on_to_the_same_answer(self, way, monkeypatch):
        monkeypatch.setattr(dual_coordinate_descent.options, "slice_passes", 1)
        X, y = make_classification(
            n_samples=200, n_features=8, n_informative=6, n_classes=3, flip_y=0.2, random_state=0
        )
        model = LinearSVC(**way, warm_start=True, tol=1e-6, max_iter=100_000)
        model.set_callbacks(Recorder(stop=lambda context: context.task_name == "slice"))
        with pytest.warns(ConvergenceWarning, match="requested by a callback"):
            model.fit(X, y)
        stopped = model.objective_
        model.set_callbacks().fit(X, y)
        whole = LinearSVC(**way, tol=1e-6, max_iter=100_000).fit(X, y)
        assert (stopped > 1.0001 * whole.objective_).any()
        assert_allclose(model.objective_, whole.objective_, rtol=1e-7)

    @pytest.mark.parametrize("way", [*WAYS, {"multi_class": "crammer_singer"}], ids=str)
    def test_smaller_costs_and_other_labels_may_follow(self, iris, way):
        X, y = iris
        model = LinearSVC(**way, C=10.0, warm_start=True, max_iter=100_000).fit(X, y)
        other = np.where(np.arange(len(y)) % 7 == 0, (y + 1) % 3, y)
        for C, labels, weight in ((0.01, y, None), (1.0, other, None), (1.0, y, 0.1 + y)):
            model.set_params(C=C).fit(X, labels, sample_weight=weight)
            cold = LinearSVC(**way, C=C, max_iter=100_000).fit(X, labels, sample_weight=weight)
            assert_allclose(model.objective_, cold.objective_, rtol=1e-6)

    def test_other_data_start_afresh(self, iris, cancer):
        model = LinearSVC(loss="hinge", warm_start=True, max_iter=10_000).fit(*iris)
        model.fit(*cancer)
        fresh = LinearSVC(loss="hinge", max_iter=10_000).fit(*cancer)
        assert_array_equal(model.coef_, fresh.coef_)

    def test_a_fit_of_the_other_kind_starts_afresh(self, iris):
        model = LinearSVC(loss="hinge", warm_start=True, max_iter=10_000)
        for kind in ("ovr", "crammer_singer", "ovr"):
            fresh = LinearSVC(loss="hinge", multi_class=kind, max_iter=10_000).fit(*iris)
            model.set_params(multi_class=kind).fit(*iris)
            assert_array_equal(model.coef_, fresh.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
class TestThreads:
    @pytest.mark.parametrize(
        "model",
        [
            *(LinearSVC(**way, max_iter=30, n_jobs=2) for way in WAYS),
            LinearSVC(multi_class="crammer_singer", max_iter=30),
            LinearSVCCV(Cs=[0.1, 1.0], loss="hinge", cv=2, max_iter=10, n_jobs=2),
        ],
        ids=str,
    )
    def test_eight_fits_at_once_equal_the_sequential_one(self, data, model):
        assert fits_at_once(model, *data) == [clone(model).fit(*data).coef_.tobytes()] * 8

    @pytest.mark.parametrize(
        "model",
        [
            LinearSVC(loss="hinge", max_iter=30),
            LinearSVC(multi_class="crammer_singer", max_iter=30),
        ],
        ids=str,
    )
    def test_fits_that_share_a_random_state_would_be_noticed(self, data, model, monkeypatch):
        shared = np.array([1], dtype=np.uint64)
        monkeypatch.setattr(states, "random_state", lambda seed: shared)
        assert fits_at_once(model, *data) != [clone(model).fit(*data).coef_.tobytes()] * 8


def fits_at_once(model, X, y):
    """The bits that eight threads learn at the same time."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda _: clone(model).fit(X, y).coef_.tobytes(), range(8)))


def test_a_warm_start_after_a_cold_one_starts_anew():
    X, y = load_iris(return_X_y=True)
    cold = LinearSVC(max_iter=100_000).fit(X, y)
    warm = LinearSVC(max_iter=100_000).fit(X, y).set_params(warm_start=True).fit(X, y)
    assert_allclose(warm.coef_, cold.coef_)


def test_squared_hinge_is_never_called_inseparable():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1e5, (20, 60)), np.arange(20) % 2
    model = LinearSVC(max_iter=2000).fit(np.vstack([X, X]), np.r_[y, 1 - y])
    # The optimum is 0: every row is there with both labels.
    assert model.objective_[0] == pytest.approx(40.0, rel=1e-9)
    assert model.dual_gap_[0] <= 1e-3


def test_the_hinge_loss_is_refused_by_newton_however_false_is_spelt():
    X, y = load_iris(return_X_y=True)
    for false in (False, np.False_):
        with pytest.raises(ValueError, match="dual=False is not supported with loss='hinge'"):
            LinearSVC(loss="hinge", dual=false).fit(X, y)


def test_values_whose_squares_overflow_are_refused():
    X, y = load_iris(return_X_y=True)
    for rows in (1e200 * X, sparse.csr_array(-1e200 * X)):
        with pytest.raises(ValueError, match="X must contain values of magnitude up to"):
            LinearSVC().fit(rows, y)


class Observer:
    """A callback that does not evaluate the estimator."""

    def __init__(self):
        self.slices = 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.slices += context.task_name == "slice"


@pytest.mark.parametrize("evaluates", [False, True])
def test_only_callbacks_that_evaluate_the_estimator_cost_a_certificate(evaluates, monkeypatch):
    solver, certificates = dual_coordinate_descent, []
    certify = solver.solution_at
    monkeypatch.setattr(solver.options, "slice_passes", 1)
    monkeypatch.setattr(solver, "solution_at", lambda s: certificates.append(0) or certify(s))
    X, y = make_classification(n_samples=300, n_features=30, flip_y=0.3, random_state=0)
    callback = Recorder() if evaluates else Observer()
    LinearSVC(loss="hinge").set_callbacks(callback).fit(X, y)
    if evaluates:
        assert len(certificates) > 1
    else:
        assert callback.slices > 1
        assert len(certificates) == 1  # that of the result
