"""The text format of the Extreme Classification Repository."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from widemargin import load_extreme_format, save_extreme_format
from widemargin._base.options import label_tree_options


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 20))
def test_what_is_written_is_read_back(tmp_path_factory, seed, n_samples):
    random = np.random.default_rng(seed)
    X = sp.random_array((n_samples, 9), density=0.3, rng=random, format="csr")
    X.data *= 10.0 ** random.integers(-300, 300, size=X.nnz)
    Y = sp.csr_array((random.random((n_samples, 5)) < 0.3).astype(int))
    path = tmp_path_factory.mktemp("data") / "set.txt"
    save_extreme_format(path, X, Y)
    read = load_extreme_format(path)
    np.testing.assert_array_equal(read[0].toarray(), X.toarray())
    np.testing.assert_array_equal(read[1].toarray(), Y.toarray())


def test_files_are_read_in_chunks(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    X = sp.random_array((50, 9), density=0.3, rng=random, format="csr")
    Y = sp.csr_array((random.random((50, 5)) < 0.3).astype(int))
    save_extreme_format(tmp_path / "set.txt", X, Y)
    monkeypatch.setattr(label_tree_options, "text_lines", 7)
    read = load_extreme_format(tmp_path / "set.txt")
    np.testing.assert_array_equal(read[0].toarray(), X.toarray())
    np.testing.assert_array_equal(read[1].toarray(), Y.toarray())


MALFORMED = {
    "no header": ("1,2 0:1\n", "line 1: the numbers of samples"),
    "a label that is no number": ("1 3 4\nx 0:1\n", "line 2: 'x 0:1' is not a sample"),
    "a value that is no number": ("2 3 4\n0 0:1\n1 1:nan\n", "line 3: '1 1:nan' is not a sample"),
    "a feature without value": ("1 3 4\n0 1\n", "line 2"),
    "an empty line": ("2 3 4\n0 1:1\n\n", "line 3"),
    "a feature out of range": ("2 3 4\n0 1:1\n1 3:1\n", "line 3: feature 3 is not below .*, 3"),
    "a label out of range": ("1 3 4\n1,4 1:1\n", "line 2: label 4 is not below .*, 4"),
    "a feature twice": ("1 3 4\n1 2:1 2:5\n", "line 2: feature 2 is repeated"),
    "a label twice": ("1 3 4\n1,1 2:1\n", "line 2: label 1 is repeated"),
    "too few samples": ("3 3 4\n1 2:1\n", "has 1 samples, but its first line announces 3"),
    "a label too large for 64 bits": ("1 3 4\n99999999999999999999 2:1\n", "line 2: '9999"),
    "a number of features that is too large": ("1 9999999999999999 4\n1 2:1\n", "line 1"),
    "a value too large for float64": ("3 3 4\n 0:1 1:2\n\t0\n1 2:1e999\n", "line 3"),
    "an infinite value": ("3 3 4\n 0:1 1:2\n1\n1 2:1e999\n", "line 4: a value is too large"),
    "bytes that are no text": ("1 3 4\n1 2:\xff\n", "line 2"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_lines_are_refused_with_their_number(tmp_path, case):
    text, message = MALFORMED[case]
    (tmp_path / "set.txt").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match=message):
        load_extreme_format(tmp_path / "set.txt")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "set.txt"
    save_extreme_format(path, [[1.0]], [[1]])
    with pytest.raises(ValueError, match="the same number of samples, got 2 and 1"):
        save_extreme_format(path, [[1.0], [2.0]], [[1]])
    assert load_extreme_format(path)[0].shape == (1, 1)


REFUSED = {
    "nan": ([[np.nan]], [[1]], "X must not contain nan"),
    "one dimension": ([1.0, 2.0], [[1], [1]], r"X must be a matrix of numbers, .* shape \(2,\)"),
    "texts": ([["a"]], [[1]], "X must be a matrix of numbers"),
    "complex numbers": ([[1j]], [[1]], "X must be a matrix of numbers"),
    "other labels": ([[1.0]], [[0.5]], "Y must contain only zeros and ones, got .*0.5"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_format_cannot_hold_is_refused(case, tmp_path):
    X, Y, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        save_extreme_format(tmp_path / "set.txt", X, Y)
    assert list(tmp_path.iterdir()) == []


def test_bools_and_integers_are_written_as_numbers(tmp_path):
    save_extreme_format(tmp_path / "set.txt", np.array([[True, False]]), np.array([[True]]))
    X, Y = load_extreme_format(tmp_path / "set.txt")
    np.testing.assert_array_equal(X.toarray(), [[1.0, 0.0]])
    np.testing.assert_array_equal(Y.toarray(), [[1.0]])
