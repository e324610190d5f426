"""PrivilegedSVC: SVM2+ and SVM1+ beside exact optima, and what it does with odd input."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tests.oracles import privileged as oracle
from tests.solvers.cases import on_path

from widemargin import SVC, LinearSVC, PrivilegedSVC
from widemargin._base.options import coupled_options, privileged_options
from widemargin.privileged import problems
from widemargin.solvers import NotSeparableError
from widemargin.solvers.coupled import solver

plus = partial(PrivilegedSVC, slack_ridge=0.0)  # SVM2+ and SVM1+
LOSSES = {"squared_hinge": oracle.svm2plus, "hinge": oracle.svm1plus}
GRAMS = {
    "linear": lambda X: X @ X.T,
    "rbf": lambda X: rbf_kernel(X, gamma=0.5),
    "laplacian": lambda X: laplacian_kernel(X, gamma=0.5),
}


def data(seed=0, n=40, columns=3, privileged=2, n_classes=2):
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((n, columns)), rng.standard_normal((n, privileged))
    score = X[:, 0] + Z[:, 0] + 0.5 * rng.standard_normal(n)
    return X, Z, np.argsort(np.argsort(score)) * n_classes // n


def quietly(model, *arguments, **named):
    """Fit without the warning that a function is 0."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The decision function")
        return model.fit(*arguments, **named)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", GRAMS)
@pytest.mark.parametrize("penalty", [1e2, 1.0, 1e-3, 1e-8])
@pytest.mark.parametrize(("columns", "privileged"), [(3, 2), (60, 5), (50, 45)])
def test_it_reaches_the_exact_optimum(loss, kernel, penalty, columns, privileged):
    X, Z, y = data(columns=columns, privileged=privileged)
    weight = np.arange(len(y)) % 3 + 1.0
    sign = np.where(y == 1, 1.0, -1.0)
    exact = LOSSES[loss](GRAMS[kernel](X), GRAMS[kernel](Z), sign, 2.0 * weight, penalty)
    model = plus(
        loss=loss, C=2.0, privileged_penalty=penalty, kernel=kernel, gamma=0.5,
        privileged_kernel=kernel, privileged_gamma=0.5,
    )  # fmt: skip
    quietly(model, X, y, privileged=Z, sample_weight=weight)
    assert model.objective_[0] == pytest.approx(exact.objective, rel=1e-6)
    np.testing.assert_allclose(model.decision_function(X) - model.intercept_, exact.f, atol=1e-6)
    np.testing.assert_allclose(model.slack_, exact.slack, atol=1e-6)
    np.testing.assert_allclose(model.slack(Z), exact.slack, atol=1e-6)
    assert model.dual_gap_[0] < 1e-7


def test_weights_of_features_are_those_of_the_exact_optimum():
    X, Z, y = data(columns=60)
    sign = np.where(y == 1, 1.0, -1.0)
    exact = oracle.svm2plus(X @ X.T, Z @ Z.T, sign, np.ones(len(y)), 1.0)
    model = plus(kernel="linear").fit(X, y, privileged=Z)
    np.testing.assert_allclose(X @ model.coef_[0], exact.f, atol=1e-6)
    np.testing.assert_allclose(
        Z @ model.privileged_coef_[0] + model.privileged_intercept_, exact.slack, atol=1e-6
    )


@pytest.mark.parametrize("penalty", [1.0, 1e-8])
def test_both_sides_of_the_decomposition_agree(penalty):
    X, Z, y = data(n=30, privileged=29)
    wide = np.hstack([Z, np.zeros((30, 10))])
    few = plus(privileged_penalty=penalty).fit(X, y, privileged=Z)
    many = plus(privileged_penalty=penalty).fit(X, y, privileged=wide)
    assert many.objective_ == pytest.approx(few.objective_, rel=1e-7)
    np.testing.assert_allclose(many.slack(wide), few.slack(Z), atol=1e-6)


def test_rows_that_share_their_privileged_columns_are_decomposed_once():
    X, Z, y = data(n=60, privileged=100)
    Z = Z[np.arange(60) % 5]
    direct = plus(privileged_kernel="precomputed").fit(X, y, privileged=Z @ Z.T)
    for rows in (Z, sparse.csr_array(Z)):
        model = plus().fit(X, y, privileged=rows)
        np.testing.assert_allclose(model.decision_function(X), direct.decision_function(X))
        np.testing.assert_allclose(model.slack_, direct.slack_, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_classes_are_told_apart_one_against_the_rest(loss):
    X, Z, y = data(n=60, n_classes=3)
    model = quietly(plus(loss=loss, C=0.5), X, y, privileged=Z)
    assert model.decision_function(X).shape == model.slack(Z).shape == (60, 3)
    for c in range(3):
        alone = quietly(plus(loss=loss, C=0.5), X, y == c, privileged=Z)
        np.testing.assert_allclose(
            model.decision_function(X)[:, c], alone.decision_function(X), atol=1e-6
        )
        np.testing.assert_allclose(model.slack(Z)[:, c], alone.slack(Z), atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_without_privileged_columns_it_is_the_plain_machine(loss):
    X, _, y = data()
    with pytest.warns(UserWarning, match="without privileged features"):
        model = plus(loss=loss, C=3.0, kernel="linear", tol=1e-8).fit(X, y)
    if loss == "hinge":
        plain = SVC(C=3.0, kernel="linear", tol=1e-8).fit(X, y)
    else:
        # The liblinear form charges C for a squared unit, and has its intercept in the norm.
        plain = LinearSVC(C=1.5, intercept_scaling=1e4, tol=1e-10, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-4)
    with pytest.raises(ValueError, match="Pass privileged to fit"):
        model.slack(X)


def test_slack_of_privileged_columns_that_single_out_every_row_is_free():
    X, _, y = data()
    model = plus(privileged_penalty=1e-8).fit(X, y, privileged=1e3 * np.eye(len(y)))
    with pytest.warns(UserWarning, match="without privileged features"):
        plain = plus().fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-6)


def test_many_rows_are_solved_without_the_whole_matrix():
    X, Z, y = data(n=80)
    whole = plus(tol=1e-6).fit(X, y, privileged=Z)
    with on_path("whole", dense_size=20):
        rows = plus(tol=1e-6).fit(X, y, privileged=Z)
    assert rows.objective_ == pytest.approx(whole.objective_, rel=1e-4)
    np.testing.assert_allclose(rows.slack(Z), whole.slack(Z), atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_sparse_and_dense_columns_give_the_same(loss, kernel):
    X, Z, y = data()
    Z = np.where(np.abs(Z) < 0.5, 0.0, Z)
    model = plus(loss=loss, privileged_kernel=kernel)
    dense = quietly(model, X, y, privileged=Z)
    expected, slack = dense.decision_function(X), dense.slack(Z)
    for container in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        model = plus(loss=loss, privileged_kernel=kernel)
        other = quietly(model, container(X), y, container(Z))
        np.testing.assert_allclose(other.decision_function(container(X)), expected, atol=1e-6)
        np.testing.assert_allclose(other.slack(container(Z)), slack, atol=1e-6)
        np.testing.assert_allclose(other.slack(Z), slack, atol=1e-6)


def test_kernels_may_be_callables_and_matrices():
    X, Z, y = data()
    named = plus(gamma=0.5, privileged_kernel="rbf", privileged_gamma=0.5)
    named.fit(X, y, privileged=Z)
    given = plus(kernel="precomputed", privileged_kernel="precomputed")
    given.fit(GRAMS["rbf"](X), y, privileged=GRAMS["rbf"](Z))
    called = plus(gamma=0.5, privileged_kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5))
    called.fit(X, y, privileged=Z)
    np.testing.assert_allclose(given.slack(GRAMS["rbf"](Z)), named.slack(Z), atol=1e-6)
    np.testing.assert_allclose(called.slack(Z), named.slack(Z), atol=1e-6)


def test_privileged_columns_have_a_transformer_of_their_own():
    X, Z, y = data()
    scaled = StandardScaler().fit(Z)
    direct = plus().fit(X, y, privileged=scaled.transform(Z))
    model = plus(privileged_transformer=StandardScaler()).fit(X, y, privileged=Z)
    np.testing.assert_array_equal(model.decision_function(X), direct.decision_function(X))
    np.testing.assert_array_equal(model.slack(Z), direct.slack(scaled.transform(Z)))
    np.testing.assert_array_equal(model.privileged_transformer_.mean_, scaled.mean_)
    with pytest.raises(AttributeError, match="privileged_transformer"):
        direct.privileged_transformer_  # noqa: B018


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_extreme_value_neither_overflows_nor_hides_other_features(loss, kernel):
    X, Z, y = data(privileged=4)
    Z[7, 2] = 1.5e72
    frame = pd.DataFrame(Z, columns=["a", "b", "index of paths", "d"])
    model = plus(loss=loss, privileged_kernel=kernel)
    with pytest.warns(UserWarning, match="features 'index of paths'"):
        quietly(model, X, y, privileged=frame)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.slack(Z)).all()
    assert model.fit_status_ == 0
    tamed = Z.copy()
    low, middle, high = np.quantile(Z[:, 2], [0.25, 0.5, 0.75])
    tamed[:, 2] = np.clip((Z[:, 2] - middle) / (high - low), -10, 10)
    by_hand = quietly(plus(loss=loss, privileged_kernel=kernel), X, y, privileged=tamed)
    np.testing.assert_allclose(model.slack(Z), by_hand.slack(tamed), atol=1e-8)
    with pytest.warns(UserWarning, match="features 2"):
        quietly(plus(loss=loss, privileged_kernel=kernel), X, y, sparse.csr_array(Z))


def test_a_function_that_vanishes_is_told():
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((200, 2)), rng.standard_normal((200, 1))
    y = rng.integers(0, 2, 200)
    with pytest.warns(UserWarning, match="decision function is identically zero") as caught:
        model = plus(kernel="linear").fit(X, y, privileged=Z)
    assert [w.filename for w in caught] == [__file__]
    np.testing.assert_allclose(model.slack_, 1.0, atol=1e-6)
    np.testing.assert_allclose(model.coef_, 0.0, atol=1e-6)


@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_extreme_costs_are_solved(C):
    X, Z, y = data()
    sign = np.where(y == 1, 1.0, -1.0)
    exact = oracle.svm2plus(X @ X.T, Z @ Z.T, sign, np.full(len(y), C), 1.0)
    model = quietly(plus(kernel="linear", C=C), X, y, privileged=Z)
    assert model.objective_[0] == pytest.approx(exact.objective, rel=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("C", [1e-8, 1e8])
@pytest.mark.parametrize("penalty", [1e-8, 1e8])
def test_slack_makes_every_set_separable_at_any_cost(kernel, C, penalty):
    X, Z, y = data()
    model = plus(kernel=kernel, C=C, privileged_penalty=penalty)
    quietly(model, X, y, privileged=Z)
    assert model.fit_status_ == 0
    assert model.dual_gap_[0] < 1e-3


def test_units_of_features_can_be_compensated_by_the_costs():
    X, Z, y = data(n=120)
    unit = quietly(plus(kernel="linear"), X, y, privileged=Z)
    small = plus(kernel="linear", C=1e-8, privileged_penalty=1e-8)
    quietly(small, 1e4 * X, y, privileged=Z)
    np.testing.assert_allclose(
        small.decision_function(1e4 * X), unit.decision_function(X), atol=1e-6
    )
    large = quietly(plus(kernel="linear"), 1e4 * X, y, privileged=Z)
    assert large.fit_status_ == 0


def test_slow_pairs_give_way_to_the_interior_point_method(monkeypatch):
    X, Z, y = data(n=30)
    pairs = plus(C=10.0, tol=1e-6).fit(X, y, privileged=Z)
    monkeypatch.setattr(privileged_options, "pair_updates", 0)
    steps = plus(C=10.0, tol=1e-6).fit(X, y, privileged=Z)
    assert steps.n_iter_[0] < 50 < pairs.n_iter_[0]
    np.testing.assert_allclose(steps.decision_function(X), pairs.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(steps.slack_, pairs.slack_, atol=1e-6)


def test_pairs_that_find_no_margin_give_way_to_the_interior_point_method(monkeypatch):
    X, Z, y = data()
    expected = plus().fit(X, y, privileged=Z)

    def give_up(*arguments, **named):
        raise NotSeparableError

    monkeypatch.setattr("widemargin.privileged.problems.solve_hinge", give_up)
    model = plus().fit(X, y, privileged=Z)
    np.testing.assert_allclose(model.slack_, expected.slack_, atol=1e-6)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_few_features_beside_many_samples_are_solved_over_features(container, monkeypatch):
    X, Z, y = data(n=300)
    by_columns = quietly(plus(kernel="linear"), container(X), y, privileged=Z)
    monkeypatch.setattr(privileged_options, "most_features", 0)
    by_pairs = quietly(plus(kernel="linear", tol=1e-8), container(X), y, privileged=Z)
    assert by_columns.n_iter_[0] < 50 < by_pairs.n_iter_[0]
    assert by_columns.objective_ == pytest.approx(by_pairs.objective_, rel=1e-8)
    np.testing.assert_allclose(
        by_columns.decision_function(X), by_pairs.decision_function(X), atol=1e-6
    )


def test_large_dual_variables_are_no_function_that_vanishes():
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((500, 50)), rng.standard_normal((500, 100))
    score = X[:, :5].sum(axis=1) / 5**0.5
    y = score + 0.5 * rng.standard_normal(500) > 0
    Z[:, 0] = np.maximum(0.0, 1.0 - np.where(y, 2.0, -2.0) * score) + 0.5 * Z[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = plus(kernel="linear").fit(X, y, privileged=Z)
    assert np.linalg.norm(model.coef_) > 1.0


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_equal_repetitions(loss):
    X, Z, y = data()
    weight = np.arange(len(y)) % 3
    model = plus(loss=loss, privileged_kernel="rbf", privileged_gamma=0.5)
    weighted = quietly(model, X, y, privileged=Z, sample_weight=weight)
    slack = weighted.slack(Z)
    assert np.isnan(weighted.slack_[weight == 0]).all()
    gamma = model._expansion.parameters.gamma
    repeated = quietly(
        plus(loss=loss, privileged_kernel="rbf", privileged_gamma=0.5, gamma=gamma),
        np.repeat(X, weight, axis=0), np.repeat(y, weight), np.repeat(Z, weight, axis=0),
    )  # fmt: skip
    np.testing.assert_allclose(slack, repeated.slack(Z), atol=1e-6)
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X))


def test_kernel_matrices_keep_the_places_of_rows_of_no_weight():
    X, Z, y = data()
    weight = np.arange(len(y)) % 2 + (np.arange(len(y)) % 3 == 0)
    named = plus(privileged_kernel="rbf", privileged_gamma=0.5)
    named.fit(X, y, privileged=Z, sample_weight=weight)
    gram = GRAMS["rbf"](Z)
    given = plus(privileged_kernel="precomputed")
    given.fit(X, y, privileged=gram, sample_weight=weight)
    called = plus(privileged_kernel=lambda A, B: rbf_kernel(A, B, gamma=0.5))
    called.fit(X, y, privileged=Z, sample_weight=weight)
    np.testing.assert_allclose(given.slack(gram), named.slack(Z), atol=1e-6)
    np.testing.assert_allclose(called.slack(Z), named.slack(Z), atol=1e-6)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_a_pipeline_hands_privileged_columns_on():
    X, Z, y = data()
    pipeline = make_pipeline(StandardScaler(), plus()).fit(X, y, privileged=Z)
    scaled = StandardScaler().fit_transform(X)
    direct = plus().fit(scaled, y, privileged=Z)
    np.testing.assert_array_equal(pipeline.decision_function(X), direct.decision_function(scaled))
    np.testing.assert_array_equal(pipeline[-1].slack(Z), direct.slack(Z))


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_cross_validation_and_searches_hand_on_the_rows_of_each_fold(container):
    X, Z, y = data(n=60)
    folds = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    pipeline = make_pipeline(StandardScaler(), plus())
    found = cross_validate(pipeline, X, y, cv=folds, params={"privileged": container(Z)})
    for (train, test), score in zip(folds, found["test_score"], strict=True):
        scale = StandardScaler().fit(X[train])
        model = plus().fit(scale.transform(X[train]), y[train], privileged=Z[train])
        assert score == model.score(scale.transform(X[test]), y[test])
    grid = {"privilegedsvc__C": [0.1, 10.0], "privilegedsvc__privileged_penalty": [0.1, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=folds).fit(X, y, privileged=container(Z))
    best = pipeline.set_params(**search.best_params_).fit(X, y, privileged=Z)
    np.testing.assert_allclose(search.decision_function(X), best.decision_function(X))


def test_without_routing_a_search_takes_fit_parameters():
    X, Z, y = data(n=60)
    search = GridSearchCV(plus(), {"C": [0.1, 1.0]}, cv=3).fit(X, y, privileged=Z)
    best = plus(**search.best_params_).fit(X, y, privileged=Z)
    np.testing.assert_array_equal(search.decision_function(X), best.decision_function(X))


BAD = {
    "rows missing": (lambda Z: Z[:-1], "got 39 rows, but X has 40"),
    "NaN": (lambda Z: np.where(Z > 1, np.nan, Z), "privileged contains NaN"),
    "infinity": (lambda Z: np.where(Z > 1, np.inf, Z), "privileged contains infinity"),
    "one dimension": (lambda Z: Z[:, 0], "privileged must be 2-dimensional, got shape"),
    "complex numbers": (lambda Z: 1j * Z, "privileged is not valid: Complex data"),
    "no columns": (lambda Z: Z[:, :0], r"privileged is not valid: .*0 feature\(s\)"),
    "dates": (lambda Z: Z.astype("datetime64[s]"), "must contain numbers, got datetime64"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_privileged_features_are_refused(kind):
    X, Z, y = data()
    spoil, message = BAD[kind]
    with pytest.raises(ValueError, match=message):
        plus().fit(X, y, privileged=spoil(Z))


def test_a_transformer_that_drops_samples_is_refused():
    X, Z, y = data()
    few = FunctionTransformer(lambda A: A[:5])
    with pytest.raises(ValueError, match="privileged_transformer must return a row for each"):
        plus(privileged_transformer=few).fit(X, y, privileged=Z)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("rarer", [0, 1])
def test_labels_as_privileged_features_leave_one_prediction_and_a_warning(loss, rarer):
    X, _, y = data()
    y = np.where(np.arange(len(X)) % 3 == 0, rarer, 1 - rarer)  # X has nothing to do with them
    with pytest.warns(UserWarning, match=f"predicted to be of class {1 - rarer}"):
        model = plus(loss=loss).fit(X, y, privileged=y[:, np.newaxis])
    assert set(model.predict(X)) == {1 - rarer}


@pytest.mark.filterwarnings("ignore:overflow")
def test_kernel_values_that_are_too_large_are_refused():
    X, Z, y = data()
    model = plus(privileged_kernel="poly", privileged_degree=40, privileged_gamma=1.0)
    with pytest.raises(ValueError, match="privileged contains values that are too large"):
        model.fit(X, y, privileged=1e7 * Z)


@pytest.mark.parametrize("name", ["C", "privileged_penalty"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
def test_bad_costs_are_refused(name, value):
    X, Z, y = data()
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        plus(**{name: value}).fit(X, y, privileged=Z)


def test_prediction_takes_no_privileged_columns():
    X, Z, y = data()
    model = plus().fit(X, y, privileged=Z)
    with pytest.raises(TypeError, match="privileged"):
        model.predict(X, privileged=Z)


def test_slack_of_other_columns_is_refused():
    X, Z, y = data()
    model = plus().fit(X, y, privileged=Z)
    with pytest.raises(ValueError, match="privileged has 3 features, but 2"):
        model.slack(X)
    given = plus(privileged_kernel="precomputed").fit(X, y, privileged=Z @ Z.T)
    with pytest.raises(ValueError, match="all 40 training"):
        given.slack(Z)
    with pytest.raises(ValueError, match="dense square matrix"):
        given.fit(X, y, privileged=Z)


def test_a_privileged_kernel_that_is_no_kernel_is_refused():
    X, Z, y = data()
    with pytest.raises(ValueError, match="privileged_kernel must be positive semidefinite"):
        plus(privileged_kernel="precomputed").fit(X, y, privileged=-(Z @ Z.T))


@pytest.mark.parametrize("side", ["kernel", "privileged_kernel"])
def test_an_indefinite_kernel_has_no_gap_in_svm1plus(side, monkeypatch):
    monkeypatch.setattr(problems, "uses_slack_space", lambda n, n_features: False)
    X, Z, y = data()
    model = plus(loss="hinge", max_iter=1000)
    assert model.fit(X, y, privileged=Z).dual_gap_[0] < 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.set_params(**{side: "sigmoid"}).fit(X, y, privileged=Z)
    assert np.isnan(model.dual_gap_[0])
    assert np.isfinite(model.decision_function(X)).all()


def test_an_indefinite_kernel_has_no_gap_in_svm2plus():
    X, Z, y = data(n=60, columns=4, privileged=4)
    model = plus(kernel="sigmoid")
    with pytest.warns(ConvergenceWarning, match="or an indefinite kernel"):
        model.fit(X, y, privileged=X + 0.1 * Z)
    assert model.fit_status_ == 1
    assert np.isnan(model.dual_gap_).all()


def test_a_fit_stopped_by_an_indefinite_kernel_warns(monkeypatch):
    monkeypatch.setattr(problems, "uses_slack_space", lambda n, n_features: False)
    monkeypatch.setattr(coupled_options, "most_updates", 2)
    monkeypatch.setattr(solver, "refine_by_active_set", lambda problem, point: None)
    X, Z, y = data()
    model = plus(loss="hinge", privileged_kernel="precomputed", tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="or an indefinite kernel"):
        model.fit(X, y, privileged=Z @ Z.T - 0.01 * np.eye(len(Z)))


def test_warnings_point_to_the_call_of_fit():
    X, _, y = data()
    with pytest.warns(UserWarning, match="without privileged features") as caught:
        plus().fit(X, y)
    assert {w.filename for w in caught} == {__file__}


def test_classes_must_weigh_something():
    X, Z, y = data()
    with pytest.raises(ValueError, match="class_weight must be positive"):
        plus(class_weight={0: 0.0, 1: 1.0}).fit(X, y, privileged=Z)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_limit_on_steps_is_told(loss):
    X, Z, y = data()
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model = plus(loss=loss, max_iter=3).fit(X, y, privileged=Z)
    assert model.fit_status_ == 1


def test_a_refit_without_privileged_columns_forgets_them():
    X, Z, y = data()
    model = plus().fit(X, y, privileged=Z)
    with pytest.warns(UserWarning, match="without privileged features"):
        model.fit(X, y)
    fitted = {"slack_", "privileged_intercept_", "privileged_dual_coef_", "_privileged_functions"}
    assert not fitted & vars(model).keys()


@pytest.mark.parametrize("name", ["multi_class", "decision_function_shape", "break_ties"])
def test_parameters_of_an_svc_that_it_has_not_are_not_read(name):
    X, Z, y = data(n=60, n_classes=3)
    model = plus(gamma=0.5).fit(X, y, privileged=Z)
    assert not hasattr(model, name)
    expected = model.decision_function(X)
    setattr(model, name, {"break_ties": True}.get(name, "ovo"))
    np.testing.assert_array_equal(model.fit(X, y, privileged=Z).decision_function(X), expected)
    np.testing.assert_array_equal(model.predict(X), model.classes_[expected.argmax(axis=1)])
