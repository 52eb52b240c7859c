"""What a kernel expansion is fitted to, what is asked of the fit, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.evidence.optimum import Report
from mercer.inference._calibration import Calibration, is_calibrated
from mercer.inference._columns import Columns
from mercer.inference._expansion_noise import NoiseModel
from mercer.inference._expansion_path import Path
from mercer.inference._expansion_posterior import Spread
from mercer.inference._expansion_problem import Expansion, ExpansionProblem
from mercer.inference._residual_noise import Noise
from mercer.likelihoods import Gaussian, Likelihood, Logistic, Probit
from mercer.priors import CoefficientPrior

__all__ = ["Chosen", "Fitted", "Options", "Targets"]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


class Options(NamedTuple):
    """What is asked of a fit.

    prior : the kind of the prior on coefficients
    prior_scale : its scale, None to choose it
    tol : the gap to prove
    max_active : how many functions may be in use, None for any number
    n_penalties : on a path, at the most
    report : whom to tell of stages
    settles : whether noise that shapes the loss is found in turn with the penalty, or is what it
        begins with
    like : a choice for other targets, after which nothing more is to be compared: the penalty is
        the one at the same place of the path, the first if that has none
    """

    prior: type[CoefficientPrior]
    prior_scale: float | None
    tol: float
    max_active: int | None
    n_penalties: int
    report: Report | None = None
    settles: bool = True
    like: Chosen | None = None


@dataclass(frozen=True)
class Targets:
    """One column of targets, with its rows.

    y : (n,) numbers, or labels -1 and 1
    weights : (n,) powers of the likelihood
    mean, H : (n,) the fixed part of the function, and (n, r) functions without a penalty
    folds : (n,) numbers from 0
    noise : Noise of numbers, or the name of what is minimised for labels
    variances : (n,) of known noise, or None
    """

    y: Floats
    weights: Floats
    mean: Floats
    H: Floats | None
    folds: Indices
    noise: Noise | str
    variances: Floats | None = None

    def problem(self, columns: Columns, now: Likelihood | str) -> ExpansionProblem:
        """Return the problem of these targets for functions at their rows."""
        known = now if self.variances is None else Gaussian(self.variances)
        weights = None if np.all(self.weights == 1.0) else self.weights
        return ExpansionProblem.of(columns, known, self.y, self.mean, self.H, weights)

    def model(self, options: Options, now: Likelihood) -> NoiseModel:
        """Return the likelihood of solutions, `now` being that which is minimised."""
        noise = self.noise if isinstance(self.noise, Noise) else None
        return NoiseModel(noise, now, options.prior, options.prior_scale, self.variances)

    def begun(self) -> Likelihood:
        """Return the likelihood to begin with: with starts for what is open, or the link."""
        if isinstance(self.noise, Noise):
            if self.variances is not None:
                return Gaussian(float(1.0 / np.mean(1.0 / self.variances)))
            return self.noise.begun()
        return Probit() if self.noise == "quadratic_soft_margin" else Logistic()

    @property
    def of_labels(self) -> bool:
        """Whether they are labels, which have no noise."""
        return isinstance(self.noise, str)

    @property
    def has_open_unit(self) -> bool:
        """Whether the unit of the loss is to be estimated."""
        return isinstance(self.noise, Noise) and self.noise.is_open

    @property
    def shapes_the_loss(self) -> bool:
        """Whether the loss depends on noise that is to be estimated."""
        return isinstance(self.noise, Noise) and self.noise.shapes_the_loss

    def with_noise(self, **changes: Any) -> Targets:
        """Return the targets with noise of other attributes; labels as they are."""
        if isinstance(self.noise, str):
            return self
        return replace(self, noise=replace(self.noise, **changes))

    @property
    def is_margin(self) -> bool:
        """Whether what is minimised is no likelihood."""
        return self.of_labels and self.noise != "logistic"

    def calibrates(self, prior: type[CoefficientPrior]) -> bool:
        """Whether latent values are to be calibrated, see `is_calibrated`.

        Margins say nothing without; the others do where no rows can be held out.
        """
        found = is_calibrated(self.of_labels, not self.is_margin, prior)
        return found and (self.is_margin or self.can_be_split)

    @property
    def can_be_split(self) -> bool:
        """Whether rows can be held out, and others are left that tell something."""
        folds = np.unique(self.folds)
        if not self.of_labels:
            return len(folds) > 1
        return any(np.ptp(self.y[self.folds != fold], axis=0) for fold in folds if len(folds) > 1)

    def minimised(self, now: Likelihood) -> Likelihood | str:
        """Return what the loss is made of."""
        return self.noise if isinstance(self.noise, str) and self.is_margin else now


class Chosen(NamedTuple):
    """A penalty, and what goes with it.

    penalty : in units of the loss
    now : the likelihood whose loss is minimised
    value : of held-out rows, the mean log density; NaN if nothing was chosen
    path : where it was chosen, None if it was given, or nothing could be told of it
    calibration : of margins and others that are calibrated, from held-out rows: that of a function
        of size 1 (see `size_of`), and once one is fitted of that
    untold : why nothing could be told of it, in words; None if something could, or it was given
    is_whole : whether no interrupt has ended the choice
    is_borrowed : whether the calibration is that of other targets, after an interrupt
    """

    penalty: float
    now: Likelihood
    value: float = np.nan
    path: Path | None = None
    calibration: Calibration | None = None
    untold: str | None = None
    is_whole: bool = True
    is_borrowed: bool = False


class Fitted(NamedTuple):
    """A function that was fitted.

    solution : the coefficients and what is proved of them
    likelihood : the noise, or the link
    scale : of the prior
    coef : (k + r,) coefficients in the likelihood's units, those without a penalty last
    spread : of these
    chosen : the penalty, and where it comes from
    objective, dual : in nats
    """

    solution: Expansion
    likelihood: Likelihood
    scale: float
    coef: Floats
    spread: Spread
    chosen: Chosen
    objective: float
    dual: float
