"""The command line: ``widemargin fit``, ``predict``, ``evaluate``, ``inspect`` and ``compile``."""

from widemargin.cli.main import main

__all__ = ["main"]
