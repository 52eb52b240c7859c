"""Parameters: values, transforms, bounds, hyperpriors, and flat vectors."""

from mercer.params.hyperpriors import (
    Flat,
    Gamma,
    HalfNormal,
    Hyperprior,
    InverseGamma,
    InverseHalfNormal,
    LogNormal,
)
from mercer.params.parameter import Parameter
from mercer.params.parametrised import Parametrised, positive

__all__ = [
    "Flat",
    "Gamma",
    "HalfNormal",
    "Hyperprior",
    "InverseGamma",
    "InverseHalfNormal",
    "LogNormal",
    "Parameter",
    "Parametrised",
    "positive",
]
