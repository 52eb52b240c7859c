"""Every kernel shows how it is used; the examples are run with those of all modules."""

from __future__ import annotations

import mercer.kernels


def test_every_public_kernel_but_the_composites_has_an_example():
    composites = {"On", "Power", "Product", "Scaled", "Sum"}
    protocol = {"BlockGradient", "Kernel", "KernelGradient"}
    for name in set(mercer.kernels.__all__) - composites - protocol:
        assert ">>> " in getattr(mercer.kernels, name).__doc__, name
