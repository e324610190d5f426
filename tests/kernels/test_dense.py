import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from widemargin.kernels import KernelGram, MatrixGram, kernel_function
from widemargin.kernels.dense import DenseMatrix, SharedGram, SubsetGram, dense_matrix, gather
from widemargin.solvers.hinge.problem import HingeProblem
from widemargin.solvers.hinge.smo import solve_hinge


def test_gather_takes_rows_and_columns():
    X = np.random.default_rng(0).normal(size=(60, 7))
    rows = np.array([5, 0, 59])
    for columns in ([6, 2, 2, 1], [0, 1, 2, 5, 6], [3], []):
        columns = np.array(columns, dtype=np.intp)
        assert_array_equal(gather(X, rows, columns), X[np.ix_(rows, columns)])


def test_a_square_copies_the_rows_that_are_asked_for_and_no_others():
    source = np.random.default_rng(0).normal(size=(6, 6))
    places = np.array([4, 0, 5, 2])
    square = DenseMatrix(source, places)
    rows = square.rows(np.array([2, 0]))
    assert_array_equal(rows[[0, 2]], source[np.ix_([4, 5], places)])
    assert_array_equal(square.filled, [True, False, True, False])


def test_part_of_a_square_is_the_square_of_the_part():
    source = np.random.default_rng(1).normal(size=(6, 6))
    for square in (DenseMatrix(source), DenseMatrix(source, np.arange(6)[::-1])):
        part = square.subset(np.array([1, 3]))
        everything = square.rows(np.arange(6))
        assert_array_equal(part.rows(np.arange(2)), everything[np.ix_([1, 3], [1, 3])])


@pytest.mark.parametrize("d", [1, 4, 7])
def test_a_square_of_features_computes_the_rows_that_are_asked_for(d):
    X = np.random.default_rng(4).normal(size=(9, d)) + 1e6
    square = DenseMatrix(np.ascontiguousarray(X.T), gamma=0.3)
    rows = square.rows(np.array([5, 2]))
    expected = np.exp(-0.3 * ((X[[5, 2], np.newaxis] - X) ** 2).sum(axis=-1))
    assert_allclose(rows[[5, 2]], expected, rtol=1e-13)
    assert rows[5, 5] == rows[2, 2] == 1.0
    assert_array_equal(np.flatnonzero(square.filled), [2, 5])
    part = square.subset(np.array([2, 8, 5]))
    assert_array_equal(part.rows(np.array([0]))[0], rows[2, [2, 8, 5]])


def test_rows_of_a_shared_gram_are_not_copied():
    matrix = np.random.default_rng(5).normal(size=(6, 6))
    shared = SharedGram(MatrixGram(matrix))
    array, found = shared.rows(np.array([4, 1]))
    assert array is matrix
    assert_array_equal(found, [4, 1])
    part = shared.subset(np.array([5, 0]))
    assert_array_equal(part.block(slice(None)), matrix[np.ix_([5, 0], [5, 0])])


def test_part_of_a_gram_is_the_gram_of_the_part():
    X = np.random.default_rng(2).normal(size=(20, 3))
    whole = MatrixGram(KernelGram(kernel_function("rbf", gamma=0.5), X).block(slice(None)))
    places = np.array([7, 3, 15, 4, 0])
    part, expected = SubsetGram(whole, places), whole.matrix[np.ix_(places, places)]
    assert part.size == 5
    assert_array_equal(part.diagonal(), np.diag(expected))
    assert_array_equal(part.block(slice(None)), expected)
    assert_array_equal(part.block(np.array([1, 2]), np.array([0])), expected[1:3, :1])
    array, found = part.rows(np.array([4, 1]))
    assert_array_equal(array[found], expected[[4, 1]])
    smaller = part.subset(np.array([2, 0]))
    assert_array_equal(dense_matrix(smaller).rows(np.arange(2)), expected[np.ix_([2, 0], [2, 0])])


@pytest.mark.large
def test_machines_over_part_of_a_matrix_are_those_over_a_copy_and_leave_most_rows_alone():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 2))
    sign = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    whole = MatrixGram(KernelGram(kernel_function("rbf", gamma=0.5), X).block(slice(None)))
    places = np.sort(rng.permutation(600)[:550])
    part = SubsetGram(whole, places)
    found = solve_hinge(HingeProblem(part, sign[places], cost=100.0))
    copied = solve_hinge(
        HingeProblem(whole.matrix[np.ix_(places, places)], sign[places], cost=100.0)
    )
    assert_array_equal(found.dual, copied.dual)
    assert part.dense.filled[found.dual != 0.0].all()
    assert part.dense.filled.sum() < 275


@pytest.mark.parametrize(
    "kind", [SharedGram, lambda whole, **exact: SubsetGram(whole, np.arange(6), **exact)]
)
def test_sums_with_more_digits_can_be_left_out(kind):
    whole = MatrixGram(np.eye(6))
    assert kind(whole).exact_sums(np.ones(6)) is not None
    assert kind(whole, exact=False).exact_sums(np.ones(6)) is None
    assert kind(whole, exact=False).subset(np.arange(3)).exact_sums(np.ones(3)) is None
