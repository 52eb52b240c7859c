"""The examples in the docstrings of every module."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import mercer

# A __main__ is run by being imported.
MODULES = [
    "mercer",
    *(
        m.name
        for m in pkgutil.walk_packages(mercer.__path__, "mercer.")
        if not m.name.endswith("__main__")
    ),
]


def test_all_packages_are_found():
    assert {"mercer.kernels.arcsine", "mercer.likelihoods.gaussian", "mercer.registry"} < {*MODULES}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "mercer":
            raise
        pytest.skip(f"{name} needs {error.name}, which an extra installs")
    assert doctest.testmod(module).failed == 0
