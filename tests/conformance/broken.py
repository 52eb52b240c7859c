"""Kernels, likelihoods, means, engines and estimators with one defect each.

`test_broken.py` wants the helpers of `mercer.testing` to name the rule that each of them breaks,
and one of them for every rule.
"""

from __future__ import annotations

from .broken_classifiers import CLASSIFIERS
from .broken_engines import ENGINES, MEANS
from .broken_estimators import ESTIMATORS
from .broken_kernels import KERNELS
from .broken_likelihoods import LIKELIHOODS
from .broken_noise import NOISE, SOUND

__all__ = [
    "CLASSIFIERS",
    "ENGINES",
    "ESTIMATORS",
    "KERNELS",
    "LIKELIHOODS",
    "MEANS",
    "NOISE",
    "SOUND",
]
