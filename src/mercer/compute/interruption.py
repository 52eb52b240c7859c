"""Ctrl-C, heard between pieces of work that must not be broken off."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["heard"]


@contextmanager
def heard(stop: threading.Event) -> Iterator[None]:
    """Turn Ctrl-C into a word to all that is under way, where this is the thread that hears it.

    The second one is taken as it would be elsewhere: what is under way may be long.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.getsignal(signal.SIGINT)
    # ignored, as by a shell in the background; or not of Python's making, and not to be put back
    if previous in (signal.SIG_IGN, None):
        yield
        return

    def listen(*_: Any) -> None:
        stop.set()
        signal.signal(signal.SIGINT, previous)

    signal.signal(signal.SIGINT, listen)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
