"""Running pieces of an experiment in fresh processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import ROOT


def in_child(code: str, environment: Mapping[str, str] | None = None) -> Any:
    """Run code in a fresh interpreter and return the JSON that it prints last."""
    return json.loads(child_output(["-c", code], environment).splitlines()[-1])


def child_output(arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Run a fresh interpreter with these arguments and return what it prints."""
    search = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": search, **(environment or {})},
    )
    if done.returncode != 0:
        raise RuntimeError(f"a child process failed:\n{done.stderr[-2000:]}")
    return done.stdout


def resident_bytes(key: str) -> int:
    """Return what this process has in memory ("VmRSS"), or has had at the most ("VmHWM").

    The peak that `getrusage` tells of a process is at least that of the one it was started by.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {key}")
