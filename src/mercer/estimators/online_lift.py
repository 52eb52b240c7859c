"""Degenerate posteriors that are gone on with under a full kernel: which one."""

from __future__ import annotations

from typing import Any

from mercer.errors import MercerWarning, warn
from mercer.estimators.options import is_flag
from mercer.inference._online_takeover import likeliest_factor
from mercer.posterior import Posterior

__all__ = ["factor_of", "require_lift"]

# A kernel whose likeliest multiple is so many times more or less than it is does not suit, if there
# are so many points to tell it by: of one that suits it is 1 but for chance, 0.6 at five points.
# Fewer tell of error bars that are too narrow alone, and by the square of that.
_UNLIKE, _FEW = 4.0, 5


def require_lift(lift: Any) -> None:
    """Raise ValueError unless it is said whether, and how, a posterior is to be lifted."""
    if not is_flag(lift) and lift != "scaled":
        raise ValueError(f"lift must be True, False or 'scaled', got {lift!r}")


def factor_of(lift: bool | str, posterior: Posterior) -> float:
    """Return by what the kernel is multiplied to lift a posterior, 0 if it is not lifted."""
    if not lift or posterior.weight or not posterior.kernel.is_mercer:
        return float(bool(lift))
    if not posterior.n_basis:
        warn(
            "no section of the kernel is in use, so that nothing tells how large functions are: it "
            f"goes on under {posterior.kernel!r} as it is. Begin with a kernel of the right size "
            "instead, or let the rows choose it",
            MercerWarning,
        )
        return 1.0
    likeliest = likeliest_factor(posterior)
    if lift == "scaled":
        if posterior.n_basis < _FEW:
            warn(
                f"fewer than {_FEW} points are all that lift='scaled' goes by, and tell little of "
                f"how large the function is: {posterior.kernel!r} is multiplied by "
                f"{likeliest:.3g}. If it is to be otherwise elsewhere, begin with a kernel of the "
                "right size, or let the rows choose it",
                MercerWarning,
            )
        return likeliest
    low, high = 1.0 / _UNLIKE, _UNLIKE
    if posterior.n_basis < _FEW:
        low, high = 0.0, _UNLIKE**2
    if not low <= likeliest <= high:
        error = "narrow" if likeliest > 1.0 else "wide"
        warn(
            f"lift=True goes on under {posterior.kernel!r}, and the function is likeliest under "
            f"{likeliest:.3g} times that: error bars away from its basis are too {error}. Kernels "
            "of relevance vectors and Laplacian processes have no say in how large functions are: "
            "lift='scaled' multiplies them by that; give max_basis=100 or so with it, for there is "
            f"room for these {posterior.n_basis} points alone without",
            MercerWarning,
        )
    return 1.0
