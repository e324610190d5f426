"""The answer depends on the numbers, not on what holds them."""

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from tests.suites.registry import answers, assert_close, each_case

SPARSE = [
    sparse.csr_matrix,
    sparse.csr_array,
    sparse.csc_matrix,
    sparse.csc_array,
    sparse.coo_matrix,
    sparse.coo_array,
]


def sparse_data(case):
    """Return data with many zeros, an empty row and an empty column."""
    X, y = case.data()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    X[0], X[:, 1] = 0.0, 0.0
    return X, y


@each_case(lambda case: case.sparse)
@pytest.mark.parametrize("container", SPARSE, ids=lambda container: container.__name__)
def test_sparse_equals_dense(case, container):
    X, y = sparse_data(case)
    dense, other = case.precise().fit(X, y), case.precise().fit(container(X), y)
    assert_close(answers(other, container(X)), answers(dense, X), case.precision)
    assert_close(answers(other, X), answers(dense, X), case.precision)
    assert_array_equal(other.predict(container(X)), dense.predict(X))


@each_case(lambda case: case.sparse)
def test_sparse_storage_does_not_matter(case):
    X, y = sparse_data(case)
    plain = sparse.csr_array(X)
    expected = answers(case.precise().fit(plain, y), plain)

    rows, columns = (part.astype(np.int32) for part in np.nonzero(X))
    halves = np.concatenate([X[rows, columns] / 2] * 2)
    doubled = sparse.coo_array((halves, (np.tile(rows, 2), np.tile(columns, 2))), shape=X.shape)
    zeros = sparse.csr_array(
        (
            np.append(plain.data, 0.0),
            np.append(plain.indices, 1).astype(np.int32),
            np.append(plain.indptr[:-1], plain.nnz + 1).astype(np.int32),
        ),
        shape=X.shape,
    )
    backwards = plain.copy()
    for start, end in zip(plain.indptr[:-1], plain.indptr[1:], strict=True):
        backwards.indices[start:end] = plain.indices[start:end][::-1]
        backwards.data[start:end] = plain.data[start:end][::-1]
    backwards.has_sorted_indices = False

    for other in (doubled, zeros, backwards):
        assert_array_equal(other.toarray(), X)
        result = answers(case.precise().fit(other, y), other)
        assert_close(result, expected, case.precision)


@each_case(lambda case: case.sparse)
def test_wide_sparse_indices_are_taken(case):
    X, y = sparse_data(case)
    plain = sparse.csr_array(X)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    expected = answers(case.new().fit(plain, y), plain)
    assert_array_equal(answers(case.new().fit(wide, y), wide), expected)


@each_case()
def test_single_precision_is_close_to_double(case):
    X, y = case.data()
    double = case.precise().fit(X, y)
    single = case.new(tol=1e-5).fit(X.astype(np.float32), y)
    assert_close(answers(single, X.astype(np.float32)), answers(double, X), 1e-3)


@each_case()
def test_memory_layout_does_not_matter(case):
    X, y = case.data()
    expected = answers(case.new().fit(X, y), X)
    every_other = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    backwards = X[::-1].copy()[::-1]
    for other in (np.asfortranarray(X), every_other, backwards):
        estimator = case.new().fit(other, np.repeat(y, 2)[::2])
        assert_array_equal(answers(estimator, other), expected)


@each_case()
def test_integers_are_numbers(case):
    X, y = case.data()
    X = np.round(4 * X)
    expected = answers(case.new().fit(X, y), X)
    for dtype in (np.int64, np.int8):
        whole = X.astype(dtype)
        assert_array_equal(answers(case.new().fit(whole, y), whole), expected)
    listed = X.tolist()
    assert_array_equal(answers(case.new().fit(listed, y.tolist()), listed), expected)


@each_case()
def test_pandas_and_polars_frames_are_taken(case):
    X, y = case.data()
    names = [f"feature {i}" for i in range(X.shape[1])]
    expected = answers(case.new().fit(X, y), X)
    for frame, target in [
        (pd.DataFrame(X, columns=names, index=np.arange(len(X))[::-1]), pd.Series(y)),
        (pl.DataFrame(X, schema=names), pl.Series(y)),
    ]:
        estimator = case.new().fit(frame, target)
        assert_array_equal(estimator.feature_names_in_, names)
        assert_array_equal(answers(estimator, frame), expected)
        with pytest.raises(ValueError, match="feature names should match"):
            answers(estimator, frame[names[::-1]])


@each_case(lambda case: case.weighted)
def test_weights_may_be_lists_and_series(case):
    X, y = case.data()
    weights = np.arange(len(y)) % 3 + 1.0
    expected = answers(case.new().fit(X, y, sample_weight=weights), X)
    for other in (weights.tolist(), pd.Series(weights), weights.astype(np.int32)):
        estimator = case.new().fit(X, y, sample_weight=other)
        assert_array_equal(answers(estimator, X), expected)


@each_case()
def test_read_only_and_memory_mapped_data_are_taken(case, tmp_path):
    X, y = case.data()
    expected = answers(case.new().fit(X, y), X)
    joblib.dump((X, y), tmp_path / "data")
    mapped = joblib.load(tmp_path / "data", mmap_mode="r")
    X.flags.writeable = y.flags.writeable = False
    for rows, target in [(X, y), mapped]:
        assert_array_equal(answers(case.new().fit(rows, target), rows), expected)


@each_case(lambda case: case.sparse)
def test_memory_mapped_sparse_data_are_taken(case, tmp_path):
    X, y = sparse_data(case)
    X = sparse.csr_array(X)
    expected = answers(case.new().fit(X, y), X)
    joblib.dump(X, tmp_path / "data")
    mapped = joblib.load(tmp_path / "data", mmap_mode="r")
    assert not mapped.data.flags.writeable
    assert_array_equal(answers(case.new().fit(mapped, y), mapped), expected)


@each_case()
def test_fit_does_not_change_its_input(case):
    X, y = case.data()
    inputs = {"X": X, "y": y}
    if case.weighted:
        inputs["sample_weight"] = np.arange(len(y)) % 3 + 1.0
    before = {name: value.copy() for name, value in inputs.items()}
    answers(case.new().fit(**inputs), X)
    for name, value in inputs.items():
        assert_array_equal(value, before[name], err_msg=name)


@each_case(lambda case: case.sparse)
def test_fit_does_not_change_its_sparse_input(case):
    X, y = sparse_data(case)
    X = sparse.csr_array(X)
    before = X.copy()
    answers(case.new().fit(X, y), X)
    for part in ("data", "indices", "indptr"):
        assert_array_equal(getattr(X, part), getattr(before, part))
