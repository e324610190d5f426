"""The one decorator that compiles numeric functions.

``@compiled`` is numba's ``njit`` with fixed settings: the interpreter lock is released, code is
cached on disk, division follows NumPy's rules, no fast-math. Added to it:

- Small work waits for no compiler. A function runs as plain Python until that has taken, or would
  take, longer than loading its code or compiling it (see `jit_options`). Both have the same bits:
  neither reorders operations. numba is imported when its code is needed and not before.
- The cache key of a function covers its code, the constants it reads and, recursively, the compiled
  functions that it calls, in whatever file they are. numba's own key is the file's date.
- A cache that cannot be used, because no directory is writable or a file is damaged, costs the
  time of compilation and nothing else (see `code_cache`).
- A message is logged once if compilation takes long.
- A process may fork while another of its threads compiles.

A compiled function refers to other compiled functions by their names, imported into its module.
"""

import contextlib
import contextvars
import functools
import hashlib
import logging
import os
import sys
import threading
import types
from collections.abc import Callable, Iterator
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from widemargin._base import code_cache
from widemargin._base.lists import run_on_lists
from widemargin._base.options import jit_options as options

_lock = threading.RLock()
_eager: contextvars.ContextVar[bool] = contextvars.ContextVar("eager", default=False)


def compiled(
    function: Callable | None = None,
    *,
    work: Callable[..., float] | None = None,
    cost: float = 1.0,
    lists: bool = False,
) -> Any:
    """Compile ``function`` with numba when its work is worth it.

    Parameters
    ----------
    function : function
        A function of arrays and numbers, at module level, that uses builtins, ``math``, NumPy,
        constants and compiled functions.
    work : callable, optional
        Returns, for the same arguments, about how many microseconds the function takes uncompiled.
        By default as many as the arrays have entries.
    cost : float, default=1.0
        How many times as long as usual compilation takes. The function runs uncompiled for as many
        times as long before it is compiled.
    lists : bool, default=False
        Whether the function runs on lists in place of arrays while it is not compiled, which takes
        half the time. It may then read and write single entries and rows of its arrays only, and
        must not divide by zero, which is an error for Python's numbers.

    Returns
    -------
    call : function
        Takes positional arguments and may be called from several threads at once. With
        ``NUMBA_DISABLE_JIT=1`` it runs ``function`` as plain Python.
    """
    if function is None:
        return functools.partial(compiled, work=work, cost=cost, lists=lists)

    @functools.wraps(function)
    def call(*arguments):
        return (call.dispatcher or _choose(call, arguments))(*arguments)  # type: ignore[attr-defined]

    vars(call).update(dispatcher=None, inner=None, plain=None, substitute=None, loops=None)
    vars(call).update(work=work or _entries, cost=cost, lists=lists, seconds=0.0)
    vars(call).update(key=None, stored=False)
    return call


def uncompiled(call: Any) -> Callable[[Callable], Callable]:
    """Decorate a function in vector operations of NumPy that replaces a compiled one until it is.

    It must return and write the same bits, and is used only where the compiler is not switched off.
    """

    def register(function: Callable) -> Callable:
        call.substitute = function
        return function

    return register


def loops_of(call: Any) -> Callable:
    """Return a function as plain Python, for arguments that its `uncompiled` one does not take."""
    with _lock:
        if call.loops is None:
            call.loops = _copy(call, "plain", lambda copy: copy)
    return call.loops


@contextlib.contextmanager
def eager() -> Iterator[None]:
    """Return a context in which all work is compiled, however small it is."""
    token = _eager.set(True)
    try:
        yield
    finally:
        _eager.reset(token)


def _entries(*arguments: Any) -> float:
    return sum(
        _entries(*value) if isinstance(value, tuple) else np.size(value) for value in arguments
    )


def _choose(call: Any, arguments: tuple) -> Callable:
    """Return what to run a function with: its dispatcher, or the interpreter."""
    if _eager.get() or os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return _materialize(call)
    estimate = 1e-6 * call.work(*arguments)
    if call.seconds + estimate > call.cost * options.compile_seconds:
        return _materialize(call)
    loaded = "numba" in sys.modules
    if loaded or _Interpreted.seconds + estimate > options.load_seconds:
        if call.key is None:
            call.key = cache_key(call)
            call.stored = code_cache.holds_any(call.__qualname__, call.key)
        if call.stored and code_cache.holds(call.__qualname__, call.key, arguments):
            return _materialize(call)
    return functools.partial(_interpret, call)


class _Interpreted:
    """Seconds that all functions together ran as plain Python."""

    seconds = 0.0


def _interpret(call: Any, *arguments: Any) -> Any:
    with _lock:  # another thread may be about to link the callees
        plain = _linked(call, "plain", lambda copy: copy)
    start = thread_time()
    with np.errstate(all="ignore"):
        result = run_on_lists(plain, arguments) if call.lists else plain(*arguments)
    seconds = thread_time() - start
    call.seconds += seconds
    _Interpreted.seconds += seconds
    return result


def _materialize(call: Any) -> Any:
    """Return the numba dispatcher of ``call``; make it if needed."""
    with _lock:
        if call.dispatcher is None:
            call.dispatcher = _dispatcher(call)
    return call.dispatcher


def _dispatcher(call: Any) -> Any:
    import numba

    _make_forks_safe()
    settings: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    # Code that only compiled code calls needs no way in from Python, which takes long to compile.
    inside = settings | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    copy = _copy(call, "inner", numba.njit(**inside))
    dispatcher = numba.njit(**settings)(copy)
    if dispatcher is copy:  # NUMBA_DISABLE_JIT is set; compiled code has no floating-point warnings
        return np.errstate(all="ignore")(copy)
    dispatcher._cache = code_cache.cache_class()(copy, cache_key(call), clock)
    return dispatcher


def _linked(call: Any, form: str, finish: Callable) -> Any:
    """Return the ``form`` of a function in which its callees have the same form."""
    if getattr(call, form) is None:
        if form == "plain" and call.substitute is not None:
            call.plain = call.substitute
        else:
            _copy(call, form, finish, store=True)
    return getattr(call, form)


def _copy(call: Any, form: str, finish: Callable, store: bool = False) -> Any:
    """Return a copy of a function that calls the ``form`` of its callees.

    Numba looks names up in a function's globals, where it must find dispatchers. It gets a copy of
    the globals: the module keeps the functions above, which pickle by name.
    """
    function = call.__wrapped__
    namespace = dict(function.__globals__)
    copy = types.FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    if store:  # before its callees, which may call it
        setattr(call, form, finish(copy))
    for name, callee in _callees(function):
        namespace[name] = _linked(callee, form, finish)
    return copy


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
        digest.update(repr((function.__defaults__, *_code_fields(function.__code__))).encode())
        for name, value in _globals(function):
            if not isinstance(value, types.ModuleType) and not _is_compiled(value):
                digest.update(f"{name} = {value!r}".encode())
        pending.extend(callee for _, callee in _callees(function))
    return digest.hexdigest()


def _code_fields(code: types.CodeType) -> Iterator[Any]:
    """Yield what a code object does, without the lines and the file where it is written."""
    yield from (code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code_fields(constant)
        else:
            yield constant


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


class _Clock:
    """Seconds of compilation in this process so far, of which a message is logged once.

    ``listeners`` are called then too, in the thread that compiles.
    """

    def __init__(self) -> None:
        self.listeners: list[Callable[[], Any]] = []
        self.seconds = 0.0
        self.functions = 0
        self._reported = False

    def start(self) -> tuple[float, float]:
        """Return the mark to pass to `stop`."""
        return self.seconds, perf_counter()

    def stop(self, mark: tuple[float, float]) -> None:
        """Count the compilation of a function, which contains that of its callees."""
        before, started = mark
        self.seconds = before + perf_counter() - started
        self.functions += 1
        requested = _eager.get()  # as by compile_all
        if not self._reported and not requested and self.seconds > options.silent_seconds:
            self._reported = True
            logging.getLogger("widemargin").warning(
                "Compiling numerical code, which has taken %.0f seconds so far. This happens once: "
                "the code is stored in %s. Call widemargin.compile_all() to do it ahead of time.",
                self.seconds,
                code_cache.folders()[0],
            )
            for listener in self.listeners:
                listener()


clock = _Clock()


@functools.cache
def _make_forks_safe() -> None:
    """Let a fork wait for compilations in other threads: a child would wait for their locks."""
    from llvmlite.binding import ffi
    from numba.core.compiler_lock import global_compiler_lock

    locks = [_lock, global_compiler_lock._lock, ffi.lib._lock._lock]

    def acquire() -> None:
        for lock in locks:
            lock.acquire()

    def release() -> None:
        for lock in reversed(locks):
            lock.release()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=acquire, after_in_parent=release, after_in_child=release)
