"""What the command line says when it cannot go on."""

from __future__ import annotations

from collections.abc import Sequence

from mercer.errors import MercerError

__all__ = ["InputError", "listed", "problems_text"]

_SHOWN = 5


class InputError(MercerError, ValueError):
    """A file or a table that a command cannot work with; the text says what and where."""


def listed(items: Sequence[str], shown: int = _SHOWN) -> str:
    """Return "a, b and c", or "a, b and 7 more" of a long list."""
    if len(items) > shown:
        return f"{', '.join(items[: shown - 1])} and {len(items) - shown + 1} more"
    return " and ".join(filter(None, [", ".join(items[:-1]), *items[-1:]]))


def problems_text(problems: Sequence[str]) -> str:
    """Return several problems as one text, the first few in full."""
    rest = len(problems) - _SHOWN
    more = [f"and {rest} more columns have problems"] if rest > 1 else problems[_SHOWN:]
    return "; ".join([*problems[:_SHOWN], *more])
