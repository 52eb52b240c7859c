"""Running pieces of an experiment in fresh processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.report import ROOT


def in_child(code: str, environment: Mapping[str, str] | None = None) -> Any:
    """Run code in a fresh interpreter and return the JSON that it prints last."""
    search = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": search, **(environment or {})},
    )
    if done.returncode != 0:
        raise RuntimeError(f"a child process failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
