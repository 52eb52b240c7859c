"""Posteriors: predicting, sampling, pruning and saving, written once."""

from mercer.posterior.basis import Basis
from mercer.posterior.factors import Dense, Factor, InverseTriangular, RowBlock
from mercer.posterior.posterior import Posterior, prior
from mercer.posterior.precomputed import PrecomputedPredictive
from mercer.posterior.predictive import InputGradients, Predictive
from mercer.posterior.stacked import Stacked
from mercer.posterior.storage import load, save

__all__ = [
    "Basis",
    "Dense",
    "Factor",
    "InputGradients",
    "InverseTriangular",
    "Posterior",
    "PrecomputedPredictive",
    "Predictive",
    "RowBlock",
    "Stacked",
    "load",
    "prior",
    "save",
]
