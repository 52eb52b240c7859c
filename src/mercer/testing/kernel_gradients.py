"""Rules for the pullbacks of a kernel, held against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.testing.compare import close, expect, frozen, identical, lower, refused, slope
from mercer.testing.kernel_case import KernelCase, moves
from mercer.testing.rules import Rules

__all__ = ["GRADIENTS"]

Floats = NDArray[np.float64]

GRADIENTS: Rules[KernelCase] = Rules()

# A factor, a sign or a term that is wrong shows at once; differences are good to 1e-8 or so.
_RTOL = 1e-5


def _has_theta(case: KernelCase) -> str:
    return "" if case.kernel.theta.size else "it has no free parameters"


def _near(what: str, got: Any, function: Callable[[Floats], Any], at: Any, size: float) -> None:
    """Compare a derivative with differences of sums whose terms add up to `size`."""
    close(what, got, slope(function, at), _RTOL, 1e-7 * size)


def _symmetric(case: KernelCase, n: int) -> Floats:
    G = case.cotangent(n, n)
    return G + G.T


@GRADIENTS.add(_has_theta)
def rule_pullback_parameters(case: KernelCase) -> None:
    """`pullback(X, Z, G).theta` is the derivative of sum(G * k(X, Z)) in theta."""
    k, X, Z = case.kernel, case.X, case.Z
    G = case.cotangent(len(X), len(Z))
    size = float(np.sum(np.abs(G * k(X, Z))))
    got = k.pullback(X, Z, G, inputs=False).theta
    _near("dL/dtheta", got, lambda t: np.sum(G * k.with_theta(t)(X, Z)), k.theta, size)


@GRADIENTS.add(_has_theta)
def rule_pullback_parameters_of_one_set(case: KernelCase) -> None:
    """`pullback(X, None, G).theta` is that of sum(G * k(X)), from the lower triangle of G alone."""
    k, X = case.kernel, case.X
    G = _symmetric(case, len(X))
    size = float(np.sum(np.abs(G * k(X))))
    got = k.pullback(X, None, lower(G), inputs=False).theta
    _near("dL/dtheta", got, lambda t: np.sum(G * k.with_theta(t)(X)), k.theta, size)


@GRADIENTS.add(_has_theta)
def rule_pullback_diag_parameters(case: KernelCase) -> None:
    """`pullback_diag(X, g).theta` is the derivative of sum(g * diag(X)) in theta."""
    k, X = case.kernel, case.X
    g = case.cotangent(len(X))
    size = float(np.sum(np.abs(g * k.diag(X))))
    got = k.pullback_diag(X, g, inputs=False).theta
    _near("dL/dtheta", got, lambda t: np.sum(g * k.with_theta(t).diag(X)), k.theta, size)


@GRADIENTS.add(moves)
def rule_pullback_inputs(case: KernelCase) -> None:
    """`pullback(X, Z, G)` has the derivatives of sum(G * k(X, Z)) in X and in Z."""
    k, X, Z = case.kernel, case.X, case.Z
    G = case.cotangent(len(X), len(Z))
    size = float(np.sum(np.abs(G * k(X, Z))))
    got = k.pullback(X, Z, G)
    _near("dL/dX", got.X, lambda A: np.sum(G * k(A, Z)), X, size)
    _near("dL/dZ", got.Z, lambda B: np.sum(G * k(X, B)), Z, size)


@GRADIENTS.add(moves)
def rule_pullback_inputs_of_one_set(case: KernelCase) -> None:
    """`pullback(X, None, G).X` is the derivative of sum(G * k(X)), X as rows and as columns."""
    k, X = case.kernel, case.X
    G = _symmetric(case, len(X))
    size = float(np.sum(np.abs(G * k(X))))
    got = k.pullback(X, None, lower(G))
    _near("dL/dX", got.X, lambda A: np.sum(G * k(A)), X, size)
    expect(got.Z is None, "no dL/dZ where there is no Z", got.Z)


@GRADIENTS.add(moves)
def rule_pullback_diag_inputs(case: KernelCase) -> None:
    """`pullback_diag(X, g).X` is the derivative of sum(g * diag(X)) in X."""
    k, X = case.kernel, case.X
    g = case.cotangent(len(X))
    size = float(np.sum(np.abs(g * k.diag(X))))
    got = k.pullback_diag(X, g)
    _near("dL/dX", got.X, lambda A: np.sum(g * k.diag(A)), X, size)
    expect(got.Z is None, "no dL/dZ of a diagonal", got.Z)


@GRADIENTS.add()
def rule_coincident_points(case: KernelCase) -> None:
    """Where rows coincide derivatives are finite, and those that central differences give."""
    k, X = case.kernel, case.repeated
    G = _symmetric(case, len(X))
    size = float(np.sum(np.abs(G * k(X))))
    moving = not moves(case)
    for what, got in (
        ("pullback(X, None, G)", k.pullback(X, None, lower(G), inputs=moving)),
        ("pullback(X, X, G)", k.pullback(X, X.copy(), G, inputs=moving)),
    ):
        for part in got:
            expect(part is None or np.all(np.isfinite(part)), f"a finite {what}", part)
        wanted = slope(lambda t: np.sum(G * k.with_theta(t)(X)), k.theta)
        close(f"dL/dtheta of {what}", got.theta, wanted, 1e-4, 1e-6 * size)
    if moving:
        # Differences across a tip, such as the exponential kernel's, err by their step.
        got = k.pullback(X, None, lower(G))
        wanted = slope(lambda A: np.sum(G * k(A)), X)
        close("dL/dX", got.X, wanted, 1e-3, 1e-4 * size)


@GRADIENTS.add()
def rule_pullback_without_inputs(case: KernelCase) -> None:
    """With `inputs=False` there are no derivatives in X and Z, and the same ones in theta."""
    k, X, Z = case.kernel, case.X, case.Z
    G, g = case.cotangent(len(X), len(Z)), case.cotangent(len(X))
    calls: dict[str, Callable[[bool], Any]] = {
        "pullback(X, Z, G)": lambda inputs: k.pullback(X, Z, G, inputs=inputs),
        "pullback(X, None, G)": lambda inputs: k.pullback(X, None, k(X), inputs=inputs),
        "pullback_diag(X, g)": lambda inputs: k.pullback_diag(X, g, inputs=inputs),
    }
    for what, call in calls.items():
        bare = call(False)
        expect(bare.X is None and bare.Z is None, f"{what} without inputs to have none", bare)
        expect(bare.theta.shape == k.theta.shape, f"dL/dtheta of shape {k.theta.shape}", bare)
        if not moves(case):
            close(f"theta of {what}", bare.theta, call(True).theta, 1e-9, 1e-12)


@GRADIENTS.add()
def rule_cotangent_is_kept(case: KernelCase) -> None:
    """A pullback does not write into G, and takes it in any order of memory."""
    k, X, Z = case.kernel, case.X, case.Z
    G = case.cotangent(len(X), len(Z))
    kept = G.copy()
    inputs = not moves(case)
    got = k.pullback(X, Z, G, inputs=inputs)
    identical("G after pullback", G, kept)
    other = k.pullback(X, Z, frozen(np.asfortranarray(G)), inputs=inputs)
    close("theta for a G in Fortran order", other.theta, got.theta, 1e-9, 1e-12)
    A, B = np.array(X), np.array(Z)
    k._block_pullback(A, B, G, inputs)
    identical("G after _block_pullback", G, kept)
    g = G[:, 0].copy()
    k._diag_pullback(A, g, inputs)
    identical("g after _diag_pullback", g, kept[:, 0])


@GRADIENTS.add()
def rule_bad_cotangents(case: KernelCase) -> None:
    """A G or g of the wrong shape is refused."""
    k, X, Z = case.kernel, case.X, case.Z
    n, m = len(X), len(Z)
    refused("a G of the wrong shape", lambda: k.pullback(X, Z, np.ones((m, n + 1))), "shape")
    refused("a g of the wrong shape", lambda: k.pullback_diag(X, np.ones(n + 1)), "shape")
