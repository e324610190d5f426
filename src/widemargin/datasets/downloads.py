"""Public data sets of the benchmarks: downloaded once, checked, and kept in a cache."""

import bz2
import gzip
import hashlib
import io
import json
import os
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch

from widemargin._base.checkpoint import PathLike, atomic_write

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_OCR = "https://ai.stanford.edu/~btaskar/ocr/letter.data.gz"
_IMBALANCED = "https://zenodo.org/record/61452/files/benchmark-imbalanced-learn.tar.gz"
_CHECKSUMS = "checksums.json"
# What the readers raise for files that are truncated, altered or something else.
_UNREADABLE = (
    ValueError, OSError, EOFError, LookupError, tarfile.TarError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


class DatasetError(OSError):
    """A data set cannot be downloaded, or its files are damaged; the message contains a remedy."""


@dataclass(frozen=True)
class _Source:
    """Where a data set is, and what it contains.

    Attributes
    ----------
    addresses : tuple of str
        Files to download.
    read : callable
        Return the arrays of these files by name, given their paths.
    shapes : dict
        Shape of each array, or number of outputs of each list, by name.
    content : str or None
        Digest of the arrays with which the benchmarks were run, as of `_digest`; None if that copy
        has other samples or scales.
    """

    addresses: tuple[str, ...]
    read: Callable[..., dict[str, Any]]
    shapes: dict[str, Any] = field(default_factory=dict)
    content: str | None = None


def fetch_dataset(
    name: str, *, data_home: PathLike | None = None, download_if_missing: bool = True
) -> Bunch:
    """Load a public data set of the benchmarks, and download it if needed.

    ``letter``, ``shuttle``, ``protein``, ``sector`` and ``mnist`` have several classes, ``a9a`` and
    ``ijcnn1`` two, ``scene``, ``bibtex`` and ``delicious`` several labels for a sample; they come
    from the LIBSVM data page. ``ocr_letters`` are the 6,877 words of which `load_letters` contains
    a tenth. ``imbalanced_NAME`` are those of imbalanced-learn, such as ``imbalanced_ecoli``.

    A file is downloaded once. It is accepted if it can be read completely and has the right
    number of samples and features; its SHA-256 checksum is then stored beside it, and compared in
    each later call. The authors of most sets publish no checksums. Instead, the arrays are compared
    with those with which the benchmarks were run, if these contain the same samples in the same
    scale.

    Parameters
    ----------
    name : str
        Name of the data set.
    data_home : str or path-like, default=None
        Folder of the cache. If None, the environment variable ``WIDEMARGIN_DATA`` or, without it,
        the cache folder of the user.
    download_if_missing : bool, default=True
        Whether to download files that are not in the cache. Requires pooch, which is part of the
        extra ``data``.

    Returns
    -------
    Bunch
        Data sets with an official split have ``X_train``, ``y_train``, ``X_test`` and ``y_test``,
        others ``X`` and ``y``; ``ocr_letters`` has ``folds`` too. Features are a CSR matrix if
        most of them are zero, otherwise an array. Labels of several labels are an indicator matrix
        in CSR format.

    Raises
    ------
    DatasetError
        If a file cannot be downloaded, or is damaged. The message contains what to do.

    Warns
    -----
    UserWarning
        If the arrays differ from those with which the benchmarks were run.

    See Also
    --------
    load_letters, load_satimage, load_vowel, load_yeast : Data sets that are part of the package.

    Examples
    --------
    >>> from widemargin.datasets import fetch_dataset
    >>> letter = fetch_dataset("letter")  # doctest: +SKIP
    >>> letter.X_train.shape  # doctest: +SKIP
    (15000, 16)
    """
    if name not in SOURCES:
        raise ValueError(f"name must be one of {', '.join(SOURCES)}, got {name!r}.")
    source, folder = SOURCES[name], _cache(data_home) / _folder_name(name)
    known = _checksums(folder)
    paths = [
        _file(name, address, folder, known, download_if_missing) for address in source.addresses
    ]
    try:
        arrays = source.read(*paths)
        _check_shapes(arrays, source.shapes)
    except _UNREADABLE as error:
        _set_aside(paths, folder, known)
        raise DatasetError(
            f"The files of {name!r} are damaged, or the address leads to other ones now "
            f"({type(error).__name__}: {error}). They were renamed to *.damaged in {folder}. Call "
            "fetch_dataset again to download them again."
        ) from error
    _record(folder, known, paths)
    if source.content is not None and _digest(arrays) != source.content:
        warnings.warn(
            f"The arrays of {name!r} differ from those with which the benchmarks were run, so that "
            "results may differ from the published ones.",
            stacklevel=2,
        )
    return Bunch(**arrays)


def _cache(data_home: PathLike | None) -> Path:
    """Return the folder of the cache."""
    chosen = data_home or os.environ.get("WIDEMARGIN_DATA")
    if chosen:
        return Path(chosen)
    base = os.environ.get("LOCALAPPDATA") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "widemargin"


def _folder_name(name: str) -> str:
    return "imbalanced" if name.startswith("imbalanced_") else name


def _file(
    name: str, address: str, folder: Path, known: dict[str, str], download_if_missing: bool
) -> Path:
    """Return the path of a file in the cache, after a download if needed."""
    path = folder / address.rpartition("/")[2]
    if path.is_file():
        if path.name in known and known[path.name] != _sha256(path):
            raise DatasetError(
                f"{path} has changed since it was downloaded. Delete it and call fetch_dataset "
                "again."
            )
        return path
    remedy = (
        f"Download {address} on a computer with a network and copy it to {folder}, or set "
        "WIDEMARGIN_DATA or data_home to a folder that contains it."
    )
    if not download_if_missing:
        raise DatasetError(f"{name!r} is not in the cache ({folder}). {remedy}")
    try:
        pooch = import_module("pooch")
    except ImportError as error:
        raise ImportError(
            f"Downloads require pooch. Install it with: pip install 'widemargin[data]'. {remedy}"
        ) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pooch.get_logger().setLevel("WARNING")  # it suggests checksums to its users
        # Written to a temporary file first, so that there is no part of a file under this name.
        pooch.retrieve(address, known.get(path.name), path.name, folder)
    except Exception as error:
        raise DatasetError(
            f"{name!r} cannot be downloaded from {address} ({type(error).__name__}: "
            f"{' '.join(str(error).split())}). {remedy}"
        ) from error
    return path


def _checksums(folder: Path) -> dict[str, str]:
    """Return the checksums of the files that were accepted before."""
    try:
        stored = json.loads((folder / _CHECKSUMS).read_text(encoding="utf-8"))
        return {str(name): str(value) for name, value in stored.items()}
    except (OSError, ValueError, AttributeError):
        return {}


def _record(folder: Path, known: dict[str, str], paths: list[Path]) -> None:
    checksums = {**known, **{path.name: _sha256(path) for path in paths}}
    if checksums != known:
        with atomic_write(folder / _CHECKSUMS) as file:
            file.write(json.dumps(checksums, indent=1).encode())


def _set_aside(paths: list[Path], folder: Path, known: dict[str, str]) -> None:
    """Rename files that cannot be read, and forget their checksums."""
    for path in paths:
        path.replace(path.with_name(f"{path.name}.damaged"))
    left = {name: value for name, value in known.items() if name not in {p.name for p in paths}}
    if left != known:
        with atomic_write(folder / _CHECKSUMS) as file:
            file.write(json.dumps(left, indent=1).encode())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_shapes(arrays: dict[str, Any], shapes: dict[str, Any]) -> None:
    for name, expected in shapes.items():
        value = arrays[name]
        shape = value.shape if hasattr(value, "shape") else len(value)
        if shape != expected:
            raise ValueError(f"{name} has the shape {shape} instead of {expected}")


def _digest(arrays: dict[str, Any]) -> str:
    """Return a digest of arrays that depends neither on their storage nor on digits of float64."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        value = sp.csr_array(arrays[name]) if arrays[name].ndim == 2 else arrays[name]
        if sp.issparse(value):
            value = value.copy()
            value.sum_duplicates()
            value.eliminate_zeros()
            chunks = [value.indptr.astype("<i8"), value.indices.astype("<i8")]
            chunks.append(value.data.astype("<f4"))
        else:
            chunks = [value.astype("<i8")]
        for chunk in chunks:
            total.update(chunk.tobytes())
    return total.hexdigest()


def _read_libsvm(n_features: int, multilabel: int = 0, **options: Any) -> Callable[..., dict]:
    """Return a reader of a training file and a test file, or of one file."""

    def read(*paths: Path) -> dict[str, Any]:
        arrays = {}
        for path, suffix in zip(
            paths, ("_train", "_test") if len(paths) > 1 else ("",), strict=True
        ):
            X, y = load_svmlight_file(
                io.BytesIO(_decompressed(path)), n_features=n_features, zero_based=False,
                multilabel=bool(multilabel), **options,
            )  # fmt: skip
            dense = 2 * X.nnz > X.shape[0] * X.shape[1]
            arrays[f"X{suffix}"] = X.toarray() if dense else sp.csr_array(X)
            arrays[f"y{suffix}"] = _indicators(y, multilabel) if multilabel else y.astype(np.int64)
        return arrays

    return read


def _indicators(labels: list[tuple[float, ...]], n_labels: int) -> sp.csr_array:
    """Return an indicator matrix of labels that are numbered from 0."""
    lengths = [len(of_sample) for of_sample in labels]
    columns = np.array([label for of_sample in labels for label in of_sample], dtype=np.int64)
    if len(columns) and not 0 <= columns.min() <= columns.max() < n_labels:
        raise ValueError(f"labels must be from 0 to {n_labels - 1}")
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return sp.csr_array((np.ones(len(columns)), columns, starts), shape=(len(labels), n_labels))


def _decompressed(path: Path) -> bytes:
    """Return the content of a file; raises an error if a compressed one is truncated."""
    if path.suffix == ".bz2":
        return bz2.decompress(path.read_bytes())
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def _read_words(path: Path) -> dict[str, Any]:
    """Read the OCR letters: a line is a letter, its next one, word, place, fold and pixels."""
    lines = [line.split() for line in _decompressed(path).decode("ascii").splitlines()]
    if any(len(line) != 134 for line in lines):
        raise ValueError("a letter must have 128 pixels")
    pixels = np.array([line[6:] for line in lines], dtype=np.uint8)
    letters = np.array([ord(line[1]) - ord("a") for line in lines])
    ends = np.flatnonzero([line[2] == "-1" for line in lines]) + 1
    folds = np.array([int(lines[end - 1][5]) for end in ends])
    return {"X": np.split(pixels, ends[:-1]), "y": np.split(letters, ends[:-1]), "folds": folds}


def _read_imbalanced(number: int) -> Callable[[Path], dict[str, Any]]:
    def read(path: Path) -> dict[str, Any]:
        with tarfile.open(path) as archive:
            member = archive.extractfile(f"x{number}data.npz")
            with np.load(io.BytesIO(member.read()), allow_pickle=False) as arrays:  # type: ignore
                return {"X": arrays["data"], "y": arrays["label"].astype(np.int64)}

    return read


def _split(
    folder: str,
    files: str,
    n_train: int,
    n_test: int,
    n_features: int,
    n_labels: int = 0,
    content: str | None = None,
) -> _Source:
    """Return a data set of the LIBSVM page with an official split."""
    y_shapes = [(n, n_labels) if n_labels else (n,) for n in (n_train, n_test)]
    return _Source(
        tuple(f"{_LIBSVM}/{folder}/{file}" for file in files.split()),
        _read_libsvm(n_features, n_labels),
        {
            "X_train": (n_train, n_features), "y_train": y_shapes[0],
            "X_test": (n_test, n_features), "y_test": y_shapes[1],
        },
        content,
    )  # fmt: skip


def _whole(file: str, n: int, n_features: int, n_labels: int) -> _Source:
    """Return a data set of the LIBSVM page with several labels and without a split."""
    shapes = {"X": (n, n_features), "y": (n, n_labels)}
    return _Source((f"{_LIBSVM}/{file}",), _read_libsvm(n_features, n_labels), shapes)


# Numbers in the archive, and numbers of samples and features.
_IMBALANCED_SETS = {
    "ecoli": (1, 336, 7), "optical_digits": (2, 5620, 64), "abalone": (5, 4177, 10),
    "sick_euthyroid": (6, 3163, 42), "car_eval_34": (8, 1728, 21), "us_crime": (10, 1994, 100),
    "libras_move": (13, 360, 90), "thyroid_sick": (14, 3772, 52), "oil": (18, 937, 49),
    "letter_img": (21, 20000, 16), "yeast_me2": (22, 1484, 8), "mammography": (25, 11183, 6),
}  # fmt: skip

SOURCES: dict[str, _Source] = {
    "a9a": _split(
        "binary",
        "a9a a9a.t",
        32561,
        16281,
        123,
        content="8a4ca8b35597d497f4faa06749068b4efc43baae19f3f4d0cfebd77035b74b00",
    ),
    "ijcnn1": _split(
        "binary",
        "ijcnn1.bz2 ijcnn1.t.bz2",
        49990,
        91701,
        22,
        content="06f7e1e7e4e40a4510d9fb1e082be9870be1ccfff5e4b5968e2a6588a563b0ff",
    ),
    "letter": _split(
        "multiclass",
        "letter.scale letter.scale.t",
        15000,
        5000,
        16,
        content="fce67bd4bd02c158e8ba1b5dc2a7e74dc5406ae6703469d44fb2552fe50ad1d7",
    ),
    "shuttle": _split("multiclass", "shuttle.scale shuttle.scale.t", 43500, 14500, 9),
    "protein": _split("multiclass", "protein.bz2 protein.t.bz2", 17766, 6621, 357),
    "sector": _split("multiclass/sector", "sector.scale.bz2 sector.t.scale.bz2", 6412, 3207, 55197),
    "mnist": _split(
        "multiclass",
        "mnist.bz2 mnist.t.bz2",
        60000,
        10000,
        784,
        content="510369eb1ba7966b348aec913c830adadbf7bbdcf8b2d337473af77b237f9489",
    ),
    "scene": _split("multilabel", "scene_train.bz2 scene_test.bz2", 1211, 1196, 294, 6),
    "bibtex": _whole("multilabel/bibtex.bz2", 7395, 1836, 159),
    "delicious": _whole("multilabel/delicious.bz2", 16105, 500, 983),
    "ocr_letters": _Source((_OCR,), _read_words, {"X": 6877, "y": 6877, "folds": (6877,)}),
    **{
        f"imbalanced_{name}": _Source(
            (_IMBALANCED,), _read_imbalanced(number), {"X": (n, n_features), "y": (n,)}
        )
        for name, (number, n, n_features) in _IMBALANCED_SETS.items()
    },
}
