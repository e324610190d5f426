"""Shipped samples: shapes, splits, names and forms."""

from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from widemargin import datasets
from widemargin.datasets import load_satimage, load_vowel, load_yeast

LOADERS = [load_satimage, load_vowel, load_yeast]
SPLIT = [(load_satimage, 4435, 2000), (load_vowel, 528, 462)]


@pytest.mark.parametrize("load", LOADERS)
def test_every_row_has_a_named_class_and_every_column_a_name(load):
    sample = load()
    assert sample.data.shape == (len(sample.target), len(sample.feature_names))
    assert sample.data.dtype == np.float64
    assert np.isfinite(sample.data).all()
    assert len(set(sample.feature_names)) == len(sample.feature_names)
    np.testing.assert_array_equal(np.unique(sample.target), np.arange(len(sample.target_names)))
    assert sample.frame is None
    assert sample.DESCR.startswith("Load ")


@pytest.mark.parametrize(("load", "n_train", "n_test"), SPLIT)
def test_training_rows_then_test_rows_are_all_rows(load, n_train, n_test):
    X, y = load(return_X_y=True)
    X_train, y_train = load(subset="train", return_X_y=True)
    X_test, y_test = load(subset="test", return_X_y=True)
    assert (len(X_train), len(X_test)) == (n_train, n_test)
    np.testing.assert_array_equal(X, np.vstack([X_train, X_test]))
    np.testing.assert_array_equal(y, np.concatenate([y_train, y_test]))


@pytest.mark.parametrize(("load", "n_train", "n_test"), SPLIT)
def test_features_span_minus_one_to_one_on_the_training_rows(load, n_train, n_test):
    X, _ = load(subset="train", return_X_y=True)
    np.testing.assert_allclose(X.min(axis=0), -1)
    np.testing.assert_allclose(X.max(axis=0), 1)


@pytest.mark.parametrize(
    ("load", "counts"),
    [
        (load_satimage, [1533, 703, 1358, 626, 707, 1508]),
        (load_vowel, [90] * 11),
        (load_yeast, [463, 5, 35, 44, 51, 163, 244, 429, 20, 30]),
    ],
)
def test_class_counts_are_those_of_the_source(load, counts):
    np.testing.assert_array_equal(np.bincount(load().target), counts)


@pytest.mark.parametrize("load", LOADERS)
def test_frames_hold_the_same_numbers_as_arrays(load):
    X, y = load(return_X_y=True)
    sample = load(as_frame=True)
    assert isinstance(sample.data, pd.DataFrame)
    assert isinstance(sample.target, pd.Series)
    np.testing.assert_array_equal(sample.data, X)
    np.testing.assert_array_equal(sample.target, y)
    assert list(sample.frame) == [*sample.feature_names, "target"]


def test_unknown_subset_is_refused_with_the_accepted_names():
    with pytest.raises(ValueError, match="subset must be one of 'all', 'train', 'test', got 'dev'"):
        load_vowel(subset="dev")


@pytest.mark.parametrize("load", LOADERS)
def test_loads_share_no_memory(load):
    first, second = load().data, load().data
    first[:] = 0
    assert second.any()


def test_samples_stay_small_and_hold_no_pickles():
    folder = files(datasets) / "data"
    samples = [path for path in folder.iterdir() if path.name.endswith(".npz")]
    assert len(samples) == len(LOADERS) + 1  # the letters have a test of their own
    assert sum(len(path.read_bytes()) for path in samples) < 500_000
    for path in samples:
        with path.open("rb") as file:
            arrays = dict(np.load(file, allow_pickle=False))
        assert {array.dtype.kind for array in arrays.values()} <= {"f", "i"}
