"""Posteriors: predicting, sampling, pruning and saving, written once."""

from mercer.posterior._solved_rows import SolvedRows
from mercer.posterior.augmented import AugmentedPredictive
from mercer.posterior.basis import Basis
from mercer.posterior.blocks import BlockPredictive
from mercer.posterior.committee import CommitteePredictive, joint_committee
from mercer.posterior.factors import Dense, Factor, InverseTriangular, RowBlock
from mercer.posterior.independent import IndependentPredictive
from mercer.posterior.nystrom import NystromPredictive
from mercer.posterior.posterior import Posterior, prior
from mercer.posterior.precomputed import PrecomputedPredictive
from mercer.posterior.predictive import InputGradients, Predictive
from mercer.posterior.stacked import Stacked
from mercer.posterior.storage import load, save
from mercer.posterior.training_blocks import TrainingBlocks

__all__ = [
    "AugmentedPredictive",
    "Basis",
    "BlockPredictive",
    "CommitteePredictive",
    "Dense",
    "Factor",
    "IndependentPredictive",
    "InputGradients",
    "InverseTriangular",
    "NystromPredictive",
    "Posterior",
    "PrecomputedPredictive",
    "Predictive",
    "RowBlock",
    "SolvedRows",
    "Stacked",
    "TrainingBlocks",
    "joint_committee",
    "load",
    "prior",
    "save",
]
