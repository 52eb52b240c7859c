"""Holding a kernel to its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mercer.kernels import Kernel
from mercer.testing.kernel_case import kernel_case
from mercer.testing.kernel_gradients import GRADIENTS
from mercer.testing.kernel_values import VALUES
from mercer.testing.parametrised import PARAMETRISED, subject_of
from mercer.testing.rules import BoundRule, Report, Rule, bind, run

__all__ = ["check_kernel", "kernel_rules"]

_RULES: list[Rule[Any]] = [*VALUES, *GRADIENTS, *PARAMETRISED]


def check_kernel(
    kernel: Kernel,
    X: Any = None,
    Z: Any = None,
    *,
    inputs: bool = True,
    objects: dict[str, Callable[..., Any]] | None = None,
    only: Iterable[str] | None = None,
) -> Report:
    """Hold a kernel to all rules of its interface.

    Parameters
    ----------
    kernel : Kernel
        The kernel, best with parameters that are not all 1.
    X, Z : inputs, optional
        Two sets of rows to try it on; normal random numbers without them. Without Z, X is split.
        A kernel over other objects than rows of numbers must be given them.
    inputs : bool, default True
        Whether the rows can be moved a little, so that there are derivatives in them to check.
    objects : dict, optional
        Functions by name, for a kernel that is saved with some; found by themselves in most.
    only : names of rules, optional
        The rules to check, instead of all.

    Returns
    -------
    Report
        The rules that hold, and those that do not apply.

    Raises
    ------
    ConformanceError
        If any rule is broken. The message names each, with what was expected and what came.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> from mercer.testing import check_kernel
    >>> report = check_kernel(1.3 * RBF([0.7, 2.0]))
    >>> report.left_out
    {}
    """
    case = kernel_case(kernel, X, Z, inputs, objects)
    return run(subject_of(kernel), _RULES, case, only)


def kernel_rules(
    kernel: Kernel,
    X: Any = None,
    Z: Any = None,
    *,
    inputs: bool = True,
    objects: dict[str, Callable[..., Any]] | None = None,
) -> list[BoundRule]:
    """Return the rules that apply to a kernel, each to be called: one test a rule.

    The arguments are those of :func:`check_kernel`. With pytest::

        @pytest.mark.parametrize("rule", kernel_rules(MyKernel()), ids=str)
        def test_my_kernel(rule):
            rule()
    """
    case = kernel_case(kernel, X, Z, inputs, objects)
    return bind(subject_of(kernel), _RULES, case)
