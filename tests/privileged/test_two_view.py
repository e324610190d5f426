"""TwoViewSVC: SVM-2K beside exact optima, and prediction with one view or both."""

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.oracles import privileged as oracle

from widemargin import SVC, TwoViewSVC


def data(seed=0, n=40, n_classes=2):
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((n, 3)), rng.standard_normal((n, 2))
    score = X[:, 0] + Z[:, 0] + 0.5 * rng.standard_normal(n)
    return X, Z, np.argsort(np.argsort(score)) * n_classes // n


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("D", [0.0, 0.3, 5.0])
def test_it_reaches_the_exact_optimum(kernel, D):
    X, Z, y = data()
    weight = np.arange(len(y)) % 3 + 1.0
    grams = [A @ A.T if kernel == "linear" else rbf_kernel(A, gamma=0.5) for A in (X, Z)]
    costs = np.vstack([2.0 * weight, 0.7 * weight])
    sign = np.where(y == 1, 1.0, -1.0)
    exact = oracle.two_view(*grams, sign, costs, D * weight, 0.1)
    model = TwoViewSVC(
        C=2.0, C_privileged=0.7, D=D, epsilon=0.1, kernel=kernel, gamma=0.5,
        privileged_kernel=kernel, privileged_gamma=0.5,
    ).fit(X, y, privileged=Z, sample_weight=weight)  # fmt: skip
    assert model.objective_[0] == pytest.approx(exact.objective, rel=1e-6)
    assert np.ptp(model.decision_function(X) - exact.f) < 1e-6
    both = model.decision_function(X, privileged=Z)
    assert np.ptp(2.0 * both - exact.f - exact.slack) < 1e-6
    assert model.dual_gap_[0] < 1e-7


def test_views_that_need_not_agree_are_two_machines():
    X, Z, y = data(n=60, n_classes=3)
    model = TwoViewSVC(D=0.0, privileged_kernel="rbf", tol=1e-6).fit(X, y, privileged=Z)
    first, second = (SVC(multi_class="ovr", tol=1e-6).fit(A, y) for A in (X, Z))
    np.testing.assert_allclose(model.decision_function(X), first.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(
        model.decision_function(X, Z),
        0.5 * (first.decision_function(X) + second.decision_function(Z)),
        atol=1e-5,
    )
    assert (model.predict(X, Z) == model.classes_[model.decision_function(X, Z).argmax(1)]).all()


def test_without_a_second_view_it_is_one_machine():
    X, _, y = data(n=60, n_classes=3)
    with pytest.warns(UserWarning, match="without privileged features"):
        model = TwoViewSVC().fit(X, y)
    plain = SVC(multi_class="ovr").fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
    with pytest.raises(ValueError, match="Pass privileged to fit"):
        model.predict(X, privileged=X)


def test_the_second_view_is_routed_to_fit_and_to_prediction():
    X, Z, y = data()
    with sklearn.config_context(enable_metadata_routing=True):
        machine = TwoViewSVC().set_predict_request(privileged=True)
        pipeline = make_pipeline(StandardScaler(), machine).fit(X, y, privileged=Z)
        scaled = StandardScaler().fit_transform(X)
        direct = TwoViewSVC().fit(scaled, y, privileged=Z)
        np.testing.assert_array_equal(pipeline.predict(X), direct.predict(scaled))
        np.testing.assert_array_equal(
            pipeline.predict(X, privileged=-9.0 * Z), direct.predict(scaled, privileged=-9.0 * Z)
        )
        assert (pipeline.predict(X) != pipeline.predict(X, privileged=-9.0 * Z)).any()


@pytest.mark.parametrize("in_a_pipeline", [False, True])
def test_searches_hand_the_second_view_to_fit_and_score_the_first(in_a_pipeline):
    X, Z, y = data()
    with sklearn.config_context(enable_metadata_routing=True):
        machine, name = TwoViewSVC(), "C"
        if in_a_pipeline:
            machine, name = make_pipeline(StandardScaler(), machine), "twoviewsvc__C"
        search = GridSearchCV(machine, {name: [0.1, 1.0]}, cv=3).fit(X, y, privileged=Z)
        found = cross_validate(machine, X, y, params={"privileged": Z}, cv=3)
        expected = [
            clone(machine).fit(X[train], y[train], privileged=Z[train]).score(X[test], y[test])
            for train, test in StratifiedKFold(3).split(X, y)
        ]
    np.testing.assert_array_equal(found["test_score"], expected)
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(expected))


def test_a_search_scores_both_views_if_asked_to():
    X, Z, y = data()
    with sklearn.config_context(enable_metadata_routing=True):
        machine = TwoViewSVC().set_score_request(privileged=True)
        found = cross_validate(machine, X, y, params={"privileged": Z}, cv=3)["test_score"]
    expected = [
        TwoViewSVC().fit(X[train], y[train], Z[train]).score(X[test], y[test], privileged=Z[test])
        for train, test in StratifiedKFold(3).split(X, y)
    ]
    np.testing.assert_array_equal(found, expected)


def test_scores_are_of_one_view_or_of_both():
    X, Z, y = data()
    model = TwoViewSVC(C=0.1).fit(X, y, privileged=Z)
    weight = np.arange(len(y))
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    assert model.score(X, y, privileged=Z) == np.mean(model.predict(X, Z) == y)
    expected = np.average(model.predict(X, Z) == y, weights=weight)
    assert model.score(X, y, weight, privileged=Z) == pytest.approx(expected)


@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_views_give_what_dense_ones_do(container):
    X, Z, y = data()
    X, Z = (np.where(np.abs(A) < 0.5, 0.0, A) for A in (X, Z))
    dense = TwoViewSVC().fit(X, y, privileged=Z)
    other = TwoViewSVC().fit(container(X), y, privileged=container(Z))
    expected = dense.decision_function(X, privileged=Z)
    found = other.decision_function(container(X), privileged=container(Z))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("bad", [None, 0.0, -1.0, np.inf])
def test_costs_that_are_none_are_refused(bad):
    X, Z, y = data()
    for name in ("C", "D") if bad is None or bad != 0.0 else ("C", "C_privileged"):
        with pytest.raises(ValueError, match=f"'{name}' parameter"):
            TwoViewSVC(**{name: bad}).fit(X, y, privileged=Z)


def test_other_numbers_of_rows_are_refused():
    X, Z, y = data()
    model = TwoViewSVC(privileged_transformer=StandardScaler()).fit(X, y, privileged=Z)
    with pytest.raises(ValueError, match="got 39 rows, but X has 40"):
        model.predict(X, privileged=Z[1:])
    with pytest.raises(ValueError, match="privileged has 1 features, but 2"):
        model.predict(X, privileged=Z[:, 1:])
