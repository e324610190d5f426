"""What a fit of SVC tells about itself: objective, gap, iterations, warnings and callbacks."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel, sigmoid_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import scale
from tests.oracles.hinge import Hinge, solve_exactly
from tests.suites.callbacks import Recorder

from widemargin import SVC


@pytest.fixture(scope="module")
def two_classes():
    return make_classification(
        n_samples=150, n_features=6, n_informative=4, flip_y=0.1, class_sep=0.7, random_state=0
    )


@pytest.fixture(scope="module")
def three_classes():
    X, y = load_iris(return_X_y=True)
    return scale(X), y


def hinge(X, y, C, gamma):
    sign = np.where(y == 1, 1.0, -1.0)
    return Hinge(rbf_kernel(X, gamma=gamma), sign, np.ones(len(y)), np.full(len(y), C))


class TestObjective:
    @pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
    def test_is_the_value_of_the_minimised_function(self, two_classes, C):
        X, y = two_classes
        model = SVC(C=C, gamma=0.3).fit(X, y)
        problem = hinge(X, y, C, 0.3)
        support = model.support_
        norm = model.dual_coef_[0] @ problem.gram[np.ix_(support, support)] @ model.dual_coef_[0]
        loss = np.maximum(0.0, 1.0 - problem.sign * model.decision_function(X)).sum()
        assert model.objective_.shape == (1,)
        assert_allclose(model.objective_[0], norm / 2 + C * loss, rtol=1e-9)

    @pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
    def test_is_the_optimum(self, two_classes, C):
        X, y = two_classes
        exact = solve_exactly(hinge(X, y, C, 0.3))
        model = SVC(C=C, gamma=0.3).fit(X, y)
        assert_allclose(model.objective_[0], exact.objective, rtol=1e-6)

    def test_has_an_entry_for_each_machine(self, three_classes):
        X, y = three_classes
        model = SVC(gamma=0.3).fit(X, y)
        assert model.objective_.shape == model.dual_gap_.shape == model.n_iter_.shape == (3,)
        for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
            rows = (y == i) | (y == j)
            pair = SVC(gamma=0.3).fit(X[rows], y[rows])
            assert_allclose(model.objective_[k], pair.objective_[0], rtol=1e-6)


class TestGap:
    @pytest.mark.parametrize("max_iter", [5, 50, 200])
    def test_bounds_the_distance_to_the_optimum(self, two_classes, max_iter):
        X, y = two_classes
        exact = solve_exactly(hinge(X, y, 10.0, 0.3))
        with pytest.warns(ConvergenceWarning):
            model = SVC(C=10.0, gamma=0.3, max_iter=max_iter).fit(X, y)
        distance = (model.objective_[0] - exact.dual_objective) / model.objective_[0]
        assert 1e-6 < distance <= model.dual_gap_[0] <= 1.0

    def test_is_negligible_on_small_data(self, two_classes, three_classes):
        for X, y in (two_classes, three_classes):
            gap = SVC().fit(X, y).dual_gap_
            assert (gap >= 0).all()
            assert (gap < 1e-9).all()

    def test_may_be_what_the_solver_stops_on(self):
        X, y = make_classification(n_samples=3200, n_features=10, flip_y=0.2, random_state=0)
        loose, tight = (SVC(gap_tol=gap_tol).fit(X, y) for gap_tol in (0.1, 1e-4))
        assert tight.dual_gap_[0] <= 1e-4 < loose.dual_gap_[0] <= 0.1
        assert loose.n_iter_[0] < tight.n_iter_[0]

    @pytest.mark.large
    @pytest.mark.parametrize("options", [{}, {"gap_tol": 1e-4}])
    def test_is_exact_where_rows_were_float32(self, options):
        X, y = make_classification(
            n_samples=2600, n_features=10, n_informative=6, flip_y=0.1, random_state=1
        )
        C, gamma = 1000.0, 0.5
        model = SVC(C=C, gamma=gamma, **options).fit(X, y)
        kernel = rbf_kernel(X, X[model.support_], gamma=gamma)
        sign, dual = np.where(y == 1, 1.0, -1.0), model.dual_coef_[0]
        f = kernel @ dual
        norm = dual @ f[model.support_]
        slack = np.maximum(0.0, 1.0 - sign * (f + model.intercept_[0]))
        objective = 0.5 * norm + C * slack.sum()
        gap = (objective - np.abs(dual).sum() + 0.5 * norm) / objective
        assert_allclose(model.objective_[0], objective, rtol=1e-9)
        assert_allclose(model.dual_gap_[0], gap, rtol=1e-4)
        assert gap <= options.get("gap_tol", np.inf)

    def test_that_does_not_exist_leaves_the_tolerance_in_charge(self, three_classes):
        X, y = three_classes
        plain, wished = (SVC(kernel="sigmoid", gap_tol=g).fit(X, y) for g in (None, 1e-8))
        assert_array_equal(plain.dual_coef_, wished.dual_coef_)

    def test_that_rounding_leaves_open_is_warned_of(self):
        rng = np.random.default_rng(0)
        X = 1e3 * rng.normal(size=(300, 4))
        y = (X[:, 0] + 300.0 * rng.normal(size=300) > 0).astype(int)
        with pytest.warns(ConvergenceWarning):
            model = SVC(kernel="poly", gamma="auto", max_iter=200_000).fit(X, y)
        assert model.dual_gap_[0] > 0.1

    def test_is_unknown_for_kernels_that_may_be_indefinite(self, three_classes):
        X, y = three_classes
        assert np.isnan(SVC(kernel="sigmoid").fit(X, y).dual_gap_).all()
        indefinite = sigmoid_kernel(X, gamma=1.0, coef0=-1.0)
        assert np.linalg.eigvalsh(indefinite)[0] < -1.0

        def kernel(X, Y):
            return sigmoid_kernel(X, Y, gamma=1.0, coef0=-1.0)

        assert np.isnan(SVC(kernel=kernel).fit(X, y).dual_gap_).all()
        assert (SVC(kernel=rbf_kernel).fit(X, y).dual_gap_ < 1e-6).all()
        assert np.isnan(SVC(kernel="precomputed").fit(indefinite, y).dual_gap_).all()
        definite = rbf_kernel(X)
        assert (SVC(kernel="precomputed").fit(definite, y).dual_gap_ < 1e-6).all()


class TestIterations:
    def test_are_counted_and_grow_with_precision(self):
        X, y = make_classification(n_samples=3200, n_features=10, flip_y=0.2, random_state=0)
        loose, tight = (SVC(tol=tol).fit(X, y) for tol in (0.5, 1e-3))
        assert 0 < loose.n_iter_[0] < tight.n_iter_[0]
        assert tight.dual_gap_[0] < loose.dual_gap_[0]

    def test_are_limited_with_a_warning(self, three_classes):
        X, y = three_classes
        message = r"Solver terminated early \(max_iter=3.*StandardScaler"
        with pytest.warns(ConvergenceWarning, match=message) as told:
            model = SVC(max_iter=3).fit(X, y)
        assert told[0].filename == __file__
        assert model.fit_status_ == 1
        assert (model.n_iter_ <= 3).all()
        assert model.n_iter_.max() == 3
        assert (model.dual_gap_ > 1e-3).any()
        assert model.predict(X).shape == y.shape

    def test_within_the_limit_give_no_warning(self, three_classes):
        X, y = three_classes
        free = SVC().fit(X, y)
        limited = SVC(max_iter=10 * free.n_iter_.max()).fit(X, y)
        assert limited.fit_status_ == 0
        assert_array_equal(limited.decision_function(X), free.decision_function(X))

    def test_none_at_all_decide_nothing(self, two_classes):
        X, y = two_classes
        with pytest.warns(ConvergenceWarning):
            model = SVC(max_iter=0).fit(X, y)
        assert model.n_iter_[0] == 0
        assert len(model.support_) == 0
        assert np.ptp(model.decision_function(X)) == 0.0


def test_verbose_prints_a_line_for_each_machine(three_classes, capsys):
    X, y = three_classes
    SVC().fit(X, y)
    assert capsys.readouterr().out == ""
    SVC(verbose=True).fit(X, y)
    assert len(capsys.readouterr().out.strip().splitlines()) == 3


class TestCallbacks:
    def test_hear_of_every_machine(self, three_classes):
        X, y = three_classes
        recorder = Recorder()
        model = SVC().set_callbacks(recorder).fit(X, y)
        assert recorder.hooks == ["setup", "teardown"]
        assert sorted(recorder.begun) == sorted(recorder.ended)
        assert [number for name, number in recorder.ended if name == "problem"] == [0, 1, 2]
        assert recorder.begun[0] == recorder.ended[-1] == ("fit", 0)
        assert_array_equal(model.dual_coef_, SVC().fit(X, y).dual_coef_)

    def test_do_not_change_the_answer_of_parallel_jobs(self, three_classes):
        X, y = three_classes
        recorder = Recorder()
        model = SVC(n_jobs=2).set_callbacks(recorder).fit(X, y)
        assert sorted(recorder.begun) == sorted(recorder.ended)
        assert sorted(number for name, number in recorder.ended if name == "problem") == [0, 1, 2]
        assert_array_equal(model.dual_coef_, SVC().fit(X, y).dual_coef_)

    def test_see_the_estimator_as_if_the_fit_had_ended(self, three_classes):
        X, y = three_classes
        recorder = Recorder()
        model = SVC().set_callbacks(recorder).fit(X, y)
        assert recorder.fitted[-1] == model.score(X, y)
        assert all(0.0 <= score <= 1.0 for score in recorder.fitted)

    def test_may_stop_the_fit(self):
        X, y = make_classification(n_samples=3500, n_features=30, flip_y=0.3, random_state=0)
        recorder = Recorder(stop=lambda context: context.task_name != "fit")
        with pytest.warns(ConvergenceWarning, match=r"requested by a callback\)\. Largest"):
            model = SVC(C=100.0, tol=1e-6).set_callbacks(recorder).fit(X, y)
        assert recorder.hooks == ["setup", "teardown"]
        assert model.fit_status_ == 1
        assert model.predict(X).shape == y.shape

    def test_hear_nothing_of_a_fit_that_is_refused(self, three_classes):
        X, y = three_classes
        recorder = Recorder()
        with pytest.raises(ValueError, match="class"):
            SVC().set_callbacks(recorder).fit(X, np.zeros_like(y))
        assert recorder.hooks == []

    def test_are_torn_down_when_the_fit_fails(self, two_classes):
        recorder = Recorder()
        with pytest.raises(ValueError, match="separable"):
            SVC(C=np.inf, kernel="linear").set_callbacks(recorder).fit(*two_classes)
        assert recorder.hooks == ["setup", "teardown"]

    def test_are_carried_along_by_a_search(self, three_classes):
        X, y = three_classes
        recorder = Recorder()
        search = GridSearchCV(SVC().set_callbacks(recorder), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
        assert recorder.hooks.count("setup") == recorder.hooks.count("teardown") == 5
        assert search.score(X, y) > 0.9


@pytest.mark.large
class TestRange:
    """float32 inside, whatever the numbers outside."""

    @pytest.fixture
    def rows(self):
        return make_classification(
            n_samples=2600, n_features=10, n_informative=6, flip_y=0.3, random_state=1
        )

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize(("kernel", "size"), [("linear", 1e25), ("poly", 1e9), ("rbf", 1e25)])
    def test_fits_where_kernel_values_exceed_it(self, rows, kernel, size):
        X, y = rows
        model = SVC(kernel=kernel, gamma=1.0, max_iter=3000).fit(size * X, y)
        assert np.isfinite(model.decision_function(size * X[:50])).all()
        assert np.isfinite(model.dual_gap_).all()

    @pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian"])
    def test_scores_rows_far_from_the_support_vectors(self, rows, kernel):
        X, y = rows
        model = SVC(kernel=kernel).fit(X, y)
        assert model._expansion.float32
        exact = copy.copy(model._expansion)
        exact.float32 = False
        for size in (1e3, 1e15, 1e38):
            far = np.vstack([X[:5], size * X[:5]])
            expected = exact.evaluate(far)[:, 0]
            assert_allclose(model.decision_function(far), expected, rtol=1e-12, atol=1e-4)
            assert_array_equal(model.decision_function(far)[:5], model.decision_function(X[:5]))
