"""Compiled code on disk: one file for each function and types of arguments, with a checksum.

numba's own cache trusts its files, and a process that runs damaged code may crash. Here a file is
used only if its checksum is right; a damaged one is compiled again and replaced.

Files are read from the package's folder, which an administrator may have filled (see
`widemargin.compile_all`), and from the cache folder of the user. They are written to the first of
the two that is writable, so that an installation may be read-only. ``NUMBA_CACHE_DIR`` replaces
both.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

_SUFFIX = ".code"


def folders() -> list[Path]:
    """Return the folders of compiled code, in the order in which they are tried."""
    # Another thread may be about to import numba, whose module is then there without its contents.
    config = getattr(sys.modules.get("numba"), "config", None)
    chosen = getattr(config, "CACHE_DIR", os.environ.get("NUMBA_CACHE_DIR", ""))
    if chosen:
        return [Path(chosen) / "widemargin"]
    return [Path(__file__).parents[1] / "__pycache__" / "compiled", _user_folder()]


def _user_folder() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(os.path.expanduser(base)) / "widemargin" / "compiled"


def check_writable() -> None:
    """Raise OSError if code cannot be stored."""
    if not any(_write(folder / "trial", b"") for folder in folders()):
        tried = " and ".join(map(str, folders()))
        raise OSError(
            f"Compiled code cannot be stored: {tried} is not writable. Set "
            "NUMBA_CACHE_DIR to a folder that is."
        )


def holds_any(name: str, key: str) -> bool:
    """Return whether there is code of a function for any arguments. Does not import numba."""
    beginning = _beginning(name, key)
    return any(stem.startswith(beginning) for stem in _stems(tuple(folders())))


def holds(name: str, key: str, arguments: tuple) -> bool:
    """Return whether there is code of a function for these arguments. Does not import numba."""
    return _stem(name, key, tuple(map(_type_name, arguments))) in _stems(tuple(folders()))


def _stem(name: str, key: str, types: tuple[str, ...]) -> str:
    """Return the beginning of the file name, which does not depend on the processor."""
    return _beginning(name, key) + _digest(sys.implementation.cache_tag, types)


def _beginning(name: str, key: str) -> str:
    return f"{name}-{key[:24]}-"


def _digest(*values: Any) -> str:
    return hashlib.sha256(repr(values).encode()).hexdigest()[:16]


@functools.cache
def _stems(folders: tuple[Path, ...]) -> frozenset[str]:
    """Return the beginnings of the names of all files, as of the first call."""
    names: set[str] = set()
    for folder in folders:
        with contextlib.suppress(OSError):
            names |= {entry.name.rpartition(".v")[0] for entry in os.scandir(folder)}
    return frozenset(names)


def _type_name(value: Any) -> str:
    """Return numba's name of the type of an argument; another one means code is not looked for."""
    if isinstance(value, np.ndarray):
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        name = f"array({_name_of_dtype(value.dtype)}, {value.ndim}d, {layout})"
        return name if flags.writeable else f"readonly {name}"
    if isinstance(value, tuple):
        return str([*map(_type_name, value)])
    if value is None:
        return "none"
    if isinstance(value, bool | np.bool_):
        return "bool"
    return {int: "int64", float: "float64"}.get(type(value), type(value).__name__)


@functools.cache
def _name_of_dtype(dtype: np.dtype) -> str:
    return str(dtype)  # takes as long as many a small function


def _name_of_type(numba_type: Any) -> str:
    """Return the same name for a type of numba."""
    if hasattr(numba_type, "types"):
        return str([*map(_name_of_type, numba_type.types)])
    return str(numba_type)


@functools.cache
def cache_class() -> type:
    """Return the class of caches for numba's dispatchers, which is made when numba is needed."""
    import numba
    from numba.core.caching import _Cache
    from numba.core.compiler import CompileResult
    from numba.core.runtime import rtsys
    from numba.core.serialize import dumps

    class CodeCache(_Cache):
        """The compiled code of one function; never makes a call fail."""

        def __init__(self, function: Any, key: str, clock: Any) -> None:
            self.name, self.key, self.clock = function.__qualname__, key, clock
            self.marks: dict = {}

        @property
        def cache_path(self) -> str:
            return str(folders()[0])

        def enable(self) -> None: ...

        def disable(self) -> None: ...

        def flush(self) -> None: ...

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            """Return code for the types ``sig``, or None.

            Without the rules of type inference and code generation, which numba loads at its first
            compilation: they take longer than all of this, and code that is there needs none.
            """
            name = self._file_name(sig, target_context.codegen())
            for folder in folders():
                with contextlib.suppress(Exception):  # a damaged pickle may raise anything
                    payload = _read(folder / name)
                    rtsys.initialize(target_context)
                    return CompileResult._rebuild(target_context, *pickle.loads(payload))
            self.marks[sig] = self.clock.start()
            return None

        def save_overload(self, sig: Any, data: Any) -> None:
            self.clock.stop(self.marks.pop(sig))
            name = self._file_name(sig, data.codegen)
            with contextlib.suppress(Exception):  # the code is then in memory only
                payload = dumps(data._reduce())
                any(_write(folder / name, payload) for folder in folders())

        def _file_name(self, sig: Any, codegen: Any) -> str:
            settings = [getattr(numba.config, name) for name in ("BOUNDSCHECK", "OPT", "DEBUG")]
            made_for = _digest(numba.__version__, codegen.magic_tuple(), settings)
            return (
                f"{_stem(self.name, self.key, tuple(map(_name_of_type, sig)))}.v{made_for}{_SUFFIX}"
            )

    return CodeCache


def _read(path: Path) -> bytes:
    content = path.read_bytes()
    checksum, payload = content[:32], content[32:]
    if hashlib.sha256(payload).digest() != checksum:
        raise ValueError("damaged")
    return payload


def _write(path: Path, payload: bytes) -> bool:
    """Write a file at once, or not at all; return whether the folder is writable."""
    temporary = path.with_name(f"{uuid4().hex}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_bytes(hashlib.sha256(payload).digest() + payload)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError:
        return False
    return True
