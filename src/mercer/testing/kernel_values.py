"""Rules for the values of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mercer.kernels import RBF, Kernel
from mercer.testing.compare import close, expect, frozen, identical, lower, refused, slope
from mercer.testing.kernel_case import KernelCase, moves, numeric
from mercer.testing.rules import Rules

__all__ = ["VALUES"]

VALUES: Rules[KernelCase] = Rules()

# More rows than a tile has.
_LARGE = 300


def _mercer(case: KernelCase) -> str:
    return "" if case.kernel.is_mercer else "it is no Mercer kernel, and says so"


def _wants_numbers(case: KernelCase) -> str:
    return "" if case.kernel.is_numeric else "it takes any objects"


def _size(K: Any) -> float:
    return float(np.max(np.abs(K), initial=0.0))


@VALUES.add()
def rule_shapes(case: KernelCase) -> None:
    """k(X) is (n, n), k(X, Z) is (n, m) and diag (n,), all finite doubles, for any n and m."""
    k = case.kernel
    for X, Z in ((case.X, case.Z), (case.X[:1], case.Z), (case.X, case.Z[:1]), (case.X[:1],) * 2):
        n, m = len(X), len(Z)
        for what, value, shape in (
            ("k(X)", k(X), (n, n)),
            ("k(X, Z)", k(X, Z), (n, m)),
            ("diag(X)", k.diag(X), (n,)),
            ("gram_lower(X)", np.tril(k.gram_lower(X)), (n, n)),
            ("times(X, Z, V)", k.times(X, Z, np.ones((m, 2))), (n, 2)),
            ("gram_times(X, V)", k.gram_times(X, np.ones((n, 2))), (n, 2)),
        ):
            expect(value.shape == shape, f"{what} of shape {shape}", value)
            expect(value.dtype == np.float64, f"{what} of doubles", value.dtype)
            expect(np.all(np.isfinite(value)), f"{what} without NaN and infinity", value)


@VALUES.add()
def rule_symmetry(case: KernelCase) -> None:
    """k(X) is symmetric, and k(X, Z) is the transpose of k(Z, X)."""
    k = case.kernel
    K, KXZ = k(case.X), k(case.X, case.Z)
    identical("k(X) transposed", K.T, K)
    close("k(Z, X) transposed", k(case.Z, case.X).T, KXZ, 1e-10, 1e-12 * _size(KXZ))


@VALUES.add()
def rule_diagonal(case: KernelCase) -> None:
    """`diag(X)` is the diagonal of k(X)."""
    K = case.kernel(case.X)
    close("diag(X)", case.kernel.diag(case.X), np.diagonal(K), 1e-9, 1e-12 * _size(K))


@VALUES.add()
def rule_pairwise(case: KernelCase) -> None:
    """An entry depends on its two rows alone: k(X)[i, j] = k(X[i:i+1], X[j:j+1])."""
    k, X, Z = case.kernel, case.X, case.Z
    K, KXZ = k(X), k(X, Z)
    one = [[k(X[i : i + 1], X[j : j + 1])[0, 0] for j in range(len(X))] for i in range(len(X))]
    close("k(X)", K, np.array(one), 1e-9, 1e-11 * _size(K))
    one = [[k(X[i : i + 1], Z[j : j + 1])[0, 0] for j in range(len(Z))] for i in range(len(X))]
    close("k(X, Z)", KXZ, np.array(one), 1e-9, 1e-11 * _size(KXZ))


@VALUES.add()
def rule_tiles(case: KernelCase) -> None:
    """Matrices of more rows than a tile are made of the same entries, and so are pullbacks."""
    k, X, Z = case.kernel, case.X, case.Z
    rows = np.arange(_LARGE) % len(X)
    K, KXZ, size = k(X), k(X, Z), _size(k(X))
    large = X[rows]
    wanted = K[np.ix_(rows, rows)]
    close(f"k of {_LARGE} rows", k(large), wanted, 1e-9, 1e-11 * size)
    lower_half = np.tril(k.gram_lower(large))
    close(f"gram_lower of {_LARGE} rows", lower_half, np.tril(wanted), 1e-9, 1e-11 * size)
    close(f"k(X, Z) of {_LARGE} rows", k(large, Z), KXZ[rows], 1e-9, 1e-11 * _size(KXZ))
    # A row that stands in several places has the sum of their derivatives.
    G = case.cotangent(_LARGE, _LARGE)
    G = G + G.T
    add = np.eye(len(X))[rows]
    total = float(np.sum(np.abs(G * wanted)))
    close(
        f"pullback of {_LARGE} rows",
        k.pullback(large, None, lower(G), inputs=False).theta,
        k.pullback(X, None, add.T @ G @ add, inputs=False).theta,
        1e-7,
        1e-9 * total,
    )


@VALUES.add()
def rule_gram_lower(case: KernelCase) -> None:
    """`gram_lower` has the lower triangle of k(X), in Fortran order, in `out` if that is given."""
    K = case.kernel(case.X)
    n = len(K)
    out = np.full((n, n), np.nan, order="F")
    for what, given in (("gram_lower(X)", None), ("gram_lower(X, out)", out)):
        L = case.kernel.gram_lower(case.X, given)
        expect(L.flags.f_contiguous, f"{what} in Fortran order", L.strides)
        close(what, np.tril(L), np.tril(K), 1e-12, 1e-13 * _size(K))
        expect(given is None or L is given, "what was given as `out` to be returned", L)


@VALUES.add()
def rule_out(case: KernelCase) -> None:
    """k(X, Z, out=array) fills the array and returns it; one of another shape is refused."""
    for Z in (None, case.Z):
        K = case.kernel(case.X, Z)
        out = np.full(K.shape, np.nan)
        expect(case.kernel(case.X, Z, out=out) is out, "`out` to be returned", out)
        identical("`out`", out, K)
        wrong = np.empty((K.shape[0] + 1, K.shape[1]))
        refused("an `out` of the wrong shape", partial(case.kernel, case.X, Z, out=wrong))


@VALUES.add()
def rule_times(case: KernelCase) -> None:
    """times(X, Z, V) is k(X, Z) V."""
    K = case.kernel(case.X, case.Z)
    for outputs in (1, 3):
        V = case.cotangent(len(case.Z), outputs)
        size = float(np.max(np.abs(K) @ np.abs(V), initial=0.0))
        close("times(X, Z, V)", case.kernel.times(case.X, case.Z, V), K @ V, 1e-9, 1e-11 * size)


@VALUES.add()
def rule_gram_times(case: KernelCase) -> None:
    """gram_times(X, V) is k(X, X) V, and of the squares of k in the last column if asked."""
    K = case.kernel(case.X)
    for outputs in (1, 3):
        V = case.cotangent(len(case.X), outputs)
        for squared in (False, True):
            expected = K @ V
            if squared:
                expected[:, -1] = K**2 @ V[:, -1]
            size = float(np.max((np.abs(K) + K**2) @ np.abs(V), initial=0.0))
            found = case.kernel.gram_times(case.X, V, squared=squared)
            close(f"gram_times(X, V, squared={squared})", found, expected, 1e-9, 1e-11 * size)


@VALUES.add(_mercer)
def rule_positive_semidefinite(case: KernelCase) -> None:
    """Gram matrices have no negative eigenvalue, if `is_mercer` says so."""
    k = case.kernel
    steps = (0.0, 0.7, -0.7) if k.theta.size else (0.0,)
    for step in steps:
        moved = k.with_theta(k.theta + step) if step else k
        scales = (1.0, 0.1, 10.0) if not moves(case) else (1.0,)
        for scale in scales:
            values = np.linalg.eigvalsh(moved(case.many * scale if scale != 1.0 else case.many))
            largest = float(np.max(np.abs(values)))
            expect(
                values[0] >= -1e-9 * largest,
                f"no eigenvalue below 0 for {moved!r} (the largest is {largest:.6g})",
                float(values[0]),
            )


@VALUES.add()
def rule_flags(case: KernelCase) -> None:
    """`is_mercer`, `is_numeric` and `is_infinitely_divisible` are True or False."""
    for name in ("is_mercer", "is_numeric", "is_infinitely_divisible"):
        value = getattr(case.kernel, name)
        expect(isinstance(value, bool), f"{name} to be True or False", value)
    if case.kernel.is_infinitely_divisible:
        expect(case.kernel.is_mercer, "an infinitely divisible kernel to be a Mercer kernel", False)


@VALUES.add(numeric)
def rule_bounds_from_data(case: KernelCase) -> None:
    """`with_bounds_from` keeps the kernel but for its bounds, which hold its parameters."""
    k = case.kernel
    new = k.with_bounds_from(np.std(case.X, axis=0), 2.0)
    identical("theta with bounds from the data", new.theta, k.theta)
    inside = (new.bounds[:, 0] <= k.theta) & (k.theta <= new.bounds[:, 1])
    expect(np.all(inside), f"bounds around theta {k.theta}", new.bounds)
    identical("values with bounds from the data", case.values(new), case.values(k))


@VALUES.add()
def rule_results_are_fresh(case: KernelCase) -> None:
    """Writing into a result changes neither the kernel nor later results."""
    k = case.kernel
    calls: dict[str, Callable[[], Any]] = {
        "k(X)": lambda: k(case.X),
        "k(X, Z)": lambda: k(case.X, case.Z),
        "diag(X)": lambda: k.diag(case.X),
        "gram_lower(X)": lambda: np.tril(k.gram_lower(case.X)),
    }
    for what, call in calls.items():
        first = call()
        kept = first.copy()
        expect(first.flags.writeable, f"{what} to be an array of its own", "a read-only array")
        first[:] = -7.0
        identical(f"{what} the second time", call(), kept)


@VALUES.add()
def rule_rows_are_only_read(case: KernelCase) -> None:
    """Rows may stand in read-only memory, and give the same values there."""
    k = case.kernel
    X, Z = frozen(case.X), frozen(case.Z)
    G, g, V = (case.cotangent(*s) for s in ((len(X), len(Z)), (len(X),), (len(Z), 2)))
    calls: dict[str, Callable[[Any, Any], Any]] = {
        "k(X)": lambda X, Z: k(X),
        "k(X, Z)": lambda X, Z: k(X, Z),
        "diag(X)": lambda X, Z: k.diag(X),
        "gram_lower(X)": lambda X, Z: np.tril(k.gram_lower(X)),
        "times(X, Z, V)": lambda X, Z: k.times(X, Z, V),
        "gram_times(Z, V)": lambda X, Z: k.gram_times(Z, V),
        "pullback(X, Z, G)": lambda X, Z: k.pullback(X, Z, G, inputs=not moves(case)).theta,
        "pullback_diag(X, g)": lambda X, Z: k.pullback_diag(X, g, inputs=not moves(case)).theta,
    }
    for what, call in calls.items():
        identical(f"{what} of read-only rows", call(X, Z), call(case.X, case.Z))


@VALUES.add(_wants_numbers)
def rule_input_forms(case: KernelCase) -> None:
    """Lists, Fortran order and slices of larger arrays give the same values as arrays."""
    k, X = case.kernel, np.array(case.X)
    K = k(X, case.Z)
    for what, form in {
        "a list of lists": X.tolist(),
        "an array in Fortran order": np.asfortranarray(X),
        "every second row of an array": np.repeat(X, 2, axis=0)[::2],
    }.items():
        identical(f"k of {what}", k(form, case.Z), K)
    if np.array_equal(X, np.round(X)):
        identical("k of integers", k(X.astype(int), case.Z), K)


@VALUES.add()
def rule_no_rows(case: KernelCase) -> None:
    """No rows at all give matrices without rows."""
    k, none = case.kernel, case.X[:0]
    m = len(case.Z)
    for what, value, shape in (
        ("k(X[:0])", k(none), (0, 0)),
        ("k(X[:0], Z)", k(none, case.Z), (0, m)),
        ("k(Z, X[:0])", k(case.Z, none), (m, 0)),
        ("diag(X[:0])", k.diag(none), (0,)),
    ):
        expect(value.shape == shape, f"{what} of shape {shape}", value)


@VALUES.add(_wants_numbers)
def rule_bad_inputs(case: KernelCase) -> None:
    """NaN, infinity, one axis, or X and Z of different widths are refused, in words."""
    k, X = case.kernel, case.X
    for name, value in (("NaN", np.nan), ("infinity", np.inf)):
        bad = np.array(X)
        bad[1, 0] = value
        refused(f"X with {name}", partial(k, bad), "nan|infinity")
        refused(f"Z with {name}", partial(k, X, bad), "nan|infinity")
        refused(f"diag with {name}", partial(k.diag, bad), "nan|infinity")
    refused("X of one axis", lambda: k(X[:, 0]), "column|shape")
    refused("text", lambda: k([["a"] * X.shape[1]]), "number")
    wide = np.hstack([X, X])
    refused("Z of another width", lambda: k(X, wide), "column")


@VALUES.add()
def rule_composition(case: KernelCase) -> None:
    """Sums, products, multiples and powers with it have the values and slopes they should."""
    k, X, Z = case.kernel, case.X, case.Z
    K, D = k(X, Z), k.diag(X)
    made: dict[str, tuple[Any, Any, Any]] = {
        "2.5 * k": (2.5 * k, 2.5 * K, 2.5 * D),
        "k + 0.5": (k + 0.5, K + 0.5, D + 0.5),
        "k * k": (k * k, K * K, D * D),
        "k ** 2": (k**2, K**2, D**2),
    }
    if not numeric(case):
        other = RBF(1.3)
        made["k + RBF"] = k + other, K + other(X, Z), D + 1.0
        made["k * RBF"] = k * other, K * other(X, Z), D
        wide, wide_z = (np.hstack([np.zeros((len(A), 1)), A]) for A in (X, Z))
        on = k.on(range(1, wide.shape[1]))
        close("k.on(columns)", on(wide, wide_z), K, 1e-12, 1e-12 * _size(K))
    G, g = case.cotangent(len(X), len(Z)), case.cotangent(len(X))

    def along(k: Kernel, theta: Any) -> float:
        return float(np.sum(G * k.with_theta(theta)(X, Z)))

    def along_diagonal(k: Kernel, theta: Any) -> float:
        return float(np.sum(g * k.with_theta(theta).diag(X)))

    for what, (made_of, values, diagonal) in made.items():
        size = max(_size(values), _size(diagonal))
        close(what, made_of(X, Z), values, 1e-9, 1e-11 * size)
        close(f"diag of {what}", made_of.diag(X), diagonal, 1e-9, 1e-11 * size)
        wanted = slope(partial(along, made_of), made_of.theta)
        got = made_of.pullback(X, Z, G, inputs=False).theta
        close(f"pullback of {what}", got, wanted, 1e-5, 1e-7 * G.size * size)
        wanted = slope(partial(along_diagonal, made_of), made_of.theta)
        got = made_of.pullback_diag(X, g, inputs=False).theta
        close(f"pullback_diag of {what}", got, wanted, 1e-5, 1e-7 * g.size * size)
