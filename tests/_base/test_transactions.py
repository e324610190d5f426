"""A failed or interrupted operation leaves the object unchanged."""

import importlib
import signal
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from tests.faults.interrupts import count_points, interrupted_at, interruptible

from widemargin._base.transactions import interrupts, unchanged_by_failure, uninterrupted


def change_and_fail(thing):
    with unchanged_by_failure(thing):
        thing.kept, thing.new = 3, 4
        del thing.dropped
        raise KeyboardInterrupt


def test_attributes_come_back_after_a_failure_and_new_ones_go():
    thing = SimpleNamespace(kept=1, dropped=2)
    with pytest.raises(KeyboardInterrupt):
        change_and_fail(thing)
    assert vars(thing) == {"kept": 1, "dropped": 2}


def test_what_was_done_stays_without_one():
    thing = SimpleNamespace(kept=1)
    with unchanged_by_failure(thing):
        thing.new = 2
    assert vars(thing) == {"kept": 1, "new": 2}


@pytest.fixture
def sigint():
    with interruptible():
        yield


def interrupt():
    signal.raise_signal(signal.SIGINT)


def test_an_interrupt_at_any_point_leaves_the_object_unchanged(sigint):
    thing = SimpleNamespace(kept=1)

    def change():
        with unchanged_by_failure(thing):
            thing.kept, thing.new = 3, abs(4)
            with unchanged_by_failure(thing):
                thing.new = abs(5)

    points = count_points(change)
    assert vars(thing) == {"kept": 3, "new": 5}
    assert points > 50
    for point in range(1, points + 1):
        thing.kept, thing.new = 1, 2
        assert isinstance(interrupted_at(point, change), KeyboardInterrupt)
        assert vars(thing) == {"kept": 1, "new": 2}


def test_an_interrupt_waits_for_the_end_of_a_function(sigint):
    ended = []

    @uninterrupted
    def work():
        interrupt()
        ended.append(True)

    with pytest.raises(KeyboardInterrupt), interrupts:
        work()
    assert ended == [True]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def interrupt_as_system_error():
    with interrupts:
        try:
            interrupt()
        except KeyboardInterrupt as error:
            raise SystemError from error


def test_an_interrupt_that_was_turned_into_another_exception_arrives_as_itself(sigint):
    with pytest.raises(KeyboardInterrupt):
        interrupt_as_system_error()
    interrupts.check()  # once


class Finalized:
    def __del__(self):
        interrupt()


def ignore_interrupt(ended):
    with interrupts:
        Finalized()
        ended.append("ignored")
        interrupts.check()
        ended.append("not raised")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_a_finalizer_has_ignored_arrives(sigint):
    ended = []
    with pytest.raises(KeyboardInterrupt):
        ignore_interrupt(ended)
    assert ended == ["ignored"]


def test_the_handler_of_the_caller_is_called_and_stays():
    calls = []
    before = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    try:
        handler = signal.getsignal(signal.SIGINT)
        with interrupts:
            interrupt()
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert calls == [signal.SIGINT]


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_signals_that_python_does_not_handle_stay_so(handler):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with interrupts:
            assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_do_not_touch_the_handler(sigint):
    seen = []

    def enter():
        with interrupts:
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_an_interrupted_import_ends_first(sigint, tmp_path, monkeypatch):
    (tmp_path / "interrupting.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGINT)\nended = True\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyboardInterrupt), interrupts:
        importlib.import_module("interrupting")
    assert sys.modules.pop("interrupting").ended


@uninterrupted
def interrupted_function():
    interrupt()


def work_for_a_minute():
    start = time.monotonic()
    with interrupts:
        interrupted_function()
        while time.monotonic() < start + 60:
            pass


def test_an_interrupt_that_has_waited_does_not_wait_for_long_calls(sigint):
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work_for_a_minute()
    assert time.monotonic() < start + 30
