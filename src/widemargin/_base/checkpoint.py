"""Save the state of a running computation to a file, and resume from it.

A checkpoint is an ``.npz`` archive without pickles. Its member ``header`` is a JSON document with
the format version, the kind of the checkpoint and the state, in which arrays are represented by
the names of other members. The comment at the end of the archive is a checksum of all the bytes
before it.
"""

import contextlib
import hashlib
import io
import json
import os
import secrets
import zipfile
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Any

import joblib
import numpy as np

PathLike = str | os.PathLike[str]

_VERSION = 1
_CHECKSUM_LENGTH = 2 * hashlib.sha256().digest_size


class CheckpointError(ValueError):
    """A checkpoint cannot be written, or it does not belong to this computation."""


class CheckpointKeeper:
    """Save the state of one fit to a file, and load it for a later fit.

    Parameters
    ----------
    path : str, path-like or None
        File to write. If None, nothing is saved or loaded.
    kind : str
        Name of what writes the file, such as the class of the estimator.
    *identity : object
        The data and parameters of the fit. A file that was written for others is refused.
    seconds_between : float, default=0.0
        Minimum time between two files written by `save_if_due`.

    Raises
    ------
    CheckpointError
        If ``path`` is a folder, or is in a folder that does not exist or cannot be written to.
    """

    def __init__(
        self, path: PathLike | None, kind: str, *identity: Any, seconds_between: float = 0.0
    ) -> None:
        self.path = path
        self.kind = kind
        self.seconds_between = seconds_between
        self.last_saved = perf_counter()
        if path is not None:
            _check_writable(path)
            self.digest = joblib.hash(identity)

    def load(self) -> dict[str, Any] | None:
        """Return the state in the file, or None if there is no file.

        Raises
        ------
        CheckpointError
            If the file is damaged or was written for other data or parameters.
        """
        if self.path is None or not os.path.exists(self.path):
            return None
        content = load_checkpoint(self.path, self.kind)
        if content["digest"] != self.digest:
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} was written for other data, another model or other "
                "parameters. Use another file name, or delete the file to start again."
            )
        return content["state"]

    def save(self, state: Callable[[], Mapping[str, Any]]) -> None:
        """Write what ``state()`` returns, a dict as in `save_checkpoint`."""
        if self.path is not None:
            content = {"digest": self.digest, "state": dict(state())}
            save_checkpoint(self.path, self.kind, content)
            self.last_saved = perf_counter()

    def save_if_due(self, state: Callable[[], Mapping[str, Any]]) -> None:
        """Write what ``state()`` returns unless the last file is too recent."""
        if perf_counter() - self.last_saved > self.seconds_between:
            self.save(state)


def save_checkpoint(path: PathLike, kind: str, state: Mapping[str, Any]) -> None:
    """Write ``state`` to ``path``, completely or not at all.

    Parameters
    ----------
    path : str or path-like
        The file to write or replace.
    kind : str
        Name of what writes the file, such as a solver. `load_checkpoint` compares it.
    state : dict
        Arrays, numbers, strings, bools, None, and dicts of these, by name.

    Raises
    ------
    CheckpointError
        If ``state`` contains anything else, such as an array of objects.
    """
    members: dict[str, Any] = {}
    header = {"version": _VERSION, "kind": kind, "state": _encode(state, "state", members)}
    members["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    archive = io.BytesIO()
    np.savez(archive, **members)
    with zipfile.ZipFile(archive, "a") as appended:
        appended.comment = b"0" * _CHECKSUM_LENGTH
    content = archive.getbuffer()[:-_CHECKSUM_LENGTH]
    with atomic_write(path) as file:
        file.write(content)
        file.write(_checksum(content))


def load_checkpoint(path: PathLike, kind: str) -> dict[str, Any]:
    """Return the state that `save_checkpoint` wrote to ``path``.

    Parameters
    ----------
    path : str or path-like
        The file to read.
    kind : str
        Required kind.

    Returns
    -------
    state : dict
        Equal to the saved state, including types and dtypes.

    Raises
    ------
    CheckpointError
        If the file is damaged, of another kind, or written by a newer version of the library.
    """
    with open(path, "rb") as file:
        content = file.read()
    if content[-_CHECKSUM_LENGTH:] != _checksum(content[:-_CHECKSUM_LENGTH]):
        raise CheckpointError(
            f"checkpoint={str(path)!r} is not a checkpoint file, or it is damaged: its checksum is "
            "wrong. Delete the file to start again."
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as members:
        header = json.loads(members["header"].tobytes())
        if header["version"] > _VERSION:
            raise CheckpointError(
                f"checkpoint={str(path)!r} has format {header['version']}; this version of "
                f"widemargin reads formats up to {_VERSION}. Upgrade widemargin to resume from it."
            )
        if header["kind"] != kind:
            raise CheckpointError(
                f"checkpoint={str(path)!r} is of kind {header['kind']!r}, but kind={kind!r} is "
                "needed. Use another file name, or delete the file."
            )
        return _decode(header["state"], members)


@contextlib.contextmanager
def atomic_write(path: PathLike) -> Iterator[Any]:
    """Open a file for writing that replaces ``path`` when it is complete.

    Parameters
    ----------
    path : str or path-like
        The file to write. An existing file stays unchanged until the block has ended without an
        exception and the content has been written to disk.

    Yields
    ------
    file : binary file object
    """
    target = os.path.realpath(path)  # replace the target of a link, not the link
    # In the same directory: a file cannot be moved to another file system in one step.
    temporary = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _check_writable(path: PathLike) -> None:
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise CheckpointError(
            f"checkpoint={str(path)!r} cannot be written. It must be the name of a file in an "
            "existing folder with write permission. Create the folder, or use another name."
        )


def _checksum(content: Any) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _encode(value: Any, name: str, members: dict[str, Any]) -> Any:
    """Return ``value`` as JSON data; arrays, which JSON cannot represent, become members."""
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        inner = {key: _encode(item, f"{name}[{key!r}]", members) for key, item in value.items()}
        return {"dict": inner}
    if type(value) is np.ndarray or isinstance(value, np.generic):
        if value.dtype.hasobject:
            raise CheckpointError(f"{name} has dtype {value.dtype}: objects cannot be saved.")
        member = str(len(members))
        members[member] = np.asarray(value)
        return {"array" if type(value) is np.ndarray else "scalar": member}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise CheckpointError(
        f"{name} is of type {type(value).__name__}; a checkpoint can contain arrays, numbers, "
        "strings, bools, None and dicts of these with strings as keys."
    )


def _decode(encoded: Any, members: Any) -> Any:
    match encoded:
        case {"dict": inner}:
            return {key: _decode(item, members) for key, item in inner.items()}
        case {"array": member}:
            return members[member]
        case {"scalar": member}:
            return members[member][()]
        case _:
            return encoded
