"""Gram matrices with a part that labels turn."""

import numpy as np
import pytest

from widemargin.kernels import GramCache, KernelGram, kernel_function
from widemargin.kernels.label_coupled import PrivilegedGram, SignedSum

N = 30


@pytest.fixture
def parts():
    rng = np.random.default_rng(0)
    gram = KernelGram(kernel_function("rbf", 0.3), rng.standard_normal((N, 4)))
    factor = rng.standard_normal((N, 3))
    ridge = rng.random(N)
    whole = gram.block(slice(None)) + factor @ factor.T + np.diag(ridge)
    return PrivilegedGram(gram, factor, ridge), whole


def test_blocks_are_those_of_the_whole(parts):
    gram, whole = parts
    some = np.array([7, 2, 29])
    np.testing.assert_allclose(gram.block(slice(None)), whole)
    np.testing.assert_allclose(gram.block(some), whole[some])
    np.testing.assert_allclose(gram.block(some, slice(3, 9)), whole[some, 3:9])
    np.testing.assert_allclose(gram.block(some, some[::-1]), whole[np.ix_(some, some[::-1])])
    np.testing.assert_allclose(gram.diagonal(), np.diag(whole))
    out = np.empty((3, N))
    assert gram.block(some, out=out) is out
    np.testing.assert_allclose(out, whole[some])


def test_subsets_and_float32_are_of_the_same_matrix(parts):
    gram, whole = parts
    some = np.array([4, 11, 12, 25])
    np.testing.assert_allclose(gram.subset(some).block(slice(None)), whole[np.ix_(some, some)])
    approximate = gram.as_float32(10**6)
    rows, places = approximate.rows(some)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows[places], whole[some], rtol=1e-5, atol=1e-5)


def test_a_cache_serves_its_rows(parts):
    gram, whole = parts
    some = np.array([1, 5, 8])
    rows, places = GramCache(gram, 2**20).of().rows(some)
    np.testing.assert_allclose(rows[places], whole[some], rtol=1e-5, atol=1e-5)


def test_numbers_that_are_too_large_are_noticed(parts):
    gram, _ = parts
    assert gram.is_finite()
    assert gram.fits_float32()
    assert not PrivilegedGram(gram.gram, np.full((N, 1), 1e30)).fits_float32()
    assert not PrivilegedGram(gram.gram, np.full((N, 1), np.inf)).is_finite()


def test_one_matrix_after_another_has_the_signs_asked_for():
    rng = np.random.default_rng(1)
    K, Q = (A @ A.T for A in rng.standard_normal((2, N, N)))
    matrices = SignedSum(K, Q, True)
    for _ in range(6):
        sign = np.where(rng.random(N) < rng.random(), 1.0, -1.0)
        np.testing.assert_array_equal(matrices.of(sign).matrix, K + np.outer(sign, sign) * Q)
