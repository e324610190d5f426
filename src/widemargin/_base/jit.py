"""The one decorator that compiles numeric functions.

``@compiled`` is numba's ``njit`` with fixed settings: the interpreter lock is released, code is
cached on disk, division follows NumPy's rules, no fast-math. Three things are added:

- numba is imported when a compiled function is first called and not before, since its import
  takes longer than that of the rest of the package.
- The cache key of a function covers its source, the constants it reads and, recursively, the
  compiled functions that it calls, in whatever file they are. numba's own key is the file's date.
- A cache that cannot be used, because no directory is writable or a file is damaged, costs the
  time of compilation and nothing else.

A compiled function refers to other compiled functions by their names, imported into its module.
"""

import contextlib
import functools
import hashlib
import inspect
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

_lock = threading.RLock()


def compiled(function: Callable) -> Callable:
    """Compile ``function`` with numba when it is first called.

    Parameters
    ----------
    function : function
        A function of arrays and numbers, at module level, that uses builtins, ``math``, NumPy,
        constants and compiled functions.

    Returns
    -------
    call : function
        Takes positional arguments and may be called from several threads at once. With
        ``NUMBA_DISABLE_JIT=1`` it runs ``function`` as plain Python.
    """

    @functools.wraps(function)
    def call(*arguments):
        return (call.dispatcher or _materialize(call))(*arguments)  # type: ignore[attr-defined]

    call.dispatcher = None  # type: ignore[attr-defined]
    return call


def _materialize(call: Any) -> Any:
    """Return the numba dispatcher of ``call``; make it and those of its callees if needed."""
    with _lock:
        made: dict = {}
        _dispatcher(call, made)
        # Other threads read this attribute without the lock: set it when all callees are in place.
        for function, dispatcher in made.items():
            function.dispatcher = dispatcher
    return call.dispatcher


def _dispatcher(call: Any, made: dict) -> Any:
    """Return the dispatcher of ``call``; add it and those of its callees to ``made`` if new."""
    if call.dispatcher is not None or call in made:
        return call.dispatcher or made[call]
    import numba

    function = call.__wrapped__
    # Numba looks names up in a function's globals, where it must find dispatchers. It gets a copy
    # of the globals: the module keeps the functions above, which pickle by name.
    namespace = dict(function.__globals__)
    copy = types.FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    made[call] = numba.njit(nogil=True, error_model="numpy")(copy)
    for name, callee in _callees(function):
        namespace[name] = _dispatcher(callee, made)
    if made[call] is not copy:  # it is where NUMBA_DISABLE_JIT is set
        _attach_cache(made[call], cache_key(call))
    return made[call]


def cache_key(call: Any) -> str:
    """Return a digest of all that the code of a compiled function depends on."""
    digest = hashlib.sha256()
    seen: set = set()
    pending = [call]
    while pending:
        function = pending.pop().__wrapped__
        if function in seen:
            continue
        seen.add(function)
        digest.update(inspect.getsource(function).encode())
        for name, value in _globals(function):
            if not isinstance(value, types.ModuleType) and not _is_compiled(value):
                digest.update(f"{name} = {value!r}".encode())
        pending.extend(callee for _, callee in _callees(function))
    return digest.hexdigest()


def _callees(function: types.FunctionType) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in _globals(function) if _is_compiled(value)]


def _globals(function: types.FunctionType) -> list[tuple[str, Any]]:
    """Return the global names that a function reads and their values, in a fixed order."""
    names = sorted(set(_names(function.__code__)) & set(function.__globals__))
    return [(name, function.__globals__[name]) for name in names]


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_compiled(value: Any) -> bool:
    return isinstance(value, types.FunctionType) and "dispatcher" in vars(value)


def _attach_cache(dispatcher: Any, key: str) -> None:
    """Give ``dispatcher`` a cache on disk under ``key`` that never makes a call fail."""
    from numba import config
    from numba.core.caching import FunctionCache, IndexDataCacheFile

    class KeyedCache(FunctionCache):
        def __init__(self, function):
            super().__init__(function)
            # A version of a function has files of its own, and the same ones wherever the
            # package is installed.
            folder = getattr(config, "CACHE_DIR", "")
            if folder:
                self._cache_path = os.path.join(folder, "widemargin")
                os.makedirs(self._cache_path, exist_ok=True)
            name = f"{function.__qualname__}-{key[:24]}.{sys.implementation.cache_tag}"
            self._cache_file = IndexDataCacheFile(self._cache_path, name, key)

        def load_overload(self, sig, target_context):
            try:
                return super().load_overload(sig, target_context)
            except Exception:  # reading a damaged pickle may raise anything
                with contextlib.suppress(OSError):
                    self.flush()
                return None

        def save_overload(self, sig, data):
            with contextlib.suppress(Exception):  # this reads the index first
                super().save_overload(sig, data)

    # Numba raises when it finds no directory to write to; the code is then kept in memory only.
    with contextlib.suppress(RuntimeError, OSError):
        dispatcher._cache = KeyedCache(dispatcher.py_func)
