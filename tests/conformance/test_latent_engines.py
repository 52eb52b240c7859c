"""Engines for other likelihoods than Gaussian noise: each has the protocol, and tests."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from . import discovery

ENGINES = {m.__name__.rpartition(".")[2]: m for m in discovery.latent_engines()}
TESTS = Path(__file__).resolve().parents[1] / "inference"


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_solves_and_has_adjoints_and_a_posterior(name):
    for function in ("solve", "evidence", "posterior"):
        given = getattr(ENGINES[name], function, None)
        assert inspect.isfunction(given), f"mercer.inference.{name} must define {function}(problem)"
        assert next(iter(inspect.signature(given).parameters)) == "problem"


@pytest.mark.parametrize("name", ENGINES)
def test_an_engine_has_tests_of_its_own(name):
    path = TESTS / f"test_{name}.py"
    assert path.exists(), f"mercer.inference.{name} wants tests in tests/inference/{path.name}"
    assert "evidence(" in path.read_text(encoding="utf-8")
