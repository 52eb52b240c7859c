"""``mercer stream``: each row of standard input predicted, then learned."""

from __future__ import annotations

import contextlib
import math
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sklearn import config_context

from mercer.cli.commands import load_model
from mercer.cli.continuing import continued, is_online
from mercer.cli.errors import InputError, listed
from mercer.cli.model import TableModel
from mercer.cli.output import require_writable
from mercer.cli.stream_learner import learner_of
from mercer.cli.stream_lines import Bell, Lines, listening
from mercer.cli.stream_output import RowWriter
from mercer.cli.stream_rows import RowReader
from mercer.cli.stream_state import StreamState, checkpoint, only_stream, pass_over
from mercer.cli.summary import with_options
from mercer.compute import blas_for
from mercer.estimators.inputs import names_left_out
from mercer.posterior import load

__all__ = ["StreamOptions", "run_stream"]


@dataclass(frozen=True)
class StreamOptions:
    """What ``mercer stream`` was asked for."""

    coverage: float = 0.95
    form: str = "auto"
    every: int = 10_000
    seconds: float = 30.0
    skip_errors: bool = False
    resume: bool = False
    new: bool = False


def run_stream(
    path: str,
    options: StreamOptions,
    continue_as: str | None = None,
    max_basis: int | None = None,
    force: bool = False,
) -> None:
    """Predict and learn the rows of standard input, and keep the model.

    Parameters
    ----------
    path : str
        The model file, which is kept up to date.
    options : StreamOptions
        What was asked for.
    continue_as : str, optional
        Where to keep the model instead, if the one in the file is of another kind.
    max_basis : int, optional
        The size of the basis of such a model.
    force : bool, default False
        Whether that file may be replaced.
    """
    if continue_as is not None:
        require_writable(continue_as, force, path)
        model, told = continued(load_model(path), path, max_basis)
        model.summary.pop("stream", None)
        _say(f"note: {told}; it is kept as {continue_as}")
        with only_stream(continue_as):
            checkpoint(model, StreamState(ended=True), continue_as)
            _Stream(model, continue_as, options).run()
        return
    _online_model(path)  # before anything is written beside it
    with only_stream(path):
        _Stream(_online_model(path), path, options).run()


def _online_model(path: str) -> TableModel:
    """Return a model that can be kept in its file; raises InputError, and says what else to do."""
    found = load(path)
    if isinstance(found, TableModel) and is_online(found):
        return found
    way = f"`mercer stream --model {path} --continue-as NEW.mercer` makes one of it, kept as NEW"
    model = load_model(path)
    if not is_online(model):
        raise InputError(
            f"{path} holds a {type(model.estimator).__name__}, which does not learn row by row; "
            f"{way}.mercer, or fit one with `mercer fit --method online`"
        )
    raise InputError(
        f"{path} was saved from Python, and would be replaced by a model of tables, with the "
        f"names of its columns; {way}.mercer"
    )


class _Stream:
    """One run over standard input."""

    def __init__(self, model: TableModel, path: str, options: StreamOptions) -> None:
        self.model, self.path, self.options = model, path, options
        self.reader = RowReader(model, options.form)
        self.learner = learner_of(model, options.coverage)
        self.state, self.old = StreamState(), StreamState.of(model.summary)
        self.writer: RowWriter | None = None
        self.saved, self.due = 0, math.inf

    def run(self) -> None:
        """Go through the input, to its end or until a signal or a closed output ends it."""
        resumed = self._start()
        with listening() as bell, _warnings_as_notes(self), names_left_out():
            # rows are known to be finite, and are checked for that once
            quick = config_context(assume_finite=True, skip_parameter_validation=True)
            # to hold the BLAS at one thread anew for each row takes as long as learning it
            with quick, blas_for(self.model.estimator.max_basis + 1):
                lines = Lines(sys.stdin.buffer, bell)
                try:
                    for first in pass_over(lines, self.state) if resumed else []:
                        self._begin(first)
                    self._loop(lines, bell)
                except InterruptedError:
                    self._save()
                except BrokenPipeError:
                    self._save()
                    raise
        self._tell(bell)

    def _start(self) -> bool:
        """Decide where to begin; return whether lines are to be passed over."""
        old, options = self.old, self.options
        if old is not None and options.resume:
            self.state = old
            self.state.ended = False
            self.saved = old.line
            return True
        if old is not None and not old.ended and not options.new:
            raise InputError(
                f"{self.path} was left in the middle of an input, after line {old.line}. --resume "
                "passes over these lines if the same input is given again; --new learns all rows, "
                "as of an input that goes on or is another one"
            )
        return False

    def _loop(self, lines: Lines, bell: Bell) -> None:
        options, state = self.options, self.state
        while not bell.heard():
            try:
                line = lines.take(self._patience())
            except TimeoutError:
                self._save()
                continue
            if line is None:
                state.ended = True
                break
            try:
                self._one(line)
            except InputError as error:
                number = state.line + 1
                if not options.skip_errors or self.writer is None:
                    self._save()
                    raise InputError(self._refusal(number, error)) from None
                state.refused += 1
                _say(f"line {number} was skipped: {error}")
            state.take(line)
            if state.line == 2:
                self._warn_if_known()
            now = time.monotonic()
            if self.due == math.inf:
                self.due = now + options.seconds
            if state.line - self.saved >= options.every or now >= self.due:
                self._save()
        self._save()

    def _one(self, line: bytes) -> None:
        """Predict and learn what is in a line; raises InputError, and then has learned nothing."""
        state = self.state
        number = state.line + 1
        if self.writer is None and line.strip() and self._begin(line):
            return
        row = self.reader.read(line, number)
        if row is None:
            return
        known = row.y is not None and row.weight > 0
        said = self.learner.learn(row) if known else self.learner.predict(row)
        state.predicted += 1
        if said.log_density is not None and said.squared_error is not None:
            state.learned += 1
            state.squared_error += said.squared_error
            state.log_density += said.log_density
        state.refused += said.skipped
        assert self.writer is not None
        try:
            self.writer.write(number, said.values)
        except BrokenPipeError:
            state.take(line)  # it has been learned
            raise

    def _begin(self, line: bytes) -> bool:
        """Take the first line that is not empty; return whether it is a header."""
        was_header = self.reader.begin(line)
        self.writer = RowWriter(self.reader.form, self.model.output_names)
        with contextlib.suppress(InputError):  # of a first row, which is met again
            ignored = self.reader.ignored(line)
            if ignored:
                names = listed([repr(name) for name in ignored], 10)
                _say(f"note: the model does not know {names}, and does not look there")
        return was_header

    def _patience(self) -> float | None:
        """How long to wait for a line before what was learned is saved."""
        return None if self.due == math.inf else max(0.0, self.due - time.monotonic())

    def _save(self) -> None:
        if self.state.line > (0 if self.state.ended else self.saved):
            checkpoint(self.model, self.state, self.path)
        self.saved, self.due = self.state.line, math.inf

    def _refusal(self, number: int, error: InputError) -> str:
        text = f"line {number}: {error}"
        if self.writer is None:
            return text
        kept = f"; what came before it is learned, and kept in {self.path}"
        return f"{text}{kept}. Mend it and --resume, or pass over such lines: --on-error skip"

    def _warn_if_known(self) -> None:
        if not self.options.new and self.old is not None and self.state.start == self.old.start:
            _say(
                "note: this input begins with the same two lines as the last one. If it is the "
                "same its rows count twice; --resume passes over lines that are known"
            )

    def _tell(self, bell: Bell) -> None:
        state = self.state
        if state.line == 0:
            _say("note: standard input was empty; nothing was learned")
            return
        if self.writer is None and state.ended:
            _say(
                "note: standard input had empty lines only, no header and no row; nothing was "
                "learned"
            )
            return
        count = "1 row" if state.predicted == 1 else f"{state.predicted} rows"
        rows = f"{count} predicted, {state.learned} learned"
        if state.refused:
            rows += f", {state.refused} skipped"
        if state.refused and not state.predicted:
            raise InputError(f"none of the {state.refused} rows could be read")
        how = "" if state.ended else f"{bell.name or 'stopped'} after line {state.line}: "
        on = "" if state.ended else "; --resume goes on if the same input is given again"
        scores = f"; {listed(state.scores(self.model.of_classes))}" if state.learned else ""
        _say(f"{how}{rows}{scores}{self._losses()}; the model is kept in {self.path}{on}")

    def _losses(self) -> str:
        """Return what to add if the basis cannot hold what rows say, as a note has said before."""
        estimator = self.model.estimator
        rate = estimator._loss_a_row()
        if rate == 0.0 or not self.state.learned:
            return ""
        why = "coarse" if estimator._has_room else "small"
        return f"; a row loses {rate:.2g} nats to a basis that is too {why}"


@contextlib.contextmanager
def _warnings_as_notes(stream: _Stream) -> Iterator[None]:
    """Show warnings as sentences about the line that they came at."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        _say(f"note: line {stream.state.line + 1}: {with_options(str(message))}")

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


def _say(text: str) -> None:
    sys.stderr.write(f"mercer: {text}\n")
    sys.stderr.flush()
