"""The scikit-learn surface."""

from typing import TYPE_CHECKING

from mercer.estimators.gp_regressor import GPRegressor
from mercer.estimators.iterative_options import Iterative
from mercer.estimators.regressor import InputGradient
from mercer.estimators.regressor_evidence import LeaveOneOut
from mercer.lazily import lazily

if TYPE_CHECKING:
    from mercer.estimators.certified import certificate
    from mercer.estimators.class_evidence import LeftOutClasses
    from mercer.estimators.committee import BayesianCommitteeRegressor
    from mercer.estimators.gp_classifier import GPClassifier
    from mercer.estimators.laplacian_classifier import LaplacianProcessClassifier
    from mercer.estimators.laplacian_regressor import LaplacianProcessRegressor
    from mercer.estimators.online_classifier import OnlineGPClassifier, PrequentialClasses
    from mercer.estimators.online_regressor import OnlineGPRegressor, Prequential
    from mercer.estimators.relevance_classifier import RelevanceVectorClassifier
    from mercer.estimators.relevance_regressor import RelevanceVectorRegressor
    from mercer.estimators.sparse_classifier import SparseGPClassifier
    from mercer.estimators.sparse_greedy import SparseGreedyGPRegressor
    from mercer.estimators.sparse_regressor import SparseGPRegressor
    from mercer.estimators.transductive import TransductiveGPClassifier

__all__ = [
    "BayesianCommitteeRegressor",
    "GPClassifier",
    "GPRegressor",
    "InputGradient",
    "Iterative",
    "LaplacianProcessClassifier",
    "LaplacianProcessRegressor",
    "LeaveOneOut",
    "LeftOutClasses",
    "OnlineGPClassifier",
    "OnlineGPRegressor",
    "Prequential",
    "PrequentialClasses",
    "RelevanceVectorClassifier",
    "RelevanceVectorRegressor",
    "SparseGPClassifier",
    "SparseGPRegressor",
    "SparseGreedyGPRegressor",
    "TransductiveGPClassifier",
    "certificate",
]

if not TYPE_CHECKING:  # a regression does not wait for what it has no use for
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "BayesianCommitteeRegressor": "mercer.estimators.committee",
            "GPClassifier": "mercer.estimators.gp_classifier",
            "LaplacianProcessClassifier": "mercer.estimators.laplacian_classifier",
            "LaplacianProcessRegressor": "mercer.estimators.laplacian_regressor",
            "LeftOutClasses": "mercer.estimators.class_evidence",
            "OnlineGPClassifier": "mercer.estimators.online_classifier",
            "OnlineGPRegressor": "mercer.estimators.online_regressor",
            "Prequential": "mercer.estimators.online_regressor",
            "PrequentialClasses": "mercer.estimators.online_classifier",
            "RelevanceVectorClassifier": "mercer.estimators.relevance_classifier",
            "RelevanceVectorRegressor": "mercer.estimators.relevance_regressor",
            "SparseGPClassifier": "mercer.estimators.sparse_classifier",
            "SparseGPRegressor": "mercer.estimators.sparse_regressor",
            "SparseGreedyGPRegressor": "mercer.estimators.sparse_greedy",
            "TransductiveGPClassifier": "mercer.estimators.transductive",
            "certificate": "mercer.estimators.certified",
        },
    )
