"""The benchmarks still run: every experiment at a tiny size, and the keeping of their tables."""

from __future__ import annotations

import importlib
import importlib.util
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mercer.evidence import maximise
from mercer.evidence.defaults import bounded_noise, default_kernel, default_noise
from mercer.evidence.directions import Directions

ROOT = Path(__file__).resolve().parents[1]
NAMES = (
    "import_time",
    "commands",
    "kernel_matrix",
    "evidence",
    "memory",
    "predict",
    "fit",
    "compat",
    "classification",
    "digits",
    "ep",
    "low_rank",
    "sparse",
    "sparse_accuracy",
    "greedy",
    "laplacian",
    "laplacian_programme",
    "relevance",
    "iterative",
    "online",
    "online_memory",
    "online_streams",
    "online_updates",
    "online_digits",
    "uci",
)


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module


def test_all_are_listed(benchmarks):
    assert set(benchmarks("benchmarks").EXPERIMENTS) == set(NAMES)


# GPyTorch would bring threads of its own into this process, and its peers warn.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        "kernel_matrix",
        "ep",
        "sparse_accuracy",
        "greedy",
        "laplacian_programme",
        "uci",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (
                "evidence",
                "predict",
                "fit",
                "compat",
                "classification",
                "digits",
                "laplacian",
                "relevance",
                "iterative",
                "online",
                "online_memory",
                "online_streams",
                "online_updates",
                "online_digits",
            )
        ),
    ],
)
def test_quick(benchmarks, name, capsys):
    main = benchmarks("benchmarks.__main__").main
    with threadpool_limits(1):  # tiny sizes are no work for threads, least of all on a busy machine
        assert main([name, "--quick", "--without", "gpytorch", "--without", "gpy"]) == 0
    printed = capsys.readouterr().out
    # behind the kernels of OpenBLAS, if the environment has chosen them
    assert f"python -m benchmarks {name} --quick --without gpytorch --without gpy`" in printed
    assert "| verdict" in printed or "verdict |" in printed
    assert "scikit-learn" in printed
    assert "nan" not in printed.split("## ")[-1]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_quick_with_all_peers_in_a_process_of_its_own(name):
    if importlib.util.find_spec("gpytorch") is None:
        pytest.skip("GPyTorch is not installed; `make bench` installs it")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", name, "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert f"python -m benchmarks {name}" in done.stdout


def test_the_command_line_is_timed_as_a_process(benchmarks, capsys):
    assert benchmarks("benchmarks.__main__").main(["commands", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"\| mercer --help +\| +\d+\.\d+ s \| below 0\.7 s \|", printed)
    with pytest.raises(RuntimeError, match="No such option"):
        benchmarks("benchmarks.children").child_output(["-m", "mercer.cli", "--hlep"])


def test_the_peer_of_a_fit_stops_by_mercers_rule(benchmarks):
    """On the same function, where it stops is where Mercer's own search does."""
    fit = benchmarks("benchmarks.fit")
    centre, curvature = np.array([1.0, -2.0]), np.array([300.0, 0.02])

    class Bowl:
        theta, bounds = np.zeros(2), np.tile([-10.0, 10.0], (2, 1))
        directions, parameter_names = Directions(2), ["a", "b"]
        jitter, failed, again = 0.0, False, None

        def __call__(self, theta):
            step = theta - centre
            return -0.5 * step @ (curvature * step), -curvature * step

        def value(self, theta):
            return self(theta)[0]

        def hold_jitter(self, jitter):
            pass

    def minimised(theta):
        calls.append(theta)
        value, gradient = Bowl()(theta)
        return -value, -gradient

    calls = []
    ours = maximise(Bowl(), max_iter=fit.MAX_ITER)
    counted = fit.Counted()
    theta, value = counted(minimised, Bowl.theta, Bowl.bounds)
    assert counted.evaluations == len(calls) == ours.n_evaluations
    np.testing.assert_array_equal(theta, ours.theta)
    assert value == pytest.approx(-ours.value)


def test_races_are_interleaved_and_keep_the_best(benchmarks, monkeypatch):
    timing = benchmarks("benchmarks.timing")
    clock = iter(range(10**6))
    calls = []
    seconds = {"a": [9.0, 3.0, 2.0, 4.0], "b": [1.0, 8.0, 6.0, 7.0]}
    now = [0.0]

    def contender(name):
        times = iter(seconds[name])

        def run():
            calls.append(name)
            now[0] += next(times)

        return timing.Contender(name, run, prepare=lambda: next(clock))

    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(timing.time, "sleep", lambda _: None)
    best = timing.race([contender("a"), contender("b")], 3)
    assert best == {"a": 2.0, "b": 6.0}  # the warm-up's 9 and 1 do not count
    assert calls == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert next(clock) == 8  # each run was prepared


def test_slow_contenders_run_no_more_than_they_may(benchmarks):
    timing = benchmarks("benchmarks.timing")
    runs = []
    slow = timing.Contender("slow", lambda: runs.append(1), most=2)
    best = timing.race([slow, timing.Contender("fast", lambda: None)], 4, pause=0.0)
    assert len(runs) == 2
    assert best["slow"] < float("inf")


def test_a_section_is_rewritten_and_others_are_left(benchmarks, tmp_path):
    report = benchmarks("benchmarks.report")
    path = tmp_path / "RESULTS.md"
    report.keep("one", "## One\n\nold\n", path)
    report.keep("two", "## Two\n\n\\1 stays as it is\n", path)
    report.keep("one", "## One\n\nnew\n", path)
    text = path.read_text()
    assert text.startswith("# Results")
    assert "old" not in text
    assert text.count("## One") == text.count("## Two") == 1
    assert text.index("## One") < text.index("new") < text.index("## Two") < text.index("\\1 stays")


def test_verdicts_and_tables(benchmarks):
    report = benchmarks("benchmarks.report")
    result = report.Result(
        "Title", "Setting.", [report.table(["who", "ms"], [["a", "1"], ["bc", "10"]])]
    )
    result.verdicts = [
        report.Verdict("speed", "1.1", "at most 1", False),
        report.Verdict("size", "1", "at most 1", True),
    ]
    lines = report.to_markdown(result, "command").splitlines()
    assert lines[:3] == ["## Title", "", "`command`"]
    assert lines[6:10] == ["| who | ms |", "| --- | -: |", "| a   |  1 |", "| bc  | 10 |"]
    assert "**missed**" in lines[-2] and "reached" in lines[-1]


def test_the_machine_is_described_without_names(benchmarks):
    text = benchmarks("benchmarks.report").machine()
    assert "cores" in text and "threads" in text
    assert str(ROOT) not in text
    assert not platform.node() or platform.node() not in text


@pytest.mark.parametrize("arguments", [["nonsense"], ["--write"]])
def test_bad_arguments_are_refused(benchmarks, arguments, capsys):
    main = benchmarks("benchmarks.__main__").main
    with pytest.raises(SystemExit):
        main(arguments)
    error = capsys.readouterr().err
    assert "unknown experiment nonsense" in error or "--write" in error


@pytest.mark.parametrize(
    ("flags", "kept"),
    [([], ["fit"]), (["--no-write"], []), (["--quick"], [])],
)
def test_results_are_kept_unless_they_are_not_to_be(benchmarks, flags, kept, monkeypatch, capsys):
    entry, report = benchmarks("benchmarks.__main__"), benchmarks("benchmarks.report")
    seen = []
    monkeypatch.setattr(entry, "keep", lambda name, section: seen.append(name))
    monkeypatch.setattr(benchmarks("benchmarks.fit"), "run", lambda _: report.Result("T", "S."))
    assert entry.main(["fit", *flags]) == 0
    assert seen == kept
    assert "## T" in capsys.readouterr().out


def test_the_peers_bounds_are_mercers(benchmarks):
    peers = benchmarks("benchmarks.peers")
    kernel = default_kernel(np.ones(2), 1.0).with_bounds_from(np.ones(2), 1.0)
    expected = [peers.VARIANCE_BOUNDS, peers.LENGTH_BOUNDS, peers.LENGTH_BOUNDS]
    np.testing.assert_allclose(np.exp(kernel.bounds), expected)
    noise = bounded_noise(default_noise(1.0), 1.0)
    np.testing.assert_allclose(np.exp(noise.bounds), [peers.NOISE_BOUNDS])
    theirs = np.exp(peers.sklearn_regressor(np.ones(2), 0.1).kernel.bounds)
    np.testing.assert_allclose(theirs, [*expected, peers.NOISE_BOUNDS])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("pace", "begins"), [(0.3, 0), (3.0, 1), (12.0, 2)])
def test_a_peer_begins_at_the_best_of_mercers_starts(benchmarks, monkeypatch, pace, begins):
    uci = benchmarks("benchmarks.uci")
    lengths_of = []
    plain = uci.sklearn_regressor
    monkeypatch.setattr(
        uci, "sklearn_regressor", lambda at, *a, **kw: lengths_of.append(at) or plain(at, *a, **kw)
    )
    X = np.linspace(-1.7, 1.7, 60)[:, None]
    uci.sklearn(X, np.sin(pace * X[:, 0]), X)
    np.testing.assert_allclose(lengths_of, [[1.0], [1 / 4], [1 / 16], [4.0**-begins]])


def test_kept_scores_are_of_one_set_up(benchmarks, monkeypatch):
    uci = benchmarks("benchmarks.uci")
    keys = [
        uci.peer_key(who, uci.made_up(), i) for who in (uci.SKLEARN, uci.GPYTORCH) for i in (0, 1)
    ]
    for name, value in [
        ("NOISE_BOUNDS", (1e-8, 1e2)),
        ("LENGTH_BOUNDS", (1e-5, 1e5)),
        ("starts", lambda d: [np.full(d, 2.0)]),
        ("start_noise", lambda: 0.2),
        ("PEER_VERSIONS", {uci.SKLEARN: "0.1"}),
    ]:
        with monkeypatch.context() as changed:
            changed.setattr(uci, name, value)
            keys.append(uci.peer_key(uci.SKLEARN, uci.made_up(), 0))
    assert len(set(keys)) == len(keys)


def test_paired_differences(benchmarks):
    uci = benchmarks("benchmarks.uci")
    mean, std, y = np.zeros(4), np.full(4, 2.0), np.array([2.0, -2.0, 6.0, 0.0])
    rmse, nlpd, coverage = uci.scores(mean, std, y)
    assert rmse == pytest.approx(np.sqrt(11))
    expected = 0.5 * (1 + 1 + 9 + 0) / 4 + np.log(2) + 0.5 * np.log(2 * np.pi)
    assert nlpd == pytest.approx(expected)
    assert coverage == 0.75
    ours = np.array([[1.0, 2.0, 0.9], [1.5, 2.5, 1.0]])
    theirs = np.array([[0.8, 2.0, 0.93], [1.0, 3.0, 0.93]])
    names, gaps, errors = zip(*uci.gaps(ours, theirs), strict=True)
    assert names[-1] == "distance of coverage from 0.95"
    np.testing.assert_allclose(gaps, [0.35, -0.25, -0.02])
    np.testing.assert_allclose(errors, [0.15, 0.25, 0.05])
