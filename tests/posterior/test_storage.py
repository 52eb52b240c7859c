"""Files: what comes back is what was saved, and nothing else ever comes back."""

from __future__ import annotations

import os
import stat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from mercer.errors import StorageError
from mercer.kernels import RBF
from mercer.means import Function
from mercer.posterior import Basis, InverseTriangular, Posterior, load, save

# --- round trips ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["exact", "linear", "coupled", "degenerate", "pruned"])
def test_predictions_come_back_bit_for_bit(kind, tmp_path, naive):
    case = {
        "exact": lambda: naive.Exact(1, scale=[3.0]),
        "linear": lambda: naive.Exact(1, P=2, linear=True),
        "coupled": lambda: naive.Coupled(1),
        "degenerate": lambda: naive.Degenerate(1),
        "pruned": lambda: naive.Exact(1, P=2, linear=True),
    }[kind]()
    p = case.posterior.prune(3)[0] if kind == "pruned" else case.posterior
    path = tmp_path / "posterior"
    p.save(path)
    q = load(path)
    assert type(q) is Posterior
    assert q.kernel == p.kernel and q.weight == p.weight and q.is_coupled == p.is_coupled
    for method in ("mean", "var", "cov"):
        assert_array_equal(getattr(q, method)(case.Xs), getattr(p, method)(case.Xs))
    assert_array_equal(q.sample(case.Xs, 2, 0), p.sample(case.Xs, 2, 0))
    for a, b in zip(q.gradients(case.Xs), p.gradients(case.Xs), strict=True):
        assert_array_equal(a, b)


def test_the_same_object_makes_the_same_bytes(tmp_path, naive):
    p = naive.Exact(1).posterior
    for name in "ab":
        p.save(tmp_path / name)
    load(tmp_path / "a").save(tmp_path / "c")
    contents = {(tmp_path / name).read_bytes() for name in "abc"}
    assert len(contents) == 1


def test_memory_beside_the_triangle_is_not_written(tmp_path):
    L = np.asfortranarray(np.array([[2.0, 123456.789], [0.5, 1.0]]))
    Posterior(Basis(RBF(1.0), [[0.0], [1.0]]), [[1.0], [2.0]], InverseTriangular(L)).save(
        tmp_path / "p"
    )
    assert np.float64(123456.789).tobytes() not in (tmp_path / "p").read_bytes()


@settings(max_examples=40, deadline=None)
@given(
    value=st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False)
        | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3)
        ),
        max_leaves=8,
    )
)
def test_plain_values(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("values") / "v"
    save(value, path)
    assert load(path) == value


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(6.0).reshape(2, 3),
        np.arange(12.0).reshape(3, 4)[::2, ::-1],
        np.array(3.5),
        np.empty((0, 3)),
        np.array(["a", "bcd"]),
        np.array([True, False]),
        np.array([1, 2], dtype=np.int8),
        np.array([1 + 2j]),
        np.array([np.nan, np.inf, -0.0]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.array([1.0, 2.0], dtype=">f8"),
    ],
)
def test_arrays(array, tmp_path):
    save({"x": array}, tmp_path / "a")
    back = load(tmp_path / "a")["x"]
    assert back.dtype == array.dtype and back.shape == array.shape
    assert_array_equal(back, array)
    assert back.flags.writeable and back.flags.aligned
    if array.flags.f_contiguous:
        assert back.flags.f_contiguous


def bump(X):
    return np.sin(np.asarray(X)[:, 0])


def test_functions_are_given_back_by_name(tmp_path, naive):
    p = naive.Exact(0).posterior.replace(mean=Function(bump))
    p.save(tmp_path / "p")
    X = np.ones((2, 2))
    assert_array_equal(load(tmp_path / "p", objects={"bump": bump}).mean(X), p.mean(X))
    with pytest.raises(StorageError, match="'bump'"):
        load(tmp_path / "p")


# --- writing ----------------------------------------------------------------------------------


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "v"
    save([1], path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="cannot be saved"):
        save([object()], path)

    def fail(_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save([2], path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["v"]
    save([3], path)
    assert load(path) == [3]


def test_permissions_follow_the_umask_and_links_are_followed(tmp_path):
    old = os.umask(0o022)
    try:
        save(1, tmp_path / "real")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o644
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save(2, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "real") == 2


# --- hostile files ----------------------------------------------------------------------------
