"""CrammerSingerSVC as its user sees it, beside an exact QP and scikit-learn."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import scale
from tests.oracles.crammer_singer import solve_exactly
from tests.suites.callbacks import Recorder

from widemargin import CrammerSingerSVC
from widemargin.solvers.multiclass import linear as linear_solver

KERNELS = [
    {"kernel": "linear"},
    {"kernel": "rbf", "gamma": 0.5},
    {"kernel": "poly", "gamma": 0.3, "degree": 2, "coef0": 1.0},
    {"kernel": "laplacian", "gamma": 0.2},
]


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X)[::3], y[::3]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("scaling", [0.0, 1.0, 2.0])
def test_the_optimum_is_that_of_an_exact_solver(iris, kernel, scaling):
    X, y = iris
    weight = np.arange(len(y)) % 3 + 0.5
    intercept = {"fit_intercept": scaling > 0, "intercept_scaling": scaling or 1.0}
    model = CrammerSingerSVC(C=2.0, **kernel, **intercept).fit(X, y, sample_weight=weight)
    parameters = {name: value for name, value in kernel.items() if name != "kernel"}
    gram = pairwise_kernels(X, metric=kernel["kernel"], **parameters) + scaling**2
    exact = solve_exactly(gram, y, 2.0 * weight, 3)
    assert_allclose(model.objective_, exact.objective, rtol=1e-6)
    assert model.dual_gap_ < 1e-6
    assert_allclose(model.decision_function(X), exact.scores, atol=1e-3)


def test_linear_functions_are_those_of_liblinear(iris):
    X, y = iris
    ours = CrammerSingerSVC().fit(X, y)
    theirs = svm.LinearSVC(multi_class="crammer_singer", tol=1e-8, max_iter=10**6).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


def test_the_linear_kernel_and_linear_functions_agree(iris):
    X, y = iris
    linear = CrammerSingerSVC().fit(X, y)
    kernel = CrammerSingerSVC(kernel="poly", degree=1, gamma=1.0).fit(X, y)
    assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=1e-6)


@pytest.mark.large
def test_large_data_are_solved_in_batches():
    X, y = make_classification(
        n_samples=1500, n_features=8, n_informative=6, n_classes=5, random_state=0
    )
    loose = CrammerSingerSVC(kernel="rbf", gap_tol=1e-2).fit(X, y)
    tight = CrammerSingerSVC(kernel="rbf", gap_tol=1e-5).fit(X, y)
    assert tight.dual_gap_ <= 1e-5 < loose.dual_gap_ <= 1e-2
    assert loose.n_iter_ < tight.n_iter_
    assert loose.objective_ >= tight.objective_ * (1 - 1e-5)


@pytest.mark.large
def test_a_small_cache_does_not_change_the_answer():
    X, y = make_classification(
        n_samples=1200, n_features=6, n_informative=5, n_redundant=0, n_classes=3, random_state=0
    )
    large, small = (
        CrammerSingerSVC(kernel="rbf", cache_size=size, tol=1e-6).fit(X, y) for size in (200, 1)
    )
    assert_allclose(small.objective_, large.objective_, rtol=1e-7)


def test_the_gap_is_unknown_for_an_indefinite_kernel(iris):
    assert np.isnan(CrammerSingerSVC(kernel="sigmoid", gamma=0.1).fit(*iris).dual_gap_)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_two_best_classes_are_those_of_the_scores(iris, kernel):
    X, y = iris
    names = np.array(["setosa", "versicolor", "virginica"])
    model = CrammerSingerSVC(kernel=kernel).fit(X, names[y])
    labels, scores = model.top_two(X)
    everything = model.decision_function(X)
    assert_allclose(scores, -np.sort(-everything, axis=1)[:, :2], atol=1e-7)
    places = np.searchsorted(names, labels)
    assert_array_equal(scores, np.take_along_axis(everything, places, axis=1))
    assert (places[:, 0] != places[:, 1]).all()
    assert_array_equal(labels[:, 0], model.predict(X))


def test_equal_scores_of_rivals_are_settled_in_the_same_way_everywhere():
    X, y = make_classification(
        n_samples=90, n_features=5, n_informative=4, n_redundant=0, n_classes=3, class_sep=0.1,
        random_state=0,
    )  # fmt: skip
    model = CrammerSingerSVC().fit(X, y)
    labels, scores = model.top_two(X)
    tied = scores[:, 0] == scores[:, 1]
    assert tied.any()
    assert (labels[tied, 0] < labels[tied, 1]).all()
    places = np.searchsorted(model.classes_, labels)
    assert_array_equal(scores, np.take_along_axis(model.decision_function(X), places, axis=1))
    order = np.random.default_rng(0).permutation(len(y))
    again = CrammerSingerSVC().fit(X[order], y[order])
    assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_two_classes_have_one_score(iris, kernel):
    X, y = iris
    X, y = X[y > 0], y[y > 0]
    model = CrammerSingerSVC(kernel=kernel).fit(X, y)
    assert model.decision_function(X).shape == y.shape
    assert_array_equal(model.predict(X), np.where(model.decision_function(X) > 0, 2, 1))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_fit_that_is_stopped_warns_and_can_be_used(kernel):
    X, y = make_classification(
        n_samples=1000, n_features=6, n_informative=5, n_redundant=0, n_classes=4, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1.*gap"):
        model = CrammerSingerSVC(kernel=kernel, max_iter=1).fit(X, y)
    assert model.fit_status_ == model.n_iter_ == 1
    assert model.dual_gap_ > 1e-3
    assert model.score(X, y) > 0.4


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_fit_that_a_callback_stopped_goes_on_to_the_same_answer(iris, kernel, monkeypatch):
    monkeypatch.setattr(linear_solver.options, "newton_passes", 1)
    X, y = iris
    model = CrammerSingerSVC(kernel=kernel, C=10.0, warm_start=True)
    model.set_callbacks(Recorder(stop=lambda context: context.task_name == "slice"))
    with pytest.warns(ConvergenceWarning, match="requested by a callback"):
        model.fit(X, y)
    stopped = model.objective_
    model.set_callbacks().fit(X, y)
    whole = CrammerSingerSVC(kernel=kernel, C=10.0).fit(X, y)
    assert stopped > 1.0001 * whole.objective_
    assert_allclose(model.objective_, whole.objective_, rtol=1e-8)
    again = model.fit(X, y).n_iter_
    assert again < whole.n_iter_


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_smaller_costs_and_other_labels_may_follow(iris, kernel):
    X, y = iris
    model = CrammerSingerSVC(kernel=kernel, C=10.0, warm_start=True).fit(X, y)
    other = np.where(np.arange(len(y)) % 7 == 0, (y + 1) % 3, y)
    for C, labels in ((0.1, y), (1.0, other)):
        model.set_params(C=C).fit(X, labels)
        cold = CrammerSingerSVC(kernel=kernel, C=C).fit(X, labels)
        assert_allclose(model.objective_, cold.objective_, rtol=1e-8)
    model.fit(X[:-1], y[:-1])
    assert_array_equal(
        model.decision_function(X),
        CrammerSingerSVC(kernel=kernel).fit(X[:-1], y[:-1]).decision_function(X),
    )


def test_kernel_values_may_be_given_or_computed_by_a_function(iris):
    X, y = iris
    weight = np.arange(len(y)) % 3 * 1.0
    by_name = CrammerSingerSVC(kernel="rbf", gamma=0.5).fit(X, y, sample_weight=weight)
    expected = by_name.decision_function(X)

    def kernel(X, Y):
        return pairwise_kernels(X, Y, metric="rbf", gamma=0.5)

    by_function = CrammerSingerSVC(kernel=kernel).fit(X, y, sample_weight=weight)
    assert_allclose(by_function.decision_function(X), expected, atol=1e-8)
    given = CrammerSingerSVC(kernel="precomputed").fit(kernel(X, X), y, sample_weight=weight)
    assert_allclose(given.decision_function(kernel(X, X)), expected, atol=1e-8)
    assert_array_equal(given.support_, by_name.support_)
    assert given.dual_gap_ < 1e-9
    with pytest.raises(ValueError, match="square matrix"):
        CrammerSingerSVC(kernel="precomputed").fit(X, y)


def test_attributes_of_another_kernel_do_not_stay(iris):
    X, y = iris
    model = CrammerSingerSVC(kernel="rbf").fit(X, y)
    model.set_params(kernel="linear").fit(X, y)
    for name in ("support_", "support_vectors_", "dual_coef_"):
        assert not hasattr(model, name)
    model.set_params(kernel="rbf").fit(X, y)
    assert not hasattr(model, "coef_")
    assert_array_equal(
        model.decision_function(X), CrammerSingerSVC(kernel="rbf").fit(X, y).decision_function(X)
    )


@pytest.mark.parametrize("kernel", KERNELS[:2], ids=str)
def test_margins_by_class_are_those_of_an_exact_solver(iris, kernel):
    X, y = iris
    model = CrammerSingerSVC(**kernel, class_margin={0: 0.5, 2: 2.0}).fit(X, y)
    parameters = {name: value for name, value in kernel.items() if name != "kernel"}
    gram = pairwise_kernels(X, metric=kernel["kernel"], **parameters) + 1.0
    exact = solve_exactly(gram, y, np.ones(len(y)), 3, np.array([0.5, 1.0, 2.0])[y])
    assert_allclose(model.objective_, exact.objective, rtol=1e-6)
    assert_allclose(model.class_margin_, [0.5, 1.0, 2.0])


@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.large
def test_features_need_not_be_scaled(load, kernel):
    X, y = load(return_X_y=True)
    model = CrammerSingerSVC(kernel=kernel, degree=1, gamma=1.0).fit(X, y)
    assert model.dual_gap_ < 1e-6


def test_without_a_gap_the_tolerance_decides(iris):
    settings = {"kernel": "sigmoid", "gamma": 0.1, "gap_tol": 1e-9}
    model = CrammerSingerSVC(**settings).fit(*iris)
    assert np.isnan(model.dual_gap_)
    assert model.fit_status_ == 0


def test_rows_of_many_zeros_may_be_sparse(iris):
    X, y = iris
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    for kernel in ("linear", "rbf"):
        dense = CrammerSingerSVC(kernel=kernel).fit(X, y)
        other = CrammerSingerSVC(kernel=kernel).fit(sparse.csr_array(X), y)
        assert_allclose(
            other.decision_function(sparse.csr_array(X)), dense.decision_function(X), atol=1e-6
        )


def test_verbose_prints_a_line(iris, capsys):
    CrammerSingerSVC(verbose=True).fit(*iris)
    assert "[CrammerSingerSVC]" in capsys.readouterr().out


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.large
def test_eight_fits_at_once_equal_the_sequential_one(kernel):
    X, y = make_classification(
        n_samples=600, n_features=10, n_informative=8, n_classes=4, random_state=0
    )
    expected = CrammerSingerSVC(kernel=kernel).fit(X, y).decision_function(X)
    with ThreadPoolExecutor(8) as pool:
        fits = pool.map(lambda _: CrammerSingerSVC(kernel=kernel).fit(X, y), range(8))
        for fit in fits:
            assert_array_equal(fit.decision_function(X), expected)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_scores_of_any_size_are_told_apart_and_predictions_are_their_argmax(kernel):
    X, y = load_iris(return_X_y=True)
    X = 1e-5 * (X - X.mean(axis=0))
    model = CrammerSingerSVC(kernel=kernel, C=1.0).fit(X, y)
    assert model.score(X, y) > 0.6
    assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))
    assert_array_equal(model.top_two(X)[0][:, 0], model.predict(X))


def test_a_gap_that_rounding_keeps_open_ends_the_solver():
    X, y = (array[::3] for array in load_wine(return_X_y=True))
    model = CrammerSingerSVC(kernel="poly", degree=1, gamma=1.0, gap_tol=1e-16)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.dual_gap_ < 1e-6


def test_a_class_of_weight_0_may_be_there_when_a_fit_goes_on():
    X, y = load_iris(return_X_y=True)
    model = CrammerSingerSVC(warm_start=True, class_weight={0: 0.0}, max_iter=100_000).fit(X, y)
    again = model.fit(X, y)
    assert np.isfinite(again.objective_)
    assert again.dual_gap_ < 1e-2


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_entries_that_are_stored_in_parts_are_one_in_prediction(kernel):
    X, y = load_iris(return_X_y=True)
    whole = sparse.csr_array(X)
    data, indices = np.repeat(whole.data / 2.0, 2), np.repeat(whole.indices, 2)
    halves = sparse.csr_array((data, indices, 2 * whole.indptr), shape=X.shape)
    model = CrammerSingerSVC(kernel=kernel).fit(whole, y)
    assert_allclose(model.decision_function(halves), model.decision_function(whole), rtol=1e-10)


def test_a_callable_kernel_may_look_at_rows_that_are_no_numbers():
    words, y = np.array(["aa", "ab", "b", "bb", "c", "cb"]), [0, 0, 1, 1, 2, 2]

    def letters(A, B):
        return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])

    assert CrammerSingerSVC(kernel=letters).fit(words, y).predict(words).shape == (6,)


def test_sparse_kernel_matrices_and_huge_values_are_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(TypeError, match="Sparse precomputed"):
        CrammerSingerSVC(kernel="precomputed").fit(sparse.csr_array(X @ X.T), y)
    with pytest.raises(ValueError, match="X must contain values of magnitude up to"):
        CrammerSingerSVC().fit(1e200 * X, y)


def test_callbacks_evaluate_the_present_fit_not_the_kernel_of_an_earlier_one(iris):
    X, y = iris
    seen = []

    class Watch(Recorder):
        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            if fitted_estimator is not None and context.task_name == "problem":
                seen.append(fitted_estimator.decision_function(X))

    model = CrammerSingerSVC(kernel="rbf").fit(X, y)
    model.set_params(kernel="linear").set_callbacks(Watch()).fit(X, y)
    assert_array_equal(seen, [model.decision_function(X)])
