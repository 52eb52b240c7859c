"""A regressor with the data it is tried on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from mercer.likelihoods import Gaussian
from mercer.testing.compare import STEP
from mercer.testing.estimator_case import Accuracy, EstimatorCase, weights

__all__ = ["RegressorCase", "distribution", "gaussian", "multi_output", "own_units"]

Floats = NDArray[np.float64]

# Where a likelihood is asked what it is.
_LATENT = np.linspace(-3.0, 3.0, 7)


class RegressorCase(EstimatorCase):
    """A regressor, data to fit it to, and fits that rules share and do not change."""

    kind, method, dtype = "an estimator", "predict", float
    units = ("kernel", "likelihood")
    ways = (
        ("predict", {}),
        ("predict", {"return_cov": True}),
        ("predict", {"return_std": True, "latent": True}),
        ("predict_interval", {}),
        ("predict_gradient", {}),
        ("sample_y", {}),
    )

    def example(self, estimator: Any, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return two dozen rows of a smooth function with noise."""
        X = rng.normal(size=(24, 2))
        return X, 3.0 + np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=24)

    @property
    def accuracy(self) -> Accuracy:
        """How near two ways to one result come."""
        size = self.size
        return Accuracy(
            weights=(1e-6, 1e-8 * size),
            order=(1e-7, 1e-9 * size),
            threads=(1e-10, 1e-10 * size),
            units=(1e-3, 1e-4 * size),
            evidence=1e-8,
            gradient=(1e-4, 1e-5),
            step=STEP,
        )

    def observed(self, model: Any, X: Any) -> Floats:
        """Return means and standard deviations."""
        return np.column_stack(model.predict(X, return_std=True))

    def latent(self, model: Any) -> Callable[..., Any]:
        """Return `predict` for the function."""
        return partial(model.predict, latent=True)

    def bad_targets(self) -> list[tuple[str, Any, str]]:
        """Return targets that are to be refused."""
        nan, inf = self.y.copy(), self.y.copy()
        nan[2], inf[2] = np.nan, np.inf
        return [*super().bad_targets(), ("y with NaN", nan, "nan"), ("y with infinity", inf, "inf")]

    def evidence_fits(self) -> dict[str, Any]:
        """Return fits of one output, of weighted rows and of two outputs."""
        fits = super().evidence_fits()
        if not weights(self):
            w = np.linspace(0.5, 2.0, len(self.y))
            fits["weighted rows"] = self.fit(self.X, self.y, w)
        if not multi_output(self):
            fits["two outputs"] = self.two_outputs
        return fits

    @cached_property
    def two_outputs(self) -> Any:
        """A held fit to two columns of targets."""
        return self.hold(self.X, self.Y)

    @cached_property
    def Y(self) -> Floats:
        """Two columns of targets, in different units if these can be any numbers."""
        other = 20.0 * np.cos(self.X[:, 0]) if self.mean_is_latent else self.y[::-1]
        return np.column_stack([self.y, other])

    @cached_property
    def mean_is_latent(self) -> bool:
        """Whether an observation is, on average, the latent value: there is no link."""
        likelihood = getattr(self.model, "likelihood_", None)
        if likelihood is None:
            return True
        if likelihood.missing("conditional_mean"):
            return False
        return bool(np.allclose(likelihood.conditional_mean(_LATENT), _LATENT, 1e-9, 1e-12))

    @cached_property
    def looks_symmetric(self) -> bool:
        """Whether there is no link and the noise is as often above 0 as it is below."""
        if not self.mean_is_latent or distribution(self):
            return False
        t, cdf = 2.0 ** np.arange(-20.0, 10.0), self.model.likelihood_.conditional_cdf
        f = _LATENT[:, None]
        return bool(np.allclose(cdf(f + t, f) + cdf(f - t, f), 1.0, 0.0, 1e-9))

    @cached_property
    def has_spread(self) -> bool:
        """Whether observations have a variance."""
        likelihood = getattr(self.model, "likelihood_", None)
        if likelihood is None:
            return True
        given = not likelihood.missing("conditional_var")
        return given and bool(np.all(np.isfinite(likelihood.conditional_var(_LATENT))))

    @property
    def size(self) -> float:
        """The size of the targets."""
        return float(np.max(np.abs(self.y)))


def multi_output(case: RegressorCase) -> str:
    """Say whether rules on several outputs do not apply."""
    takes = get_tags(case.estimator).target_tags.multi_output
    return "" if takes else "it takes one output only"


def gaussian(case: RegressorCase) -> str:
    """Say whether rules on Gaussian noise do not apply."""
    likelihood = getattr(case.model, "likelihood_", None)
    return "" if isinstance(likelihood, Gaussian) else "its noise is not Gaussian"


def distribution(case: RegressorCase) -> str:
    """Say whether rules on distribution functions do not apply."""
    missing = case.model.likelihood_.missing("conditional_cdf")
    return "its likelihood has no conditional_cdf" if missing else ""


def own_units(case: RegressorCase) -> str:
    """Say whether rules on a kernel and noise that the data do not touch do not apply."""
    given = all(case.params.get(name) is not None for name in case.units)
    return "" if given else "its kernel or noise is started from the data"
