"""Lines of standard input as they come, in bounded memory, and a word that the stream is to end."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import select
import signal
from collections import deque
from collections.abc import Iterator
from typing import IO, Any

__all__ = ["LONGEST", "Bell", "Lines", "chained", "listening"]

#: Bytes of a line at most. What is longer is cut off behind them, to be seen as too long.
LONGEST = 1 << 20
_BLOCK = 1 << 16
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Bell:
    """Rings when a signal has come: a descriptor to wait for, and its name once it has."""

    def __init__(self, descriptor: int | None = None) -> None:
        self.descriptor = descriptor
        self.name = ""

    def heard(self) -> bool:
        """Whether a signal has come."""
        with contextlib.suppress(BlockingIOError):
            while not self.name and self.descriptor is not None:
                number = os.read(self.descriptor, 1)[0]
                if number in _SIGNALS:  # others may have handlers too, which have run by now
                    self.name = signal.Signals(number).name
        return bool(self.name)


@contextlib.contextmanager
def listening() -> Iterator[Bell]:
    """Let Ctrl-C and polite signals ring a bell, so that they break off nothing.

    They do so through Python's wakeup descriptor: what waits for lines can wait for that too, and
    estimators, which replace the handlers of signals while they learn, leave it alone. Signals that
    are ignored, as by nohup, stay so.
    """
    hear, ring = os.pipe()
    os.set_blocking(hear, False)
    os.set_blocking(ring, False)
    try:
        wakeup = signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    except ValueError:  # not the main thread, to which signals do not come
        os.close(hear)
        os.close(ring)
        yield Bell()
        return
    ours = [s for s in _SIGNALS if signal.getsignal(s) not in (signal.SIG_IGN, None)]
    before = {s: signal.signal(s, lambda *_: None) for s in ours}
    try:
        yield Bell(hear)
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(hear)
        os.close(ring)


class Lines:
    """The lines of a stream, read when they are there, and never more than a block ahead."""

    def __init__(self, stream: IO[bytes], bell: Bell) -> None:
        self._stream: Any = stream
        self._bell = bell
        self._whole: deque[bytes] = deque()
        self._rest = b""
        self._ended = False
        try:
            self._descriptor: int | None = stream.fileno()
        except (OSError, io.UnsupportedOperation):
            self._descriptor = None

    def take(self, patience: float | None = None) -> bytes | None:
        """Return the next line without its end, or None behind the last.

        Raises TimeoutError if none has come after so many seconds, and InterruptedError if the bell
        rings first; both lose nothing.
        """
        while not self._whole and not self._ended:
            self._wait(patience)
            block = self._stream.read1(_BLOCK)
            self._ended = not block
            *whole, rest = (self._rest + block).split(b"\n")
            self._whole.extend(line[: LONGEST + 1] for line in whole)
            self._rest = rest[: LONGEST + 1]
            if self._ended and self._rest:
                self._whole.append(self._rest)
        return self._whole.popleft() if self._whole else None

    def _wait(self, patience: float | None) -> None:
        watched = [d for d in (self._descriptor, self._bell.descriptor) if d is not None]
        if self._descriptor is not None:
            ready, _, _ = select.select(watched, [], [], patience)
            if not ready:
                raise TimeoutError
        if self._bell.heard():
            raise InterruptedError


def chained(digest: bytes, line: bytes) -> bytes:
    """Return the digest of all lines up to this one, given that of those before it."""
    return hashlib.blake2b(line, digest_size=16, key=digest).digest()
