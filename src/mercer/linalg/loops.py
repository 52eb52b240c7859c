"""The choice between the compiled loops and their NumPy twins, made once, at first use.

Importing Numba costs more than importing scikit-learn, so nothing imports it before a kernel is
evaluated.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

from mercer.errors import FallbackWarning, warn

__all__ = ["PROFILES", "loops"]

#: The radial profiles that are compiled, in the order by which `value` and `weigh` know them.
PROFILES = ("rbf", "exponential", "matern32", "matern52", "rational")


@cache
def loops() -> ModuleType:
    """Return the module that holds the loops: compiled where Numba works, NumPy elsewhere."""
    try:
        from numba import config

        if config.DISABLE_JIT:
            raise ImportError("NUMBA_DISABLE_JIT is set")
        from mercer.linalg import _compiled
    except (ImportError, RuntimeError) as error:
        # Numba's RuntimeError: neither the package's folder nor the user's can hold its cache.
        cure = (
            "Install Numba to have them"
            if isinstance(error, ImportError)
            else "Set NUMBA_CACHE_DIR to a folder that can be written to"
        )
        warn(
            f"the compiled loops cannot be used ({error}); NumPy runs instead, several times "
            f"slower. {cure}.",
            FallbackWarning,
        )
        from mercer.linalg import _twins

        return _twins
    return _compiled
