"""UV Table 1, as the code has it."""

from __future__ import annotations

from mercer.inference import table
from mercer.inference._approximations import APPROXIMATIONS


def test_which_approximations_are_gaussian_processes():
    """Those whose rows and new points are treated alike (UV Table 1): not PIC, which has blocks."""
    assert [name for name, each in APPROXIMATIONS.items() if each.is_process] == ["sor"]
    rows = [line.split() for line in table().splitlines()[1:]]
    assert [row[0] for row in rows] == [*APPROXIMATIONS, "fic"]
    assert [row[0] for row in rows if row[-1] == "x"] == ["sor", "fic"]
