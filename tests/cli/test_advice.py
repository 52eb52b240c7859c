"""What estimators advise, in terms of the command line's options."""

from __future__ import annotations

import ast
import re
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import mercer
from mercer import LaplacianProcessRegressor, OnlineGPRegressor, RelevanceVectorRegressor
from mercer.cli.fitting import _for_the_command_line
from mercer.cli.summary import _INSTEAD, with_options
from mercer.errors import MercerWarning, TooLargeError
from mercer.estimators import laplacian_warnings
from mercer.estimators.greedy_fit import warn_of_gap
from mercer.estimators.online_bars import warn_of_bars
from mercer.estimators.search import warn_of_unexplained
from mercer.evidence import at_bounds
from mercer.inference._l1_generation import Generation
from mercer.inference._l1_simplex import UnsolvedError
from mercer.inference.online import OnlineProcess
from mercer.kernels import RBF
from mercer.likelihoods import EpsilonInsensitive, Gaussian

FOLDER = Path(mercer.__file__).parent
PATTERNS = [pattern for pattern, _ in _INSTEAD]


# --- every row of the table ---------------------------------------------------------------------


def joined(node, known):
    """Return a text as it is written, with 3 for what is filled in but constants of the module."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue):
        return known.get(getattr(node.value, "id", ""), "3")
    return "".join(joined(part, known) for part in node.values)


def texts_of(source):
    """Yield the texts of a module, those of several lines whole, without its docstrings."""
    tree, known = ast.parse(source), {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            known[getattr(node.targets[0], "id", "")] = joined(node.value, known)
    within = {id(p) for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for p in n.values}
    within |= {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in within:
            yield joined(node, known)


@pytest.fixture(scope="module")
def written():
    """What stands in the package, but for the command line itself, and some row is of."""
    files = [f for f in FOLDER.rglob("*.py") if f.relative_to(FOLDER).parts[0] != "cli"]
    texts = [text for file in files for text in texts_of(file.read_text(encoding="utf-8"))]
    return [text for text in texts if with_options(text) != text]


def unproved(status):
    options = {"gap_": 0.5, "selection_status_": status, "basis_indices_": range(9), "tol": 0.01}
    warn_of_gap(SimpleNamespace(**options, max_basis=None))


def many_functions():
    X = np.linspace(-3, 3, 60)[:, None]
    y = np.random.default_rng(0).standard_normal(60)
    RelevanceVectorRegressor(RBF(0.02), optimizer=None).fit(X, y)


def zone_that_holds_all():
    X = np.linspace(-3, 3, 40)[:, None]
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    model = LaplacianProcessRegressor(RBF(1.0), EpsilonInsensitive(), optimizer=None, n_folds=3)
    model.fit(X, y)


def constant_targets():
    LaplacianProcessRegressor(RBF(1.0), optimizer=None).fit(np.arange(9.0)[:, None], np.ones(9))


def stopped():
    fit = SimpleNamespace(solution=SimpleNamespace(status="stopped"))
    model = SimpleNamespace(max_active=None, gap_=0.02, tol=0.001)
    laplacian_warnings.warn_of_status(model, [fit])


def many():
    rows = SimpleNamespace(Y=np.zeros((40, 1)))
    frame = SimpleNamespace(model=SimpleNamespace(rows=rows), is_open=True)
    laplacian_warnings._warn_of_many(frame, [SimpleNamespace(coef=np.zeros(30))])


# Texts that are put together as they are said.
SAID = {
    r"(?:Give the noise if it is|Try a larger noise) \w+, or a wider kernel .* GPRegressor": many,
    r"; fit again with warm_start=True to go on(?:, or raise tol)?": lambda: unproved(
        "interrupted"
    ),
    r": raise tol, or the noise$": lambda: unproved("exhausted"),
    r"; raise tol$": stopped,
    r"\. Give kernel, likelihood and prior_scale to have it otherwise": constant_targets,
    r"give `noise`, or try a wider kernel or GPRegressor": many_functions,
    r"; give epsilon$": zone_that_holds_all,
    r"Raise n_inducing, to (\d+) say": lambda: warn_of_unexplained(
        SimpleNamespace(inducing="kmeans"), 1.0, 1.0, 0.1, 500, 9000
    ),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_row_is_of_a_text_that_is_there(written, pattern):
    """It must match what the rows before it leave of some text."""
    texts = written
    if pattern in SAID:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            SAID[pattern]()
        texts = [str(one.message) for one in caught]
    before = _INSTEAD[: PATTERNS.index(pattern)]
    for text in texts:
        for other, instead in before:
            text = re.sub(other, instead, text)
        if re.search(pattern, text):
            return
    pytest.fail(f"nothing says {pattern!r}")


def test_every_recipe_is_of_a_row():
    assert set(SAID) <= set(PATTERNS) and len(set(PATTERNS)) == len(PATTERNS)


# --- what is said ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recipe", "ending"),
    [
        (stopped, "stopped: a gap of 0.001 was wanted, and the one that is proved is 0.02"),
        (
            lambda: unproved("interrupted"),
            "interrupted with 9 basis functions, the Gap proved is 0.5",
        ),
        (lambda: unproved("exhausted"), "and not 0.01; no row has more than rounding to add"),
        (lambda: unproved("stopped"), "with 9 basis functions, and not 0.01"),
        (constant_targets, "noise is the least there can be"),
    ],
)
def test_tolerances_are_no_options(recipe, ending):
    with pytest.warns(MercerWarning) as caught:
        recipe()
    said = with_options(str(caught[0].message))
    assert said.endswith(ending) and not re.search(r"\btol\b|warm_start|prior_scale", said)


def test_a_prior_scale_that_is_too_large_is_told_of_as_an_option(run, data, tmp_path, monkeypatch):
    monkeypatch.setattr(laplacian_warnings, "_is_loud", lambda *_: True)
    options = ["--method", "laplacian", "--prior-scale", "10"]
    done = run("fit", data, "-t", "yield", "-o", tmp_path / "m.mercer", *options)
    (told,) = (line for line in done.stdout.splitlines() if "noise and error bars" in line)
    assert told.startswith("Warning: --prior-scale is so large that there is less noise than")
    assert not re.search("n_penalties|rior_scale", told)


def test_programmes_that_are_not_solved_are_told_of_with_options(
    refused, data, tmp_path, monkeypatch
):
    def fail(*_):
        raise UnsolvedError("the linear programme was not solved: Unknown")

    monkeypatch.setattr(Generation, "solve", fail)
    options = ["--method", "laplacian", "--likelihood", "laplace"]
    said = refused("fit", data, "-t", "yield", "-o", tmp_path / "m.mercer", *options)
    assert said.startswith("mercer: the linear programme was not solved: Unknown, with penalties ")
    assert said.endswith(
        ". A smaller --prior-scale, another --kernel or --likelihood may make it one that can be"
    )


def test_too_large_a_basis_is_told_of_as_an_option(refused, data, tmp_path):
    options = ["--method", "online", "--max-basis", 10**8]
    said = refused("fit", data, "-t", "yield", "-o", tmp_path / "m.mercer", *options)
    assert "on-line learning with --max-basis 100,000,000 " in said
    assert said.endswith(". Take a smaller --max-basis")


def test_errors_keep_their_kind_where_they_can():
    told = _for_the_command_line(TooLargeError("try n_restarts=5"))
    assert type(told) is TooLargeError and str(told) == "try --restarts 5"
    undecoded = UnicodeDecodeError("utf-8", b"", 0, 1, "try n_restarts=5")
    told = _for_the_command_line(undecoded)
    assert type(told) is ValueError and str(told).endswith("try --restarts 5")


def test_what_stands_between_two_pieces_of_advice_is_kept():
    said = f"{at_bounds._COUNTED}; this is kept; {at_bounds._ADVICE['df', 'lower']}"
    text = with_options(said)
    assert "should average 1; this is kept; some targets" in text


def test_narrow_error_bars_of_a_stream_are_told_of_without_python():
    model = OnlineGPRegressor()
    model._chosen_by = 100
    model._process = process = OnlineProcess(RBF(1.0), Gaussian(0.1))
    with pytest.warns(MercerWarning) as caught:
        warn_of_bars({"judged": 400.0, "outside": 200.0}, process, model._let_more_choose())
    assert "n_init=500" in str(caught[0].message)
    said = with_options(str(caught[0].message))
    assert said.endswith("these rows. 100 rows have chosen kernel and noise: fit anew to more")


def test_rows_that_are_lost_below_the_tolerance_are_told_of_without_python():
    model = OnlineGPRegressor(RBF(2.0), Gaussian(1e-8)).partial_fit(np.eye(3), np.ones(3))
    model._lost = {**model._lost, "nats": 400.0, "rows": 400.0}
    with pytest.warns(MercerWarning, match="Where noise is next to none tol=1e-8") as caught:
        model._warn_of_losses()
    said = with_options(str(caught[0].message))
    assert "and is yet below 1e-06, in units of k(x, x). Columns far from 0" in said
    assert "tol" not in said and "Parameter" not in said
