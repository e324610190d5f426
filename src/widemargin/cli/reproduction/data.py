"""Data of the papers: part of the package, downloaded, or not available."""

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from widemargin.datasets import DatasetError, fetch_dataset, load_satimage, load_vowel, load_yeast

_SHIPPED = {"vowel": load_vowel, "satimage": load_satimage}


def split(name: str) -> tuple[Any, ...] | None:
    """Return training samples, labels, test samples and labels; None if they are not available.

    Parameters
    ----------
    name : str
        One of the data sets of the package, or of `fetch_dataset`.

    Returns
    -------
    split : tuple of four arrays or None
        The official split. That of yeast is drawn, with a seed, in the proportion of the paper.
    """
    if name in _SHIPPED:
        parts = [_SHIPPED[name](subset=subset, return_X_y=True) for subset in ("train", "test")]
        return (*parts[0], *parts[1])
    if name == "yeast":
        X, y = load_yeast(return_X_y=True)
        train, test = train_test_split(np.arange(len(y)), test_size=299, stratify=y, random_state=0)
        return X[train], y[train], X[test], y[test]
    try:
        found = fetch_dataset(name)
    except (DatasetError, ImportError) as error:
        print(f"  {name} is left out: {error}", flush=True)
        return None
    return found.X_train, found.y_train, found.X_test, found.y_test


def dense(X: Any) -> np.ndarray:
    """Return features as an array of float64."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
