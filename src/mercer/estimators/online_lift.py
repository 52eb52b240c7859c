"""Degenerate posteriors that are gone on with under a full kernel: which one."""

from __future__ import annotations

from typing import Any

from mercer.errors import MercerWarning, warn
from mercer.estimators.options import is_flag
from mercer.inference._online_takeover import likeliest_factor
from mercer.posterior import Posterior

__all__ = ["factor_of", "require_lift"]

# A kernel whose likeliest multiple is so many times more or less than it is does not suit. Of one
# that does it is 1 but for chance, which is half of that where three points tell of it.
_UNLIKE = 4.0


def require_lift(lift: Any) -> None:
    """Raise ValueError unless it is said whether, and how, a posterior is to be lifted."""
    if not is_flag(lift) and lift != "scaled":
        raise ValueError(f"lift must be True, False or 'scaled', got {lift!r}")


def factor_of(lift: bool | str, posterior: Posterior) -> bool | float:
    """Return by what the kernel is multiplied to lift a posterior, False if it is not lifted."""
    if not lift or posterior.weight or not posterior.kernel.is_mercer:
        return bool(lift)
    likeliest = likeliest_factor(posterior)
    if lift == "scaled":
        return likeliest
    if not 1.0 / _UNLIKE < likeliest < _UNLIKE:
        error = "narrow" if likeliest > 1.0 else "wide"
        warn(
            f"lift=True goes on under {posterior.kernel!r}, and the function is likeliest under "
            f"{likeliest:.3g} times that: error bars away from its basis are too {error}. Kernels "
            "of relevance vectors and Laplacian processes have no say in how large functions are: "
            "lift='scaled' multiplies them by that",
            MercerWarning,
        )
    return True
