"""A regressor with the data it is tried on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from mercer.likelihoods import Gaussian
from mercer.means import Mean, Zero

__all__ = [
    "RegressorCase",
    "default_kernel",
    "distribution",
    "gaussian",
    "multi_output",
    "offers",
    "own_units",
    "quietly",
    "regressor_case",
    "spreads",
    "unless_exempt",
    "weights",
]

Floats = NDArray[np.float64]

# Rules that a sound estimator may break: one that takes rows in turn, or couples its outputs.
_EXEMPTABLE = ("rule_order_of_rows", "rule_outputs_are_independent")
# Where a likelihood is asked what it is.
_LATENT = np.linspace(-3.0, 3.0, 7)


def quietly(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call without warnings: of bounds, of convergence and the like, which small data bring."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return call(*args, **kwargs)


def spreads(model: Any, X: Any) -> Floats:
    """Return predicted means and standard deviations, one after the other."""
    return np.concatenate(model.predict(X, return_std=True))


class RegressorCase:
    """A regressor, data to fit it to, and fits that rules share and do not change.

    Parameters
    ----------
    estimator : estimator
        Not fitted; rules work with clones of it.
    X, y : arrays of shape (n, d) and (n,)
    X_new : array of shape (t, d)
    objects : functions by name, which a saved model is given back
    exemptions : why rules do not apply, by name
    """

    def __init__(
        self,
        estimator: Any,
        X: Floats,
        y: Floats,
        X_new: Floats,
        objects: dict[str, Any],
        exemptions: dict[str, str],
    ) -> None:
        self.estimator, self.objects, self.exemptions = estimator, objects, exemptions
        self.X, self.y, self.X_new = X, y, X_new

    @cached_property
    def model(self) -> Any:
        """A fit to the data."""
        return self.fit(self.X, self.y)

    @cached_property
    def two_outputs(self) -> Any:
        """A held fit to two columns of targets."""
        return self.hold(self.X, self.Y)

    @cached_property
    def Y(self) -> Floats:
        """Two columns of targets, in different units if these can be any numbers."""
        other = 20.0 * np.cos(self.X[:, 0]) if self.adds_noise else self.y[::-1]
        return np.column_stack([self.y, other])

    @cached_property
    def adds_noise(self) -> bool:
        """Whether an observation is, on average, the latent value: there is no link."""
        likelihood = getattr(self.model, "likelihood_", None)
        if likelihood is None:
            return True
        if likelihood.missing("conditional_mean"):
            return False
        return bool(np.allclose(likelihood.conditional_mean(_LATENT), _LATENT, 1e-9, 1e-12))

    @cached_property
    def is_symmetric(self) -> bool:
        """Whether there is no link and the noise is as often above 0 as it is below."""
        if not self.adds_noise or distribution(self):
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Any:
        """Return a clone fitted to these data."""
        model = clone(self.estimator).set_params(**params)
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        return quietly(model.fit, X, y, **options)

    def hold(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Return a clone fitted with its hyperparameters kept, if it can be told to.

        A search ends at slightly different places for slightly different numbers, so that what
        must agree to many digits is compared without one.
        """
        held = {"optimizer": None} if "optimizer" in self.estimator.get_params() else {}
        return self.fit(X, y, sample_weight, **held)

    @property
    def size(self) -> float:
        """The size of the targets."""
        return float(np.max(np.abs(self.y)))


def offers(*names: str) -> Callable[[RegressorCase], str]:
    """Say which of these attributes a fitted regressor lacks, where it matters to a rule."""

    def lacking(case: RegressorCase) -> str:
        missing = [name for name in names if not hasattr(case.model, name)]
        return f"it has no {', '.join(missing)}" if missing else ""

    return lacking


def weights(case: RegressorCase) -> str:
    """Say whether rules on sample weights do not apply."""
    takes = has_fit_parameter(case.estimator, "sample_weight")
    return "" if takes else "its fit takes no sample_weight"


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


def unless_exempt(rule: str) -> Callable[[RegressorCase], str]:
    """Say why an estimator is exempt from a rule, where it says so itself."""
    assert rule in _EXEMPTABLE

    def exempt(case: RegressorCase) -> str:
        return case.exemptions.get(rule, "")

    return exempt


def default_kernel(case: RegressorCase) -> str:
    """Say whether rules on the default kernel do not apply."""
    params = case.estimator.get_params(deep=False)
    mean = params.get("mean")
    if isinstance(mean, Mean):
        held = mean.estimate is None and not isinstance(mean, Zero)
    else:
        held = callable(mean)
    given = params.get("kernel") is not None or params.get("likelihood") is not None
    return "its kernel, noise or mean has units of its own" if given or held else ""


def own_units(case: RegressorCase) -> str:
    """Say whether rules on a kernel and noise that the data do not touch do not apply."""
    params = case.estimator.get_params(deep=False)
    given = params.get("kernel") is not None and params.get("likelihood") is not None
    return "" if given else "its kernel or noise is started from the data"


def _exemptions(estimator: Any) -> dict[str, str]:
    """Return what an estimator says of rules it is exempt from, checked."""
    given = dict(getattr(estimator, "_conformance_exemptions", {}))
    for rule, why in given.items():
        if rule not in _EXEMPTABLE or not (isinstance(why, str) and why.strip()):
            raise ValueError(
                f"_conformance_exemptions may give a reason for {' and '.join(_EXEMPTABLE)}, got "
                f"{why!r} for {rule!r}"
            )
    return given


def regressor_case(
    estimator: Any, X: Any = None, y: Any = None, objects: dict[str, Any] | None = None
) -> RegressorCase:
    """Return the case of a regressor, with small random data where none are given."""
    if isinstance(estimator, type) or not hasattr(estimator, "predict"):
        raise ValueError(f"an estimator is wanted, not fitted, got {estimator!r}")
    if (X is None) != (y is None):
        raise ValueError("give X and y both or neither")
    rng = np.random.default_rng(0)
    if X is None:
        X = rng.normal(size=(24, 2))
        y = 3.0 + np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=24)
    X, y = np.array(X, dtype=float), np.array(y, dtype=float)
    estimator = clone(estimator)
    params = estimator.get_params(deep=False)
    if "random_state" in params and params["random_state"] is None:
        estimator.set_params(random_state=0)  # rules compare fits with each other
    middle, width = X.mean(axis=0), X.std(axis=0)
    X_new = middle + width * rng.normal(size=(5, X.shape[1]))
    objects = {} if objects is None else objects
    return RegressorCase(estimator, X, y, X_new, objects, _exemptions(estimator))
