"""Inference engines: arrays in; posterior, evidence and adjoints out."""

from mercer.inference._approximations import (
    APPROXIMATIONS,
    Approximation,
    approximation,
    table,
)
from mercer.inference._loo import LeftOut, leave_one_out, left_out, log_density, loo
from mercer.inference._problem import LatentAdjoints, LatentLeftOut, LatentProblem

__all__ = [
    "APPROXIMATIONS",
    "Approximation",
    "LatentAdjoints",
    "LatentLeftOut",
    "LatentProblem",
    "LeftOut",
    "approximation",
    "leave_one_out",
    "left_out",
    "log_density",
    "loo",
    "table",
]
