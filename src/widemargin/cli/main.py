"""Entry point: errors are one sentence, tracebacks are for ``--debug``."""

import sys
import warnings
from typing import Any


class CommandError(Exception):
    """A command cannot do what it was called for; the message is for the user.

    Parameters
    ----------
    message : str
        What is wrong.
    hint : str, default=""
        What to do.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())


def main() -> None:
    """Run the command line of this process, and exit."""
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    debug = len(arguments) < len(sys.argv) - 1
    warnings.showwarning = _show_warning
    try:
        _app()(arguments, prog_name="widemargin")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        if debug:
            raise
        print(f"Error: {_one_sentence(error)}", file=sys.stderr)
        sys.exit(1)


def _app() -> Any:
    try:
        from widemargin.cli.app import app
    except ImportError as error:
        raise CommandError(
            f"The command line requires a library that is missing ({error.name}).",
            "Install it with: pip install 'widemargin[cli]'",
        ) from error
    return app


def _one_sentence(error: Exception) -> str:
    expected = isinstance(error, CommandError | ValueError | OSError | ImportError)
    text = " ".join(str(error).split()) or type(error).__name__
    return text if expected else f"{type(error).__name__}: {text} (--debug shows where)"


def _show_warning(message: Any, category: Any, *location: Any, **options: Any) -> None:
    print(f"Warning: {' '.join(str(message).split())}", file=sys.stderr)
