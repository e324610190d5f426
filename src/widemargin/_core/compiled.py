"""The one decorator that turns a numeric function into machine code.

``@compiled`` is numba's ``njit`` with the house's settings: the interpreter lock is released, the
code is cached on disk, division follows NumPy's rules, no fast-math. Two things are added. numba is
imported when a compiled function is first called and not before, since its import costs more than
the rest of the package. And a cache that cannot be used, because no directory is writable or a
file in it is damaged, costs the time of compilation and nothing else.

A compiled function calls compiled functions of its own file only: numba does not notice a change
in another file and would go on using the old code from its cache.
"""

import contextlib
import functools
import threading
import types

__all__ = ["compiled"]

_lock = threading.Lock()


def compiled(function):
    """Compile ``function`` with numba when it is first called.

    Parameters
    ----------
    function : function
        A function of arrays and numbers, at module level, that calls builtins, ``math``, NumPy and
        compiled functions of its own file.

    Returns
    -------
    call : function
        Takes positional arguments and may be called from several threads at once. With
        ``NUMBA_DISABLE_JIT=1`` it runs ``function`` as plain Python.
    """

    @functools.wraps(function)
    def call(*arguments):
        return (call.dispatcher or _materialise(call))(*arguments)  # type: ignore[attr-defined]

    call.dispatcher = None  # type: ignore[attr-defined]
    return call


def _materialise(call):
    """Return the numba dispatcher of ``call``; make those of its whole file if there is none."""
    with _lock:
        if call.dispatcher is None:
            original = call.__wrapped__.__globals__
            family = {name: value for name, value in original.items() if _belongs(value, original)}
            family[call.__name__] = call
            # Numba looks names up in a function's globals, where it must find dispatchers. They get
            # a copy of the globals: the module keeps the functions above, which pickle by name.
            namespace = dict(original)
            for name, member in family.items():
                namespace[name] = member.dispatcher or _dispatcher(member.__wrapped__, namespace)
            # Other threads read this without the lock, so it is set when all names are in place.
            for name, member in family.items():
                member.dispatcher = namespace[name]
    return call.dispatcher


def _belongs(value, module_globals):
    return (
        isinstance(value, types.FunctionType)
        and "dispatcher" in vars(value)
        and vars(value)["__wrapped__"].__globals__ is module_globals
    )


def _dispatcher(function, namespace):
    import numba

    copy = types.FunctionType(
        function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    dispatcher = numba.njit(nogil=True, error_model="numpy")(copy)
    if dispatcher is not copy:  # it is where NUMBA_DISABLE_JIT is set
        _attach_cache(dispatcher)
    return dispatcher


def _attach_cache(dispatcher):
    """Give ``dispatcher`` a cache on disk that never makes a call fail."""
    from numba.core.caching import FunctionCache

    class ForgivingCache(FunctionCache):
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
        dispatcher._cache = ForgivingCache(dispatcher.py_func)
