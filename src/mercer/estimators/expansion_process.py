"""What kernel expansions share once they are fitted: a function, or several side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from mercer.estimators.process import FittedProcess
from mercer.estimators.state import StorableEstimator
from mercer.posterior import Posterior

__all__ = ["ExpansionProcess", "named_outputs", "single"]


class ExpansionProcess(StorableEstimator, FittedProcess):
    """Adds to an estimator the posteriors of its functions, one for each output or class.

    These have basis functions of their own, and share the kernel. It stands before other bases.
    """

    def _keep_posteriors(self, posteriors: list[Posterior]) -> None:
        """Keep the posterior, or those of several functions side by side."""
        for name in ("posterior_", "posteriors_"):
            self.__dict__.pop(name, None)
        if len(posteriors) == 1:
            self.posterior_ = posteriors[0]
        else:
            self.posteriors_ = posteriors

    def _absent(self, name: str) -> str | None:
        if name == "posterior_" and "posteriors_" in self.__dict__:
            return (
                "there is no posterior_ of several functions, which have basis functions of their "
                "own: posteriors_ is the list of them, one an output or a class"
            )
        return None


def single(parts: list[Any]) -> Any:
    """Return one thing as it is, and several as a list."""
    return parts[0] if len(parts) == 1 else parts


def named_outputs(numbers: Sequence[int], classes: NDArray[Any] | None) -> str:
    """Return what outputs are called: targets by their number, classes by their labels."""
    if classes is None:
        names, one, more = [str(p) for p in numbers], "target", "targets"
    else:
        labels = classes.tolist()  # which are shown as Python has them, not as NumPy
        names, one, more = [repr(labels[p]) for p in numbers], "class", "classes"
    return f"{one if len(names) == 1 else more} {', '.join(names)}"
