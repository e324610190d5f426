"""The state of a running computation in a file, to go on from later.

A checkpoint is an ``.npz`` archive without pickles. The member ``header`` says in JSON what format
and what kind of checkpoint it is and spells the state, in which arrays stand as the numbers of
other members. The comment at the very end of the archive is a checksum of all that precedes it.
"""

import hashlib
import io
import json
import zipfile

import numpy as np

from widemargin._base.files import atomic_write

__all__ = ["CheckpointError", "load_checkpoint", "save_checkpoint"]

_VERSION = 1
_CHECKSUM_LENGTH = 64


class CheckpointError(ValueError):
    """A checkpoint cannot be written or is not one that can be used here."""


def save_checkpoint(path, kind, state):
    """Write ``state`` to ``path``, whole or not at all.

    Parameters
    ----------
    path : str or path-like
        The file to write or replace.
    kind : str
        What wrote it, such as the name of a solver; `load_checkpoint` asks for the same.
    state : dict
        Names and values: arrays, numbers, strings, bools, None, and dicts of these, for the state
        of a random generator.

    Raises
    ------
    CheckpointError
        If ``state`` holds anything else, such as an array of objects.
    """
    members: dict = {}
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


def load_checkpoint(path, kind):
    """Return the state that `save_checkpoint` has written to ``path``.

    Parameters
    ----------
    path : str or path-like
        The file to read.
    kind : str
        The kind it must be of.

    Returns
    -------
    state : dict
        Equal to what was saved, types and dtypes included.

    Raises
    ------
    CheckpointError
        If the file is damaged, of another kind, or written by a newer version of the library.
    """
    with open(path, "rb") as file:
        content = file.read()
    if content[-_CHECKSUM_LENGTH:] != _checksum(content[:-_CHECKSUM_LENGTH]):
        raise CheckpointError(
            f"path={str(path)!r} is not a checkpoint, or it is damaged: its checksum is wrong. "
            "Start again without it."
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as members:
        header = json.loads(members["header"].tobytes())
        if header["version"] > _VERSION:
            raise CheckpointError(
                f"path={str(path)!r} has checkpoint format {header['version']}; this version of "
                f"widemargin reads formats up to {_VERSION}. Upgrade widemargin to go on from it."
            )
        if header["kind"] != kind:
            raise CheckpointError(
                f"path={str(path)!r} is a checkpoint of kind {header['kind']!r}, but kind={kind!r} "
                "is needed. Use a file that the same method has written."
            )
        return _decode(header["state"], members)


def _checksum(content):
    return hashlib.sha256(content).hexdigest().encode()


def _encode(value, name, members):
    """Spell ``value`` in JSON; put arrays, which JSON cannot hold exactly, among the members."""
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
        f"{name} is of type {type(value).__name__}; a checkpoint holds arrays, numbers, strings, "
        "bools, None and dicts of these with strings as keys."
    )


def _decode(spelled, members):
    match spelled:
        case {"dict": inner}:
            return {key: _decode(item, members) for key, item in inner.items()}
        case {"array": member}:
            return members[member]
        case {"scalar": member}:
            return members[member][()]
        case _:
            return spelled
