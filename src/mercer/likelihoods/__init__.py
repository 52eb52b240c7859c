"""Likelihoods: how an observation y comes from the latent function's value f."""

from mercer.likelihoods.base import Likelihood
from mercer.likelihoods.gaussian import Gaussian

__all__ = ["Gaussian", "Likelihood"]
