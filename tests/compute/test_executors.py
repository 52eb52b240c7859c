"""Executors: any split of the rows gives the same sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.compute import (
    SerialExecutor,
    ThreadExecutor,
    executor_for,
    executors,
    register_executor,
    row_blocks,
)

rng = np.random.default_rng(0)
X, y = rng.normal(size=(101, 3)), rng.normal(size=101)


def statistics(A, b):
    return np.concatenate([(A.T @ A).ravel(), A.T @ b, [b @ b, len(b)]])


@settings(max_examples=30, deadline=None)
@given(block=st.integers(1, 200))
def test_any_split(block):
    expected = statistics(X, y)
    serial = SerialExecutor().sum(statistics, X, y, block=block)
    np.testing.assert_allclose(serial, expected, rtol=1e-12)
    # the same records in the same order, so the same bits
    np.testing.assert_array_equal(ThreadExecutor().sum(statistics, X, y, block=block), serial)


def test_records_need_only_add():
    class Words(str):
        __slots__ = ()

        def __add__(self, other):
            return Words(str(self) + str(other))

    rows = np.array(list("abcdefgh"))
    for executor in (SerialExecutor(), ThreadExecutor()):
        assert executor.sum(lambda r: Words("".join(r)), rows, block=3) == "abcdefgh"


def test_no_rows():
    for executor in (SerialExecutor(), ThreadExecutor()):
        with pytest.raises(ValueError, match="no rows"):
            executor.sum(statistics, X[:0], y[:0])


@given(n=st.integers(0, 1000), size=st.integers(1, 300))
def test_row_blocks(n, size):
    blocks = row_blocks(n, size)
    assert [i for s in blocks for i in range(s.start, s.stop)] == list(range(n))
    assert all(0 < s.stop - s.start <= size for s in blocks)


def test_row_blocks_of_nothing():
    with pytest.raises(ValueError, match="at least one row, got size=0"):
        row_blocks(3, 0)


def test_the_registry(monkeypatch):
    monkeypatch.setattr(executors, "_REGISTERED", [])
    assert isinstance(executor_for(X), ThreadExecutor)
    register_executor(lambda rows: isinstance(rows, list), lambda rows: SerialExecutor())
    assert isinstance(executor_for([1, 2]), SerialExecutor)
    assert isinstance(executor_for(X), ThreadExecutor)
    newest = SerialExecutor()
    register_executor(lambda rows: True, lambda rows: newest)
    assert executor_for([1, 2]) is newest
