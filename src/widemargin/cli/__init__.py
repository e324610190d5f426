"""The command line ``widemargin``: see `app` for the commands."""

from widemargin.cli.main import main

__all__ = ["main"]
