"""Where a stream stands, kept in the model file together with what was learned.

One file holds both, replaced in one step, so that neither is ever ahead of the other: who is killed
and is given the same input again passes over just the lines that the model knows.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mercer.cli.errors import InputError
from mercer.cli.model import TableModel
from mercer.cli.stream_lines import Lines, chained
from mercer.posterior import save

__all__ = ["StreamState", "checkpoint", "only_stream", "pass_over"]


@dataclass
class StreamState:
    """How far a model has come in its input.

    line : lines taken, of whatever kind
    digest : of these lines, in hexadecimal
    start : of the first two of them
    ended : whether the input came to its end
    predicted, learned, refused : rows
    squared_error : of the predictions of rows that were learned, added up; of labels, how many
        were wrong
    log_density : of what these rows turned out to be, added up
    """

    line: int = 0
    digest: str = ""
    start: str = ""
    ended: bool = False
    predicted: int = 0
    learned: int = 0
    refused: int = 0
    squared_error: float = 0.0
    log_density: float = 0.0

    @classmethod
    def of(cls, summary: Mapping[str, Any]) -> StreamState | None:
        """Return where the last stream into a model stands, given its summary."""
        found = summary.get("stream")
        return None if found is None else cls(**found)

    def scores(self, of_classes: bool) -> list[str]:
        """Return how well rows were predicted before they were learned."""
        mean = self.squared_error / self.learned
        own = f"{100 * mean:.3g}% of the labels wrong" if of_classes else f"RMSE {mean**0.5:.4g}"
        return [own, f"NLPD {-self.log_density / self.learned:.4g}"]

    def take(self, line: bytes) -> None:
        """Count a line as taken."""
        self.line += 1
        self.digest = chained(bytes.fromhex(self.digest), line).hex()
        if self.line == 2:
            self.start = self.digest


def pass_over(lines: Lines, state: StreamState) -> list[bytes]:
    """Take the lines that a state has taken, and return the first that is not empty.

    Raises InputError if they are not the same.
    """
    again = StreamState()
    first: list[bytes] = []
    while again.line < state.line:
        line = lines.take()
        if line is None:
            raise InputError(
                f"--resume: the input ends after {again.line} lines, and the model has learned "
                f"from {state.line} already; give the same input again, from its first line, or "
                "--new for another one"
            )
        again.take(line)
        if not first and line.strip():
            first.append(line)
    if again.digest != state.digest:
        raise InputError(
            f"--resume: the first {state.line} lines are not those that the model has learned "
            "from; give the same input again, from its first line, or --new for another one"
        )
    return first


def checkpoint(model: TableModel, state: StreamState, path: str) -> None:
    """Write the model and where its stream stands, in one step that survives a power cut."""
    model.summary["stream"] = asdict(state)
    target = Path(os.path.realpath(path))
    scratch = _scratch(target)
    save(model, scratch)
    os.replace(scratch, target)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _scratch(target: Path) -> Path:
    """Return a name of its own for what a stream writes, so that what is left of it is known."""
    return target.with_name(f".{target.name}.stream")


@contextlib.contextmanager
def only_stream(path: str) -> Iterator[None]:
    """Let no other stream into the same model, and clear away what killed ones have left."""
    target = Path(os.path.realpath(path))
    lock = target.with_name(f".{target.name}.lock")
    handle = _locked(lock, path)
    try:
        left = re.compile(re.escape(f".{_scratch(target).name}.") + r"[0-9a-f]+\.tmp")
        for name in os.listdir(target.parent):
            if left.fullmatch(name) or name == _scratch(target).name:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(target.parent / name)
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(lock)
        os.close(handle)


def _locked(lock: Path, path: str) -> int:
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # whoever had it may have removed it between the two
            if lock.exists() and os.path.samestat(os.fstat(handle), os.stat(lock)):
                return handle
        except BlockingIOError:
            os.close(handle)
            raise InputError(
                f"another `mercer stream` is learning into {path}; one at a time, or the rows of "
                "one would be lost"
            ) from None
        except FileNotFoundError:
            pass
        os.close(handle)
