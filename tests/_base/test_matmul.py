"""Tiled products: right, and the same bits in any company and on any number of threads."""

import types
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from widemargin._base import matmul as products
from widemargin._base import threads as pool
from widemargin._base.matmul import multiply_vectors, tiled_multiply, tiled_product

DTYPES = [np.float32, np.float64]


@pytest.fixture
def use_threads(monkeypatch):
    return lambda number: monkeypatch.setattr(pool, "effective_threads", lambda: number)


def matrices(seed, dtype, *shapes):
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes]


@st.composite
def problems(draw):
    """Two matrices for a product, with sizes around the edges of tiles and their paddings."""
    edges = [1, 2, 3, 4, 5, 11, 12, 13, 16, 31, 33, 256, 272, 273, 288, 289, 384, 385, 700]
    rows, columns = draw(st.sampled_from(edges)), draw(st.sampled_from(edges))
    k = draw(st.one_of(st.integers(1, 40), st.sampled_from([64, 100, 257, 385, 513, 1000])))
    dtype = draw(st.sampled_from(DTYPES))
    return matrices(draw(st.integers(0, 99)), dtype, (rows, k), (columns, k))


def some_rows(draw, matrix):
    """An order of some of the rows, repetitions allowed."""
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    return generator.integers(len(matrix), size=draw(st.integers(1, len(matrix))))


@given(problems())
@settings(max_examples=60)
def test_the_product_is_right(problem):
    A, B = problem
    exact = A.astype(np.float64) @ B.astype(np.float64).T
    scale = np.abs(A).astype(np.float64) @ np.abs(B).astype(np.float64).T
    error = np.abs(tiled_product(A, B) - exact)
    assert (error <= A.shape[1] * np.finfo(A.dtype).eps * scale).all()


@given(problems(), st.data())
@settings(max_examples=150)
def test_an_entry_depends_on_its_two_rows_only(problem, data):
    A, B = problem
    rows, columns = some_rows(data.draw, A), some_rows(data.draw, B)
    whole = tiled_product(A, B)
    part = tiled_product(A[rows], B[columns])
    np.testing.assert_array_equal(part, whole[np.ix_(rows, columns)], strict=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 900, 30), (400, 700, 20), (600, 600, 120)])
def test_the_number_of_threads_does_not_change_bits(dtype, shape, use_threads):
    m, n, k = shape
    A, B = matrices(0, dtype, (m, k), (n, k))
    use_threads(1)
    expected = tiled_product(A, B)
    for number in (2, 4):
        use_threads(number)
        np.testing.assert_array_equal(tiled_product(A, B), expected, strict=True)
    for limit in (1, 2, 4):
        with threadpool_limits(limit):
            np.testing.assert_array_equal(tiled_product(A, B), expected, strict=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 30), (192, 300), (600, 30)])
def test_the_product_of_a_matrix_with_itself_is_symmetric_and_nothing_special(dtype, shape):
    (A,) = matrices(0, dtype, shape)
    product = tiled_product(A, A)
    np.testing.assert_array_equal(product, product.T, strict=True)
    np.testing.assert_array_equal(product, tiled_product(A, A.copy()), strict=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_the_product_is_written_to_out(dtype, order):
    A, B = matrices(0, dtype, (400, 9), (300, 9))
    out = np.full((400, 300), np.nan, dtype=dtype, order=order)
    assert tiled_product(A, B, out=out) is out
    np.testing.assert_array_equal(out, tiled_product(A, B))


@pytest.mark.parametrize("shapes", [((0, 3), (5, 3)), ((5, 3), (0, 3)), ((0, 3), (0, 3))])
def test_a_product_without_rows_is_empty(shapes):
    A, B = matrices(0, np.float64, *shapes)
    assert tiled_product(A, B).shape == (len(A), len(B))


def test_a_product_over_no_columns_is_zero():
    np.testing.assert_array_equal(tiled_product(np.ones((3, 0)), np.ones((4, 0))), np.zeros((3, 4)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threads", [1, 2])
def test_finish_sees_every_entry_once_when_it_is_complete(dtype, threads, use_threads):
    use_threads(threads)
    A, B = matrices(0, dtype, (800, 40), (700, 40))
    visits = np.zeros((800, 700), dtype=int)

    def square(tile, rows, columns):
        assert np.shares_memory(tile, out[rows, columns])
        assert tile.shape == out[rows, columns].shape
        visits[rows, columns] += 1
        np.square(tile, out=tile)

    out = np.empty((800, 700), dtype=dtype)
    tiled_product(A, B, out=out, finish=square)
    assert (visits == 1).all()
    np.testing.assert_array_equal(out, np.square(tiled_product(A, B)), strict=True)


def test_an_error_in_finish_is_raised(use_threads):
    use_threads(2)

    def fail(tile, rows, columns):
        raise ValueError("in finish")

    A, B = matrices(0, np.float64, (800, 40), (700, 40))
    with pytest.raises(ValueError, match="in finish"):
        tiled_product(A, B, finish=fail)


@given(problems(), st.integers(1, 50), st.data())
@settings(max_examples=50)
def test_multiplying_is_right_and_a_row_does_not_depend_on_others(problem, columns, data):
    A, _ = problem
    (V,) = matrices(7, A.dtype, (A.shape[1], columns))
    whole = tiled_multiply(A, V)
    np.testing.assert_allclose(whole, A @ V, rtol=0, atol=1e3 * np.finfo(A.dtype).eps)
    rows = some_rows(data.draw, A)
    np.testing.assert_array_equal(tiled_multiply(A[rows], V), whole[rows], strict=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_number_of_threads_does_not_change_a_multiplication(dtype, use_threads):
    use_threads(1)
    A, V = matrices(0, dtype, (3000, 500), (500, 7))
    out = np.empty((3000, 7), dtype=dtype)
    assert tiled_multiply(A, V, out=out) is out
    for number in (2, 4):
        use_threads(number)
        np.testing.assert_array_equal(tiled_multiply(A, V), out, strict=True)


def test_a_small_product_leaves_the_settings_of_blas_alone(monkeypatch):
    A, B = matrices(0, np.float64, (150, 4), (150, 4))
    expected = tiled_product(A, B)  # the trial of layouts, which needs the limiter, is over now
    monkeypatch.setattr(products, "single_threaded_blas", None)
    np.testing.assert_array_equal(tiled_product(A, B), expected, strict=True)


@pytest.mark.parametrize("layout", products._LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_layout_gives_the_product(monkeypatch, layout, dtype, use_threads):
    """Other machines need other layouts; on the last one hangs the answer for threads only."""
    monkeypatch.setattr(products, "_layout", lambda dtype, k: layout)
    A, B = matrices(0, dtype, (401, 11), (603, 11))
    use_threads(1)
    product = tiled_product(A, B)
    np.testing.assert_allclose(product, A @ B.T, rtol=0, atol=1e3 * np.finfo(dtype).eps)
    use_threads(2)
    np.testing.assert_array_equal(tiled_product(A, B), product, strict=True)


def evenly(left, right):
    """A product without the manners of the BLAS that computes it."""
    return np.round(left @ right, 6)


def small_ones_differently(left, right):
    """A BLAS with another routine for small products."""
    return evenly(left, right) + 1e-3 * (left.shape[0] * right.shape[1] <= 10_000)


def edges_differently(left, right):
    """A BLAS that treats the columns at the edges of a call differently."""
    result = evenly(left, right)
    result[:, :8] += 1e-3
    result[:, -8:] += 1e-3
    return result


def last_row_differently(left, right):
    """A BLAS that treats the last row of a call differently."""
    result = evenly(left, right)
    result[-1] += 1e-3
    return result


@pytest.mark.parametrize(
    ("blas", "position"),
    [
        (evenly, 0),
        (edges_differently, 1),
        (small_ones_differently, 3),
        (last_row_differently, -1),
    ],
)
def test_a_layout_is_found_for_the_manners_of_a_blas(monkeypatch, blas, position):
    def matmul(left, right, out=None):
        result = blas(left, right)
        if out is not None:
            out[...] = result
        return result

    A, B = matrices(0, np.float64, (401, 50), (603, 50))
    replaced = {**vars(np), "matmul": matmul}
    monkeypatch.setattr(products, "np", types.SimpleNamespace(**replaced))
    layout = products._tried_layout.__wrapped__(A.dtype, A.shape[1])
    assert layout == products._LAYOUTS[position]
    monkeypatch.setattr(products, "_layout", lambda dtype, k: layout)
    if layout != products._LAYOUTS[-1]:
        part = tiled_product(A[::3].copy(), B[::-2].copy())
        np.testing.assert_array_equal(part, tiled_product(A, B)[::3, ::-2], strict=True)


def test_products_with_few_vectors_depend_on_their_rows_alone(use_threads):
    for k in (1, 2, 7, 64, 101, 9000):
        A, B = matrices(k, np.float64, (60, k), (3, k))
        use_threads(1)
        whole = multiply_vectors(A, B)
        np.testing.assert_allclose(whole, A @ B.T, rtol=1e-12, atol=1e-10)
        order = np.random.default_rng(0).permutation(len(A))
        use_threads(3)
        with patch.object(products.options, "vector_work", 5 * k):
            np.testing.assert_array_equal(multiply_vectors(A[order], B), whole[order])
        for rows in (1, 2, 3, 5):
            alone = multiply_vectors(A[order[:rows]], B[1:2])
            np.testing.assert_array_equal(alone[:, 0], whole[order[:rows], 1])
