"""SVCCV finds what GridSearchCV over SVC finds."""

import numpy as np
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from sklearn.preprocessing import scale
from tests.suites.callbacks import Recorder

from widemargin import SVC, SVCCV, LinearSVCCV, PrivilegedSVCCV
from widemargin.kernels import MatrixGram
from widemargin.solvers import HingeProblem, NotSeparableError
from widemargin.solvers.hinge.smo import solve_from
from widemargin.svm.folds import _best_start, _moved

CS = [10.0, 0.1, 1.0]
GAMMAS = ["scale", 0.5, 0.05]


def classes(n_classes, n_samples=160, random_state=1):
    return make_classification(
        n_samples=n_samples,
        n_classes=n_classes,
        n_features=6,
        n_informative=5,
        n_redundant=0,
        class_sep=1.2,
        flip_y=0.05,
        random_state=random_state,
    )


@pytest.fixture(scope="module")
def four_classes():
    return classes(4)


def searches(X, y, Cs=CS, gammas=GAMMAS, cv=4, scoring=None, **parameters):
    """Return a search of ours and one of scikit-learn's over our SVC."""
    ours = SVCCV(Cs=Cs, gammas=gammas, cv=cv, scoring=scoring, **parameters)
    grid = {"C": Cs, "gamma": gammas}
    theirs = GridSearchCV(SVC(**parameters), grid, cv=cv, scoring=scoring)
    return ours.fit(X, y), theirs.fit(X, y)


def assert_same_search(ours, theirs, X):
    expected = theirs.cv_results_
    for name, values in ours.cv_results_.items():
        if name == "params":
            assert values == expected[name]
        elif name.startswith("param_"):
            assert values.tolist() == expected[name].tolist()
        else:
            assert_array_equal(values, expected[name], err_msg=name)
    assert set(expected) - set(ours.cv_results_) == {
        f"{kind}_{what}_time" for kind in ("mean", "std") for what in ("fit", "score")
    }
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == theirs.best_score_
    assert_array_equal(ours.decision_function(X), theirs.decision_function(X))


KERNELS = ["linear", "rbf", "poly", "sigmoid", "laplacian"]


@pytest.mark.parametrize(
    ("kernel", "multi_class"),
    # Sigmoid machines against the rest decide nothing here: their ties are settled by rounding.
    [(kernel, "ovo") for kernel in KERNELS]
    + [(kernel, "ovr") for kernel in KERNELS if kernel != "sigmoid"],
)
def test_every_kernel_gives_the_scores_of_a_grid_search(four_classes, kernel, multi_class):
    X, y = four_classes
    ours, theirs = searches(X, y, kernel=kernel, multi_class=multi_class, coef0=0.5, degree=2)
    assert_same_search(ours, theirs, X)


@pytest.mark.parametrize("kernel", ["precomputed", lambda A, B: (1.0 + A @ B.T) ** 2])
def test_given_kernels_give_the_scores_of_a_grid_search(four_classes, kernel):
    X, y = four_classes
    rows = (1.0 + X @ X.T) ** 2 if kernel == "precomputed" else X
    ours, theirs = searches(rows, y, gammas=["scale"], kernel=kernel)
    assert_same_search(ours, theirs, rows)


def test_a_kernel_that_is_not_symmetric_is_refused(four_classes):
    X, y = four_classes
    with pytest.raises(ValueError, match="X must be symmetric"):
        SVCCV(kernel="precomputed").fit(X @ X.T + 0.05 * np.tri(len(X)), y)


@pytest.mark.parametrize(
    "matrices", [0.4, *(pytest.param(m, marks=pytest.mark.slow) for m in (1.2, 2.5))]
)
@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.slow
def test_little_memory_changes_nothing(four_classes, matrices, multi_class):
    X, y = four_classes
    cache_size = matrices * 8 * len(X) ** 2 / 2**20
    ours, theirs = searches(X, y, multi_class=multi_class, cache_size=cache_size)
    assert_same_search(ours, theirs, X)


@settings(max_examples=10)
@given(
    n_classes=st.integers(2, 4),
    seed=st.integers(0, 2**32 - 1),
    Cs=st.lists(st.sampled_from([0.03, 0.5, 2.0, 50.0]), min_size=1, max_size=4),
    gammas=st.lists(st.sampled_from(["scale", "auto", 0.02, 1.5]), min_size=1, max_size=3),
    class_weight=st.sampled_from([None, "balanced"]),
)
def test_any_grid_gives_the_scores_of_a_grid_search(n_classes, seed, Cs, gammas, class_weight):
    X, y = classes(n_classes, n_samples=60, random_state=seed)
    ours, theirs = searches(X, y, Cs=Cs, gammas=gammas, cv=3, class_weight=class_weight)
    assert_same_search(ours, theirs, X)


def test_sparse_rows_give_the_scores_of_a_grid_search(four_classes):
    X, y = four_classes
    X = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    assert_same_search(*searches(X, y), X)


def test_an_infinite_cost_gives_the_scores_of_a_grid_search(four_classes):
    X, y = four_classes
    assert_same_search(*searches(X, y, Cs=[np.inf, 1.0], gammas=[1.0]), X)


def test_many_rows_give_the_scores_of_a_grid_search():
    X, y = classes(2, n_samples=4000)
    ours, theirs = searches(
        X, y, Cs=[0.1, 10.0], gammas=[0.1], cv=[(np.r_[:3200], np.r_[3200:4000])]
    )
    assert_allclose(ours.scores_.ravel(), theirs.cv_results_["mean_test_score"], atol=2 / 800)
    assert ours.best_params_ == theirs.best_params_


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_many_rows_in_several_folds_give_the_scores_of_a_grid_search(class_weight):
    X, y = classes(2, n_samples=2700)
    ours, theirs = searches(
        X, y, Cs=[0.01, 1.0, 10.0], gammas=[0.1], cv=KFold(4), class_weight=class_weight
    )
    expected = [theirs.cv_results_[f"split{k}_test_score"] for k in range(4)]
    assert_allclose(ours.scores_[:, 0], np.transpose(expected), atol=2 / 675)
    assert ours.best_params_ == theirs.best_params_


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_start_from_another_fold_is_feasible_and_not_worse_than_none(C):
    X, y = classes(2, n_samples=120)
    sign, gram = np.where(y == 1, 1.0, -1.0), MatrixGram(rbf_kernel(X, gamma=0.1))
    costs = np.full((2, 120), C)
    costs[0, :40] = costs[1, 30:70] = 0.0
    first, second = (HingeProblem(gram, sign, 1.0, cost) for cost in costs)
    solution, values = solve_from(first, (None, None))
    dual, moved = _moved(second, first.cost, solution.dual, values, solution.intercept)
    assert_array_equal(second.check_feasible(dual), dual)
    assert_allclose(moved, gram.matrix @ dual, atol=1e-9 * C)
    zero = _best_start(second, [(dual, moved)])[0] is None
    assert zero == (np.sum(dual * (second.linear() - 0.5 * moved)) <= 0.0)
    assert C == 100.0 or not zero
    found, _ = solve_from(second, (dual, moved))
    assert_allclose(found.dual_objective, solve_from(second, (None, None))[0].dual_objective)


class TestScoring:
    @pytest.mark.parametrize("scoring", ["accuracy", "f1_macro", "neg_log_loss"])
    def test_a_scorer_is_asked_by_name(self, four_classes, scoring):
        X, y = four_classes
        if scoring == "neg_log_loss":
            with pytest.raises(AttributeError, match="predict_proba"):
                SVCCV(scoring=scoring).fit(X, y)
            return
        ours, theirs = searches(X, y, scoring=scoring)
        assert_same_search(ours, theirs, X)
        assert ours.score(X, y) == theirs.score(X, y)

    def test_a_scorer_may_use_scores(self):
        X, y = classes(2)
        assert_same_search(*searches(X, y, scoring="roc_auc"), X)

    def test_a_scorer_sees_a_fitted_svc(self, four_classes):
        X, y = four_classes
        seen = []

        def scoring(machine, X_test, y_test):
            seen.append((machine, X_test))
            return -float(machine.n_support_.sum())

        train, test = np.arange(100), np.arange(100, 160)
        SVCCV(Cs=[1.0, 10.0], cv=[(train, test)], scoring=scoring, refit=False).fit(X, y)
        for C, (machine, X_test) in zip([1.0, 10.0], seen, strict=True):
            direct = SVC(C=C).fit(X[train], y[train])
            assert isinstance(machine, SVC)
            assert machine.C == C
            assert_array_equal(machine.support_, direct.support_)
            assert_allclose(machine.dual_coef_, direct.dual_coef_, atol=1e-9)
            assert_array_equal(X_test, X[test])
            for rows in (X_test, X[train]):
                expected = direct.decision_function(rows)
                assert_allclose(machine.decision_function(rows), expected, atol=1e-9)

    @pytest.mark.parametrize("search", [SVCCV(Cs=[1.0]), LinearSVCCV(Cs=[1.0])])
    def test_labels_are_checked_as_every_classifier_checks_them(self, search):
        X, y = classes(2)
        search.fit(X, y)
        right = accuracy_score(y, search.predict(X))
        assert search.score(X, y) == search.score(X, y[:, np.newaxis]) == right
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            search.score(X, y[:1])
        with pytest.raises(ValueError, match="Mix of label input types"):
            search.score(X, y.astype(str))

    def test_the_first_of_equals_wins_with_c_varying_slowest(self, four_classes):
        X, y = four_classes

        def scoring(machine, X, y):
            return float(machine.C != 10.0 and machine.gamma != "scale")

        ours, theirs = searches(X, y, scoring=scoring)
        assert ours.best_params_ == theirs.best_params_ == {"C": 0.1, "gamma": 0.5}

    def test_a_score_that_is_not_a_number_never_wins(self, four_classes):
        X, y = four_classes

        def scoring(machine, X, y):
            return np.nan if machine.C == 10.0 else -machine.C

        ours = SVCCV(Cs=CS, gammas=GAMMAS, scoring=scoring).fit(X, y)
        assert ours.best_params_ == {"C": 0.1, "gamma": "scale"}
        assert_array_equal(ours.cv_results_["rank_test_score"], [7] * 3 + [1] * 3 + [4] * 3)


class TestWeights:
    def test_weights_count_in_fits_and_scores(self, four_classes):
        X, y = four_classes
        weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
        ours = SVCCV(Cs=CS, gammas=GAMMAS, cv=4).fit(X, y, sample_weight=weights)
        with sklearn.config_context(enable_metadata_routing=True):
            machine = (
                SVC().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
            )
            theirs = GridSearchCV(machine, {"C": CS, "gamma": GAMMAS}, cv=4)
            theirs.fit(X, y, sample_weight=weights)
        assert_same_search(ours, theirs, X)
        named = SVCCV(Cs=CS, gammas=GAMMAS, cv=4, scoring=make_scorer(accuracy_score))
        assert_array_equal(named.fit(X, y, sample_weight=weights).scores_, ours.scores_)

    def test_a_scorer_that_takes_no_weights_gets_none(self, four_classes):
        X, y = four_classes
        weights = np.arange(len(y)) % 3 + 1.0

        def share_of_first_class(machine, X, y):
            return np.mean(machine.predict(X) == machine.classes_[0])

        ours = SVCCV(Cs=CS, cv=4, scoring=share_of_first_class).fit(X, y, sample_weight=weights)
        theirs = GridSearchCV(SVC(), {"C": CS}, cv=4, scoring=share_of_first_class)
        with pytest.warns(UserWarning, match="does not support sample_weight"):
            theirs.fit(X, y, sample_weight=weights)
        assert_array_equal(ours.scores_.mean(axis=2).ravel(), theirs.cv_results_["mean_test_score"])

    @pytest.mark.parametrize("search", [SVCCV(Cs=[1.0]), LinearSVCCV(Cs=[1.0])])
    def test_one_weight_for_all_rows_will_do(self, search):
        X, y = classes(2)
        scores = search.fit(X, y, sample_weight=np.full(len(y), 2.0)).scores_
        assert_array_equal(search.fit(X, y, sample_weight=2.0).scores_, scores)

    @pytest.mark.parametrize("search", [SVCCV(Cs=[1.0]), LinearSVCCV(Cs=[1.0])])
    def test_of_zero_for_all_test_rows_of_a_fold_are_refused(self, search):
        X, y = classes(2)
        weights = np.where(np.arange(len(y)) < 40, 0.0, 1.0)
        search = clone(search).set_params(cv=KFold(4))
        with pytest.raises(
            ValueError, match="test samples whose sample_weight is positive, but fold 0"
        ):
            search.fit(X, y, sample_weight=weights)
        # A scorer that takes no weights does not mind.
        search.set_params(scoring=lambda machine, X, y: 1.0)
        assert search.fit(X, y, sample_weight=weights).best_score_ == 1.0


class TestFolds:
    @pytest.mark.parametrize("search", [SVCCV(cv=[]), LinearSVCCV(cv=[])])
    def test_none_at_all_are_refused(self, four_classes, search):
        with pytest.raises(ValueError, match="cv must give at least one fold"):
            search.fit(*four_classes)

    def test_of_other_data_are_refused(self, four_classes):
        X, y = four_classes
        with pytest.raises(ValueError, match=f"cv must give indices of the {len(y)} samples"):
            SVCCV(cv=[([0, 1, len(y)], [2, 3])]).fit(X, y)

    def test_without_test_rows_are_refused(self, four_classes):
        with pytest.raises(ValueError, match="cv must give every fold test samples"):
            SVCCV(cv=[(np.arange(100), [])]).fit(*four_classes)

    def test_that_infinite_costs_cannot_separate_are_scored_nan(self):
        X, y = classes(2)
        first = np.append(np.flatnonzero(y == 0)[:2], np.flatnonzero(y == 1)[:2])
        cv = [(first, np.arange(80)), (np.arange(80), np.arange(80, 160))]
        grid = {"C": [np.inf, 1.0], "kernel": ["linear"]}
        theirs = GridSearchCV(SVC(), grid, cv=cv)
        with (
            pytest.warns(FitFailedWarning, match="1 fits failed out of a total of 4"),
            pytest.warns(UserWarning, match="test scores are non-finite"),
        ):
            theirs.fit(X, y)
        ours = SVCCV(Cs=grid["C"], kernel="linear", cv=cv)
        with pytest.warns(FitFailedWarning, match="1 of 4 cross-validation fits failed"):
            ours.fit(X, y)
        expected = [theirs.cv_results_[f"split{k}_test_score"] for k in range(2)]
        assert np.isnan(ours.scores_).sum() == 1
        assert_array_equal(ours.scores_[:, 0, :].T, expected)
        assert ours.C_ == theirs.best_params_["C"] == 1.0
        with pytest.raises(NotSeparableError):
            SVCCV(Cs=[np.inf], kernel="linear").fit(X, y)

    @pytest.mark.parametrize("cv", [None, 3, ShuffleSplit(3, random_state=0)])
    def test_folds_are_those_of_a_grid_search(self, four_classes, cv):
        X, y = four_classes
        assert_same_search(*searches(X, y, cv=cv), X)

    def test_folds_may_be_given(self, four_classes):
        X, y = four_classes
        groups = np.arange(len(y)) // 20
        ours = SVCCV(Cs=CS, cv=GroupKFold(4).split(X, y, groups)).fit(X, y)
        theirs = GridSearchCV(SVC(), {"C": CS}, cv=GroupKFold(4)).fit(X, y, groups=groups)
        assert_array_equal(ours.scores_.mean(axis=2).ravel(), theirs.cv_results_["mean_test_score"])

    def test_training_rows_may_miss_a_class(self, four_classes):
        X, y = four_classes
        cv = [(np.flatnonzero(y != 2), np.flatnonzero(y == 2)), (np.r_[:80], np.r_[80:160])]
        ours, theirs = searches(X, y, cv=cv)
        assert (ours.scores_[:, :, 0] == 0.0).all()
        assert_same_search(ours, theirs, X)

    def test_training_rows_of_one_class_are_refused(self, four_classes):
        X, y = four_classes
        cv = [(np.flatnonzero(y == 2), np.flatnonzero(y != 2))]
        with pytest.raises(ValueError, match="at least two classes"):
            SVCCV(cv=cv).fit(X, y)


class TestRefit:
    def test_the_search_is_the_best_machine(self, four_classes):
        X, y = four_classes
        search = SVCCV(Cs=CS, gammas=GAMMAS).fit(X, y)
        machine = SVC(C=search.C_, gamma=search.gamma_).fit(X, y)
        best = search.best_estimator_
        assert type(best) is SVC
        assert best.get_params() == machine.set_params(cache_size=1000).get_params()
        for name in ("support_", "dual_coef_", "intercept_", "objective_", "n_support_"):
            assert_array_equal(getattr(search, name), getattr(machine, name))
            assert_array_equal(getattr(best, name), getattr(machine, name))
        assert vars(best).keys() == vars(machine).keys()
        assert_array_equal(best.predict(X), machine.predict(X))

    def test_without_refit_there_are_scores_only(self, four_classes):
        X, y = four_classes
        search = SVCCV(Cs=CS).fit(X, y)
        expected = search.scores_
        search.set_params(refit=False).fit(X, y)
        assert_array_equal(search.scores_, expected)
        assert search.best_params_ == {"C": search.C_, "gamma": "scale"}
        with pytest.raises(NotFittedError, match="refit=False"):
            search.predict(X)
        with pytest.raises(AttributeError, match="refit=True"):
            search.best_estimator_  # noqa: B018

    def test_nothing_is_known_before_fit(self):
        for name in ("best_params_", "cv_results_", "best_estimator_"):
            with pytest.raises(NotFittedError, match="SVCCV instance is not fitted"):
                getattr(SVCCV(), name)


class TestCallbacks:
    def test_callbacks_see_every_problem_once(self, four_classes):
        X, y = four_classes
        recorder = Recorder()
        plain = SVCCV(Cs=CS, gammas=[0.5, 0.05], cv=4, n_jobs=2).fit(X, y)
        told = SVCCV(Cs=CS, gammas=[0.5, 0.05], cv=4, n_jobs=2).set_callbacks(recorder).fit(X, y)
        pairs, grid, folds = 6, 6, 4
        ended = sorted(number for name, number in recorder.ended if name == "problem")
        assert ended == list(range(pairs * grid * folds + pairs))
        assert_array_equal(told.scores_, plain.scores_)

    def test_a_callback_ends_the_search(self):
        X, y = load_iris(return_X_y=True)
        search = SVCCV(Cs=[1e4], cv=2, tol=1e-9).set_callbacks(Recorder(stop=lambda _: True))
        with pytest.warns(ConvergenceWarning, match="requested by a callback"):
            search.fit(np.vstack([scale(X) * 1e-3] * 5), np.tile(y, 5))

    def test_progress_bars_and_monitors_work(self, four_classes, capsys):
        X, y = four_classes
        monitor = ScoringMonitor(scoring="accuracy")
        search = SVCCV(Cs=CS, cv=2).set_callbacks(ProgressBar(), monitor).fit(X, y)
        assert search.predict(X).shape == y.shape
        assert "SVCCV" in capsys.readouterr().out


def test_a_search_that_stopped_early_warns(four_classes):
    X, y = four_classes
    message = r"max_iter=3.* \d+ of \d+ cross-validation fits"
    with pytest.warns(ConvergenceWarning, match=message) as told:
        SVCCV(max_iter=3, refit=False).fit(X, y)
    assert told[0].filename == __file__


@pytest.mark.parametrize("Cs", [[], [0.0], [1.0, -1.0], ["1"], [np.nan]])
def test_costs_that_are_not_positive_numbers_are_refused(four_classes, Cs):
    with pytest.raises(ValueError, match="Cs must contain numbers greater than 0, got"):
        SVCCV(Cs=Cs).fit(*four_classes)


@pytest.mark.parametrize("gammas", [[], [-1.0], ["unknown"], [np.inf], [None]])
def test_gammas_that_mean_nothing_are_refused(four_classes, gammas):
    with pytest.raises(ValueError, match="gammas must contain 'scale', 'auto' or finite"):
        SVCCV(gammas=gammas).fit(*four_classes)


def test_the_best_estimator_has_the_parameters_that_were_fitted():
    X, y = load_iris(return_X_y=True)
    search = SVCCV(Cs=[1.0], gammas=[0.1], cv=2).fit(X, y).set_params(kernel="linear", tol=0.5)
    assert search.best_estimator_.kernel == "rbf"
    assert search.best_estimator_.tol == 1e-3


@pytest.mark.parametrize("kind", [LinearSVCCV, PrivilegedSVCCV, SVCCV])
def test_a_score_needs_a_fit(kind):
    with pytest.raises(NotFittedError):
        kind().score([[0.0]], [0])
