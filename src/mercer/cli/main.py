"""The entry point of the command ``mercer``."""

from __future__ import annotations

import io
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, or say what has to be installed for it."""
    try:
        from mercer.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "mercer").partition(".")[0] == "mercer":
            raise  # a fault, not something to install
        sys.exit(
            f"mercer: the command line needs {error.name}, which is not installed; "
            "try: python -m pip install typer rich"
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name that the terminal cannot show is no error
    app()
