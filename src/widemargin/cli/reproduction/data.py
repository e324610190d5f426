"""Data of the papers: part of the package, in a folder, downloaded, or not available."""

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from widemargin.cli.main import CommandError
from widemargin.datasets import DatasetError, fetch_dataset, load_satimage, load_vowel, load_yeast

_SHIPPED = {"vowel": load_vowel, "satimage": load_satimage}


_CSR = ("data", "indices", "indptr", "shape")
_ARRAYS = ("X_train", "y_train", "X_test", "y_test")


def split(name: str, folder: Path | None = None) -> tuple[Any, ...] | None:
    """Return training samples, labels, test samples and labels; None if they are not available.

    Parameters
    ----------
    name : str
        One of the data sets of the package, or of `fetch_dataset`.
    folder : Path, optional
        Folder with copies of data sets as NAME.npz, which are not downloaded then.

    Returns
    -------
    split : tuple of four arrays or None
        The official split. That of yeast is drawn, with a seed, in the proportion of the paper.
    """
    if name in _SHIPPED:
        subsets = [_SHIPPED[name](subset=subset, return_X_y=True) for subset in ("train", "test")]
        return (*subsets[0], *subsets[1])
    if name == "yeast":
        X, y = load_yeast(return_X_y=True)
        train, test = train_test_split(np.arange(len(y)), test_size=299, stratify=y, random_state=0)
        return X[train], y[train], X[test], y[test]
    if folder is not None and (folder / f"{name}.npz").is_file():
        return _stored(folder / f"{name}.npz")
    try:
        dataset = fetch_dataset(name)
    except (DatasetError, ImportError) as error:
        print(f"  {name} is left out: {error}", flush=True)
        return None
    return tuple(dataset[key] for key in _ARRAYS)


def _stored(path: Path) -> tuple[Any, ...]:
    """Read ``X_train``, ``y_train``, ``X_test`` and ``y_test`` from an NPZ file.

    A sparse matrix is stored as ``X_train__data``, ``__indices``, ``__indptr`` and ``__shape``.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return tuple(
                file[key] if key in file else _sparse({k: file[f"{key}__{k}"] for k in _CSR})
                for key in _ARRAYS
            )
    except (KeyError, OSError, ValueError, BadZipFile) as error:
        raise CommandError(
            f"{path} does not contain the arrays {', '.join(_ARRAYS)} ({error}).",
            "Remove it, and the data set is downloaded.",
        ) from error


def _sparse(raw: dict[str, np.ndarray]) -> sp.csr_array:
    values = raw["data"].astype(np.float64), raw["indices"], raw["indptr"]
    return sp.csr_array(values, shape=tuple(raw["shape"]))


def dense(X: Any) -> np.ndarray:
    """Return features as an array of float64."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
