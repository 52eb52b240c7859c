"""Every metric shows how it is used; the examples are run with those of all modules."""

from __future__ import annotations

import mercer.metrics


def test_every_public_function_has_an_example():
    for name in mercer.metrics.__all__:
        thing = getattr(mercer.metrics, name)
        if not isinstance(thing, (mercer.metrics.Scorer, type)):
            assert ">>> " in thing.__doc__, name
