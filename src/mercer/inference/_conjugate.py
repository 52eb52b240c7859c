"""Preconditioned conjugate gradients on many right-hand sides at once.

(K + 1) a = b, in units of the noise (see `_products`), is where L*(a) of (BKM 79) has its minimum;
conjugate gradients go down on it (Gibbs and MacKay). With the same coefficients for the function,
f = K a, both sides of Theorem 2 are known at each step: r = b - (K + 1) a = b - f - a, so that
L + L* + |b|^2/2 = |r|^2/2, without another product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.inference._products import Products

__all__ = ["Coefficients", "Descent", "Progress", "descend", "gaps"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
#: Told of what has been done so far.
Progress = Callable[[str], None]

_OFTEN = 10  # steps after which it is told


# The coefficients of the steps of one right-hand side: of the descent, and of conjugation. They are
# what a Lanczos process with the same start has for its tridiagonal matrix. In pairs: an interrupt
# has both of a step, or none.
Coefficients = list[tuple[float, float]]


class Descent(NamedTuple):
    """Where conjugate gradients have ended.

    A : (n, k) the solutions
    R : (n, k) what their products lack of the right-hand sides
    coefficients : of each column
    iterations : how many products there were
    status : "converged"; "stopped" at the most that were allowed, or where rounding left no
        direction to go down; "interrupted"
    """

    A: Floats
    R: Floats
    coefficients: list[Coefficients]
    iterations: int
    status: str


def gaps(B: Floats, A: Floats, R: Floats) -> Floats:
    """Return the Gap (BKM 84) of each column, (k,), for solutions A with residuals R."""
    F = B - A - R  # K A
    upper = np.einsum("ij,ij->j", 0.5 * (A + F) - B, F)  # (BKM 78)
    excess = 0.5 * np.einsum("ij,ij->j", R, R)
    size = np.abs(upper) + np.abs(upper - excess)
    return np.where(excess > 0, np.minimum(2.0, 2.0 * excess / np.where(size > 0, size, 1.0)), 0.0)


def descend(
    products: Products,
    precondition: Callable[[Floats], Floats],
    B: Floats,
    enough: Callable[[Floats, Floats, Floats, Floats, NDArray[np.intp]], Flags],
    max_iter: int,
    keep: bool = False,
    progress: Progress | None = None,
) -> Descent:
    """Solve (K + 1) A = B.

    Parameters
    ----------
    products : Products
        Of K.
    precondition : function
        P^-1 times the columns of a matrix.
    B : (n, k) array
    enough : function
        Called with the right-hand sides, solutions, residuals and squares r'P^-1 r of the columns
        that go on, and their numbers; returns which of them are solved.
    max_iter : int
        The most steps.
    keep : bool
        Whether Ctrl-C ends the descent where it is, rather than being passed on.
    progress : function, optional
        Told of steps, now and then.
    """
    k = B.shape[1]
    found = Descent(np.zeros(B.shape), np.array(B), [[] for _ in range(k)], 0, "")
    going = np.flatnonzero(np.any(B != 0.0, axis=0))
    A, R = np.zeros((len(B), len(going))), np.ascontiguousarray(B[:, going])
    current = (going, A)
    broken, count, status = False, 0, "converged"
    try:
        Z = precondition(R)
        D, rho = Z.copy(), np.einsum("ij,ij->j", R, Z)
        while going.size:
            current = (going, A)
            if count == max_iter:
                status = "stopped"
                break
            product = products.times(D)
            product += D
            curvature = np.einsum("ij,ij->j", D, product)
            lost = ~((curvature > 0) & (rho > 0))  # rounding is all that is left
            step = np.where(lost, 0.0, rho / np.where(lost, 1.0, curvature))
            count += 1
            if progress is not None and count % _OFTEN == 0:
                progress(f"{count} steps, {going.size} of {k} columns to go")
            A += step * D
            R -= step * product
            Z = precondition(R)
            new = np.einsum("ij,ij->j", R, Z)
            conjugation = np.where(lost, 0.0, new / np.where(lost, 1.0, rho))
            for c, a, b, skip in zip(going, step, conjugation, lost, strict=True):
                if not skip:
                    found.coefficients[c].append((float(a), float(b)))
            rho = new
            solved = enough(B[:, going], A, R, rho, going)
            broken = broken or bool(np.any(lost & ~solved))
            done = solved | lost
            if np.any(done):
                found.A[:, going[done]], found.R[:, going[done]] = A[:, done], R[:, done]
                on = ~done
                going, A, R, Z, D = going[on], A[:, on], R[:, on], Z[:, on], D[:, on]
                rho, conjugation = rho[on], conjugation[on]
            D = np.ascontiguousarray(Z + conjugation * D)
    except KeyboardInterrupt:
        if not keep:
            raise
        status = "interrupted"
        # A step may be half done: what it has left is told by a product of its own.
        going, A = current
        found.A[:, going], found.R[:, going] = A, B[:, going] - products.times(A) - A
    else:
        found.A[:, going], found.R[:, going] = A, R
    if status == "converged" and broken:
        status = "stopped"
    return found._replace(iterations=count, status=status)
