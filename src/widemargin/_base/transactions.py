"""Fits that fail leave what was there before."""

from contextlib import contextmanager


@contextmanager
def unchanged_by_failure(thing):
    """Give an object back the attributes it had if what is done within fails."""
    before = vars(thing).copy()
    try:
        yield
    except BaseException:
        vars(thing).clear()
        vars(thing).update(before)
        raise
