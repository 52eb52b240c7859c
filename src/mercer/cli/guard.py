"""From exceptions to one plain sentence and an exit code.

0 is success, 1 bad input, 2 wrong usage (typer's own), 130 an interruption that left nothing.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

import typer

from mercer.errors import MercerError

__all__ = ["guarded"]

_FAULT = "this is a fault of Mercer's ({}: {}); --debug shows where"


@contextlib.contextmanager
def guarded(debug: bool) -> Iterator[None]:
    """Turn what goes wrong inside into a message on standard error and an exit code."""
    try:
        yield
        sys.stdout.flush()  # where a pipe that nobody reads comes to light
    except (typer.Exit, typer.BadParameter):
        raise
    except BrokenPipeError:
        # Whoever read the output has seen enough; what is left must not be flushed at exit.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        _fail("interrupted; nothing was written", debug, 130)
    except MercerError as error:
        _fail(str(error), debug)
    except ModuleNotFoundError as error:
        name = (error.name or "mercer").partition(".")[0]
        if name == "mercer":
            _fail(_FAULT.format(type(error).__name__, error), debug)
        _fail(f"{name} is not installed; try: python -m pip install {name}", debug)
    except MemoryError:
        _fail("there is not enough memory for this table", debug)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"{where}{error.strerror or error}", debug)
    except ValueError as error:
        _fail(str(error), debug)
    except Exception as error:
        _fail(_FAULT.format(type(error).__name__, error), debug)


def _fail(message: str, debug: bool, code: int = 1) -> NoReturn:
    if debug:
        import traceback

        traceback.print_exc()
    typer.echo(f"mercer: {message}", err=True)
    raise typer.Exit(code)
