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
    "gaussian",
    "multi_output",
    "offers",
    "own_units",
    "quietly",
    "weights",
]

Floats = NDArray[np.float64]


def quietly(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call without warnings: of bounds, of convergence and the like, which small data bring."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return call(*args, **kwargs)


class RegressorCase:
    """A regressor, data to fit it to, and fits that rules share and do not change.

    Parameters
    ----------
    estimator : estimator
        Not fitted; rules work with clones of it.
    X, y : arrays of shape (n, d) and (n,)
    X_new : array of shape (t, d)
    objects : functions by name, which a saved model is given back
    """

    def __init__(
        self, estimator: Any, X: Floats, y: Floats, X_new: Floats, objects: dict[str, Any]
    ) -> None:
        self.estimator, self.objects = estimator, objects
        self.X, self.y, self.X_new = X, y, X_new

    @cached_property
    def model(self) -> Any:
        """A fit to the data."""
        return self.fit(self.X, self.y)

    @cached_property
    def two_outputs(self) -> Any:
        """A held fit to two columns of targets."""
        return self.hold(self.X, self.Y)

    @property
    def Y(self) -> Floats:
        """Two columns of targets, in different units."""
        return np.column_stack([self.y, 20.0 * np.cos(self.X[:, 0])])

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
    return RegressorCase(estimator, X, y, X_new, {} if objects is None else objects)
