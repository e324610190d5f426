"""Interrupt a call at one of the points where Python handles signals."""

import contextlib
import signal
import sys


@contextlib.contextmanager
def interruptible():
    """Let SIGINT raise KeyboardInterrupt: background jobs of a shell inherit that it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def count_points(call):
    """Return at how many points of a call a signal may be handled."""
    points = 0

    def count(frame, event, argument):
        nonlocal points
        points += event in ("call", "c_return")

    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    return points


def interrupted_at(point, call):
    """Make a call with a Ctrl-C at a point; return the exception, or None if there was none."""
    before = signal.getsignal(signal.SIGINT)

    def interrupt(frame, event, argument):
        nonlocal point
        if event in ("call", "c_return"):
            point -= 1
            if point == 0:
                sys.setprofile(None)
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(interrupt)
    try:
        call()
    except BaseException as error:
        return error
    finally:
        sys.setprofile(None)
        assert signal.getsignal(signal.SIGINT) is before
    return None
