"""Marks for the tests of every kernel."""

from __future__ import annotations

import pytest

from .cases import CASES

every = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
