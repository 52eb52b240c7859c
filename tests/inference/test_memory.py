"""Memory of matrices, kept by a thread."""

import numpy as np

from mercer.inference._memory import square_memory


def test_memory_is_lent_again_only_when_nothing_refers_to_it():
    first = square_memory(31)
    assert first.flags.f_contiguous and first.shape == (31, 31)
    row = first.T[3]
    address = first.ctypes.data
    del first
    assert square_memory(31).ctypes.data != address
    del row
    found = [square_memory(31), square_memory(31)]
    assert address in [a.ctypes.data for a in found]
    assert not np.shares_memory(*found)
