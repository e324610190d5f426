"""The shipped words."""

import numpy as np

from widemargin.datasets import load_letters


def test_there_are_704_words_of_128_pixels_a_letter():
    X, Y = load_letters(return_X_y=True)
    assert len(X) == len(Y) == 704
    assert sum(map(len, Y)) == 5375
    for word, letters in zip(X, Y, strict=True):
        assert word.shape == (len(letters), 128)
        assert word.dtype == np.float64
    assert {0.0, 1.0} == set(np.unique(np.concatenate(X)))


def test_every_letter_occurs_and_has_a_name():
    letters = load_letters()
    np.testing.assert_array_equal(np.unique(np.concatenate(letters.target)), np.arange(26))
    assert "".join(letters.target_names[letters.target[0]]) == "ommanding"
    assert letters.DESCR.startswith("Load the letters data set")


def test_the_first_letter_is_a_round_one():
    image = load_letters().data[0][0].reshape(16, 8)
    assert image[3].sum() == 7
    assert image[9, 3:7].sum() == 1
