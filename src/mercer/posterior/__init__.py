"""Posteriors: predicting, sampling, pruning and saving, written once."""

from typing import TYPE_CHECKING

from mercer.lazily import lazily
from mercer.posterior.basis import Basis
from mercer.posterior.factors import Dense, Factor, InverseTriangular, RowBlock
from mercer.posterior.posterior import Posterior, prior
from mercer.posterior.precomputed import PrecomputedPredictive
from mercer.posterior.predictive import InputGradients, Predictive
from mercer.posterior.stacked import Stacked
from mercer.posterior.storage import load, save

if TYPE_CHECKING:
    from mercer.posterior._further_sections import FurtherSections
    from mercer.posterior._solved_rows import SolvedRows
    from mercer.posterior.augmented import AugmentedPredictive
    from mercer.posterior.augmented_expansion import AugmentedExpansion
    from mercer.posterior.blocks import BlockPredictive
    from mercer.posterior.committee import CommitteePredictive, joint_committee
    from mercer.posterior.independent import IndependentPredictive
    from mercer.posterior.nystrom import NystromPredictive
    from mercer.posterior.training_blocks import TrainingBlocks

__all__ = [
    "AugmentedExpansion",
    "AugmentedPredictive",
    "Basis",
    "BlockPredictive",
    "CommitteePredictive",
    "Dense",
    "Factor",
    "FurtherSections",
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

if not TYPE_CHECKING:  # exact models do not wait for what others predict with
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "AugmentedExpansion": "mercer.posterior.augmented_expansion",
            "AugmentedPredictive": "mercer.posterior.augmented",
            "BlockPredictive": "mercer.posterior.blocks",
            "CommitteePredictive": "mercer.posterior.committee",
            "FurtherSections": "mercer.posterior._further_sections",
            "IndependentPredictive": "mercer.posterior.independent",
            "joint_committee": "mercer.posterior.committee",
            "NystromPredictive": "mercer.posterior.nystrom",
            "SolvedRows": "mercer.posterior._solved_rows",
            "TrainingBlocks": "mercer.posterior.training_blocks",
        },
    )
