"""An estimator with the data it is tried on: what rules ask of regressors and classifiers alike."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from mercer.means import Mean, Zero
from mercer.posterior.predictive import MarginalPredictive

__all__ = [
    "Accuracy",
    "EstimatorCase",
    "default_kernel",
    "functions",
    "offers",
    "quietly",
    "unless_exempt",
    "weights",
]

Floats = NDArray[np.float64]

# Rules that a sound estimator may break: one that takes rows in turn, couples its outputs, or has a
# prior under which the mean is not linear.
_EXEMPTABLE = (
    "rule_order_of_rows",
    "rule_outputs_are_independent",
    "rule_linear_in_the_targets",
)


def quietly(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call without warnings: of bounds, of convergence and the like, which small data bring."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return call(*args, **kwargs)


class Accuracy(NamedTuple):
    """How near two ways to one result come: pairs of a relative and an absolute tolerance."""

    weights: tuple[float, float]  # rows that weigh more, and rows repeated
    order: tuple[float, float]
    threads: tuple[float, float]
    units: tuple[float, float]  # two searches end as near to each other
    evidence: float  # both
    gradient: tuple[float, float]  # of the evidence, by differences over `step`
    step: float


class EstimatorCase(ABC):
    """An estimator, data to fit it to, and a fit that rules share and do not change.

    Parameters
    ----------
    estimator : estimator
        Not fitted; rules work with clones of it.
    X, y : arrays of shape (n, d), and (n,) or more, optional
        Small random data without them.
    objects : dict, optional
        Functions by name, which a saved model is given back.
    """

    # What is wanted, the method by which it is known, and the type of its targets.
    kind: ClassVar[str]
    method: ClassVar[str]
    dtype: ClassVar[type | None] = None
    # Parameters that have units of their own, when they are given.
    units: ClassVar[tuple[str, ...]] = ("kernel",)
    # All ways to ask a fitted model: a method, which it may lack, and options.
    ways: ClassVar[tuple[tuple[str, dict[str, bool]], ...]]

    def __init__(
        self, estimator: Any, X: Any = None, y: Any = None, objects: dict[str, Any] | None = None
    ) -> None:
        if isinstance(estimator, type) or not hasattr(estimator, self.method):
            raise ValueError(f"{self.kind} is wanted, not fitted, got {estimator!r}")
        if (X is None) != (y is None):
            raise ValueError("give X and y both or neither")
        rng = np.random.default_rng(0)
        if X is None:
            X, y = self.example(estimator, rng)
        self.X, self.y = np.array(X, dtype=float), np.array(y, dtype=self.dtype)
        middle, width = self.X.mean(axis=0), self.X.std(axis=0)
        self.X_new = middle + width * rng.normal(size=(5, self.X.shape[1]))
        self.objects = {} if objects is None else objects
        self.exemptions = _exemptions(estimator)
        self.estimator = clone(estimator)
        if self.params.get("random_state", 0) is None:
            self.estimator.set_params(random_state=0)  # rules compare fits with each other

    @abstractmethod
    def example(self, estimator: Any, rng: np.random.Generator) -> tuple[Floats, NDArray[Any]]:
        """Return data that suit an estimator."""

    @property
    @abstractmethod
    def accuracy(self) -> Accuracy:
        """How near two ways to one result come."""

    @abstractmethod
    def observed(self, model: Any, X: Any) -> Floats:
        """Return what a model says of an observation at each row, in columns."""

    @abstractmethod
    def latent(self, model: Any) -> Callable[..., Any] | None:
        """Return a model's method for its functions, which takes return_std and return_cov."""

    def bad_targets(self) -> list[tuple[str, Any, str]]:
        """Return targets that are to be refused: what they are, they, and what is to be said."""
        return [("no targets", None, "y")]

    def evidence_fits(self) -> dict[str, Any]:
        """Return fits whose evidence is looked at, by what they are of."""
        return {"the fit": self.model}

    def everything(self, model: Any, X: Any) -> Floats:
        """Return all that a model predicts at each row: of an observation and of its functions."""
        latent = self.latent(model)
        parts = () if latent is None else latent(X, return_std=True)
        rows = [np.reshape(part, (len(part), -1)) for part in parts]
        return np.hstack([self.observed(model, X), *rows])

    @cached_property
    def model(self) -> Any:
        """A fit to the data."""
        return self.fit(self.X, self.y)

    @property
    def X_joint(self) -> Floats:
        """New rows that may be asked for together: one, of a model without joint distributions."""
        process = getattr(self.model, "predictive_", None)
        rows = 1 if isinstance(process, MarginalPredictive) else len(self.X_new)
        return np.asarray(self.X_new[:rows])

    @property
    def params(self) -> dict[str, Any]:
        """The estimator's parameters."""
        return dict(self.estimator.get_params(deep=False))

    @property
    def size(self) -> float:
        """The size of the targets."""
        return 1.0

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
        held = {"optimizer": None} if "optimizer" in self.params else {}
        return self.fit(X, y, sample_weight, **held)


def offers(*names: str) -> Callable[[EstimatorCase], str]:
    """Say which of these attributes a fitted estimator lacks, where it matters to a rule."""

    def lacking(case: EstimatorCase) -> str:
        missing = [name for name in names if not hasattr(case.model, name)]
        return f"it has no {', '.join(missing)}" if missing else ""

    return lacking


def functions(case: EstimatorCase) -> str:
    """Say whether rules on latent functions do not apply."""
    return "it predicts no functions" if case.latent(case.model) is None else ""


def weights(case: EstimatorCase) -> str:
    """Say whether rules on sample weights do not apply."""
    takes = has_fit_parameter(case.estimator, "sample_weight")
    return "" if takes else "its fit takes no sample_weight"


def default_kernel(case: EstimatorCase) -> str:
    """Say whether rules on the default kernel do not apply."""
    mean = case.params.get("mean")
    if isinstance(mean, Mean):
        given = mean.estimate is None and not isinstance(mean, Zero)
    else:
        given = callable(mean)
    given = given or any(case.params.get(name) is not None for name in case.units)
    return f"its {', '.join(case.units)} or mean has units of its own" if given else ""


def unless_exempt(rule: str) -> Callable[[EstimatorCase], str]:
    """Say why an estimator is exempt from a rule, where it says so itself."""
    assert rule in _EXEMPTABLE

    def exempt(case: EstimatorCase) -> str:
        return case.exemptions.get(rule, "")

    return exempt


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
