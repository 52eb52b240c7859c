"""Likelihoods: how an observation y comes from the latent function's value f."""

from typing import TYPE_CHECKING

from mercer.lazily import lazily
from mercer.likelihoods.absolute import EpsilonInsensitive, Laplace
from mercer.likelihoods.base import Likelihood
from mercer.likelihoods.gaussian import Gaussian
from mercer.likelihoods.huber import Huber
from mercer.likelihoods.logistic import Logistic
from mercer.likelihoods.softmax import Softmax

if TYPE_CHECKING:
    from mercer.likelihoods.custom import Custom
    from mercer.likelihoods.mixture import MixtureNoise
    from mercer.likelihoods.poisson import Poisson
    from mercer.likelihoods.probit import Probit
    from mercer.likelihoods.soft_labels import SoftLabels
    from mercer.likelihoods.student import StudentT

__all__ = [
    "Custom",
    "EpsilonInsensitive",
    "Gaussian",
    "Huber",
    "Laplace",
    "Likelihood",
    "Logistic",
    "MixtureNoise",
    "Poisson",
    "Probit",
    "SoftLabels",
    "Softmax",
    "StudentT",
]

if not TYPE_CHECKING:  # a regression does not wait for all of them
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "Custom": "mercer.likelihoods.custom",
            "MixtureNoise": "mercer.likelihoods.mixture",
            "Poisson": "mercer.likelihoods.poisson",
            "Probit": "mercer.likelihoods.probit",
            "SoftLabels": "mercer.likelihoods.soft_labels",
            "StudentT": "mercer.likelihoods.student",
        },
    )
