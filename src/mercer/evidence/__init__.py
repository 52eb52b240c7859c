"""Choosing hyperparameters: the objective, its maximisation, and what to say of the optimum."""

from mercer.evidence.diagnostics import (
    hessian,
    standard_errors,
    warn_at_bounds,
    warn_if_unrelated,
)
from mercer.evidence.maximise import Optimum, maximise
from mercer.evidence.objective import CRITERIA, Data, Objective

__all__ = [
    "CRITERIA",
    "Data",
    "Objective",
    "Optimum",
    "hessian",
    "maximise",
    "standard_errors",
    "warn_at_bounds",
    "warn_if_unrelated",
]
