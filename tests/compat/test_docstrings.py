"""The examples in the docstrings run as written, and without a warning."""

from __future__ import annotations

import doctest

from mercer.compat import regressor


def test_examples():
    result = doctest.testmod(regressor)
    assert result.attempted and not result.failed
