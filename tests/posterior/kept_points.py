"""Which points pruning has kept."""

from __future__ import annotations

import numpy as np


def where(pruned, case):
    """Which of the case's points were kept."""
    rows = [np.flatnonzero((case.X == b).all(axis=1)) for b in pruned.basis.points]
    return sorted(int(r[0]) for r in rows)
