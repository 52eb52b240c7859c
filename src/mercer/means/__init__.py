"""Mean functions of the process: what it returns to where there are no data."""

from mercer.means.affine import Affine
from mercer.means.base import Mean
from mercer.means.function import Function
from mercer.means.functions import Functions
from mercer.means.linear import Constant, Linear
from mercer.means.spec import from_spec
from mercer.means.zero import Zero

__all__ = ["Affine", "Constant", "Function", "Functions", "Linear", "Mean", "Zero", "from_spec"]
