"""Model files: one safe format for all estimators.

A model file is a skops archive (zip, not compressed) with one more member, ``widemargin.json``: the
format, versions, and a description of the model. The comment at the end of the archive is a
checksum of all the bytes before it. Loading creates objects of trusted types only, and calls
nothing else.
"""

import contextlib
import hashlib
import io
import json
import platform
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from widemargin._base.checkpoint import PathLike, atomic_write
from widemargin._base.sklearn_compat import __version__
from widemargin.export.types import is_trusted
from widemargin.kernels.expansion import KernelExpansion
from widemargin.labeltree.tree import LabelTreeClassifier

_FORMAT = "widemargin model 1"
_HEADER = "widemargin.json"
_DIGITS = 2 * hashlib.sha256().digest_size


class ModelFileError(ValueError):
    """A model cannot be saved, or a file is not a model file that can be loaded."""


@dataclass(frozen=True)
class ModelFile:
    """What a model file contains, read without creating the model.

    Parameters
    ----------
    estimator : str
        Full name of the class of the model.
    summary : str
        The model with its parameters, as Python prints it.
    versions : dict of str
        Versions of Python and of the libraries that saved the model.
    n_features : int or None
        Number of features, if the model is fitted.
    feature_names : list of str or None
        Names of the features, if the model was fitted on a table with names.
    classes : list or None
        Class labels, if there are any.
    metadata : dict
        What was passed to `save` as ``metadata``.
    types : list of str
        Full names of all types in the file.
    untrusted_types : list of str
        Those that `load` refuses unless they are passed as ``trusted``.
    n_bytes : int
        Size of the file.
    """

    estimator: str
    summary: str
    versions: dict[str, str]
    n_features: int | None
    feature_names: list[str] | None
    classes: list | None
    metadata: dict[str, Any]
    types: list[str]
    untrusted_types: list[str]
    n_bytes: int


def save(model: Any, path: PathLike, *, metadata: dict[str, Any] | None = None) -> None:
    """Save an estimator to a model file.

    The file is complete or it is not there: an existing file is replaced in one step. `load` reads
    it without running code from the file. Requires skops (``pip install 'widemargin[export]'``).

    Parameters
    ----------
    model : estimator
        An estimator of widemargin or scikit-learn, such as a pipeline of transformers and a
        classifier.
    path : str or path-like
        File to write, by convention with the extension ``.skops``.
    metadata : dict, optional
        Anything that JSON can represent; `inspect` returns it.

    Raises
    ------
    ModelFileError
        If the model contains something that cannot be loaded again, such as a lambda function.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVC
    >>> from widemargin.export import load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, os.path.join(folder, "iris.skops"))
    ...     again = load(os.path.join(folder, "iris.skops"))
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    if not hasattr(model, "get_params") or isinstance(model, type):
        raise TypeError(f"model must be an estimator, got {model!r}. Pass a fitted estimator.")
    skops, header = _skops(), json.dumps(_describe(model, metadata), default=str)
    try:
        archive = io.BytesIO(skops.dumps(model))
    except Exception as error:
        raise ModelFileError(
            f"This {type(model).__name__} cannot be saved: {error}. Remove what cannot be saved "
            "from its parameters and attributes, or use pickle."
        ) from error
    missing = [name for name in _untrusted_types(archive.getbuffer()) if not _is_loaded(name)]
    if missing:
        raise ModelFileError(
            f"This {type(model).__name__} cannot be saved, since {', '.join(missing)} cannot be "
            "imported by name. Define functions and classes at the top level of a module."
        )
    with zipfile.ZipFile(archive, "a") as appended:
        appended.writestr(_HEADER, header)
        appended.comment = b"0" * _DIGITS
    content = archive.getbuffer()[:-_DIGITS]
    with atomic_write(path) as file:
        file.write(content)
        file.write(_checksum(content))


def load(path: PathLike, *, trusted: Sequence[str | type] = ()) -> Any:
    """Load an estimator from a model file.

    Parameters
    ----------
    path : str or path-like
        File that `save` has written.
    trusted : sequence of str or type, default=()
        Types to load beside those of NumPy, SciPy, scikit-learn and widemargin, such as a
        transformer of yours. `inspect` lists the types in a file. Their code runs.

    Returns
    -------
    model : estimator
        Its predictions have the same bits as those of the saved model.

    Raises
    ------
    ModelFileError
        If the file is damaged, or contains types that are not trusted.

    Warns
    -----
    UserWarning
        If another version of widemargin or scikit-learn has saved the model.
    """
    skops = _skops()
    content, _ = _read(path)
    names = [n if isinstance(n, str) else f"{n.__module__}.{n.__name__}" for n in trusted]
    with _damage_refused(path):
        needed = _untrusted_types(content)
    refused = [name for name in needed if name not in names and not is_trusted(name)]
    if refused:
        raise ModelFileError(
            f"{str(path)!r} contains types that are not trusted: {', '.join(refused)}. If the file "
            "comes from a source that you trust, load it with trusted=[...] listing them."
        )
    with _damage_refused(path):
        model = skops.loads(content, trusted=needed)
        _check_indices(model)
    return model


def inspect(path: PathLike) -> ModelFile:
    """Return what a model file contains, without creating the model.

    Parameters
    ----------
    path : str or path-like
        File that `save` has written.

    Returns
    -------
    description : ModelFile
        The description that was saved with the model, and the types in the file.

    Raises
    ------
    ModelFileError
        If the file is damaged.
    """
    content, schema = _read(path)
    with _damage_refused(path), zipfile.ZipFile(io.BytesIO(content)) as archive:
        header = json.loads(archive.read(_HEADER))
        untrusted = [name for name in _untrusted_types(content) if not is_trusted(name)]
        types = {
            f"{node['__module__']}.{node['__class__']}"
            for node in _nodes(schema)
            if node["__loader__"] != "JsonNode"
        }
        return ModelFile(
            estimator=f"{schema['__module__']}.{schema['__class__']}",
            summary=str(header["summary"]),
            versions=dict(header["versions"]),
            n_features=header["n_features"],
            feature_names=header["feature_names"],
            classes=header["classes"],
            metadata=dict(header["metadata"]),
            types=sorted(types),
            untrusted_types=untrusted,
            n_bytes=len(content),
        )


def _skops() -> ModuleType:
    try:
        return import_module("skops.io")
    except ImportError as error:
        raise ImportError(
            "Model files require skops. Install it with: pip install 'widemargin[export]'"
        ) from error


def _untrusted_types(content: Any) -> list[str]:
    """Return the types in an archive that skops does not trust; imports and creates nothing."""
    return _skops().get_untrusted_types(data=bytes(content))


def _is_loaded(name: str) -> bool:
    module, _, last = name.rpartition(".")
    owner = sys.modules.get(module)
    if owner is None:  # a method: the module comes before its class
        module, _, class_name = module.rpartition(".")
        owner = getattr(sys.modules.get(module), class_name, None)
    return hasattr(owner, last)


def _describe(model: Any, metadata: dict[str, Any] | None) -> dict[str, Any]:
    """Return what `inspect` returns of a model, as JSON data."""
    names = getattr(model, "feature_names_in_", None)
    classes = getattr(model, "classes_", None)
    try:
        json.dumps(metadata)
    except (TypeError, ValueError) as error:
        raise TypeError(f"metadata must contain what JSON can represent, but {error}.") from error
    return {
        "format": _FORMAT,
        "summary": repr(model),
        "versions": {
            "python": platform.python_version(),
            "widemargin": __version__,
            **{name: version(name) for name in ("scikit-learn", "numpy", "skops")},
        },
        "n_features": getattr(model, "n_features_in_", None),
        "feature_names": None if names is None else [str(name) for name in names],
        "classes": classes.tolist() if isinstance(classes, np.ndarray) else None,
        "metadata": metadata or {},
    }


def _read(path: PathLike) -> tuple[bytes, dict[str, Any]]:
    """Return the bytes and the schema of an archive, with all checks that need no types."""
    with open(path, "rb") as file:
        content = file.read()
    if content[-_DIGITS:] != _checksum(content[:-_DIGITS]):
        raise ModelFileError(
            f"{str(path)!r} is not a model file, or it is damaged: its checksum is wrong. Save the "
            "model again, or copy the file again."
        )
    with _damage_refused(path), zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        # Compressed or overlapping members may need any amount of memory.
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("compressed members")
        if sum(member.file_size for member in members) > len(content):
            raise ValueError("overlapping members")
        header = json.loads(archive.read(_HEADER))
        if header["format"] != _FORMAT:
            raise ModelFileError(
                f"{str(path)!r} has the format {header['format']!r}; this version of widemargin "
                f"reads {_FORMAT!r}. Load it with the version that saved it."
            )
        schema = json.loads(archive.read("schema.json"))
        _check_references(schema)
        return content, schema


def _checksum(content: Any) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


@contextlib.contextmanager
def _damage_refused(path: PathLike) -> Iterator[None]:
    """Turn what reading a malformed file may raise into a ModelFileError."""
    try:
        yield
    except (ModelFileError, Warning):
        raise
    except Exception as error:
        raise ModelFileError(
            f"{str(path)!r} is damaged ({type(error).__name__}: {error}). Save the model again."
        ) from error


def _nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the nodes of a schema: the dicts that describe an object."""
    waiting: list[Any] = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "__loader__" in value:
                yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _check_references(value: Any, contents: dict[Any, int] | None = None) -> int:
    """Return a hash of a schema; raise a ValueError if nodes of the same identity differ.

    skops writes an object at each of its occurrences, and reads the first one only. References to
    other content could describe objects that are exponentially larger than the file.
    """
    contents = {} if contents is None else contents
    if isinstance(value, list):
        return hash(tuple(_check_references(item, contents) for item in value))
    if not isinstance(value, dict):
        return hash((type(value), value))
    # Temporary objects have other identities, and so names of members, each time.
    lasting = [key for key in value if key not in ("__id__", "file")]
    content = hash(tuple((key, _check_references(value[key], contents)) for key in lasting))
    identity = value.get("__id__")
    if identity and contents.setdefault(identity, content) != content:
        raise ValueError("contradictory references")
    return content


def _check_indices(model: Any) -> None:
    """Raise a ValueError if indices are out of bounds, which would crash compiled code."""
    waiting, seen = [model], set()
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, str | bytes | int | float | None | type):
            continue
        seen.add(id(value))
        if sp.issparse(value):
            if value.format in ("csr", "csc", "bsr"):
                value.check_format(full_check=True)
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list | tuple | set):
            waiting.extend(value)
        elif isinstance(value, np.ndarray):
            waiting.extend(value.ravel() if value.dtype.hasobject else ())
        else:
            if isinstance(value, LabelTreeClassifier):
                value._check_loaded()
            if isinstance(value, KernelExpansion):
                value.check_loaded()
            waiting.extend(getattr(value, "__dict__", {}).values())
