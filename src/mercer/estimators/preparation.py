"""From what a user gave to `fit` to the objective that it maximises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numpy.typing import ArrayLike

from mercer import means
from mercer.errors import NotPositiveDefiniteError
from mercer.estimators.precomputed import over_row_numbers
from mercer.estimators.prepare_exact import Begun, prepare_exact
from mercer.estimators.prepare_latent import prepare_latent
from mercer.estimators.resolve import as_kernel, as_likelihood, chosen_engine
from mercer.estimators.rows import is_precomputed, validated_rows
from mercer.estimators.starting import Prepared
from mercer.evidence.guarded import Guarded
from mercer.likelihoods import Gaussian

__all__ = ["all_or_nothing", "naming_the_model", "prepare"]


def prepare(estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Prepared:
    """Return the objective of a fit by a `GPRegressor`, at its start."""
    precomputed = is_precomputed(estimator)
    kernel, noise = (None, None) if precomputed else as_kernel(estimator.kernel, X)
    likelihood = as_likelihood(estimator.likelihood, noise)
    inference = chosen_engine(estimator, likelihood)
    mean = means.from_spec(estimator.mean)
    rows = validated_rows(estimator, X, y, sample_weight, kernel, inference, likelihood)
    if precomputed:
        kernel, numbers = over_row_numbers(rows.X, rows.kept, mean)
        rows = rows._replace(X=numbers)
    if inference in ("exact", "iterative"):
        assert likelihood is None or isinstance(likelihood, Gaussian)
        if inference == "exact":
            return prepare_exact(estimator, kernel, likelihood, mean, rows)
        # an exact fit does not wait for what it has no use for
        from mercer.estimators.prepare_iterative import prepare_iterative

        return prepare_iterative(estimator, kernel, likelihood, mean, rows)
    return prepare_latent(estimator, kernel, likelihood, mean, rows, inference)


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave the estimator as it was if what is done to it fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def naming_the_model(objective: Guarded | Begun) -> Iterator[None]:
    """Say which model it was, and what may be wrong with it, if its matrix cannot be factorised."""
    try:
        yield
    except NotPositiveDefiniteError as error:
        raise NotPositiveDefiniteError(
            f"the covariance of the targets cannot be factorised under {objective.kernel!r} with "
            f"{objective.likelihood!r}: {error}. Likely causes: repeated rows with too little "
            "noise, a length scale far longer than the data, or a kernel that is not positive "
            "semi-definite. Try more noise, or scale the inputs"
        ) from error
