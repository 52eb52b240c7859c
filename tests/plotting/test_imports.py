"""matplotlib is needed to draw, and for nothing else."""

from __future__ import annotations

import builtins
import subprocess
import sys

import pytest

import mercer.plotting
from mercer.kernels import RBF


def test_matplotlib_comes_with_the_first_picture():
    code = "import sys, mercer, mercer.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_matplotlib(monkeypatch):
    original = builtins.__import__

    def refuse(name, *rest, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match="python -m pip install matplotlib"):
        mercer.plotting.plot_samples(RBF(1.0), (0, 1))


def test_everything_public_takes_axes():
    import inspect

    for name in mercer.plotting.__all__:
        function = getattr(mercer.plotting, name)
        assert inspect.signature(function).parameters["ax"].default is None, name
        assert "ax : axes" in function.__doc__, name
