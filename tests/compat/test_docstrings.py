"""The examples in the docstrings run as written, and without a warning."""

from __future__ import annotations

import doctest

import pytest

from mercer.compat import classifier, regressor


@pytest.mark.parametrize("module", [classifier, regressor])
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted and not result.failed
