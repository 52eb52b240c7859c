"""The compiled recursion against its twin, step by step; both against what their arrays mean."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercer.linalg import _recursion_twins as twin
from mercer.linalg.recursion import Rules, recursion

from .recursion_cases import Stream, close, compiled, filled, sound

RULES = st.builds(
    Rules,
    max_basis=st.sampled_from([1, 4, 11]),
    criterion=st.sampled_from([0, 1]),
    novelty=st.sampled_from([0, 1]),
    tol=st.sampled_from([1e-3, 0.05]),
    floor=st.sampled_from([1e-3, 0.1]),
    keep=st.sampled_from([1.0, 0.9]),
)
STEPS = st.lists(
    st.sampled_from(["far", "far", "far", "near", "near", "remove", "cheapest", "forget"]),
    min_size=1,
    max_size=30,
)


def run(stream, steps, after):
    for step in steps:
        if step in ("far", "near"):
            stream.row(step == "near")
        elif step == "remove":
            stream.remove(int(stream.rng.integers(100)))
        elif step == "cheapest":
            stream.remove(stream.choose())
        elif stream.rules.keep < 1.0:
            stream.forget()
        after(stream)


@settings(max_examples=60, deadline=None)
@given(
    RULES, STEPS, st.sampled_from([(1, 1), (3, 1), (3, 3)]), st.integers(0, 2), st.integers(0, 999)
)
def test_compiled_is_the_twin_step_by_step(rules, steps, shape, features, seed):
    stream = Stream(features, *shape, rules, seed)
    run(stream, steps, lambda s: close(s.mine, s.other))


@settings(max_examples=60, deadline=None)
@given(
    RULES, STEPS, st.sampled_from([(1, 1), (3, 1), (3, 3)]), st.integers(0, 2), st.integers(0, 999)
)
def test_the_twin_keeps_what_its_arrays_mean(rules, steps, shape, features, seed):
    stream = Stream(features, *shape, rules, seed)
    stream.modules = (twin, twin)
    run(stream, steps, lambda s: sound(s.mine, precision=rules.keep == 1.0))


@pytest.mark.parametrize("criterion", [0, 1])
def test_scores_that_overflow_never_outgrow_the_basis(criterion):
    """Squares of alpha are infinite then, no score is less than another, and one point goes."""
    stream = Stream(0, 2, 2, Rules(3, criterion, 0, 1e-3, 1e-3, 1.0), 0)
    with np.errstate(over="ignore"):
        for i in range(12):
            stream.row(False, size=1.0 if i < 3 else 1e160)
            A, B = stream.mine, stream.other
            assert A.m == B.m == min(i + 1, 3)
            np.testing.assert_array_equal(A.source[: A.m], B.source[: A.m])
    assert np.max(np.abs(A.alpha)) > 1e155


def test_there_is_no_writing_past_the_room():
    A = filled(compiled, rows=8).mine
    A = type(A)(*(each.copy() for each in A))
    with pytest.raises(IndexError, match="no room"):
        for _ in range(20):
            A.k[: A.m] = A.e[: A.m] = 0.0
            compiled.learn(A, Rules(99, 0, 0, 0.0, 1e-3, 1.0), 1.0, 1.0, 0)
    assert A.m == len(A.K)


def test_the_compiled_has_every_function_of_the_twin():
    for name in twin.__all__:
        assert list(inspect.signature(getattr(compiled, name).py_func).parameters) == list(
            inspect.signature(getattr(twin, name)).parameters
        )
    assert recursion() is compiled
