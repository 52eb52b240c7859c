"""Choosing hyperparameters: the objective, its maximisation, and what to say of the optimum."""

from mercer.evidence.calibration import warn_if_miscalibrated
from mercer.evidence.diagnostics import (
    hessian,
    standard_errors,
    undetermined,
    warn_of_search,
)
from mercer.evidence.maximise import maximise
from mercer.evidence.objective import CRITERIA, Data, Objective
from mercer.evidence.optimum import Optimum

__all__ = [
    "CRITERIA",
    "Data",
    "Objective",
    "Optimum",
    "hessian",
    "maximise",
    "standard_errors",
    "undetermined",
    "warn_if_miscalibrated",
    "warn_of_search",
]
