"""Interrupts (Ctrl-C) and failures leave objects and settings as they were.

Python raises KeyboardInterrupt between any two steps of the main thread, also in the middle of
``__exit__``. Inside `interrupts`, a function decorated with `uninterrupted` ends first.
"""

import _thread
import contextlib
import signal
import sys
import threading
from collections.abc import Callable
from time import sleep
from types import CodeType, FrameType
from typing import Any, TypeVar

from widemargin._base.options import interrupt_options as options

Function = TypeVar("Function", bound=Callable)

_uninterrupted: set[CodeType] = set()
# Functions of others: an import that was interrupted may fail when it is repeated, and interrupted
# compilers release memory twice.
_OF_OTHERS = {
    ("importlib._bootstrap", "_find_and_load"),
    ("numba.core.dispatcher", "_compile_for_args"),
    ("llvmlite.binding.ffi", "close"),
    ("llvmlite.binding.ffi", "__del__"),
}


def uninterrupted(function: Function) -> Function:
    """Let an interrupt inside `interrupts` wait until the function has ended."""
    _uninterrupted.add(function.__code__)
    return function


class _Interrupts:
    """Context in which interrupts respect `uninterrupted` functions and are never lost.

    It replaces the handler of SIGINT by one that calls it. It has no effect outside of the main
    thread, in which alone Python handles signals, and may be entered again inside.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.waiting: object = None
        self.raised = False
        self.previous: Any = None

    @uninterrupted
    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if self.depth == 0:
            self.waiting, self.raised = None, False
            current = signal.getsignal(signal.SIGINT)
            if callable(current) and current != self._handle:
                self.previous = current
                signal.signal(signal.SIGINT, self._handle)
        self.depth += 1

    @uninterrupted
    def __exit__(self, kind: type | None, *exception: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        self.depth -= 1
        if self.depth == 0 and signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, self.previous)
        lost, self.raised = self.raised, self.raised and self.depth > 0
        if kind is None or not issubclass(kind, KeyboardInterrupt):
            self.check()
            if lost:
                raise KeyboardInterrupt

    def check(self) -> None:
        """Raise an interrupt that has waited, or one that other code has not passed on.

        Exceptions in finalizers and in callbacks of C libraries are ignored, and some compiled
        code replaces them by others.
        """
        if self.waiting is not None and threading.current_thread() is threading.main_thread():
            self.waiting = None
            self._deliver(signal.SIGINT, sys._getframe())
        if self.raised and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        inner = frame
        while inner is not None and not _must_end(inner):
            inner = inner.f_back
        if inner is not None:
            self.waiting = object()
            with contextlib.suppress(RuntimeError):  # no more threads: `check` raises it later
                _thread.start_new_thread(self._repeat, (self.waiting,))
        else:
            self.waiting = None
            self._deliver(number, frame)

    def _repeat(self, interrupt: object) -> None:
        """Try again soon: what follows, such as a compilation, may take long."""
        sleep(options.pause)
        if self.waiting is interrupt:
            _thread.interrupt_main()

    def _deliver(self, number: int, frame: FrameType | None) -> None:
        try:
            self.previous(number, frame)
        except KeyboardInterrupt:
            self.raised = self.depth > 0
            raise


interrupts = _Interrupts()


class unchanged_by_failure:  # noqa: N801 - used like a function
    """Context that restores the attributes of an object if the block raises an exception."""

    def __init__(self, instance: Any) -> None:
        self.attributes = vars(instance)

    @uninterrupted
    def __enter__(self) -> None:
        interrupts.__enter__()
        self.before = self.attributes.copy()

    @uninterrupted
    def __exit__(self, kind: type | None, *exception: Any) -> None:
        try:
            if kind is not None:
                self._restore()
            interrupts.__exit__(kind)
        except BaseException:  # an interrupt has waited
            self._restore()
            raise

    def _restore(self) -> None:
        self.attributes.clear()
        self.attributes.update(self.before)


def _must_end(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__"), frame.f_code.co_name
    return frame.f_code in _uninterrupted or name in _OF_OTHERS
