"""Certificates of fitted regressors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.process import FittedProcess
from mercer.estimators.rows import powers
from mercer.inference.certificate import Certificate, certify
from mercer.likelihoods import Gaussian, Likelihood
from mercer.posterior import Predictive
from mercer.selection.regression import target_columns

__all__ = ["certificate"]


def certificate(
    predictive: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    noise: Any = None,
    sample_weight: ArrayLike | None = None,
    dual: str = "best",
    max_steps: int = 50,
) -> Certificate:
    """Bound how far the mean of a regression model is from that of exact regression.

    The exact mean f* has the highest log posterior among all functions, under the model's kernel,
    mean function and noise. The mean f of an approximation (SoR, DTC, VFE, FITC, a greedy or a
    pruned basis, an iterative solution) has a lower one. By how much at the most follows from two
    quadratic forms that bound each other (BKM 78 to 84), without the exact solution.

    Parameters
    ----------
    predictive : fitted regressor, or Predictive
        The model. A regressor brings its noise with it. Its predictive must be one process whose
        mean is a sum of kernel sections: not a committee, PIC, or augmented, and without
        coefficients of the mean that are integrated out.
    X, y : array-like of shape (n, d), and (n,) or (n, P)
        The rows that the exact regression is to. They may be left out for a regressor that keeps
        its training rows, `X_train_`, which are then taken with their weights.
    noise : float, array of shape (n,), or Gaussian, optional
        The variance of the noise, as `likelihood_` has it; wanted where no regressor is given.
    sample_weight : array-like of shape (n,), optional
        Powers of the likelihood, as given to `fit`.
    dual : {"best", "residual", "refined"}, default "best"
        Where the bound comes from: the residuals, these after steps of conjugate gradients, or
        whichever is best. See :func:`mercer.inference.certificate.certify`.
    max_steps : int, default 50
        How many of these steps to take at most.

    Returns
    -------
    Certificate
        With `gap` the relative distance of the bounds (BKM 84), and `fitted_error` what the root
        mean square of f - f* over the rows is at most, in the units of y.

    Notes
    -----
    It bounds the log posterior of the function. Of the evidence, of hyperparameters and of
    variances it says nothing. An exact posterior has the gap 0, but for rounding.

    Each product with the kernel matrix takes O(n^2) time and O(n) memory: one for "residual", and
    one more for each step.

    Examples
    --------
    >>> import numpy as np
    >>> import mercer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 6, (500, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(500)
    >>> model = mercer.SparseGPRegressor(approximation="vfe", n_inducing=8, random_state=0)
    >>> certified = mercer.certificate(model.fit(X, y), X, y)
    >>> bool(certified.gap < 0.01), bool(certified.fitted_error[0] < 0.05)
    (True, True)
    """
    likelihood, expected = noise, predictive
    if not isinstance(predictive, Predictive):
        if not isinstance(predictive, FittedProcess):
            raise ValueError(
                "a fitted GPRegressor, SparseGPRegressor or SparseGreedyGPRegressor, or a "
                f"predictive_, is wanted, got a {type(predictive).__name__}; of a pipeline, give "
                "the last step and the rows as that sees them"
            )
        check_is_fitted(predictive)
        expected = predictive.predictive_
        if noise is None:
            likelihood = predictive.likelihood_
        if X is None and y is None:
            return _of_training_rows(predictive, likelihood, sample_weight, dual, max_steps)
        if X is not None:
            X = predictive._new_inputs(X)
    if X is None or y is None:
        raise ValueError("X and y are wanted: the rows that the exact regression is to")
    if likelihood is None:
        raise ValueError(
            "the variance of the noise is wanted beside a predictive: noise=model.likelihood_"
        )
    if np.ndim(y) == 0:
        raise ValueError(f"y must be an array, with a target for each row; got {y!r}")
    Y = target_columns(y, len(y))  # type: ignore[arg-type]
    weights = None if sample_weight is None else powers(sample_weight, len(Y))
    kept = np.ones(len(Y), dtype=bool) if weights is None else weights > 0
    variances = _variances(likelihood, kept)
    return certify(expected, X, Y, variances, weights, dual=dual, max_steps=max_steps)


def _of_training_rows(
    model: Any, likelihood: Any, sample_weight: Any, dual: str, max_steps: int
) -> Certificate:
    """Return the certificate on the rows that a regressor has kept."""
    if sample_weight is not None:
        raise ValueError("the training rows have their weights; sample_weight goes with X and y")
    X, Y = getattr(model, "X_train_", None), getattr(model, "y_train_", None)
    # a subset of data is exact regression to the rows that it keeps, which says nothing of others
    if X is None or Y is None or getattr(model, "approximation_", None) == "sod":
        raise ValueError(
            f"this {type(model).__name__} does not keep all of its training rows: give X and y"
        )
    # of a precomputed matrix the rows that are kept are numbers, as the posterior takes them
    process = model.posterior_ if model._pairwise else model.predictive_
    variances = _variances(likelihood, np.ones(len(Y), dtype=bool))
    weights = model.sample_weight_
    return certify(process, X, Y, variances, weights, dual=dual, max_steps=max_steps)


def _variances(noise: Any, kept: NDArray[np.bool_]) -> Any:
    """Return the variances of the rows, without weights, in the units of the likelihood.

    A likelihood that knows them has those of the rows that are kept.
    """
    if not isinstance(noise, Likelihood):
        return noise
    if not isinstance(noise, Gaussian) or noise.covariance is not None:
        raise ValueError(
            "a certificate is for Gaussian noise that is independent from row to row, got "
            f"{noise!r}: the log posterior is a quadratic form there and nowhere else"
        )
    variances = np.ones(len(kept))
    variances[kept] = noise.variances(int(np.sum(kept)))
    return variances
