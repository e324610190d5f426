"""LinearSVCCV finds what GridSearchCV over LinearSVC finds."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import make_scorer, recall_score
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.preprocessing import scale
from tests.suites.callbacks import Recorder

from widemargin import LinearSVC, LinearSVCCV

CS = [10.0, 0.001, 0.1, 1.0]


@pytest.fixture(scope="module")
def data():
    return make_classification(
        n_samples=300,
        n_features=8,
        n_informative=5,
        n_classes=3,
        flip_y=0.2,
        class_sep=0.6,
        random_state=0,
    )


@pytest.mark.parametrize(
    "way",
    [
        {},
        {"loss": "hinge", "max_iter": 100_000},
        {"dual": True, "max_iter": 100_000},
        {"multi_class": "crammer_singer", "max_iter": 100_000, "tol": 1e-2},
        {"class_weight": "balanced", "intercept_scaling": 2.0},
    ],
    ids=str,
)
def test_scores_are_those_of_a_grid_search(data, way):
    X, y = data
    ours = LinearSVCCV(Cs=CS, **way).fit(X, y)
    theirs = GridSearchCV(LinearSVC(**way), {"C": CS}).fit(X, y)
    assert ours.best_params_ == theirs.best_params_
    assert_allclose(ours.best_score_, theirs.best_score_)
    for name in ("mean_test_score", "rank_test_score", "split3_test_score", "param_C"):
        assert_allclose(ours.cv_results_[name], theirs.cv_results_[name].astype(float))
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_allclose(ours.coef_, theirs.best_estimator_.coef_, atol=1e-6)


def test_folds_and_scorers_are_taken_as_in_a_grid_search(data):
    X, y = data
    cv = ShuffleSplit(3, random_state=0)
    scoring = make_scorer(recall_score, average="macro")
    ours = LinearSVCCV(Cs=CS, cv=cv, scoring=scoring).fit(X, y)
    theirs = GridSearchCV(LinearSVC(), {"C": CS}, cv=cv, scoring=scoring).fit(X, y)
    assert ours.scores_.shape == (4, 3)
    assert_allclose(ours.scores_.mean(axis=1), theirs.cv_results_["mean_test_score"])
    assert ours.score(X, y) == theirs.score(X, y)


def test_of_equal_scores_the_first_wins():
    X, y = load_iris(return_X_y=True)
    X, y = scale(X)[:100], y[:100]
    for Cs in ([10.0, 1.0, 100.0], [1.0, 100.0, 10.0]):
        search = LinearSVCCV(Cs=Cs).fit(X, y)
        assert (search.scores_ == 1.0).all()
        assert search.best_params_ == {"C": Cs[0]}


def test_the_number_of_jobs_does_not_change_bits(data):
    X, y = data
    one, two = (LinearSVCCV(Cs=CS, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert_array_equal(one.scores_, two.scores_)
    assert_array_equal(one.coef_, two.coef_)


def test_without_refit_there_are_scores_only(data):
    X, y = data
    search = LinearSVCCV(Cs=CS, refit=False).fit(X, y)
    assert search.C_ in CS
    with pytest.raises(NotFittedError, match="refit=False"):
        search.predict(X)
    fitted = LinearSVCCV(Cs=CS).fit(X, y).set_params(refit=False).fit(X, y)
    for name in ("coef_", "intercept_", "objective_", "dual_gap_", "n_iter_"):
        assert not hasattr(fitted, name)
    with pytest.raises(NotFittedError, match="not fitted"):
        LinearSVCCV().best_params_  # noqa: B018


def test_costs_must_be_positive(data):
    for Cs in ([], [0.0], [1.0, np.inf], ["1"]):
        with pytest.raises(ValueError, match="Cs must contain finite numbers"):
            LinearSVCCV(Cs=Cs).fit(*data)


def test_folds_that_stopped_early_are_reported(data):
    with pytest.warns(ConvergenceWarning) as caught:
        LinearSVCCV(Cs=[0.1], loss="hinge", max_iter=1).fit(*data)
    folds, whole = (str(warning.message) for warning in caught)
    assert "15 of 15 cross-validation fits did not converge" in folds
    assert "max_iter=1" in whole


def test_the_best_machine_can_be_had_without_the_search(data):
    X, y = data
    search = LinearSVCCV(Cs=CS).fit(X, y)
    machine = search.best_estimator_
    assert type(machine) is LinearSVC
    assert machine.C == search.C_
    assert_array_equal(machine.decision_function(X), search.decision_function(X))
    with pytest.raises(AttributeError, match="refit=True"):
        LinearSVCCV(Cs=CS, refit=False).fit(X, y).best_estimator_  # noqa: B018


def test_a_callback_ends_the_whole_path():
    X, y = make_classification(n_samples=300, n_features=30, flip_y=0.3, random_state=0)
    recorder = Recorder(stop=lambda _: True)
    search = LinearSVCCV(Cs=[1.0, 100.0], cv=2, loss="hinge", tol=1e-10, max_iter=10**6)
    with pytest.warns(ConvergenceWarning):
        search.set_callbacks(recorder).fit(X, y)
    assert recorder.hooks[0] == "setup"
    assert recorder.hooks[-1] == "teardown"
    assert search.scores_.shape == (2, 2)
