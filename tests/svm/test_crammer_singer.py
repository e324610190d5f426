"""CrammerSingerSVC as its user sees it, beside an exact QP and scikit-learn."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import scale
from tests.oracles.crammer_singer import solve_exactly

from widemargin import CrammerSingerSVC

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


def test_large_data_are_solved_in_batches():
    X, y = make_classification(
        n_samples=1500, n_features=8, n_informative=6, n_classes=5, random_state=0
    )
    loose = CrammerSingerSVC(kernel="rbf", gap_tol=1e-2).fit(X, y)
    tight = CrammerSingerSVC(kernel="rbf", gap_tol=1e-5).fit(X, y)
    assert tight.dual_gap_ <= 1e-5 < loose.dual_gap_ <= 1e-2
    assert loose.n_iter_ < tight.n_iter_
    assert loose.objective_ >= tight.objective_ * (1 - 1e-5)


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
    _, scores = model.top_two(X)
    assert (scores[:, 0] == scores[:, 1]).any()
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
def test_eight_fits_at_once_equal_the_sequential_one(kernel):
    X, y = make_classification(
        n_samples=600, n_features=10, n_informative=8, n_classes=4, random_state=0
    )
    expected = CrammerSingerSVC(kernel=kernel).fit(X, y).decision_function(X)
    with ThreadPoolExecutor(8) as pool:
        fits = pool.map(lambda _: CrammerSingerSVC(kernel=kernel).fit(X, y), range(8))
        for fit in fits:
            assert_array_equal(fit.decision_function(X), expected)
