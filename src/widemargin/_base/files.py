"""Files that are written whole or not at all."""

import contextlib
import os
import secrets

__all__ = ["atomic_write"]


@contextlib.contextmanager
def atomic_write(path, mode="wb"):
    """Open a file for writing that takes the place of ``path`` when it is complete.

    Parameters
    ----------
    path : str or path-like
        The file to write. Until the block has ended without an exception, and its content has
        reached the disk, whatever was there before stays there.
    mode : {"wb", "w"}, default="wb"
        Bytes, or text in UTF-8.

    Yields
    ------
    file : file object
    """
    if mode not in ("wb", "w"):
        raise ValueError(f'mode must be "wb" or "w", got {mode!r}.')
    target = os.path.realpath(path)  # of a link, the file it points to is replaced
    # In the same directory: a file cannot be moved to another file system in one step.
    temporary = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.tmp")
    exclusively = mode.replace("w", "x")
    try:
        with open(temporary, exclusively, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
