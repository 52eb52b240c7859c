"""Running pieces of an experiment in fresh processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
