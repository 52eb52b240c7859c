"""The examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import mercer.kernels

MODULES = [m.name for m in pkgutil.iter_modules(mercer.kernels.__path__, "mercer.kernels.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_kernel_but_the_composites_has_an_example():
    composites = {"On", "Power", "Product", "Scaled", "Sum", "Kernel", "KernelGradient"}
    for name in set(mercer.kernels.__all__) - composites:
        assert ">>> " in getattr(mercer.kernels, name).__doc__, name
