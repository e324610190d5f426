"""Write files completely or not at all."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "wb") -> Iterator[Any]:
    """Open a file for writing that replaces ``path`` when it is complete.

    Parameters
    ----------
    path : str or path-like
        The file to write. An existing file stays unchanged until the block has ended without an
        exception and the content has been written to disk.
    mode : {"wb", "w"}, default="wb"
        Binary, or text in UTF-8.

    Yields
    ------
    file : file object
    """
    if mode not in ("wb", "w"):
        raise ValueError(f'mode must be "wb" or "w", got {mode!r}.')
    target = os.path.realpath(path)  # replace the target of a link, not the link
    # In the same directory: a file cannot be moved to another file system in one step.
    temporary = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.tmp")
    exclusive = mode.replace("w", "x")
    try:
        with open(temporary, exclusive, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
