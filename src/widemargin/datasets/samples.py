"""Small classical sets that ship with the package, as arrays without pickles.

They come from the UCI Machine Learning Repository; ``data/README.md`` names the source of each.
"""

from importlib.resources import files
from inspect import getdoc

import numpy as np
from sklearn.utils import Bunch


def load_satimage(*, subset="all", return_X_y=False, as_frame=False):
    """Load the Landsat satellite image set: 6,435 neighbourhoods, 36 features, 6 kinds of soil.

    A row is a 3 by 3 neighbourhood of pixels in four spectral bands; the class is the kind of soil
    of its central pixel. The features are scaled to [-1, 1] on the 4,435 training rows.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        Which rows of the official split. All rows are the training rows, then the test rows.
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    as_frame : bool, default=False
        Return a pandas DataFrame and Series in place of arrays.

    Returns
    -------
    Bunch or (data, target)
        With ``data``, ``target`` (indices into ``target_names``), ``feature_names``,
        ``target_names``, ``frame`` (None without ``as_frame``) and ``DESCR``.

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
    raw = _read("satimage")
    pixels = ["nw", "n", "ne", "w", "centre", "e", "sw", "s", "se"]
    sample = Bunch(
        data=2 * raw["levels"] / raw["widths"] - 1,
        target=raw["target"].astype(int),
        feature_names=[f"{pixel}_band{band}" for pixel in pixels for band in range(1, 5)],
        target_names=np.array(
            [
                "red soil",
                "cotton crop",
                "grey soil",
                "damp grey soil",
                "stubble",
                "very damp grey soil",
            ]
        ),
        DESCR=getdoc(load_satimage),
    )
    return _deliver(_subset(sample, raw["n_train"], subset), return_X_y, as_frame)


def load_vowel(*, subset="all", return_X_y=False, as_frame=False):
    """Load Deterding's vowels: 990 utterances, 10 features, 11 vowels of British English.

    A row holds ten log area ratios of one utterance; the classes are named by the word spoken. The
    features are scaled to [-1, 1] on the 528 training rows. Training and test speakers differ,
    which makes the official split hard: 8 speakers to learn from, 7 others to be judged on.

    Parameters
    ----------
    subset : {"all", "train", "test"}, default="all"
        Which rows of the official split. All rows are the training rows, then the test rows.
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    as_frame : bool, default=False
        Return a pandas DataFrame and Series in place of arrays.

    Returns
    -------
    Bunch or (data, target)
        With ``data``, ``target`` (indices into ``target_names``), ``feature_names``,
        ``target_names``, ``frame`` (None without ``as_frame``) and ``DESCR``.

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
    raw = _read("vowel")
    words = "heed hid head had hud hard hod hoard hood who'd heard"
    sample = Bunch(
        data=raw["data"],
        target=raw["target"].astype(int),
        feature_names=[f"log_area_ratio_{i}" for i in range(10)],
        target_names=np.array(words.split()),
        DESCR=getdoc(load_vowel),
    )
    return _deliver(_subset(sample, raw["n_train"], subset), return_X_y, as_frame)


def load_yeast(*, return_X_y=False, as_frame=False):
    """Load the yeast set: 1,484 proteins, 8 features, 10 sites in the cell, far from balanced.

    The features are scores between 0 and 1 computed from the sequence of amino acids; the class is
    where in the cell the protein is found. There is no official split, and the smallest class has
    five rows.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    as_frame : bool, default=False
        Return a pandas DataFrame and Series in place of arrays.

    Returns
    -------
    Bunch or (data, target)
        With ``data``, ``target`` (indices into ``target_names``), ``feature_names``,
        ``target_names``, ``frame`` (None without ``as_frame``) and ``DESCR``.

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
    raw = _read("yeast")
    sample = Bunch(
        data=raw["data"],
        target=raw["target"].astype(int),
        feature_names=["mcg", "gvh", "alm", "mit", "erl", "pox", "vac", "nuc"],
        target_names=np.array(
            ["CYT", "ERL", "EXC", "ME1", "ME2", "ME3", "MIT", "NUC", "POX", "VAC"]
        ),
        DESCR=getdoc(load_yeast),
    )
    return _deliver(sample, return_X_y, as_frame)


def _read(name):
    with (files(__package__) / "data" / f"{name}.npz").open("rb") as file:
        return dict(np.load(file, allow_pickle=False))


def _subset(sample, n_train, subset):
    rows = {"all": slice(None), "train": slice(n_train), "test": slice(n_train, None)}
    if subset not in rows:
        raise ValueError(f"subset must be one of {', '.join(map(repr, rows))}, got {subset!r}.")
    sample.data, sample.target = sample.data[rows[subset]], sample.target[rows[subset]]
    return sample


def _deliver(sample, return_X_y, as_frame):
    sample.frame = None
    if as_frame:
        sample.frame = _frame(sample)
        sample.data, sample.target = sample.frame[sample.feature_names], sample.frame["target"]
    return (sample.data, sample.target) if return_X_y else sample


def _frame(sample):
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError(
            "as_frame=True needs pandas: install it, or leave as_frame=False for arrays."
        ) from error
    return pd.DataFrame(sample.data, columns=sample.feature_names).assign(target=sample.target)
