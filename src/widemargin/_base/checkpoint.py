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
import stat
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from time import perf_counter
from typing import Any, TypeVar

import joblib
import numpy as np

from widemargin._base.options import checkpoint_options as options
from widemargin._base.sklearn_compat import __version__
from widemargin._base.threads import stopping

PathLike = str | os.PathLike[str]
Result = TypeVar("Result")

_VERSION = 2  # of the format: files of other versions are refused
_MOST = 2**53  # largest count in a state
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
        The data and parameters of the fit. A file that was written for others, or by another
        version of widemargin, is refused.
    seconds_between : float, default=0.0
        Minimum time between two files written by `save_if_due`.

    Raises
    ------
    CheckpointError
        If ``path`` is no regular file, or its folder does not exist or cannot be written to.
    """

    def __init__(
        self, path: PathLike | None, kind: str, *identity: Any, seconds_between: float = 0.0
    ) -> None:
        self.path = path
        self.kind = kind
        self.seconds_between = seconds_between
        self.last_saved = perf_counter()
        self.last_duration = 0.0
        self.has_warned = False
        if path is not None:
            _check_writable(path)
            # Another version may have other solvers, with other states.
            self.digest = _digest(path, (__version__, *identity))

    def load(self, expected: Callable[[Any], Mapping[str, Any]]) -> dict[str, Any] | None:
        """Return the state in the file, or None if there is no file.

        Parameters
        ----------
        expected : callable
            ``expected(state)`` returns what `check_state` compares the state with. Sizes that
            change during the computation are those of ``state``, which is not checked yet.

        Raises
        ------
        CheckpointError
            If the file is damaged, was written for other data or parameters, or does not contain
            the expected arrays and numbers.
        """
        if self.path is None or not os.path.exists(self.path):
            return None
        content = load_checkpoint(self.path, self.kind)
        if content.get("digest") != self.digest:
            raise CheckpointError(
                f"checkpoint={str(self.path)!r} was written for other data, another model, other "
                "parameters or by another version. Use another file name, or delete the file to "
                "start again."
            )
        with _damage_refused(self.path):
            state = content["state"]
            check_state(state, expected(state))
        return state

    def save(self, state: Callable[[], Mapping[str, Any]]) -> None:
        """Write what ``state()`` returns, a dict as in `save_checkpoint`; warn if that fails."""
        if self.path is None:
            return
        started, content = perf_counter(), {"digest": self.digest, "state": dict(state())}
        try:
            save_checkpoint(self.path, self.kind, content)
        except OSError as error:
            if not self.has_warned:
                _warn_not_written(self.path, error)
            self.has_warned = True
        self.last_saved = perf_counter()
        self.last_duration = self.last_saved - started

    def save_if_due(self, state: Callable[[], Mapping[str, Any]]) -> None:
        """Write what ``state()`` returns unless the last file is too recent."""
        if self.is_due(self.last_saved):
            self.save(state)

    def is_due(self, last: float) -> bool:
        """Return whether it is time to save what was saved ``last``.

        A file that takes long to write is written less often.
        """
        pause = options.pause_per_write * self.last_duration
        return perf_counter() - last > max(self.seconds_between, pause)


class FitCheckpoint:
    """Save what the tasks of a fit have computed to one file, and load it for a later fit.

    A task has a name that is unique in the fit. The file holds the results of the tasks that have
    finished and the states of the solvers of those under way. The later fit takes the results from
    the file and resumes the solvers, which do not depend on when the file was written: its result
    has the bits of an uninterrupted fit.

    Parameters
    ----------
    path : str, path-like or None
        File to write. If None, nothing is saved or loaded.
    kind : str
        Name of what writes the file, such as the class of the estimator.
    *identity : object
        The data and parameters of the fit. A file that was written for others, or by another
        version of widemargin, is refused.
    is_stopped : callable, optional
        Returns whether a callback has stopped the fit.

    Raises
    ------
    CheckpointError
        If the file cannot be written, is damaged, or was written for other data or parameters.
    """

    def __init__(
        self,
        path: PathLike | None,
        kind: str,
        *identity: Any,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.is_stopped = is_stopped
        between = options.seconds_between_checkpoints
        self.keeper = CheckpointKeeper(path, kind, *identity, seconds_between=between)
        self.lock = threading.RLock()
        # The sizes of results and states are those of tasks that have not begun.
        saved = self.keeper.load(lambda state: {name: state[name] for name in self._names}) or {}
        self.results: dict[str, dict] = saved.get("results", {})
        self.states: dict[str, dict] = saved.get("states", {})

    _names = ("results", "states")

    def run(
        self, name: str, compute: Callable[["TaskCheckpoint | None"], Result], kind: type[Result]
    ) -> Result:
        """Return the result of a task: that in the file, or what ``compute`` returns.

        Parameters
        ----------
        name : str
            Name of the task.
        compute : callable
            ``compute(task)`` returns the result; `run_in_slices` with the `TaskCheckpoint` ``task``
            saves and resumes a solver. It is None without a file.
        kind : type
            Dataclass of the result, with arrays, numbers, bools and None as fields.
        """
        result = self.get(name, kind)
        if result is None:
            result = compute(self.task(name))
            self.keep(name, result)
        return result

    def task(self, name: str) -> "TaskCheckpoint | None":
        """Return what saves the solver of a task; None without a file."""
        return None if self.keeper.path is None else TaskCheckpoint(self, name)

    def get(self, name: str, kind: type[Result]) -> Result | None:
        """Return the result of a task, or None if it is not known."""
        if self.keeper.path is None or name not in self.results:
            return None
        with _damage_refused(self.keeper.path):
            return kind(**self.results[name])

    def keep(self, name: str, result: Any, **without: Any) -> None:
        """Save the result of a task, unless the fit is being stopped: it has no result then.

        ``without`` are values of fields that are not needed.
        """
        if self.keeper.path is None or stopping() or self.is_stopped():
            return
        with self.lock:
            self.results[name] = {**vars(result), **without}
            self.states.pop(name, None)
            self.keeper.save_if_due(self._content)

    def save(self) -> None:
        """Write the file, at the end of the fit."""
        with self.lock:
            self.keeper.save(self._content)

    def _content(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}


class TaskCheckpoint:
    """Save and resume the solver of one task of a `FitCheckpoint`."""

    def __init__(self, fit: FitCheckpoint, name: str) -> None:
        self.fit, self.name = fit, name
        self.last_saved = perf_counter()

    def resume(self, state: Any) -> None:
        """Continue from the state in the file, if there is one."""
        numbers = self.fit.states.get(self.name)
        if numbers is not None and self.fit.keeper.path is not None:
            with _damage_refused(self.fit.keeper.path):
                state.resume(numbers)

    def save_if_due(self, state: Any) -> None:
        """Write the file unless the last one of this task is too recent."""
        if self.fit.keeper.is_due(self.last_saved):
            self.save(state)

    def save(self, state: Any) -> None:
        """Write the file with the state of this task."""
        if state.can_be_saved:
            with self.fit.lock:
                # A copy: other tasks write the file while this one changes its state.
                self.fit.states[self.name] = deepcopy(state.numbers())
                self.fit.save()
            self.last_saved = perf_counter()


class CheckpointJournal:
    """Append what a fit has completed to a file, and load it for a later fit.

    For fits of many independent parts, whose results together are too large to be written again
    and again. A process that is killed while it appends leaves an incomplete record, which is
    removed when the file is loaded.

    Parameters
    ----------
    path : str, path-like or None
        File to append to. If None, nothing is saved or loaded.
    kind : str
        Name of what writes the file, such as the class of the estimator.
    *identity : object
        The data and parameters of the fit. A file that was written for others, or by another
        version of widemargin, is refused.

    Raises
    ------
    CheckpointError
        If ``path`` is no regular file, or its folder does not exist or cannot be written to.
    """

    def __init__(self, path: PathLike | None, kind: str, *identity: Any) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.has_failed = False
        if path is not None:
            _check_writable(path)
            digest = _digest(path, (__version__, *identity))
            header = {"version": _VERSION, "kind": kind, "digest": digest}
            self.header = json.dumps(header).encode() + b"\n"

    def load(self) -> Iterator[dict[str, np.ndarray]]:
        """Yield the arrays of every record, in the order of their writing.

        Raises
        ------
        CheckpointError
            If the file is damaged, or was written for other data or parameters.
        """
        if self.path is None:
            return
        if not os.path.exists(self.path):
            try:
                with atomic_write(self.path) as file:
                    file.write(self.header)
            except OSError as error:
                self._give_up(error)
            return
        with open(self.path, "r+b") as file:
            if file.readline() != self.header:
                raise CheckpointError(
                    f"checkpoint={str(self.path)!r} was written for other data, another model, "
                    "other parameters or by another version, or is no checkpoint file. Use another "
                    "file name, or delete the file to start again."
                )
            end = os.fstat(file.fileno()).st_size
            while (start := file.tell()) < end:
                length = int.from_bytes(file.read(8), "little")
                content, checksum = file.read(length), file.read(_CHECKSUM_LENGTH)
                if checksum == _checksum(content):
                    with _damage_refused(self.path):
                        yield _read_arrays(content)
                elif start + 8 + length + _CHECKSUM_LENGTH >= end:
                    file.truncate(start)
                    break
                else:
                    raise CheckpointError(
                        f"checkpoint={str(self.path)!r} is damaged: a checksum is wrong. Delete "
                        "the file to start again."
                    )

    def append(self, arrays: Mapping[str, Any]) -> None:
        """Add a record, or warn if that fails; several threads may do so at once."""
        if self.path is None:
            return
        archive = io.BytesIO()
        np.savez(archive, **arrays)
        content = archive.getvalue()
        with self.lock:
            if self.has_failed:  # a record after an incomplete one could not be read
                return
            try:
                with open(self.path, "ab") as file:
                    file.write(len(content).to_bytes(8, "little") + content + _checksum(content))
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.has_failed = True
        _warn_not_written(self.path, error)


def _warn_not_written(path: PathLike | None, error: OSError) -> None:
    warnings.warn(
        f"checkpoint={str(path)!r} could not be written: {error}. The fit continues; if it is "
        "stopped, it resumes from the last checkpoint written.",
        RuntimeWarning,
        stacklevel=3,
    )


def _digest(path: PathLike, identity: tuple) -> str:
    try:
        return joblib.hash(identity)
    except Exception as error:
        raise CheckpointError(
            f"checkpoint={str(path)!r} needs data and parameters that can be pickled, by which a "
            f"later fit is recognized: {error}. Use a function of a module as a callable."
        ) from error


def _read_arrays(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content), allow_pickle=False) as members:
        return {name: members[name] for name in members.files}


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
        If the file is damaged, of another kind, or of another version of the format.
    """
    with open(path, "rb") as file:
        content = file.read()
    if content[-_CHECKSUM_LENGTH:] != _checksum(content[:-_CHECKSUM_LENGTH]):
        raise CheckpointError(
            f"checkpoint={str(path)!r} is not a checkpoint file, or it is damaged: its checksum is "
            "wrong. Delete the file to start again."
        )
    with _damage_refused(path), np.load(io.BytesIO(content), allow_pickle=False) as members:
        if any(member.compress_type != zipfile.ZIP_STORED for member in members.zip.infolist()):
            raise ValueError("compressed members")  # they may need any amount of memory
        header = json.loads(members["header"].tobytes())
        if header["version"] != _VERSION:
            raise CheckpointError(
                f"checkpoint={str(path)!r} has format {header['version']}; this version of "
                f"widemargin reads format {_VERSION}. Resume with the version that wrote the file, "
                "or delete it to start again."
            )
        if header["kind"] != kind:
            raise CheckpointError(
                f"checkpoint={str(path)!r} is of kind {header['kind']!r}, but kind={kind!r} is "
                "needed. Use another file name, or delete the file."
            )
        return dict(_decode(header["state"], members))


def check_state(value: Any, expected: Any, name: str = "state") -> None:
    """Raise a ValueError if a saved state cannot be a state of this computation.

    Parameters
    ----------
    value : object
        The saved state, or a part of it.
    expected : object
        A state of this computation with the same names, types, dtypes and shapes. Floats must be
        finite unless the expected ones are infinite, or nan, which permits nan. Integers must be
        non-negative; an expected integer -k permits those from -k to k.
    name : str, default="state"
        Name of the value in messages.
    """
    if isinstance(expected, Mapping) and isinstance(value, dict):
        if value.keys() != expected.keys():
            raise ValueError(f"{name} has the entries {[*value]}, but {[*expected]} are needed")
        for key in expected:
            check_state(value[key], expected[key], f"{name}[{key!r}]")
        return
    saved, model = np.asarray(value), np.asarray(expected)
    valid = saved.shape == model.shape and saved.dtype.kind == model.dtype.kind
    if isinstance(expected, np.ndarray) or isinstance(value, np.ndarray):
        valid = valid and type(value) is type(expected) and saved.dtype == model.dtype
    if valid and saved.dtype.kind == "f":
        permitted = ~np.isnan(saved) if np.isinf(model).any() else np.isfinite(saved)
        valid = bool(permitted.all() or np.isnan(model).any())
    elif valid and saved.dtype.kind == "i":
        low = min(0, int(model.min(initial=0)))
        valid = low <= saved.min(initial=0) and saved.max(initial=0) <= (-low or _MOST)
    elif valid and saved.dtype.kind == "O":
        valid = bool(value == expected)
    if not valid:
        raise ValueError(
            f"{name} is a {saved.dtype} of shape {saved.shape}, or has values, that it cannot have"
        )


@contextlib.contextmanager
def _damage_refused(path: PathLike) -> Iterator[None]:
    """Turn what reading a malformed file may raise into a CheckpointError."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(
            f"checkpoint={str(path)!r} is damaged: {error}. Delete the file to start again."
        ) from error


@contextlib.contextmanager
def atomic_write(path: PathLike) -> Iterator[Any]:
    """Open a file for writing that replaces ``path`` when it is complete.

    Parameters
    ----------
    path : str or path-like
        The file to write. An existing file stays unchanged until the block has ended without an
        exception and the content has been written to disk. Devices and pipes are written to.

    Yields
    ------
    file : binary file object
    """
    if os.path.exists(path) and not os.path.isfile(path):  # a folder is an error
        with open(path, "wb") as file:
            yield file
        return
    folder, prefix = _temporary_files(path)
    temporary = f"{folder}/{prefix}{secrets.token_hex(8)}.tmp"
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, os.path.realpath(path))  # of a link, replace its target
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _temporary_files(path: PathLike) -> tuple[str, str]:
    """Return the folder of the files that `atomic_write` writes, and how their names begin."""
    # In the same folder: a file cannot be moved to another file system in one step.
    folder, name = os.path.split(os.path.realpath(path))
    return folder, f".{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}-"


def _check_writable(path: PathLike) -> None:
    """Raise a CheckpointError if ``path`` cannot be written; remove what killed fits have left."""
    folder, prefix = _temporary_files(path)
    try:
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise OSError("it is not a regular file")
            open(path, "rb").close()
        open(f"{folder}/{prefix}{secrets.token_hex(8)}.tmp", "xb").close()
        for name in os.listdir(folder):
            if name.startswith(prefix) and name.endswith(".tmp"):
                os.unlink(f"{folder}/{name}")
    except OSError as error:
        raise CheckpointError(
            f"checkpoint={str(path)!r} cannot be written: {error}. It must be the name of a file "
            "in an existing folder with write permission. Create the folder, or use another name."
        ) from error


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
