"""Options, exit codes, help, progress and interruption."""

from __future__ import annotations

import ast
import inspect
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import typer
from rich.console import Console
from rich.measure import Measurement
from typer.testing import CliRunner

import mercer
from mercer.cli import commands
from mercer.cli.app import app
from mercer.cli.guard import guarded
from mercer.cli.kernels import parse_kernel, parse_period
from mercer.cli.methods import METHODS
from mercer.cli.options import EXAMPLES
from mercer.cli.progress import Pace, progress_bar
from mercer.cli.summary import with_options
from mercer.cli.tables import SUFFIXES
from mercer.errors import MercerWarning, TooLargeError
from mercer.estimators import relevance_process, relevance_warnings
from mercer.estimators.search import warn_of_unexplained
from mercer.evidence import Optimum, at_bounds, diagnostics
from mercer.evidence.maximise import _MORE_NOISE
from mercer.inference import _relevance_run, relevance

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
COMMANDS = ["fit", "predict", "stream", "info", "demo", "reproduce"]
# What only those who write Python can follow.
PYTHON = re.compile(r"\w+=|\w\(|\w_\w|_\b|`|StandardScaler|bounds")


# --- help ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_help_has_an_example(run, command):
    shown = run(*([command] if command else []), "--help").stdout
    assert EXAMPLES[command]
    for example in EXAMPLES[command]:
        assert f"  {example}\n" in shown + "\n"


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_help_tells_every_kind_of_table(run, command):
    shown = run(command, "--help").stdout
    assert all(re.search(rf"{re.escape(suffix)}\b", shown) for suffix in SUFFIXES)


def test_help_tells_what_is_predicted_of_numbers_and_of_labels(run):
    shown = run("predict", "--help").stdout
    for name in ("mean", "std", "lower", "upper", "label", "p_CLASS"):
        assert f"TARGET_{name}" in shown


def test_all_commands_are_tested():
    assert set(typer.main.get_command(app).commands) == set(COMMANDS)


@pytest.mark.parametrize("example", [e for examples in EXAMPLES.values() for e in examples])
def test_every_example_parses(example):
    words = shlex.split(re.sub(r" [<>]+ \S+", "", example))
    assert words[0] == "mercer"
    command = typer.main.get_command(app).commands[words[1]]
    command.make_context(words[1], words[2:])  # raises if an option is unknown or lacks


def test_help_imports_nothing_heavy():
    """The figure to reach is 0.7 s; this is what makes it so."""
    code = (
        "import json, sys\n"
        "from mercer.cli.main import main\n"
        "sys.argv = ['mercer', '--help']\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert "Usage" in done.stdout
    assert not loaded & {
        "numpy",
        "scipy",
        "sklearn",
        "numba",
        "pandas",
        "pyarrow",
        "mercer.kernels",
    }


def test_version(run):
    assert run("--version").stdout == f"mercer {mercer.__version__}\n"


# --- exit codes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["fly"],
        ["fit"],
        ["fit", "d.csv"],
        ["fit", "d.csv", "-t", "y"],
        ["fit", "d.csv", "-t", "y", "-o", "m", "--method", "magic"],
        ["fit", "d.csv", "-t", "y", "-o", "m", "--kernel", "__import__('os')"],
        ["fit", "d.csv", "-t", "y", "-o", "m", "--kernel", "rbf+"],
        ["fit", "d.csv", "-t", "y", "-o", "m", "--kernel", "rbf+rbf"],
        ["fit", "d.csv", "-t", "y", "-o", "m", "--kernel", "periodic"],
        ["fit", "d.csv", "-t", "y", "-o", "m", "--period", "x=3"],
        ["fit", "d.csv", "-t", "y", "-o", "m", "--kernel", "periodic", "--period", "x=-3"],
        ["fit", "d.csv", "-t", "y", "-o", "m", "--restarts", "-1"],
        ["fit", "d.csv", "-t", "y", "-o", "m", "--seed", "x"],
        ["predict", "m"],
        ["predict", "m", "n", "--coverage", "95"],
        ["predict", "m", "n", "--coverage", "nan"],
        ["stream"],
        ["stream", "--model", "m", "--resume", "--new"],
        ["stream", "--model", "m", "--on-error", "hope"],
        ["stream", "--model", "m", "--format", "xml"],
        ["stream", "--model", "m", "--every", "0"],
        ["stream", "--model", "m", "--max-basis", "9"],
        ["stream", "--model", "m", "--continue-as", "n", "--resume"],
        ["info"],
    ],
)
def test_wrong_usage_is_code_2(run, arguments):
    assert run(*arguments, code=2).stdout == ""


def test_one_target_a_model(run):
    said = run("fit", "d", "-t", "force", "-t", "torque", "-o", "m", code=2).stderr
    assert "one target a model is wanted, got force, torque" in " ".join(said.split())


def test_usage_says_what_would_be_right(run):
    said = " ".join(run("predict", "m", "n", "--coverage", "95", code=2).stderr.split())
    assert "for 95% write 0.95" in said
    said = run("fit", "d", "-t", "y", "-o", "m", "--method", "magic", code=2).stderr
    assert all(name in said for name in METHODS)


def test_no_arguments_show_the_help():
    done = subprocess.run(
        [sys.executable, "-m", "mercer.cli"], capture_output=True, text=True, env=ENVIRONMENT
    )
    assert "Usage" in done.stdout + done.stderr and done.returncode in (0, 2)


def test_debug_shows_the_traceback(tmp_path):
    command = ["info", str(tmp_path / "none")]
    plain, loud = (CliRunner().invoke(app, [*command, *more]) for more in ([], ["--debug"]))
    assert plain.exit_code == loud.exit_code == 1
    assert "Traceback" not in plain.stderr and "Traceback" in loud.stderr
    assert loud.stderr.endswith(plain.stderr)


@pytest.mark.parametrize(
    "error, code, expected",
    [
        (TooLargeError("this needs 9 GiB"), 1, "mercer: this needs 9 GiB"),
        (MemoryError(), 1, "not enough memory"),
        (ValueError("no"), 1, "mercer: no"),
        (KeyError("lost"), 1, "a fault of Mercer's (KeyError: 'lost'); --debug shows where"),
        (KeyboardInterrupt(), 130, "interrupted; nothing was written"),
    ],
)
def test_what_goes_wrong_is_a_sentence(run, data, tmp_path, monkeypatch, error, code, expected):
    def fail(*_):
        raise error

    monkeypatch.setattr(commands, "fit_table", fail)
    done = run("fit", data, "-t", "yield", "-o", tmp_path / "m.mercer", code=code)
    assert expected in done.stderr and len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "m.mercer").exists()


def test_too_large_a_table(refused, data, tmp_path, monkeypatch):
    monkeypatch.setattr("mercer.estimators.memory.available_memory", lambda: 1000)
    said = refused("fit", data, "-t", "yield", "-o", tmp_path / "m.mercer")
    assert "an exact fit to 60 rows" in said
    assert said.endswith("--method sparse is made for this size")


def test_advice_on_inducing_inputs_is_for_the_command_line():
    with pytest.warns(MercerWarning, match="Raise n_inducing") as caught:
        warn_of_unexplained(SimpleNamespace(inducing="kmeans"), 1.0, 1.0, 0.1, 500, 9000)
    said = with_options(str(caught[0].message))
    assert said.endswith(". SparseGPRegressor(n_inducing=2000) in Python has more")


def test_a_reader_that_has_seen_enough_is_no_error(fitted, new):
    command = f"{shlex.quote(sys.executable)} -m mercer.cli predict {fitted} {new}"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | true"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


# --- small parts --------------------------------------------------------------------------------


def test_kernels_and_periods_are_parsed():
    assert parse_kernel("Matern52 + linear") == ["matern52", "linear"]
    assert parse_period("a=b=7") == ("a=b", 7.0)


def test_fit_prints_warnings_as_sentences(run, tmp_path):
    rows = "\n".join(f"{i},{(i * 7919) % 13},{2 * i}" for i in range(30))
    (tmp_path / "d.csv").write_text(f"x,the noise,y\n{rows}\n")
    arguments = ["-t", "y", "--kernel", "matern52", "-o", tmp_path / "m.mercer"]
    shown = run("fit", tmp_path / "d.csv", *arguments).stdout
    assert "Warning: The best hyperparameters found stand at a bound. the length scale of " in shown
    assert "'the noise' at its upper bound: hardly any effect on the target" in shown
    assert "(try --restarts 5)" in shown
    assert "UserWarning" not in shown and "length_scale" not in shown


def test_pace_counts_over_all_starts():
    pace = Pace(starts=3, inputs=2)
    assert pace.expected == 66
    for i in range(1, 31):
        pace.take(1, i, -5.0)
    assert pace.done == 30 and pace.expected == 36 + 44
    pace.take(2, 1, -7.0)
    assert pace.done == 31 and pace.expected == 90
    assert pace.best == -5.0


def test_pace_allows_for_a_start_more_than_announced():
    pace = Pace(starts=1, inputs=2)
    for start in (1, 2):
        for i in range(1, 31):
            pace.take(start, i, -5.0)
            assert pace.done < pace.expected
    assert pace.done == 60 and pace.expected == 66


def test_the_progress_of_a_long_fit_of_many_rows_fits_into_80_columns():
    bar = progress_bar(Console(width=200))
    task = bar.add_task("", total=2000, best=f"{-1234567.891:.2f}")
    bar.update(task, completed=1234)
    table = bar.make_tasks_table(bar.tasks)
    assert Measurement.get(bar.console, bar.console.options, table).maximum <= 80


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("name", ["noise", "length_scale", "variance", "period"])
def test_advice_on_bounds_is_for_the_command_line(name, side):
    said = with_options(at_bounds._advice(f"kernel.{name}", side))
    assert said and not PYTHON.search(said)


def test_advice_on_weights_is_for_the_command_line():
    assert PYTHON.search(at_bounds._COUNTED) and not PYTHON.search(with_options(at_bounds._COUNTED))


@pytest.mark.parametrize("remedy", [Optimum.remedy, _MORE_NOISE])
def test_advice_on_searches_that_stopped_is_for_the_command_line(remedy):
    said = with_options(remedy)
    assert said and said != remedy and not re.search(r"max_iter|bound|fix", said)


@pytest.mark.parametrize("name", ["warn_if_unrelated", "warn_if_noise_does_better"])
def test_advice_on_searches_is_for_the_command_line(name):
    source = inspect.getsource(getattr(diagnostics, name))
    texts = [
        "".join(part.value for part in node.values if isinstance(part, ast.Constant))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.JoinedStr) and len(node.values) > 1  # the others are formats
    ]
    (text,) = texts
    assert PYTHON.search(text) and not PYTHON.search(with_options(text))


def _texts_of_warnings(module):
    """Return the constant parts of what a module warns of, a text for each call."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "warn":
            parts = [p for p in ast.walk(node.args[0]) if isinstance(p, ast.Constant)]
            yield "".join(part.value for part in parts if isinstance(part.value, str))


@pytest.mark.parametrize(
    "module", [relevance, relevance_process, relevance_warnings, _relevance_run]
)
def test_advice_on_relevance_vectors_is_for_the_command_line(module):
    texts = list(_texts_of_warnings(module))
    assert texts
    for text in texts:
        said = with_options(text)
        if "in Python" not in said:
            assert not re.search(r"`|hyperprior|max_steps|augment", said)


# --- on a terminal ------------------------------------------------------------------------------


def on_a_terminal(arguments, interrupt_at=None):
    """Run a command with a terminal as standard error; return its code and what it showed."""
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mercer.cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=other,
        env={**ENVIRONMENT, "TERM": "xterm", "COLUMNS": "80"},
        # a shell's background job, as tests may be, ignores Ctrl-C, and its children with it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(other)
    shown, deadline = b"", time.monotonic() + 120
    try:
        while time.monotonic() < deadline:
            if select.select([main], [], [], 0.2)[0]:
                try:
                    piece = os.read(main, 4096)
                except OSError:  # Linux's way of saying that the other end is closed
                    break
                if not piece:
                    break
                shown += piece
                if interrupt_at is not None and re.search(interrupt_at, shown):
                    process.send_signal(signal.SIGINT)
                    interrupt_at = None
        output = process.communicate(timeout=60)[0]
    finally:
        process.kill()
        os.close(main)
    return process.returncode, output.decode(), shown.decode(errors="replace")


def test_progress_is_shown_on_a_terminal_only(run, data, tmp_path):
    path = tmp_path / "m.mercer"
    code, output, shown = on_a_terminal(["fit", data, "-t", "yield", "-o", path, "--restarts", "3"])
    assert code == 0 and "Saved as" in output
    assert "mercer: fitting; Ctrl-C keeps the best so far" in shown
    # nothing is cut off: the whole line, to the time left
    assert re.search(r"\d evaluations, best -?[\d.]+;\S* .*\d:\d\d.* passed,.* left", shown)
    assert "mercer: start" not in shown
    assert mercer.load(path).estimator.verbose == 0
    assert run("fit", data, "-t", "yield", "-o", path, "--force").stderr == ""


def test_an_interrupted_fit_keeps_the_best_so_far(data, tmp_path):
    path = tmp_path / "m.mercer"
    arguments = ["fit", data, "-t", "yield", "-o", path, "--restarts", "5000"]
    code, output, _ = on_a_terminal(arguments, interrupt_at=rb"[1-9]\d* evaluations, best -?\d")
    assert code == 0, output
    assert "Warning: The fit was interrupted after" in output and "Saved as" in output
    assert mercer.cli.model.TableModel is type(mercer.load(path))
    assert mercer.load(path).estimator.status_ == "interrupted"


def test_what_is_not_installed_is_named(capsys):
    with pytest.raises(typer.Exit), guarded(debug=False):
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow.parquet")
    said = "mercer: pyarrow is not installed; try: python -m pip install pyarrow\n"
    assert capsys.readouterr().err == said
    with pytest.raises(typer.Exit), guarded(debug=False):
        raise ModuleNotFoundError("No module named 'mercer.x'", name="mercer.x")
    assert "this is a fault of Mercer's" in capsys.readouterr().err


def test_the_package_runs_as_the_command():
    command = [sys.executable, "-m", "mercer", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert mercer.__version__ in done.stdout
