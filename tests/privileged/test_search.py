"""PrivilegedSVCCV finds what a grid search finds."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from tests.suites.callbacks import Recorder

from widemargin import PrivilegedSVC, PrivilegedSVCCV
from widemargin._base.options import coupled_options
from widemargin.privileged.problems import SVM1Plus
from widemargin.privileged.slack_space import SlackSpace

Cs, PENALTIES = [0.1, 1.0, 10.0], [0.01, 1.0]
RIDGES = [0.0]  # no plain SVM


def data(n=60, n_classes=2):
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
    score = X[:, 0] + Z[:, 0] + 0.5 * rng.standard_normal(n)
    return X, Z, np.argsort(np.argsort(score)) * n_classes // n


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("privileged_kernel", ["linear", "rbf"])
@pytest.mark.filterwarnings("ignore:The decision function")
def test_scores_are_those_of_a_grid_search(loss, privileged_kernel):
    X, Z, y = data(n_classes=3)
    shared = {
        "loss": loss, "privileged_kernel": privileged_kernel, "tol": 1e-6,
        "privileged_transformer": StandardScaler(),
    }  # fmt: skip
    cv = StratifiedKFold(3, shuffle=True, random_state=0)
    ridges = [0.0, 0.3] if loss == "squared_hinge" else RIDGES
    model = PrivilegedSVCCV(
        Cs=Cs, privileged_penalties=PENALTIES, slack_ridges=ridges, cv=cv, **shared
    )
    model.fit(X, y, privileged=Z)
    grid = {"C": Cs, "privileged_penalty": PENALTIES, "slack_ridge": ridges}
    search = GridSearchCV(PrivilegedSVC(**shared), grid, cv=cv).fit(X, y, privileged=Z)
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )
    assert model.best_params_ == search.best_params_
    np.testing.assert_allclose(model.decision_function(X), search.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(model.slack(Z), search.best_estimator_.slack(Z), atol=1e-6)
    best = model.best_estimator_
    assert type(best) is PrivilegedSVC
    np.testing.assert_array_equal(best.slack(Z), model.slack(Z))


@pytest.mark.parametrize("privileged_kernel", ["linear", "rbf"])
def test_all_costs_penalties_and_classes_share_one_decomposition(privileged_kernel, monkeypatch):
    X, Z, y = data(n_classes=3)
    name = "of_features" if privileged_kernel == "linear" else "of_gram"
    decompose, calls = getattr(SlackSpace, name), []

    def counted(*arguments, **named):
        calls.append(name)
        return decompose(*arguments, **named)

    monkeypatch.setattr(SlackSpace, name, staticmethod(counted))
    model = PrivilegedSVCCV(
        Cs=Cs,
        privileged_penalties=PENALTIES,
        slack_ridges=RIDGES,
        privileged_kernel=privileged_kernel,
        cv=3,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The decision function")
        model.fit(X, y, privileged=Z)
    assert len(calls) == 3 + 1  # each fold, and all rows


def test_kernel_matrices_are_cut_on_both_sides():
    X, Z, y = data()
    named = PrivilegedSVCCV(
        Cs=Cs, privileged_penalties=PENALTIES, slack_ridges=RIDGES, gamma=0.5,
        privileged_kernel="rbf", privileged_gamma=0.5,
    ).fit(X, y, privileged=Z)  # fmt: skip
    given = PrivilegedSVCCV(
        Cs=Cs, privileged_penalties=PENALTIES, slack_ridges=RIDGES, kernel="precomputed",
        privileged_kernel="precomputed",
    )  # fmt: skip
    given.fit(rbf_kernel(X, gamma=0.5), y, privileged=rbf_kernel(Z, gamma=0.5))
    np.testing.assert_array_equal(given.scores_, named.scores_)


def test_sparse_columns_and_weights_are_taken():
    X, Z, y = data()
    weight = np.arange(60) % 3 + 1.0
    models = [
        PrivilegedSVCCV(Cs=Cs, privileged_penalties=PENALTIES, slack_ridges=RIDGES).fit(
            X, y, rows, weight
        )
        for rows in (Z, sparse.csr_array(Z))
    ]
    np.testing.assert_array_equal(models[0].scores_, models[1].scores_)


def test_without_privileged_columns_there_is_no_penalty_to_choose():
    X, _, y = data()
    with pytest.warns(UserWarning, match="without privileged features"):
        model = PrivilegedSVCCV(Cs=Cs, privileged_penalties=PENALTIES).fit(X, y)
    np.testing.assert_array_equal(model.scores_[:, 0], model.scores_[:, 1])
    np.testing.assert_array_equal(model.scores_[:, :, 0], model.scores_[:, :, 2])


def test_without_a_refit_there_are_scores_and_no_predictions():
    X, Z, y = data()
    model = PrivilegedSVCCV(Cs=Cs, privileged_penalties=PENALTIES, slack_ridges=RIDGES, refit=False)
    model.fit(X, y, privileged=Z)
    assert model.scores_.shape == (3, 2, 1, 5)
    with pytest.raises(AttributeError, match="refit"):
        model.best_estimator_  # noqa: B018


def test_one_weight_for_all_rows_is_taken():
    X, Z, y = data()
    search = PrivilegedSVCCV(Cs=Cs, privileged_penalties=PENALTIES, slack_ridges=RIDGES, cv=3)
    one = search.fit(X, y, Z, 2.0).scores_
    np.testing.assert_array_equal(one, search.fit(X, y, Z, np.full(60, 2.0)).scores_)


def test_folds_that_cannot_be_scored_are_refused():
    X, Z, y = data()
    with pytest.raises(ValueError, match="cv must give at least one fold"):
        PrivilegedSVCCV(cv=[]).fit(X, y, Z)
    rows, weight = np.arange(60), np.ones(60)
    weight[:20] = 0.0
    folds = [(rows[20:], rows[:20]), (rows[:40], rows[40:])]
    with pytest.raises(ValueError, match="fold 0 has none"):
        PrivilegedSVCCV(cv=folds).fit(X, y, Z, weight)


def test_a_callback_ends_the_fits_of_folds(monkeypatch):
    monkeypatch.setattr(coupled_options, "slice_visits", 1)
    X, Z, y = data()
    recorder = Recorder(stop=lambda context: context.task_name == "slice")
    search = PrivilegedSVCCV(
        Cs=Cs,
        privileged_penalties=PENALTIES,
        slack_ridges=RIDGES,
        loss="hinge",
        kernel="linear",
        cv=3,
    ).set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning, match="requested by a callback") as caught:
        search.fit(X, y, Z)
    assert "18 of 18 cross-validation fits" in str(caught[0].message)
    slices = [number for name, number in recorder.ended if name == "slice"]
    assert slices == [0, 0, 0, 0]  # once in each fold, and with all rows


@pytest.mark.parametrize(("kernel", "warm"), [("rbf", True), ("sigmoid", False)])
def test_fits_start_afresh_where_a_kernel_may_be_indefinite(kernel, warm, monkeypatch):
    X, Z, y = data()
    solver_of, started = SVM1Plus.solver, []

    def watched(self, *arguments):
        solve = solver_of(self, *arguments)

        def watching(sign, start=None, *arguments):
            started.append(start is not None)
            return solve(sign, start, *arguments)

        return watching

    monkeypatch.setattr(SVM1Plus, "solver", watched)
    PrivilegedSVCCV(
        Cs=Cs,
        privileged_penalties=[1.0],
        slack_ridges=RIDGES,
        loss="hinge",
        kernel=kernel,
        gamma=0.1,
        cv=2,
        refit=False,
    ).fit(X, y, Z)
    assert started == [False, warm, warm] * 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("parameters", [{"max_iter": 1}, {"kernel": "precomputed"}])
def test_fits_start_afresh_where_the_last_solution_is_not_feasible(parameters):
    X, _, y = data(n_classes=3)
    Z = X + 0.1 * np.random.default_rng(1).standard_normal(X.shape)
    search = PrivilegedSVCCV(cv=3, **parameters)
    search.fit(X @ X.T if "kernel" in parameters else X, y, privileged=Z)
    assert np.isfinite(search.scores_).all()


@pytest.mark.parametrize("bad", [[], [0.0], [np.inf], ["1"]])
def test_bad_grids_are_refused(bad):
    X, Z, y = data()
    with pytest.raises(ValueError, match="privileged_penalties must contain"):
        PrivilegedSVCCV(privileged_penalties=bad).fit(X, y, privileged=Z)
    with pytest.raises(ValueError, match="Cs must contain"):
        PrivilegedSVCCV(Cs=bad).fit(X, y, privileged=Z)
