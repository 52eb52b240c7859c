"""Choosing hyperparameters: the objective, its maximisation, and what to say of the optimum."""

from mercer.evidence.coordinate import ascend
from mercer.evidence.diagnostics import (
    hessian,
    standard_errors,
    undetermined,
    warn_of_search,
)
from mercer.evidence.engines import ENGINES, best_engine, engines_that_take, require_pair
from mercer.evidence.latent import LatentData, LatentObjective
from mercer.evidence.maximise import maximise
from mercer.evidence.objective import CRITERIA, Data, Objective
from mercer.evidence.optimum import Optimum

__all__ = [
    "CRITERIA",
    "ENGINES",
    "Data",
    "LatentData",
    "LatentObjective",
    "Objective",
    "Optimum",
    "ascend",
    "best_engine",
    "engines_that_take",
    "hessian",
    "maximise",
    "require_pair",
    "standard_errors",
    "undetermined",
    "warn_of_search",
]
