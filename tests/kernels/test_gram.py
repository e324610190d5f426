"""Gram matrices: blocks, rows and subsets of one matrix, wherever its values come from."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from widemargin.kernels import KernelGram, MatrixGram, kernel_function
from widemargin.kernels.functions import PlusOne
from widemargin.kernels.gram import gram_matrices

RBF = kernel_function("rbf", gamma=0.5)


def data(rows=30, columns=4, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, columns))


def sparse_data(density, rows=40, columns=50):
    return sp.random_array((rows, columns), density=density, format="csr", rng=1)


GRAMS = {
    "dense rbf": lambda: KernelGram(RBF, data()),
    "sparse rbf": lambda: KernelGram(RBF, sp.csr_array(data())),
    "dense linear": lambda: KernelGram(kernel_function("linear"), data()),
    "laplacian": lambda: KernelGram(kernel_function("laplacian", 0.2), data()),
    "matrix": lambda: MatrixGram(rbf_kernel(data(), gamma=0.5)),
}
each_gram = pytest.mark.parametrize("make", GRAMS.values(), ids=GRAMS.keys())


@each_gram
def test_blocks_are_parts_of_the_whole(make):
    gram = make()
    whole = gram.block(slice(None), slice(None))
    assert whole.shape == (gram.size, gram.size) == (30, 30)
    choices = [slice(None), slice(3, 11), np.array([5]), np.array([7, 2, 29]), np.arange(0)]
    for rows in choices:
        for columns in choices:
            np.testing.assert_array_equal(gram.block(rows, columns), whole[rows][:, columns])


@each_gram
def test_the_diagonal_is_that_of_the_whole(make):
    gram = make()
    whole = gram.block(slice(None), slice(None))
    assert gram.diagonal().dtype == np.float64
    np.testing.assert_allclose(gram.diagonal(), whole.diagonal(), rtol=1e-13)


@each_gram
def test_rows_stand_at_the_places_given(make):
    gram = make()
    whole = gram.block(slice(None), slice(None))
    index = np.array([4, 0, 17])
    array, places = gram.rows(index)
    np.testing.assert_array_equal(array[places], whole[index])
    assert gram.max_rows == gram.size


@each_gram
def test_a_subset_has_the_same_values(make):
    gram = make()
    whole = gram.block(slice(None), slice(None))
    index = np.array([8, 1, 20, 3])
    part = gram.subset(index)
    assert part.size == 4
    assert part.positive_semidefinite == gram.positive_semidefinite
    everything = part.block(slice(None), slice(None))
    np.testing.assert_array_equal(everything, whole[np.ix_(index, index)])
    np.testing.assert_array_equal(part.diagonal(), gram.diagonal()[index])


@each_gram
def test_float64_does_not_change_what_is_exact(make):
    gram = make()
    before = gram.block(slice(None), slice(None)).copy()
    gram.use_float64()
    array, places = gram.rows(np.arange(30))
    np.testing.assert_array_equal(array[places], before)


@pytest.mark.parametrize(("dtype", "offset", "error"), [("f8", 1e6, 1e-9), ("f4", 1e3, 1e-5)])
def test_a_common_offset_costs_the_rbf_kernel_no_digits(dtype, offset, error):
    X = (data() + offset).astype(dtype)
    gram = KernelGram(RBF, X)
    moved = X.astype(np.float64) - offset
    reference = rbf_kernel(moved, gamma=0.5)
    np.testing.assert_allclose(gram.block(slice(None)), reference, rtol=0, atol=error)
    np.testing.assert_allclose(gram.as_float32(0).block(slice(None)), reference, rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        gram.subset(np.arange(9)).cross_values(X), reference[:, :9], atol=error
    )


def test_a_common_offset_costs_the_rbf_kernel_plus_one_no_digits():
    X = data()
    values = KernelGram(PlusOne(RBF), X + 1e6).block(slice(None))
    np.testing.assert_allclose(values, 1.0 + rbf_kernel(X, gamma=0.5), rtol=0, atol=1e-9)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_new_rows_meet_these_rows(container):
    X, new = data(), data(7, seed=1)
    values = KernelGram(RBF, container(X)).cross_values(container(new))
    np.testing.assert_allclose(values, rbf_kernel(new, X, gamma=0.5), rtol=1e-12)


def test_data_are_left_as_they_are():
    X = data() + 5.0
    before = X.copy()
    KernelGram(RBF, X).block(slice(None))
    np.testing.assert_array_equal(X, before)


@each_gram
def test_the_single_version_differs_by_its_precision(make):
    gram = make()
    whole = gram.block(slice(None), slice(None))
    values = gram.as_float32(1 << 20).block(slice(None), slice(None))
    np.testing.assert_allclose(values, whole, rtol=0, atol=1e-5 * np.abs(whole).max())


def test_the_single_version_of_kernel_values_is_float32():
    for X in (data(), sp.csr_array(data()), sparse_data(0.01)):
        assert KernelGram(RBF, X).as_float32(1 << 20).block(slice(None)).dtype == np.float32


def test_the_single_version_of_a_matrix_is_itself():
    gram = MatrixGram(np.eye(3))
    assert gram.as_float32(0) is gram


def test_sparse_rows_become_dense_where_they_fit_and_are_well_filled():
    filled, nearly_empty = sparse_data(0.3), sparse_data(0.005)
    dense_bytes = 4 * filled.shape[0] * filled.shape[1]
    assert not sp.issparse(KernelGram(RBF, filled).as_float32(dense_bytes).X)
    assert sp.issparse(KernelGram(RBF, filled).as_float32(dense_bytes - 1).X)
    assert sp.issparse(KernelGram(RBF, nearly_empty).as_float32(dense_bytes).X)


def test_numbers_too_large_for_the_kernel_are_noticed():
    huge = np.full((2, 2), 1e200)
    for function in (RBF, kernel_function("linear"), kernel_function("poly", degree=4)):
        assert KernelGram(function, data()).is_finite()
        with np.errstate(over="ignore", invalid="ignore"):
            assert not KernelGram(function, huge * [[1.0], [-1.0]]).is_finite()
    assert MatrixGram(np.eye(2)).is_finite()
    assert not MatrixGram(np.array([[1.0, np.nan], [np.nan, 1.0]])).is_finite()


GAMMAS = [0.3, 0.01, 2.0]
SWEPT = np.random.default_rng(0).normal(size=(60, 7))
MEMORY = {"none": 0.0, "one": 1.5, "two": 2.0}


def with_long_indices(X):
    X = sp.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


CONTAINERS = {"dense": np.asarray, "sparse": sp.csr_array, "long": with_long_indices}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
@pytest.mark.parametrize("name", ["poly", "rbf", "sigmoid", "laplacian"])
@pytest.mark.parametrize("memory", ["one", "two"])
def test_a_sweep_gives_every_gamma_its_matrix(name, container, memory):
    def gram_at(gamma):
        return KernelGram(kernel_function(name, gamma, coef0=1.0), container(SWEPT))

    cache_bytes = MEMORY[memory] * 8 * len(SWEPT) ** 2
    for gamma, gram in zip(GAMMAS, gram_matrices(gram_at, GAMMAS, cache_bytes), strict=True):
        expected = gram_at(gamma)
        # The exponential of the Laplacian is NumPy's, which may round long stripes otherwise.
        np.testing.assert_allclose(gram.matrix, expected.block(slice(None)), rtol=1e-15, atol=0)
        assert gram.positive_semidefinite == expected.positive_semidefinite


def test_a_sweep_without_memory_gives_nothing():
    grams = gram_matrices(
        lambda gamma: KernelGram(kernel_function("rbf", gamma), SWEPT), GAMMAS, MEMORY["none"]
    )
    assert list(grams) == [None] * 3


def test_a_sweep_passes_matrices_on():
    gram = MatrixGram(SWEPT @ SWEPT.T)
    assert list(gram_matrices(lambda gamma: gram, [0.0], MEMORY["none"])) == [gram]
