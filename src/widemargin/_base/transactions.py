"""Restore an object when an operation on it fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_by_failure(instance: Any) -> Iterator[None]:
    """Restore the attributes of an object if the block raises an exception."""
    before = vars(instance).copy()
    try:
        yield
    except BaseException:
        vars(instance).clear()
        vars(instance).update(before)
        raise
