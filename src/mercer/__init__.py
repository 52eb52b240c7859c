"""Mercer: Bayesian kernel machines behind scikit-learn estimators."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mercer.lazily import lazily

if TYPE_CHECKING:
    from mercer.estimators import (
        BayesianCommitteeRegressor,
        GPClassifier,
        GPRegressor,
        Iterative,
        LaplacianProcessClassifier,
        LaplacianProcessRegressor,
        OnlineGPClassifier,
        OnlineGPRegressor,
        RelevanceVectorClassifier,
        RelevanceVectorRegressor,
        SparseGPClassifier,
        SparseGPRegressor,
        SparseGreedyGPRegressor,
        TransductiveGPClassifier,
        certificate,
    )
    from mercer.posterior import Posterior, load, save
    from mercer.versions import show_versions

__version__ = "0.1.0.dev0"

__all__ = [
    "BayesianCommitteeRegressor",
    "GPClassifier",
    "GPRegressor",
    "Iterative",
    "LaplacianProcessClassifier",
    "LaplacianProcessRegressor",
    "OnlineGPClassifier",
    "OnlineGPRegressor",
    "Posterior",
    "RelevanceVectorClassifier",
    "RelevanceVectorRegressor",
    "SparseGPClassifier",
    "SparseGPRegressor",
    "SparseGreedyGPRegressor",
    "TransductiveGPClassifier",
    "__version__",
    "certificate",
    "load",
    "save",
    "show_versions",
]

_named, _ = lazily(
    __name__,
    {
        "BayesianCommitteeRegressor": "mercer.estimators",
        "GPClassifier": "mercer.estimators",
        "GPRegressor": "mercer.estimators",
        "Iterative": "mercer.estimators",
        "LaplacianProcessClassifier": "mercer.estimators",
        "LaplacianProcessRegressor": "mercer.estimators",
        "OnlineGPClassifier": "mercer.estimators",
        "OnlineGPRegressor": "mercer.estimators",
        "Posterior": "mercer.posterior",
        "RelevanceVectorClassifier": "mercer.estimators",
        "RelevanceVectorRegressor": "mercer.estimators",
        "SparseGPClassifier": "mercer.estimators",
        "SparseGPRegressor": "mercer.estimators",
        "SparseGreedyGPRegressor": "mercer.estimators",
        "TransductiveGPClassifier": "mercer.estimators",
        "certificate": "mercer.estimators",
        "load": "mercer.posterior",
        "save": "mercer.posterior",
        "show_versions": "mercer.versions",
    },
)
_PACKAGES = (
    "compat",
    "compute",
    "datasets",
    "errors",
    "estimators",
    "evidence",
    "experiments",
    "inference",
    "kernels",
    "likelihoods",
    "means",
    "metrics",
    "params",
    "plotting",
    "posterior",
    "priors",
    "selection",
    "testing",
)


def __getattr__(name: str) -> Any:
    # On first use: the command line answers --help before scikit-learn is loaded.
    if name in _PACKAGES:
        return import_module(f"mercer.{name}")
    return _named(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES})
