"""The statistics are those of textbook formulas, in whatever batches the samples come."""

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from threadpoolctl import threadpool_limits

from widemargin.discriminant import statistics as module
from widemargin.discriminant.statistics import ClassStatistics

KINDS = [
    {"scatter": "pooled"},
    {"scatter": "classes"},
    {"scatter": "classes", "fourth": True},
    {"scatter": "none"},
]


def sample(n_rows=60, n_classes=3, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(n_classes), rng.integers(n_classes, size=n_rows - n_classes))
    X = rng.standard_normal((n_rows, n_features)) @ rng.standard_normal((n_features, n_features))
    return X + 2.0 * codes[:, np.newaxis], codes, rng.integers(0, 4, n_rows).astype(float)


def gathered(X, codes, weight=None, n_classes=3, **kind):
    statistics = ClassStatistics(n_classes, X.shape[1], **kind)
    statistics.update(X, codes, weight)
    return statistics


def assert_equal(actual, expected, rtol=1e-10):
    for name in ("count", "weight", "mean", "scatter", "third", "fourth"):
        if getattr(expected, name) is not None:
            scale = np.abs(getattr(expected, name)).max(initial=1e-300)
            assert_allclose(
                getattr(actual, name),
                getattr(expected, name),
                rtol=0,
                atol=rtol * scale,
                err_msg=name,
            )


def test_moments_are_those_of_their_definitions():
    X, codes, weight = sample()
    statistics = gathered(X, codes, weight, scatter="classes", fourth=True)
    for k in range(3):
        rows, w = X[codes == k], weight[codes == k]
        mean = np.average(rows, axis=0, weights=w)
        z = rows - mean
        assert statistics.count[k] == (w > 0).sum()
        assert_allclose(statistics.weight[k], w.sum())
        assert_allclose(statistics.mean[k], mean)
        assert_allclose(statistics.scatter[k], np.einsum("n,ni,nj->ij", w, z, z))
        assert_allclose(
            statistics.third[k], np.einsum("n,ni,nj->ij", w, z**2, z), atol=1e-11 * 60 * 100
        )
        assert_allclose(statistics.fourth[k], np.einsum("n,ni,nj->ij", w, z**2, z**2))


def test_the_pooled_scatter_is_the_sum_over_classes():
    X, codes, weight = sample()
    pooled = gathered(X, codes, weight).pooled_scatter()
    assert_allclose(pooled, gathered(X, codes, weight, scatter="classes").pooled_scatter())


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=20)
@given(cuts=st.lists(st.integers(0, 60), max_size=5), seed=st.integers(0, 99))
def test_pieces_of_any_sizes_give_what_all_rows_at_once_give(kind, cuts, seed):
    X, codes, weight = sample(seed=seed)
    pieces = ClassStatistics(3, 4, **kind)
    merged = ClassStatistics(3, 4, **kind)
    ends = [0, *sorted(cuts), 60]
    for start, end in itertools.pairwise(ends):
        piece = X[start:end], codes[start:end], weight[start:end]
        pieces.update(*piece)
        merged.merge(gathered(*piece, **kind))
    expected = gathered(X, codes, weight, **kind)
    assert_equal(pieces, expected)
    assert_equal(merged, expected)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_many_chunks_and_blocks_of_columns_give_what_one_gives(kind, monkeypatch):
    X, codes, weight = sample(n_rows=2000, n_features=7)
    expected = gathered(X, codes, weight, **kind)
    monkeypatch.setattr(module.options, "chunk_entries", 1)
    monkeypatch.setattr(module.options, "product_columns", 3)
    assert_equal(gathered(X, codes, weight, **kind), expected)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_weights_are_counts(kind):
    X, codes, weight = sample()
    repeats = weight.astype(int)
    repeated = gathered(np.repeat(X, repeats, axis=0), np.repeat(codes, repeats), **kind)
    repeated.count = gathered(X, codes, weight, **kind).count
    assert_equal(gathered(X, codes, weight, **kind), repeated)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_rows_are_rows(kind, container):
    X, codes, weight = sample()
    X = np.where(np.abs(X) < 1, 0.0, X)
    assert_equal(gathered(container(X), codes, weight, **kind), gathered(X, codes, weight, **kind))


def test_an_offset_of_a_million_costs_no_digits():
    X, codes, _ = sample(n_rows=5000)
    X = np.round(X * 2**20) / 2**20  # so that the offset rounds nothing away
    far = gathered(X + 2.0**20, codes, scatter="classes")
    near = gathered(X, codes, scatter="classes")
    assert_allclose(far.scatter, near.scatter, rtol=1e-12, atol=1e-9)
    pieces = ClassStatistics(3, 4, scatter="classes")
    for start in range(0, 5000, 7):
        rows = slice(start, start + 7)
        pieces.update(X[rows] + 2.0**20, codes[rows])
    assert_allclose(pieces.scatter, near.scatter, rtol=1e-10, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS[:3], ids=str)
def test_all_classes_together_are_one_class(kind):
    X, codes, weight = sample()
    expected = gathered(X, np.zeros(60, dtype=int), weight, n_classes=1, **kind)
    assert_equal(gathered(X, codes, weight, **kind).total(), expected)


def test_classes_can_be_expanded_to_others():
    X, codes, weight = sample()
    for kind in KINDS:
        placed = gathered(X, codes, weight, **kind).expanded(np.array([0, 2, 5]), 6)
        direct = gathered(X, np.array([0, 2, 5])[codes], weight, n_classes=6, **kind)
        assert_equal(placed, direct)


def test_only_chunks_of_the_rows_are_copied():
    X = np.random.default_rng(0).standard_normal((400_000, 20))
    codes = np.arange(400_000) % 3
    tracemalloc.start()
    with threadpool_limits(2):
        gathered(X, codes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < X.nbytes / 2


def test_float32_rows_are_summed_in_float64():
    X, codes, _ = sample()
    single = X.astype(np.float32)
    assert_equal(gathered(single, codes), gathered(single.astype(float), codes), rtol=1e-15)
