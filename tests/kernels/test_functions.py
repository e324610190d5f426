"""Kernel functions beside scikit-learn's, to the last places of the written-out exponential."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import pairwise_kernels
from threadpoolctl import threadpool_limits

from widemargin.kernels import KERNEL_NAMES, kernel_function
from widemargin.kernels.functions import squared_norms

KERNELS = [
    kernel_function("linear"),
    kernel_function("poly", gamma=0.3, degree=3, coef0=0.5),
    kernel_function("rbf", gamma=0.7),
    kernel_function("sigmoid", gamma=0.2, coef0=-0.1),
    kernel_function("laplacian", gamma=0.4),
]
CONTAINERS = {"dense": np.ascontiguousarray, "csr_matrix": sp.csr_matrix, "csr_array": sp.csr_array}
PRECISION = {np.float32: 2e-6, np.float64: 1e-14}

each_kernel = pytest.mark.parametrize("function", KERNELS, ids=lambda function: function.name)
each_container = pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS.keys())
each_dtype = pytest.mark.parametrize("dtype", PRECISION, ids=lambda dtype: dtype.__name__)


def data(rows, columns, dtype=np.float64, seed=0):
    """Rows with about half of their entries 0, and some rows that are empty."""
    generator = np.random.default_rng(seed)
    X = generator.standard_normal((rows, columns))
    X[generator.random(X.shape) < 0.5] = 0.0
    if rows > 2:
        X[[0, rows // 2, rows - 1]] = 0.0
    return X.astype(dtype)


def expected(function, X, Y):
    return pairwise_kernels(
        X.astype(np.float64),
        Y.astype(np.float64),
        metric=function.name,
        filter_params=True,
        gamma=function.gamma,
        degree=function.degree,
        coef0=function.coef0,
    )


def exponentials(exponents, dtype):
    """What the rbf kernel makes of squared distances that are given by the norms alone."""
    origin, norms = np.zeros((1, 1), dtype), np.zeros(1, dtype)
    X = np.zeros((len(exponents), 1), dtype)
    return kernel_function("rbf").matrix(X, origin, -exponents.astype(dtype), norms)[:, 0]


def test_these_are_all_kernels():
    assert tuple(sorted(KERNEL_NAMES)) == tuple(sorted(function.name for function in KERNELS))


@each_kernel
@each_container
@each_dtype
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 7, 5), (7, 1, 5), (13, 530, 6), (530, 13, 6)])
def test_values_are_scikit_learns(function, container, dtype, shape):
    m, n, d = shape
    X, Y = data(m, d, dtype, 1), data(n, d, dtype, 2)
    values = function.matrix(container(X), container(Y))
    reference = expected(function, X, Y)
    assert values.dtype == dtype
    assert values.shape == (m, n)
    np.testing.assert_allclose(
        values, reference, rtol=0, atol=PRECISION[dtype] * 10 * np.abs(reference).max(initial=1.0)
    )


@each_kernel
@each_container
def test_nothing_against_something_is_nothing(function, container):
    X = container(data(5, 3))
    assert function.matrix(X[:0], X).shape == (0, 5)
    assert function.matrix(X, X[:0]).shape == (5, 0)


@each_kernel
@each_container
def test_rows_of_zeros_have_values(function, container):
    X = np.zeros((4, 3))
    np.testing.assert_allclose(
        function.matrix(container(X), container(X)), expected(function, X, X)
    )


@each_kernel
@each_dtype
def test_sparse_equals_dense(function, dtype):
    X, Y = data(40, 9, dtype, 3), data(30, 9, dtype, 4)
    dense = function.matrix(X, Y)
    for container in (sp.csr_matrix, sp.csr_array):
        sparse = function.matrix(container(X), container(Y))
        scale = np.abs(dense).max()
        np.testing.assert_allclose(sparse, dense, rtol=0, atol=PRECISION[dtype] * 10 * scale)


@each_kernel
@each_container
@each_dtype
def test_a_value_depends_on_its_two_rows_only(function, container, dtype):
    X, Y = container(data(70, 20, dtype, 5)), container(data(90, 20, dtype, 6))
    whole = function.matrix(X, Y)
    generator = np.random.default_rng(7)
    for count in (1, 2, 17, 60):
        rows, columns = generator.permutation(70)[:count], generator.permutation(90)[: count + 3]
        part = function.matrix(X[rows], Y[columns])
        np.testing.assert_array_equal(part, whole[np.ix_(rows, columns)], strict=True)


@pytest.mark.large
@each_kernel
@each_container
def test_the_number_of_threads_does_not_change_bits(function, container):
    X, Y = container(data(700, 30, seed=8)), container(data(900, 30, seed=9))
    whole = function.matrix(X, Y)
    for limit in (1, 2, 4):
        with threadpool_limits(limit):
            np.testing.assert_array_equal(function.matrix(X, Y), whole)


@each_kernel
@each_container
def test_norms_and_memory_may_be_given(function, container):
    X, Y = container(data(6, 4, seed=10)), container(data(5, 4, seed=11))
    out = np.full((6, 5), np.nan)
    norms = function.squared_norms(X), function.squared_norms(Y)
    assert function.matrix(X, Y, *norms, out=out) is out
    np.testing.assert_array_equal(out, function.matrix(X, Y))


@each_kernel
@each_container
@each_dtype
def test_the_diagonal_is_that_of_the_matrix(function, container, dtype):
    X = data(12, 5, dtype, 12)
    diagonal = function.diagonal(container(X))
    assert diagonal.dtype == np.float64
    reference = expected(function, X, X).diagonal()
    scale = np.abs(reference).max()
    np.testing.assert_allclose(diagonal, reference, rtol=0, atol=PRECISION[dtype] * 10 * scale)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
def test_norms_of_sparse_rows_skip_the_empty_ones(container):
    X = data(9, 4, seed=13)
    X[1:4] = 0.0
    np.testing.assert_allclose(squared_norms(container(X)), (X**2).sum(axis=1), rtol=1e-15)
    np.testing.assert_array_equal(squared_norms(container((3, 4), dtype=np.float64)), np.zeros(3))


@pytest.mark.parametrize(("dtype", "lowest"), [(np.float32, -87.0), (np.float64, -708.0)])
def test_the_exponential_is_accurate_to_two_units_in_the_last_place(dtype, lowest):
    generator = np.random.default_rng(14)
    halves = np.log(2.0) * (np.arange(int(-lowest)) + 0.5)
    exponents = -np.concatenate(
        [
            np.linspace(0.0, -lowest, 3001),
            np.geomspace(1e-30, -lowest, 1000),
            halves,  # where the power of two changes, the remainder is largest
            np.nextafter(halves, 0.0),
            generator.uniform(0.0, -lowest, 2000),
        ]
    ).astype(dtype)
    exponents = exponents[exponents >= lowest]
    reference = np.exp(exponents.astype(np.longdouble))
    error = np.abs(exponentials(exponents, dtype) - reference)
    assert (error <= 2 * np.spacing(reference.astype(dtype))).all()


@each_dtype
def test_the_exponential_of_zero_is_one(dtype):
    assert exponentials(np.zeros(3), dtype).tolist() == [1.0, 1.0, 1.0]


@each_dtype
def test_values_too_small_for_the_dtype_vanish(dtype):
    exponents = -np.geomspace(750.0, 1e30, 200)
    values = exponentials(exponents, dtype)
    assert (values >= 0.0).all()
    assert (values <= 4 * np.finfo(dtype).tiny).all()


@each_dtype
def test_rows_are_closest_to_themselves(dtype):
    X = data(30, 5, dtype, 15)
    values = kernel_function("rbf", gamma=3.0).matrix(X, X)
    assert (values <= 1.0).all()
    np.testing.assert_allclose(values.diagonal(), 1.0, rtol=10 * PRECISION[dtype])


@pytest.mark.parametrize(
    "function",
    [function for function in KERNELS if function.positive_semidefinite],
    ids=lambda function: function.name,
)
def test_kernels_said_to_be_positive_semidefinite_are(function):
    X = data(40, 3, seed=16)
    values = np.linalg.eigvalsh(function.matrix(X, X))
    assert values[0] >= -1e-12 * values[-1]


def test_kernels_that_may_be_indefinite_are_not_said_to_be_otherwise():
    assert not kernel_function("sigmoid").positive_semidefinite
    assert not kernel_function("poly", coef0=-1.0).positive_semidefinite
    assert not kernel_function("poly", gamma=-1.0).positive_semidefinite
    assert kernel_function("poly", coef0=1.0).positive_semidefinite


def test_an_unknown_kernel_is_an_error_that_names_the_known_ones():
    with pytest.raises(ValueError, match=r"kernel must be one of .*laplacian.*, got 'cosine'"):
        kernel_function("cosine")
